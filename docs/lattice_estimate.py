"""Estimates the security of fhaim's parameter sets with the lattice estimator (THREAT-MODEL.md, "The parameters").

Needs Sage (or `pip install passagemath-standard`) and github.com/malb/lattice-estimator:

    PYTHONPATH=../lattice-estimator python3 docs/lattice_estimate.py

The primes are those of crates/he/src/scheme/params.rs. Secret, errors and the randomness of encryption
are centred binomials of variance 10: differences of two sums of 20 bits (crates/he/src/scheme/switch_key.rs;
fhe.rs 0.1.1, `sample_vec_cbd`). An upload key is ternary if the modulus has at most 214 bits, and otherwise
drawn like the secret key (crates/he/src/scheme/upload). Costs are for the product of all primes, including
the special ones, because keys are made, and encryption begins, modulo this product or a divisor of it. The
number of samples is unlimited, and no estimated attack uses the ring.
"""

import re
from math import log2, prod
from pathlib import Path

from estimator import LWE, ND, RC

DEGREE = 8192
PARAMS = Path(__file__).parent.parent / "crates/he/src/scheme/params.rs"
SET = r"pub const (\w+): ParameterSet = ParameterSet \{(.*?)\n\};"
PRIMES = r"(?:ciphertext|special)_moduli: &\[(.*?)\]"


def sets():
    """Name and product of all primes of every parameter set."""
    for name, fields in re.findall(SET, PARAMS.read_text(), re.DOTALL):
        lists = re.findall(PRIMES, fields, re.DOTALL)
        yield name, prod(int(p, 16) for primes in lists for p in re.findall(r"0x\w+", primes))


def main():
    ours, gaussian = ND.CenteredBinomial(20), ND.DiscreteGaussian(3.19)
    ternary = ND.Uniform(-1, 1)
    cases = []
    for name, product in sets():
        upload = ternary if product.bit_length() <= 214 else ours
        cases += [(f"{name}, secret key", product, ours, ours), (f"{name}, upload key", product, upload, ours)]
    # The largest moduli of the 2024 guidelines.
    cases.append(("ternary secret", 2**214, ternary, gaussian))
    cases.append(("Gaussian secret", 2**216, gaussian, gaussian))
    for name, modulus, secret, error in cases:
        params = LWE.Parameters(n=DEGREE, q=modulus, Xs=secret, Xe=error)
        attacks = [
            ("usvp", RC.MATZOV, LWE.primal_usvp),
            ("bdd", RC.MATZOV, LWE.primal_bdd),
            ("dual hybrid", RC.MATZOV, LWE.dual_hybrid),
            ("usvp", RC.ADPS16, LWE.primal_usvp),
            ("usvp", RC.LaaMosPol14, LWE.primal_usvp),
            ("usvp", RC.ChaLoy21, LWE.primal_usvp),
        ]
        for attack, model, estimate in attacks:
            cost = estimate(params, red_cost_model=model)
            operations = float(log2(cost["rop"]))
            print(
                f"{name}, {log2(modulus):.2f} bits: {attack}, {type(model).__name__}, "
                f"block size {cost['beta']}: 2^{operations:.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()

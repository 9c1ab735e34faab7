"""What the lattice estimator says of fhaim's parameter sets (THREAT-MODEL.md, "The parameters").

Needs Sage (or `pip install passagemath-standard`) and github.com/malb/lattice-estimator:

    PYTHONPATH=../lattice-estimator python3 docs/lattice_estimate.py

The primes are read from crates/he/src/params.rs. Secret, errors and the randomness of encryption
are centred binomials of variance 10, differences of two sums of 20 bits (crates/he/src/keys.rs;
fhe.rs 0.1.1, `sample_vec_cbd`); a holder's own key is ternary where the modulus has 214 bits at most
(crates/he/src/holder). Costs are for all primes together, the special ones included, since keys are made
and encryption begins modulo their product. The number of samples is
unlimited, and no attack that is estimated makes use of the ring.
"""

import re
from math import log2, prod
from pathlib import Path

from estimator import LWE, ND, RC

DEGREE = 8192
PARAMS = Path(__file__).parent.parent / "crates/he/src/params.rs"
SET = r"pub const (\w+): ParameterSet = ParameterSet \{(.*?)\n\};"
PRIMES = r"(?:ciphertext|special)_moduli: &\[(.*?)\]"


def sets():
    """Name and product of all primes of every parameter set that does not take another's primes."""
    for name, fields in re.findall(SET, PARAMS.read_text(), re.DOTALL):
        lists = re.findall(PRIMES, fields, re.DOTALL)
        primes = [int(p, 16) for primes in lists for p in re.findall(r"0x\w+", primes)]
        if len(lists) == 2:
            yield name, prod(primes)


def main():
    ours, gaussian = ND.CenteredBinomial(20), ND.DiscreteGaussian(3.19)
    cases = [(name, product, ours, ours) for name, product in sets()]
    holders = [(name, product) for name, product in sets() if product.bit_length() <= 214]
    ternary = ND.Uniform(-1, 1)
    cases += [(f"{name}, a holder's key", product, ternary, ours) for name, product in holders]
    # The largest moduli of the 2024 guidelines, and that of the standard of 2018.
    cases.append(("ternary secret", 2**214, ND.Uniform(-1, 1), gaussian))
    cases.append(("Gaussian secret", 2**216, gaussian, gaussian))
    cases.append(("ours", 2**217, ours, ours))
    cases.append(("ours", 2**218, ours, ours))
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

"""Checks the cost of each release in a releases file of `fhaim run` or `fhaim local`.

    python3 docs/check_ledger.py RELEASES.json RECORD_BOUND

Computes each price from the formulas of PRIVACY.md, independently of the program: in fractions, except
for the gap, which is in floating point. Prints the first release of each kind in each phase, and fails if a
price differs.
"""

import json
import sys
from fractions import Fraction
from math import ceil, exp, pi, sqrt

UNIT = 4  # variance of one unit of noise
PAGE = 8192
COUNT = Fraction(1, 2**80)


def norm(axis):
    """Largest squared norm of (u(x))_u over the categories x of an axis."""
    return max(sum(u[x] ** 2 for u in axis["functions"]) for x in range(len(axis["functions"][0])))


def measure(statistic, bound):
    """Kind, squared sensitivity and number of cells of a statistic."""
    if statistic == "Total":
        return "total", 1, 1
    if "OneWay" in statistic:
        axis = statistic["OneWay"]
        return "1-way", norm(axis), len(axis["functions"])
    if "Product" in statistic:
        a, b = statistic["Product"]
        return "block", norm(a) * norm(b), len(a["functions"]) * len(b["functions"])
    terms = statistic["SquaredScores"]
    return "scores", (2 * bound + 1) ** 2 * sum(t["weight"] ** 2 for t in terms), len(terms)


def phase_name(phase):
    """Name of a phase, followed by its number if it has one."""
    return phase if isinstance(phase, str) else " ".join(map(str, next(iter(phase.items()))))


def gap(sensitivity, units, cells):
    """Additional cost of noise that is a sum of ladder samples and not one discrete Gaussian."""
    total, gamma, level = 0, 0.0, 0
    while units >> (2 * level):
        for _ in range(units >> (2 * level) & 3):
            variance = UNIT << (2 * level)
            if total:
                gamma += 5 * exp(-2 * pi**2 / (1 / total + 1 / variance))
            total += variance
        level += 1
    spread = 2 * gamma * sqrt(cells)
    return sqrt(sensitivity / total) * spread + spread**2 / 2


def main(path, bound):
    ledger = json.load(open(path))
    if "releases" not in ledger:
        sys.exit(
            f"{path}: this is not a releases file of `fhaim run` or `fhaim local`: it has no key `releases`."
            " `fhaim ledger --json` prints another form, which this program does not read."
        )
    squares = any("SquaredScores" in r["request"]["statistic"] for r in ledger["releases"])
    moduli = 2 if squares else 1
    spent, shown = 0, set()
    for release in ledger["releases"]:
        request = release["request"]
        units = request["variance_units"]
        kind, sensitivity, cells = measure(request["statistic"], bound)
        rho = ceil(Fraction(sensitivity, 2 * UNIT * units) / COUNT)
        leak = max(4, moduli * ceil(cells / PAGE)) << 50  # 2^-30 each
        beyond = gap(sensitivity, units, cells)
        rest = int(release["rho"]) - rho - leak
        expected = beyond / float(COUNT)
        if rest < 0 or not 0.999 * expected <= rest <= 1.001 * expected + 1:
            sys.exit(
                f"{path}: release {request['number']} ({kind}) costs rho {int(release['rho']) * float(COUNT):.9g} "
                f"in the ledger, and {float((rho + leak) * COUNT) + beyond:.9g} by the formulas of PRIVACY.md. "
                f"Check that {bound} is the run's record bound."
            )
        spent += rho + leak + rest
        what = f"{phase_name(release['phase'])}, {kind}"
        if what not in shown:
            shown.add(what)
            print(
                f"release {request['number']}, {what}: D^2 {sensitivity}, cells {cells}, "
                f"m {units}, sigma {sqrt(UNIT * units):.2f}, rho {float(rho * COUNT):.6g}, "
                f"gap {float(rest * COUNT):.3g}, leak {float(leak * COUNT):.3g}"
            )
    if not spent == int(ledger["spent"]) <= int(ledger["budget"]):
        sys.exit(
            f"{path}: the releases cost {spent}, and the ledger has {ledger['spent']} spent of {ledger['budget']}."
        )
    print(
        f"{len(ledger['releases'])} releases cost {float(spent * COUNT):.9f} "
        f"of {float(int(ledger['budget']) * COUNT):.9f}"
    )


if __name__ == "__main__":
    if len(sys.argv) != 3 or not sys.argv[2].isdigit():
        sys.exit("usage: python3 docs/check_ledger.py RELEASES.json RECORD_BOUND")
    main(sys.argv[1], int(sys.argv[2]))

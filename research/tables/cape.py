"""The tables of docs/research/cape.md."""

import decimal
import math

from .text import agreement, deviations, figure, signed, table

WAYS = ("central", "conventional", "shared", "correlated", "groups")

# The results of `bench mix` with all accuracies.
ACCURACIES = (*(f"cape-{way}-{mix}" for way in WAYS for mix in (1, 2, 4, 8, 16, 32)), "cape-mix-large")

# Last digit of the printed accuracies, in percent.
UNIT = 0.01

# Numbers of parties of Fig. 2 that have their own results (ten parties have those above), its ways, and the accuracies of
# CAPE that the text has, in percent. All at four records in a mix. Table 1 has 78.07 for ten parties at epsilon 10.
PARTIES = (5, 20, 50)
FEDERATED = ("conventional", "shared", "correlated")
FIGURE_2 = {None: 94.62, 20.0: 78.08, 10.0: 78.08}
TEN_PARTIES = {10.0: 78.07}

BUDGETS = (("no noise", None), ("epsilon 20", 20.0), ("epsilon 10", 10.0))

DELTA = 1e-5
RECORDS = 60_000
CLASSES = 10
EPSILON = 10.0


def measured(results):
    """Returns the rows with an accuracy, by way, l and epsilon, for ten parties."""
    rows = [row for row in results.rows(*ACCURACIES) if row["accuracy"] is not None]
    return {(row["way"], row["mix"], row["epsilon"]): row for row in rows}


def accuracies(results):
    """Accuracy by l, budget and way, with the printed one after a slash."""
    rows = measured(results)
    cells = []
    for mix in sorted({mix for _, mix, _ in rows}):
        for epsilon in (None, 20.0, 10.0):
            found = [rows.get((way, mix, epsilon)) for way in WAYS]
            if any(found):
                budget = "none" if epsilon is None else f"{epsilon:g}"
                cells.append([str(mix), budget, *(accuracy(row) for row in found)])
    return table(["l", "epsilon", *(f"`{way}`" for way in WAYS)], cells)


def accuracy(row):
    if row is None:
        return ""
    printed = f" / {row['printed']:.2f}" if row["printed"] is not None else ""
    return figure(row["accuracy"], row["standard_error"], 1) + printed


def opening(results):
    """The printed figures that were measured, and the differences in standard errors."""
    rows = compared(results)
    differences = [difference for _, difference in rows]
    cells = []
    for row, difference in rows:
        setting = f"{row['way']}, l = {row['mix']}, " + (f"epsilon {row['epsilon']:g}" if row["epsilon"] else "no noise")
        own = figure(row["accuracy"], row["standard_error"], 1)
        cells.append([setting, f"{row['printed']:.2f}", "not run", own, signed(difference)])
    heading = ["method", "printed", "ours, their setting", "ours, our setting", "difference (s.e.)"]
    found = f"\n{agreement(differences)} printed figures agree within two standard errors.\n"
    return table(heading, cells) + found


def by_parties(results):
    """Returns the rows with an accuracy of Fig. 2, by way, number of parties and epsilon."""
    rows = results.rows(*(f"cape-parties-{count}" for count in PARTIES))
    rows += results.rows(*(f"cape-{way}-4" for way in FEDERATED))
    return {(row["way"], row["parties"], row["epsilon"]): row for row in rows if row["accuracy"] is not None}


def parties(results):
    """Fig. 2: accuracy by number of parties and budget, at four records in a mix."""
    rows = by_parties(results)
    cells = []
    for _, epsilon in BUDGETS:
        for count in sorted({count for _, count, _ in rows}):
            found = [accuracy(rows.get((way, count, epsilon))) for way in FEDERATED]
            budget = "none" if epsilon is None else f"{epsilon:g}"
            printed = FIGURE_2[epsilon] if count != 10 else TEN_PARTIES.get(epsilon, FIGURE_2[epsilon])
            cells.append([str(count), budget, *found, f"{printed:.2f}"])
    return table(["parties", "epsilon", *(f"`{way}`" for way in FEDERATED), "CAPE in print"], cells)


def compared(results):
    """Returns the rows with a printed figure of Table 1, and their differences from it in standard errors."""
    rows = [row for row in measured(results).values() if row["printed"] is not None]
    rows.sort(key=lambda row: (row["way"], row["mix"], -(row["epsilon"] or math.inf)))
    return [(row, deviations(row["accuracy"], row["standard_error"], row["printed"], UNIT)) for row in rows]


def counted(results):
    """Yields (what, differences) for Table 1, by budget."""
    for words, epsilon in BUDGETS:
        yield f"Table 1, {words}", [off for row, off in compared(results) if row["epsilon"] == epsilon]
    others = [row for row in by_parties(results).values() if row["parties"] != 10 and row["printed"] is not None]
    differences = [deviations(row["accuracy"], row["standard_error"], row["printed"], UNIT) for row in others]
    yield "Fig. 2, other numbers of parties, no noise", differences


class Accounting:
    """DP-CDA's price with noised labels at the paper's sizes, in decimals with 100 digits."""

    def __init__(self, mix, noise):
        decimal.getcontext().prec = 100
        self.rate = decimal.Decimal(mix * CLASSES) / RECORDS
        # e(a) = a * unit.
        self.unit = 3 / (decimal.Decimal(mix) * decimal.Decimal(noise)) ** 2
        self.moments = {}

    def moment(self, n):
        """B(n) with its printed sign."""
        if n not in self.moments:
            terms = ((-1) ** i * math.comb(n, i) * ((i - 1) * i * self.unit).exp() for i in range(n + 1))
            self.moments[n] = sum(terms)
        return self.moments[n]

    def epsilon(self, kind):
        costs = []
        for order in range(2 if kind == "ours" else 3, 33):
            step = getattr(self, kind)(order).ln() / (order - 1)
            costs.append(RECORDS * step - decimal.Decimal(DELTA).ln() / (order - 1))
        return min(costs)

    def sampled(self, order, second, of):
        total = 1 + self.rate**2 * math.comb(order, 2) * second
        return total + sum(self.rate**j * math.comb(order, j) * of(j) for j in range(3, order + 1))

    def second(self):
        return min(4 * ((2 * self.unit).exp() - 1), 2 * (2 * self.unit).exp())

    def printed(self, order):
        """Products that are negative count as 0."""
        of = lambda j: 4 * max(self.moment(j // 2 * 2) * self.moment(-(-j // 2)), decimal.Decimal(0)).sqrt()
        return self.sampled(order, self.second(), of)

    def corrected(self, order):
        return self.sampled(order, self.second(), lambda j: 4 * self.root(j))

    def root(self, j):
        return (self.moment(j // 2 * 2) * self.moment(-(-j // 2) * 2)).sqrt()

    def ours(self, order):
        of = lambda j: min(self.root(j), ((j - 1) * j * self.unit).exp())
        total = self.sampled(order, 2 * self.moment(2), of)
        return min(total, 1 - self.rate + self.rate * ((order - 1) * order * self.unit).exp())


def least_noise(mix, kind):
    low, high = 1e-3, 4.0
    for _ in range(16):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if Accounting(mix, middle).epsilon(kind) <= EPSILON else (middle, high)
    return high


def decoded(deviation):
    """Returns the probability that the largest entry of a one-hot label with this noise is the right one."""
    step = 0.01
    normal = lambda z: 0.5 * math.erfc(-z / math.sqrt(2))
    density = lambda z: math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    nodes = (step * node for node in range(-1000, 1000))
    return sum(step * density(z) * normal(z + 1 / deviation) ** (CLASSES - 1) for z in nodes)


def noise(_results):
    """The noise that each accounting asks for, and what the printed one does to labels."""
    cells = []
    for mix in (1, 2, 4, 32, 128, 256, 512):
        found = [least_noise(mix, kind) for kind in ("printed", "corrected", "ours")]
        cells.append([str(mix), *(f"{tau:.3f}" for tau in found), f"{100 * decoded(found[0]):.0f}"])
    return table(["l", "as printed", "with B(2⌈j/2⌉)", "ours", "right labels, as printed, %"], cells)

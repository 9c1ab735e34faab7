"""Tables and plots of docs/research/gan.md."""

import math

from .svg import lines
from .text import agreement, deviations, figure, signed, table

RULES = ["ns", "qli", "dli", "qs"]

# Saleem and Fan, Table II (MNIST, natural split): inception score and Frechet distance.
TABLE_2 = {"real": (9.9, None), "central": (9.2, 12.2), "local": (5.5, 40.8), "federated": (8.4, 16.21)}

# Table III (MNIST): white box and Monte Carlo in percent, total variation.
TABLE_3 = {
    ("central", "ns"): (48.1, 77.1, 0.438),
    ("local", "ns"): (11.5, 68.8, 0.37),
    ("local", "qli"): (25.1, 72.1, 0.45),
    ("local", "dli"): (17.5, 69.3, 0.41),
    ("local", "qs"): (18.25, 70.5, 0.44),
    ("federated", "ns"): (21.5, 72.8, 0.44),
    ("federated", "qli"): (20.0, 71.1, 0.41),
    ("federated", "dli"): (20.5, 68.1, 0.40),
    ("federated", "qs"): (21.12, 72.2, 0.43),
}


def quality(name):
    return lambda row: row[name]


def real(name):
    return lambda row: row["reference"]["quality"][name]


def attacked(name, scale=1.0):
    def value(row):
        return row["attacks"] and scale * row["attacks"][name]["found"]

    return value


ATTACKS = [
    ("WB, %", attacked("white_box", 100.0)),
    ("MC, %", attacked("monte_carlo", 100.0)),
    ("TVD", attacked("total_variation")),
]


def select(rows, **wanted):
    """Returns the rows with these values."""
    return [row for row in rows if all(row.get(key) == value for key, value in wanted.items())]


def mean(rows, value):
    """Returns the mean over seeds and its standard error; None for no rows, or for an error of one row."""
    found = [value(row) for row in rows if value(row) is not None]
    if not found:
        return None, None
    middle = sum(found) / len(found)
    if len(found) < 2:
        return middle, None
    variance = sum((one - middle) ** 2 for one in found) / (len(found) - 1)
    return middle, math.sqrt(variance / len(found))


def shown(rows, value, digits=2):
    return figure(*mean(rows, value), digits)


def points(rows, x, value):
    """Returns (x, mean, standard error) for each x of the rows."""
    xs = sorted({row[x] for row in rows})
    return [(at, *mean(select(rows, **{x: at}), value)) for at in xs]


def printed(results):
    """Returns the printed figures next to ours, and a sentence with the number of those that agree."""
    theirs, ours = results["gan-published"]["rows"], results["gan-longer"]["rows"]
    lines_of, differences = [], []

    def add(name, printed_figure, value, digits, **wanted):
        at_theirs, at_ours = select(theirs, **wanted), select(ours, **wanted)
        found, error = mean(at_theirs, value)
        difference = deviations(found, error, printed_figure)
        differences.append(difference)
        lines_of.append(
            [
                name,
                f"{printed_figure:g}",
                figure(found, error, digits),
                shown(at_ours, value, digits),
                signed(difference),
            ]
        )

    for method, (inception, frechet) in TABLE_2.items():
        of = {} if method == "real" else {"method": method, "rule": "ns"}
        kind = real if method == "real" else quality
        add(f"IS, {method}", inception, kind("inception"), 2, **of)
        if frechet is not None:
            add(f"FID, {method}", frechet, kind("frechet"), 1, **of)
    for (method, rule), three in TABLE_3.items():
        for (name, value), figure_of in zip(ATTACKS, three):
            digits = 3 if name == "TVD" else 1
            add(f"{name}, {method} {rule}", figure_of, value, digits, method=method, rule=rule)
    heading = ["figure", "printed", "ours at their setting", "ours at our setting", "difference"]
    sentence = (
        f"{agreement(differences)} printed figures with a known standard error agree within two standard errors of "
        "ours at their setting.\n"
    )
    return table(heading, lines_of) + "\n" + sentence


def proximal_table(results):
    """Returns FedAvg next to FedProx: paired differences by seed, with and without noise."""
    rows = results.rows("gan-prox-clear", "gan-prox-clear-05", "gan-prox-clear-5", "gan-prox-private")
    kinds = [
        ("no clip, no noise", "0.5", {"method": "federated", "mu": 0.0}, {"method": "federated", "mu": 0.5}),
        ("no clip, no noise", "5", {"method": "federated", "mu": 0.0}, {"method": "federated", "mu": 5.0}),
        ("epsilon 64.11", "0.5", {"method": "dp-fedavg"}, {"method": "dp-fedprox"}),
    ]
    cells = []
    for privacy, mu, average, proximal in kinds:
        for rule in RULES:
            one, two = select(rows, rule=rule, **average), select(rows, rule=rule, **proximal)
            cells.append([privacy, mu, rule])
            for name in ("inception", "frechet"):
                digits = 2 if name == "inception" else 0
                paired = list(zip(sorted(one, key=seed), sorted(two, key=seed)))
                apart = mean(paired, lambda pair, name=name: pair[1][name] - pair[0][name])
                cells[-1] += [
                    shown(one, quality(name), digits),
                    shown(two, quality(name), digits),
                    figure(*apart, digits),
                ]
    heading = ["privacy", "mu", "rule", "IS, Avg", "IS, Prox", "Prox - Avg", "FID, Avg", "FID, Prox", "Prox - Avg"]
    return table(heading, cells)


def seed(row):
    return row["seed"]

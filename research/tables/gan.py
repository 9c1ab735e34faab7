"""Tables and plots of docs/research/gan.md."""

import math

from .svg import lines
from .text import agreement, deviations, figure, signed, table

RULES = ["ns", "qli", "dli", "qs"]

# Saleem and Fan, Table II (MNIST, natural split): inception score and Frechet distance.
TABLE_2 = {"real": (9.9, None), "central": (9.2, 12.2), "local": (5.5, 40.8), "federated": (8.4, 16.21)}

# Table III (MNIST): white box and Monte Carlo in percent, total variation. `central` has no split.
TABLE_3 = {
    ("central", None): (48.1, 77.1, 0.438),
    ("local", "ns"): (11.5, 68.8, 0.37),
    ("local", "qli"): (25.1, 72.1, 0.45),
    ("local", "dli"): (17.5, 69.3, 0.41),
    ("local", "qs"): (18.25, 70.5, 0.44),
    ("federated", "ns"): (21.5, 72.8, 0.44),
    ("federated", "qli"): (20.0, 71.1, 0.41),
    ("federated", "dli"): (20.5, 68.1, 0.40),
    ("federated", "qs"): (21.12, 72.2, 0.43),
}


def measured(name):
    return lambda row: row[name]


def real(name):
    return lambda row: row["reference"]["quality"][name]


def attacked(name, scale=1.0):
    def value(row):
        return row["attacks"] and scale * row["attacks"][name]["found"]

    return value


MEASURES = [
    ("inception", "inception score"),
    ("frechet", "Frechet distance"),
    ("entropy", "entropy"),
    ("diversity", "diversity"),
]

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
    theirs = results.rows("gan-published-central", "gan-published-local", "gan-published-federated")
    ours = results.rows("gan-longer-central", "gan-fedavg")
    lines_of, differences = [], []
    for name, printed_figure, value, digits, wanted in printed_figures():
        found, error = mean(select(theirs, **wanted), value)
        differences.append(off(name, found, error, printed_figure))
        our_own = shown(select(ours, **wanted), value, digits)
        lines_of.append([name, f"{printed_figure:g}", figure(found, error, digits), our_own, signed(differences[-1])])
    heading = ["figure", "printed", "ours at their setting", "ours at our setting", "difference"]
    sentence = f"{agreement(differences)} printed figures agree within two standard errors of ours at their setting.\n"
    return table(heading, lines_of) + "\n" + sentence


def printed_figures():
    """Yields each figure of Tables II and III: its name, itself, its value in our rows, digits, and the rows."""
    for method, (inception, frechet) in TABLE_2.items():
        of = {"method": "local" if method == "real" else method, "rule": "ns"}
        kind = real if method == "real" else measured
        yield f"IS, {method}", inception, kind("inception"), 2, of
        if frechet is not None:
            yield f"FID, {method}", frechet, kind("frechet"), 1, of
    for (method, rule), three in TABLE_3.items():
        for (name, value), figure_of in zip(ATTACKS, three):
            digits = 3 if name == "TVD" else 1
            words = f"{name}, {method} {rule}" if rule else f"{name}, {method}"
            yield words, figure_of, value, digits, {"method": method, "rule": rule or "ns"}


def off(name, found, error, printed_figure):
    """Returns the difference from a printed figure in standard errors. FIDs by different networks are not compared."""
    if name.startswith("FID"):
        return None
    return deviations(found, error, printed_figure, 0.01 if name.startswith("TVD") else 0.1)


def counted(results):
    """Yields (what, differences) for Tables II and III."""
    theirs = results.rows("gan-published-central", "gan-published-local", "gan-published-federated")
    differences = {}
    for name, printed_figure, value, _, wanted in printed_figures():
        found = mean(select(theirs, **wanted), value)
        kind = name.split(",")[0]
        what = f"Table II: {kind}" if kind in ("IS", "FID") else f"Table III: {kind}"
        differences.setdefault(what, []).append(off(name, *found, printed_figure))
    yield from differences.items()


# Networks without training: words and the stored result.
UNTRAINED = [
    ("ten generators, as `local` at their setting", "gan-untrained-local"),
    ("one generator, as `federated` at their setting", "gan-untrained-federated"),
    ("one generator, as FedAvg and FedProx below", "gan-untrained-small"),
]


def untrained(results):
    """Returns the measures of networks that take no step."""
    cells = []
    for words, name in UNTRAINED:
        for rule in RULES[:2]:
            rows = select(results.rows(name), rule=rule)
            cells.append([words, rule, *(shown(rows, measured(measure)) for measure, _ in MEASURES)])
    return table(["networks", "rule", *(label for _, label in MEASURES)], cells)


PROXIMAL = {
    "FedAvg, no noise": ("gan-fedavg",),
    "FedProx 0.5, no noise": ("gan-fedprox",),
    "FedProx 5, no noise": ("gan-fedprox-5",),
    "DP-FedAvg": ("gan-dp-fedavg",),
    "DP-FedProx 0.5": ("gan-dp-fedprox",),
}


def proximal(results):
    """Returns FedAvg next to FedProx by rule: paired differences over seeds, without and with noise."""
    rows = {name: results.rows(*stored) for name, stored in PROXIMAL.items()}
    pairs = [
        ("FedAvg, no noise", "FedProx 0.5, no noise"),
        ("FedAvg, no noise", "FedProx 5, no noise"),
        ("DP-FedAvg", "DP-FedProx 0.5"),
    ]
    cells = []
    for first, second in pairs:
        for rule in RULES:
            one, two = (sorted(select(rows[name], rule=rule), key=seed) for name in (first, second))
            cells.append([second, rule])
            for name, digits in (("inception", 2), ("frechet", 0)):
                apart = mean(list(zip(one, two)), lambda pair, name=name: pair[1][name] - pair[0][name])
                cells[-1] += [
                    shown(one, measured(name), digits),
                    shown(two, measured(name), digits),
                    figure(*apart, digits),
                    signed(deviations(*apart, 0.0, 0.0)),
                ]
    heading = ["method", "rule", "IS, mu 0", "IS", "change", "in errors", "FID, mu 0", "FID", "change", "in errors"]
    return table(heading, cells)


def proximal_plot(results):
    """Returns a plot of the same results, without noise, by mu."""
    rows = results.rows(*(name for key in list(PROXIMAL)[:3] for name in PROXIMAL[key]))
    panels = [
        (label, {rule: points(select(rows, rule=rule), "mu", measured(name)) for rule in RULES}, label)
        for name, label in MEASURES
    ]
    return results.plot("gan-mu", lines(panels, "mu", ""))


def seed(row):
    return row["seed"]


def stored_levels(results):
    """Returns the rows of each private method by its stored levels, as (method, level, rows)."""
    return [(method, level, results.rows(*names)) for method, level, names in LEVELS]


def privacy(results):
    """Returns a plot of the four measures by lambda and epsilon (Figs. 3 and 4 of the paper)."""
    panels = [panel for name, label in MEASURES for panel in levels(results, measured(name), label)]
    return results.plot("gan-privacy", lines(panels, "level", "", True))


def attacks(results):
    """Returns a plot of the attacks by lambda and epsilon (Fig. 7)."""
    panels = [panel for name, value in ATTACKS for panel in levels(results, value, name)]
    return results.plot("gan-attacks", lines(panels, "level", "", True, 3))


def tradeoff(results):
    """Returns a plot of the inception score by the white box's share (Fig. 8), with a point for each level."""
    panels = []
    for rule in RULES[:2]:
        series = {}
        for method, level, rows in stored_levels(results):
            for at in sorted({row[level] for row in rows}):
                of = select(rows, **{level: at, "rule": rule})
                found, _ = mean(of, attacked("white_box", 100.0))
                series.setdefault(method, []).append((found, *mean(of, measured("inception"))))
        panels.append((rule, series))
    return results.plot("gan-tradeoff", lines(panels, "white box, %", "inception score", is_scatter=True))


# Method, the setting that is varied, and the stored results.
LEVELS = [
    ("privgan", "lambda", ("gan-privgan-0.1", "gan-privgan-1", "gan-privgan-10")),
    ("dpgan", "budget", ("gan-dpgan-1", "gan-dpgan-4.01", "gan-dpgan-100")),
    ("dp-fedprox", "budget", ("gan-dp-fedprox-16", "gan-dp-fedprox-64.11", "gan-dp-fedprox-1000")),
]


def levels(results, value, label):
    """Returns a panel for each private method: a value by its privacy parameter."""
    for method, level, rows in stored_levels(results):
        name = level.replace("budget", "epsilon")
        series = {rule: points(select(rows, rule=rule), level, value) for rule in RULES[:2]}
        yield f"{method}, by {name}", series, label


# Numbers of parties of Fig. 5, and the methods of Figs. 5 and 6 with their stored results.
COUNTS = [5, 20, 40]
NAMES = {"privgan": "privGAN", "federated": "FedProx 0.5, no noise"}


def parties(results):
    """Returns a plot of the inception score by the number of parties that take part, of 40 (Fig. 5)."""
    names = [f"gan-parties-{method}-{count}" for method in PARTY_METHODS for count in COUNTS]
    rows = results.rows(*names)
    panels = [(rule, by_method(select(rows, rule=rule), "parties")) for rule in RULES[:2]]
    return results.plot("gan-parties", lines(panels, "parties", "inception score"))


PARTY_METHODS = ["privgan", "federated"]
ALPHA = ["gan-alpha-privgan", "gan-alpha-federated"]
GRAPHICAL = ["gan-staged-breast-cancer", "gan-staged-compas"]


def concentration(results):
    """Returns a plot of the inception score by the concentration parameter (Fig. 6)."""
    rows = results.rows(*ALPHA)
    rows = [row | {"kind": row["rule"].split(":")[0], "alpha": float(row["rule"].split(":")[1])} for row in rows]
    panels = [(kind, by_method(select(rows, kind=kind), "alpha")) for kind in ("dli", "qs")]
    return results.plot("gan-alpha", lines(panels, "alpha", "inception score", True))


def by_method(rows, x):
    """Returns a series of inception scores for each method."""
    methods = dict.fromkeys(row["method"] for row in rows)
    return {NAMES[method]: points(select(rows, method=method), x, measured("inception")) for method in methods}


def graphical(results):
    """Returns the attacks on models of staged."""
    cells = []
    for row in results.rows(*GRAPHICAL):
        epsilon = "none" if row["epsilon"] is None else f"{row['epsilon']:g}"
        cells.append([row["dataset"], epsilon])
        for name in ("white_box", "total_variation", "likelihood", "monte_carlo"):
            found = row[name]
            digits = 2 if name == "monte_carlo" else 3
            cells[-1].append(f"{figure(found['mean'], found['standard_error'], digits)} / {found['chance']:.{digits}f}")
    return table(["table", "epsilon", "white box", "total variation", "likelihood", "Monte Carlo"], cells)

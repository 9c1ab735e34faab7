"""Tables and plots of docs/research/flaim.md. Printed figures are those of FLAIM (Maddock, Cormode and Maple 2024)."""

import statistics

from .svg import lines
from .text import agreement, deviations, figure, signed, table

METHODS = ["naive", "aug-oracle", "aug-private", "dist-aim", "aim"]
TABLES = ["adult", "magic", "census", "credit"]

# Last digit of the printed errors and NLLs.
UNIT = 0.01

# Table 2: error and NLL at epsilon 1.
TWO = {
    "adult": [(0.80, 29.28), (0.62, 23.91), (0.43, 21.74), (0.42, 21.41), (0.20, 19.3)],
    "magic": [(1.64, 2587.5), (1.18, 62.84), (1.07, 28.9), (1.08, 35.04), (0.85, 23.7)],
    "census": [(0.72, 322.29), (0.61, 44.5), (0.48, 41.87), (0.54, 55.19), (0.28, 34.26)],
    "credit": [(0.42, 20.22), (0.21, 16.84), (0.14, 16.33), (0.18, 16.9), (0.07, 15.62)],
}

# Table 1: NLL at epsilon 5.
ONE = {
    "adult": {"naive-bayes": 25.33, "random": 83.9, "naive": 29.4, "aug-private": 20.87, "aim": 19.2},
    "credit": {"naive-bayes": 18.02, "random": 47.7, "naive": 18.0, "aug-private": 16.2, "aim": 15.57},
}

# Table 7: traffic of DistAIM as a multiple of that of AugFLAIM (Private), by rounds T.
SEVEN = {
    "adult": {4: 3990, 32: 1223, 96: 410},
    "magic": {4: 2467, 32: 746, 96: 267},
    "census": {4: 832, 32: 221, 96: 77},
    "credit": {4: 2363, 32: 714, 96: 220},
}

# Table 3, each method at its best T from 1 to 200: DistAIM's T by that of AugFLAIM (Private), the ratio of traffic, and by
# how many percent DistAIM's error is lower.
THREE = {"adult": (2.0, 1300, 58), "magic": (3.2, 1643, 20), "census": (1.5, 64, 79), "credit": (1.0, 167, 45)}

# Table 6: mean ranks over tables and runs, by error and by NLL, at each epsilon.
SIX = {
    "naive": {1: (4.65, 4.75), 2: (4.875, 4.9), 3: (4.975, 4.95), 5: (5.0, 5.0)},
    "aug-oracle": {1: (3.6, 3.3), 2: (3.85, 3.525), 3: (3.9, 3.775), 5: (3.925, 3.6)},
    "aug-private": {1: (3.75, 3.45), 2: (3.25, 3.15), 3: (3.125, 3.125), 5: (3.05, 3.25)},
    "dist-aim": {1: (2.0, 2.5), 2: (2.025, 2.425), 3: (2.0, 2.15), 5: (2.025, 2.15)},
    "aim": {1: (1.0, 1.0), 2: (1.0, 1.0), 3: (1.0, 1.0), 5: (1.0, 1.0)},
}

ABLATION = ["naive", "aug-oracle", "aug-oracle-combined", "aug-proxy", "aug-private"]
PLOTTED = ["naive", "aug-private", "dist-aim"]
CURVES = [*PLOTTED, "aim"]
OWN = ["naive-bayes", "random", "staged", "staged-h1"]
BASELINES = ["naive", "aug-private", "aim", "naive-bayes", "random"]
ROUNDS = (4, 10, 32, 96)

# Numbers of steps of each fit at which NLLs are stored, and the number at which they are compared with the printed ones.
FIT_STEPS = (5, 20, 100)
FEW = 5

# The methods of each setting, which research/bench/flaim.sh stores.
SETTINGS = {
    **{f"{data}-printed": METHODS for data in TABLES},
    **{f"{data}-ours": [*METHODS, *OWN] for data in TABLES},
    **{f"{data}-fit-{steps}": METHODS for data in TABLES for steps in FIT_STEPS},
    **{f"{data}-5-printed": BASELINES for data in ONE},
    **{f"{data}-5-fit-{FEW}": BASELINES for data in ONE},
    **{f"{data}-ablation-{rounds}": ABLATION for data in ONE for rounds in (4, 10, 32)},
    **{f"{data}-rounds-{rounds}": PLOTTED for data in TABLES for rounds in (4, 32, 96)},
    **{f"{data}-epsilon-{epsilon}": CURVES for data in TABLES for epsilon in ("0.5", "2", "5")},
    **{f"{data}-participation-{p}": PLOTTED for data in TABLES for p in ("0.05", "0.3", "0.5")},
    **{f"{data}-skew-{beta}": PLOTTED for data in TABLES for beta in ("0.05", "0.1", "0.3", "0.8")},
    **{f"{data}-four-steps-{rounds}": ["naive", "aug-private"] for data in TABLES for rounds in (4, 10, 32)},
    **{f"{data}-anneal-{epsilon}": METHODS for data in TABLES for epsilon in (1, 2, 3, 5)},
    "adult-ours-fit-20": ["dist-aim", "naive", "aug-private", "naive-bayes", "random"],
    "adult-all-rounds": ["naive", "aug-oracle", "aug-private"],
    "share-0.7": ["aug-private"],
    "share-0.5": ["aug-private", "aim"],
    "ours-rounds-5": ["aug-private"],
    "ours-rounds-20": ["aug-private"],
    "adult-32-ours": ["aug-private", "aim"],
    **{f"synthfs-{skew}": CURVES for skew in (1, 2, 3, 5)},
}

TITLES = {"synthfs": "SynthFS"}
NAMES = {"dist-aim": "`dist-aim` (in the clear)"}


def name(method):
    return NAMES.get(method, f"`{method}`")


def by_method(results, setting):
    """Returns the row of each method of this setting."""
    found = {}
    for method in SETTINGS[setting]:
        (found[method],) = results.rows(f"flaim-{setting}-{method}")
    return found


def error_of(row):
    if row is None:
        return ""
    return figure(row["error"], row["error_standard_error"])


def nll_of(row):
    if row is None:
        return ""
    return figure(row["nll"], row["nll_standard_error"], 2 if row["nll"] < 100 else 0)


def compared(results, data):
    """Returns for each method the printed figures, the row of printed accounting, that with few steps of each fit, and the
    row of this project."""
    printed, few, ours = (by_method(results, f"{data}-{setting}") for setting in ("printed", f"fit-{FEW}", "ours"))
    return [(method, pair, printed[method], few[method], ours[method]) for method, pair in zip(METHODS, TWO[data])]


def off_nll(row, printed):
    """Returns the difference of an NLL in standard errors."""
    return deviations(row["nll"], row["nll_standard_error"], printed, UNIT)


def differences(results, data):
    """Returns the differences of errors and of NLLs from the printed ones, in standard errors."""
    pairs = [
        (deviations(row["error"], row["error_standard_error"], error, UNIT), off_nll(few, nll))
        for _, (error, nll), row, few, _ in compared(results, data)
    ]
    return [list(kind) for kind in zip(*pairs)]


def opening(results):
    """Adult, as the paper prints it and as this project runs it."""
    return comparison(results, "adult")


def magic(results):
    return comparison(results, "magic")


def census(results):
    return comparison(results, "census")


def credit(results):
    return comparison(results, "credit")


def comparison(results, data):
    heading = ["method", "error: paper", "their setting", "difference", "our setting"]
    heading += ["NLL: paper", f"their setting, {FEW} steps a fit", "difference", "our setting"]
    rows = []
    both = zip(compared(results, data), *differences(results, data))
    for (method, (error, nll), printed, few, ours), off, gap in both:
        rows.append([
            name(method),
            f"{error:.2f}", error_of(printed), signed(off), error_of(ours),
            f"{nll:.2f}", nll_of(few), signed(gap), nll_of(ours),
        ])
    seeds = sorted({row["seeds"] for _, _, *found in compared(results, data) for row in found})
    runs = " or ".join(map(str, seeds))
    return table(heading, rows) + f"\n{data.capitalize()}: {runs} runs of each method; standard errors in brackets.\n"


def fits(results):
    """NLLs and errors at different numbers of steps of each fit."""
    rows, between = [], {}
    for data in TABLES:
        settings = [by_method(results, f"{data}-fit-{steps}") for steps in FIT_STEPS]
        settings.append(by_method(results, f"{data}-printed"))
        for method, (error, nll) in zip(METHODS, TWO[data]):
            found = [setting[method] for setting in settings]
            nlls = [row["nll"] for row in found]
            between.setdefault(data, []).append(min(nlls) <= nll <= max(nlls))
            rows.append([data, name(method), f"{nll:.2f}", *map(nll_of, found), f"{error:.2f}", error_of(found[0]), error_of(found[-1])])
    steps = [f"{steps} steps" for steps in FIT_STEPS]
    heading = ["table", "method", "NLL: paper", *steps, "to the end", "error: paper", steps[0], "to the end"]
    counts = ", ".join(f"{data} {sum(those)} of {len(those)}" for data, those in between.items())
    return table(heading, rows) + f"\nPrinted NLLs between the least and the largest of ours: {counts}.\n"


def counted(results):
    """Returns (what, differences) for each table of the paper and each measure."""
    for data in TABLES:
        errors, nlls = differences(results, data)
        yield f"table 2, {data}: errors", errors
        yield f"table 2, {data}: NLLs", nlls
    for data in ONE:
        yield f"table 1, {data}: NLLs", [off for *_, off in at_five(results, data)]
    yield "table 5: heterogeneity", [off for _, off in heterogeneities(results)]
    yield "table 7: ratios of traffic", [deviations(*ours, printed, 1) for *_, printed, ours in traffics(results)]
    three = [pair for _, _, pairs in bests(results) for pair in pairs]
    yield "table 3: traffic and errors", [deviations(*ours, printed, 1) for printed, ours in three]


def agreements(results):
    """How many figures of each table of the paper agree within two standard errors."""
    rows = [[what, agreement(differences)] for what, differences in counted(results)]
    return table(["printed figures", "agree"], rows)


def at_five(results, data):
    few = by_method(results, f"{data}-5-fit-{FEW}")
    found = []
    for method, row in by_method(results, f"{data}-5-printed").items():
        printed = ONE[data][method]
        found.append((method, printed, row, few[method], off_nll(few[method], printed)))
    return found


def baselines(results):
    """Table 1."""
    rows = []
    for data in ONE:
        for method, printed, row, few, off in at_five(results, data):
            rows.append([data, name(method), f"{printed:.2f}", nll_of(few), signed(off), nll_of(row), error_of(row)])
    heading = ["table", "method", "NLL: paper", f"their setting, {FEW} steps a fit", "difference", "to the end"]
    return table([*heading, "error, to the end"], rows)


def noise(results):
    """Adult: what the caps of rounds and the accounting change."""
    settings = [
        ("printed accounting, R = T = 10", by_method(results, "adult-printed")),
        ("corrected, R = T = 10", by_method(results, "adult-all-rounds")),
        ("corrected, R = 3", by_method(results, "adult-ours")),
    ]
    methods = ["naive", "aug-oracle", "aug-private"]
    rows = [["printed in the paper", *(f"{TWO['adult'][METHODS.index(method)][0]:.2f}" for method in methods)]]
    rows += [[words, *(error_of(found.get(method)) for method in methods)] for words, found in settings]
    return table(["Adult, error", *map(name, methods)], rows)


def own(results):
    """All tables by the corrected accounting, with this project's mechanism."""
    found = {data: by_method(results, f"{data}-ours") for data in TABLES}
    heading = ["method"]
    for data, rows in found.items():
        seeds = " or ".join(sorted({str(row["seeds"]) for row in rows.values()}))
        heading += [f"{data} ({seeds} runs): error", "NLL"]
    lines_of = []
    for method in ["naive", "random", "aug-oracle", "aug-private", "naive-bayes", "dist-aim", "aim", "staged", "staged-h1"]:
        cells = [cell for rows in found.values() for cell in (error_of(rows.get(method)), nll_of(rows.get(method)))]
        if any(cells):
            lines_of.append([name(method), *cells])
    return table(heading, lines_of)


# The flag that differs, and the name of the stored setting.
VARIED = [
    ("none (r = .9, T = 10)", "adult-ours"),
    ("`--measure-share 0.7`", "share-0.7"),
    ("`--measure-share 0.5`", "share-0.5"),
    ("`--fit-steps 20`", "adult-ours-fit-20"),
    ("`--rounds 5`", "ours-rounds-5"),
    ("`--rounds 20`", "ours-rounds-20"),
    ("table `adult-32`", "adult-32-ours"),
]


def varied(results):
    """Adult by the corrected accounting: share for measurements, rounds and bins."""
    rows = [["paper", "0.43", "21.74", "0.20", "19.30"]]
    for words, setting in VARIED:
        found = by_method(results, setting)
        cells = [cell(found.get(method)) for method in ("aug-private", "aim") for cell in (error_of, nll_of)]
        rows.append([words, *cells])
    return table(["change", "`aug-private`: error", "NLL", "`aim`: error", "NLL"], rows)


def heterogeneities(results):
    """Returns the rows of the stored heterogeneity with their differences from the printed ones."""
    rows = results["flaim-heterogeneity"]["rows"]
    return [(row, deviations(row["heterogeneity"], row["standard_error"], row["printed"], 0.001)) for row in rows]


def heterogeneity(results):
    """Table 5."""
    rows = []
    for row, off in heterogeneities(results):
        ours = figure(row["heterogeneity"], row["standard_error"])
        rows.append([row["table"], f"`{row['rule']}`", figure(row["printed"]), ours, signed(off)])
    return table(["table", "rule", "paper", "ours", "difference"], rows)


def distaim(results):
    """What changes the error of DistAIM on Adult."""
    both = [("printed rules", "adult-printed"), ("corrected rules", "adult-ours")]
    rows = [["paper", "0.42", "", "21.41", ""]]
    for words, setting in both:
        row = by_method(results, setting)["dist-aim"]
        off = deviations(row["error"], row["error_standard_error"], 0.42, UNIT)
        errors = [run["error"] for run in row["trials"]]
        rows.append([words, error_of(row), f"{min(errors):.2f} to {max(errors):.2f}", nll_of(row), signed(off)])
    heading = ["`dist-aim` (in the clear), Adult", "error", "errors of the runs", "NLL", "difference of errors"]
    return table(heading, rows)


def ablation(results):
    """Figure 2, a and b."""
    meaning = ["no penalty", "tau", "tau, filter and combine", "proxy of tau", "proxy, filter and combine"]
    settings = [(data, rounds) for data in ONE for rounds in (4, 10, 32)]
    found = [by_method(results, f"{data}-ablation-{rounds}") for data, rounds in settings]
    rows = [
        [name(method), words, *(error_of(setting[method]) for setting in found)]
        for method, words in zip(ABLATION, meaning)
    ]
    return table(["method", "scores", *(f"{data}, T = {rounds}" for data, rounds in settings)], rows)


def annealing(results):
    """Table 6: the mean of a method's ranks among the runs with the same table and seed."""
    rows = []
    for method in METHODS:
        cells = []
        for epsilon in (1, 2, 3, 5):
            means = []
            for kind in ("error", "nll"):
                of_runs = []
                for data in TABLES:
                    trials = {other: row["trials"] for other, row in by_method(results, f"{data}-anneal-{epsilon}").items()}
                    for run in range(len(trials[method])):
                        of_runs.append(ranks({other: runs[run][kind] for other, runs in trials.items()})[method])
                means.append(sum(of_runs) / len(of_runs))
            cells += ["{:.3f} / {:.3f}".format(*SIX[method][epsilon]), "{:.2f} / {:.2f}".format(*means)]
        rows.append([name(method), *cells])
    heading = [words for epsilon in (1, 2, 3, 5) for words in (f"epsilon {epsilon}: paper", "ours")]
    return table(["method", *heading], rows)


def annealed_rounds(results):
    """Errors at epsilon 1 with annealing, next to those at T = 10."""
    heading, rows = ["method"], []
    for data in TABLES:
        heading += [f"{data}: annealed", "rounds", "T = 10"]
    for method in METHODS:
        cells = []
        for data in TABLES:
            row = by_method(results, f"{data}-anneal-1")[method]
            rounds = [run["rounds"] for run in row["trials"]]
            fixed = by_method(results, f"{data}-printed")[method]
            cells += [error_of(row), f"{min(rounds)} to {max(rounds)}", error_of(fixed)]
        rows.append([name(method), *cells])
    return table(heading, rows)


def ranks(values):
    """Returns the rank of each method, 1 for the least value. Equal values share the mean of their ranks."""
    order = sorted(values.values())
    return {method: order.index(value) + (order.count(value) + 1) / 2 for method, value in values.items()}


def of_seeds(one, other, of):
    """Returns mean and standard error of `of`, over the runs of two methods with the same seeds."""
    values = [of(*pair) for pair in zip(one["trials"], other["trials"])]
    return statistics.mean(values), statistics.stdev(values) / len(values) ** 0.5


def ratio_of_traffic(pooled, private):
    return pooled["traffic_mb"] / private["traffic_mb"]


def traffics(results):
    """Returns for each table and T the rows of both methods, the printed ratio, and ours with its standard error."""
    for data in TABLES:
        for rounds, printed in SEVEN[data].items():
            found = by_method(results, f"{data}-rounds-{rounds}")
            pooled, private = found["dist-aim"], found["aug-private"]
            yield data, rounds, pooled, private, printed, of_seeds(pooled, private, ratio_of_traffic)


def traffic(results):
    """Table 7."""
    rows = []
    for data, rounds, pooled, private, printed, (ratio, error) in traffics(results):
        rows.append([
            data, str(rounds), f"{pooled['traffic_mb']:.1f}", f"{private['traffic_mb']:.3f}", f"{pooled['traffic_mb'] / printed:.3f}",
            str(printed), figure(ratio, error, 0), signed(deviations(ratio, error, printed, 1)),
        ])
    heading = ["table", "T", "`dist-aim`: MB a party (counted, not sent)", "`aug-private`: MB a party"]
    return table([*heading, "by the paper's ratio", "ratio: paper", "ratio: ours", "difference"], rows)


def bests(results):
    """Returns for each table the best T of both methods, and pairs of a printed figure of table 3 and ours with its standard
    error: ratio of traffic, and by how many percent DistAIM's error is lower."""
    for data in TABLES:
        settings = {rounds: by_method(results, f"{data}-printed" if rounds == 10 else f"{data}-rounds-{rounds}") for rounds in ROUNDS}
        best = [min(ROUNDS, key=lambda rounds: settings[rounds][method]["error"]) for method in ("dist-aim", "aug-private")]
        pooled, private = settings[best[0]]["dist-aim"], settings[best[1]]["aug-private"]
        lower = of_seeds(pooled, private, lambda one, other: 100 * (1 - one["error"] / other["error"]))
        ours = [of_seeds(pooled, private, ratio_of_traffic), lower]
        yield data, best, list(zip(THREE[data][1:], ours))


def best_rounds(results):
    """Table 3, with the best of four T."""
    rows = []
    for data, (pooled, private), pairs in bests(results):
        cells = [data, f"{pooled} and {private}", f"{THREE[data][0]:g}", f"{pooled / private:g}"]
        for printed, (ours, error) in pairs:
            cells += [str(printed), figure(ours, error, 0), signed(deviations(ours, error, printed, 1))]
        rows.append(cells)
    heading = ["table", "best T: `dist-aim` and `aug-private`", "ratio of T: paper", "ours"]
    for words in ("ratio of traffic", "error lower, %"):
        heading += [f"{words}: paper", "ours", "difference"]
    return table(heading, rows)


def plotted(results, file, tables, x_label, settings, log_x=False):
    """Plots the error of each method over `settings`: pairs of x and the setting that is stored, without its table."""
    panels = []
    for data in tables:
        curves = {}
        for x, setting in settings:
            for method, row in by_method(results, f"{data}-{setting}").items():
                if method in CURVES:
                    curves.setdefault(method, []).append((x, row["error"], row["error_standard_error"]))
        panels.append((TITLES.get(data, data.capitalize()), dict(sorted(curves.items()))))
    return results.plot(file, lines(panels, x_label, "workload error", log_x, per_row=2))


def epsilon(results):
    """Figures 3a and 6."""
    settings = [(0.5, "epsilon-0.5"), (1, "printed"), (2, "epsilon-2"), (5, "epsilon-5")]
    return plotted(results, "flaim-epsilon", TABLES, "epsilon", settings, True)


def rounds(results):
    """Figures 3b and 7."""
    settings = [(4, "rounds-4"), (10, "printed"), (32, "rounds-32"), (96, "rounds-96")]
    return plotted(results, "flaim-rounds", TABLES, "rounds T", settings, True)


def participation(results):
    """Figures 3c and 8."""
    settings = [(0.05, "participation-0.05"), (0.1, "printed")]
    settings += [(p, f"participation-{p}") for p in (0.3, 0.5)]
    return plotted(results, "flaim-participation", TABLES, "participation p", settings)


def skew(results):
    """Figures 3d and 9."""
    settings = [(beta, f"skew-{beta}") for beta in (0.05, 0.1, 0.3, 0.8)]
    return plotted(results, "flaim-skew", TABLES, "beta", settings, True)


def features(results):
    """Figure 1."""
    settings = [(beta, f"{beta}") for beta in (1, 2, 3, 5)]
    return plotted(results, "flaim-features", ["synthfs"], "beta", settings)


def steps(results):
    """Figures 3e, 3f, 10 and 11."""
    panels = []
    for data in TABLES:
        for kind, label in (("error", "workload error"), ("auc", "AUC")):
            curves = {}
            for method in ("naive", "aug-private"):
                for count, setting in ((1, "rounds"), (4, "four-steps")):
                    for rounds in (4, 10, 32):
                        stored = f"{data}-printed" if (count, rounds) == (1, 10) else f"{data}-{setting}-{rounds}"
                        row = by_method(results, stored)[method]
                        error = row["error_standard_error"] if kind == "error" else None
                        curves.setdefault(f"{method}, s = {count}", []).append((rounds, row[kind], error))
            panels.append((data.capitalize(), curves, label))
    return results.plot("flaim-steps", lines(panels, "rounds T", "", True, per_row=4))


# The settings of each part of the paper: words, and what their names have after the table's name.
PARTS = [
    ("table 2", ["printed"]),
    ("table 2, few steps of each fit", ["fit"]),
    ("table 1", ["5-printed", "5-fit"]),
    ("figure 2", ["ablation"]),
    ("figures 3a and 6", ["epsilon"]),
    ("figures 3b and 7, tables 3 and 7", ["rounds"]),
    ("figures 3c and 8", ["participation"]),
    ("figures 3d and 9", ["skew"]),
    ("figures 3e, 3f and 10", ["four-steps"]),
    ("table 6", ["anneal"]),
    ("our setting", ["ours"]),
]


def costs(results):
    """Measured seconds of the stored runs."""
    rows = []
    for words, names in PARTS:
        cells = []
        for data in TABLES:
            heads = tuple(f"{data}-{name}" for name in names)
            stored = [f"flaim-{setting}-{method}" for setting, methods in SETTINGS.items() for method in methods if setting.startswith(heads)]
            cells.append(f"{sum(results[name]['seconds'] for name in stored) / 60:.1f}" if stored else "")
        rows.append([words, *cells])
    return table(["minutes", *TABLES], rows)

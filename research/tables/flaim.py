"""Tables and plots of docs/research/flaim.md. Printed figures are those of FLAIM (Maddock, Cormode and Maple 2024)."""

from .svg import lines
from .text import agreement, deviations, figure, signed, table

METHODS = ["naive", "aug-oracle", "aug-private", "dist-aim", "aim"]
TABLES = ["adult", "magic", "census", "credit"]

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

# Table 7: traffic of DistAIM as a multiple of that of AugFLAIM (Private), Adult.
SEVEN = {4: 3990, 32: 1223, 96: 410}

# Table 6, epsilon 1: mean ranks over seven tables, by error and by NLL.
SIX = {"naive": "4.65 / 4.75", "aug-oracle": "3.6 / 3.3", "aug-private": "3.75 / 3.45", "dist-aim": "2.0 / 2.5", "aim": "1.0 / 1.0"}

ABLATION = ["naive", "aug-oracle", "aug-oracle-combined", "aug-proxy", "aug-private"]
PLOTTED = ["naive", "aug-private", "dist-aim"]
CURVES = [*PLOTTED, "aim"]
OWN = ["naive-bayes", "random", "staged", "staged-h1"]
BASELINES = ["naive", "aug-private", "aim", "naive-bayes", "random"]

# The methods of each setting, which research/bench/flaim.sh stores.
SETTINGS = {
    **{f"{data}-printed": METHODS for data in TABLES},
    **{f"{data}-ours": [*METHODS, *OWN] for data in ("adult", "magic", "credit")},
    "census-ours": [*METHODS, "naive-bayes", "staged", "staged-h1"],
    "adult-5-printed": BASELINES,
    "credit-5-printed": BASELINES,
    "adult-all-rounds": ["naive", "aug-oracle", "aug-private"],
    **{f"ablation-{rounds}": ABLATION for rounds in (4, 10, 32)},
    "share-0.7": ["aug-private"],
    "share-0.5": ["aug-private", "aim"],
    "ours-rounds-5": ["aug-private"],
    "ours-rounds-20": ["aug-private"],
    "adult-32-ours": ["aug-private", "aim"],
    **{f"epsilon-{epsilon}": CURVES for epsilon in ("0.5", "2", "5")},
    **{f"participation-{p}": PLOTTED for p in ("0.05", "0.3", "0.5")},
    **{f"skew-{beta}": PLOTTED for beta in ("0.05", "0.1", "0.3", "0.8")},
    **{f"synthfs-{skew}": CURVES for skew in (1, 2, 3, 5)},
    **{f"rounds-{rounds}": PLOTTED for rounds in (4, 32, 96)},
    "anneal": METHODS,
}

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
    return figure(row["nll"], row["nll_standard_error"], 2)


def compared(results, data):
    """Returns for each method the printed figures, the row of printed accounting, and the row of this project."""
    printed, ours = by_method(results, f"{data}-printed"), by_method(results, f"{data}-ours")
    pairs = dict(zip(METHODS, TWO[data]))
    return [(method, pairs[method], row, ours.get(method)) for method, row in printed.items()]


def off_nll(row, printed):
    """Returns the difference of an NLL in standard errors."""
    return deviations(row["nll"], row["nll_standard_error"], printed)


def differences(results, data):
    """Returns the differences of errors and of NLLs from the printed ones, in standard errors."""
    pairs = []
    for _, (error, nll), row, _ in compared(results, data):
        pairs.append((
            deviations(row["error"], row["error_standard_error"], error),
            off_nll(row, nll),
        ))
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
    heading += ["NLL: paper", "their setting", "difference", "our setting"]
    rows = []
    for (method, (error, nll), printed, ours), off, gap in zip(compared(results, data), *differences(results, data)):
        rows.append([
            name(method),
            f"{error:.2f}", error_of(printed), signed(off), error_of(ours),
            f"{nll:.2f}", nll_of(printed), signed(gap), nll_of(ours),
        ])
    seeds = sorted({row["seeds"] for _, _, *both in compared(results, data) for row in both if row})
    runs = " or ".join(map(str, seeds))
    return table(heading, rows) + f"\n{data.capitalize()}: {runs} runs of each method; standard errors in brackets.\n"


def counted(results):
    """Returns (what, differences) for each table of the paper and each measure."""
    for data in TABLES:
        errors, nlls = differences(results, data)
        yield f"table 2, {data}: errors", errors
        yield f"table 2, {data}: NLLs", nlls
    for data in ONE:
        yield f"table 1, {data}: NLLs", [off for *_, off in at_five(results, data)]
    yield "table 5: heterogeneity", [off for _, off in heterogeneities(results)]


def agreements(results):
    """How many figures of each table of the paper agree within two standard errors."""
    rows = [[what, agreement(differences)] for what, differences in counted(results)]
    return table(["printed figures", "agree"], rows)


def at_five(results, data):
    found = []
    for method, row in by_method(results, f"{data}-5-printed").items():
        printed = ONE[data][method]
        found.append((method, printed, row, off_nll(row, printed)))
    return found


def baselines(results):
    """Table 1."""
    rows = []
    for data in ONE:
        for method, printed, row, off in at_five(results, data):
            rows.append([data, name(method), f"{printed:.2f}", nll_of(row), signed(off), error_of(row)])
    return table(["table", "method", "NLL: paper", "their setting", "difference", "error"], rows)


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
    return [(row, deviations(row["heterogeneity"], row["standard_error"], row["printed"])) for row in rows]


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
        off = deviations(row["error"], row["error_standard_error"], 0.42)
        errors = [run["error"] for run in row["trials"]]
        rows.append([words, error_of(row), f"{min(errors):.2f} to {max(errors):.2f}", nll_of(row), signed(off)])
    heading = ["`dist-aim` (in the clear), Adult", "error", "errors of the runs", "NLL", "difference of errors"]
    return table(heading, rows)


def ablation(results):
    """Figure 2a."""
    meaning = ["no penalty", "tau", "tau, filter and combine", "proxy of tau", "proxy, filter and combine"]
    found = {rounds: by_method(results, f"ablation-{rounds}") for rounds in (4, 10, 32)}
    rows = [
        [name(method), words, *(error_of(found[rounds].get(method)) for rounds in found)]
        for method, words in zip(ABLATION, meaning)
    ]
    return table(["method", "scores", *(f"T = {rounds}" for rounds in found)], rows)


def annealing(results):
    """Table 6, for Adult."""
    found = by_method(results, "anneal")
    ranked = {kind: ranks({method: row[kind] for method, row in found.items()}) for kind in ("error", "nll")}
    rows = []
    for method, row in found.items():
        rounds = [run["rounds"] for run in row["trials"]]
        rows.append([
            name(method), SIX[method], f"{ranked['error'][method]} / {ranked['nll'][method]}",
            error_of(row), nll_of(row), f"{min(rounds)} to {max(rounds)}",
        ])
    heading = ["method", "paper: mean ranks, seven tables", "ranks, Adult", "error", "NLL", "rounds"]
    return table(heading, rows)


def ranks(values):
    """Returns the rank of each method, 1 for the least value. Equal values share the mean of their ranks."""
    order = sorted(values.values())

    def rank(value):
        return order.index(value) + (order.count(value) + 1) / 2

    return {method: f"{rank(value):g}" for method, value in values.items()}


# Cells of the paper's workload of Adult and all its subsets, and the bytes that FLAIM's program counts for a cell of
# DistAIM. The program draws the triples by numpy.random.default_rng(123).choice(364, 64, replace=False).
WORKLOAD_CELLS = 2_870_490
SHARED_CELL_BYTES = 48


def traffic(results):
    """Tables 3 and 7, for Adult."""
    theirs = WORKLOAD_CELLS * SHARED_CELL_BYTES / 1e6
    rows = []
    for rounds, printed in SEVEN.items():
        found = by_method(results, f"rounds-{rounds}")
        private, pooled = found["aug-private"], found["dist-aim"]
        rows.append([
            str(rounds), f"{pooled['traffic_mb']:.1f}", f"{private['traffic_mb']:.3f}",
            f"{pooled['traffic_mb'] / private['traffic_mb']:.0f}", f"{theirs / private['traffic_mb']:.0f}", str(printed),
            f"{theirs / printed:.3f}", error_of(pooled), error_of(private),
        ])
    heading = ["T", "`dist-aim`: MB a party (counted, not sent)", "`aug-private`: MB a party", "ratio"]
    heading += ["ratio, the paper's workload", "ratio: paper", "`aug-private`: MB, by the paper's ratio"]
    return table(heading + ["error `dist-aim`", "error `aug-private`"], rows)


def plotted(results, file, title, x_label, settings, log_x=False):
    """Plots the error of each method over `settings`: pairs of x and the setting that is stored."""
    curves = {}
    for x, setting in settings:
        for method, row in by_method(results, setting).items():
            if method in CURVES:
                curves.setdefault(method, []).append((x, row["error"], row["error_standard_error"]))
    return results.plot(file, lines([(title, dict(sorted(curves.items())))], x_label, "workload error", log_x))


def epsilon(results):
    """Figure 3a."""
    settings = [(0.5, "epsilon-0.5"), (1, "adult-printed"), (2, "epsilon-2"), (5, "epsilon-5")]
    return plotted(results, "flaim-epsilon", "Adult, T = 10", "epsilon", settings, True)


def rounds(results):
    """Figure 3b."""
    settings = [(4, "rounds-4"), (10, "adult-printed"), (32, "rounds-32"), (96, "rounds-96")]
    return plotted(results, "flaim-rounds", "Adult, epsilon 1", "rounds T", settings, True)


def participation(results):
    """Figure 3c."""
    settings = [(0.05, "participation-0.05"), (0.1, "adult-printed")]
    settings += [(p, f"participation-{p}") for p in (0.3, 0.5)]
    return plotted(results, "flaim-participation", "Adult, epsilon 1", "participation p", settings)


def skew(results):
    """Figure 3d."""
    settings = [(beta, f"skew-{beta}") for beta in (0.05, 0.1, 0.3, 0.8)]
    return plotted(results, "flaim-skew", "Adult, epsilon 1, label skew", "beta", settings, True)


def features(results):
    """Figure 1."""
    settings = [(beta, f"synthfs-{beta}") for beta in (1, 2, 3, 5)]
    return plotted(results, "flaim-features", "SynthFS, epsilon 1", "beta", settings)

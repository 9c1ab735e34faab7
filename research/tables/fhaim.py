"""Tables of docs/research/fhaim.md."""

import math
import textwrap

from .text import agreement, deviations, figure, signed, table

DATASETS = {"breast-cancer": "cancer", "compas": "compas", "diabetes": "diabetes"}
METHODS = ["AIM-L1", "FHAIM-L1", "AIM-L2", "FHAIM-L2"]
MEASURES = {"error": "error", "accuracy": "accuracy", "f1": "F1"}
BUDGETS = {"exact": "without noise", "1": "epsilon 1"}
# Printed figures of FHAIM-L2 without noise. Its rows are those of AIM-L2, which have the printed figures of AIM-L2.
PRINTED_EXACT_L2 = {
    "breast-cancer": {"error": 0.058, "accuracy": 0.684, "f1": 0.321},
    "compas": {"error": 0.014, "accuracy": 0.625, "f1": 0.610},
    "diabetes": {"error": 0.298, "accuracy": 0.701, "f1": 0.583},
}
# Attributes of each table of the public program.
ATTRIBUTES = {"cancer": 10, "compas": 9, "diabetes": 9}
RUNS = 10
# Last digit of the printed errors, accuracies and F1 scores.
UNIT = 0.001
# Printed: seconds of each phase (L2 where the paper has both), and peak MB of L1 and L2.
PRINTED_SECONDS = {
    "breast-cancer": {"one_ways": 31, "pairs": 681, "select": 140, "measure": 1.18},
    "compas": {"one_ways": 25, "pairs": 292, "select": 70, "measure": 0.70},
    "diabetes": {"one_ways": 32, "pairs": 625, "select": 112, "measure": 2.25},
}
PRINTED_MEMORY = {"breast-cancer": (18.95, 26.28), "compas": (11.12, 31.72), "diabetes": (13.72, 26.57)}


def found(results, name):
    """Returns the rows of a stored `bench paper` by table, method and budget."""
    return {(row["dataset"], row["mechanism"], row["epsilon"]): row for row in results[name]["rows"]}


def at_their_setting(results):
    """Returns the rows at their setting. The public program has another table of COMPAS, with nine columns."""
    rows = found(results, "fhaim-theirs")
    nine = found(results, "fhaim-compas-9")
    return {key: row for key, row in rows.items() if key[0] != "compas"} | {("compas", *key[1:]): row for key, row in nine.items()}


def value(row, measure):
    """Returns mean, standard error and printed figure. The error is half of the L1 distance."""
    given = row[measure] if row else None
    if given is None:
        return None, None, None
    half = 0.5 if measure == "error" else 1.0
    error = given["standard_error"]
    return half * given["mean"], None if error is None else half * error, given["printed"]


def of_a_run(mean, error, printed):
    return deviations(mean, None if error is None else error * math.sqrt(RUNS), printed, UNIT)


class Cell:
    """A printed figure next to ours."""

    def __init__(self, theirs, ours, dataset, method, budget, measure):
        # In the paper FHAIM-L2 pays for the winner, as AIM-L2 does. Encryption changes no choice, so both are one row.
        same = "AIM-L2" if method == "FHAIM-L2" else method
        row = theirs.get((dataset, same, budget))
        self.mean, self.error, _ = value(row, measure)
        self.our_mean, self.our_error, own = value(ours.get((dataset, same if budget == "exact" else method, budget)), measure)
        self.printed = PRINTED_EXACT_L2[dataset][measure] if (method, budget) == ("FHAIM-L2", "exact") else own
        self.difference = deviations(self.mean, self.error, self.printed, UNIT)

    def difference_of_a_run(self):
        """Returns the difference in standard deviations of a single run."""
        return of_a_run(self.mean, self.error, self.printed)

    def columns(self):
        return [
            f"{self.printed:.3f}",
            figure(self.mean, self.error),
            figure(self.our_mean, self.our_error),
            signed(self.difference),
        ]


def cells(results, budget, measures):
    theirs, ours = at_their_setting(results), found(results, "fhaim-ours")
    for dataset, shown in DATASETS.items():
        for method in METHODS:
            for measure in measures:
                yield (shown, method, measure), Cell(theirs, ours, dataset, method, budget, measure)


HEADING = ["table", "method", "paper", "their setting", "our setting", "difference, s.e."]


def errors(results):
    """The opening table: all printed errors."""
    rows = []
    for budget, shown in BUDGETS.items():
        for (dataset, method, _), cell in cells(results, budget, ["error"]):
            rows.append([shown, dataset, method, *cell.columns()])
    return table(["budget", *HEADING], rows)


def count(results):
    """The sentences that count agreements."""
    lines, everything, single = [], [], []
    for measure, name in MEASURES.items():
        found = [cell for budget in BUDGETS for _, cell in cells(results, budget, [measure])]
        differences = [cell.difference for cell in found]
        everything += differences
        single += [cell.difference_of_a_run() for cell in found]
        lines.append(f"{agreement(differences)} of the printed {'F1 scores' if name == 'F1' else plural(name)}")
    real = [real_records(results, dataset, measure) for dataset in DATASETS for measure in ["accuracy", "f1"]]
    everything += [off for *_, off in real]
    single += [of_a_run(*found) for *found, _ in real]
    text = (
        f"**{agreement(everything)} printed figures agree** with ours at their setting within two standard errors of our "
        f"mean: {', '.join(lines)}, and {agreement(everything[-6:])} of the figures of real records. Taken as figures of "
        f"single runs, {agreement(single)} lie within two of our deviations of a run."
    )
    return textwrap.fill(text, 100) + "\n"


def counted(results):
    """Yields (what, differences) for each measure and budget, and for real records."""
    for measure, name in MEASURES.items():
        for budget, words in BUDGETS.items():
            differences = [cell.difference for _, cell in cells(results, budget, [measure])]
            yield f"{'F1 scores' if name == 'F1' else plural(name)}, {words}", differences
    real = [real_records(results, dataset, measure)[3] for dataset in DATASETS for measure in ("accuracy", "f1")]
    yield "accuracies and F1 scores of real records", real


def real_records(results, dataset, measure):
    """Returns mean, standard error, printed figure and difference of the classifier trained on real records."""
    mean, error, _ = value(at_their_setting(results)[dataset, "real", ""], measure)
    printed = value(found(results, "fhaim-ours")[dataset, "real", ""], measure)[2]
    return mean, error, printed, deviations(mean, error, printed, UNIT)


def plural(name):
    return "accuracies" if name == "accuracy" else f"{name}s"


def classifiers(results):
    """Accuracy and F1 at both budgets, and of real records."""
    rows = []
    for dataset, shown in DATASETS.items():
        for measure in ["accuracy", "f1"]:
            mean, error, printed, by = real_records(results, dataset, measure)
            rows.append(["", shown, "real records", MEASURES[measure], f"{printed:.3f}", figure(mean, error), "", signed(by)])
    for budget, shown in BUDGETS.items():
        for (dataset, method, measure), cell in cells(results, budget, ["accuracy", "f1"]):
            rows.append([shown, dataset, method, MEASURES[measure], *cell.columns()])
    return table(["budget", *HEADING[:2], "measure", *HEADING[2:]], rows)


def own(results):
    """The default mechanism next to the paper's best."""
    rows = []
    ours = found(results, "fhaim-ours")
    for method in ["AIM-L1", "AIM-L2", "FHAIM-L2", "staged"]:
        columns = []
        for dataset in DATASETS:
            columns += [figure(*value(ours[dataset, method, "1"], m)[:2]) for m in MEASURES]
        rows.append([f"`{method}`" if method == "staged" else method, *columns])
    heading = [f"{dataset}: {name}" for dataset in DATASETS.values() for name in MEASURES.values()]
    return table(["method", *heading], rows)


BINS = [5, 8, 10, 16, 32]


def bins(results):
    """The search over bins of the diabetes table."""
    rows = []
    for number in BINS:
        stored = found(results, "fhaim-theirs" if number == 10 else f"fhaim-bins-{number}")
        columns = []
        for method, epsilon in [(m, e) for e in ["exact", "1"] for m in ["AIM-L1", "AIM-L2"]]:
            columns.append(figure(*value(stored["diabetes", method, epsilon], "error")[:2]))
        rows.append([str(number), *columns])
    printed = found(results, f"fhaim-bins-{BINS[0]}")
    shown = [printed["diabetes", m, e]["error"]["printed"] for e in ["exact", "1"] for m in ["AIM-L1", "AIM-L2"]]
    rows.append(["printed", *[f"{x:.3f}" for x in shown]])
    heading = [f"{m}, {b}" for b in ["without noise", "epsilon 1"] for m in ["AIM-L1", "AIM-L2"]]
    return table(["bins", *heading], rows)


def conventions(results):
    """Our errors over the printed ones, halved or not, at both settings."""
    settings = [
        ("without noise, ten rounds", "exact", "fhaim-theirs", "fhaim-compas-9"),
        ("epsilon 1, T = 16d, delta 1e-9", "1", "fhaim-theirs", "fhaim-compas-9"),
        ("epsilon 1, T = 4d, delta 1e-5", "1", "fhaim-ours", "fhaim-compas-9-ours"),
    ]
    rows = []
    for name, budget, tables, nine in settings:
        printed = {d: [Cell({}, found(results, "fhaim-ours"), d, m, budget, "error").printed for m in METHODS] for d in DATASETS}
        ratios = {}
        for dataset in DATASETS:
            stored = found(results, nine if dataset == "compas" else tables)
            key = "compas-9" if dataset == "compas" else dataset
            same = [stored[key, "AIM-L2" if m == "FHAIM-L2" else m, budget] for m in METHODS]
            ratios[dataset] = [value(row, "error")[0] / p for row, p in zip(same, printed[dataset])]
        for factor, shown in [(1, "halved"), (2, "not halved")]:
            columns = [f"{factor * min(r):.2f} to {factor * max(r):.2f}" for r in ratios.values()]
            rows.append([name, shown, *columns])
    return table(["setting", "error", "cancer", "compas, 9 columns", "diabetes"], rows)


# Means of accuracy and F1 over the six runs in the public notebook compas.ipynb, at epsilon 1.
NOTEBOOK = {
    "AIM-L1": (0.623, 0.603),
    "FHAIM-L1": (0.538, 0.066),
    "AIM-L2": (0.565, 0.313),
    "FHAIM-L2": (0.562, 0.373),
}


def notebook(results):
    """The classifier on COMPAS: printed, in the public notebook, and ours on its table."""
    rows = []
    for method, public in NOTEBOOK.items():
        cell = [Cell(at_their_setting(results), found(results, "fhaim-ours"), "compas", method, "1", m) for m in ["accuracy", "f1"]]
        columns = [f"{c.printed:.3f}" for c in cell] + [f"{x:.3f}" for x in public]
        rows.append([method, *columns, *[figure(c.mean, c.error) for c in cell]])
    heading = [f"{whose}: {what}" for whose in ["paper", "public notebook", "ours"] for what in ["accuracy", "F1"]]
    return table(["method", *heading], rows)


def compas(results):
    """The L2 score on compas at epsilon 1, on both tables."""
    sources = [
        ("7 columns (Calmon et al. 2017)", found(results, "fhaim-theirs"), "compas"),
        ("9 columns, as in the public program", found(results, "fhaim-compas-9"), "compas-9"),
    ]
    rows = []
    for name, stored, dataset in sources:
        columns = [figure(*value(stored[dataset, m, "1"], "error")[:2]) for m in METHODS]
        columns += [figure(*value(stored[dataset, "real", ""], m)[:2]) for m in ["accuracy", "f1"]]
        rows.append([name, *columns])
    stored = found(results, "fhaim-theirs")
    shown = [found(results, "fhaim-ours")["compas", m, "1"]["error"]["printed"] for m in METHODS]
    shown += [stored["compas", "real", ""][m]["printed"] for m in ["accuracy", "f1"]]
    rows.append(["printed", *[f"{x:.3f}" for x in shown]])
    return table(["table", *METHODS, "accuracy of real records", "F1"], rows)


def phases(results):
    """Seconds of the phases next to the printed ones, and memory."""
    rows, names = [], {"keys": "keys", "encryption": "encryption", "one_ways": "1-ways", "compute": "pairs and squares"}
    names |= {"select": "Select, a round", "measure": "Measure, a round"}
    stored = results["fhaim-phases"]["rows"]
    for phase, shown in names.items():
        columns = []
        for row in stored:
            printed = PRINTED_SECONDS[row["dataset"]].get("pairs" if phase == "compute" else phase)
            ours = row["phases"][phase]
            columns += ["" if printed is None else f"{printed:g}", f"{ours['processor_seconds']:.2f}"]
        rows.append([shown, *columns])
    heading = [f"{DATASETS[row['dataset']]}: {whose}" for row in stored for whose in ["paper, 16 cores", "ours, 1 thread"]]
    return table(["seconds", *heading], rows)


def memory(results):
    """Peak memory next to the printed one."""
    rows = []
    for row in results["fhaim-phases"]["rows"]:
        peaks = [row["phases"][phase]["peak_mb"] for phase in ["keys", "encryption", "compute", "measure"]]
        printed = [f"{x:.2f}" for x in PRINTED_MEMORY[row["dataset"]]]
        upload = f"{row['upload_bytes'] / 1e6:.1f}"
        rows.append([DATASETS[row["dataset"]], *printed, *[f"{peak:.0f}" for peak in peaks], upload])
    heading = ["paper: L1", "paper: L2", "ours: after keys", "encryption", "Compute", "all rounds", "upload"]
    return table(["MB", *heading], rows)


def encrypted(results):
    """Cost of the L1 score under exact encryption."""
    rows = []
    for row in results["fhaim-encrypted-l1"]["rows"]:
        known = row["modulus_bits"] is not None
        megabytes = lambda size: f"{size / 1e6:.1f}" if known else ""
        seconds = lambda time, digits: f"{time:.{digits}f}" if known else ""
        rows.append(
            [
                f"{row['ring']:,}",
                f"{row['plaintext_bits']} x {row['residues']}",
                f"{row['modulus_bits'] if known else 'more'} of {row['secure_bits']}",
                megabytes(row["ciphertext_bytes"]),
                megabytes(row["upload_bytes"]),
                seconds(row["product_seconds"], 2),
                seconds(row["polynomial_seconds"], 2),
                seconds(row["run_seconds_by_pair"], 0),
                seconds(row["run_seconds_packed"], 0),
            ]
        )
    heading = ["ring", "plaintext bits x residues", "modulus bits, of secure ones", "MB a ciphertext", "MB of all columns"]
    heading += ["s a product", "s a polynomial", "s a run, a ciphertext a pair", "s a run, packed"]
    return table(heading, rows)


MEASURED_SHARE = 0.9


def rho_of(epsilon, delta):
    """Returns the largest rho whose epsilon at delta is at most `epsilon` (CKS20, Corollary 13)."""

    def epsilon_of(rho):
        least, order = math.inf, 1.01
        while order < 2000:
            tail = math.log(1 / (order * delta)) + (order - 1) * math.log(1 - 1 / order)
            least = min(least, rho * order + tail / (order - 1))
            order *= 1.01
        return least

    low, high = 1e-6, 10.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if epsilon_of(middle) > epsilon else (middle, high)
    return low


def normal_tail(x):
    return 0.5 * math.erfc(x / math.sqrt(2))


def view_delta(epsilon, shift, scores, rho):
    """Returns the exact delta at `epsilon` of all noisy scores and measurements.

    The noise of each score is Gumbel, and the added record moves it up by `shift` times the noise's scale. With E =
    exp(-noise / scale), which is exponential, the privacy loss of a score is -shift + (e^shift - 1) E. The sum of
    `scores` of them is a gamma variable; measurements add a normal one of mean m and variance 2m."""
    measured = MEASURED_SHARE * rho
    deviation, growth = math.sqrt(2 * measured), math.exp(shift) - 1
    points, width = 800, 20 * math.sqrt(scores) + 30
    start = max(1e-9, scores - width / 2)
    step = (scores + width / 2 - start) / points
    total = 0.0
    for which, scale, mean in [(1, 1.0, measured), (-math.exp(epsilon), math.exp(-shift), -measured)]:
        for i in range(points):
            gamma = start + (i + 0.5) * step
            density = math.exp((scores - 1) * math.log(gamma) - gamma - math.lgamma(scores))
            loss = -scores * shift + growth * gamma * scale
            total += which * step * density * normal_tail((epsilon - loss - mean) / deviation)
    return total


def view_epsilon(attributes, rounds, delta):
    """Returns the epsilon at `delta` of a run that claims epsilon 1, if every pair's score moves by its sensitivity."""
    rho, pairs = rho_of(1.0, delta), attributes * (attributes - 1) // 2
    shift = math.sqrt(8 * (1 - MEASURED_SHARE) * rho / rounds) / 2
    low, high = 0.0, 30.0
    for _ in range(30):
        middle = (low + high) / 2
        above = view_delta(middle, shift, pairs * rounds, rho) > delta
        low, high = (middle, high) if above else (low, middle)
    return low


def view(results):
    """What a run that claims epsilon 1 reveals to the decryptor, and the price of the honest one."""
    ours, rows = found(results, "fhaim-ours"), []
    theirs = at_their_setting(results)
    for dataset, shown in DATASETS.items():
        d = ATTRIBUTES[shown]
        pairs = d * (d - 1) // 2
        paid = [figure(*value(stored[dataset, m, "1"], "error")[:2]) for stored in [theirs, ours] for m in ["AIM-L2", "FHAIM-L2"]]
        printed = ours[dataset, "FHAIM-L2", "1"]["error"]["printed"]
        rows.append(
            [
                shown,
                str(pairs),
                f"{view_epsilon(d, 16 * d, 1e-9):.2f}",
                f"{view_epsilon(d, 4 * d, 1e-5):.2f}",
                f"{math.sqrt(pairs):.1f}",
                f"{printed:.3f}",
                *paid,
            ]
        )
    heading = ["table", "pairs", "epsilon at least, T = 16d, delta 1e-9", "T = 4d, 1e-5", "noise of scores times"]
    heading += ["printed error", "winner paid, T = 16d", "all paid", "winner paid, T = 4d", "all paid"]
    return table(heading, rows)

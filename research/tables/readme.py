"""The tables of docs/research/README.md."""

from . import cape, fhaim, flaim, gan
from .text import agreeing, figure, table

NOBODY = "nobody; more than two thirds of a group add honest noise"

# Systems on Adult: method, words, who must be trusted with records, and what a party sends if it is not the sums.
SYSTEMS = [
    ("staged", "`staged` under encryption, relying on all holders but one", "nobody: two services follow the protocol and do not pool their data", "below"),
    ("staged-h1", "`staged` under encryption, relying on only one holder", "the same, and all other holders may collude", "below"),
    ("aim", "`aim`, one trusted party", "that party, with all records", "the records"),
    ("dist-aim", "DistAIM (in the clear)", "servers that do not pool their data (here: the party that runs it)", "all marginals"),
    ("aug-private", "`aug-private`", NOBODY, None),
    ("naive", "`naive`", "as above", None),
    ("random", "`random`", "as above", None),
    ("naive-bayes", "`naive-bayes`", "as above", None),
]


def systems(results):
    """Systems on Adult at epsilon 1, from the rows of flaim.md by the corrected accounting. Fits of federated methods have
    20 steps, with which their NLLs are least."""
    found = flaim.by_method(results, "adult-ours") | flaim.by_method(results, "adult-ours-fit-20")
    rows = []
    for method, words, trusted, sent in SYSTEMS:
        row = found[method]
        auc = figure(row["auc"], None, 2)
        rows.append([words, trusted, flaim.error_of(row), flaim.nll_of(row), auc, sent or kilobytes(row), f"`{method}`"])
    heading = ["system", "who must be trusted with records", "error", "NLL", "AUC", "sent by a party", "method"]
    seeds = " or ".join(sorted({str(found[method]["seeds"]) for method, *_ in SYSTEMS}, key=int))
    return table(heading, rows) + f"\n{seeds} runs of each; standard errors in brackets.\n"


def kilobytes(row):
    """Returns the mean of the masked cells that a party sends."""
    sent = [run["sent_mb"] for run in row["trials"] if run["sent_mb"] is not None]
    return f"{1000 * sum(sent) / len(sent):.1f} KB" if sent else ""


PAPERS = [
    ("FHAIM", fhaim, "[fhaim.md](fhaim.md)"),
    ("FLAIM", flaim, "[flaim.md](flaim.md)"),
    ("CAPE", cape, "[cape.md](cape.md)"),
    ("Saleem and Fan", gan, "[gan.md](gan.md)"),
]


def agreements(results):
    """How many printed figures of each paper agree with ours within two standard errors."""
    rows = []
    for paper, chapter, link in PAPERS:
        total = [0, 0]
        for what, differences in chapter.counted(results):
            agree, known = agreeing(differences)
            if known:
                rows.append([paper, what, str(known), str(agree), ""])
                total = [total[0] + agree, total[1] + known]
        rows.append([f"**{paper}**", "all", f"**{total[1]}**", f"**{total[0]}**", link])
    return table(["paper", "printed figures", "compared", "agree within two standard errors", "each figure"], rows)

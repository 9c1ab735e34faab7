#!/usr/bin/env python3
"""Compares forecasts with the outcomes of runs, and writes the results into docs/BENCHMARKS.md.

    FHAIM_DATA_DIR=data research/bench/forecast.py --lab target/debug/fhaim-lab

Runs `fhaim-lab bench forecast` with the default mechanism on the published tables (three seeds), on the seven families of
`fhaim-lab bench mechanisms` and the five of `fhaim-lab bench endings` (three tables each, from seed 100 on: the constants of
the forecast were chosen with the tables of seeds 0 to 2), and with the other mechanisms on two tables (two seeds). Replaces
the text between the markers `forecast` in docs/BENCHMARKS.md, or prints it with --print.
`--results FILE` reads the JSON of earlier runs (may be repeated) instead.
"""

import argparse
import collections
import json
import math
import pathlib
import statistics
import subprocess

FAMILIES = ["tree", "copula", "mixture", "independent", "functions", "wide", "narrow"]
SKEWED = ["zero-inflated", "heavy-tail", "near-constant", "dominant", "mixed"]
USUAL, OTHERS = "staged", ["aim", "mst", "fhaim-l2"]
LIMIT = 0.1
DOCUMENT = pathlib.Path(__file__).parents[2] / "docs" / "BENCHMARKS.md"
BEGIN, END = "<!-- begin forecast -->", "<!-- end forecast -->"


def runs(lab):
    """Runs the command on all tables, and returns the results."""
    families = [part for name in FAMILIES for part in ("--family", name)]
    skewed = [part for name in SKEWED for part in ("--skew", name)]
    results = []
    others = [part for name in OTHERS for part in ("--mechanism", name)]
    for arguments in (
        [],
        ["--first-seed", "100", *families, *skewed],
        ["compas", "adult-32", "--seeds", "2", *others],
    ):
        command = [lab, "bench", "forecast", "--json", *arguments]
        results += json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return results


def mean(compared, key):
    return statistics.mean([one[key] for one in compared] or [0.0])


def figure(values):
    """A mean with its standard error."""
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.4f} ± {error:.4f}"


def row(key, results):
    *names, epsilon = key
    cells = [*names, f"{epsilon:g}"]
    for of in ("columns", "pairs"):
        expected = [mean(run[of], "expected") for run in results]
        outcome = [mean(run[of], "outcome") for run in results]
        ratio = statistics.mean(expected) / statistics.mean(outcome)
        cells += [f"{statistics.mean(expected):.4f}", figure(outcome), f"{ratio:.2f}"]
    above = [run["pairs_above_noise"] for run in results]
    below = [sum(pair["outcome"] <= LIMIT for pair in run["pairs"]) for run in results]
    count = [len(run["pairs"]) for run in results]
    cells.append(f"{sum(above)}, {sum(below)} of {sum(count)}")
    return "| " + " | ".join(cells) + " |", [float(cells[len(key) + 2]), float(cells[len(key) + 5])]


def calibration(results, of, above):
    """Counts the columns or pairs with a forecast, and those of them that ended within the limit."""
    within = [one["outcome"] <= LIMIT for run in results for one in run[of] if one["above_noise"] == above]
    share = 100 * sum(within) / max(len(within), 1)
    return f"{sum(within):,} of {len(within):,} ({share:.1f}%)"


def table(names, groups):
    """Returns a table with a row for each group of runs, and the ratios of its rows."""
    rows, ratios = zip(*(row(key, group) for key, group in groups.items()))
    heading = [*names, "epsilon", "columns: forecast", "outcome", "ratio", "pairs: forecast", "outcome", "ratio",
               "pairs above the noise, pairs within .1"]
    return ["| " + " | ".join(heading) + " |", "|" + "---|" * len(heading), *rows], ratios


def grouped(results, *keys):
    groups = collections.defaultdict(list)
    for run in results:
        groups[tuple(run[key] for key in keys)].append(run)
    return groups


def text(results):
    usual = [run for run in results if run["mechanism"] == USUAL]
    others = [run for run in results if run["mechanism"] != USUAL]
    lines = []
    if usual:
        groups = grouped(usual, "dataset", "epsilon")
        rows, ratios = table(["table"], groups)
        lines += [
            "| forecast | columns that ended within .1 | pairs that ended within .1 |",
            "|---|---|---|",
        ]
        for name, above in (("above the noise", True), ("noise", False)):
            lines.append(f"| {name} | {calibration(usual, 'columns', above)} | {calibration(usual, 'pairs', above)} |")
        for place, of in enumerate(("columns", "pairs")):
            within = sum(0.5 <= ratio[place] <= 2 for ratio in ratios)
            lost = [f"{name} at {epsilon:g} ({ratio[place]:.1f})" for (name, epsilon), ratio in zip(groups, ratios)
                    if not 0.5 <= ratio[place] <= 2]
            lines += ["", f"Mean error of {of}: the forecast is within a factor of 2 of the outcome in {within} of "
                      f"{len(ratios)} rows" + (f"; not for {', '.join(lost)}." if lost else ".")]
        lines += ["", *rows]
    if others:
        rows, _ = table(["table", "mechanism"], grouped(others, "dataset", "mechanism", "epsilon"))
        lines += ["", "The other mechanisms:", "", *rows]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lab", default="fhaim-lab", help="the program fhaim-lab")
    parser.add_argument("--results", action="append", type=pathlib.Path, help="JSON of earlier runs (may be repeated)")
    parser.add_argument("--print", action="store_true", help="print the text instead of changing the document")
    arguments = parser.parse_args()
    if arguments.results:
        results = [run for file in arguments.results for run in json.loads(file.read_text())]
    else:
        results = runs(arguments.lab)
    made = text(results)
    if arguments.print:
        print(made)
        return
    document = DOCUMENT.read_text()
    before, rest = document.split(BEGIN, 1)
    _, after = rest.split(END, 1)
    DOCUMENT.write_text(f"{before}{BEGIN}\n{made}\n{END}{after}")


if __name__ == "__main__":
    main()

"""Compares the quality and diagnostic reports of SDMetrics with the assessment of `fhaim evaluate`.

    python3 -m venv env && env/bin/pip install sdmetrics
    FHAIM_BIN=target/release/fhaim env/bin/python research/bench/quality_report.py DIR adult compas wine --epsilon 1

For each table of DIR (a CSV file; `wine.csv` has the red wines of UCI's Wine Quality, doi 10.24432/C56S3T), the script drafts
a schema, makes a synthetic table in the clear, and prints both reports as a line of a table. Columns of the kind `number` are
numerical for SDMetrics, and all others categorical. Identifiers are not compared. SDMetrics scores only pairs with a real
association of at least 0.3; without such a pair, the score of pairs is `nan`.
"""

import argparse
import json
import os
import pathlib
import subprocess
import tempfile

import pandas
from sdmetrics.reports import DiagnosticReport, QualityReport

FHAIM = os.environ.get("FHAIM_BIN", "fhaim")


def fhaim(*arguments):
    """Runs a command of `fhaim` and returns its output. Exits if it fails."""
    run = subprocess.run([FHAIM, "--quiet", *map(str, arguments)], capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(run.stderr)
    return run.stdout


def metadata(schema):
    """Converts a schema to the metadata of SDMetrics."""
    kinds = {}
    for column in schema["columns"]:
        if column["kind"] not in ("identifier", "left-out"):
            is_number = column["kind"] in ("number", "numeric")
            kinds[column["name"]] = {"sdtype": "numerical" if is_number else "categorical"}
    return {"columns": kinds}


def read(path, kinds):
    """Reads the compared columns of a CSV file, with categories as texts."""
    texts = {name: str for name, kind in kinds.items() if kind["sdtype"] == "categorical"}
    return pandas.read_csv(path, dtype=texts)[list(kinds)]


def compare(real_path, epsilon, work):
    """Returns the scores of SDMetrics and our summary."""
    schema, made = work / "schema.json", work / "synthetic.csv"
    fhaim("schema", "infer", "--data", real_path, "--out", schema)
    fhaim("local", "--data", real_path, "--schema", schema, "--epsilon", epsilon, "--out", made, "--yes")
    report = json.loads(
        fhaim("evaluate", "--real", real_path, "--synthetic", made, "--schema", schema, "--json")
    )
    of = metadata(json.loads(schema.read_text()))
    tables = [{"table": read(path, of["columns"])} for path in (real_path, made)]
    quality, diagnostic = QualityReport(), DiagnosticReport()
    for one in (quality, diagnostic):
        one.generate(*tables, {"tables": {"table": of}}, verbose=False)
    scores = quality.get_properties().set_index("Property")["Score"]
    shapes, pairs = scores["Column Shapes"], scores["Column Pair Trends"]
    return quality.get_score(), shapes, pairs, diagnostic.get_score(), report["assessment"]["summary"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("tables", nargs="+")
    parser.add_argument("--epsilon", type=float, default=1.0)
    arguments = parser.parse_args()
    print("| table | quality | column shapes | column pairs | diagnostic | our summary |\n|---|---|---|---|---|---|")
    for name in arguments.tables:
        with tempfile.TemporaryDirectory() as work:
            work = pathlib.Path(work)
            real = arguments.folder / f"{name}.csv"
            *scores, sentences = compare(real, arguments.epsilon, work)
        numbers = " | ".join(f"{score:.3f}" for score in scores)
        print(f"| {name} | {numbers} | {' '.join(sentences)} |", flush=True)


if __name__ == "__main__":
    main()

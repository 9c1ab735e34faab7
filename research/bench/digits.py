"""Measures how `digits` in a drafted schema affect the accuracy of columns and pairs.

    FHAIM_BIN=target/release/fhaim python3 research/bench/digits.py adult.csv compas.csv --epsilon 1 --runs 10

For each table, the script drafts a schema. It makes synthetic tables in the clear with this schema, and with the same edges
without `digits`. Both are compared with the records on the coarse attributes, which the two schemas share. The results are
the mean L1 distances of all columns and of all pairs, with standard errors over the runs.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

FHAIM = os.environ.get("FHAIM_BIN", "fhaim")


def fhaim(*arguments):
    """Runs a command of `fhaim` and returns its output. Exits if it fails."""
    run = subprocess.run([FHAIM, "--quiet", *map(str, arguments)], capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(run.stderr)
    return run.stdout


def distances(real, schema, coarse, epsilon, work):
    """Makes a table with `schema`. Returns the mean L1 distances of columns and of pairs on the coarse attributes."""
    made = work / "made.csv"
    made.unlink(missing_ok=True)
    given = ("--schema", schema, "--epsilon", epsilon, "--out", made, "--yes")
    fhaim("local", "--data", real, *given)
    report = json.loads(fhaim("evaluate", "--real", real, "--synthetic", made, "--schema", coarse, "--json"))
    return [workload["mean_l1"] for workload in report["workloads"][:2]]


def written(runs):
    """Formats means and standard errors of columns and of pairs."""
    both = zip(*runs)
    return " | ".join(f"{statistics.mean(of):.4f} ({statistics.stdev(of) / len(of) ** 0.5:.4f})" for of in both)


def compare(real, epsilon, runs, work):
    """Prints a line for each of the two schemas."""
    drafted, coarse = work / "drafted.json", work / "coarse.json"
    fhaim("schema", "infer", "--data", real, "--out", drafted)
    schema = json.loads(drafted.read_text())
    digits = sum(column.pop("digits", None) is not None for column in schema["columns"])
    coarse.write_text(json.dumps(schema))
    for name, path in ((f"{digits} columns with digits", drafted), ("without", coarse)):
        found = [distances(real, path, coarse, epsilon, work) for _ in range(runs)]
        print(f"| {real.stem} | {epsilon:g} | {name} | {written(found)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="+", type=pathlib.Path)
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0])
    parser.add_argument("--runs", type=int, default=10)
    arguments = parser.parse_args()
    print("| table | epsilon | schema | columns | pairs |\n|---|---|---|---|---|")
    for real in arguments.tables:
        for epsilon in arguments.epsilon:
            with tempfile.TemporaryDirectory() as work:
                compare(real, epsilon, arguments.runs, pathlib.Path(work))


if __name__ == "__main__":
    main()

"""Compares private drafts of schemas with the draft that is read from the records without privacy.

    FHAIM_BIN=target/release/fhaim python3 research/bench/drafts.py adult.csv compas.csv --epsilon 0.1 1 --runs 5

The draft without privacy is called the open draft. For each table and epsilon, the script prints over all runs:

- the number of drafts that were refused as guesses;
- the number of columns with the same kind as in the open draft. Columns of whole numbers from 0 to 9 can have either
  kind, and count if no value is lost;
- the share of records whose value has a bin or a category in the draft, for all columns and for the worst one;
- the largest share of a column's records in one bin without special values, as a mean over the number columns of the
  open draft.
"""

import argparse
import bisect
import csv
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

FHAIM = os.environ.get("FHAIM_BIN", "fhaim")
KINDS = {"numeric": "number", "number": "number", "categorical": "category"}


def drafted(table, epsilon, work):
    """Drafts a schema. Returns its columns by name, or None if the draft was refused. Epsilon 0 gives the open draft."""
    path = work / "schema.json"
    path.unlink(missing_ok=True)
    words = [FHAIM, "--quiet", "schema", "infer", "--data", table, "--out", path]
    words += ["--yes", "--epsilon", str(epsilon)] if epsilon else []
    run = subprocess.run(list(map(str, words)), capture_output=True, text=True)
    if run.returncode and "would be a guess" in run.stderr:
        return None
    if run.returncode:
        raise SystemExit(run.stderr)
    return {column["name"]: column for column in json.loads(path.read_text())["columns"]}


def placed(column, values):
    """Returns the share of values with a bin or category, and for numbers the share of the largest bin."""
    kind = KINDS.get(column["kind"])
    if kind == "category":
        kept = set(column["categories"]) - {column.get("other")}
        return sum(value in kept for value in values) / len(values), None
    if kind != "number":
        return 0.0, None
    special = set(column.get("special", []))
    edges = column.get("edges")
    if edges is None:
        low, high, bins = column["min"], column["max"], column["bins"]
        # The bins of whole numbers end one above the largest value.
        end = high + 1 if column.get("integer") else high
        edges = [low + (end - low) * n / bins for n in range(bins)] + [high]
    inside, bins = 0, [0] * len(edges)
    for value in values:
        try:
            number = float(value)
        except ValueError:
            continue
        if number in special:
            inside += 1
        elif edges[0] <= number <= edges[-1]:
            inside += 1
            bins[min(bisect.bisect_right(edges, number), len(edges) - 1)] += 1
    return inside / len(values), max(bins) / len(values)


def figures(columns, openly, values):
    """Returns the number of columns of the open draft's kind, the mean and the least share of records with a bin or
    category, and the mean share of the largest bins."""
    same, shares, largest = 0, [], []
    for name, of in values.items():
        column = columns[name]
        share, most = placed(column, of)
        shares.append(share)
        same += KINDS.get(column["kind"]) == KINDS.get(openly[name]["kind"]) or share > 0.9999
        if most is not None and KINDS.get(openly[name]["kind"]) == "number":
            largest.append(most)
    return same, statistics.mean(shares), min(shares), statistics.mean(largest) if largest else float("nan")


def line(table, epsilon, runs, work):
    """Returns a row with means over the drafts that were not refused."""
    with table.open(newline="") as file:
        records = [record for record in csv.DictReader(file)]
    values = {name: [record[name] for record in records if record[name] != ""] for name in records[0]}
    openly = drafted(table, 0, work)
    made = [drafted(table, epsilon, work) for _ in range(runs if epsilon else 1)]
    found = [figures(columns, openly, values) for columns in made if columns]
    name = f"{epsilon:g}" if epsilon else "read off"
    words = f"| {table.stem} ({len(records):,} x {len(values)}) | {name} | {len(made) - len(found)} of {len(made)}"
    if not found:
        return f"{words} | | | | |"
    same, mean, least, largest = (statistics.mean(of) for of in zip(*found))
    return f"{words} | {same:.1f} | {mean:.3f} | {least:.3f} | {largest:.3f} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="+", type=pathlib.Path)
    parser.add_argument("--epsilon", nargs="+", type=float, default=[0.1, 1.0])
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    print("| table | epsilon | refused | kinds | records with a place | worst column | largest bin |")
    print("|---|---|---|---|---|---|---|")
    for table in arguments.tables:
        for epsilon in [0.0, *arguments.epsilon]:
            with tempfile.TemporaryDirectory() as work:
                print(line(table, epsilon, arguments.runs, pathlib.Path(work)), flush=True)


if __name__ == "__main__":
    main()

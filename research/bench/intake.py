#!/usr/bin/env python3
"""Takes tables from file to synthetic table with the command, as a new user would.

    research/bench/intake.py [--fhaim PATH] [--epsilon E ...] [--encrypted N] [FOLDER ...]

For each table of the folders (default: crates/intake/tests/tables and .../situations) it runs `schema infer`, `schema
check`, and `local` at each epsilon; for the first N drafted tables also `run`, under encryption. It prints a Markdown
table with the outcome of each step: the number of columns that are kept, the number of synthetic records, or the error's
first line. A table that passes `schema check` and is refused later is a fault, and the exit status is 1.
"""

import argparse
import csv
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = [ROOT / "crates/intake/tests/tables", ROOT / "crates/intake/tests/situations"]
ENDINGS = {".csv", ".tsv", ".dat", ".parquet", ".xlsx", ".gz"}


def run(program, *arguments, folder):
    """The exit status, and the first line of the error or the standard output."""
    done = subprocess.run([program, *map(str, arguments)], cwd=folder, capture_output=True, text=True, errors="replace")
    lines = [line for line in done.stderr.splitlines() if line.startswith("error")]
    return done.returncode, (lines or done.stderr.splitlines() or [""])[0]


def records(path):
    with open(path, newline="", encoding="utf-8") as file:
        return sum(1 for _ in csv.reader(file)) - 1


def synthesize(program, command, table, epsilon, folder):
    out = Path(folder) / f"{command}-{epsilon}.csv"
    status, error = run(
        program, command, "--data", table, "--schema", "s.json", "--epsilon", epsilon, "--out", out, "--yes", folder=folder
    )
    return (True, f"{records(out)} records") if status == 0 else (False, error)


def steps(program, table, epsilons, encrypted):
    """The outcome of each step, and whether a checked table was refused."""
    with tempfile.TemporaryDirectory() as folder:
        status, error = run(program, "schema", "infer", "--data", table, "--out", "s.json", "--yes", folder=folder)
        if status:
            return [f"refused: {error.removeprefix('error: ')}"], False
        columns = json.loads((Path(folder) / "s.json").read_text())["columns"]
        outcomes = [f"{sum(column['kind'] != 'left-out' for column in columns)} of {len(columns)} columns"]
        status, error = run(program, "schema", "check", "s.json", "--data", table, folder=folder)
        outcomes.append("passes" if status == 0 else error)
        late = False
        for command, epsilon in [("local", e) for e in epsilons] + [("run", e) for e in epsilons[:1] if encrypted]:
            passed, outcome = synthesize(program, command, table, epsilon, folder)
            late |= status == 0 and not passed
            outcomes.append(outcome)
        return outcomes, late


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path, default=FOLDERS)
    parser.add_argument("--fhaim", default="fhaim")
    parser.add_argument("--epsilon", nargs="+", default=["10", "1"])
    parser.add_argument("--encrypted", type=int, default=0)
    arguments = parser.parse_args()
    heads = ["table", "draft", "check", *(f"local, epsilon {e}" for e in arguments.epsilon), "run"]
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    began, late, encrypted = time.monotonic(), [], arguments.encrypted
    for folder in arguments.folders:
        for table in sorted(path for path in folder.iterdir() if path.suffix in ENDINGS):
            outcomes, refused = steps(arguments.fhaim, table, arguments.epsilon, encrypted > 0)
            encrypted -= len(outcomes) > 1
            late += [table.name] * refused
            outcomes += [""] * (len(heads) - 1 - len(outcomes))
            print("| " + " | ".join([table.name, *(o.replace("|", "/") for o in outcomes)]) + " |", flush=True)
    print(f"\n{time.monotonic() - began:.0f} s; refused after `schema check` passed: {', '.join(late) or 'none'}")
    return bool(late)


if __name__ == "__main__":
    sys.exit(main())

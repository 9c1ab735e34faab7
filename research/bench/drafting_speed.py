#!/usr/bin/env python3
"""Measures how long drafting a schema takes, and how much memory.

    research/bench/drafting_speed.py [--rows N ...] [--runs N] PROGRAM [PROGRAM ...]

Makes a table of six columns (identifier, date, two categories, amount, count) for each number of rows, and drafts it with
each program in turn. Prints the fastest run of each program in seconds, and its largest peak memory in MB.
"""

import argparse
import datetime
import os
import random
import subprocess
import tempfile
import time
from pathlib import Path

WARDS = ["surgery", "medicine", "obstetrics", "intensive care", "paediatrics"]


def make(path, rows):
    """Writes a table. Equal numbers of rows give equal tables."""
    rng = random.Random(rows)
    first = datetime.date(2015, 1, 1)
    days = [(first + datetime.timedelta(day)).isoformat() for day in range(3650)]
    with open(path, "w", encoding="utf-8") as file:
        file.write("record,admitted,ward,outcome,amount,visits\n")
        for row in range(rows):
            amount = rng.lognormvariate(6, 1)
            file.write(
                f"R{row:08},{rng.choice(days)},{rng.choice(WARDS)},{rng.choice('ABCD')},{amount:.2f},{rng.randrange(40)}\n"
            )


def measure(program, table):
    """Seconds and peak memory in MB of one draft."""
    words = [program, "--quiet", "schema", "infer", "--data", table, "--out", table.with_suffix(".json")]
    began = time.monotonic()
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{program} failed with status {child.returncode}")
    return time.monotonic() - began, usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="+", metavar="PROGRAM")
    parser.add_argument("--rows", nargs="+", type=int, default=[100_000, 1_000_000, 5_000_000])
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    print("| rows | program | seconds | MB |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for rows in arguments.rows:
            table = Path(folder) / "table.csv"
            make(table, rows)
            runs = {program: [] for program in arguments.programs}
            for _ in range(arguments.runs):
                for program in arguments.programs:
                    runs[program].append(measure(program, table))
            for program, measured in runs.items():
                seconds, megabytes = zip(*measured)
                print(f"| {rows:,} | {program} | {min(seconds):.2f} | {max(megabytes):.0f} |", flush=True)


if __name__ == "__main__":
    main()

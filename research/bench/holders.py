#!/usr/bin/env python3
"""Measures the costs of datasets with one holder and with three: uploads, CPU seconds and memory.

    research/bench/holders.py FHAIM TABLE.csv TABLE.schema.json [CASE ...]

A case is HOLDERS-CONTRIBUTION-KEYS: the number of holders, `records`, `counts` or `columns`, and the number of key
services. Each case runs one job at epsilon 1 with `fhaim up`, on a free port and in a new folder. "Holders" stands for the
commands that make, sign and upload the dataset. "Services" stands for the process of all services, to the end of the job.
"""

import csv
import json
import os
import resource
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CASES = ["1-records-1", "3-records-1", "3-records-2", "1-counts-1", "3-counts-1", "3-counts-2", "3-columns-1"]
TICKS = os.sysconf("SC_CLK_TCK")


class Case:
    """A dataset in its own folder."""

    def __init__(self, program: str, table: Path, schema: Path, folder: Path, case: str):
        holders, self.kind, keys = case.split("-")
        self.holders, self.keys = int(holders), int(keys)
        self.program, self.schema, self.folder = program, schema, folder
        with open(table, newline="") as file:
            self.header, *self.rows = csv.reader(file)

    def run(self, name: str, *arguments: str) -> str:
        """Runs a command as a holder, and returns its output."""
        environment = {**os.environ, "FHAIM_CONFIG_DIR": str(self.folder / name), "FHAIM_PASSWORD": "correct horse battery"}
        command = [self.program, "-q", *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(command)}: {done.stderr}")
        return done.stdout

    def write(self, name: str, columns: list[str], rows: list[list[str]]) -> str:
        """Writes a part of the table, and returns its path."""
        places = [self.header.index(column) for column in columns]
        path = self.folder / f"{name}.csv"
        with open(path, "w", newline="") as file:
            csv.writer(file).writerows([columns, *([row[place] for place in places] for row in rows)])
        return str(path)

    def parts(self) -> list[tuple[str, str, list[str]]]:
        """Returns each holder's name, its file, and the arguments of its card."""
        names = [f"holder{number}" for number in range(self.holders)]
        known = [column["name"] for column in json.loads(self.schema.read_text())["columns"]]
        parts = []
        for number, name in enumerate(names):
            columns, rows = known, self.rows[number :: self.holders]
            more = []
            if self.kind == "columns":
                columns, rows = known[number :: self.holders], self.rows
                more = [f"--columns={','.join(columns)}"]
            bound = str(-(-len(rows) // 8192) * 8192)
            parts.append((name, self.write(name, columns, rows), ["--record-bound", bound, *more]))
        return parts

    def create(self, parts: list[tuple[str, str, list[str]]]) -> str:
        """Makes, signs and uploads the dataset. Returns its identifier."""
        contribution = "counts" if self.kind == "counts" else "records"
        terms = ["--schema", str(self.schema), "--epsilon", "1", "--contribution", contribution, "--keys", str(self.keys)]
        first, file, (_, bound, *_) = parts[0]
        if self.holders == 1:
            dataset = self.run(first, "dataset", "create", *terms, "--record-bound", bound).split()[0]
        else:
            for name, _, card in parts:
                written = self.run(name, "dataset", "join", *card)
                (self.folder / f"{name}.json").write_text(written)
                terms += ["--holder", str(self.folder / f"{name}.json")]
            dataset = self.run(first, "dataset", "create", *terms).split()[0]
            # The upload or signature of the first holder makes the dataset's keys.
            for name, _, _ in parts:
                self.run(name, "dataset", "sign", dataset, "--yes")
        for name, file, _ in parts:
            self.run(name, "dataset", "upload", dataset, "--data", file, "--yes")
        return dataset

    def measure(self) -> dict[str, float]:
        """Runs the case. Returns seconds and megabytes."""
        data = self.folder / "data"
        options = ["--data", str(data), "--listen", "127.0.0.1:0", "--keys", str(self.keys)]
        up = subprocess.Popen([self.program, "up", *options], stdout=subprocess.PIPE, text=True)
        try:
            address = re.search(r"http://[0-9.:]+", up.stdout.readline())[0]
            parts = self.parts()
            for name, _, _ in parts:
                self.run(name, "account", "login", "--server", address, "--email", f"{name}@example.org", "--sign-up")
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            began = time.monotonic()
            dataset = self.create(parts)
            uploaded = time.monotonic()
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            sent = sum(path.stat().st_size for path in (data / "computation").rglob("*") if path.is_file())
            self.run(parts[0][0], "job", "run", dataset, "--yes", "--watch")
            ended = time.monotonic()
            status = Path(f"/proc/{up.pid}/status").read_text()
            used = Path(f"/proc/{up.pid}/stat").read_text().rsplit(")", 1)[1].split()
            return {
                "holders, processor s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
                "services, processor s": (int(used[11]) + int(used[12])) / TICKS,
                "upload s": uploaded - began,
                "job s": ended - uploaded,
                "stored MB": sent / 1e6,
                "services' peak MB": int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1e3,
            }
        finally:
            up.terminate()
            up.wait()


def main() -> None:
    program, table, schema, *cases = sys.argv[1:]
    for number, case in enumerate(cases or CASES):
        with tempfile.TemporaryDirectory() as folder:
            measured = Case(program, Path(table), Path(schema), Path(folder), case).measure()
        if number == 0:
            print("| case |", " | ".join(measured), "|\n|---|" + "---|" * len(measured))
        print(f"| {case} |", " | ".join(f"{value:.1f}" for value in measured.values()), "|", flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Measures the phases of the FHAIM paper's protocol as fhaim runs it: `fhaim run --mechanism fhaim-l2`, encrypted.

    python3 research/bench/fhaim_phases.py FHAIM TABLES [TABLE ...] --json

FHAIM is the program, TABLES the folder of the published tables (TABLE.csv and TABLE.schema.json). A run has one thread,
epsilon 1 and delta 1e-9. The program prints a line at the end of each phase; the script then reads the process's
processor seconds and its peak of resident memory so far. Processor seconds hardly depend on other work of the machine.
One row for each table goes to standard output as JSON: seconds of processor and clock for each phase, means over the
rounds for `select` and `measure`, the number of each, and the bytes of the upload."""

import argparse
import json
import os
import pathlib
import re
import subprocess
import tempfile

from contributions import processor, status

TABLES = ["breast-cancer", "compas", "diabetes"]
PHASES = {
    "key service makes keys": "keys",
    "holder encrypts": "encryption",
    "compute": "compute",
    "Counting values of each column": "one_ways",
    "Choosing the next pair": "select",
    "Measuring the chosen pair": "measure",
}
LINE = re.compile(r"([A-Za-z ]+?)(?: \(\d+/\d+\))?: (?:.* in )?([\d.]+) (s|min)\b")


def measured(program, folder, table):
    """Returns the row of one table."""
    with tempfile.TemporaryDirectory() as scratch:
        environment = os.environ | {"RAYON_NUM_THREADS": "1", "FHAIM_MEMORY_DIR": scratch, "NO_COLOR": "1"}
        command = [program, "run", "--data", f"{folder}/{table}.csv", "--schema", f"{folder}/{table}.schema.json"]
        command += ["--epsilon", "1", "--mechanism", "fhaim-l2", "--yes", "--json", "--out", f"{scratch}/out.csv"]
        output = open(f"{scratch}/summary.json", "w+", encoding="utf-8")
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.PIPE, text=True, env=environment)
        phases, before = {}, 0.0
        for line in process.stderr:
            found = LINE.match(line)
            # The process may have ended after its last line.
            if not found or found[1] not in PHASES or process.poll() is not None:
                continue
            now = processor(process.pid)
            phase = phases.setdefault(PHASES[found[1]], {"times": 0, "processor_seconds": 0.0, "seconds": 0.0})
            phase["times"] += 1
            phase["processor_seconds"] += now - before
            phase["seconds"] += float(found[2]) * (60 if found[3] == "min" else 1)
            phase["peak_mb"] = round(status(process.pid, "VmHWM"), 1)
            before = now
        if process.wait():
            raise SystemExit(f"{' '.join(command)} failed")
        output.seek(0)
        summary = json.load(output)
    for phase in phases.values():
        for name in ["processor_seconds", "seconds"]:
            phase[name] = round(phase[name] / phase["times"], 3)
    upload = summary["encryption"]["upload_bytes"]
    return {"dataset": table, "threads": 1, "load": os.getloadavg()[0], "upload_bytes": upload, "phases": phases}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("tables", nargs="*", default=TABLES)
    parser.add_argument("--json", action="store_true", help="one row a line (the only form of output)")
    given = parser.parse_args()
    for table in given.tables:
        print(json.dumps(measured(given.program, given.folder, table)), flush=True)


if __name__ == "__main__":
    main()

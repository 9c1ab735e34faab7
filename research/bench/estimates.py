#!/usr/bin/env python3
"""Compares the time that `fhaim run` estimates before it encrypts with the actual time.

    python3 research/bench/estimates.py [--times N] FHAIM TABLE.csv SCHEMA.json [TABLE.csv SCHEMA.json ...]

Each table is run N times by records and by counts, at epsilon 1 and the default model cap. The run with the median ratio
is printed. A ratio of 1 is a perfect estimate; the goal is from 0.67 to 1.5. Use a quiet machine: the load, and the CPU
seconds next to the elapsed seconds, show how quiet it was. "Counted" is the ratio of estimated to actual work, for key
switches and for cells of fits."""

import argparse
import json
import os
import pathlib
import resource
import subprocess
import tempfile


def run(program, table, schema, contribution, folder):
    """Runs a table. Returns the summary of the run, with its CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    out = pathlib.Path(folder, "out.csv")
    command = [program, "run", "--data", table, "--schema", schema, "--contribution", contribution]
    command += ["--epsilon", "1", "--out", str(out), "--yes", "--quiet", "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{table} by {contribution}: {done.stderr.strip()}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(done.stdout) | {"processor_seconds": processor}


def figures(summary):
    """Returns pairs of estimated and actual seconds: for encryption and encrypted computation, for planning and fits,
    and for the whole rest of the run after the estimate."""
    encryption = summary["encryption"]
    parts = ("keys_seconds", "encrypt_seconds", "compute_seconds", "decrypt_seconds")
    encrypted = sum(encryption[part] for part in parts)
    fits = sum(phase["plan_seconds"] for phase in summary["timings"])
    told = encryption["estimate"]
    whole = told["seconds"] + told["fit_seconds"] + told["draw_seconds"]
    return [(told["seconds"], encrypted), (told["fit_seconds"], fits), (whole, summary["seconds"] - told["said_seconds"])]


def counted(summary):
    """Returns the ratios of estimated to actual work."""
    expected, done = summary["encryption"]["estimate"]["work"], summary["encryption"]["done"]
    return [expected[name] / max(done[name], 1) for name in ("key_switches", "fit_cells")]


def ratio(told, took):
    return told / max(took, 1e-9)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--times", type=int, default=1, help="number of runs of each table and contribution")
    parser.add_argument("program")
    parser.add_argument("tables", nargs="+", help="TABLE.csv SCHEMA.json, in pairs")
    arguments = parser.parse_args()
    if len(arguments.tables) % 2:
        parser.error("every table needs its schema")
    print("| table | by | encrypted: estimate, s | took | ratio | fits: estimate, s | took | ratio | all: estimate, s | took | ratio | counted: switches, fits | the run: s, processor s | load |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for table, schema in zip(arguments.tables[::2], arguments.tables[1::2]):
            for contribution in ("records", "counts"):
                runs = [run(arguments.program, table, schema, contribution, folder) for _ in range(arguments.times)]
                runs.sort(key=lambda summary: ratio(*figures(summary)[2]))
                middle = runs[len(runs) // 2]
                cells = [f"{told:.2f} | {took:.2f} | {ratio(told, took):.2f}" for told, took in figures(middle)]
                name = pathlib.Path(schema).name.split(".")[0]
                counts = ", ".join(f"{of:.2f}" for of in counted(middle))
                took = f"{middle['seconds']:.1f}, {middle['processor_seconds']:.1f}"
                print(f"| {name} | {contribution} | {' | '.join(cells)} | {counts} | {took} | {os.getloadavg()[0]:.1f} |", flush=True)


if __name__ == "__main__":
    main()

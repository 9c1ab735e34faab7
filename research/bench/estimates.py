#!/usr/bin/env python3
"""What `fhaim run` says before it encrypts, beside what it then takes.

    python3 research/bench/estimates.py [--times N] FHAIM TABLE.csv SCHEMA.json [TABLE.csv SCHEMA.json ...]

Each table goes by records and by counts, at epsilon 1 and the default cap on models, so often; the run whose ratio is
the median counts. A ratio of 1 is a right estimate; between 0.67 and 1.5 is what is wanted. Best on a quiet machine:
the load, and the processor's seconds beside the clock's, say how quiet it was. "Counted" is what was expected to be
done over what was done: key switches, and cells of fits."""

import argparse
import json
import os
import pathlib
import resource
import subprocess
import tempfile


def run(program, table, schema, contribution, folder):
    """The summary of one run, and the processor's seconds."""
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
    """Estimated and actual seconds: of encryption and what is computed under it, of planning and fits, and of all that was
    still to come when the estimate was said."""
    encryption = summary["encryption"]
    parts = ("keys_seconds", "encrypt_seconds", "compute_seconds", "decrypt_seconds")
    encrypted = sum(encryption[part] for part in parts)
    fits = sum(phase["plan_seconds"] for phase in summary["timings"])
    told = encryption["estimate"]
    whole = told["seconds"] + told["fit_seconds"] + told["draw_seconds"]
    return [(told["seconds"], encrypted), (told["fit_seconds"], fits), (whole, summary["seconds"] - told["said_seconds"])]


def counted(summary):
    """What was expected to be done, over what was done."""
    expected, done = summary["encryption"]["estimate"]["work"], summary["encryption"]["done"]
    return [expected[name] / max(done[name], 1) for name in ("key_switches", "fit_cells")]


def ratio(told, took):
    return told / max(took, 1e-9)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--times", type=int, default=1, help="runs of each")
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

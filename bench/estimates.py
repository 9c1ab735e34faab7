#!/usr/bin/env python3
"""What `fhaim run` says before it encrypts, beside what it then takes.

    python3 bench/estimates.py FHAIM TABLE.csv SCHEMA.json [TABLE.csv SCHEMA.json ...]

Each table goes by records and by counts, at epsilon 1 and the default cap on models. A ratio of 1 is a right
estimate; between 0.67 and 1.5 is what is wanted. Best on a quiet machine, with a release build."""

import argparse
import json
import pathlib
import subprocess
import tempfile


def run(program, table, schema, contribution, folder):
    """The summary of one run."""
    out = pathlib.Path(folder, "out.csv")
    command = [program, "run", "--data", table, "--schema", schema, "--contribution", contribution]
    command += ["--epsilon", "1", "--out", str(out), "--yes", "--quiet", "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{table} by {contribution}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def figures(summary):
    """Estimated and actual seconds: of encryption and what is computed under it, of fits, and of all that was still to
    come when the estimate was said."""
    encryption = summary["encryption"]
    parts = ("keys_seconds", "encrypt_seconds", "compute_seconds", "decrypt_seconds")
    encrypted = sum(encryption[part] for part in parts)
    fits = sum(phase["plan_seconds"] for phase in summary["timings"])
    told = encryption["estimate"]
    whole = told["seconds"] + told["fit_seconds"] + told["draw_seconds"]
    return [(told["seconds"], encrypted), (told["fit_seconds"], fits), (whole, summary["seconds"] - told["measured_seconds"])]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("program")
    parser.add_argument("tables", nargs="+", help="TABLE.csv SCHEMA.json, in pairs")
    arguments = parser.parse_args()
    if len(arguments.tables) % 2:
        parser.error("every table needs its schema")
    print("| table | by | encrypted: estimate, s | took | ratio | fits: estimate, s | took | ratio | all: ratio |")
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for table, schema in zip(arguments.tables[::2], arguments.tables[1::2]):
            for contribution in ("records", "counts"):
                own, fits, whole = figures(run(arguments.program, table, schema, contribution, folder))
                cells = [f"{told:.1f} | {took:.1f} | {told / max(took, 1e-9):.2f}" for told, took in (own, fits)]
                name = pathlib.Path(schema).name.split(".")[0]
                print(f"| {name} | {contribution} | {' | '.join(cells)} | {whole[0] / whole[1]:.2f} |", flush=True)


if __name__ == "__main__":
    main()

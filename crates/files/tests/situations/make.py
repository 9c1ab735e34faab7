"""Writes the Parquet and Excel tables of this folder, and the same tables as plain CSV into plain/.

Usage: python make.py, with pyarrow and openpyxl installed. The repository contains the tables, so tests need neither.
expectations.json has the source and the report of each table.
"""

import csv
import datetime
import io
import random
import uuid
import zipfile
from pathlib import Path

import openpyxl
import pyarrow
import pyarrow.parquet

HERE = Path(__file__).parent
ROWS = 300
WARDS = ["east", "north", "south"]


def plain(name: str, header: list[str], columns: list[list[object]]) -> None:
    with (HERE / "plain" / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(zip(*columns))


def parquet(name: str, columns: dict[str, pyarrow.Array]) -> None:
    pyarrow.parquet.write_table(pyarrow.table(columns), HERE / f"{name}.parquet", compression="snappy")


def excel(name: str, header: list[str], columns: list[list[object]], formats: dict[int, str]) -> None:
    """Writes a workbook with one sheet. `formats` has number formats by column."""
    book = openpyxl.Workbook()
    book.properties.created = book.properties.modified = datetime.datetime(2024, 1, 1)
    sheet = book.active
    sheet.append(header)
    for row in zip(*columns):
        sheet.append(list(row))
    for at, form in formats.items():
        for (cell,) in sheet.iter_rows(min_row=2, min_col=at + 1, max_col=at + 1):
            if not isinstance(cell.value, str):
                cell.number_format = form
    out = io.BytesIO()
    book.save(out)
    # The archive has the time of its creation; a fixed one gives the same bytes in every run.
    with zipfile.ZipFile(out) as source, zipfile.ZipFile(HERE / name, "w", zipfile.ZIP_DEFLATED) as target:
        for member in source.namelist():
            content = source.read(member)
            if member == "docProps/core.xml":
                start, end = content.index(b"<dcterms:modified"), content.index(b"</dcterms:modified>")
                content = content[:start] + b'<dcterms:modified xsi:type="dcterms:W3CDTF">2024-01-01T00:00:00Z' + content[end:]
            entry = zipfile.ZipInfo(member, (2024, 1, 1, 0, 0, 0))
            target.writestr(entry, content, zipfile.ZIP_DEFLATED)


def wards(rng: random.Random) -> list[str]:
    return [rng.choice(WARDS) for _ in range(ROWS)]


# --- Parquet ---

rng = random.Random("uuid")
ids, ward = [uuid.UUID(int=rng.getrandbits(128), version=4) for _ in range(ROWS)], wards(rng)
parquet("uuid", {"id": pyarrow.array([value.bytes for value in ids], pyarrow.uuid()), "ward": ward})
plain("uuid", ["id", "ward"], [ids, ward])

rng = random.Random("time-of-day")
times, ward = [datetime.time(rng.randrange(24), rng.randrange(60)) for _ in range(ROWS)], wards(rng)
parquet("time-of-day", {"called": pyarrow.array(times, pyarrow.time64("us")), "ward": ward})
plain("time-of-day", ["called", "ward"], [times, ward])

rng = random.Random("fixed-bytes")
hashes, ward, size = [rng.randbytes(16) for _ in range(ROWS)], wards(rng), [rng.randrange(1, 5000) for _ in range(ROWS)]
parquet("fixed-bytes", {"md5": pyarrow.array(hashes, pyarrow.binary(16)), "ward": ward, "size": size})
plain("fixed-bytes", ["ward", "size"], [ward, size])

# --- Excel ---

rng = random.Random("call-times")
times, ward = [datetime.time(rng.randrange(24), rng.randrange(60), rng.randrange(60)) for _ in range(ROWS)], wards(rng)
excel("call-times.xlsx", ["called", "ward"], [times, ward], {0: "h:mm:ss AM/PM"})
plain("call-times", ["called", "ward"], [times, ward])

rng = random.Random("one-typo")
births = [datetime.date(1935, 1, 1) + datetime.timedelta(days=rng.randrange(25000)) for _ in range(ROWS)]
births[119] = "12/37/38"
ward = wards(rng)
excel("one-typo.xlsx", ["dob", "ward"], [births, ward], {0: "mm/dd/yyyy"})
plain("one-typo", ["dob", "ward"], [births, ward])

rng = random.Random("ratios")
ratios, zips = [rng.randrange(10001) / 10000 for _ in range(ROWS)], [rng.choice(["36066", "36067", "36068"]) for _ in range(ROWS)]
excel("ratios.xlsx", ["zip", "res_ratio"], [zips, ratios], {1: '0.0000_);[Red]\\(0.0000\\)'})
plain("ratios", ["zip", "res_ratio"], [zips, [f"{value:.4f}".rstrip("0").rstrip(".") for value in ratios]])

rng = random.Random("error-cells")
prices, ward = [rng.randrange(100, 9000) for _ in range(ROWS)], wards(rng)
for row in range(7, 7 + 25 * 11, 11):
    prices[row] = "#N/A"
excel("error-cells.xlsx", ["price", "ward"], [prices, ward], {})
plain("error-cells", ["price", "ward"], [prices, ward])

rng = random.Random("hs-codes")
known = ["0104000102", "2840000301", "3902010700", "7313010100", "0402991000", "8517620090"]
codes, digits = [rng.choice(known) for _ in range(ROWS)], [10] * ROWS
excel("hs-codes.xlsx", ["hs_code", "hs_digits"], [codes, digits], {})
plain("hs-codes", ["hs_code", "hs_digits"], [codes, digits])

rng = random.Random("renamed")
ages, ward = [rng.randrange(18, 90) for _ in range(ROWS)], wards(rng)
excel("renamed.csv", ["age", "ward"], [ages, ward], {})
plain("renamed", ["age", "ward"], [ages, ward])

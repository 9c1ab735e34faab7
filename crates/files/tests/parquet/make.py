"""Writes files of this folder: the same table under every compression, and tables with columns of every type.

Usage: python make.py, with pyarrow, pandas and polars installed. The repository contains the files, so tests need none
of them.
"""

import datetime
import decimal
import uuid
from pathlib import Path

import pandas
import polars
import pyarrow
import pyarrow.parquet

HERE = Path(__file__).parent
ROWS = 400
DAY = datetime.date(2024, 1, 1)

table = pyarrow.table(
    {
        "age": pyarrow.array([None if row % 7 == 3 else row % 90 for row in range(ROWS)]),
        "weight": [row % 50 / 2 for row in range(ROWS)],
        "ward": [["Süd, alt", "Nord"][row % 2] for row in range(ROWS)],
        "seen": [DAY + datetime.timedelta(days=row % 30) for row in range(ROWS)],
    }
)

for compression in ("none", "snappy", "zstd", "gzip", "lz4", "brotli"):
    # Several row groups with pages that are decompressed separately.
    pyarrow.parquet.write_table(
        table,
        HERE / f"pyarrow-{compression}.parquet",
        compression=compression,
        row_group_size=ROWS // 2,
        use_dictionary=["ward"],
    )
# The default compression is Zstandard.
polars.from_arrow(table).write_parquet(HERE / "polars.parquet")

# One column of each type, with a missing value in the last row.
UTC = datetime.timezone.utc
MOMENT = datetime.datetime(2024, 7, 15, 12, 0, 0, 250_000)
kinds = {
    "u64": pyarrow.array([2**64 - 1, None], pyarrow.uint64()),
    "f16": pyarrow.array([0.1, None], pyarrow.float16()),
    "f64": pyarrow.array([7.0, None], pyarrow.float64()),
    "d32": pyarrow.array([decimal.Decimal("1.50"), None], pyarrow.decimal128(9, 2)),
    "d256": pyarrow.array([decimal.Decimal("-1" + "0" * 50 + ".1"), None], pyarrow.decimal256(60, 1)),
    "time": pyarrow.array([datetime.time(7, 5), None], pyarrow.time64("ns")),
    "stay": pyarrow.array([datetime.timedelta(hours=36, seconds=5), None], pyarrow.duration("ns")),
    "naive": pyarrow.array([MOMENT, None], pyarrow.timestamp("us")),
    "utc": pyarrow.array([MOMENT.replace(tzinfo=UTC), None], pyarrow.timestamp("us", "UTC")),
    "berlin": pyarrow.array([MOMENT.replace(tzinfo=UTC), None], pyarrow.timestamp("ns", "Europe/Berlin")),
    "east": pyarrow.array([MOMENT.replace(tzinfo=UTC), None], pyarrow.timestamp("ms", "+05:30")),
    "uuid": pyarrow.array([uuid.UUID(int=7).bytes, None], pyarrow.uuid()),
    "big": pyarrow.array(["a, b", None], pyarrow.large_string()),
    "word": pyarrow.array(["x", None]).dictionary_encode(),
    "flag": pyarrow.array([True, None]),
    "none": pyarrow.nulls(2),
    "list": pyarrow.array([[1], None], pyarrow.list_(pyarrow.int64())),
    "map": pyarrow.array([[("a", 1)], None], pyarrow.map_(pyarrow.string(), pyarrow.int64())),
    "record": pyarrow.array([{"x": 1}, None], pyarrow.struct({"x": pyarrow.int64()})),
    "fixed": pyarrow.array([b"ab", None], pyarrow.binary(2)),
    "after": pyarrow.array([1, None]),
}
pyarrow.parquet.write_table(pyarrow.table(kinds), HERE / "kinds.parquet", store_decimal_as_integer=True)
pyarrow.parquet.write_table(
    pyarrow.table({"at": kinds["naive"]}), HERE / "int96.parquet", use_deprecated_int96_timestamps=True
)

# Indices of pandas: one with a name and one without, and one that is not stored.
frame = pandas.DataFrame({"n": [1, 2]})
index = pandas.MultiIndex.from_tuples([("p1", 5), ("p2", 6)], names=["patient", None])
frame.set_index(index).to_parquet(HERE / "pandas-names.parquet")
frame.to_parquet(HERE / "pandas-range.parquet")

# Types as polars writes them.
polars.DataFrame(
    {
        "time": [datetime.time(7, 5, 0, 250_000)],
        "stay": [datetime.timedelta(hours=36, seconds=5)],
        "tokyo": polars.Series([MOMENT]).dt.replace_time_zone("UTC").dt.convert_time_zone("Asia/Tokyo"),
        "word": polars.Series(["x"], dtype=polars.Categorical),
        "level": polars.Series(["low"], dtype=polars.Enum(["low", "high"])),
        "price": polars.Series([decimal.Decimal("1.50")], dtype=polars.Decimal(10, 2)),
        "raw": [b"ab"],
    }
).write_parquet(HERE / "polars-kinds.parquet")

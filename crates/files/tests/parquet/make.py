"""Writes the files of this folder with pyarrow and polars: the same table under every compression.

Usage: python make.py, with pyarrow and polars installed. The repository contains the files, so tests need neither.
"""

import datetime
from pathlib import Path

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

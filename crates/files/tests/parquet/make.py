"""Writes the files of this folder, as other programs write them: one table under every compression.

Usage: python make.py, with pyarrow and polars installed. The files are kept: tests need neither.
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
    # Several row groups, and pages of them, so that each is decompressed by itself.
    pyarrow.parquet.write_table(
        table,
        HERE / f"pyarrow-{compression}.parquet",
        compression=compression,
        row_group_size=ROWS // 2,
        use_dictionary=["ward"],
    )
# Zstandard unless another is asked for.
polars.from_arrow(table).write_parquet(HERE / "polars.parquet")

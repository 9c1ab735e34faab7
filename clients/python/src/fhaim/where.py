"""Conditions on drawn tables."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping


def conditions(where: Mapping[str, object] | str) -> str:
    """Converts conditions to the form that command and service read: a line of comma-separated
    values."""
    if isinstance(where, str):
        return where
    line = io.StringIO()
    fields = (f"{column}={'' if value is None else value}" for column, value in where.items())
    csv.writer(line, lineterminator="").writerow(fields)
    return line.getvalue()

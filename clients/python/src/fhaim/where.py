"""Conditions on what is drawn."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping


def conditions(where: Mapping[str, object] | str) -> str:
    """Conditions as command and service read them: one line of comma-separated values."""
    if isinstance(where, str):
        return where
    line = io.StringIO()
    fields = (f"{column}={'' if value is None else value}" for column, value in where.items())
    csv.writer(line, lineterminator="").writerow(fields)
    return line.getvalue()

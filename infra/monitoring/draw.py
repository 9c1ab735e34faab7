#!/usr/bin/env python3
"""Draws dashboard.json as one SVG, with data from a Prometheus server.

    python3 infra/monitoring/draw.py http://127.0.0.1:9090 --minutes 15 --out dashboard.svg

Use this script if there is no Grafana. Queries, titles and positions of the panels are the same as
in Grafana, but the drawing is simpler. A panel without data says so.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import time
import urllib.parse
import urllib.request
from html import escape
from pathlib import Path

HERE = Path(__file__).parent

# Width of one of the dashboard's 24 columns and height of one of its rows, in pixels.
COLUMN, ROW = 40, 30
MARGIN, TITLE, LEGEND = 10, 50, 13
MOST_LEGENDS = 8
# Longest name in a legend of two columns.
MOST_LETTERS = 30
COLOURS = ["#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#7f7f7f"]

# Pairs of a time in seconds since 1970 and a value.
Points = list[tuple[float, float]]


def ask(server: str, expression: str, start: float, end: float) -> list[dict]:
    """Returns the series of a query over a range of time."""
    step = max(1, int((end - start) / 200))
    words = {"query": expression, "start": start, "end": end, "step": step}
    address = f"{server}/api/v1/query_range?{urllib.parse.urlencode(words)}"
    with urllib.request.urlopen(address, timeout=30) as answer:
        return json.load(answer)["data"]["result"]


def label(legend: str, metric: dict[str, str]) -> str:
    if legend:
        return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda m: metric.get(m[1], ""), legend)
    return ", ".join(f"{k} {v}" for k, v in metric.items() if k != "__name__")


def series(panel: dict, server: str, start: float, end: float) -> list[tuple[str, Points]]:
    found = []
    for target in panel["targets"]:
        for one in ask(server, target["expr"], start, end):
            points = [(float(at), float(value)) for at, value in one["values"]]
            points = [point for point in points if math.isfinite(point[1])]
            if points:
                found.append((label(target.get("legendFormat", ""), one["metric"]), points))
    return found


def number(value: float) -> str:
    for factor, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor:
            return f"{value / factor:.3g}{sign}"
    return f"{value:.3g}"


def drawn(panel: dict, lines: list[tuple[str, Points]], start: float, end: float) -> str:
    place = panel["gridPos"]
    width, height = place["w"] * COLUMN - MARGIN, place["h"] * ROW - MARGIN
    # Two columns of legends, unless a name is too long for half the width.
    columns = 1 if any(len(name) > MOST_LETTERS for name, _ in lines[:MOST_LEGENDS]) else 2
    rows = -(-min(len(lines), MOST_LEGENDS) // columns)
    left, top, right, bottom = 55, 28, width - 12, height - 22 - LEGEND * rows
    values = [value for _, points in lines for _, value in points]
    least = min(0.0, *values, 0.0)
    most = max(0.0, *values, 0.0) or (1.0 if least == 0 else 0.0)

    def x(at: float) -> float:
        return left + (at - start) / (end - start) * (right - left)

    def y(value: float) -> float:
        return bottom - (value - least) / (most - least) * (bottom - top)

    out = [
        f'<g transform="translate({place["x"] * COLUMN + MARGIN},{place["y"] * ROW + TITLE})">',
        f'<rect width="{width}" height="{height}" fill="#fff" stroke="#ccc"/>',
        f'<text x="10" y="18" font-weight="bold">{escape(panel["title"])}</text>',
    ]
    if not lines:
        out.append(f'<text x="{left}" y="{(top + bottom) / 2}" fill="#888">no data</text>')
    for share in (0.0, 0.5, 1.0):
        value = least + (most - least) * share
        at = y(value)
        out.append(f'<path d="M{left} {at:.1f}H{right}" stroke="#eee"/>')
        text = number(value)
        out.append(f'<text x="{left - 5}" y="{at + 4:.1f}" text-anchor="end">{text}</text>')
        clock = time.strftime("%H:%M", time.gmtime(start + (end - start) * share))
        where = x(start + (end - start) * share)
        out.append(f'<text x="{where:.0f}" y="{bottom + 14}" text-anchor="middle">{clock}</text>')
    for index, (name, points) in enumerate(lines):
        colour = COLOURS[index % len(COLOURS)]
        path = " ".join(f"{x(at):.1f},{y(value):.1f}" for at, value in points)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.3"/>')
        if index < MOST_LEGENDS:
            column, row = index % columns, index // columns
            where = (left + column * (right - left) / 2, bottom + 28 + row * LEGEND)
            last = number(points[-1][1])
            text = escape(f"{name[:48]}: {last}")
            out.append(f'<text x="{where[0]:.0f}" y="{where[1]:.0f}" fill="{colour}">{text}</text>')
    out.append("</g>")
    return "\n".join(out)


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("server", help="address of a Prometheus server that scrapes the services")
    words.add_argument("--minutes", type=float, default=30, help="range of time up to now [30]")
    words.add_argument("--out", type=Path, default=Path("dashboard.svg"))
    given = words.parse_args()
    end = time.time()
    start = end - given.minutes * 60
    panels = json.loads((HERE / "dashboard.json").read_text())["panels"]
    bodies, empty = [], []
    for panel in panels:
        lines = series(panel, given.server.rstrip("/"), start, end)
        bodies.append(drawn(panel, lines, start, end))
        if not lines:
            empty.append(panel["title"])
    right = max(p["gridPos"]["x"] + p["gridPos"]["w"] for p in panels) * COLUMN + MARGIN
    bottom = max(p["gridPos"]["y"] + p["gridPos"]["h"] for p in panels) * ROW + TITLE
    day = time.strftime("%Y-%m-%d %H:%M", time.gmtime(end))
    head = f"dashboard.json over {given.minutes:g} minutes until {day} UTC, drawn by draw.py"
    given.out.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{right}" height="{bottom}" '
        'font-family="sans-serif" font-size="11">\n'
        f'<rect width="{right}" height="{bottom}" fill="#f4f5f7"/>\n'
        f'<text x="{MARGIN}" y="30" font-size="16">{head}</text>\n' + "\n".join(bodies) + "\n</svg>\n"
    )
    print(f"{given.out}: {len(panels)} panels, {len(empty)} without data {empty or ''}".rstrip())


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Checks that the services export all metrics that alerts.yaml and dashboard.json use."""

import json
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent

# Metrics of the collector itself.
OTHERS = {"up"}
WORDS = {"sum", "by", "rate", "increase", "histogram_quantile", "and", "le", "abs"}


def written() -> set[str]:
    found = set()
    for folder in ("crates/platform/src", "services"):
        for path in (ROOT / folder).rglob("*.rs"):
            text = path.read_text()
            pattern = r"metrics::(counter|gauge|histogram)!\(\s*\"([a-z_]+)\""
            for kind, name in re.findall(pattern, text):
                names = {name + end for end in ("_bucket", "_sum", "_count")}
                found |= names if kind == "histogram" else {name}
    return found


def asked(expression: str) -> set[str]:
    bare = re.sub(r"\{[^}]*\}|\[[^]]*\]|by \([^)]*\)", "", expression)
    return set(re.findall(r"[a-z_]{2,}", bare)) - WORDS - OTHERS


def main() -> int:
    alerts = re.findall(r"^\s+expr: (.*)$", (HERE / "alerts.yaml").read_text(), re.MULTILINE)
    dashboard = json.loads((HERE / "dashboard.json").read_text())
    panels = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    wrong = 0
    for expression in alerts + panels:
        for name in sorted(asked(expression) - written()):
            print(f"no service exports the metric {name}: {expression}", file=sys.stderr)
            wrong += 1
    if not wrong:
        print(f"ok: services export all metrics of {len(alerts)} rules and {len(panels)} queries")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Stores results of long runs, and writes the tables and plots of docs/research from them.

    python3 research/chapters.py store NAME [--program FHAIM-LAB] -- bench federated adult --method aim --seeds 10
    python3 research/chapters.py store NAME --program python3 -- research/bench/fhaim_phases.py FHAIM TABLES
    python3 research/chapters.py write
    python3 research/chapters.py check

`store` runs `fhaim-lab`, or another program, with these arguments and `--json`, and writes research/results/NAME.json: the command, the
program's version, the date, the seconds, and the rows that the command printed, which have their seeds.

In a chapter, the lines between

    <!-- table CHAPTER.FUNCTION -->
    <!-- end -->

are the text that FUNCTION in research/tables/CHAPTER.py returns. `write` replaces them; `check` fails if one differs.
The function gets a `Results`, whose items are the stored results by name. It may write an SVG with `results.plot`."""

import argparse
import datetime
import importlib
import json
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "research" / "results"
CHAPTERS = ROOT / "docs" / "research"
BLOCK = re.compile(r"(<!-- table (\w+)\.(\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


class Results:
    """Stored results, and the plots that are made from them."""

    def __init__(self):
        self.plots = {}

    def __getitem__(self, name):
        path = RESULTS / f"{name}.json"
        if not path.exists():
            raise SystemExit(f"{path} is missing: store it with the command in its chapter")
        return json.loads(path.read_text())

    def rows(self, *names):
        """Returns the rows of these results, in order."""
        return [row for name in names for row in self[name]["rows"]]

    def plot(self, name, svg):
        """Keeps an SVG as docs/research/NAME.svg. Returns the Markdown that shows it."""
        self.plots[CHAPTERS / f"{name}.svg"] = svg
        return f"![{name}]({name}.svg)\n"


def printed_rows(text):
    """Returns the rows of a command's JSON: one array, or one object in each line."""
    try:
        read = json.loads(text)
    except json.JSONDecodeError:
        read = [json.loads(line) for line in text.splitlines() if line.strip()]
    return read if isinstance(read, list) else [read]


def store(name, program, arguments):
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    commit = subprocess.run(
        ["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    began = time.monotonic()
    done = subprocess.run([program, *arguments, "--json"], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)} failed with exit code {done.returncode}; nothing was stored")
    result = {
        "command": " ".join([pathlib.Path(program).name, *arguments]),
        "program": version.stdout.strip(),
        "commit": commit.stdout.strip(),
        "date": datetime.date.today().isoformat(),
        "seconds": round(time.monotonic() - began, 1),
        "rows": printed_rows(done.stdout),
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")


def written(path, results):
    """Returns the text of a chapter with its tables."""

    def table(found):
        module = importlib.import_module(f"tables.{found[2]}")
        return found[1] + getattr(module, found[3])(results).rstrip("\n") + "\n" + found[4]

    return BLOCK.sub(table, path.read_text())


def chapters(is_check):
    results = Results()
    texts = {path: written(path, results) for path in sorted(CHAPTERS.glob("*.md"))}
    changed = []
    for path, text in (texts | results.plots).items():
        if not path.exists() or path.read_text() != text:
            changed.append(str(path.relative_to(ROOT)))
            if not is_check:
                path.write_text(text)
    if is_check and changed:
        raise SystemExit(f"run python3 research/chapters.py write: {', '.join(changed)} differ from the results")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    commands = parser.add_subparsers(dest="command", required=True)
    storing = commands.add_parser("store", help="run a command and store its results")
    storing.add_argument("name")
    storing.add_argument("--program", default="fhaim-lab")
    storing.add_argument("arguments", nargs="+")
    commands.add_parser("write", help="write tables and plots into the chapters")
    commands.add_parser("check", help="fail if a chapter differs from its results")
    given = parser.parse_args()
    if given.command == "store":
        store(given.name, given.program, given.arguments)
    else:
        sys.path.insert(0, str(ROOT / "research"))
        chapters(given.command == "check")


if __name__ == "__main__":
    main()

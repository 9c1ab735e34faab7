#!/usr/bin/env python3
"""Counts code, tests, types and other items of the repository, at one or two revisions.

    research/bench/inventory.py [BEFORE] [AFTER]

For every crate: lines of code, lines of tests, public types, and flags of its commands. For the repository: parameter
sets, fields of the terms, options of `staged`, version constants, migrations, golden folders, and commands of `fhaim`.
Blank lines and comments do not count. The default of AFTER is the work tree.
"""

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


class Tree:
    """The files of a revision, or of the work tree."""

    def __init__(self, revision: str | None):
        self.revision = revision
        listed = ["ls-tree", "-r", "--name-only", revision] if revision else ["ls-files"]
        self.files = git(*listed).splitlines()

    def read(self, path: str) -> str:
        if self.revision:
            return git("show", f"{self.revision}:{path}")
        return (ROOT / path).read_text()

    def all(self, suffix: str) -> dict[str, str]:
        """Returns the texts of all files with a suffix, with a single call of git."""
        paths = [path for path in self.files if path.endswith(suffix)]
        if not self.revision:
            return {path: self.read(path) for path in paths if (ROOT / path).is_file()}
        asked = "".join(f"{self.revision}:{path}\n" for path in paths)
        answer = subprocess.run(
            ["git", "cat-file", "--batch"], cwd=ROOT, check=True, capture_output=True, input=asked.encode()
        ).stdout
        texts, at = {}, 0
        for path in paths:
            end = answer.index(b"\n", at)
            size = int(answer[at:end].split()[2])
            texts[path] = answer[end + 1 : end + 1 + size].decode()
            at = end + 2 + size
        return texts


def lines(text: str) -> int:
    code = (line.strip() for line in text.splitlines())
    return sum(1 for line in code if line and not line.startswith("//"))


def crate(path: str, crates: list[str]) -> str | None:
    """Returns the innermost crate that a file belongs to."""
    return max((name for name in crates if path.startswith(f"{name}/")), key=len, default=None)


def count(tree: Tree) -> tuple[dict[str, list[int]], dict[str, int]]:
    """Returns the counts of each crate (code, tests, public types, flags), and those of the repository."""
    texts = tree.all(".rs")
    crates = [path.removesuffix("/Cargo.toml") for path in tree.files if path.endswith("/Cargo.toml")]
    rows: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for path, text in texts.items():
        name = crate(path, crates)
        if name is None:
            continue
        code, _, tests = text.partition("#[cfg(test)]\nmod tests {")
        within = path.removeprefix(f"{name}/")
        is_test = within.startswith(("tests/", "benches/", "examples/")) or within.endswith("/tests.rs")
        is_test = is_test or name.startswith(("tests/", "compat", "fuzz"))
        row = rows[name]
        row[1 if is_test else 0] += lines(code)
        row[1] += lines(tests)
        if not is_test:
            row[2] += len(re.findall(r"^pub (?:struct|enum|trait|type) ", code, re.M))
            row[3] += len(re.findall(r"#\[arg\((?:[^()]|\([^()]*\))*\blong\b", code))
    whole = {
        "parameter sets": len(re.findall(r"^pub const \w+: ParameterSet = ", find(texts, "he/src/scheme/params.rs"), re.M)),
        "fields of the terms": fields(find(texts, "protocol/src/terms.rs"), "Terms"),
        "options of staged": fields(find(texts, "synth/src/mechanisms/staged/options.rs"), "StagedOptions"),
        "version constants": sum(
            len(re.findall(r"const \w*VERSION: \w+ = \d", text)) for path, text in texts.items() if "compat" not in path
        ),
        "migrations": sum(1 for path in tree.files if path.startswith("migrations/") and path.endswith(".sql")),
        "golden folders": len({p.split("/")[1] for p in tree.files if re.match(r"compat/(?!tests)[^/]+/", p)}),
        "commands of fhaim": variants(find(texts, "crates/cli/src/args.rs"), "Command")
        + variants(find(texts, "crates/cli/src/server.rs"), "ServerCommand"),
    }
    return rows, whole


def find(texts: dict[str, str], end: str) -> str:
    return next((text for path, text in texts.items() if path.endswith(end)), "")


def body(text: str, kind: str, name: str) -> str:
    found = re.search(rf"^pub {kind} {name}\b[^{{]*\{{\n(.*?)^\}}", text, re.M | re.S)
    return found.group(1) if found else ""


def fields(text: str, name: str) -> int:
    return len(re.findall(r"^    (?:pub(?:\([^)]*\))? )\w+: ", body(text, "struct", name), re.M))


def variants(text: str, name: str) -> int:
    return len(re.findall(r"^    [A-Z]\w*[({,]", body(text, "enum", name), re.M))


def main() -> None:
    revisions: list[str | None] = [*sys.argv[1:3]]
    if len(revisions) < 2:
        revisions.append(None)
    counted = [count(Tree(revision)) for revision in revisions]
    names = sorted({name for rows, _ in counted for name in rows})
    head = ["code", "tests", "public types", "flags"]
    print("| crate | " + " | ".join(head) + " |")
    print("|---|" + "---|" * len(head))
    for name in names:
        cells = []
        for column in range(len(head)):
            values = [rows[name][column] if name in rows else "-" for rows, _ in counted]
            cells.append(" → ".join(f"{value:,}" if value != "-" else "-" for value in values))
        print(f"| {name} | " + " | ".join(cells) + " |")
    sums = [[sum(row[column] for row in rows.values()) for rows, _ in counted] for column in range(len(head))]
    print("| all | " + " | ".join(" → ".join(f"{value:,}" for value in values) for values in sums) + " |")
    print()
    print("| repository | " + " | ".join(str(revision or "work tree") for revision in revisions) + " |")
    print("|---|" + "---|" * len(revisions))
    for name in counted[0][1]:
        print(f"| {name} | " + " | ".join(str(whole[name]) for _, whole in counted) + " |")


if __name__ == "__main__":
    main()

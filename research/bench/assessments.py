#!/usr/bin/env python3
"""Compares the assessment of `fhaim evaluate` with the scores of other programs, on tables with a constructed error each.

    FHAIM_CASES_DIR=DIR cargo test -p fhaim-eval --test it write_cases -- --include-ignored
    research/bench/assessments.py DIR --fhaim PROGRAM --sdmetrics PYTHON --mostlyai PYTHON --synthcity PYTHON

Each PYTHON is the interpreter of a separate environment: `sdmetrics==0.32.*`, `mostlyai-qa==1.10.*`, and
`synthcity==0.2.12 opacus==1.4.1`. Prints a row for each case: the first finding of fhaim, and the scores of the others with
their change from the second real sample.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

CASES = ["second", "shuffled", "rate", "xor", "copies", "spike", "step", "order", "scale", "tail"]


def kinds(folder):
    """The kind of each column, from the schema."""
    columns = json.loads((folder / "schema.json").read_text())["columns"]
    return {column["name"]: column["kind"] for column in columns}


def sdmetrics(folder):
    """Overall scores of the quality report and of the diagnostic report, in percent."""
    import pandas as pd
    from sdmetrics.reports.single_table import DiagnosticReport, QualityReport

    types = {"number": {"sdtype": "numerical"}, "date": {"sdtype": "datetime", "datetime_format": "%Y-%m-%d"}}
    columns = {name: types.get(kind, {"sdtype": "categorical"}) for name, kind in kinds(folder).items()}
    real = pd.read_csv(folder / "real.csv")
    for case in CASES:
        synthetic = pd.read_csv(folder / f"{case}.csv")
        scores = []
        for report in (QualityReport(), DiagnosticReport()):
            report.generate(real.copy(), synthetic.copy(), {"columns": columns}, verbose=False)
            scores.append(100 * report.get_score())
        yield case, scores


def mostlyai(folder):
    """Overall accuracy in percent, and share of identical records in percent."""
    import pandas as pd
    from mostlyai import qa

    real = pd.read_csv(folder / "real.csv")
    for case in CASES:
        with tempfile.TemporaryDirectory() as reports:
            _, metrics = qa.report(
                syn_tgt_data=pd.read_csv(folder / f"{case}.csv"),
                trn_tgt_data=real,
                report_path=Path(reports) / "report.html",
            )
        yield case, [100 * metrics.accuracy.overall, 100 * metrics.distances.ims_training]


def synthcity(folder):
    """Jensen-Shannon distance, and authenticity of alpha-precision, in percent. Missing values become medians."""
    import pandas as pd
    from synthcity.metrics.eval_statistical import AlphaPrecision, JensenShannonDistance
    from synthcity.plugins.core.dataloader import GenericDataLoader

    real = pd.read_csv(folder / "real.csv")
    for case in CASES:
        table = pd.concat([real, pd.read_csv(folder / f"{case}.csv")], ignore_index=True)
        for name in table.columns[table.dtypes == object]:
            table[name] = table[name].astype("category").cat.codes
        table = table.fillna(table.median())
        parts = [table.iloc[: len(real)], table.iloc[len(real) :]]
        loaders = [GenericDataLoader(part.reset_index(drop=True)) for part in parts]
        distance = JensenShannonDistance().evaluate(*loaders)["marginal"]
        precision = AlphaPrecision().evaluate(*loaders)["authenticity_OC"]
        yield case, [100 * float(distance), 100 * float(precision)]


OTHERS = {
    "sdmetrics": (sdmetrics, ["SDMetrics quality", "diagnostic"]),
    "mostlyai": (mostlyai, ["mostlyai-qa accuracy", "identical"]),
    "synthcity": (synthcity, ["synthcity Jensen-Shannon", "authenticity"]),
}


def scores(name, python, folder):
    """The scores of another program for each case, from its own environment."""
    words = [python, __file__, str(folder), "--inside", name]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def finding(program, folder, case):
    """Number of findings, and the first one."""
    words = [program, "evaluate", "--real", "real.csv", "--synthetic", f"{case}.csv", "--schema", "schema.json", "--json"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        return "refused: " + done.stderr.splitlines()[0].removeprefix("error: ").split(";")[0]
    findings = json.loads(done.stdout)["assessment"]["findings"]
    return f"{len(findings)}: {findings[0]['text']}" if findings else "none"


def row(cells):
    print("| " + " | ".join(cells) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--fhaim", default="fhaim")
    for name in OTHERS:
        parser.add_argument(f"--{name}", metavar="PYTHON")
    parser.add_argument("--inside", choices=OTHERS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    if arguments.inside:
        print(json.dumps(dict(OTHERS[arguments.inside][0](folder))))
        return
    given = {name: vars(arguments)[name] for name in OTHERS if vars(arguments)[name]}
    found = {name: scores(name, python, folder) for name, python in given.items()}
    heads = ["case", "findings of fhaim", *(head for name in given for head in OTHERS[name][1])]
    row(heads)
    row(["---"] * len(heads))
    for case in CASES:
        cells = [case, finding(arguments.fhaim, folder, case)]
        for of in found.values():
            for score, second in zip(of[case], of["second"]):
                cells.append(f"{score:.1f}" if case == "second" else f"{score:.1f} ({score - second:+.1f})")
        row(cells)


if __name__ == "__main__":
    sys.exit(main())

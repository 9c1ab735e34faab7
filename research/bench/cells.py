"""Compares `staged` with other mechanisms (anchors), cell by cell, and resumes interrupted runs.

    FHAIM_DATA_DIR=data python3 research/bench/cells.py cells --table compas --family tree --epsilon 1 10 --seeds 3
    python3 research/bench/cells.py cells --report

A cell is a table or family at a budget. In each cell, `staged` runs at every --cap, and AIM (T = 16d) at --anchor-mb. The
1-ways and MST run without a cap, which does not affect their models. With --swift COMMAND, such as
"python3 research/bench/anchor.py swift", SWIFT runs as well (dpsynth must be installed).

Each run is a process of `fhaim-lab bench mechanisms --json`, and the given folder keeps its rows. Existing results are not
measured again, so a folder is for one number of seeds. With --minutes, a process that takes longer is killed, and its file
and the report say so.

The report has the mean L1 error of all pairs and its standard error. It then compares `staged` at its largest cap with the
anchor of the smallest mean. All mechanisms see the same rows for the same seed, so differences are per seed. "misses" means
that `staged` is worse by more than two standard errors of the difference; "ahead" means that it is better by at least a tenth
of the anchor's error. A cell without AIM, the strongest anchor, has no verdict.
"""

import argparse
import json
import os
import pathlib
import signal
import statistics
import subprocess

FHAIM_LAB = os.environ.get("FHAIM_LAB_BIN", "fhaim-lab")
STAGED = "staged"
AIM = "aim, T = 16d"


def contenders(flags):
    """Yields the runs of each cell: a name for the file, the flags, and the cap in MB."""
    yield "one-ways", ["--mechanism", "one-ways"], 1
    yield "mst", ["--mechanism", "mst"], 1
    for cap in flags.cap:
        yield f"staged-{cap:g}", ["--mechanism", STAGED], cap
    yield "aim", ["--mechanism", AIM], flags.anchor_mb
    if flags.swift:
        yield "swift", ["--program", f"swift={flags.swift}"], flags.anchor_mb


def measure(flags):
    """Runs the cells whose results are missing in the folder, by contender, with the costly ones last."""
    flags.folder.mkdir(exist_ok=True)
    subjects = [(name, [name]) for name in flags.table] + [(name, ["--family", name]) for name in flags.family]
    for label, chosen, cap in contenders(flags):
        for epsilon in flags.epsilon:
            for name, subject in subjects:
                path = flags.folder / f"{name}.{epsilon:g}.{label}.json"
                if path.exists():
                    continue
                numbers = ["--epsilon", epsilon, "--seeds", flags.seeds, "--model-mb", cap]
                command = [FHAIM_LAB, "bench", "mechanisms", *subject, *chosen, *map(str, numbers), "--json"]
                path.write_text(output(command, flags.minutes))


def output(command, minutes):
    """Returns the output of the bench, or an object with the minutes after which it was killed."""
    limit = minutes and minutes * 60
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as run:
        try:
            printed, _ = run.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            # The programs that the bench runs are in its session, so they are killed too.
            os.killpg(run.pid, signal.SIGKILL)
            return json.dumps({"ended_after_minutes": minutes})
        except BaseException:
            os.killpg(run.pid, signal.SIGKILL)
            raise
    if run.returncode:
        raise SystemExit(run.returncode)
    return printed


def cells(folder):
    """Returns the rows of each cell (table and budget), by name and cap."""
    found = {}
    for path in sorted(folder.glob("*.json")):
        rows = json.loads(path.read_text())
        if isinstance(rows, dict):
            print(f"{path.stem}: ended after {rows['ended_after_minutes']:g} min\n")
            continue
        for row in rows:
            if "refused" in row:
                print(f"{path.stem}: {row['mechanism']}: {row['refused']}\n")
                continue
            cell = found.setdefault((row["dataset"], row["epsilon"]), {})
            cap = row["model_bytes"] / 1e6 if row["mechanism"] in (STAGED, AIM) else None
            cell[row["mechanism"], cap] = row
    return dict(sorted(found.items(), key=lambda item: (item[0][1], item[0][0])))


def figure(row):
    """Formats a mean and its standard error as in the documents."""
    error = row["pairs"]["standard_error"]
    return f"{row['pairs']['mean']:.4f}" + (f" ± {error:.4f}" if error is not None else "")


def seeds(row):
    return {trial["seed"]: trial["pairs"] for trial in row["trials"]}


def verdict(cell):
    """Compares `staged` at its largest cap with the best anchor. Returns the anchor, the difference and the verdict."""
    caps = [cap for name, cap in cell if name == STAGED]
    anchors = [key for key in cell if key[0] != STAGED]
    if not caps or not any(name == AIM for name, _ in anchors):
        return None
    ours = seeds(cell[STAGED, max(caps)])
    best = min(anchors, key=lambda key: cell[key]["pairs"]["mean"])
    theirs = seeds(cell[best])
    differences = [ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())]
    if len(differences) < 2:
        return None
    mean = statistics.mean(differences)
    error = statistics.stdev(differences) / len(differences) ** 0.5
    if mean > 2 * error:
        word = "misses"
    else:
        word = "ahead" if -mean >= 0.1 * cell[best]["pairs"]["mean"] else "level"
    return best[0], mean, error, word


def report(folder):
    """Prints a line per cell, and the number of cells by verdict."""
    found = cells(folder)
    keys = {key for cell in found.values() for key in cell}
    columns = sorted(keys, key=lambda key: (key[0] != STAGED, key[0], key[1] or 0))
    heads = [name + (f", {cap:g} MB" if cap else "") for name, cap in columns]
    print("|", " | ".join(["table", "epsilon", *heads, "staged - best anchor", "verdict"]), "|")
    print("|" + "---|" * (len(columns) + 4))
    count = {}
    for (name, epsilon), cell in found.items():
        line = [name, f"{epsilon:g}", *(figure(cell[key]) if key in cell else "" for key in columns)]
        compared = verdict(cell)
        if compared:
            best, mean, error, word = compared
            count[word] = count.get(word, 0) + 1
            line += [f"{mean:+.4f} ± {error:.4f} ({best})", word]
        else:
            line += ["", ""]
        print("|", " | ".join(line), "|")
    print(", ".join(f"{word}: {number}" for word, number in sorted(count.items())))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--table", nargs="+", default=[], help="published tables in FHAIM_DATA_DIR")
    parser.add_argument("--family", nargs="+", default=[])
    parser.add_argument("--epsilon", nargs="+", type=float, default=[0.1, 1.0, 10.0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--cap", nargs="+", type=float, default=[1.0, 8.0, 80.0], help="caps of the model of staged, in MB")
    parser.add_argument("--anchor-mb", type=float, default=80.0)
    parser.add_argument("--swift", metavar="COMMAND")
    parser.add_argument("--minutes", type=float, help="kill a process that takes longer")
    parser.add_argument("--report", action="store_true", help="print the report without measuring")
    flags = parser.parse_args()
    if not flags.report:
        measure(flags)
    report(flags.folder)


if __name__ == "__main__":
    main()

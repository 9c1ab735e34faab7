"""Tests the wheel as its users see it. test_wheel.sh passes the address of `fhaim up` and an API
key."""

from __future__ import annotations

import datetime
import random
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import fhaim
import pandas
import polars
import pyarrow

RECORDS = 2000
WARDS = ["north", "south", "west"]


def fail(reason: str) -> NoReturn:
    print(f"FAILED: {reason}", file=sys.stderr)
    sys.exit(1)


def check(what: str, holds: bool) -> None:
    if not holds:
        fail(what)
    print(f"ok: {what}", flush=True)


def refused(what: str, words: str, call: Callable[[], object]) -> None:
    try:
        call()
    except fhaim.Error as error:
        check(f"{what}: {error}", words in str(error))
    else:
        fail(f"{what}: was not refused")


def columns() -> dict[str, list[Any]]:
    """Women are older and more often in the north, and some weights are missing."""
    draw = random.Random(7)
    rows = []
    for _ in range(RECORDS):
        woman = draw.random() < 0.5
        ward = draw.choices(WARDS, [6, 2, 2] if woman else [2, 4, 4])[0]
        weight = None if draw.random() < 0.05 else round(draw.gauss(65 if woman else 80, 9), 1)
        rows.append(("female" if woman else "male", ward, draw.randint(50 if woman else 20, 80), weight))
    names = ["sex", "ward", "age", "weight"]
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


TABLES: dict[str, Callable[[dict[str, list[Any]]], Any]] = {
    "pandas": pandas.DataFrame,
    "polars": polars.DataFrame,
    "pyarrow": pyarrow.table,
}


def share(table: Any, column: str, value: object) -> float:
    """Returns the share of a value in a table of any library."""
    of = table[column]
    values: list[object] = of.to_pylist() if isinstance(table, pyarrow.Table) else of.to_list()
    return values.count(value) / len(values)


def alike(what: str, library: str, drawn: Any) -> None:
    check(f"{what}: a table of {library} comes back", type(drawn).__module__.startswith(library))
    check(f"{what}: half are women", abs(share(drawn, "sex", "female") - 0.5) < 0.1)


def locally() -> None:
    for library, make in TABLES.items():
        table = make(columns())
        schema = fhaim.Schema.draft(table, name="wards")
        told: list[str] = []
        model = fhaim.Synthesizer(schema, epsilon=5).fit(
            table, progress=lambda phase, done, total: told.append(phase), yes=library != "pandas"
        )
        alike("a fit in this process", library, model.sample(1000))
        check("progress is reported", len(told) > 0)
        northern = model.sample(300, where={"ward": "north"})
        check("conditions are met", share(northern, "ward", "north") == 1.0)
        check("the ledger is there", len(model.ledger_) > 0)
        with tempfile.TemporaryDirectory() as folder:
            model.save(Path(folder) / "wards.fhaim")
            again = fhaim.Synthesizer.load(Path(folder) / "wards.fhaim")
            alike("a saved model", library, again.sample(500))
        report = fhaim.evaluate(table, model.sample(1000), schema)
        check("the report has an assessment", bool(report.values["assessment"]["summary"]))
    table = TABLES["pandas"](columns())
    stops("a second fit", fhaim.Synthesizer(schema, epsilon=5).fit, table.sort_values("age"))
    stops("a private draft of used records", fhaim.Schema.draft, table, epsilon=1)
    encrypted = fhaim.Synthesizer(schema, epsilon=5, encrypted=True).fit(table, yes=True)
    alike("a fit on ciphertexts", "pandas", encrypted.sample(1000))


def stops(what: str, call: Callable[..., object], *arguments: object, **named: object) -> None:
    """Checks that a call over records that were used before warns of their cost and stops."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call(*arguments, **named)
        except fhaim.Error as error:
            check(f"{what}: {error}", error.kind == "used-before" and "add yes=True" in str(error))
        else:
            fail(f"{what}: was not refused")
    told = " ".join(str(one.message) for one in caught)
    check(f"{what}: {told}", "the privacy costs add up" in told)


TYPED: dict[str, Any] = {
    "name": "typed",
    "columns": [
        {"name": "sick", "kind": "categorical", "categories": ["false", "true"]},
        {"name": "born", "kind": "date", "format": "%Y-%m-%d", "min": "2024-01-01", "max": "2024-12-31", "bins": 12},
        {
            "name": "seen",
            "kind": "datetime",
            "format": "%Y-%m-%d %H:%M:%S",
            "min": "2024-01-01",
            "max": "2024-12-31",
            "bins": 12,
            "unit": "day",
        },
        {
            "name": "waited",
            "kind": "duration",
            "format": "%-H:%M:%S",
            "min": "0:00:00",
            "max": "25:00:00",
            "bins": 25,
        },
    ],
}


def types() -> None:
    """Synthetic tables have the types of the table. Remarks name columns that are not read."""
    draw = random.Random(3)
    start = datetime.datetime(2024, 1, 1)
    table = pyarrow.table(
        {
            "sick": [draw.random() < 0.5 for _ in range(RECORDS)],
            "born": [(start + datetime.timedelta(days=draw.randrange(300))).date() for _ in range(RECORDS)],
            "seen": [start + datetime.timedelta(seconds=draw.randrange(9_000_000)) for _ in range(RECORDS)],
            "waited": [datetime.timedelta(seconds=draw.randrange(90_000)) for _ in range(RECORDS)],
            "codes": [["a", "b"]] * RECORDS,
        }
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fhaim.Synthesizer(TYPED, epsilon=5).fit(table)
    told = [str(one.message) for one in caught]
    check("lists are left out with a warning", any('"codes" (lists)' in text for text in told))
    drawn = model.sample(100)
    kinds = {name: str(drawn.schema.field(name).type) for name in drawn.schema.names}
    expected = {"sick": "bool", "born": "date32[day]", "seen": "timestamp[ms]", "waited": "duration[ms]"}
    check(f"types are kept: {kinds}", kinds == expected)
    frame = pandas.DataFrame(columns())
    named = frame.set_index(pandas.Index([f"P{row:04}" for row in range(RECORDS)], name="patient"))
    names = [column["name"] for column in fhaim.Schema.draft(named).to_dict()["columns"]]
    check("a named index of pandas is a column", sorted(names) == sorted([*frame.columns, "patient"]))


def rules() -> None:
    """A rule that holds in all records is proposed. Once accepted, it holds in synthetic tables."""
    table = pandas.DataFrame(columns())
    table["region"] = table["ward"]
    draft = fhaim.Schema.draft(table)
    proposed = [rule for rule in draft.rules if set(rule.columns) == {"ward", "region"}]
    check(f"an equal column is proposed: {[rule.text for rule in draft.rules]}", len(proposed) == 1)
    check("it is supported by all records", proposed[0].records == RECORDS)
    kinds = {column["kind"] for column in draft.to_dict()["columns"]}
    check("a draft has no rule that was not accepted", "derived" not in kinds)
    schema = draft.accept(*proposed)
    check("accepted rules are no proposals", proposed[0] not in schema.rules)
    drawn = fhaim.Synthesizer(schema, epsilon=5).fit(table).sample(500)
    check("the rule holds in a synthetic table", bool((drawn["ward"] == drawn["region"]).all()))
    other = fhaim.Schema.draft(table, leave_out=["ward", "region"])
    refused("a rule about another schema", "ward", lambda: other.accept(*proposed))


def wrong_input() -> None:
    table = pandas.DataFrame(columns())
    refused("no schema", "no schema", lambda: fhaim.Synthesizer().fit(table))
    schema = fhaim.Schema.draft(table)
    other = table.assign(ward=["east", *table["ward"][1:]])
    refused("an unknown category", "east", lambda: fhaim.Synthesizer(schema).fit(other))
    refused("its way out", "other", lambda: fhaim.Synthesizer(schema).fit(other))
    far = table.assign(age=[900, *table["age"][1:]])
    refused("a flag's name", "clamp=True", lambda: fhaim.Synthesizer(schema).fit(far))
    refused("a list is not a table", "not a table", lambda: fhaim.Synthesizer(schema).fit([1, 2]))  # type: ignore[arg-type]
    refused("epsilon", "epsilon", lambda: fhaim.Synthesizer(schema, epsilon=-1).fit(table))
    unfitted = fhaim.Synthesizer(schema)
    refused("nothing was fitted", "no model", lambda: unfitted.sample(1))
    refused("a schema's file", "no/such", lambda: fhaim.Synthesizer("no/such.json").fit(table))


def with_services(address: str, key: str) -> None:
    client = fhaim.Client(address, api_key=key)
    for library, make in TABLES.items():
        table = make(columns())
        schema = fhaim.Schema.draft(table, name="wards")
        told: dict[int, int] = {}
        dataset = client.upload(table, schema, epsilon=5, progress=told.__setitem__, yes=True)
        check("objects are counted", max(told) == told[max(told)] > 0)
        alike("a run of the services", library, client.run(dataset).wait().sample(1000))
        client.delete_dataset(dataset)
    stops("an upload of used records", client.upload, table, schema, epsilon=5)
    dataset = client.upload(table, schema, epsilon=5, witness=True, yes=True)
    (copy,) = client.witness.show(dataset.id).contributions
    check("the second computation service has a copy", copy.state == "complete")
    alike("a run that two services agree on", library, client.run(dataset).wait().sample(1000))
    client.delete_dataset(dataset)


INTERRUPTED = """
    import sys, threading, fhaim, pandas
    client = fhaim.Client(sys.argv[1], api_key=sys.argv[2])
    table = pandas.read_csv(sys.argv[3])
    dataset = client.create_dataset(sys.argv[4], epsilon=1, record_bound=200_000)
    print(dataset.id, flush=True)
    told = lambda done, total: print("told", flush=True)
    try:
        client.upload(dataset, table, progress=told, state=sys.argv[5])
    except KeyboardInterrupt:
        sys.exit(42)
"""


def interrupted(address: str, key: str) -> None:
    """Presses Ctrl-C while a large table is encrypted, then resumes the upload."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = pandas.concat([pandas.DataFrame(columns())] * 60)
        table.to_csv(folder / "large.csv", index=False)
        schema = fhaim.Schema.draft(table, name="large")
        schema.save(folder / "large.json")
        files = [str(folder / part) for part in ("large.csv", "large.json", "state")]
        command = [sys.executable, "-c", textwrap.dedent(INTERRUPTED), address, key, *files]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            dataset = child.stdout.readline().strip()
            check("something is sent before Ctrl-C", child.stdout.readline() == "told\n")
            child.send_signal(signal.SIGINT)
            began = time.monotonic()
            check("Ctrl-C ends an upload", child.wait(timeout=60) == 42)
            print(f"it took {time.monotonic() - began:.1f} s to end")
        client = fhaim.Client(address, api_key=key)
        check("the dataset is not ready", client.dataset(dataset).state != "ready")
        done = client.upload(dataset, table, state=folder / "state")
        check("the same upload is resumed and completed", done.state == "ready")
        client.delete_dataset(done)


def main() -> None:
    address, key = sys.argv[1:]
    # The same records are used repeatedly here, which causes warnings.
    warnings.simplefilter("ignore")
    locally()
    types()
    rules()
    wrong_input()
    with_services(address, key)
    interrupted(address, key)


main()

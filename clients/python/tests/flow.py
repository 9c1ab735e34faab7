"""A user's session with `fhaim up`. test.sh passes its address and the first account."""

from __future__ import annotations

import csv
import random
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

import fhaim
from fhaim.models import Dataset, HappeningPhase, Job, JobEvent

COLUMNS: dict[str, Sequence[object]] = {
    "sex": ["female", "male"],
    "ward": ["north", "south", "west"],
    "age": range(20, 81),
}
RECORDS = 500


def fail(reason: str) -> NoReturn:
    print(f"FAILED: {reason}", file=sys.stderr)
    sys.exit(1)


def check(what: str, holds: bool) -> None:
    if not holds:
        fail(what)
    print(f"ok: {what}", flush=True)


def refused(what: str, kind: str, call: Callable[[], object]) -> None:
    try:
        call()
    except fhaim.Error as error:
        check(f"{what}: {error}", error.kind == kind)
    else:
        fail(f"{what}: was not refused")


def schema() -> dict[str, object]:
    return {
        "name": "wards",
        "columns": [
            {"name": "sex", "kind": "categorical", "categories": COLUMNS["sex"]},
            {"name": "ward", "kind": "categorical", "categories": COLUMNS["ward"]},
            {"name": "age", "kind": "numeric", "min": 20, "max": 80, "bins": 6, "integer": True},
        ],
    }


def write_table(path: Path) -> None:
    """A table in which women are older and more often in the north."""
    draw = random.Random(7)
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(COLUMNS)
        for _ in range(RECORDS):
            female = draw.random() < 0.5
            weights = [6, 2, 2] if female else [1, 2, 7]
            ward = draw.choices(COLUMNS["ward"], weights)[0]
            age = draw.randrange(50, 80) if female else draw.randrange(20, 60)
            table.writerow(["female" if female else "male", ward, age])


def read_table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def accounts(server: str, email: str, password: str) -> fhaim.Client:
    client = fhaim.Client(server)
    refused("a call before signing in", "signed-out", client.account)
    wrong = lambda: client.sign_in(email, password + "x")  # noqa: E731
    refused("a wrong password", "unauthenticated", wrong)
    client.sign_in(email, password)
    check(f"signed in as {client.account().email}", client.account().email == email)
    return client


def keys_and_refresh(server: str, client: fhaim.Client) -> None:
    made = client.make_api_key("test")
    other = fhaim.Client(server).use_api_key(made.text)
    check("an API key signs in", other.account() == client.account())
    client._login._expires = 0.0  # as if it had expired
    threads = [threading.Thread(target=client.account) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check("threads that need an expired session share its renewal", len(client.api_keys()) == 1)
    client.delete_api_key(made.key)
    check("the key is deleted", client.api_keys() == [])


def upload(client: fhaim.Client, folder: Path) -> Dataset:
    dataset = client.create_dataset(schema(), epsilon=5.0, record_bound=512)
    check("the dataset waits for its records", dataset.state == "uploading")
    check("it is listed", [one.id for one in client.datasets()] == [dataset.id])
    table = folder / "table.csv"
    write_table(table)
    missing = lambda: client.upload(dataset, table, program="/nonexistent/fhaim")  # noqa: E731
    refused("an upload without the program", "program-missing", missing)
    wrong = folder / "wrong.csv"
    wrong.write_text("sex,ward,age\nfemale,east,30\n")
    state = folder / "state"
    refused(
        "a value outside the schema",
        "upload-failed",
        lambda: client.upload(dataset, wrong, state=state),
    )
    told: list[tuple[int, int]] = []
    dataset = client.upload(dataset, table, state=state, progress=lambda *at: told.append(at))
    check(
        f"the table is encrypted and uploaded: {told[-1][0]} of {told[-1][1]} objects",
        dataset.state == "ready" and told[-1][0] == told[-1][1] > 0,
    )
    check(
        "the temporary key and login of the upload are removed",
        client.api_keys() == [] and not (state / "login.json").exists(),
    )
    return dataset


def run(client: fhaim.Client, dataset: Dataset) -> Job:
    events: list[JobEvent] = []
    told: list[fhaim.Spending] = []
    no = lambda spending: bool(told.append(spending))  # noqa: E731
    refused("a run that is not confirmed", "not-confirmed", lambda: client.run(dataset, confirm=no))
    spending = told[0]
    check(
        f"the cost is reported before the run: rho {spending.rho:.6f} of {spending.budget:.6f}",
        spending.rho == spending.budget and (spending.spent, spending.runs_left) == (0, 1),
    )
    check("nothing was started", client.jobs(dataset) == [])
    started = client.run(dataset, job=spending.job)
    check("the same run again is the same job", client.run(dataset, job=started.id).id == started.id)
    job = client.wait(started, progress=events.append, timeout=300)
    check("one job was started", [one.id for one in client.jobs(dataset)] == [spending.job])
    phases = [e.what.progress.phase for e in events if isinstance(e.what, HappeningPhase)]
    check(
        f"the job is done after {len(events)} events: {', '.join(phases)}",
        job.state == "done" and [e.number for e in events] == list(range(1, len(events) + 1)),
    )
    check("waiting for it again returns at once", client.wait(job) == client.job(job))
    releases, ledger = client.releases(job), client.ledger(dataset)
    check(
        f"the ledger has its {len(releases)} releases: rho {ledger.spent.rho:.6f} "
        f"of {ledger.budget.rho:.6f}",
        len(ledger.runs[0].entries) == len(releases) and ledger.spent.rho <= ledger.budget.rho,
    )
    refused("a second run", "used-before", lambda: client.run(dataset))
    refused("a second run of a budget for one", "budget-spent", lambda: client.run(dataset, yes=True))
    return job


def same_records(client: fhaim.Client, dataset: Dataset, folder: Path) -> None:
    other = client.create_dataset(schema(), epsilon=5.0, record_bound=512)
    again = lambda **how: client.upload(other, folder / "table.csv", state=folder / "other", **how)  # noqa: E731
    refused("the same records again", "used-before", again)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        again(yes=True)
    said = " ".join(str(one.message) for one in told)
    check("the same records again are known", f"dataset {dataset.id} at" in said)
    epsilon = float(said.rsplit("epsilon ", 1)[1].split(" at delta")[0])
    check(f"their total cost is reported: epsilon {epsilon}", 5.0 < epsilon < 10.0)
    client.delete_dataset(other)


def download(client: fhaim.Client, job: Job, folder: Path) -> None:
    drawn = client.download(job, folder / "synthetic.csv", seed=11)
    rows = read_table(drawn.path)
    check(f"{drawn.rows} records, {drawn.bytes} bytes of CSV", len(rows) == drawn.rows)
    check("its columns are the table's", list(rows[0]) == list(COLUMNS))
    domain = {name: {str(value) for value in values} for name, values in COLUMNS.items()}
    check(
        "its values are in the domain",
        all(row[name] in domain[name] for row in rows for name in COLUMNS),
    )
    women = [row for row in rows if row["sex"] == "female"]
    north = sum(row["ward"] == "north" for row in women) / len(women)
    check(f"women are in the north about as often as in the table: {north:.2f}", 0.4 < north < 0.8)
    again = client.download(job, folder / "again.csv", seed=11)
    check(
        "the same seed draws the same table",
        again.path.read_bytes() == drawn.path.read_bytes() and again.seed == 11,
    )
    some = client.download(job, folder / "some.csv", rows=50, where={"ward": "west", "age": 30})
    rows = read_table(some.path)
    check(
        "rows and conditions are met",
        len(rows) == 50
        and all(row["ward"] == "west" and 30 <= int(row["age"]) < 40 for row in rows),
    )
    parquet = client.download(job, folder / "synthetic.parquet").path.read_bytes()
    check(f"{len(parquet)} bytes of Parquet", parquet[:4] == parquet[-4:] == b"PAR1")
    refused(
        "a value that a column does not have",
        "invalid",
        lambda: client.download(job, folder / "none.csv", where={"ward": "east"}),
    )
    check("no file of it is left", not list(folder.glob("*none*")))
    size = client.download_model(job, folder / "job.model")
    check(f"{size} bytes of model", (folder / "job.model").stat().st_size == size > 0)


def several(server: str, first: fhaim.Client, folder: Path) -> None:
    """Three holders of parts of one table, each of which sees only its own part."""
    password = "correct horse battery"
    clients = [first]
    for name in ("ben", "eva"):
        other = fhaim.Client(server)
        other.sign_up(f"{name}@example.org", password)
        clients.append(other.sign_in(f"{name}@example.org", password))
    cards = [client.join(record_bound=200) for client in clients]
    check(
        "an account has one key on this machine",
        first.join(record_bound=200) == cards[0] and len({card.key for card in cards}) == 3,
    )
    dataset = first.create_dataset(
        schema(), epsilon=5.0, runs=2, holders=cards, contribution="counts"
    )
    check("the record bound is the sum of all holders' bounds", dataset.terms.record_bound == 600)
    where = clients[1].standings(dataset)
    check(
        f"all are missing: {', '.join(one.email for one in where)}",
        [one.ready for one in where] == [False] * 3
        and [one.fingerprint for one in where] == [fhaim.fingerprint(card) for card in cards],
    )
    refused("a run before all have signed", "not-agreed", lambda: first.run(dataset))
    rows = (folder / "table.csv").read_text().splitlines()
    for number, client in enumerate(clients):
        if number == 2:
            gone = [one.number for one in client.standings(dataset) if not one.ready]
            check("the last is missing", gone == [2])
        said: list[str] = []
        client.sign(dataset, show=said.append)
        shown = [card.key for card in cards if fhaim.fingerprint(card) not in said[0]]
        check("the signed terms are shown", "epsilon" in said[0] and not shown)
        part = folder / f"part{number}.csv"
        part.write_text("\n".join([rows[0], *rows[1 + number : RECORDS : 3]]) + "\n")
        client.upload(dataset, part, state=folder / f"state{number}", yes=True)
    shown = clients[2].standings(dataset)
    check("nobody is missing", all(one.ready and one.objects for one in shown))
    job = clients[1].wait(clients[1].run(dataset), timeout=300)
    drawn = clients[2].download(job, folder / "together.csv")
    check(f"{drawn.rows} records of all three", abs((drawn.rows or 0) - RECORDS) < 100)
    ledgers = [client.ledger(dataset).spent for client in clients]
    check("all read one ledger", len({spent.exact for spent in ledgers}) == 1)
    left = clients[1].withdraw(dataset)
    check("one has withdrawn", [one.withdrawn for one in left] == [False, True, False])
    refused("a run after that", "not-agreed", lambda: clients[2].run(dataset))
    first.delete_dataset(dataset)
    lone = first.create_dataset(schema(), epsilon=5.0, record_bound=512)
    refused("withdrawing from a dataset of one", "invalid", lambda: first.withdraw(lone))
    first.delete_dataset(lone)


def handed_over(server: str, owner: fhaim.Client, job: Job, other: fhaim.Client) -> None:
    """Another account opens a result by a link, and sees nothing else of the dataset."""
    link = owner.make_link(job, "other", days=7)
    card = other.open_link(link)
    check("a link shows a data card", card.job == job.id and len(card.caveats) > 0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "theirs.csv"
        drawn = other.download_link(link, path, rows=30, seed=5)
        own = owner.download(job, Path(folder) / "own.csv", rows=30, seed=5)
        same = path.read_bytes() == own.path.read_bytes()
        check("the link draws the same tables", same and drawn.rows == 30)
    elsewhere = link.replace(server, "https://evil.example")
    refused("a link of another server", "invalid", lambda: other.open_link(elsewhere))
    refused("a text that is not a link", "invalid", lambda: other.open_link("https://x/shared/y"))
    (listed,) = owner.links(job)
    check("its owner sees that it was opened", listed.last_opened_at is not None)
    ends = listed.expires_at
    check("its owner sees when it ends", ends is not None and (ends - listed.created_at).days == 7)
    owner.revoke_link(job, listed)
    refused("a link that was revoked", "not-found", lambda: other.open_link(link))


def witnessed(client: fhaim.Client, folder: Path) -> None:
    """A second computation service, whose copy is deleted with the dataset."""
    lone = client.create_dataset(schema(), epsilon=5.0, record_bound=512)
    refused("a copy of a dataset of one service", "not-found", lambda: client.witness.show(lone.id))
    client.delete_dataset(lone)
    dataset = client.create_dataset(schema(), epsilon=5.0, record_bound=512, witness=True)
    check("its terms have a second computation service", dataset.terms.witness is True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the records were used before
        dataset = client.upload(dataset, folder / "table.csv", state=folder / "witnessed", yes=True)
    (copy,) = client.witness.show(dataset.id).contributions
    (part,) = client.computation.show(dataset.id).contributions
    check(
        f"the second has all {copy.objects} objects",
        copy.state == "complete" and copy.objects_present == part.objects_present > 0,
    )
    check("results on which both services agree are released", client.wait(client.run(dataset), timeout=300).state == "done")
    client.delete_dataset(dataset)
    refused("the copy of a deleted dataset", "not-found", lambda: client.witness.show(dataset.id))


def strangers(server: str, client: fhaim.Client, dataset: Dataset, job: Job) -> None:
    other = fhaim.Client(server)
    other.sign_up("other@example.org", "correct horse battery")
    other.sign_in("other@example.org", "correct horse battery")
    check("another account sees no datasets", other.datasets() == [])
    refused("another's dataset", "not-found", lambda: other.dataset(dataset))
    refused("another's ledger", "not-found", lambda: other.ledger(dataset))
    refused("another's job", "not-found", lambda: other.wait(job))
    refused("another's table", "not-found", lambda: other.download(job, "never.csv"))
    handed_over(server, client, job, other)
    other.sign_out()
    refused("a call after signing out", "signed-out", other.datasets)


def main() -> None:
    server, email, password = sys.argv[1:]
    client = accounts(server, email, password)
    keys_and_refresh(server, client)
    with tempfile.TemporaryDirectory() as folder:
        dataset = upload(client, Path(folder))
        job = run(client, dataset)
        download(client, job, Path(folder))
        same_records(client, dataset, Path(folder))
        several(server, client, Path(folder))
        witnessed(client, Path(folder))
    strangers(server, client, dataset, job)
    client.delete_dataset(dataset)
    refused("a dataset that was deleted", "not-found", lambda: client.dataset(dataset))
    check("the ledger outlives it", client.ledger(dataset).spent.rho > 0)


if __name__ == "__main__":
    main()

"""The client: the most common tasks across the three services, in a few calls."""

from __future__ import annotations

import json
import os
import shutil
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Union, overload
from uuid import UUID, uuid4

from fhaim import holders as parties
from fhaim import links as handed
from fhaim import native, upload
from fhaim.api import Computation, Crypto, Generation
from fhaim.codec import decode
from fhaim.errors import Error
from fhaim.holders import Standing
from fhaim.models import (
    Account,
    ApiKey,
    ApiKeyMade,
    ContributionKind,
    Credentials,
    Dataset,
    DatasetLedger,
    Job,
    JobEvent,
    Link,
    LinkedResult,
    Member,
    ModelView,
    NewApiKey,
    NewDataset,
    NewJob,
    NewKeySet,
    NewLink,
    Receipt,
    ReleasedStatistic,
    TableFormat,
    Terms,
)
from fhaim.receipts import Receipts, header
from fhaim.schema import Schema, SchemaLike, as_schema
from fhaim.session import Login
from fhaim.transport import Stream, Transport
from fhaim.where import conditions

DatasetId = Union[Dataset, UUID, str]
"""A dataset, or its identifier."""

JobId = Union[Job, UUID, str]
"""A job, or its identifier."""

_FINAL = ("done", "failed", "cancelled")
_BREAKS = 10


@dataclass(frozen=True)
class Download:
    """A synthetic table that was drawn and written to a file."""

    path: Path
    """The file."""
    bytes: int
    """Its size in bytes."""
    rows: int | None
    """Number of its records."""
    seed: int | None
    """The seed that it was drawn with. The same seed draws the same table."""


@dataclass(frozen=True)
class Spending:
    """The cost of a run, before it starts."""

    job: UUID
    """The job that the run will be."""
    rho: float
    """The most that the run can spend."""
    spent: float
    """The dataset's spending so far."""
    budget: float
    """The dataset's whole budget."""
    runs_left: int
    """Number of runs that no job has taken, including this one."""


@dataclass(frozen=True, kw_only=True)
class Run(Job):
    """A job with its client, and with methods such as `wait` and `sample`."""

    client: Client = field(repr=False, compare=False)
    """The client that it belongs to."""

    @classmethod
    def of(cls, client: Client, job: Job) -> Run:
        """Attaches a job to a client."""
        return cls(**{part.name: getattr(job, part.name) for part in fields(Job)}, client=client)

    def wait(
        self,
        *,
        progress: Callable[[JobEvent], None] | None = None,
        timeout: float | None = None,
    ) -> Run:
        """Waits until the job ends, as `Client.wait` does."""
        return Run.of(self.client, self.client.wait(self, progress=progress, timeout=timeout))

    def sample(
        self,
        rows: int | None = None,
        *,
        where: Mapping[str, object] | str | None = None,
        seed: int | None = None,
    ) -> Any:
        """Draws a table of the library whose table this client uploaded, or otherwise a table that
        pandas, polars and pyarrow accept. Needs the wheel."""
        return self.client.sample(self, rows, where=where, seed=seed)


class Client:
    """A client of all services. With an ``api_key``, it is signed in.

    ``server`` is the address of all services, as `fhaim up` and the reverse proxy serve them.
    Services at other addresses can be named one by one. The client's attributes ``generation``,
    ``computation`` and ``crypto`` have a method for every operation of their service. ``witness``,
    the second computation service of datasets that have one, has the methods of ``computation``.
    The client's own methods cover the most common tasks. Every failure is an `Error`.
    """

    def __init__(
        self,
        server: str = "http://127.0.0.1:8080",
        *,
        generation: str | None = None,
        computation: str | None = None,
        crypto: str | None = None,
        witness: str | None = None,
        api_key: str | None = None,
        timeout: float = 60.0,
    ) -> None:
        base = server.rstrip("/")
        self._generation = generation or f"{base}/generation"
        self._computation = computation or f"{base}/computation"
        self._crypto = crypto or f"{base}/crypto"
        self._witness = witness or f"{base}/witness"
        self._login = Login(self._generation, timeout)
        self.generation = Generation(Transport(self._generation, self._login.of("generation"), timeout))
        """Accounts, jobs, results: one method per operation."""
        self.computation = Computation(Transport(self._computation, self._login.of("computation"), timeout))
        """Uploads: one method per operation."""
        self.witness = Computation(Transport(self._witness, self._login.of("witness"), timeout))
        """The second computation service, for datasets whose terms have one."""
        self._receipts = Receipts(self._crypto)
        self.crypto = Crypto(Transport(self._crypto, self._login.of("crypto"), timeout))
        """Keys and the ledger: one method per operation."""
        # The library of each uploaded table. Drawn tables are of the same library.
        self._libraries: dict[UUID, str] = {}
        if api_key is not None:
            self.use_api_key(api_key)

    def __repr__(self) -> str:
        return f"Client({self._generation!r})"

    # Accounts

    def sign_up(self, email: str, password: str) -> Account:
        """Creates an account, which still has to sign in."""
        return self.generation.sign_up(Credentials(email=email, password=password))

    def sign_in(self, email: str, password: str) -> Client:
        """Signs in. The session is renewed automatically for as long as it lasts."""
        self._login.sign_in(email, password)
        return self

    def use_api_key(self, key: str) -> Client:
        """Signs in with an API key."""
        self._login.use_api_key(key)
        return self

    def sign_out(self) -> None:
        """Ends the session."""
        self._login.sign_out()

    def account(self) -> Account:
        """Returns the signed-in account."""
        return self.generation.show_account()

    def make_api_key(self, name: str, *, id: UUID | str | None = None) -> ApiKeyMade:
        """Creates an API key. Its ``text`` is shown only once. Repeating the call under the same
        ``id``, before the key is used, replaces a lost text by another one."""
        return self.generation.make_key(_new(id), NewApiKey(name=name))

    def api_keys(self) -> list[ApiKey]:
        """Returns the account's API keys, newest first."""
        return _all(self.generation.list_keys)

    def delete_api_key(self, key: ApiKey | UUID | str) -> None:
        """Deletes an API key."""
        self.generation.delete_key(_identifier(key))

    # Datasets

    def create_dataset(
        self,
        schema: SchemaLike,
        *,
        epsilon: float,
        record_bound: int | None = None,
        name: str | None = None,
        delta: float = 1e-9,
        mechanism: str = "staged",
        runs: int = 1,
        model_bytes: int = 64_000_000,
        target_weight: int = 1,
        holders: Sequence[Member] = (),
        honest: int = 1,
        contribution: ContributionKind = "records",
        witness: bool = False,
        id: UUID | str | None = None,
    ) -> Dataset:
        """Creates a dataset. Its public schema (or the file that contains it) and its privacy
        budget cannot be changed later. ``record_bound`` is public too: no table may have more
        records. Repeating the call under the same ``id`` returns the same dataset.

        With ``holders``, the cards that each of them got from `join` (this account's first),
        several accounts hold the dataset: each has to `sign` it and uploads its own part.
        ``honest`` is the number of holders on whose noise everyone relies: with 1, nobody has to
        trust another holder. ``contribution`` is what each of them uploads: encrypted
        ``"records"``, or encrypted ``"counts"`` of all pairs of columns, which are megabytes for
        any number of records.

        With ``witness``, a second computation service computes everything as well, and only results
        on which both agree are decrypted, so that neither has to be trusted alone. This costs a
        copy of the upload there, and jobs wait for both. It fails if the services do not know a
        second one.
        """
        if isinstance(schema, Schema):
            schema = schema.to_dict()
        elif not isinstance(schema, Mapping):
            schema = _schema(Path(schema))
        roster = None
        if holders:
            roster, held = parties.roster(holders, honest)
            record_bound = held if record_bound is None else record_bound
        if record_bound is None or record_bound < 1:
            reason = "record_bound is missing" if record_bound is None else f"{record_bound} records"
            raise Error("invalid", "The dataset needs a record bound", reason)
        terms = Terms(
            schema=dict(schema),
            epsilon=epsilon,
            delta=delta,
            mechanism=mechanism,
            record_bound=record_bound,
            runs=runs,
            model_bytes=model_bytes,
            target_weight=target_weight,
            roster=roster,
            contribution=None if contribution == "records" else contribution,
            witness=witness or None,
        )
        name = name or str(schema.get("name") or "dataset")
        made = self.generation.make_dataset(_new(id), NewDataset(name=name, terms=terms))
        _check_terms(terms, made.terms)
        if roster is not None:
            # The other holders sign the keys too, but cannot have them made.
            vouched = self.generation.vouch_for_dataset(made.id).voucher
            self.crypto.create(made.id, NewKeySet(terms=made.terms, voucher=vouched))
        return made

    # Several holders

    def join(
        self,
        *,
        record_bound: int,
        columns: Sequence[str] = (),
        program: str | os.PathLike[str] | None = None,
    ) -> Member:
        """Returns the card by which a dataset of several holders names this account: at most
        ``record_bound`` records, with all of their columns or only the named ones.

        The card contains the public half of a key that the program `fhaim` creates once for the
        account on this machine, and signs with. Send the card to the maker of the dataset, and
        compare its `fhaim.fingerprint` by telephone: a party that can change a card on its way
        could sign in your name.
        """
        card = self._consent(program, "join", f"--record-bound={record_bound}")
        held = decode(Member, json.loads(card))
        return replace(held, columns=list(columns) or None)

    def sign(
        self,
        dataset: DatasetId,
        *,
        show: Callable[[str], object] = print,
        program: str | os.PathLike[str] | None = None,
    ) -> list[Standing]:
        """Agrees to a dataset's terms, holders and keys, as one of its holders. Returns the status
        of all holders.

        Check ``dataset(ID).terms`` and the fingerprints of `standings` first. The program `fhaim`
        computes the plan independently and fails if a service has another one. It describes what
        was signed in words, which are printed or passed to ``show``: the terms, the holders whose
        noise is relied on, and each holder's columns, records and fingerprint.
        """
        identifier = _identifier(dataset)
        self._consent(program, "sign", str(identifier), "--yes", "--json", show=show)
        return self.standings(identifier)

    def withdraw(self, dataset: DatasetId) -> list[Standing]:
        """Permanently prevents further runs of a dataset, as one of its holders, and takes the
        account's ciphertexts back if no run has begun. Returns the status of all holders."""
        shown = self.dataset(dataset)
        own = str(self.account().id)
        roster = shown.terms.roster
        numbers = [n for n, one in enumerate(roster.holders if roster else []) if one.account == own]
        if not numbers:
            raise Error(
                "invalid",
                "The account is not one of several holders",
                str(shown.id),
                way_out="Use Client.delete_dataset to delete your own dataset.",
            )
        self.crypto.withdraw(shown.id)
        has_run = False
        for service in reversed(self._computations(shown)):  # the copy first
            try:
                service.take_back(shown.id, numbers[0])
            except Error as error:
                # Nothing was uploaded, or a run has begun, whose releases cannot be taken back.
                if error.kind not in ("not-found", "conflict"):
                    raise
                has_run = has_run or error.kind == "conflict"
        if not has_run:
            _forget(shown.id)
        return self.standings(shown)

    def standings(self, dataset: DatasetId) -> list[Standing]:
        """Returns the status of each holder of a dataset, in the roster's order, or an empty list
        if there is one holder. A run can begin once all are ``ready``."""
        return self._standings(self.dataset(dataset))

    def _standings(self, shown: Dataset) -> list[Standing]:
        if shown.terms.roster is None:
            return []
        keys = _if_there(lambda: self.crypto.show(shown.id))
        there = _if_there(lambda: self.computation.show(shown.id))
        return parties.standings(shown, keys, there)

    def _consent(
        self,
        program: str | os.PathLike[str] | None,
        *arguments: str,
        show: Callable[[str], object] | None = None,
    ) -> str:
        """Runs a command that uses the account's signing key, which stays on this machine."""
        path = upload.program(program)
        folder = self._holder_folder()
        with self._key(f"consent of {folder.name}") as key:
            signing = upload.Program(path, folder, upload.CONSENT)
            with signing.signed_in(self._endpoints(), key):
                return signing.run("dataset", *arguments, show=show)

    def _holder_folder(self) -> Path:
        """Returns the folder of the account's signing key."""
        return upload.memory_folder() / "holders" / str(self.account().id)

    @contextmanager
    def _signing_key(self, dataset: UUID, folder: Path) -> Iterator[None]:
        """Provides the account's signing key to an upload in ``folder``: a holder of a roster signs
        the request for its upload key."""
        if self.dataset(dataset).terms.roster is None:
            yield
            return
        name = "holder.key"
        shown = folder / name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        shown.unlink(missing_ok=True)
        shown.symlink_to((self._holder_folder() / name).absolute())
        try:
            yield
        finally:
            shown.unlink(missing_ok=True)

    def _endpoints(self) -> list[str]:
        return [
            f"--generation={self._generation}",
            f"--computation={self._computation}",
            f"--crypto={self._crypto}",
            f"--witness={self._witness}",
        ]

    def _computations(self, dataset: Dataset) -> list[Computation]:
        """Returns the computation services of a dataset: the first and, if its terms have one, the
        second."""
        return [self.computation, self.witness] if dataset.terms.witness else [self.computation]

    def datasets(self) -> list[Dataset]:
        """Returns all datasets of the account, newest first."""
        return _all(self.generation.list_datasets)

    def dataset(self, dataset: DatasetId) -> Dataset:
        """Returns a dataset in its current state."""
        return self.generation.show_dataset(_identifier(dataset))

    @overload
    def upload(
        self,
        dataset: DatasetId,
        table: native.TableLike,
        *,
        progress: Callable[[int, int], None] | None = None,
        yes: bool = False,
        options: tuple[str, ...] = (),
        program: str | os.PathLike[str] | None = None,
        state: str | os.PathLike[str] | None = None,
    ) -> Dataset: ...

    @overload
    def upload(
        self,
        dataset: native.TableLike,
        table: SchemaLike,
        *,
        epsilon: float,
        progress: Callable[[int, int], None] | None = None,
        yes: bool = False,
        options: tuple[str, ...] = (),
        program: str | os.PathLike[str] | None = None,
        state: str | os.PathLike[str] | None = None,
        **terms: Any,
    ) -> Dataset: ...

    def upload(
        self,
        dataset: Any,
        table: Any,
        *,
        epsilon: float | None = None,
        progress: Callable[[int, int], None] | None = None,
        yes: bool = False,
        options: tuple[str, ...] = (),
        program: str | os.PathLike[str] | None = None,
        state: str | os.PathLike[str] | None = None,
        **terms: Any,
    ) -> Dataset:
        """Encrypts a table on this machine and uploads the ciphertexts.

        ``upload(dataset, table)`` is for an existing dataset. ``upload(table, schema, epsilon=1)``
        creates the dataset first, with further arguments of `create_dataset`; this needs the wheel,
        which determines the record bound. With the wheel, encryption runs in this process, and
        tables may be those of pandas, polars or pyarrow. Without it, or with ``program`` or
        ``options`` (such as ``"--clamp"``), the program `fhaim` encrypts a CSV file (``program``,
        or FHAIM_BIN, or the one on the search path). After an interruption, ``upload(dataset,
        table)`` sends the missing objects: ``state`` is the folder with its record. ``progress`` is
        called from time to time with the number of uploaded objects and the total number.

        If the records were used before from this machine, in any order and file format, a warning
        reports the total cost, and the call is an `Error` unless ``yes``. To resume an upload of
        the same dataset needs no ``yes``.
        """
        if epsilon is not None:
            made = self._made_for(dataset, table, epsilon, terms)
            try:
                return self.upload(
                    made,
                    dataset,
                    progress=progress,
                    yes=yes,
                    options=options,
                    program=program,
                    state=state,
                )
            except Error as error:
                if error.kind == "used-before":
                    self.delete_dataset(made)
                raise
        if terms:
            raise TypeError(f"{sorted(terms)} are only for a new dataset, which needs an epsilon")
        identifier = _identifier(dataset)
        folder = Path(state) if state is not None else upload.state_folder() / str(identifier)
        by_program = program is not None or options or not native.is_here()
        if by_program and not isinstance(table, (str, os.PathLike)):
            raise Error(
                "invalid",
                "The table was not uploaded",
                "the program needs a CSV file, but this is a table in memory",
                way_out="Install the wheel, and omit program and options.",
            )
        path = upload.program(program) if by_program else ""
        with self._key(f"upload of {identifier}") as key, self._signing_key(identifier, folder):
            if by_program:
                encrypting = upload.Program(path, folder)
                with encrypting.signed_in(self._endpoints(), key):
                    encrypting.run(
                        "dataset",
                        "upload",
                        str(identifier),
                        f"--data={os.fspath(table)}",
                        *(("--yes",) if yes else ()),
                        *options,
                        meanwhile=lambda: self._tell(identifier, progress),
                    )
            else:
                self._encrypt(identifier, table, key, folder, progress, yes)
        if state is None:
            shutil.rmtree(folder, ignore_errors=True)
        self._tell(identifier, progress)
        return self.dataset(identifier)

    def _made_for(
        self, table: native.TableLike, schema: SchemaLike, epsilon: float, terms: Mapping[str, Any]
    ) -> Dataset:
        """Creates a dataset for a table."""
        described = as_schema(schema)
        bound = terms.get("record_bound")
        if bound is None:
            bound = native.call(
                "The table was not uploaded",
                "record_bound",
                table,
                described.to_json(),
                reading=native.reading(),
                tell=None,
            )
        return self.create_dataset(described, epsilon=epsilon, **{**terms, "record_bound": bound})

    def _encrypt(
        self,
        dataset: UUID,
        table: native.TableLike,
        key: str,
        folder: Path,
        progress: Callable[[int, int], None] | None,
        yes: bool,
    ) -> None:
        """Encrypts in this process."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

        def tell(phase: str, done: int, total: int | None) -> None:
            if progress is not None and total is not None:
                progress(done, total)

        native.call(
            "The table was not uploaded",
            "upload",
            table,
            dataset=str(dataset),
            generation=self._generation,
            computation=self._computation,
            crypto=self._crypto,
            witness=self._witness,
            api_key=key,
            folder=str(folder),
            yes=yes,
            reading=native.reading(),
            tell=tell,
        )
        self._libraries[dataset] = native.library(table)

    def delete_dataset(self, dataset: DatasetId) -> None:
        """Deletes a dataset everywhere: first its keys, after which nothing of it can be decrypted,
        then its ciphertexts, then its jobs and results. A dataset whose runs have not begun is
        removed from the usage history of this machine (with the wheel)."""
        identifier = _identifier(dataset)
        is_unused = self._is_unused(identifier)
        shown = _if_there(lambda: self.generation.show_dataset(identifier), other=("damaged",))
        if shown is not None:
            both = self._computations(shown)
        else:
            both = [self.computation, *([self.witness] if self._login.has("witness") else [])]
        deletions = [service.delete for service in both]
        is_known, missing = shown is not None, None
        for delete in (self.crypto.destroy, *deletions, self.generation.delete_dataset):
            try:
                delete(identifier)
                is_known = True
            except Error as error:
                if error.kind != "not-found":  # it never reached this service, or an earlier call deleted it
                    raise
                missing = error
        if missing is not None and not is_known:
            raise missing
        if is_unused:
            _forget(identifier)

    def _is_unused(self, dataset: UUID) -> bool:
        """Returns whether a dataset has a ledger without runs."""
        try:
            return not self.ledger(dataset).runs
        except Error:
            return False

    def ledger(self, dataset: DatasetId) -> DatasetLedger:
        """Returns a dataset's releases and their cost, directly from the crypto service. The ledger
        begins with the upload."""
        identifier = _identifier(dataset)
        shown = self._receipts.load(identifier)
        ledger = self.crypto.show_ledger(identifier, fhaim_receipt=header(shown))
        self._receipts.keep(identifier, shown, ledger.receipt)
        return ledger

    def _receipt(self, dataset: UUID) -> Receipt | None:
        """Returns the current end of the ledger, after checking it against what this machine has
        seen. If the crypto service is away or does not know the ledger, returns the last one seen.
        """
        shown = self._receipts.load(dataset)
        try:
            told = self.crypto.show_receipt(dataset, fhaim_receipt=header(shown))
        except Error as error:
            if error.kind not in ("not-found", "unavailable", "unreachable"):
                raise
            return shown
        self._receipts.keep(dataset, shown, told)
        return told

    def _receipt_before_run(self, dataset: UUID, job: UUID) -> Receipt | None:
        """Returns the same as `_receipt`, after checking that the generation service knows all jobs
        that have a run, unless ``job`` is one of them and continues with its run. A service that was
        set back has forgotten some, and another job would be paid for in addition."""
        try:
            ledger = self.ledger(dataset)
        except Error as error:
            if error.kind not in ("not-found", "unavailable", "unreachable"):
                raise
            return self._receipts.load(dataset)
        runs = [run.job for run in ledger.runs]
        if runs and job not in runs:
            parts = list(_pages(lambda **page: self.generation.list_jobs(dataset, **page)))
            known = {found.id for part in parts for found in part.items}
            known.update(damaged for part in parts for damaged in part.damaged or ())
            forgotten = next((run for run in runs if run not in known), None)
            if forgotten is not None:
                raise Error(
                    "forgotten",
                    "The generation service was set back to an older copy, and has forgotten a job "
                    "that has a run",
                    str(forgotten),
                    way_out=f"run(dataset, job='{forgotten}') makes its table again from its "
                    "releases, at no further cost. Then another run can be started.",
                )
        return ledger.receipt

    # Jobs

    def run(
        self,
        dataset: DatasetId,
        *,
        job: UUID | str | None = None,
        confirm: Callable[[Spending], bool] | None = None,
        yes: bool = False,
    ) -> Run:
        """Starts a run, on one share of the dataset's budget.

        ``job`` is its identifier, by default a new one. If the answer is lost, repeating the call
        with the same identifier starts and spends nothing more. An `Error` of kind ``restored``
        means that the crypto service was set back, one of kind ``forgotten`` that the generation
        service was, and one of kind ``not-agreed`` that one of several holders has not signed or has
        withdrawn; then nothing is started. ``confirm`` is
        called with the cost of the run and the remaining budget before anything is spent; if it
        returns false, the `Error` has kind ``not-confirmed``. Without ``confirm`` and ``job``, a run
        after the dataset's first one is an `Error` of kind ``used-before`` unless ``yes``.
        """
        identifier, new = _identifier(dataset), _new(job)
        shown = self.dataset(identifier)
        parties.must_agree(self._standings(shown))
        if confirm is not None and not confirm(self._spending(identifier, new)):
            raise Error("not-confirmed", "Nothing was started")
        if confirm is None and job is None and not yes and shown.runs_left < shown.terms.runs:
            raise Error(
                "used-before",
                "Nothing was started",
                "these records were used before",
                way_out="To use them again, add yes=True.",
            )
        # The other services check the crypto service against the receipt, as this program just did.
        body = NewJob(receipt=self._receipt_before_run(identifier, new))
        try:
            return Run.of(self, self.generation.make_job(identifier, new, body))
        except Error as error:
            if error.status is not None and error.status < 500:
                raise
            way_out = f"The run may have started: run(dataset, job='{new}') continues the same run."
            raise Error(
                error.kind, error.title, error.detail, way_out=way_out, status=error.status
            ) from error

    def _spending(self, dataset: UUID, job: UUID) -> Spending:
        shown, ledger = self.dataset(dataset), self.ledger(dataset)
        return Spending(
            job=job,
            rho=shown.budget.rho / shown.terms.runs,
            spent=ledger.spent.rho,
            budget=ledger.budget.rho,
            runs_left=shown.runs_left,
        )

    def jobs(self, dataset: DatasetId) -> list[Job]:
        """Returns all jobs of a dataset, newest first."""
        identifier = _identifier(dataset)
        return _all(lambda **page: self.generation.list_jobs(identifier, **page))

    def job(self, job: JobId) -> Job:
        """Returns a job in its current state. Once the job has ended, also stores the receipt of a
        ledger that contains its releases, so that the next run can detect that all services were
        set back to before them."""
        shown = self.generation.show_job(_identifier(job))
        if shown.releases > 0 and shown.state in ("done", "failed", "cancelled"):
            try:
                self._receipt(shown.dataset)
            except Error:
                pass  # the job is unaffected, and the next run reports it
        return shown

    def cancel(self, job: JobId) -> Job:
        """Stops a job. Its spending cannot be taken back."""
        return self.generation.cancel_job(_identifier(job))

    def retry(self, job: JobId) -> Job:
        """Resumes a job that failed or was cancelled.

        The crypto service is checked against the last known end of the ledger, as for a run.
        """
        identifier = _identifier(job)
        self._receipt(self.generation.show_job(identifier).dataset)
        return self.generation.retry_job(identifier)

    def events(self, job: JobId, *, after: int = 0) -> Iterator[JobEvent]:
        """Yields a job's events after a number as they happen, until the job ends or the connection
        breaks."""
        with self.generation.watch_job(_identifier(job), last_event_id=after) as stream:
            for data in _server_sent(stream):
                yield decode(JobEvent, json.loads(data))

    def wait(
        self,
        job: JobId,
        *,
        progress: Callable[[JobEvent], None] | None = None,
        timeout: float | None = None,
    ) -> Job:
        """Waits until a job ends, also across interruptions of the connection. ``progress`` is
        called with each event.

        Raises an `Error` of kind ``job-failed`` or ``job-cancelled`` if the job ends this way, and
        of kind ``timeout`` if it does not end in time (it keeps running, and can be waited for
        again).
        """
        identifier, seen, breaks = _identifier(job), 0, 0
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            try:
                for event in self.events(identifier, after=seen):
                    seen, breaks = event.number, 0
                    if progress is not None:
                        progress(event)
                    if _late(end):
                        break
                now = self.job(identifier)
                if now.state in _FINAL:
                    return _ended(now)
            except Error as error:
                if error.kind != "unreachable" or breaks >= _BREAKS:
                    raise
            breaks += 1
            if _late(end):
                raise Error(
                    "timeout",
                    "The job has not ended in time",
                    str(identifier),
                    way_out="It keeps running: wait for it again, or cancel it.",
                )
            time.sleep(0.5)

    def releases(self, job: JobId) -> list[ReleasedStatistic]:
        """Returns everything that a job released: integers, noise, cost."""
        return self.generation.list_releases(_identifier(job))

    def model(self, job: JobId) -> ModelView:
        """Returns the model of a finished job."""
        return self.generation.show_model(_identifier(job))

    def download_model(self, job: JobId, path: str | os.PathLike[str]) -> int:
        """Writes the model of a finished job to a file, for `fhaim sample` and `fhaim-lab attack`.
        Returns its size in bytes. The file appears only when it is complete."""
        with self.generation.download_model(_identifier(job)) as saved:
            return _written(saved, Path(path))

    def download(
        self,
        job: JobId,
        path: str | os.PathLike[str],
        *,
        format: TableFormat | None = None,
        rows: int | None = None,
        where: Mapping[str, object] | str | None = None,
        seed: int | None = None,
    ) -> Download:
        """Draws a synthetic table from a finished job and writes it as it arrives.

        ``where`` has conditions that every record meets, such as ``{"race": "Asian"}``; `None`
        stands for a missing value. By default, the format follows from the path's extension. The
        file appears only when it is complete.
        """
        path = Path(path)
        if format is None:
            format = "parquet" if path.suffix == ".parquet" else "csv"
        drawn = self._drawn(job, format, rows, where, seed)
        with drawn:
            size = _written(drawn, path)
            return Download(path, size, *(_number(drawn, f"fhaim-{n}") for n in ("rows", "seed")))

    def sample(
        self,
        job: JobId,
        rows: int | None = None,
        *,
        where: Mapping[str, object] | str | None = None,
        seed: int | None = None,
    ) -> Any:
        """Draws a synthetic table from a finished job into memory, with the types of its schema. It
        is of the library whose table this client uploaded, or otherwise a table that pandas, polars
        and pyarrow accept. Needs the wheel."""
        shown = self.generation.show_job(_identifier(job))
        schema = Schema(self.dataset(shown.dataset).terms.schema)
        with self._drawn(shown, "csv", rows, where, seed) as drawn:
            text = b"".join(drawn)
        table = native.call("Nothing was drawn", "table", text, schema.to_json())
        return native.of_library(self._libraries.get(shown.dataset, ""), table)

    # Links

    def make_link(
        self, job: JobId, name: str, *, days: int | None = 90, id: UUID | str | None = None
    ) -> str:
        """Creates a link to a finished job's result. The link is shown only once. Anyone who opens
        it, signed in to any account, sees a data card and can draw tables, but sees nothing else of
        the dataset. It is valid for ``days`` days or, with None, until it is revoked. Repeating the
        call under the same ``id``, before the link is opened, gives it another secret."""
        asked = NewLink(name=name, days=days)
        made = self.generation.make_link(_identifier(job), _new(id), asked)
        return handed.written(self._generation, made)

    def links(self, job: JobId) -> list[Link]:
        """Returns the links to a job's result, newest first, with the times when they were last
        opened."""
        return _all(lambda **page: self.generation.list_links(_identifier(job), **page))

    def revoke_link(self, job: JobId, link: Link | UUID | str) -> None:
        """Revokes a link, which then no longer opens."""
        self.generation.revoke_link(_identifier(job), _identifier(link))

    def open_link(self, link: str) -> LinkedResult:
        """Returns the data card of the result that another account's link opens."""
        identifier, secret = handed.read(self._generation, link)
        return self.generation.open_link(identifier, fhaim_link=secret)

    def download_link(
        self,
        link: str,
        path: str | os.PathLike[str],
        *,
        format: TableFormat | None = None,
        rows: int | None = None,
        where: Mapping[str, object] | str | None = None,
        seed: int | None = None,
    ) -> Download:
        """Draws a synthetic table from the result that another account's link opens, as `download`
        does."""
        path = Path(path)
        identifier, secret = handed.read(self._generation, link)
        drawn = self.generation.draw_linked_table(
            identifier,
            format=format or ("parquet" if path.suffix == ".parquet" else "csv"),
            rows=rows,
            seed=seed,
            where=None if where is None else conditions(where),
            fhaim_link=secret,
        )
        with drawn:
            size = _written(drawn, path)
            return Download(path, size, *(_number(drawn, f"fhaim-{n}") for n in ("rows", "seed")))

    def _drawn(
        self,
        job: JobId,
        format: TableFormat,
        rows: int | None,
        where: Mapping[str, object] | str | None,
        seed: int | None,
    ) -> Stream:
        return self.generation.draw_table(
            _identifier(job),
            format=format,
            rows=rows,
            seed=seed,
            where=None if where is None else conditions(where),
        )

    def _key(self, name: str) -> _Key:
        return _Key(self, name, self._login.api_key)

    def _tell(self, dataset: UUID, progress: Callable[[int, int], None] | None) -> None:
        if progress is None:
            return
        try:
            upload = self.computation.show(dataset)
        except Error:
            return  # not registered yet, or busy: the next call may succeed
        parts = upload.contributions
        progress(sum(part.objects_present for part in parts), sum(part.objects for part in parts))


class _Key:
    """An API key for a program: the one of the client's session, or a temporary one that is deleted
    at the end."""

    def __init__(self, client: Client, name: str, key: str | None) -> None:
        self._client, self._name, self._key = client, name, key
        self._made: ApiKeyMade | None = None

    def __enter__(self) -> str:
        if self._key is not None:
            return self._key
        self._made = self._client.make_api_key(self._name)
        return self._made.text

    def __exit__(self, *_: object) -> None:
        if self._made is not None:
            self._client.delete_api_key(self._made.key)


def _forget(dataset: UUID) -> None:
    """Removes a dataset that released nothing, and cannot, from the usage history of this machine."""
    if native.is_here():
        native.call("The dataset is still in the usage history", "forget_dataset", str(dataset))


def _identifier(thing: Any) -> UUID:
    if isinstance(thing, UUID):
        return thing
    if isinstance(thing, str):
        try:
            return UUID(thing)
        except ValueError:
            raise Error("not-found", "This is not an identifier", repr(thing)) from None
    identifier: UUID = thing.id
    return identifier


def _check_terms(sent: Terms, told: Terms) -> None:
    """Rejects an answer with terms other than those sent, because tables are encrypted under the
    answer. The service fills in omitted terms. It may write a schema in other words, so only the
    columns of schemas are compared."""
    told_names, sent_names = ([column["name"] for column in terms.schema["columns"]] for terms in (told, sent))
    if told_names != sent_names:
        raise Error("disagreement", "The service answered with another schema: tell its operator")
    for name in (field.name for field in fields(Terms) if field.name not in ("schema", "version")):
        value, answered = getattr(sent, name), getattr(told, name)
        if value is not None and answered != value:
            words = f"{name} is {answered!r}, but {value!r} was sent: tell its operator"
            raise Error("disagreement", "The service answered with other terms", words)


def _new(identifier: UUID | str | None) -> UUID:
    """Returns the identifier of a new object."""
    return uuid4() if identifier is None else _identifier(identifier)


def _all(page: Callable[..., Any]) -> list[Any]:
    """Returns all items of a list that comes in pages. Warns of items whose stored data is damaged."""
    items: list[Any] = []
    for part in _pages(page):
        items += part.items
        for identifier in part.damaged or ():
            warnings.warn(
                f"{identifier} is left out: the service's stored data of it is damaged. Ask the operator "
                "to restore it from a backup",
                stacklevel=3,
            )
    return items


def _pages(page: Callable[..., Any]) -> Iterator[Any]:
    """Returns the pages of a list."""
    after = None
    while True:
        part = page(after=after, limit=100)
        yield part
        after = part.next
        if after is None:
            return


def _if_there(call: Callable[[], Any], *, other: tuple[str, ...] = ()) -> Any:
    """Returns a service's answer, or None if the object does not exist or the error has a kind in
    ``other``."""
    try:
        return call()
    except Error as error:
        if error.kind not in ("not-found", *other):
            raise
        return None


def _schema(path: Path) -> Mapping[str, Any]:
    try:
        schema = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise Error(
            "unreadable",
            "The schema cannot be read",
            f"{path}: {error}",
            way_out="`fhaim schema infer` drafts one.",
        ) from error
    if not isinstance(schema, dict):
        raise Error("unreadable", "The schema cannot be read", f"{path}: it is not a JSON object")
    return schema


def _server_sent(stream: Stream) -> Iterator[str]:
    """Yields the data of each server-sent event."""
    data: list[str] = []
    for line in stream.lines():
        if line.startswith("data:"):
            data.append(line.removeprefix("data:").removeprefix(" "))
        elif not line and data:
            yield "\n".join(data)
            data = []


def _late(end: float | None) -> bool:
    return end is not None and time.monotonic() > end


def _ended(job: Job) -> Job:
    if job.state == "failed":
        raise Error(
            "job-failed",
            "The job failed",
            job.error,
            way_out="Client.retry resumes it.",
        )
    if job.state == "cancelled":
        raise Error(
            "job-cancelled",
            "The job was cancelled",
            str(job.id),
            way_out="Client.retry resumes it.",
        )
    return job


def _written(stream: Stream, path: Path) -> int:
    """Writes a stream to a file that appears only when it is complete. Returns the number of bytes.
    """
    part = path.with_name(f".{path.name}.{uuid4()}.part")
    try:
        try:
            with part.open("xb") as file:
                size = sum(file.write(piece) for piece in stream)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise Error(
            "unwritable", "The file cannot be written", f"{path}: {error.strerror}"
        ) from error
    return size


def _number(stream: Stream, header: str) -> int | None:
    value = stream.headers.get(header)
    return int(value) if value is not None and value.isdigit() else None

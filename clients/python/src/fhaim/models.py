"""Types of what the services read and write.

Written by generate.py from openapi/*.json: do not edit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Union
from uuid import UUID


@dataclass(frozen=True, kw_only=True)
class Account:
    """An account."""

    created_at: datetime
    """When it was made."""

    email: str
    """The address it signs in with."""

    id: UUID
    """Its identifier: the subject of its tokens."""


@dataclass(frozen=True, kw_only=True)
class ApiKey:
    """An API key, without its text."""

    created_at: datetime
    """When it was made."""

    id: UUID
    """Its identifier."""

    name: str
    """What it is for."""

    last_used_at: datetime | None = None
    """When it was last exchanged for a session."""


@dataclass(frozen=True, kw_only=True)
class ApiKeyMade:
    """An API key just made: the only time its text is shown. Until it is used, making it again
    gives another text in its place.
    """

    key: ApiKey
    """The key's entry."""

    text: str = field(repr=False)
    """The text to keep."""


@dataclass(frozen=True, kw_only=True)
class AuditEntry:
    """What the crypto service did at someone's request."""

    action: str
    """What for."""

    actor: str
    """Who asked: a user's identifier or a service's name."""

    at: datetime
    """When."""

    granted: bool
    """Whether it was done."""

    number: int
    """Its number within the dataset."""


@dataclass(frozen=True, kw_only=True)
class Axis:
    """How a `fhaim_release::Axis` is written: integer functions of one attribute."""

    attribute: int
    """The attribute's number."""

    functions: list[list[int]]
    """Each function's value for every category."""


@dataclass(frozen=True, kw_only=True)
class Batch:
    """A batch of releases of one job. The same batch asked for again is answered the same."""

    requests: list[ReleaseRequest]
    """What to release, numbered in ascending order."""

    again: bool | None = None
    """Begin again with a batch that was refused."""

    receipts: list[Receipt] | None = None
    """Receipts of the dataset's ledger that the asking service has: passed on to the crypto
    service.
    """


@dataclass(frozen=True, kw_only=True)
class BatchStatusQueued:
    """Waiting for a worker."""

    state: Literal["queued"]


@dataclass(frozen=True, kw_only=True)
class BatchStatusRunning:
    """Being computed."""

    seconds: float
    """Seconds since a worker took it."""

    state: Literal["running"]


@dataclass(frozen=True, kw_only=True)
class BatchStatusReleased:
    """Released."""

    answers: list[list[int]]
    """The integers of each release, in the order asked."""

    compute_seconds: float
    """Seconds spent on ciphertexts."""

    receipt: Receipt
    """The dataset's ledger with them in it."""

    state: Literal["released"]


@dataclass(frozen=True, kw_only=True)
class BatchStatusRefused:
    """Never to be released."""

    reason: str
    """What may be said about it."""

    state: Literal["refused"]

    without_run: bool | None = None
    """The crypto service gave the job no run, because none was left: it holds none."""


@dataclass(frozen=True, kw_only=True)
class CloseAccount:
    """Proof that an account's owner wants it gone."""

    password: str = field(repr=False)
    """Its password."""


@dataclass(frozen=True, kw_only=True)
class Complete:
    """Seals an upload: nothing can be added or changed after."""

    manifest: str
    """Digest of the manifest: of every object in ascending order of name, `name`, a space, its
    digest in hexadecimal and a newline.
    """


@dataclass(frozen=True, kw_only=True)
class Confirmation:
    """What all services that share a key said of it."""

    attempt: str
    """What the attempt to make the key was named by: base64url."""

    messages: list[str]
    """A signed message of each service: base64url."""


@dataclass(frozen=True, kw_only=True)
class Contribution:
    """What one holder uploads: records, a rectangle of the dataset's grid (record chunks down,
    columns across), or counts. A dataset of one holder has one, number 0; of several, each
    has that of its number in the roster, once it is registered.
    """

    bytes_present: int
    """Bytes of the objects there."""

    chunks: list[int]
    """The first record chunk of this part, and how many it has: none where it is counts."""

    columns: list[int]
    """The first one-hot column of this part, and how many it has."""

    number: int
    """Its number within the dataset."""

    object_bytes: int
    """Bytes of one object that is encrypted; the keys of a holder's own are of another size."""

    objects: int
    """Objects there will be."""

    objects_present: int
    """Objects there."""

    state: UploadState
    """How far its upload is."""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """A privacy cost: exact, and as a number to show."""

    exact: str
    """The cost times 2^80, in decimal."""

    rho: float
    """The nearest double."""


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """Who signs up or in."""

    email: str
    """An address, compared without regard to case."""

    password: str = field(repr=False)
    """At least 12 characters."""


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A dataset."""

    budget: Cost
    """The budget that epsilon and delta come to."""

    created_at: datetime
    """When it was made."""

    id: UUID
    """Its identifier, the same at all services."""

    name: str
    """A name for people."""

    runs_left: int
    """Runs that no job takes: a job does that is under way or has asked for a release."""

    state: DatasetState
    """How far it is."""

    terms: Terms
    """What is fixed for good."""

    holders: list[str] | None = None
    """The addresses that the roster's holders sign in with, in its order; none where one holder
    has the whole table.
    """


@dataclass(frozen=True, kw_only=True)
class DatasetLedger:
    """The ledger of a dataset: every debit taken, and what is left."""

    budget: Cost
    """The budget."""

    dataset: UUID
    """The dataset."""

    receipt: Receipt
    """The ledger as it is now."""

    runs: list[RunLedger]
    """The runs begun, oldest first."""

    spent: Cost
    """What has been spent."""

    unclaimed: Cost
    """What no run has been promised yet."""

    frozen: str | None = None
    """Why nothing more is released, if so."""


@dataclass(frozen=True, kw_only=True)
class DebitedByServices:
    """What each further key service of a dataset has debited."""

    services: list[DebitedReleases]
    """In the order of the terms, without the first service, whose ledger this is next to."""


@dataclass(frozen=True, kw_only=True)
class DebitedRelease:
    """A release that a key service has debited."""

    job: UUID
    """The job."""

    number: int
    """The release's number within the job."""

    statement: str
    """Digest of the releases and of their positions."""


@dataclass(frozen=True, kw_only=True)
class DebitedReleases:
    """Everything that a key service has debited of a dataset."""

    releases: list[DebitedRelease]
    """The releases, oldest first."""

    signature: str
    """Ed25519 signature, with the service's key in the dataset's terms: base64url."""


@dataclass(frozen=True, kw_only=True)
class Decrypted:
    """Released integers: the answer to a decryption request."""

    answers: list[list[int]]
    """The integers of each release, in the order of the request."""

    receipt: Receipt
    """The ledger with them in it."""


@dataclass(frozen=True, kw_only=True)
class HappeningState:
    """Its state changed."""

    kind: Literal["state"]

    state: JobState
    """The new state."""

    error: str | None = None
    """Why, where it failed."""


@dataclass(frozen=True, kw_only=True)
class HappeningPhase:
    """The mechanism asked for a batch (or does its last fit)."""

    kind: Literal["phase"]

    progress: JobProgress
    """What it is doing."""

    releases: int
    """Releases asked for."""


@dataclass(frozen=True, kw_only=True)
class HappeningComputing:
    """The computation service is at work on the current batch."""

    kind: Literal["computing"]

    seconds: float
    """Seconds it has been at it."""


@dataclass(frozen=True, kw_only=True)
class HappeningReleased:
    """A batch was released."""

    cells: int
    """Numbers in them."""

    kind: Literal["released"]

    releases: int
    """Releases in the batch."""

    spent: Cost
    """What the job has spent so far."""


@dataclass(frozen=True, kw_only=True)
class HolderStanding:
    """A holder of the roster."""

    account: str
    """Its account, as the roster has it."""

    signed: bool
    """Whether it has signed terms and keys."""

    withdrawn: bool
    """Whether it lets no further run begin."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job."""

    attempts: int
    """Workers that have had it."""

    created_at: datetime
    """When it was made."""

    dataset: UUID
    """The dataset it runs over."""

    id: UUID
    """Its identifier."""

    releases: int
    """Releases so far."""

    spent: Cost
    """What they cost together."""

    state: JobState
    """Where it is."""

    updated_at: datetime
    """When its state last changed."""

    error: str | None = None
    """Why it failed."""

    note: str | None = None
    """What the dataset's holders want to remember of it."""

    progress: JobProgress | None = None
    """What it is doing, once it has begun."""


@dataclass(frozen=True, kw_only=True)
class JobEvent:
    """One line of a job's event stream. Numbers go up by one; a client that reconnects sends the
    last it saw as `Last-Event-ID`.
    """

    at: datetime
    """When it happened."""

    number: int
    """Its number within the job, from 1."""

    what: Happening
    """What happened."""


@dataclass(frozen=True, kw_only=True)
class JobEventMessage:
    """How a `JobEvent` is sent: a server-sent event."""

    data: str
    """The `JobEvent`, as JSON."""

    id: str
    """The event's number."""


@dataclass(frozen=True, kw_only=True)
class JobProgress:
    """What a job is doing."""

    phase: str
    """The phase, in the words of the mechanism: `1-ways`, `probe`, `fit` and the like."""

    round: int
    """The current batch, counted from 1; the last fit counts as one."""

    rounds: int
    """The most there can be."""


@dataclass(frozen=True, kw_only=True)
class KeyExchange:
    """Exchanges an API key for a session."""

    api_key: str = field(repr=False)
    """The key, as it was shown once."""


@dataclass(frozen=True, kw_only=True)
class KeyServiceDocument:
    """A service that can share a key."""

    key: str
    """The Ed25519 public key that it signs with: 64 hexadecimal digits."""

    name: str
    """What people call it."""


@dataclass(frozen=True, kw_only=True)
class KeyServices:
    """The services that can share a key here, the first of them first."""

    services: list[KeyServiceDocument]
    """In the order of their numbers."""


@dataclass(frozen=True, kw_only=True)
class KeySet:
    """A dataset's key set."""

    budget: Cost
    """The budget."""

    created_at: datetime
    """When it was made."""

    dataset: UUID
    """The dataset."""

    evaluation_keys: str
    """Digest of the evaluation keys."""

    parameter_set: int
    """Number of the encryption parameter set."""

    public_key: str
    """Digest of the public key."""

    receipt: Receipt
    """The ledger as it is now."""

    receipt_key: str
    """What the dataset's receipts are checked with: an Ed25519 public key, base64url."""

    runs_begun: int
    """Runs begun."""

    spent: Cost
    """What has been spent."""

    terms: Terms
    """What is fixed for good."""

    confirmation: Confirmation | None = None
    """What all services said of the keys, where several share them."""

    holders: list[HolderStanding] | None = None
    """The holders of the roster, in its order; none where one holder has the whole table."""


@dataclass(frozen=True, kw_only=True)
class LadderNeed:
    """How a `fhaim_release::LadderNeed` is written."""

    cells: int
    """Integers released over the whole run."""

    largest_variance_units: int
    """The largest variance of a release, in units of 4."""


@dataclass(frozen=True, kw_only=True)
class LedgerEntry:
    """An entry of a dataset's ledger, as the hash over the ledger takes it."""

    act: str
    """The text that is hashed: JSON."""

    height: int
    """Its place in the ledger, from 1."""


@dataclass(frozen=True, kw_only=True)
class Link:
    """A link, without its secret."""

    created_at: datetime
    """When it was made."""

    id: UUID
    """Its identifier."""

    name: str
    """Whom it is for, or what."""

    expires_at: datetime | None = None
    """From when on it opens nothing; absent: it is good until it is revoked."""

    last_opened_at: datetime | None = None
    """When it was last opened."""


@dataclass(frozen=True, kw_only=True)
class LinkMade:
    """A link just made: the only time its secret is shown. Until it is opened, making it again
    gives another secret in its place.
    """

    link: Link
    """The link's entry."""

    secret: str = field(repr=False)
    """What opens it, together with its identifier. In an address it belongs behind the `#`,
    which is sent to no server.
    """


@dataclass(frozen=True, kw_only=True)
class LinkedAttribute:
    """An attribute of a `LinkedResult`."""

    labels: list[str]
    """Its categories' or bins' labels."""

    name: str
    """Its name."""


@dataclass(frozen=True, kw_only=True)
class LinkedResult:
    """What a link shows of a result, beside the tables that are drawn by it: its data card."""

    attributes: list[LinkedAttribute]
    """The labels of each attribute's values, as conditions on the records name them."""

    caveats: list[str]
    """What to know before the table is used."""

    delta: float
    """Its delta."""

    epsilon: float
    """The privacy budget of all of the dataset's jobs together."""

    job: UUID
    """The job that made it."""

    made_at: datetime
    """When the job ended."""

    mechanism: str
    """The mechanism."""

    name: str
    """The dataset's name."""

    runs: int
    """The jobs that share it."""

    schema: dict[str, Any]
    """The table's public schema."""

    spent: Cost
    """What the job spent."""

    total: float
    """Records, by the model's estimate."""


@dataclass(frozen=True, kw_only=True)
class Listing:
    """Objects of a contribution that are there, for the second computation service."""

    objects: dict[str, str]
    """Their digests, by their names."""


@dataclass(frozen=True, kw_only=True)
class Member:
    """How a holder of a `Roster` is written."""

    account: str
    """Identifier of its account."""

    key: str
    """The Ed25519 public key that it signs with: 64 hexadecimal digits."""

    record_bound: int
    """It has at most so many records."""

    columns: list[str] | None = None
    """The names of its columns, where holders have columns."""


@dataclass(frozen=True, kw_only=True)
class Missing:
    """Objects of a contribution that are still missing, in order."""

    objects: list[str]
    """Names such as `column/12/3`, `noise/0/4/1` and `keys`."""


@dataclass(frozen=True, kw_only=True)
class ModelView:
    """The model of a finished job."""

    attributes: list[str]
    """Names of the attributes."""

    bytes: int
    """Bytes of the junction tree."""

    cliques: list[list[int]]
    """Cliques of the junction tree, by index."""

    measured_pairs: list[list[int]]
    """Pairs with a measurement, by index."""

    one_ways: list[OneWayView]
    """The fitted 1-way marginals, one list an attribute, beside their released values."""

    total: float
    """Its estimate of the number of records."""


@dataclass(frozen=True, kw_only=True)
class Need:
    """How a `Need` is written."""

    ladder: LadderNeed
    """Of the noise."""

    largest_cell: str
    """The largest absolute value of a released integer before its noise, as decimal text."""

    squares: bool
    """Whether squared scores are released."""


@dataclass(frozen=True, kw_only=True)
class NewApiKey:
    """A new API key, under an identifier of the caller's choice."""

    name: str
    """What the key is for."""


@dataclass(frozen=True, kw_only=True)
class NewDataset:
    """A new dataset, under an identifier of the caller's choice."""

    name: str
    """A name for people."""

    terms: Terms
    """What is fixed for good."""


@dataclass(frozen=True, kw_only=True)
class NewJob:
    """A new job."""

    receipt: Receipt | None = None
    """The newest receipt of the dataset's ledger that the caller has seen."""


@dataclass(frozen=True, kw_only=True)
class NewKeySet:
    """Makes a dataset's key set and fixes its plan and budget for good."""

    terms: Terms
    """The dataset's terms."""

    voucher: str | None = field(default=None, repr=False)
    """What the generation service says of the dataset: see its route
    `/v1/datasets/{dataset}/voucher`. Not needed again once the keys are made.
    """


@dataclass(frozen=True, kw_only=True)
class NewLink:
    """A new link, under an identifier of the caller's choice."""

    name: str
    """Whom it is for, or what: shown to the dataset's holders alone."""

    days: int | None = None
    """Days after which it opens nothing, from when it was first made; absent: it is good until
    it is revoked.
    """


@dataclass(frozen=True, kw_only=True)
class NewName:
    """Another name for a dataset."""

    name: str
    """A name for people."""


@dataclass(frozen=True, kw_only=True)
class NewNote:
    """Another note on a job."""

    note: str
    """What the dataset's holders want to remember of it; empty: nothing."""


@dataclass(frozen=True, kw_only=True)
class NewPassword:
    """Another password for an account."""

    new_password: str = field(repr=False)
    """The one that it gets: at least 12 characters."""

    password: str = field(repr=False)
    """The one that it has."""


@dataclass(frozen=True, kw_only=True)
class NewRun:
    """Asks for a job's run, before anything of it is sealed."""

    upload: str
    """Digest of the upload's manifest: the same for all of a dataset's runs."""


@dataclass(frozen=True, kw_only=True)
class NewSignature:
    """A holder's consent to a dataset's terms and keys. No run begins before all holders have
    signed.
    """

    signature: str
    """Ed25519 signature, with the holder's key in the roster, of `fhaim agreement 1`, the
    dataset's identifier, and the SHA-256 of the stored terms, of the public and of the
    evaluation keys.
    """


@dataclass(frozen=True, kw_only=True)
class NewUpload:
    """Registers a dataset, or the caller's part of one, for upload. The service fetches the
    dataset's public and evaluation keys from the crypto service.
    """

    terms: Terms
    """The dataset's terms."""

    layout: WireLayout | None = None
    """What is told of the caller's number of records; absent where it uploads counts, which tell
    nothing.
    """


@dataclass(frozen=True, kw_only=True)
class OneWayView:
    """An attribute's fitted marginal."""

    fitted: list[float]
    """The model's marginal."""

    labels: list[str]
    """Its categories' or bins' labels."""

    measured: list[float]
    """The measured marginal."""


@dataclass(frozen=True, kw_only=True)
class ApiKeyPage:
    """A page of a list: `items`, and where the next page starts if there is one."""

    items: list[ApiKey]
    """The items, newest first."""

    next: str | None = None
    """Value for `after` that continues the list; absent at its end."""


@dataclass(frozen=True, kw_only=True)
class AuditEntryPage:
    """A page of a list: `items`, and where the next page starts if there is one."""

    items: list[AuditEntry]
    """The items, newest first."""

    next: str | None = None
    """Value for `after` that continues the list; absent at its end."""


@dataclass(frozen=True, kw_only=True)
class DatasetPage:
    """A page of a list: `items`, and where the next page starts if there is one."""

    items: list[Dataset]
    """The items, newest first."""

    next: str | None = None
    """Value for `after` that continues the list; absent at its end."""


@dataclass(frozen=True, kw_only=True)
class JobPage:
    """A page of a list: `items`, and where the next page starts if there is one."""

    items: list[Job]
    """The items, newest first."""

    next: str | None = None
    """Value for `after` that continues the list; absent at its end."""


@dataclass(frozen=True, kw_only=True)
class LedgerEntryPage:
    """A page of a list: `items`, and where the next page starts if there is one."""

    items: list[LedgerEntry]
    """The items, newest first."""

    next: str | None = None
    """Value for `after` that continues the list; absent at its end."""


@dataclass(frozen=True, kw_only=True)
class LinkPage:
    """A page of a list: `items`, and where the next page starts if there is one."""

    items: list[Link]
    """The items, newest first."""

    next: str | None = None
    """Value for `after` that continues the list; absent at its end."""


@dataclass(frozen=True, kw_only=True)
class ReleasedBatchPage:
    """A page of a list: `items`, and where the next page starts if there is one."""

    items: list[ReleasedBatch]
    """The items, newest first."""

    next: str | None = None
    """Value for `after` that continues the list; absent at its end."""


@dataclass(frozen=True, kw_only=True)
class PlacedRelease:
    """A release that has its positions."""

    cells: int
    """Its cells."""

    statement: str
    """Digest of the releases and of their positions."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A problem document."""

    kind: ProblemKind
    """The kind."""

    status: int
    """The HTTP status."""

    title: str
    """The same for every problem of the kind."""

    type: str
    """`urn:fhaim:problem:<kind>`."""

    detail: str | None = None
    """What is wrong this time, and the way out."""

    request_id: str | None = None
    """The request, as the services' logs know it."""

    retry_after: int | None = None
    """Seconds to wait before another try."""


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """The end of a dataset's ledger at some time, signed by the crypto service. The ledger is a
    hash chain: whoever shows a receipt finds out whether the service was set back behind it.
    """

    dataset: UUID
    """The dataset."""

    head: str
    """The hash over all of them."""

    height: int
    """Entries of the ledger."""

    signature: str
    """Ed25519 signature, base64url."""


@dataclass(frozen=True, kw_only=True)
class Refresh:
    """Exchanges a refresh token for a new session. Where the answer was lost, the same token
    again gives another; once what it gave was used, or another was given in its place, a
    second use ends all sessions that came from the same sign-in.
    """

    refresh_token: str = field(repr=False)
    """The token of the last session."""


@dataclass(frozen=True, kw_only=True)
class ReleaseRequest:
    """How a `ReleaseRequest` is written."""

    number: int
    """Position of the release in the job, across batches."""

    statistic: Statistic
    """What is released."""

    variance_units: int
    """The noise variance is 4 times this."""


@dataclass(frozen=True, kw_only=True)
class ReleasedBatch:
    """A batch of releases as the ledger has it: what was asked, debited and answered. Where its
    noise lies on the ladder follows from the run and from the cells of the releases before
    it.
    """

    answers: list[list[int]]
    """The integers of each release."""

    entries: list[dict[str, Any]]
    """Its debits, one a release."""

    height: int
    """Its place in the dataset's ledger."""

    job: UUID
    """The job."""

    requests: list[ReleaseRequest]
    """The requests, one per release."""

    run: int
    """The job's run: which window of the noise ladder it has."""


@dataclass(frozen=True, kw_only=True)
class ReleasedStatistic:
    """One release of a job: what was asked, what came back, what it cost."""

    attributes: list[str]
    """Names of the attributes it looks at."""

    cost: Cost
    """What it cost."""

    number: int
    """Its number within the job."""

    phase: str
    """The phase that asked for it."""

    sigma: float
    """Standard deviation of the noise, of all holders together."""

    statistic: Statistic
    """What was asked: integer functions of each attribute."""

    values: list[int]
    """The released integers."""

    variance_units: int
    """The requested noise variance, in the units of the noise ladder."""


@dataclass(frozen=True, kw_only=True)
class Roster:
    """How a `Roster` is written."""

    holders: list[Member]
    """The holders, in the order in which their parts are put together."""

    honest: int
    """On how many holders' noise everyone relies."""

    partition: Partition
    """How the table is divided."""


@dataclass(frozen=True, kw_only=True)
class RunLedger:
    """The ledger of one run."""

    budget: Cost
    """Its share of the budget."""

    entries: list[dict[str, Any]]
    """Its debits."""

    job: UUID
    """The job."""

    spent: Cost
    """What it has spent."""


@dataclass(frozen=True, kw_only=True)
class RunStanding:
    """A job's run, as the keeper of the ledger has it."""

    receipt: Receipt
    """The ledger with the run in it."""

    releases: list[PlacedRelease]
    """What it has released, by number."""

    run: int
    """Its number: which window of the noise ladder it has."""


@dataclass(frozen=True, kw_only=True)
class Session:
    """Tokens of a session: one for each service, which is good there and nowhere else, so that
    no service can use elsewhere what it was shown.
    """

    access_token: str = field(repr=False)
    """For the `Authorization: Bearer` header of calls to the generation service."""

    computation_token: str = field(repr=False)
    """The same for the computation service."""

    crypto_token: str = field(repr=False)
    """The same for the crypto service."""

    expires_in: int
    """Seconds until these tokens expire."""

    refresh_token: str | None = field(default=None, repr=False)
    """Good for one refresh, and again where its answer was lost; absent for sessions of API
    keys.
    """

    witness_token: str | None = field(default=None, repr=False)
    """The same for the second computation service, where the operator has one."""


@dataclass(frozen=True, kw_only=True)
class SquaredTerm:
    """How a `fhaim_release::SquaredTerm` is written."""

    clique: list[int]
    """Two attributes."""

    target: list[int]
    """What the marginal is compared with."""

    weight: int
    """The workload's weight."""


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The fields of `WireTerms`."""

    delta: float
    """Its delta."""

    epsilon: float
    """The whole privacy budget of the dataset."""

    mechanism: str
    """Name of a mechanism that runs under encryption, such as `staged`."""

    model_bytes: int
    """Most bytes a model may take."""

    record_bound: int
    """No table of the dataset has more records. Public."""

    runs: int
    """Runs the budget is shared by, equally."""

    schema: dict[str, Any]
    """The table's public schema."""

    target_weight: int
    """Weight of the pairs with the schema's target."""

    contribution: ContributionKind | None = None
    """What each holder uploads beside its noise: `records` where it is left out, or `counts`."""

    need: Need | None = None
    """What a run of the mechanism needs. The generation service fills it in where it is left
    out, and refuses another; the holder's program works it out too.
    """

    options: dict[str, Any] | None = None
    """Options of the mechanism, where they are not all to be the default. The generation service
    fills in those that are left out, and refuses by name one that the mechanism does not
    have.
    """

    parameter_set: int | None = None
    """Number of the parameter set. The generation service fills it in where it is left out."""

    roster: Roster | None = None
    """The holders, where there are several. The first made the dataset; each names its account
    by its identifier.
    """

    version: int | None = None
    """The version of this format."""

    witness: bool | None = None
    """Whether a second computation service computes every batch as well, and nothing is
    decrypted that the two do not agree on.
    """


@dataclass(frozen=True, kw_only=True)
class Upload:
    """An upload."""

    contributions: list[Contribution]
    """Its contributions."""

    dataset: UUID
    """The dataset."""

    layout: WireLayout | None = None
    """What is told of the number of records; of holders of several parts, of the first that was
    registered; absent where they upload counts.
    """


@dataclass(frozen=True, kw_only=True)
class UploadKeyRequest:
    """A holder's request for its upload key."""

    one_time_key: str
    """The X25519 public key that the answer is encrypted to, made for only this request."""

    signature: str
    """Ed25519 signature, with the holder's key in the roster, of `fhaim upload key request 1`,
    the dataset's identifier, the holder's number (4 bytes, little-endian), the SHA-256 of the
    evaluation keys, and the one-time key.
    """


@dataclass(frozen=True, kw_only=True)
class UploadKeySeeds:
    """A holder's upload key, as the key services send it."""

    seeds: list[str]
    """The seed of each key service, in the order of the terms: base64url of an HPKE message (RFC
    9180, base mode, X25519, HKDF-SHA256, ChaCha20-Poly1305).
    """


@dataclass(frozen=True, kw_only=True)
class Usage:
    """An account's use of one service."""

    limits: list[Used]
    """One entry a limit."""


@dataclass(frozen=True, kw_only=True)
class Used:
    """How far an account is from one limit."""

    limit: str
    """Name of the limit, as the service's configuration has it."""

    most: int
    """What it may use."""

    used: int
    """What the account uses."""


@dataclass(frozen=True, kw_only=True)
class Voucher:
    """What the crypto service wants to see before it makes a dataset's keys."""

    expires_in: int
    """Seconds until it is of no more use."""

    voucher: str = field(repr=False)
    """Says, signed by the generation service, that the dataset is there and the account's."""


@dataclass(frozen=True, kw_only=True)
class WireLayout:
    """How many records a chunk has room for, and how many chunks there are: all that is told of
    the number of records.
    """

    chunks: int
    """Record chunks."""

    stride: int
    """Positions a chunk's records take: a power of two."""


@dataclass(frozen=True, kw_only=True)
class Witnessed:
    """What the second computation service computed a batch to, for the keeper of the ledger to
    hold what it is sent against.
    """

    asked: str
    """Digest of what was asked: the batch's releases."""

    request: str
    """Digest of the request for decryption that came of it."""


BatchStatus = Union[BatchStatusQueued, BatchStatusRunning, BatchStatusReleased, BatchStatusRefused]
"""Where a batch is."""


ContributionKind = Literal["records", "counts"]
"""What a holder uploads beside its noise."""


DatasetState = Literal["uploading", "ready"]
"""How far a dataset is."""


Happening = Union[HappeningState, HappeningPhase, HappeningComputing, HappeningReleased]
"""What happened to a job."""


JobState = Literal["queued", "running", "done", "failed", "cancelled"]
"""Where a job is."""


Partition = Literal["records", "columns"]
"""How a table is divided."""


ProblemKind = Literal[
    "malformed", "invalid", "unauthenticated", "forbidden", "not-found", "method-not-allowed",
    "conflict", "too-large", "unsupported-media-type", "digest-mismatch", "budget-spent", "refused",
    "frozen", "restored", "quota", "too-many-requests", "full", "unavailable", "internal",
]
"""What kind of problem it is; programs go by this, not by the words."""


Statistic = Any
"""How a `fhaim_release::Statistic` is written."""


TableFormat = Literal["csv", "parquet"]
"""The form of a synthetic table."""


UploadState = Literal["open", "complete"]
"""How far an upload is."""

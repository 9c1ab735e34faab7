"""Types that the services read and write.

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
    """Time of creation."""

    email: str
    """Email address that it signs in with."""

    id: UUID
    """Identifier of the account, which is the subject of its tokens."""


@dataclass(frozen=True, kw_only=True)
class AccountTokens:
    """The ended tokens of an account."""

    account: str
    """Digest of the account's identifier (`AccountTokens::digest`)."""

    epoch: int
    """Tokens with a smaller number (`Claims::epoch`) have ended."""


@dataclass(frozen=True, kw_only=True)
class ApiKey:
    """An API key, without its text."""

    created_at: datetime
    """Time of creation."""

    id: UUID
    """Identifier of the key."""

    name: str
    """Purpose of the key."""

    last_used_at: datetime | None = None
    """Time of the last exchange for a session."""


@dataclass(frozen=True, kw_only=True)
class ApiKeyMade:
    """A new API key. This is the only time that its text is shown. Until the key is used,
    creating it again replaces its text.
    """

    key: ApiKey
    """The key, without its text."""

    text: str = field(repr=False)
    """The text of the key, to be kept by the caller."""


@dataclass(frozen=True, kw_only=True)
class AuditEntry:
    """An action of the crypto service on behalf of a caller."""

    action: str
    """The requested action."""

    actor: str
    """The caller: a user's identifier or a service's name."""

    at: datetime
    """Time of the action."""

    granted: bool
    """Whether it was done."""

    number: int
    """Number of the entry within the dataset."""


@dataclass(frozen=True, kw_only=True)
class Axis:
    """The JSON form of a `fhaim_release::Axis`: integer functions of one attribute."""

    attribute: int
    """Number of the attribute."""

    functions: list[list[int]]
    """The values of each function for every category."""


@dataclass(frozen=True, kw_only=True)
class Batch:
    """A batch of releases of one job. A repeated batch gets the same answer."""

    requests: list[ReleaseRequest]
    """The requested releases, numbered in ascending order."""

    again: bool | None = None
    """Whether to restart a batch that was refused."""

    receipts: list[Receipt] | None = None
    """Receipts of the dataset's ledger that the calling service has. They are passed on to the
    crypto service.
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
class BatchStatusWaiting:
    """Waiting for another service, which does not answer or has a temporary fault."""

    reason: str
    """The service and its trouble."""

    state: Literal["waiting"]


@dataclass(frozen=True, kw_only=True)
class BatchStatusReleased:
    """Released."""

    answers: list[list[int]]
    """The integers of each release, in the order of the request."""

    compute_seconds: float
    """Seconds spent on ciphertexts."""

    receipt: Receipt
    """Receipt of the dataset's ledger including this batch."""

    state: Literal["released"]


@dataclass(frozen=True, kw_only=True)
class BatchStatusRefused:
    """Refused permanently."""

    reason: str
    """Reason, as far as it may be disclosed."""

    state: Literal["refused"]

    without_run: bool | None = None
    """Whether the crypto service gave the job no run because none was left. The job then has no
    run.
    """


@dataclass(frozen=True, kw_only=True)
class CloseAccount:
    """Proof that the owner of an account wants to delete it."""

    password: str = field(repr=False)
    """Password of the account."""


@dataclass(frozen=True, kw_only=True)
class Complete:
    """Seals an upload. Afterwards, no object can be added or changed."""

    manifest: str
    """Digest of the manifest. The manifest has one line for each object, in ascending order of
    name: `name`, a space, the object's digest in hexadecimal, and a newline.
    """


@dataclass(frozen=True, kw_only=True)
class Confirmation:
    """The confirmations of a key by all services that share it."""

    attempt: str
    """Identifier of the attempt that made the key: base64url."""

    messages: list[str]
    """A signed message of each service: base64url."""


@dataclass(frozen=True, kw_only=True)
class Contribution:
    """One holder's upload: records, as a rectangle of the dataset's grid (record chunks down,
    columns across), or counts. A dataset with one holder has one contribution, number 0. With
    several holders, each holder's contribution has the holder's number in the roster, once it
    is registered.
    """

    bytes_present: int
    """Bytes of the uploaded objects."""

    chunks: list[int]
    """The first record chunk of this part, and its number of chunks. `[0, 0]` for counts."""

    columns: list[int]
    """The first one-hot column of this part, and its number of columns."""

    number: int
    """Number of the contribution within the dataset."""

    object_bytes: int
    """Bytes of one encrypted object. The switching keys of a sole holder have another size."""

    objects: int
    """Number of objects of the complete upload."""

    objects_present: int
    """Number of uploaded objects."""

    state: UploadState
    """State of its upload."""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """A privacy cost, exact and as a number for display."""

    exact: str
    """The cost times 2^80, in decimal."""

    rho: float
    """The nearest double."""


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """The credentials for signing up or in."""

    email: str
    """Email address. Case is ignored."""

    password: str = field(repr=False)
    """Password of at least 12 characters."""


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A dataset."""

    budget: Cost
    """The budget that epsilon and delta amount to."""

    created_at: datetime
    """Time of creation."""

    id: UUID
    """Identifier of the dataset, the same at all services."""

    name: str
    """Name of the dataset, for people."""

    runs_left: int
    """Number of runs that no job has taken. A job takes a run while it is active or once it has
    requested a release.
    """

    state: DatasetState
    """State of the dataset."""

    terms: Terms
    """The terms, which cannot change."""

    holders: list[str] | None = None
    """The addresses with which the roster's holders sign in, in the order of the roster. Empty
    if one holder has the whole table.
    """


@dataclass(frozen=True, kw_only=True)
class DatasetLedger:
    """The ledger of a dataset: all debits, and the remaining budget."""

    budget: Cost
    """Budget of the dataset."""

    dataset: UUID
    """The dataset."""

    receipt: Receipt
    """Receipt of the current ledger."""

    runs: list[RunLedger]
    """The runs that have begun, oldest first."""

    spent: Cost
    """Cost of all releases so far."""

    unclaimed: Cost
    """Budget that no run has yet."""

    frozen: str | None = None
    """The reason for which nothing more is released, if the dataset is frozen."""


@dataclass(frozen=True, kw_only=True)
class DebitedByServices:
    """The debits of all further key services of a dataset."""

    services: list[DebitedReleases]
    """One list for each service in the order of the terms, without the first service, which
    returns this next to its own ledger.
    """


@dataclass(frozen=True, kw_only=True)
class DebitedRelease:
    """A release that a key service has debited."""

    job: UUID
    """The job."""

    number: int
    """The release's number within the job."""

    statement: str
    """Digest of the release and of its positions."""


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
    """Receipt of the ledger including these releases."""


@dataclass(frozen=True, kw_only=True)
class EndedTokens:
    """Tokens that ended before their expiry: those of accounts whose password was changed, that
    were disabled or deleted, or whose sessions were ended. The list is public and names no
    account.
    """

    accounts: list[AccountTokens]
    """The accounts."""


@dataclass(frozen=True, kw_only=True)
class HappeningState:
    """The state changed."""

    kind: Literal["state"]

    state: JobState
    """The new state."""

    error: str | None = None
    """Reason, if the job failed."""


@dataclass(frozen=True, kw_only=True)
class HappeningPhase:
    """The mechanism requested a batch, or started its last fit."""

    kind: Literal["phase"]

    progress: JobProgress
    """Current activity."""

    releases: int
    """Number of requested releases."""


@dataclass(frozen=True, kw_only=True)
class HappeningComputing:
    """The computation service is computing the current batch."""

    kind: Literal["computing"]

    seconds: float
    """Seconds since it started."""


@dataclass(frozen=True, kw_only=True)
class HappeningReleased:
    """A batch was released."""

    cells: int
    """Number of integers in these releases."""

    kind: Literal["released"]

    releases: int
    """Number of releases in the batch."""

    spent: Cost
    """Cost of the job so far."""


@dataclass(frozen=True, kw_only=True)
class HolderStanding:
    """A holder of the roster."""

    account: str
    """Account of the holder, as in the roster."""

    signed: bool
    """Whether it has signed the terms and keys."""

    withdrawn: bool
    """Whether it has withdrawn, so that no further run can begin."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job."""

    attempts: int
    """Number of workers that have processed it."""

    created_at: datetime
    """Time of creation."""

    dataset: UUID
    """The dataset of the job."""

    id: UUID
    """Identifier of the job."""

    releases: int
    """Number of releases so far."""

    spent: Cost
    """Total cost of these releases."""

    state: JobState
    """State of the job."""

    updated_at: datetime
    """Time of the last change of its state."""

    error: str | None = None
    """Reason of the failure."""

    note: str | None = None
    """The note of the dataset's holders on the job."""

    progress: JobProgress | None = None
    """Current activity, once the job has started."""


@dataclass(frozen=True, kw_only=True)
class JobEvent:
    """One event of a job's event stream. Event numbers increase by one. A client that reconnects
    sends the number of the last event that it saw as `Last-Event-ID`.
    """

    at: datetime
    """Time of the event."""

    number: int
    """Number of the event within the job, from 1."""

    what: Happening
    """The event itself."""


@dataclass(frozen=True, kw_only=True)
class JobEventMessage:
    """A `JobEvent` as it is sent: a server-sent event."""

    data: str
    """The `JobEvent` as JSON."""

    id: str
    """Number of the event."""


@dataclass(frozen=True, kw_only=True)
class JobProgress:
    """The current activity of a job."""

    phase: str
    """Description of the current phase, such as `Choosing pairs` or `Fitting the model`."""

    round: int
    """Number of the current batch, counted from 1. The last fit counts as a batch."""

    rounds: int
    """Largest possible number of batches."""


@dataclass(frozen=True, kw_only=True)
class KeyExchange:
    """Exchanges an API key for a session."""

    api_key: str = field(repr=False)
    """The API key, as it was shown once."""


@dataclass(frozen=True, kw_only=True)
class KeyServiceDocument:
    """A service that can share a key."""

    key: str
    """The Ed25519 public key of its signatures: 64 hexadecimal digits."""

    name: str
    """Name of the service, for people."""


@dataclass(frozen=True, kw_only=True)
class KeyServices:
    """The services that can share a key here, starting with the first one."""

    services: list[KeyServiceDocument]
    """The services, in the order of their numbers."""


@dataclass(frozen=True, kw_only=True)
class KeySet:
    """A dataset's key set."""

    budget: Cost
    """Budget of the dataset."""

    created_at: datetime
    """Time of creation."""

    dataset: UUID
    """The dataset."""

    evaluation_keys: str
    """Digest of the evaluation keys."""

    parameter_set: int
    """Number of the encryption parameter set."""

    public_key: str
    """Digest of the public key."""

    receipt: Receipt
    """Receipt of the current ledger."""

    receipt_key: str
    """The public key that the dataset's receipts are checked with: Ed25519, base64url."""

    runs_begun: int
    """Number of runs that have begun."""

    spent: Cost
    """Cost of all releases so far."""

    terms: Terms
    """The terms, which cannot change."""

    confirmation: Confirmation | None = None
    """The confirmations of the keys by all services, if several share the secret key."""

    holders: list[HolderStanding] | None = None
    """The holders of the roster, in its order. Empty if one holder has the whole table."""


@dataclass(frozen=True, kw_only=True)
class LadderNeed:
    """The JSON form of a `fhaim_release::LadderNeed`."""

    cells: int
    """Number of integers released in the whole run."""

    largest_variance_units: int
    """Largest variance of a release, in units of 4."""


@dataclass(frozen=True, kw_only=True)
class LedgerEntry:
    """An entry of a dataset's ledger, in the form that the ledger's hash covers."""

    act: str
    """The hashed text: JSON."""

    height: int
    """Number of the entry in the ledger, from 1."""


@dataclass(frozen=True, kw_only=True)
class Link:
    """A link, without its secret."""

    created_at: datetime
    """Time of creation."""

    id: UUID
    """Identifier of the link."""

    name: str
    """Recipient or purpose of the link."""

    expires_at: datetime | None = None
    """Time at which the link expires. If absent, the link is valid until it is revoked."""

    last_opened_at: datetime | None = None
    """Time of the last access."""


@dataclass(frozen=True, kw_only=True)
class LinkMade:
    """A new link. This is the only time that its secret is shown. Until the link is opened,
    creating it again replaces its secret.
    """

    link: Link
    """The link, without its secret."""

    secret: str = field(repr=False)
    """The secret, which opens the link together with its identifier. In an address it belongs
    after the `#`, since that part is not sent to servers.
    """


@dataclass(frozen=True, kw_only=True)
class LinkedAttribute:
    """An attribute of a `LinkedResult`."""

    labels: list[str]
    """Labels of its categories or bins."""

    name: str
    """Name of the attribute."""


@dataclass(frozen=True, kw_only=True)
class LinkedResult:
    """The data card of a result: everything that a link shows, in addition to the tables drawn
    through it.
    """

    attributes: list[LinkedAttribute]
    """The labels of each attribute's values, as used in conditions on the records."""

    caveats: list[str]
    """Caveats to know before using the table."""

    delta: float
    """Delta of this budget."""

    epsilon: float
    """Epsilon of the privacy budget of all of the dataset's jobs together."""

    job: UUID
    """The job that made the result."""

    made_at: datetime
    """Time at which the job ended."""

    mechanism: str
    """Name of the mechanism."""

    name: str
    """Name of the dataset."""

    runs: int
    """Number of jobs that share the budget."""

    schema: dict[str, Any]
    """Public schema of the table."""

    spent: Cost
    """Cost of the job."""

    total: float
    """Number of records, as estimated by the model."""


@dataclass(frozen=True, kw_only=True)
class Listing:
    """Uploaded objects of a contribution, for the second computation service."""

    objects: dict[str, str]
    """Digests of the objects, by name."""


@dataclass(frozen=True, kw_only=True)
class Member:
    """The JSON form of a holder in a `Roster`."""

    account: str
    """Identifier of its account."""

    key: str
    """The Ed25519 public key of its signatures: 64 hexadecimal digits."""

    record_bound: int
    """Most records that it may have."""

    columns: list[str] | None = None
    """Names of its columns, if holders have columns."""


@dataclass(frozen=True, kw_only=True)
class Missing:
    """Objects of a contribution that are still missing, in order."""

    objects: list[str]
    """Names of the objects, such as `column/12/3`, `noise/0/4/1` and `keys`."""


@dataclass(frozen=True, kw_only=True)
class ModelView:
    """The model of a finished job."""

    attributes: list[str]
    """Names of the attributes."""

    bytes: int
    """Bytes of the junction tree."""

    cliques: list[list[int]]
    """Cliques of the junction tree, by attribute index."""

    measured_pairs: list[list[int]]
    """Pairs with a measurement, by attribute index."""

    one_ways: list[OneWayView]
    """The fitted 1-way marginals, one for each attribute, together with their released values."""

    total: float
    """The model's estimate of the number of records."""


@dataclass(frozen=True, kw_only=True)
class Need:
    """The JSON form of a `Need`."""

    ladder: LadderNeed
    """Need of noise."""

    largest_cell: str
    """Largest absolute value of a released integer before its noise, as decimal text."""

    squares: bool
    """Whether squared scores are released."""


@dataclass(frozen=True, kw_only=True)
class NewApiKey:
    """A new API key. The caller chooses its identifier."""

    name: str
    """Purpose of the key."""


@dataclass(frozen=True, kw_only=True)
class NewDataset:
    """A new dataset. The caller chooses its identifier."""

    name: str
    """Name of the dataset, for people."""

    terms: Terms
    """The terms, which cannot change afterwards."""


@dataclass(frozen=True, kw_only=True)
class NewJob:
    """A new job."""

    receipt: Receipt | None = None
    """Newest receipt of the dataset's ledger that the caller has seen."""


@dataclass(frozen=True, kw_only=True)
class NewKeySet:
    """Makes a dataset's key set, and fixes its plan and budget permanently."""

    terms: Terms
    """The dataset's terms."""

    voucher: str | None = field(default=None, repr=False)
    """The generation service's voucher for the dataset: see its route
    `/v1/datasets/{dataset}/voucher`. It is not needed once the keys are made.
    """


@dataclass(frozen=True, kw_only=True)
class NewLink:
    """A new link. The caller chooses its identifier."""

    name: str
    """Recipient or purpose of the link. Only the dataset's holders see it."""

    days: int | None = None
    """Days after which the link expires, counted from its creation. If absent, the link is valid
    until it is revoked.
    """


@dataclass(frozen=True, kw_only=True)
class NewName:
    """A new name for a dataset."""

    name: str
    """Name of the dataset, for people."""


@dataclass(frozen=True, kw_only=True)
class NewNote:
    """A new note on a job."""

    note: str
    """The note of the dataset's holders on the job. Empty to remove it."""


@dataclass(frozen=True, kw_only=True)
class NewPassword:
    """A new password for an account."""

    new_password: str = field(repr=False)
    """The new password, of at least 12 characters."""

    password: str = field(repr=False)
    """The current password."""


@dataclass(frozen=True, kw_only=True)
class NewRun:
    """Requests a job's run, before anything of it is sealed."""

    upload: str
    """Digest of the upload's manifest, the same for all runs of a dataset."""


@dataclass(frozen=True, kw_only=True)
class NewSignature:
    """A holder's consent to a dataset's terms and keys. A run can begin only when all holders
    have signed.
    """

    signature: str
    """Ed25519 signature with the holder's key in the roster. It covers `fhaim agreement 1`, the
    dataset's identifier, and the SHA-256 of the stored terms, of the public key and of the
    evaluation keys.
    """


@dataclass(frozen=True, kw_only=True)
class NewUpload:
    """Registers a dataset, or the caller's part of one, for upload. The service fetches the
    dataset's public key and evaluation keys from the crypto service.
    """

    terms: Terms
    """The dataset's terms."""

    layout: WireLayout | None = None
    """Layout of the caller's records. Absent if it uploads counts, which disclose nothing about
    the number of records.
    """


@dataclass(frozen=True, kw_only=True)
class OneWayView:
    """An attribute's fitted marginal."""

    fitted: list[float]
    """The model's marginal."""

    labels: list[str]
    """Labels of its categories or bins."""

    measured: list[float]
    """The measured marginal."""


@dataclass(frozen=True, kw_only=True)
class ApiKeyPage:
    """A page of a list: `items`, and the start of the next page if there is one."""

    items: list[ApiKey]
    """The items, newest first."""

    damaged: list[UUID] | None = None
    """Identifiers of items that are left out because their stored data is damaged."""

    next: str | None = None
    """Value of `after` that continues the list. Absent at its end."""


@dataclass(frozen=True, kw_only=True)
class AuditEntryPage:
    """A page of a list: `items`, and the start of the next page if there is one."""

    items: list[AuditEntry]
    """The items, newest first."""

    damaged: list[UUID] | None = None
    """Identifiers of items that are left out because their stored data is damaged."""

    next: str | None = None
    """Value of `after` that continues the list. Absent at its end."""


@dataclass(frozen=True, kw_only=True)
class DatasetPage:
    """A page of a list: `items`, and the start of the next page if there is one."""

    items: list[Dataset]
    """The items, newest first."""

    damaged: list[UUID] | None = None
    """Identifiers of items that are left out because their stored data is damaged."""

    next: str | None = None
    """Value of `after` that continues the list. Absent at its end."""


@dataclass(frozen=True, kw_only=True)
class JobPage:
    """A page of a list: `items`, and the start of the next page if there is one."""

    items: list[Job]
    """The items, newest first."""

    damaged: list[UUID] | None = None
    """Identifiers of items that are left out because their stored data is damaged."""

    next: str | None = None
    """Value of `after` that continues the list. Absent at its end."""


@dataclass(frozen=True, kw_only=True)
class LedgerEntryPage:
    """A page of a list: `items`, and the start of the next page if there is one."""

    items: list[LedgerEntry]
    """The items, newest first."""

    damaged: list[UUID] | None = None
    """Identifiers of items that are left out because their stored data is damaged."""

    next: str | None = None
    """Value of `after` that continues the list. Absent at its end."""


@dataclass(frozen=True, kw_only=True)
class LinkPage:
    """A page of a list: `items`, and the start of the next page if there is one."""

    items: list[Link]
    """The items, newest first."""

    damaged: list[UUID] | None = None
    """Identifiers of items that are left out because their stored data is damaged."""

    next: str | None = None
    """Value of `after` that continues the list. Absent at its end."""


@dataclass(frozen=True, kw_only=True)
class ReleasedBatchPage:
    """A page of a list: `items`, and the start of the next page if there is one."""

    items: list[ReleasedBatch]
    """The items, newest first."""

    damaged: list[UUID] | None = None
    """Identifiers of items that are left out because their stored data is damaged."""

    next: str | None = None
    """Value of `after` that continues the list. Absent at its end."""


@dataclass(frozen=True, kw_only=True)
class PlacedRelease:
    """A release with its positions assigned."""

    cells: int
    """Number of cells."""

    statement: str
    """Digest of the release and of its positions."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A problem document."""

    kind: ProblemKind
    """The kind of the problem."""

    status: int
    """The HTTP status."""

    title: str
    """Title, the same for every problem of the kind."""

    type: str
    """`urn:fhaim:problem:<kind>`."""

    detail: str | None = None
    """Description of this problem, and how to solve it."""

    request_id: str | None = None
    """Identifier of the request in the services' logs."""

    retry_after: int | None = None
    """Seconds to wait before a retry."""


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """The end of a dataset's ledger at some time, signed by the crypto service. The ledger is a
    hash chain: a receipt shows whether the service was set back to a state before it.
    """

    dataset: UUID
    """The dataset."""

    head: str
    """Hash over all entries."""

    height: int
    """Number of entries in the ledger."""

    signature: str
    """Ed25519 signature, base64url."""


@dataclass(frozen=True, kw_only=True)
class Refresh:
    """Exchanges a refresh token for a new session. If the answer was lost, the same token gives
    another session. Once a token from an answer was used, or was replaced by another, a
    second use of the old token ends all sessions of the same sign-in.
    """

    refresh_token: str = field(repr=False)
    """Refresh token of the last session."""


@dataclass(frozen=True, kw_only=True)
class ReleaseRequest:
    """The JSON form of a `ReleaseRequest`."""

    number: int
    """Number of the release in the job, counted across batches."""

    statistic: Statistic
    """The released statistic."""

    variance_units: int
    """The noise variance is 4 times this."""


@dataclass(frozen=True, kw_only=True)
class ReleasedBatch:
    """A batch of releases in the ledger: requests, debits and answers. The positions of its
    noise on the ladder follow from the run and from the cells of earlier releases.
    """

    answers: list[list[int]]
    """The integers of each release."""

    entries: list[dict[str, Any]]
    """Its debits, one for each release."""

    height: int
    """Number of its entry in the dataset's ledger."""

    job: UUID
    """The job."""

    requests: list[ReleaseRequest]
    """The requests, one for each release."""

    run: int
    """The job's run, which determines its window of the noise ladder."""


@dataclass(frozen=True, kw_only=True)
class ReleasedStatistic:
    """One release of a job: the requested statistic, the released integers and their cost."""

    attributes: list[str]
    """Names of the attributes that the statistic uses."""

    cost: Cost
    """Cost of the release."""

    number: int
    """Number of the release within the job."""

    phase: str
    """The phase that requested it."""

    sigma: float
    """Standard deviation of the noise of all holders together."""

    statistic: Statistic
    """The requested statistic: integer functions of each attribute."""

    values: list[int]
    """The released integers."""

    variance_units: int
    """Requested noise variance, in the units of the noise ladder."""


@dataclass(frozen=True, kw_only=True)
class Roster:
    """The JSON form of a `Roster`."""

    holders: list[Member]
    """The holders, in the order in which their parts are joined."""

    honest: int
    """Number of holders whose noise everyone relies on."""

    partition: Partition
    """How the table is divided."""


@dataclass(frozen=True, kw_only=True)
class RunLedger:
    """The ledger of one run."""

    budget: Cost
    """The run's share of the budget."""

    entries: list[dict[str, Any]]
    """The debits of the run."""

    job: UUID
    """The job."""

    spent: Cost
    """Cost of its releases so far."""


@dataclass(frozen=True, kw_only=True)
class RunStanding:
    """A job's run, as in the ledger."""

    receipt: Receipt
    """Receipt of the ledger including the run."""

    releases: list[PlacedRelease]
    """Its releases, by number."""

    run: int
    """Number of the run, which determines its window of the noise ladder."""


@dataclass(frozen=True, kw_only=True)
class Session:
    """Tokens of a session, with one token for each service. A token is valid only at its
    service, so that no service can use a token elsewhere.
    """

    access_token: str = field(repr=False)
    """For the `Authorization: Bearer` header of calls to the generation service."""

    computation_token: str = field(repr=False)
    """Token for the computation service."""

    crypto_token: str = field(repr=False)
    """Token for the crypto service."""

    expires_in: int
    """Seconds until these tokens expire."""

    refresh_token: str | None = field(default=None, repr=False)
    """Valid for one refresh, and again if its answer was lost. Absent for sessions of API keys."""

    witness_token: str | None = field(default=None, repr=False)
    """Token for the second computation service, if the operator has one."""


@dataclass(frozen=True, kw_only=True)
class SquaredTerm:
    """The JSON form of a `fhaim_release::SquaredTerm`."""

    clique: list[int]
    """Two attributes."""

    target: list[int]
    """Integers that the marginal is compared with."""

    weight: int
    """Weight of the pair in the workload."""


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The fields of `WireTerms`."""

    delta: float
    """Delta of the dataset's whole privacy budget."""

    epsilon: float
    """Epsilon of the dataset's whole privacy budget."""

    mechanism: str
    """Name of a mechanism that runs under encryption, such as `staged`."""

    model_bytes: int
    """Most bytes that a model may take."""

    record_bound: int
    """Most records that a table of the dataset may have. Public."""

    runs: int
    """Number of runs that share the budget equally."""

    schema: dict[str, Any]
    """Public schema of the table."""

    target_weight: int
    """Weight of the pairs with the schema's target."""

    contribution: ContributionKind | None = None
    """Data that each holder uploads in addition to its noise: `records` (the default) or
    `counts`.
    """

    need: Need | None = None
    """The noise and encryption that a run of the mechanism needs. If absent, the generation
    service fills it in. A wrong need is rejected. The holder's program computes it too.
    """

    options: dict[str, Any] | None = None
    """Options of the mechanism. Absent if all have their defaults. The generation service fills
    in the options that are left out, and rejects unknown options by name.
    """

    parameter_set: int | None = None
    """Number of the parameter set. If absent, the generation service fills it in."""

    roster: Roster | None = None
    """The holders, if there are several. The first one created the dataset. Each holder's
    account is given by its identifier.
    """

    version: int | None = None
    """Version of this format."""

    witness: bool | None = None
    """Whether a second computation service computes every batch too. Only batches on which the
    two agree are decrypted.
    """


@dataclass(frozen=True, kw_only=True)
class Upload:
    """An upload."""

    contributions: list[Contribution]
    """The contributions of the holders."""

    dataset: UUID
    """The dataset."""

    layout: WireLayout | None = None
    """Layout of the records. With several contributions, that of the first one that was
    registered. Absent if the holders upload counts.
    """


@dataclass(frozen=True, kw_only=True)
class UploadKeyRequest:
    """A holder's request for its upload key."""

    one_time_key: str
    """The X25519 public key that the answer is encrypted to. It is used for this request only."""

    signature: str
    """Ed25519 signature with the holder's key in the roster. It covers `fhaim upload key request
    1`, the dataset's identifier, the holder's number (4 bytes, little-endian), the SHA-256 of
    the evaluation keys, and the one-time key.
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
    """An account's usage of one service."""

    limits: list[Used]
    """One entry for each limit."""


@dataclass(frozen=True, kw_only=True)
class Used:
    """An account's usage under one limit."""

    limit: str
    """Name of the limit, as in the service's configuration."""

    most: int
    """The largest allowed usage."""

    used: int
    """The account's current usage."""


@dataclass(frozen=True, kw_only=True)
class Voucher:
    """A voucher that the crypto service requires before it makes a dataset's keys."""

    expires_in: int
    """Seconds until it expires."""

    voucher: str = field(repr=False)
    """The generation service's signed statement that the dataset exists and belongs to the
    account.
    """


@dataclass(frozen=True, kw_only=True)
class WireLayout:
    """Room for records in a chunk, and the number of chunks. This is everything that is
    disclosed about the number of records.
    """

    chunks: int
    """Number of record chunks."""

    stride: int
    """Number of positions that a chunk's records take: a power of two."""


@dataclass(frozen=True, kw_only=True)
class Witnessed:
    """The second computation service's result for a batch. The keeper of the ledger compares it
    with the request that it receives.
    """

    asked: str
    """Digest of the batch's releases."""

    request: str
    """Digest of the resulting request for decryption."""


BatchStatus = Union[
    BatchStatusQueued, BatchStatusRunning, BatchStatusWaiting, BatchStatusReleased,
    BatchStatusRefused,
]
"""The state of a batch."""


ContributionKind = Literal["records", "counts"]
"""Data that a holder uploads in addition to its noise."""


DatasetState = Literal["uploading", "ready", "deleting"]
"""The state of a dataset."""


Happening = Union[HappeningState, HappeningPhase, HappeningComputing, HappeningReleased]
"""An event of a job."""


JobState = Literal["queued", "running", "done", "failed", "cancelled"]
"""The state of a job."""


Partition = Literal["records", "columns"]
"""How a table is divided."""


ProblemKind = Literal[
    "malformed", "invalid", "unauthenticated", "forbidden", "not-found", "method-not-allowed",
    "conflict", "too-large", "unsupported-media-type", "digest-mismatch", "budget-spent", "refused",
    "frozen", "restored", "quota", "too-many-requests", "full", "unavailable", "damaged", "internal",
]
"""The kind of a problem. Programs should use the kind, not the text."""


Statistic = Any
"""The JSON form of a `fhaim_release::Statistic`."""


TableFormat = Literal["csv", "parquet"]
"""The file format of a synthetic table."""


UploadState = Literal["open", "complete"]
"""The state of an upload."""

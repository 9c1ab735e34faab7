"""One method for each operation of the three services.

Written by generate.py from openapi/*.json: do not edit.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from fhaim.models import (
    Account,
    ApiKeyMade,
    ApiKeyPage,
    AuditEntryPage,
    Batch,
    BatchStatus,
    CloseAccount,
    Complete,
    Credentials,
    Dataset,
    DatasetLedger,
    DatasetPage,
    DebitedByServices,
    Decrypted,
    Job,
    JobPage,
    KeyExchange,
    KeyServices,
    KeySet,
    LedgerEntryPage,
    LinkMade,
    LinkPage,
    LinkedResult,
    Listing,
    Missing,
    ModelView,
    NewApiKey,
    NewDataset,
    NewJob,
    NewKeySet,
    NewLink,
    NewName,
    NewNote,
    NewPassword,
    NewRun,
    NewSignature,
    NewUpload,
    Receipt,
    Refresh,
    ReleasedBatchPage,
    ReleasedStatistic,
    RunStanding,
    Session,
    TableFormat,
    Upload,
    UploadKeyRequest,
    UploadKeySeeds,
    Usage,
    Voucher,
    Witnessed,
)
from fhaim.transport import Stream, Transport, path


class Generation:
    """Accounts, datasets, jobs, models, synthetic tables."""

    def __init__(self, transport: Transport) -> None:
        self._http = transport

    def jwks(self) -> dict[str, Any]:
        """Keys that this service signs tokens with."""
        return self._http.json(dict[str, Any], "GET", "/.well-known/jwks.json", signed=False)

    def document(self) -> dict[str, Any]:
        """This document."""
        return self._http.json(dict[str, Any], "GET", "/openapi.json", signed=False)

    def show_account(self) -> Account:
        """The caller's account."""
        return self._http.json(Account, "GET", "/v1/account")

    def close_account(self, body: CloseAccount) -> None:
        """Deletes the account, with its sessions and API keys. Refused while it has datasets:
        delete them first, at all three services.
        """
        self._http.nothing("DELETE", "/v1/account", body=body)

    def change_password(self, body: NewPassword) -> Session:
        """Gives the account another password, and ends all of its sessions; the answer is a new
        one.
        """
        return self._http.json(Session, "PUT", "/v1/account/password", body=body)

    def end_all_sessions(self) -> None:
        """Signs out everywhere: ends all sessions of the account. API keys stay; tokens that are
        out are good for a quarter of an hour at most.
        """
        self._http.nothing("DELETE", "/v1/account/sessions")

    def sign_up(self, body: Credentials) -> Account:
        """Signs up."""
        return self._http.json(Account, "POST", "/v1/accounts", body=body, signed=False)

    def list_keys(self, *, after: str | None = None, limit: int | None = None) -> ApiKeyPage:
        """The caller's API keys."""
        return self._http.json(
            ApiKeyPage,
            "GET",
            "/v1/api-keys",
            query={"after": after, "limit": limit},
        )

    def make_key(self, id: UUID, body: NewApiKey) -> ApiKeyMade:
        """Makes an API key under an identifier that the caller chooses; its text is shown this
        once. The same again, before the key was used, gives a new text in the place of one
        that was lost.
        """
        return self._http.json(ApiKeyMade, "PUT", path("/v1/api-keys/{}", id), body=body)

    def delete_key(self, id: UUID) -> None:
        """Deletes an API key."""
        self._http.nothing("DELETE", path("/v1/api-keys/{}", id))

    def list_datasets(self, *, after: str | None = None, limit: int | None = None) -> DatasetPage:
        """The caller's datasets."""
        return self._http.json(
            DatasetPage,
            "GET",
            "/v1/datasets",
            query={"after": after, "limit": limit},
        )

    def show_dataset(self, dataset: UUID) -> Dataset:
        """A dataset."""
        return self._http.json(Dataset, "GET", path("/v1/datasets/{}", dataset))

    def make_dataset(self, dataset: UUID, body: NewDataset) -> Dataset:
        """Makes a dataset under an identifier that the caller chooses. Its key and its upload
        are made under the same identifier at the crypto and the computation service. The same
        again changes nothing.
        """
        return self._http.json(Dataset, "PUT", path("/v1/datasets/{}", dataset), body=body)

    def delete_dataset(self, dataset: UUID) -> None:
        """Deletes this service's part of a dataset: jobs, releases, models. Jobs that are queued
        or running are stopped.
        """
        self._http.nothing("DELETE", path("/v1/datasets/{}", dataset))

    def list_jobs(
        self,
        dataset: UUID,
        *,
        after: str | None = None,
        limit: int | None = None,
    ) -> JobPage:
        """A dataset's jobs."""
        return self._http.json(
            JobPage,
            "GET",
            path("/v1/datasets/{}/jobs", dataset),
            query={"after": after, "limit": limit},
        )

    def make_job(self, dataset: UUID, job: UUID, body: NewJob) -> Job:
        """Queues a job under an identifier that the caller chooses: one run of the dataset's
        mechanism, on one share of its budget. The same again changes nothing and spends
        nothing.
        """
        return self._http.json(
            Job,
            "PUT",
            path("/v1/datasets/{}/jobs/{}", dataset, job),
            body=body,
        )

    def rename_dataset(self, dataset: UUID, body: NewName) -> Dataset:
        """Gives a dataset another name. It is for people alone: nothing else changes."""
        return self._http.json(Dataset, "PUT", path("/v1/datasets/{}/name", dataset), body=body)

    def make_dataset_ready(self, dataset: UUID) -> Dataset:
        """Marks a dataset as ready for jobs, once the computation service has all of its
        objects.
        """
        return self._http.json(Dataset, "POST", path("/v1/datasets/{}/ready", dataset))

    def vouch_for_dataset(self, dataset: UUID) -> Voucher:
        """Vouches for a dataset: the crypto service makes its keys for the caller that shows the
        answer. Refused once the dataset has had keys.
        """
        return self._http.json(Voucher, "GET", path("/v1/datasets/{}/voucher", dataset))

    def show_job(self, job: UUID) -> Job:
        """A job."""
        return self._http.json(Job, "GET", path("/v1/jobs/{}", job))

    def cancel_job(self, job: UUID) -> Job:
        """Cancels a job that is queued or running. What it has released stays released, and paid
        for.
        """
        return self._http.json(Job, "POST", path("/v1/jobs/{}/cancel", job))

    def watch_job(self, job: UUID, *, last_event_id: int | None = None) -> Stream:
        """A job's events as they happen, each a server-sent event (see `JobEvent` for its
        `data`). Ends when the job does; a client that reconnects goes on after `Last-Event-
        ID`.
        """
        return self._http.stream(
            "GET",
            path("/v1/jobs/{}/events", job),
            header={"Last-Event-ID": last_event_id},
        )

    def list_links(
        self,
        job: UUID,
        *,
        after: str | None = None,
        limit: int | None = None,
    ) -> LinkPage:
        """The links to a job's result, whichever of the dataset's holders made them."""
        return self._http.json(
            LinkPage,
            "GET",
            path("/v1/jobs/{}/links", job),
            query={"after": after, "limit": limit},
        )

    def make_link(self, job: UUID, link: UUID, body: NewLink) -> LinkMade:
        """Makes a link to a finished job's result under an identifier that the caller chooses:
        whoever is signed in and has its secret sees a data card and draws tables, and nothing
        else of the dataset. The secret is shown this once. The same again, before the link
        was opened, gives a new secret in the place of one that was lost.
        """
        return self._http.json(LinkMade, "PUT", path("/v1/jobs/{}/links/{}", job, link), body=body)

    def revoke_link(self, job: UUID, link: UUID) -> None:
        """Revokes a link: it opens nothing after. What was drawn by it stays with whoever drew
        it.
        """
        self._http.nothing("DELETE", path("/v1/jobs/{}/links/{}", job, link))

    def show_model(self, job: UUID) -> ModelView:
        """The model of a finished job."""
        return self._http.json(ModelView, "GET", path("/v1/jobs/{}/model", job))

    def download_model(self, job: UUID) -> Stream:
        """The model of a finished job as a file, as `fhaim run --model-out` writes one: `fhaim
        sample` draws from it, `fhaim-lab attack` tries whom it tells of. It is made from what
        was released, as synthetic tables are.
        """
        return self._http.stream("GET", path("/v1/jobs/{}/model/file", job))

    def annotate_job(self, job: UUID, body: NewNote) -> Job:
        """Gives a job another note, for the dataset's holders to tell one from another."""
        return self._http.json(Job, "PUT", path("/v1/jobs/{}/note", job), body=body)

    def list_releases(self, job: UUID) -> list[ReleasedStatistic]:
        """What a job has released so far, with what each release cost."""
        return self._http.json(list[ReleasedStatistic], "GET", path("/v1/jobs/{}/releases", job))

    def retry_job(self, job: UUID) -> Job:
        """Queues a job that failed or was cancelled again. It goes on where it was."""
        return self._http.json(Job, "POST", path("/v1/jobs/{}/retry", job))

    def draw_table(
        self,
        job: UUID,
        *,
        format: TableFormat | None = None,
        rows: int | None = None,
        seed: int | None = None,
        where: str | None = None,
    ) -> Stream:
        """A synthetic table drawn from the model of a finished job, streamed as it is drawn.
        With conditions, its records are those that the model says meet them all.
        """
        return self._http.stream(
            "GET",
            path("/v1/jobs/{}/synthetic", job),
            query={"format": format, "rows": rows, "seed": seed, "where": where},
        )

    def open_link(self, link: UUID, *, fhaim_link: str) -> LinkedResult:
        """The data card of what a link opens, for any account."""
        return self._http.json(
            LinkedResult,
            "GET",
            path("/v1/links/{}", link),
            header={"fhaim-link": fhaim_link},
        )

    def draw_linked_table(
        self,
        link: UUID,
        *,
        format: TableFormat | None = None,
        rows: int | None = None,
        seed: int | None = None,
        where: str | None = None,
        fhaim_link: str,
    ) -> Stream:
        """A synthetic table drawn from what a link opens, for any account, streamed as it is
        drawn.
        """
        return self._http.stream(
            "GET",
            path("/v1/links/{}/synthetic", link),
            query={"format": format, "rows": rows, "seed": seed, "where": where},
            header={"fhaim-link": fhaim_link},
        )

    def sign_in(self, body: Credentials) -> Session:
        """Signs in."""
        return self._http.json(Session, "POST", "/v1/sessions", body=body, signed=False)

    def end_session(self, body: Refresh) -> None:
        """Ends all sessions that came from the same sign-in as a refresh token."""
        self._http.nothing("DELETE", "/v1/sessions", body=body, signed=False)

    def exchange_key(self, body: KeyExchange) -> Session:
        """Exchanges an API key for a session."""
        return self._http.json(Session, "POST", "/v1/sessions/api-key", body=body, signed=False)

    def refresh_session(self, body: Refresh) -> Session:
        """Exchanges a refresh token, which is good for one use, for a new session. Where the
        answer was lost, the same token again gives another.
        """
        return self._http.json(Session, "POST", "/v1/sessions/refresh", body=body, signed=False)

    def show_usage(self) -> Usage:
        """What the account has here, and what it may have."""
        return self._http.json(Usage, "GET", "/v1/usage")


class Computation:
    """Ciphertexts in, releases out."""

    def __init__(self, transport: Transport) -> None:
        self._http = transport

    def jwks(self) -> dict[str, Any]:
        """Keys that this service signs its tokens with."""
        return self._http.json(dict[str, Any], "GET", "/.well-known/jwks.json", signed=False)

    def document(self) -> dict[str, Any]:
        """This document."""
        return self._http.json(dict[str, Any], "GET", "/openapi.json", signed=False)

    def show(self, dataset: UUID) -> Upload:
        """How far an upload is, for its holders and the generation service."""
        return self._http.json(Upload, "GET", path("/v1/datasets/{}", dataset))

    def register(self, dataset: UUID, body: NewUpload) -> Upload:
        """Registers a dataset, or the caller's part of one of several holders, for upload, after
        its keys were made at the crypto service.
        """
        return self._http.json(Upload, "PUT", path("/v1/datasets/{}", dataset), body=body)

    def delete(self, dataset: UUID) -> None:
        """Deletes an upload for good. Batches under way are stopped."""
        self._http.nothing("DELETE", path("/v1/datasets/{}", dataset))

    def take_back(self, dataset: UUID, contribution: int) -> None:
        """Deletes the objects of the caller's contribution, before any run over it has begun."""
        self._http.nothing(
            "DELETE",
            path("/v1/datasets/{}/contributions/{}", dataset, contribution),
        )

    def complete(self, dataset: UUID, contribution: int, body: Complete) -> Upload:
        """Seals an upload: nothing can be added or changed after."""
        return self._http.json(
            Upload,
            "POST",
            path("/v1/datasets/{}/contributions/{}/complete", dataset, contribution),
            body=body,
        )

    def missing(self, dataset: UUID, contribution: int) -> Missing:
        """The objects of a contribution that are still missing."""
        return self._http.json(
            Missing,
            "GET",
            path("/v1/datasets/{}/contributions/{}/missing", dataset, contribution),
        )

    def list_objects(self, dataset: UUID, contribution: int) -> Listing:
        """The objects of a contribution, for the second computation service where the terms have
        one.
        """
        return self._http.json(
            Listing,
            "GET",
            path("/v1/datasets/{}/contributions/{}/objects", dataset, contribution),
        )

    def copy_object(self, dataset: UUID, contribution: int, object: str) -> Stream:
        """One object, for the second computation service where the terms have one."""
        return self._http.stream(
            "GET",
            path("/v1/datasets/{}/contributions/{}/objects/{}", dataset, contribution, object),
        )

    def put_object(
        self,
        dataset: UUID,
        contribution: int,
        object: str,
        body: bytes,
        *,
        content_digest: str,
    ) -> None:
        """Takes one object in."""
        self._http.nothing(
            "PUT",
            path("/v1/datasets/{}/contributions/{}/objects/{}", dataset, contribution, object),
            header={"Content-Digest": content_digest},
            body=body,
        )

    def look_at_batch(
        self,
        dataset: UUID,
        job: UUID,
        first: int,
        *,
        fhaim_receipt: str | None = None,
    ) -> BatchStatus:
        """Where a batch is, for the generation service, after a short wait for its end. Show the
        receipts you have with it: they are passed on to the crypto service.
        """
        return self._http.json(
            BatchStatus,
            "GET",
            path("/v1/datasets/{}/jobs/{}/batches/{}", dataset, job, first),
            header={"fhaim-receipt": fhaim_receipt},
        )

    def ask_for_batch(self, dataset: UUID, job: UUID, first: int, body: Batch) -> BatchStatus:
        """Asks for a batch of releases, for the generation service. The same again changes
        nothing.
        """
        return self._http.json(
            BatchStatus,
            "PUT",
            path("/v1/datasets/{}/jobs/{}/batches/{}", dataset, job, first),
            body=body,
        )

    def share_key(self, dataset: UUID) -> Stream:
        """What a complete upload's pages are sealed with, for the second computation service
        where the terms have one: with it, both seal to the same bytes.
        """
        return self._http.stream("GET", path("/v1/datasets/{}/sealing-key", dataset))

    def show_usage(self) -> Usage:
        """What the account has here, and what it may have."""
        return self._http.json(Usage, "GET", "/v1/usage")


class Crypto:
    """Keys, the privacy ledger, decryption."""

    def __init__(self, transport: Transport) -> None:
        self._http = transport

    def jwks(self) -> dict[str, Any]:
        """Keys that this service signs its tokens with."""
        return self._http.json(dict[str, Any], "GET", "/.well-known/jwks.json", signed=False)

    def document(self) -> dict[str, Any]:
        """This document."""
        return self._http.json(dict[str, Any], "GET", "/openapi.json", signed=False)

    def show(self, dataset: UUID, *, fhaim_receipt: str | None = None) -> KeySet:
        """A dataset's key set, for its holders and the computation service. A receipt that is
        shown with it is held against the ledger, as with `receipt`.
        """
        return self._http.json(
            KeySet,
            "GET",
            path("/v1/datasets/{}", dataset),
            header={"fhaim-receipt": fhaim_receipt},
        )

    def create(
        self,
        dataset: UUID,
        body: NewKeySet,
        *,
        fhaim_receipt: str | None = None,
    ) -> KeySet:
        """Makes the key set of a dataset that the generation service vouches for, and fixes its
        plan and budget permanently. Show the last receipt for the dataset, if you have one:
        no keys are made in place of those that it is for.
        """
        return self._http.json(
            KeySet,
            "PUT",
            path("/v1/datasets/{}", dataset),
            header={"fhaim-receipt": fhaim_receipt},
            body=body,
        )

    def destroy(self, dataset: UUID) -> None:
        """Destroys a dataset's keys: nothing of it can be decrypted after. The ledger stays."""
        self._http.nothing("DELETE", path("/v1/datasets/{}", dataset))

    def show_answers(self, dataset: UUID, *, after: int | None = None) -> ReleasedBatchPage:
        """What was asked, debited and answered, batch by batch, oldest first; it outlives the
        keys.
        """
        return self._http.json(
            ReleasedBatchPage,
            "GET",
            path("/v1/datasets/{}/answers", dataset),
            query={"after": after},
        )

    def show_audit(self, dataset: UUID, *, after: int | None = None) -> AuditEntryPage:
        """Everything that was asked of a dataset's keys, oldest first."""
        return self._http.json(
            AuditEntryPage,
            "GET",
            path("/v1/datasets/{}/audit", dataset),
            query={"after": after},
        )

    def show_chain(self, dataset: UUID, *, after: int | None = None) -> LedgerEntryPage:
        """The entries of a dataset's ledger, oldest first, as the hash over it takes them; it
        outlives the keys.
        """
        return self._http.json(
            LedgerEntryPage,
            "GET",
            path("/v1/datasets/{}/chain", dataset),
            query={"after": after},
        )

    def show_debited(self, dataset: UUID) -> DebitedByServices:
        """What each further key service of a dataset has debited, signed by that service;
        nothing where one service has the whole key.
        """
        return self._http.json(DebitedByServices, "GET", path("/v1/datasets/{}/debited", dataset))

    def evaluation_keys(self, dataset: UUID) -> Stream:
        """The keys to compute with, for the computation service."""
        return self._http.stream("GET", path("/v1/datasets/{}/evaluation-keys", dataset))

    def begin(
        self,
        dataset: UUID,
        job: UUID,
        body: NewRun,
        *,
        fhaim_receipt: str | None = None,
    ) -> RunStanding:
        """Gives a job its run, for the computation service, before anything of the job is
        sealed; asked again, says which run it has and what it has released.
        """
        return self._http.json(
            RunStanding,
            "PUT",
            path("/v1/datasets/{}/jobs/{}", dataset, job),
            header={"fhaim-receipt": fhaim_receipt},
            body=body,
        )

    def decrypt(
        self,
        dataset: UUID,
        job: UUID,
        body: bytes,
        *,
        fhaim_receipt: str | None = None,
    ) -> Decrypted:
        """Debits and decrypts a batch of releases, for the computation service. The same
        releases again are answered from store, without a debit; any other under the same
        numbers is refused.
        """
        return self._http.json(
            Decrypted,
            "POST",
            path("/v1/datasets/{}/jobs/{}/decryptions", dataset, job),
            header={"fhaim-receipt": fhaim_receipt},
            body=body,
        )

    def attest(
        self,
        dataset: UUID,
        job: UUID,
        body: Witnessed,
        *,
        fhaim_receipt: str | None = None,
    ) -> Receipt:
        """Takes in what the second computation service computed a batch to. Nothing of a dataset
        whose terms have one is decrypted before, and nothing that differs: the dataset is
        frozen instead.
        """
        return self._http.json(
            Receipt,
            "PUT",
            path("/v1/datasets/{}/jobs/{}/witnessed", dataset, job),
            header={"fhaim-receipt": fhaim_receipt},
            body=body,
        )

    def show_ledger(self, dataset: UUID, *, fhaim_receipt: str | None = None) -> DatasetLedger:
        """The privacy ledger of a dataset, itemised; it outlives the keys."""
        return self._http.json(
            DatasetLedger,
            "GET",
            path("/v1/datasets/{}/ledger", dataset),
            header={"fhaim-receipt": fhaim_receipt},
        )

    def public_key(self, dataset: UUID) -> Stream:
        """The key to encrypt under, for the dataset's holders and the computation service."""
        return self._http.stream("GET", path("/v1/datasets/{}/public-key", dataset))

    def show_receipt(self, dataset: UUID, *, fhaim_receipt: str | None = None) -> Receipt:
        """The end of a dataset's ledger, for its holders and the other services. Show the last
        one you have with it: a service that was set back to an older copy of its ledger finds
        out.
        """
        return self._http.json(
            Receipt,
            "GET",
            path("/v1/datasets/{}/receipt", dataset),
            header={"fhaim-receipt": fhaim_receipt},
        )

    def sign(self, dataset: UUID, body: NewSignature) -> KeySet:
        """Takes in the caller's consent to terms and keys. The same again changes nothing. No
        run begins before all holders of the roster have signed.
        """
        return self._http.json(
            KeySet,
            "PUT",
            path("/v1/datasets/{}/signature", dataset),
            body=body,
        )

    def upload_key(self, dataset: UUID, body: UploadKeyRequest) -> UploadKeySeeds:
        """The caller's upload key, where it is a holder of the roster: a seed from each key
        service, encrypted to the request's one-time key.
        """
        return self._http.json(
            UploadKeySeeds,
            "POST",
            path("/v1/datasets/{}/upload-key", dataset),
            body=body,
        )

    def withdraw(self, dataset: UUID) -> KeySet:
        """Lets no further run of the dataset begin, as the caller, one of its holders, wants it,
        for good. Runs that have begun go on.
        """
        return self._http.json(KeySet, "PUT", path("/v1/datasets/{}/withdrawal", dataset))

    def key_services(self) -> KeyServices:
        """The services that can share a dataset's key here, this one first: what terms name."""
        return self._http.json(KeyServices, "GET", "/v1/key-services")

    def show_usage(self) -> Usage:
        """What the account has here, and what it may have."""
        return self._http.json(Usage, "GET", "/v1/usage")

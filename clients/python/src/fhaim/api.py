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
    EndedTokens,
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
    """Accounts, datasets, jobs, models and synthetic tables."""

    def __init__(self, transport: Transport) -> None:
        self._http = transport

    def ended_tokens(self) -> EndedTokens:
        """Returns the users' tokens that ended before their expiry. The other services refuse
        them.
        """
        return self._http.json(EndedTokens, "GET", "/.well-known/ended-tokens.json", signed=False)

    def jwks(self) -> dict[str, Any]:
        """Returns the public keys of this service's token signatures."""
        return self._http.json(dict[str, Any], "GET", "/.well-known/jwks.json", signed=False)

    def document(self) -> dict[str, Any]:
        """Returns this OpenAPI document."""
        return self._http.json(dict[str, Any], "GET", "/openapi.json", signed=False)

    def show_account(self) -> Account:
        """Returns the caller's account."""
        return self._http.json(Account, "GET", "/v1/account")

    def close_account(self, body: CloseAccount) -> None:
        """Deletes the account with its sessions and API keys."""
        self._http.nothing("DELETE", "/v1/account", body=body)

    def change_password(self, body: NewPassword) -> Session:
        """Changes the account's password, ends all of its sessions and begins a new one."""
        return self._http.json(Session, "PUT", "/v1/account/password", body=body)

    def end_all_sessions(self) -> None:
        """Ends all sessions of the account."""
        self._http.nothing("DELETE", "/v1/account/sessions")

    def sign_up(self, body: Credentials) -> Account:
        """Creates an account."""
        return self._http.json(Account, "POST", "/v1/accounts", body=body, signed=False)

    def list_keys(self, *, after: str | None = None, limit: int | None = None) -> ApiKeyPage:
        """Lists the caller's API keys."""
        return self._http.json(
            ApiKeyPage,
            "GET",
            "/v1/api-keys",
            query={"after": after, "limit": limit},
        )

    def make_key(self, id: UUID, body: NewApiKey) -> ApiKeyMade:
        """Makes an API key under an identifier that the caller chooses."""
        return self._http.json(ApiKeyMade, "PUT", path("/v1/api-keys/{}", id), body=body)

    def delete_key(self, id: UUID) -> None:
        """Deletes an API key."""
        self._http.nothing("DELETE", path("/v1/api-keys/{}", id))

    def list_datasets(self, *, after: str | None = None, limit: int | None = None) -> DatasetPage:
        """Lists the caller's datasets."""
        return self._http.json(
            DatasetPage,
            "GET",
            "/v1/datasets",
            query={"after": after, "limit": limit},
        )

    def show_dataset(self, dataset: UUID) -> Dataset:
        """Returns a dataset."""
        return self._http.json(Dataset, "GET", path("/v1/datasets/{}", dataset))

    def make_dataset(self, dataset: UUID, body: NewDataset) -> Dataset:
        """Creates a dataset under an identifier that the caller chooses."""
        return self._http.json(Dataset, "PUT", path("/v1/datasets/{}", dataset), body=body)

    def delete_dataset(self, dataset: UUID) -> None:
        """Deletes this service's part of a dataset: jobs, releases and models. Stops queued and
        running jobs.
        """
        self._http.nothing("DELETE", path("/v1/datasets/{}", dataset))

    def begin_deletion(self, dataset: UUID) -> None:
        """Marks a dataset as being deleted, before its parts are deleted at all services."""
        self._http.nothing("PUT", path("/v1/datasets/{}/deletion", dataset))

    def list_jobs(
        self,
        dataset: UUID,
        *,
        after: str | None = None,
        limit: int | None = None,
    ) -> JobPage:
        """Lists a dataset's jobs."""
        return self._http.json(
            JobPage,
            "GET",
            path("/v1/datasets/{}/jobs", dataset),
            query={"after": after, "limit": limit},
        )

    def make_job(self, dataset: UUID, job: UUID, body: NewJob) -> Job:
        """Queues a job under an identifier that the caller chooses."""
        return self._http.json(
            Job,
            "PUT",
            path("/v1/datasets/{}/jobs/{}", dataset, job),
            body=body,
        )

    def rename_dataset(self, dataset: UUID, body: NewName) -> Dataset:
        """Renames a dataset. The name is only for people: nothing else changes."""
        return self._http.json(Dataset, "PUT", path("/v1/datasets/{}/name", dataset), body=body)

    def make_dataset_ready(self, dataset: UUID) -> Dataset:
        """Marks a dataset as ready for jobs once the computation service has all of its objects."""
        return self._http.json(Dataset, "POST", path("/v1/datasets/{}/ready", dataset))

    def vouch_for_dataset(self, dataset: UUID) -> Voucher:
        """Vouches for a dataset: the crypto service creates keys for the caller that shows the
        voucher.
        """
        return self._http.json(Voucher, "GET", path("/v1/datasets/{}/voucher", dataset))

    def show_job(self, job: UUID) -> Job:
        """Returns a job."""
        return self._http.json(Job, "GET", path("/v1/jobs/{}", job))

    def cancel_job(self, job: UUID) -> Job:
        """Cancels a queued or running job. Releases that it already got stay released and paid
        for.
        """
        return self._http.json(Job, "POST", path("/v1/jobs/{}/cancel", job))

    def watch_job(self, job: UUID, *, last_event_id: int | None = None) -> Stream:
        """Streams a job's events as server-sent events; their `data` is a `JobEvent`."""
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
        """Lists the links to a job's result. Any of the dataset's holders may have made them."""
        return self._http.json(
            LinkPage,
            "GET",
            path("/v1/jobs/{}/links", job),
            query={"after": after, "limit": limit},
        )

    def make_link(self, job: UUID, link: UUID, body: NewLink) -> LinkMade:
        """Makes a link to a finished job's result under an identifier that the caller chooses."""
        return self._http.json(LinkMade, "PUT", path("/v1/jobs/{}/links/{}", job, link), body=body)

    def revoke_link(self, job: UUID, link: UUID) -> None:
        """Revokes a link, so that it can no longer be opened. Tables that were drawn from it
        remain.
        """
        self._http.nothing("DELETE", path("/v1/jobs/{}/links/{}", job, link))

    def show_model(self, job: UUID) -> ModelView:
        """Returns a view of a finished job's model."""
        return self._http.json(ModelView, "GET", path("/v1/jobs/{}/model", job))

    def download_model(self, job: UUID) -> Stream:
        """Downloads the model of a finished job in the format that `fhaim run` writes."""
        return self._http.stream("GET", path("/v1/jobs/{}/model/file", job))

    def annotate_job(self, job: UUID, body: NewNote) -> Job:
        """Sets a job's note, by which the dataset's holders tell jobs apart."""
        return self._http.json(Job, "PUT", path("/v1/jobs/{}/note", job), body=body)

    def list_releases(self, job: UUID) -> list[ReleasedStatistic]:
        """Lists everything that a job has released so far, with the cost of each release."""
        return self._http.json(list[ReleasedStatistic], "GET", path("/v1/jobs/{}/releases", job))

    def retry_job(self, job: UUID) -> Job:
        """Queues a failed or cancelled job again. The job resumes where it stopped."""
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
        """Draws a synthetic table from the model of a finished job. The table is streamed while
        it is drawn.
        """
        return self._http.stream(
            "GET",
            path("/v1/jobs/{}/synthetic", job),
            query={"format": format, "rows": rows, "seed": seed, "where": where},
        )

    def open_link(self, link: UUID, *, fhaim_link: str) -> LinkedResult:
        """Returns the data card of a link, for any account."""
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
        """Draws a synthetic table from a link, for any account. The table is streamed while it
        is drawn.
        """
        return self._http.stream(
            "GET",
            path("/v1/links/{}/synthetic", link),
            query={"format": format, "rows": rows, "seed": seed, "where": where},
            header={"fhaim-link": fhaim_link},
        )

    def sign_in(self, body: Credentials) -> Session:
        """Signs in and begins a session."""
        return self._http.json(Session, "POST", "/v1/sessions", body=body, signed=False)

    def end_session(self, body: Refresh) -> None:
        """Ends all sessions that come from the same sign-in as a refresh token."""
        self._http.nothing("DELETE", "/v1/sessions", body=body, signed=False)

    def exchange_key(self, body: KeyExchange) -> Session:
        """Exchanges an API key for a session."""
        return self._http.json(Session, "POST", "/v1/sessions/api-key", body=body, signed=False)

    def refresh_session(self, body: Refresh) -> Session:
        """Exchanges a single-use refresh token for a new session."""
        return self._http.json(Session, "POST", "/v1/sessions/refresh", body=body, signed=False)

    def show_usage(self) -> Usage:
        """Returns the account's usage and limits at this service."""
        return self._http.json(Usage, "GET", "/v1/usage")


class Computation:
    """Computes releases on ciphertexts."""

    def __init__(self, transport: Transport) -> None:
        self._http = transport

    def jwks(self) -> dict[str, Any]:
        """Returns the public keys of this service's token signatures."""
        return self._http.json(dict[str, Any], "GET", "/.well-known/jwks.json", signed=False)

    def document(self) -> dict[str, Any]:
        """Returns this OpenAPI document."""
        return self._http.json(dict[str, Any], "GET", "/openapi.json", signed=False)

    def show(self, dataset: UUID) -> Upload:
        """Returns the progress of an upload, for its holders and the generation service."""
        return self._http.json(Upload, "GET", path("/v1/datasets/{}", dataset))

    def register(self, dataset: UUID, body: NewUpload) -> Upload:
        """Registers a dataset for upload, or the caller's part of a dataset of several holders."""
        return self._http.json(Upload, "PUT", path("/v1/datasets/{}", dataset), body=body)

    def delete(self, dataset: UUID) -> None:
        """Deletes an upload permanently and stops its batches."""
        self._http.nothing("DELETE", path("/v1/datasets/{}", dataset))

    def take_back(self, dataset: UUID, contribution: int) -> None:
        """Deletes the objects of the caller's contribution, if no run over it has begun."""
        self._http.nothing(
            "DELETE",
            path("/v1/datasets/{}/contributions/{}", dataset, contribution),
        )

    def complete(self, dataset: UUID, contribution: int, body: Complete) -> Upload:
        """Completes a contribution, which cannot be changed afterwards."""
        return self._http.json(
            Upload,
            "POST",
            path("/v1/datasets/{}/contributions/{}/complete", dataset, contribution),
            body=body,
        )

    def missing(self, dataset: UUID, contribution: int) -> Missing:
        """Lists the missing objects of a contribution."""
        return self._http.json(
            Missing,
            "GET",
            path("/v1/datasets/{}/contributions/{}/missing", dataset, contribution),
        )

    def list_objects(self, dataset: UUID, contribution: int) -> Listing:
        """Lists the objects of a contribution for the second computation service, if the terms
        name one.
        """
        return self._http.json(
            Listing,
            "GET",
            path("/v1/datasets/{}/contributions/{}/objects", dataset, contribution),
        )

    def copy_object(self, dataset: UUID, contribution: int, object: str) -> Stream:
        """Returns one object to the second computation service, if the terms name one."""
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
        """Stores one object."""
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
        """Returns the status of a batch to the generation service, after a short wait for its
        end.
        """
        return self._http.json(
            BatchStatus,
            "GET",
            path("/v1/datasets/{}/jobs/{}/batches/{}", dataset, job, first),
            header={"fhaim-receipt": fhaim_receipt},
        )

    def ask_for_batch(self, dataset: UUID, job: UUID, first: int, body: Batch) -> BatchStatus:
        """Asks for a batch of releases, for the generation service. Repeating the call changes
        nothing.
        """
        return self._http.json(
            BatchStatus,
            "PUT",
            path("/v1/datasets/{}/jobs/{}/batches/{}", dataset, job, first),
            body=body,
        )

    def share_key(self, dataset: UUID) -> Stream:
        """Returns the sealing key of a complete upload's pages to the second computation
        service, if the terms name one.
        """
        return self._http.stream("GET", path("/v1/datasets/{}/sealing-key", dataset))

    def show_usage(self) -> Usage:
        """Returns the account's usage and limits at this service."""
        return self._http.json(Usage, "GET", "/v1/usage")


class Crypto:
    """Keys, the privacy ledger and decryption."""

    def __init__(self, transport: Transport) -> None:
        self._http = transport

    def jwks(self) -> dict[str, Any]:
        """Returns the public keys of this service's token signatures."""
        return self._http.json(dict[str, Any], "GET", "/.well-known/jwks.json", signed=False)

    def document(self) -> dict[str, Any]:
        """Returns this OpenAPI document."""
        return self._http.json(dict[str, Any], "GET", "/openapi.json", signed=False)

    def show(self, dataset: UUID, *, fhaim_receipt: str | None = None) -> KeySet:
        """Returns a dataset's key set to its holders and the computation service."""
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
        """Makes the key set of a dataset for which the generation service vouches, and fixes its
        plan and budget permanently.
        """
        return self._http.json(
            KeySet,
            "PUT",
            path("/v1/datasets/{}", dataset),
            header={"fhaim-receipt": fhaim_receipt},
            body=body,
        )

    def destroy(self, dataset: UUID) -> None:
        """Destroys a dataset's keys, so that nothing of it can be decrypted any more. The ledger
        remains.
        """
        self._http.nothing("DELETE", path("/v1/datasets/{}", dataset))

    def show_answers(self, dataset: UUID, *, after: int | None = None) -> ReleasedBatchPage:
        """Lists the requests, debits and answers of each batch, oldest first, even after the
        keys are destroyed.
        """
        return self._http.json(
            ReleasedBatchPage,
            "GET",
            path("/v1/datasets/{}/answers", dataset),
            query={"after": after},
        )

    def show_audit(self, dataset: UUID, *, after: int | None = None) -> AuditEntryPage:
        """Lists all requests for a dataset's keys and releases, oldest first."""
        return self._http.json(
            AuditEntryPage,
            "GET",
            path("/v1/datasets/{}/audit", dataset),
            query={"after": after},
        )

    def show_chain(self, dataset: UUID, *, after: int | None = None) -> LedgerEntryPage:
        """Lists the entries of a dataset's ledger in the form that is hashed, oldest first, even
        after the keys are destroyed.
        """
        return self._http.json(
            LedgerEntryPage,
            "GET",
            path("/v1/datasets/{}/chain", dataset),
            query={"after": after},
        )

    def show_debited(self, dataset: UUID) -> DebitedByServices:
        """Lists the signed debits of each further key service of a dataset."""
        return self._http.json(DebitedByServices, "GET", path("/v1/datasets/{}/debited", dataset))

    def evaluation_keys(self, dataset: UUID) -> Stream:
        """Returns the keys for computing on ciphertexts to the computation service."""
        return self._http.stream("GET", path("/v1/datasets/{}/evaluation-keys", dataset))

    def begin(
        self,
        dataset: UUID,
        job: UUID,
        body: NewRun,
        *,
        fhaim_receipt: str | None = None,
    ) -> RunStanding:
        """Assigns a run to a job, for the computation service, before anything of the job is
        sealed.
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
        """Debits and decrypts a batch of releases for the computation service."""
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
        """Stores the digest of a batch that the second computation service reports."""
        return self._http.json(
            Receipt,
            "PUT",
            path("/v1/datasets/{}/jobs/{}/witnessed", dataset, job),
            header={"fhaim-receipt": fhaim_receipt},
            body=body,
        )

    def show_ledger(self, dataset: UUID, *, fhaim_receipt: str | None = None) -> DatasetLedger:
        """Returns the itemised privacy ledger of a dataset, even after its keys are destroyed."""
        return self._http.json(
            DatasetLedger,
            "GET",
            path("/v1/datasets/{}/ledger", dataset),
            header={"fhaim-receipt": fhaim_receipt},
        )

    def public_key(self, dataset: UUID) -> Stream:
        """Returns the public key for encryption to the dataset's holders and the computation
        service.
        """
        return self._http.stream("GET", path("/v1/datasets/{}/public-key", dataset))

    def show_receipt(self, dataset: UUID, *, fhaim_receipt: str | None = None) -> Receipt:
        """Returns a receipt for the end of a dataset's ledger to its holders and the other
        services.
        """
        return self._http.json(
            Receipt,
            "GET",
            path("/v1/datasets/{}/receipt", dataset),
            header={"fhaim-receipt": fhaim_receipt},
        )

    def sign(self, dataset: UUID, body: NewSignature) -> KeySet:
        """Stores the caller's signature of the terms and keys. Repeating the call changes
        nothing.
        """
        return self._http.json(
            KeySet,
            "PUT",
            path("/v1/datasets/{}/signature", dataset),
            body=body,
        )

    def upload_key(self, dataset: UUID, body: UploadKeyRequest) -> UploadKeySeeds:
        """Returns the upload key of the caller, who must be a holder of the roster."""
        return self._http.json(
            UploadKeySeeds,
            "POST",
            path("/v1/datasets/{}/upload-key", dataset),
            body=body,
        )

    def withdraw(self, dataset: UUID) -> KeySet:
        """Withdraws the caller as a holder: no further run of the dataset can begin,
        permanently.
        """
        return self._http.json(KeySet, "PUT", path("/v1/datasets/{}/withdrawal", dataset))

    def key_services(self) -> KeyServices:
        """Lists the services that can share a dataset's key, this one first. Terms name these
        services.
        """
        return self._http.json(KeyServices, "GET", "/v1/key-services")

    def show_usage(self) -> Usage:
        """Returns the account's usage and limits at this service."""
        return self._http.json(Usage, "GET", "/v1/usage")

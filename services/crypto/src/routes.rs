//! HTTP routes.

#![allow(unused_qualifications)] // in utoipa's expansion

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State as Shared};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use fhaim_api::Page;
use fhaim_api::keys::{
    AuditEntry, DatasetLedger, DebitedByServices, Decrypted, KeyServices, KeySet, LedgerEntry,
    NewKeySet, NewRun, NewSignature, Receipt, ReleasedBatch, RunStanding, UploadKeyRequest,
    UploadKeySeeds, Witnessed,
};
use fhaim_api::problem::Problem;
use fhaim_api::token::Service;
use fhaim_api::usage::Usage;
use fhaim_platform::Failure;
use fhaim_platform::extract::{Json, Octets, Path, Query, ShownReceipts};
use fhaim_platform::program::Program;
use fhaim_platform::token::{Caller, Peer, User};
use serde::Deserialize;
use utoipa::{IntoParams, OpenApi, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::decryption::DecryptionCall;
use crate::holders::Consent;
use crate::keys::PublicPart;
use crate::store::audit;
use crate::{
    State, answers, decryption, holders, keys, ledger, limits, shares, upload_keys, witness,
};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "fhaim crypto service",
        description = "Keys, the privacy ledger and decryption."
    ),
    components(schemas(Problem))
)]
struct Document;

/// All routes with their documentation.
pub fn documented() -> OpenApiRouter<State> {
    let decryptions = OpenApiRouter::new()
        .routes(routes!(decrypt))
        .layer(DefaultBodyLimit::max(decryption::BODY_LIMIT));
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(document))
        .routes(routes!(key_services))
        .merge(of_every_key_service())
        .routes(routes!(create, show, destroy))
        .routes(routes!(sign))
        .routes(routes!(upload_key))
        .routes(routes!(withdraw))
        .routes(routes!(public_key))
        .routes(routes!(evaluation_keys))
        .routes(routes!(begin))
        .routes(routes!(show_receipt))
        .routes(routes!(show_ledger))
        .routes(routes!(show_answers))
        .routes(routes!(show_chain))
        .routes(routes!(show_debited))
        .routes(routes!(show_audit))
        .routes(routes!(show_usage))
        .merge(decryptions)
}

/// Routes that all services sharing a key have in common.
pub(crate) fn of_every_key_service() -> OpenApiRouter<State> {
    OpenApiRouter::new()
        .routes(routes!(jwks))
        .routes(routes!(attest))
}

/// Lists the services that can share a dataset's key, this one first. Terms name these services.
#[utoipa::path(get, path = "/v1/key-services", tag = "keys", security(("bearer" = [])),
    responses(
        (status = 200, description = "Names and public keys", body = KeyServices),
        (status = "4XX", description = "Not signed in", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Try again later", body = Problem, content_type = "application/problem+json"),
    ))]
async fn key_services(
    Shared(state): Shared<State>,
    User(_user): User,
) -> Result<axum::Json<KeyServices>, Failure> {
    Ok(axum::Json(shares::first::services(&state).await?))
}

/// Returns the public keys of this service's token signatures.
#[utoipa::path(get, path = "/.well-known/jwks.json", tag = "service",
    responses((status = 200, description = "A JSON Web Key Set", body = Object)))]
async fn jwks(Shared(state): Shared<State>) -> axum::Json<impl serde::Serialize> {
    axum::Json(state.base.signer.jwks())
}

/// Returns this OpenAPI document.
#[utoipa::path(get, path = "/openapi.json", tag = "service",
    responses((status = 200, description = "The OpenAPI document", body = Object)))]
async fn document() -> axum::Json<utoipa::openapi::OpenApi> {
    axum::Json(State::openapi())
}

/// Makes the key set of a dataset for which the generation service vouches, and fixes its plan and budget permanently.
///
/// Send your last receipt for the dataset if you have one: if this service does not have the keys of that receipt, it
/// creates no others.
#[utoipa::path(put, path = "/v1/datasets/{dataset}", tag = "keys", request_body = NewKeySet,
    params(("dataset" = Uuid, Path),
        ("fhaim-receipt" = Option<String>, Header, description = "An earlier receipt: its JSON in base64url")),
    security(("bearer" = [])),
    responses(
        (status = 201, description = "Made", body = KeySet),
        (status = 200, description = "The key set already existed with the same terms", body = KeySet),
        (status = "4XX", description = "Not made", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Try again later", body = Problem, content_type = "application/problem+json"),
    ))]
async fn create(
    Shared(state): Shared<State>,
    User(owner): User,
    Path(dataset): Path<Uuid>,
    ShownReceipts(receipts): ShownReceipts,
    Json(new): Json<NewKeySet>,
) -> Result<(StatusCode, axum::Json<KeySet>), Failure> {
    let (set, made) = keys::create(&state, dataset, owner, new, &receipts).await?;
    let status = if made {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok((status, axum::Json(set)))
}

/// Returns a dataset's key set to its holders and the computation service.
///
/// A receipt in the request is compared with the ledger, as for `receipt`.
#[utoipa::path(get, path = "/v1/datasets/{dataset}", tag = "keys",
    params(("dataset" = Uuid, Path),
        ("fhaim-receipt" = Option<String>, Header, description = "An earlier receipt: its JSON in base64url")),
    security(("bearer" = [])),
    responses(
        (status = 200, description = "The key set", body = KeySet),
        (status = "4XX", description = "No such key set", body = Problem, content_type = "application/problem+json"),
    ))]
async fn show(
    Shared(state): Shared<State>,
    caller: Caller,
    Path(dataset): Path<Uuid>,
    ShownReceipts(receipts): ShownReceipts,
) -> Result<axum::Json<KeySet>, Failure> {
    Ok(axum::Json(
        keys::show(&state, dataset, caller, &receipts).await?,
    ))
}

/// Returns the upload key of the caller, who must be a holder of the roster.
///
/// The answer has a seed from each key service, encrypted to the request's one-time key.
#[utoipa::path(post, path = "/v1/datasets/{dataset}/upload-key", tag = "keys",
    request_body = UploadKeyRequest,
    params(("dataset" = Uuid, Path)), security(("bearer" = [])),
    responses(
        (status = 200, description = "The seeds", body = UploadKeySeeds),
        (status = "4XX", description = "Refused", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Try again later", body = Problem, content_type = "application/problem+json"),
    ))]
async fn upload_key(
    Shared(state): Shared<State>,
    User(holder): User,
    Path(dataset): Path<Uuid>,
    Json(asked): Json<UploadKeyRequest>,
) -> Result<axum::Json<UploadKeySeeds>, Failure> {
    let seeds = upload_keys::fetch(&state, dataset, holder, &asked).await?;
    Ok(axum::Json(seeds))
}

/// Stores the caller's signature of the terms and keys. Repeating the call changes nothing.
///
/// No run begins before all holders of the roster have signed.
#[utoipa::path(put, path = "/v1/datasets/{dataset}/signature", tag = "keys",
    request_body = NewSignature,
    params(("dataset" = Uuid, Path)), security(("bearer" = [])),
    responses(
        (status = 200, description = "Signed", body = KeySet),
        (status = "4XX", description = "Not signed", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Try again later", body = Problem, content_type = "application/problem+json"),
    ))]
async fn sign(
    Shared(state): Shared<State>,
    User(holder): User,
    Path(dataset): Path<Uuid>,
    Json(new): Json<NewSignature>,
) -> Result<axum::Json<KeySet>, Failure> {
    let act = Consent::Signed(new.signature);
    Ok(axum::Json(
        holders::act(&state, dataset, holder, act).await?,
    ))
}

/// Withdraws the caller as a holder: no further run of the dataset can begin, permanently.
///
/// Runs that have begun continue.
#[utoipa::path(put, path = "/v1/datasets/{dataset}/withdrawal", tag = "keys",
    params(("dataset" = Uuid, Path)), security(("bearer" = [])),
    responses(
        (status = 200, description = "Withdrawn", body = KeySet),
        (status = "4XX", description = "Not withdrawn", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Try again later", body = Problem, content_type = "application/problem+json"),
    ))]
async fn withdraw(
    Shared(state): Shared<State>,
    User(holder): User,
    Path(dataset): Path<Uuid>,
) -> Result<axum::Json<KeySet>, Failure> {
    let act = Consent::Withdrawn;
    Ok(axum::Json(
        holders::act(&state, dataset, holder, act).await?,
    ))
}

/// Destroys a dataset's keys, so that nothing of it can be decrypted any more. The ledger remains.
#[utoipa::path(delete, path = "/v1/datasets/{dataset}", tag = "keys",
    params(("dataset" = Uuid, Path)), security(("bearer" = [])),
    responses(
        (status = 204, description = "Destroyed"),
        (status = "4XX", description = "Not destroyed", body = Problem, content_type = "application/problem+json"),
    ))]
async fn destroy(
    Shared(state): Shared<State>,
    User(owner): User,
    Path(dataset): Path<Uuid>,
) -> Result<StatusCode, Failure> {
    keys::destroy(&state, dataset, owner).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the public key for encryption to the dataset's holders and the computation service.
#[utoipa::path(get, path = "/v1/datasets/{dataset}/public-key", tag = "keys",
    params(("dataset" = Uuid, Path)), security(("bearer" = [])),
    responses(
        (status = 200, description = "The encoded key", body = Vec<u8>, content_type = "application/octet-stream"),
        (status = "4XX", description = "No such key", body = Problem, content_type = "application/problem+json"),
    ))]
async fn public_key(
    Shared(state): Shared<State>,
    caller: Caller,
    Path(dataset): Path<Uuid>,
) -> Result<Response, Failure> {
    let stored = match caller {
        Caller::User(user) => keys::find_held(&state, dataset, user).await?,
        Caller::Service(service) => {
            must_compute(&state, Peer(service), dataset).await?;
            keys::find(&state, dataset).await?
        }
    };
    Ok(octets(
        keys::part(&state, &stored, PublicPart::Public).await?,
    ))
}

/// Returns the keys for computing on ciphertexts to the computation service.
#[utoipa::path(get, path = "/v1/datasets/{dataset}/evaluation-keys", tag = "keys",
    params(("dataset" = Uuid, Path)), security(("bearer" = [])),
    responses(
        (status = 200, description = "The encoded keys", body = Vec<u8>, content_type = "application/octet-stream"),
        (status = "4XX", description = "No such keys", body = Problem, content_type = "application/problem+json"),
    ))]
async fn evaluation_keys(
    Shared(state): Shared<State>,
    peer: Peer,
    Path(dataset): Path<Uuid>,
) -> Result<Response, Failure> {
    must_compute(&state, peer, dataset).await?;
    let stored = keys::find(&state, dataset).await?;
    Ok(octets(
        keys::part(&state, &stored, PublicPart::Evaluation).await?,
    ))
}

/// Checks that a service is one of the dataset's computation services. The second one must not take part in datasets
/// whose terms do not name it.
async fn must_compute(state: &State, peer: Peer, dataset: Uuid) -> Result<(), Failure> {
    keys::find(state, dataset)
        .await?
        .must_be_computed_by(peer.0)
}

fn octets(bytes: Bytes) -> Response {
    ([(header::CONTENT_TYPE, "application/octet-stream")], bytes).into_response()
}

/// Returns a receipt for the end of a dataset's ledger to its holders and the other services.
///
/// Send your last receipt with the request. If this service was set back to an older copy of its ledger, the receipt
/// shows it.
#[utoipa::path(get, path = "/v1/datasets/{dataset}/receipt", tag = "releases",
    params(("dataset" = Uuid, Path),
        ("fhaim-receipt" = Option<String>, Header, description = "An earlier receipt: its JSON in base64url")),
    security(("bearer" = [])),
    responses(
        (status = 200, description = "The receipt", body = Receipt),
        (status = "4XX", description = "No such dataset", body = Problem, content_type = "application/problem+json"),
    ))]
async fn show_receipt(
    Shared(state): Shared<State>,
    caller: Caller,
    Path(dataset): Path<Uuid>,
    ShownReceipts(receipts): ShownReceipts,
) -> Result<axum::Json<Receipt>, Failure> {
    let stored = match caller {
        Caller::User(user) => keys::find_held(&state, dataset, user).await?,
        Caller::Service(_) => keys::find(&state, dataset).await?,
    };
    Ok(axum::Json(
        ledger::show_receipt(&state, &stored, &receipts).await?,
    ))
}

/// Assigns a run to a job, for the computation service, before anything of the job is sealed.
///
/// Repeating the call returns the job's run and its releases so far.
#[utoipa::path(put, path = "/v1/datasets/{dataset}/jobs/{job}", tag = "releases",
    request_body = NewRun, security(("bearer" = [])),
    params(("dataset" = Uuid, Path), ("job" = Uuid, Path),
        ("fhaim-receipt" = Option<String>, Header, description = "An earlier receipt: its JSON in base64url")),
    responses(
        (status = 200, description = "The run", body = RunStanding),
        (status = "4XX", description = "No run", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Try again later", body = Problem, content_type = "application/problem+json"),
    ))]
async fn begin(
    Shared(state): Shared<State>,
    peer: Peer,
    Path((dataset, job)): Path<(Uuid, Uuid)>,
    ShownReceipts(receipts): ShownReceipts,
    Json(new): Json<NewRun>,
) -> Result<axum::Json<RunStanding>, Failure> {
    let call = DecryptionCall {
        peer,
        dataset,
        job,
        receipts,
    };
    let chain_state = decryption::begin(&state, &call, &new).await?;
    Ok(axum::Json(chain_state))
}

/// Stores the digest of a batch that the second computation service reports.
///
/// If the terms name such a service, no batch is decrypted before its report. A batch that differs from the report
/// freezes the dataset.
#[utoipa::path(put, path = "/v1/datasets/{dataset}/jobs/{job}/witnessed", tag = "releases",
    request_body = Witnessed, security(("bearer" = [])),
    params(("dataset" = Uuid, Path), ("job" = Uuid, Path),
        ("fhaim-receipt" = Option<String>, Header, description = "An earlier receipt: its JSON in base64url")),
    responses(
        (status = 200, description = "The end of the ledger", body = Receipt),
        (status = "4XX", description = "Refused", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Try again later", body = Problem, content_type = "application/problem+json"),
    ))]
async fn attest(
    Shared(state): Shared<State>,
    peer: Peer,
    Path((dataset, job)): Path<(Uuid, Uuid)>,
    ShownReceipts(receipts): ShownReceipts,
    Json(witnessed): Json<Witnessed>,
) -> Result<axum::Json<Receipt>, Failure> {
    peer.must_be(Service::Witness)?;
    let call = DecryptionCall {
        peer,
        dataset,
        job,
        receipts,
    };
    let receipt = witness::take(&state, &call, &witnessed).await?;
    Ok(axum::Json(receipt))
}

/// Debits and decrypts a batch of releases for the computation service.
///
/// The same releases are answered again from the store without another debit. Other releases with the same numbers
/// are refused.
#[utoipa::path(post, path = "/v1/datasets/{dataset}/jobs/{job}/decryptions", tag = "releases",
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    params(("dataset" = Uuid, Path), ("job" = Uuid, Path),
        ("fhaim-receipt" = Option<String>, Header, description = "An earlier receipt: its JSON in base64url")),
    security(("bearer" = [])),
    responses(
        (status = 200, description = "The released integers", body = Decrypted),
        (status = "4XX", description = "Refused; the reason is not given", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Try again later", body = Problem, content_type = "application/problem+json"),
    ))]
async fn decrypt(
    Shared(state): Shared<State>,
    peer: Peer,
    Path((dataset, job)): Path<(Uuid, Uuid)>,
    ShownReceipts(receipts): ShownReceipts,
    Octets(body): Octets,
) -> Result<axum::Json<Decrypted>, Failure> {
    peer.must_be(Service::Computation)?;
    let call = DecryptionCall {
        peer,
        dataset,
        job,
        receipts,
    };
    let decrypted = decryption::decrypt(&state, &call, body).await?;
    Ok(axum::Json(decrypted))
}

/// Returns the itemised privacy ledger of a dataset, even after its keys are destroyed.
#[utoipa::path(get, path = "/v1/datasets/{dataset}/ledger", tag = "releases",
    params(("dataset" = Uuid, Path),
        ("fhaim-receipt" = Option<String>, Header, description = "An earlier receipt: its JSON in base64url")),
    security(("bearer" = [])),
    responses(
        (status = 200, description = "The ledger", body = DatasetLedger),
        (status = "4XX", description = "No such dataset", body = Problem, content_type = "application/problem+json"),
    ))]
async fn show_ledger(
    Shared(state): Shared<State>,
    User(owner): User,
    Path(dataset): Path<Uuid>,
    ShownReceipts(receipts): ShownReceipts,
) -> Result<axum::Json<DatasetLedger>, Failure> {
    let ledger = ledger::show(&state, dataset, owner, &receipts).await?;
    Ok(axum::Json(ledger))
}

/// Lists the requests, debits and answers of each batch, oldest first, even after the keys are destroyed.
#[utoipa::path(get, path = "/v1/datasets/{dataset}/answers", tag = "releases",
    params(("dataset" = Uuid, Path), After), security(("bearer" = [])),
    responses(
        (status = 200, description = "A page of batches", body = Page<ReleasedBatch>),
        (status = "4XX", description = "No such dataset", body = Problem, content_type = "application/problem+json"),
    ))]
async fn show_answers(
    Shared(state): Shared<State>,
    User(holder): User,
    Path(dataset): Path<Uuid>,
    Query(page): Query<After>,
) -> Result<axum::Json<Page<ReleasedBatch>>, Failure> {
    let shown = answers::show(&state, dataset, holder, page.after).await?;
    Ok(axum::Json(shown))
}

/// Lists the entries of a dataset's ledger in the form that is hashed, oldest first, even after the keys are destroyed.
#[utoipa::path(get, path = "/v1/datasets/{dataset}/chain", tag = "releases",
    params(("dataset" = Uuid, Path), After), security(("bearer" = [])),
    responses(
        (status = 200, description = "A page of entries", body = Page<LedgerEntry>),
        (status = "4XX", description = "No such dataset", body = Problem, content_type = "application/problem+json"),
    ))]
async fn show_chain(
    Shared(state): Shared<State>,
    User(holder): User,
    Path(dataset): Path<Uuid>,
    Query(page): Query<After>,
) -> Result<axum::Json<Page<LedgerEntry>>, Failure> {
    let shown = answers::show_chain(&state, dataset, holder, page.after).await?;
    Ok(axum::Json(shown))
}

/// Lists the signed debits of each further key service of a dataset.
///
/// The list is empty if one service has the whole key.
#[utoipa::path(get, path = "/v1/datasets/{dataset}/debited", tag = "releases",
    params(("dataset" = Uuid, Path)), security(("bearer" = [])),
    responses(
        (status = 200, description = "One list for each service", body = DebitedByServices),
        (status = "4XX", description = "No such dataset", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Try again later", body = Problem, content_type = "application/problem+json"),
    ))]
async fn show_debited(
    Shared(state): Shared<State>,
    User(holder): User,
    Path(dataset): Path<Uuid>,
) -> Result<axum::Json<DebitedByServices>, Failure> {
    let stored = keys::find_held(&state, dataset, holder).await?;
    Ok(axum::Json(shares::first::debited(&state, &stored).await?))
}

/// Returns the account's usage and limits at this service.
#[utoipa::path(get, path = "/v1/usage", tag = "keys", security(("bearer" = [])),
    responses(
        (status = 200, description = "One entry for each limit", body = Usage),
        (status = "4XX", description = "Not signed in", body = Problem, content_type = "application/problem+json"),
    ))]
async fn show_usage(
    Shared(state): Shared<State>,
    User(owner): User,
) -> Result<axum::Json<Usage>, Failure> {
    Ok(axum::Json(limits::usage(&state, owner).await?))
}

/// Start of a page of a list.
#[derive(Clone, Copy, Debug, Default, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
struct After {
    /// Number of the last item that the client has seen.
    #[serde(default)]
    #[param(minimum = 0)]
    after: u32,
}

/// Number of entries on one page of the audit log.
const AUDIT_PAGE: usize = 200;

/// Lists all requests for a dataset's keys and releases, oldest first.
#[utoipa::path(get, path = "/v1/datasets/{dataset}/audit", tag = "releases",
    params(("dataset" = Uuid, Path), After), security(("bearer" = [])),
    responses(
        (status = 200, description = "A page of the audit log", body = Page<AuditEntry>),
        (status = "4XX", description = "No such dataset", body = Problem, content_type = "application/problem+json"),
    ))]
async fn show_audit(
    Shared(state): Shared<State>,
    User(owner): User,
    Path(dataset): Path<Uuid>,
    Query(page): Query<After>,
) -> Result<axum::Json<Page<AuditEntry>>, Failure> {
    keys::find_held(&state, dataset, owner).await?;
    let (after, most) = (page.after.into(), AUDIT_PAGE as i64);
    let items = audit::read(&state.base.store, dataset, after, most).await?;
    let full = items.len() == AUDIT_PAGE;
    let next = items.last().filter(|_| full).map(|e| e.number.to_string());
    Ok(axum::Json(Page {
        items,
        next,
        damaged: Vec::new(),
    }))
}

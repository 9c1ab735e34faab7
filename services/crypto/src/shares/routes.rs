//! HTTP routes of a key-share service, for the crypto service and the second computation service.

#![allow(unused_qualifications)] // in utoipa's expansion

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State as Shared};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use fhaim_api::keys::{
    DebitedReleases, KeyServiceDocument, NewShare, UploadKeySeeds, UploadSeedCall,
};
use fhaim_api::problem::Problem;
use fhaim_api::token::Service;
use fhaim_platform::Failure;
use fhaim_platform::extract::{Json, Octets, Path, Query};
use fhaim_platform::token::Peer;
use serde::Deserialize;
use utoipa::{IntoParams, OpenApi};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::State;
use crate::decryption;
use crate::routes as crypto;
use crate::shares::member;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "fhaim key-share service",
        description = "Holds a share of keys and its own ledger. Nothing is decrypted without it."
    ),
    components(schemas(Problem))
)]
struct Document;

/// All routes with their documentation.
pub fn documented() -> OpenApiRouter<State> {
    let long = OpenApiRouter::new()
        .routes(routes!(generation))
        .routes(routes!(share))
        .layer(DefaultBodyLimit::max(decryption::BODY_LIMIT));
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(document))
        .routes(routes!(key_service))
        .routes(routes!(begin, destroy))
        .routes(routes!(upload_key))
        .routes(routes!(freeze))
        .routes(routes!(debited))
        .merge(crypto::of_every_key_service())
        .merge(long)
}

/// Returns this OpenAPI document.
#[utoipa::path(get, path = "/openapi.json", tag = "service",
    responses((status = 200, description = "The OpenAPI document", body = Object)))]
async fn document() -> axum::Json<utoipa::openapi::OpenApi> {
    axum::Json(documented().split_for_parts().1)
}

/// Returns this service's name and public signing key.
#[utoipa::path(get, path = "/v1/key-service", tag = "keys",
    responses((status = 200, description = "Name and key", body = KeyServiceDocument)))]
async fn key_service(
    Shared(state): Shared<State>,
) -> Result<axum::Json<KeyServiceDocument>, Failure> {
    Ok(axum::Json(state.sharing.me()?.into()))
}

/// Begins an attempt to make a dataset's key with a new share.
#[utoipa::path(put, path = "/v1/shares/{dataset}", tag = "keys", request_body = NewShare,
    params(("dataset" = Uuid, Path)), security(("bearer" = [])),
    responses(
        (status = 204, description = "Begun"),
        (status = "4XX", description = "Not begun", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Try again later", body = Problem, content_type = "application/problem+json"),
    ))]
async fn begin(
    Shared(state): Shared<State>,
    peer: Peer,
    Path(dataset): Path<Uuid>,
    Json(new): Json<NewShare>,
) -> Result<StatusCode, Failure> {
    peer.must_be(Service::Crypto)?;
    member::begin(&state, dataset, new).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Takes messages of a key generation and returns this service's next one.
#[utoipa::path(post, path = "/v1/shares/{dataset}/generation", tag = "keys",
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    params(("dataset" = Uuid, Path)), security(("bearer" = [])),
    responses(
        (status = 200, description = "Messages", body = Vec<u8>, content_type = "application/octet-stream"),
        (status = "4XX", description = "Refused", body = Problem, content_type = "application/problem+json"),
    ))]
async fn generation(
    Shared(state): Shared<State>,
    peer: Peer,
    Path(dataset): Path<Uuid>,
    Octets(body): Octets,
) -> Result<Response, Failure> {
    peer.must_be(Service::Crypto)?;
    Ok(octets(member::step(&state, dataset, body).await?))
}

/// Judges a batch of releases and promises it. Once all services have promised it, debits it and returns this service's
/// share.
///
/// Repeating the call gives the same answer and no second debit.
#[utoipa::path(post, path = "/v1/shares/{dataset}/jobs/{job}", tag = "releases",
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    params(("dataset" = Uuid, Path), ("job" = Uuid, Path)), security(("bearer" = [])),
    responses(
        (status = 200, description = "A promise, or a promise and a share", body = Vec<u8>, content_type = "application/octet-stream"),
        (status = "4XX", description = "Refused; the reason is not given", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Try again later", body = Problem, content_type = "application/problem+json"),
    ))]
async fn share(
    Shared(state): Shared<State>,
    peer: Peer,
    Path((dataset, job)): Path<(Uuid, Uuid)>,
    Octets(body): Octets,
) -> Result<Response, Failure> {
    peer.must_be(Service::Crypto)?;
    Ok(octets(member::share(&state, dataset, job, body).await?))
}

/// Returns this service's seed of a holder's upload key, encrypted for the holder.
#[utoipa::path(post, path = "/v1/shares/{dataset}/upload-key", tag = "keys", request_body = UploadSeedCall,
    params(("dataset" = Uuid, Path)), security(("bearer" = [])),
    responses(
        (status = 200, description = "The seed", body = UploadKeySeeds),
        (status = "4XX", description = "Refused", body = Problem, content_type = "application/problem+json"),
    ))]
async fn upload_key(
    Shared(state): Shared<State>,
    peer: Peer,
    Path(dataset): Path<Uuid>,
    Json(call): Json<UploadSeedCall>,
) -> Result<axum::Json<UploadKeySeeds>, Failure> {
    peer.must_be(Service::Crypto)?;
    Ok(axum::Json(
        member::upload_seed(&state, dataset, &call).await?,
    ))
}

/// Freezes a dataset, so that nothing more of it is shared.
#[utoipa::path(put, path = "/v1/shares/{dataset}/freeze", tag = "releases",
    params(("dataset" = Uuid, Path)), security(("bearer" = [])),
    responses(
        (status = 204, description = "Frozen"),
        (status = "4XX", description = "Not frozen", body = Problem, content_type = "application/problem+json"),
    ))]
async fn freeze(
    Shared(state): Shared<State>,
    peer: Peer,
    Path(dataset): Path<Uuid>,
) -> Result<StatusCode, Failure> {
    peer.must_be(Service::Crypto)?;
    member::freeze(&state, dataset).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the signed list of this service's debits of a dataset. Holders compare it with the first service's.
#[utoipa::path(get, path = "/v1/shares/{dataset}/debited", tag = "releases",
    params(("dataset" = Uuid, Path)), security(("bearer" = [])),
    responses(
        (status = 200, description = "The releases", body = DebitedReleases),
        (status = "4XX", description = "No such dataset", body = Problem, content_type = "application/problem+json"),
    ))]
async fn debited(
    Shared(state): Shared<State>,
    peer: Peer,
    Path(dataset): Path<Uuid>,
) -> Result<axum::Json<DebitedReleases>, Failure> {
    peer.must_be(Service::Crypto)?;
    Ok(axum::Json(member::debited(&state, dataset).await?))
}

/// The owner of keys that the first key service does not know.
#[derive(Clone, Copy, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ShareOwner {
    /// The account that asks for the deletion. Absent if the first key service knows the keys.
    owner: Option<Uuid>,
}

/// Destroys this service's share of a dataset's key. The ledger remains.
#[utoipa::path(delete, path = "/v1/shares/{dataset}", tag = "keys",
    params(("dataset" = Uuid, Path), ShareOwner), security(("bearer" = [])),
    responses(
        (status = 204, description = "Destroyed"),
        (status = "4XX", description = "Not destroyed", body = Problem, content_type = "application/problem+json"),
    ))]
async fn destroy(
    Shared(state): Shared<State>,
    peer: Peer,
    Path(dataset): Path<Uuid>,
    Query(ShareOwner { owner }): Query<ShareOwner>,
) -> Result<StatusCode, Failure> {
    peer.must_be(Service::Crypto)?;
    member::destroy(&state, dataset, owner).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn octets(bytes: Vec<u8>) -> Response {
    let octets = [(header::CONTENT_TYPE, "application/octet-stream")];
    (octets, Bytes::from(bytes)).into_response()
}

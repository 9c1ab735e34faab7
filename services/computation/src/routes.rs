//! The HTTP surface.

#![allow(unused_qualifications)] // in what utoipa expands to

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State as Shared};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fhaim_api::Digest;
use fhaim_api::batch::{Batch, BatchStatus};
use fhaim_api::problem::Problem;
use fhaim_api::token::Service;
use fhaim_api::upload::{Complete, Listing, Missing, NewUpload, Upload};
use fhaim_api::usage::Usage;
use fhaim_platform::Failure;
use fhaim_platform::extract::{Json, Octets, Path, ShownReceipts};
use fhaim_platform::program::Program;
use fhaim_platform::token::{Caller, Peer, User};
use utoipa::OpenApi;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt};
use utoipa_axum::routes;
use uuid::Uuid;

use crate::problem::Refusal;
use crate::store::batches::Name;
use crate::{Role, State, batches, limits, runs, uploads};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "fhaim computation service",
        description = "Ciphertexts in, releases out."
    ),
    components(schemas(Problem))
)]
struct Document;

/// The largest object of an upload: the keys of a holder's own, under parameter sets of three primes.
const OBJECT_LIMIT: usize = 8 << 20;

/// All routes, documented.
pub fn documented() -> OpenApiRouter<State> {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(jwks))
        .routes(routes!(document))
        .routes(routes!(register, show, delete))
        .routes(routes!(take_back))
        .routes(routes!(missing))
        .routes(routes!(put_object, copy_object).layer(DefaultBodyLimit::max(OBJECT_LIMIT)))
        .routes(routes!(list_objects))
        .routes(routes!(share_key))
        .routes(routes!(complete))
        .routes(routes!(ask, look))
        .routes(routes!(show_usage))
}

/// Keys that this service signs its tokens with.
#[utoipa::path(get, path = "/.well-known/jwks.json", tag = "service",
    responses((status = 200, description = "A JSON Web Key Set", body = Object)))]
async fn jwks(Shared(state): Shared<State>) -> axum::Json<impl serde::Serialize> {
    axum::Json(state.base.signer.jwks())
}

/// This document.
#[utoipa::path(get, path = "/openapi.json", tag = "service",
    responses((status = 200, description = "The OpenAPI document", body = Object)))]
async fn document() -> axum::Json<utoipa::openapi::OpenApi> {
    axum::Json(State::openapi())
}

/// Registers a dataset, or the caller's part of one of several holders, for upload, after its keys
/// were made at the crypto service.
#[utoipa::path(put, path = "/v1/datasets/{dataset}", tag = "uploads", request_body = NewUpload,
    params(("dataset" = Uuid, Path)), security(("bearer" = [])),
    responses(
        (status = 201, description = "Registered", body = Upload),
        (status = 200, description = "It was registered before, alike", body = Upload),
        (status = "4XX", description = "Not registered", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Worth another try", body = Problem, content_type = "application/problem+json"),
    ))]
async fn register(
    Shared(state): Shared<State>,
    User(owner): User,
    Path(dataset): Path<Uuid>,
    Json(new): Json<NewUpload>,
) -> Result<(StatusCode, axum::Json<Upload>), Failure> {
    let (upload, made) = uploads::register(&state, dataset, owner, new).await?;
    let status = if made {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok((status, axum::Json(upload)))
}

/// How far an upload is, for its holders and the generation service.
#[utoipa::path(get, path = "/v1/datasets/{dataset}", tag = "uploads",
    params(("dataset" = Uuid, Path)), security(("bearer" = [])),
    responses(
        (status = 200, description = "The upload", body = Upload),
        (status = "4XX", description = "None to show", body = Problem, content_type = "application/problem+json"),
    ))]
async fn show(
    Shared(state): Shared<State>,
    caller: Caller,
    Path(dataset): Path<Uuid>,
) -> Result<axum::Json<Upload>, Failure> {
    let stored = match caller {
        Caller::User(user) => uploads::find_held(&state, dataset, user).await?.0,
        Caller::Service(Service::Generation) => uploads::find(&state, dataset).await?,
        Caller::Service(_) => return Err(Failure::forbidden()),
    };
    Ok(axum::Json(uploads::show(&state, &stored).await?))
}

/// Deletes an upload for good. Batches under way are stopped.
#[utoipa::path(delete, path = "/v1/datasets/{dataset}", tag = "uploads",
    params(("dataset" = Uuid, Path)), security(("bearer" = [])),
    responses(
        (status = 204, description = "Deleted"),
        (status = "4XX", description = "Not deleted", body = Problem, content_type = "application/problem+json"),
    ))]
async fn delete(
    Shared(state): Shared<State>,
    User(owner): User,
    Path(dataset): Path<Uuid>,
) -> Result<StatusCode, Failure> {
    uploads::delete(&state, dataset, owner).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Deletes the objects of the caller's contribution, before any run over it has begun.
#[utoipa::path(delete, path = "/v1/datasets/{dataset}/contributions/{contribution}",
    tag = "uploads", security(("bearer" = [])),
    params(("dataset" = Uuid, Path), ("contribution" = u32, Path)),
    responses(
        (status = 204, description = "Deleted"),
        (status = "4XX", description = "Not deleted", body = Problem, content_type = "application/problem+json"),
    ))]
async fn take_back(
    Shared(state): Shared<State>,
    User(owner): User,
    Path((dataset, contribution)): Path<(Uuid, u32)>,
) -> Result<StatusCode, Failure> {
    let stored = uploads::find_part(&state, dataset, owner, contribution).await?;
    uploads::take_back(&state, &stored, contribution).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The objects of a contribution that are still missing.
#[utoipa::path(get, path = "/v1/datasets/{dataset}/contributions/{contribution}/missing",
    tag = "uploads", security(("bearer" = [])),
    params(("dataset" = Uuid, Path), ("contribution" = u32, Path)),
    responses(
        (status = 200, description = "Their names", body = Missing),
        (status = "4XX", description = "None to show", body = Problem, content_type = "application/problem+json"),
    ))]
async fn missing(
    Shared(state): Shared<State>,
    User(owner): User,
    Path((dataset, contribution)): Path<(Uuid, u32)>,
) -> Result<axum::Json<Missing>, Failure> {
    let stored = uploads::find_part(&state, dataset, owner, contribution).await?;
    let missing = uploads::missing(&state, &stored, contribution).await?;
    Ok(axum::Json(missing))
}

/// Takes one object in.
#[utoipa::path(put, path = "/v1/datasets/{dataset}/contributions/{contribution}/objects/{object}",
    tag = "uploads", security(("bearer" = [])),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    params(("dataset" = Uuid, Path), ("contribution" = u32, Path),
        ("object" = String, Path, description = "`column/12/3`, `counts/3`, `noise/0/4/1` or `keys`, its slashes percent-encoded"),
        ("Content-Digest" = String, Header, description = "`sha-256=:<base64>:` (RFC 9530)")),
    responses(
        (status = 204, description = "Stored"),
        (status = "4XX", description = "Not stored", body = Problem, content_type = "application/problem+json"),
    ))]
async fn put_object(
    Shared(state): Shared<State>,
    User(owner): User,
    Path((dataset, contribution, object)): Path<(Uuid, u32, String)>,
    headers: HeaderMap,
    Octets(body): Octets,
) -> Result<StatusCode, Failure> {
    let stored = uploads::find_part(&state, dataset, owner, contribution).await?;
    let digest = content_digest(&headers)?;
    if let Role::Second { .. } = state.role {
        return Err(Refusal::Second.into());
    }
    uploads::put(&state, &stored, contribution, &object, digest, body).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// One object, for the second computation service where the terms have one.
#[utoipa::path(get, path = "/v1/datasets/{dataset}/contributions/{contribution}/objects/{object}",
    tag = "copies", security(("bearer" = [])),
    params(("dataset" = Uuid, Path), ("contribution" = u32, Path),
        ("object" = String, Path, description = "As it was stored")),
    responses(
        (status = 200, description = "Its bytes", body = Vec<u8>, content_type = "application/octet-stream"),
        (status = "4XX", description = "None to show", body = Problem, content_type = "application/problem+json"),
    ))]
async fn copy_object(
    Shared(state): Shared<State>,
    peer: Peer,
    Path((dataset, contribution, object)): Path<(Uuid, u32, String)>,
) -> Result<Response, Failure> {
    peer.must_be(Service::Witness)?;
    let stored = uploads::find(&state, dataset).await?;
    let bytes = uploads::object(&state, &stored, contribution, &object).await?;
    Ok(octets(bytes))
}

/// The objects of a contribution, for the second computation service where the terms have one.
#[utoipa::path(get, path = "/v1/datasets/{dataset}/contributions/{contribution}/objects",
    tag = "copies", security(("bearer" = [])),
    params(("dataset" = Uuid, Path), ("contribution" = u32, Path)),
    responses(
        (status = 200, description = "Those that are there", body = Listing),
        (status = "4XX", description = "None to show", body = Problem, content_type = "application/problem+json"),
    ))]
async fn list_objects(
    Shared(state): Shared<State>,
    peer: Peer,
    Path((dataset, contribution)): Path<(Uuid, u32)>,
) -> Result<axum::Json<Listing>, Failure> {
    peer.must_be(Service::Witness)?;
    let stored = uploads::find(&state, dataset).await?;
    let listing = uploads::listing(&state, &stored, contribution).await?;
    Ok(axum::Json(listing))
}

/// What a complete upload's pages are sealed with, for the second computation service where the terms
/// have one: with it, both seal to the same bytes.
#[utoipa::path(get, path = "/v1/datasets/{dataset}/sealing-key", tag = "copies",
    params(("dataset" = Uuid, Path)), security(("bearer" = [])),
    responses(
        (status = 200, description = "32 bytes", body = Vec<u8>, content_type = "application/octet-stream"),
        (status = "4XX", description = "None to show", body = Problem, content_type = "application/problem+json"),
    ))]
async fn share_key(
    Shared(state): Shared<State>,
    peer: Peer,
    Path(dataset): Path<Uuid>,
) -> Result<Response, Failure> {
    peer.must_be(Service::Witness)?;
    let key = runs::shared_key(&state, dataset).await?;
    Ok(octets(Bytes::copy_from_slice(key.as_bytes())))
}

/// Bytes that no cache keeps.
fn octets(bytes: Bytes) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (headers, bytes).into_response()
}

fn content_digest(headers: &HeaderMap) -> Result<Digest, Refusal> {
    let text = headers.get("content-digest").and_then(|h| h.to_str().ok());
    let text = text.and_then(|text| text.strip_prefix("sha-256=:")?.strip_suffix(':'));
    let bytes = text.and_then(|text| STANDARD.decode(text).ok());
    let digest = bytes.and_then(|bytes| bytes.try_into().ok());
    digest.map(Digest).ok_or(Refusal::ContentDigest)
}

/// Seals an upload: nothing can be added or changed after.
#[utoipa::path(post, path = "/v1/datasets/{dataset}/contributions/{contribution}/complete",
    tag = "uploads", request_body = Complete, security(("bearer" = [])),
    params(("dataset" = Uuid, Path), ("contribution" = u32, Path)),
    responses(
        (status = 200, description = "Sealed", body = Upload),
        (status = "4XX", description = "Not sealed", body = Problem, content_type = "application/problem+json"),
    ))]
async fn complete(
    Shared(state): Shared<State>,
    User(owner): User,
    Path((dataset, contribution)): Path<(Uuid, u32)>,
    Json(body): Json<Complete>,
) -> Result<axum::Json<Upload>, Failure> {
    let stored = uploads::find_part(&state, dataset, owner, contribution).await?;
    let upload = uploads::complete(&state, &stored, contribution, &body).await?;
    Ok(axum::Json(upload))
}

/// Asks for a batch of releases, for the generation service. The same again changes nothing.
#[utoipa::path(put, path = "/v1/datasets/{dataset}/jobs/{job}/batches/{first}", tag = "releases",
    operation_id = "ask_for_batch", request_body = Batch, security(("bearer" = [])),
    params(("dataset" = Uuid, Path), ("job" = Uuid, Path), ("first" = u32, Path)),
    responses(
        (status = 200, description = "It was asked for before, and is released or refused", body = BatchStatus),
        (status = 202, description = "Under way: look at it", body = BatchStatus),
        (status = "4XX", description = "Not a batch", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Worth another try", body = Problem, content_type = "application/problem+json"),
    ))]
async fn ask(
    Shared(state): Shared<State>,
    peer: Peer,
    Path((dataset, job, first)): Path<(Uuid, Uuid, u32)>,
    Json(batch): Json<Batch>,
) -> Result<(StatusCode, axum::Json<BatchStatus>), Failure> {
    peer.must_be(Service::Generation)?;
    let name = Name {
        dataset,
        job,
        first,
    };
    let status = batches::ask(&state, name, &batch).await?;
    let code = match status {
        BatchStatus::Queued | BatchStatus::Running { .. } => StatusCode::ACCEPTED,
        BatchStatus::Released { .. } | BatchStatus::Refused { .. } => StatusCode::OK,
    };
    Ok((code, axum::Json(status)))
}

/// Where a batch is, for the generation service, after a short wait for its end. Show the receipts
/// you have with it: they are passed on to the crypto service.
#[utoipa::path(get, path = "/v1/datasets/{dataset}/jobs/{job}/batches/{first}", tag = "releases",
    operation_id = "look_at_batch", security(("bearer" = [])),
    params(("dataset" = Uuid, Path), ("job" = Uuid, Path), ("first" = u32, Path),
        ("fhaim-receipt" = Option<String>, Header, description = "A receipt from before: its JSON, base64url")),
    responses(
        (status = 200, description = "Where it is", body = BatchStatus),
        (status = "4XX", description = "None to show", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Worth another try", body = Problem, content_type = "application/problem+json"),
    ))]
async fn look(
    Shared(state): Shared<State>,
    peer: Peer,
    Path((dataset, job, first)): Path<(Uuid, Uuid, u32)>,
    ShownReceipts(receipts): ShownReceipts,
) -> Result<axum::Json<BatchStatus>, Failure> {
    peer.must_be(Service::Generation)?;
    let name = Name {
        dataset,
        job,
        first,
    };
    let status = batches::look(&state, name, &receipts).await?;
    Ok(axum::Json(status))
}

/// What the account has here, and what it may have.
#[utoipa::path(get, path = "/v1/usage", tag = "uploads", security(("bearer" = [])),
    responses(
        (status = 200, description = "One entry a limit", body = Usage),
        (status = "4XX", description = "Not signed in", body = Problem, content_type = "application/problem+json"),
    ))]
async fn show_usage(
    Shared(state): Shared<State>,
    User(owner): User,
) -> Result<axum::Json<Usage>, Failure> {
    Ok(axum::Json(limits::usage(&state, owner).await?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_he::{Layout, ParameterSet, Parameters};
    use fhaim_protocol::encryption::{Encryption, Form};
    use fhaim_protocol::upload::Object;

    #[test]
    fn every_object_of_an_upload_is_within_the_limit() {
        let form = Form {
            encryption: Encryption::OwnKey,
            layout: Some(Layout::for_records(9000).unwrap()),
        };
        let sets: Vec<ParameterSet> = (0..=255).filter_map(ParameterSet::by_id).collect();
        assert_eq!(sets.len(), 3);
        for set in sets {
            let params = Parameters::new(set).unwrap();
            let keys = form.object_bytes(&params, Object::Keys);
            for bytes in [keys, form.polynomial_bytes(&set)] {
                assert!(bytes <= OBJECT_LIMIT, "{bytes} under set {}", set.id);
            }
        }
    }
}

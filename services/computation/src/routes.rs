//! HTTP routes.

#![allow(unused_qualifications)] // in utoipa's expansion

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
        description = "Computes releases on ciphertexts."
    ),
    components(schemas(Problem))
)]
struct Document;

/// Size of the largest object of an upload: a holder's own keys under parameter sets of three primes.
const OBJECT_LIMIT: usize = 8 << 20;

/// All routes with their documentation.
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

/// Registers a dataset for upload, or the caller's part of a dataset of several holders.
///
/// The dataset's keys must already exist at the crypto service.
#[utoipa::path(put, path = "/v1/datasets/{dataset}", tag = "uploads", request_body = NewUpload,
    params(("dataset" = Uuid, Path)), security(("bearer" = [])),
    responses(
        (status = 201, description = "Registered", body = Upload),
        (status = 200, description = "Already registered in the same way", body = Upload),
        (status = "4XX", description = "Not registered", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Try again later", body = Problem, content_type = "application/problem+json"),
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

/// Returns the progress of an upload, for its holders and the generation service.
#[utoipa::path(get, path = "/v1/datasets/{dataset}", tag = "uploads",
    params(("dataset" = Uuid, Path)), security(("bearer" = [])),
    responses(
        (status = 200, description = "The upload", body = Upload),
        (status = "4XX", description = "No such upload", body = Problem, content_type = "application/problem+json"),
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

/// Deletes an upload permanently and stops its batches.
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

/// Deletes the objects of the caller's contribution, if no run over it has begun.
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
    runs::learn_receipt(&state, dataset).await;
    uploads::take_back(&state, &stored, contribution).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Lists the missing objects of a contribution.
#[utoipa::path(get, path = "/v1/datasets/{dataset}/contributions/{contribution}/missing",
    tag = "uploads", security(("bearer" = [])),
    params(("dataset" = Uuid, Path), ("contribution" = u32, Path)),
    responses(
        (status = 200, description = "Names of the missing objects", body = Missing),
        (status = "4XX", description = "No such contribution", body = Problem, content_type = "application/problem+json"),
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

/// Stores one object.
#[utoipa::path(put, path = "/v1/datasets/{dataset}/contributions/{contribution}/objects/{object}",
    tag = "uploads", security(("bearer" = [])),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    params(("dataset" = Uuid, Path), ("contribution" = u32, Path),
        ("object" = String, Path, description = "`column/12/3`, `counts/3`, `noise/0/4/1` or `keys`, with percent-encoded slashes"),
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

/// Returns one object to the second computation service, if the terms name one.
#[utoipa::path(get, path = "/v1/datasets/{dataset}/contributions/{contribution}/objects/{object}",
    tag = "copies", security(("bearer" = [])),
    params(("dataset" = Uuid, Path), ("contribution" = u32, Path),
        ("object" = String, Path, description = "The object's name")),
    responses(
        (status = 200, description = "The object's bytes", body = Vec<u8>, content_type = "application/octet-stream"),
        (status = "4XX", description = "No such object", body = Problem, content_type = "application/problem+json"),
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

/// Lists the objects of a contribution for the second computation service, if the terms name one.
#[utoipa::path(get, path = "/v1/datasets/{dataset}/contributions/{contribution}/objects",
    tag = "copies", security(("bearer" = [])),
    params(("dataset" = Uuid, Path), ("contribution" = u32, Path)),
    responses(
        (status = 200, description = "The stored objects", body = Listing),
        (status = "4XX", description = "No such contribution", body = Problem, content_type = "application/problem+json"),
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

/// Returns the sealing key of a complete upload's pages to the second computation service, if the terms name one.
///
/// With the same key, both services seal to the same bytes.
#[utoipa::path(get, path = "/v1/datasets/{dataset}/sealing-key", tag = "copies",
    params(("dataset" = Uuid, Path)), security(("bearer" = [])),
    responses(
        (status = 200, description = "The key: 32 bytes", body = Vec<u8>, content_type = "application/octet-stream"),
        (status = "4XX", description = "No such key", body = Problem, content_type = "application/problem+json"),
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

/// Makes a response of bytes that no cache stores.
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

/// Completes a contribution, which cannot be changed afterwards.
#[utoipa::path(post, path = "/v1/datasets/{dataset}/contributions/{contribution}/complete",
    tag = "uploads", request_body = Complete, security(("bearer" = [])),
    params(("dataset" = Uuid, Path), ("contribution" = u32, Path)),
    responses(
        (status = 200, description = "Completed", body = Upload),
        (status = "4XX", description = "Not completed", body = Problem, content_type = "application/problem+json"),
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

/// Asks for a batch of releases, for the generation service. Repeating the call changes nothing.
#[utoipa::path(put, path = "/v1/datasets/{dataset}/jobs/{job}/batches/{first}", tag = "releases",
    operation_id = "ask_for_batch", request_body = Batch, security(("bearer" = [])),
    params(("dataset" = Uuid, Path), ("job" = Uuid, Path), ("first" = u32, Path)),
    responses(
        (status = 200, description = "The batch was already requested and is released or refused", body = BatchStatus),
        (status = 202, description = "The batch is under way; poll it", body = BatchStatus),
        (status = "4XX", description = "Not accepted", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Try again later", body = Problem, content_type = "application/problem+json"),
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
        BatchStatus::Queued | BatchStatus::Running { .. } | BatchStatus::Waiting { .. } => {
            StatusCode::ACCEPTED
        }
        BatchStatus::Released { .. } | BatchStatus::Refused { .. } => StatusCode::OK,
    };
    Ok((code, axum::Json(status)))
}

/// Returns the status of a batch to the generation service, after a short wait for its end.
///
/// Send the caller's receipts with the request: this service passes them on to the crypto service.
#[utoipa::path(get, path = "/v1/datasets/{dataset}/jobs/{job}/batches/{first}", tag = "releases",
    operation_id = "look_at_batch", security(("bearer" = [])),
    params(("dataset" = Uuid, Path), ("job" = Uuid, Path), ("first" = u32, Path),
        ("fhaim-receipt" = Option<String>, Header, description = "An earlier receipt: its JSON in base64url")),
    responses(
        (status = 200, description = "The status", body = BatchStatus),
        (status = "4XX", description = "No such batch", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Try again later", body = Problem, content_type = "application/problem+json"),
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

/// Returns the account's usage and limits at this service.
#[utoipa::path(get, path = "/v1/usage", tag = "uploads", security(("bearer" = [])),
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

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_he::{Layout, ParameterSet, Parameters};
    use fhaim_protocol::encryption::{Encryption, Form};
    use fhaim_protocol::upload::Object;

    #[test]
    fn every_object_is_within_the_body_limit() {
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

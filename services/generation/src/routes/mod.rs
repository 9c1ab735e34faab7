//! HTTP routes.

mod accounts;
mod links;

use axum::extract::{FromRequestParts, State as Shared};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use fhaim_api::dataset::{Dataset, NewDataset, NewName, Voucher};
use fhaim_api::job::{
    Draw, Job, JobEvent, JobEventMessage, ModelView, NewJob, NewNote, ReleasedStatistic,
};
use fhaim_api::problem::Problem;
use fhaim_api::token::EndedTokens;
use fhaim_api::{Page, Paging};
use fhaim_platform::Failure;
use fhaim_platform::extract::{Json, Path, Query};
use fhaim_platform::program::Program;
use fhaim_platform::token::{SessionUser, User};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::{Modify, OpenApi};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::answers::{
    Conflict, Forbidden, Internal, Invalid, Malformed, NotFound, TooLarge, Unauthenticated,
    Unavailable, UnsupportedMediaType,
};
use crate::problem::Refusal;
use crate::put::Put;
use crate::store::accounts as accounts_store;
use crate::{State, datasets, events, jobs, results, synthetic};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "fhaim generation service",
        description = "Accounts, datasets, jobs, models and synthetic tables."
    ),
    components(schemas(fhaim_api::job::TableFormat, Problem, JobEvent)),
    modifiers(&Bearer)
)]
struct Document;

/// Adds the security scheme of routes that require an access token.
struct Bearer;

impl Modify for Bearer {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        let components = document.components.get_or_insert_with(Default::default);
        components.add_security_scheme("bearer", scheme);
    }
}

/// All routes with their documentation.
pub fn documented() -> OpenApiRouter<State> {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(jwks))
        .routes(routes!(ended_tokens))
        .routes(routes!(document))
        .merge(accounts::documented())
        .routes(routes!(list_datasets))
        .routes(routes!(make_dataset, show_dataset, delete_dataset))
        .routes(routes!(begin_deletion))
        .routes(routes!(rename_dataset))
        .routes(routes!(vouch_for_dataset))
        .routes(routes!(make_dataset_ready))
        .routes(routes!(list_jobs))
        .routes(routes!(make_job))
        .routes(routes!(show_job))
        .routes(routes!(annotate_job))
        .routes(routes!(cancel_job))
        .routes(routes!(retry_job))
        .routes(routes!(watch_job))
        .routes(routes!(list_releases))
        .routes(routes!(show_model))
        .routes(routes!(download_model))
        .routes(routes!(draw_table))
        .merge(links::documented())
}

type Answer<T> = Result<axum::Json<T>, Failure>;

/// Returns the public keys of this service's token signatures.
#[utoipa::path(get, path = "/.well-known/jwks.json", tag = "service",
    responses((status = 200, description = "A JSON Web Key Set", body = Object)))]
async fn jwks(Shared(state): Shared<State>) -> Response {
    axum::Json(state.base.signer.jwks()).into_response()
}

/// Returns the users' tokens that ended before their expiry. The other services refuse them.
#[utoipa::path(get, path = "/.well-known/ended-tokens.json", tag = "service",
    responses((status = 200, description = "Accounts with ended tokens", body = EndedTokens)))]
async fn ended_tokens(Shared(state): Shared<State>) -> Answer<EndedTokens> {
    let ended = accounts_store::ended_tokens(&state.base().store).await?;
    Ok(axum::Json(ended))
}

/// Returns this OpenAPI document.
#[utoipa::path(get, path = "/openapi.json", tag = "service",
    responses((status = 200, description = "The OpenAPI document", body = Object)))]
async fn document() -> axum::Json<utoipa::openapi::OpenApi> {
    axum::Json(State::openapi())
}

/// Lists the caller's datasets.
#[utoipa::path(get, path = "/v1/datasets", tag = "datasets", security(("bearer" = [])),
    params(Paging),
    responses((status = 200, description = "A page of datasets", body = Page<Dataset>),
        Unauthenticated, Forbidden, Invalid, Internal, Unavailable))]
async fn list_datasets(
    Shared(state): Shared<State>,
    User(owner): User,
    Query(paging): Query<Paging>,
) -> Answer<Page<Dataset>> {
    Ok(axum::Json(datasets::list(&state, owner, &paging).await?))
}

/// Creates a dataset under an identifier that the caller chooses.
///
/// Create its keys at the crypto service and its upload at the computation service under the same
/// identifier. Repeating the call changes nothing.
#[utoipa::path(put, path = "/v1/datasets/{dataset}", tag = "datasets",
    security(("bearer" = [])), params(("dataset" = Uuid, Path)), request_body = NewDataset,
    responses((status = 201, description = "The dataset", body = Dataset),
        (status = 200, description = "The same dataset already existed", body = Dataset),
        Malformed, Unauthenticated, Forbidden, NotFound, Conflict, TooLarge, UnsupportedMediaType,
        Invalid, Internal, Unavailable))]
async fn make_dataset(
    Shared(state): Shared<State>,
    User(owner): User,
    Path(dataset): Path<Uuid>,
    Json(new): Json<NewDataset>,
) -> Result<Put<Dataset>, Failure> {
    datasets::create(&state, owner, dataset, new).await
}

/// Returns a dataset.
#[utoipa::path(get, path = "/v1/datasets/{dataset}", tag = "datasets", security(("bearer" = [])),
    params(("dataset" = Uuid, Path)),
    responses((status = 200, description = "The dataset", body = Dataset),
        Unauthenticated, Forbidden, NotFound, Internal, Unavailable))]
async fn show_dataset(
    Shared(state): Shared<State>,
    User(owner): User,
    Path(dataset): Path<Uuid>,
) -> Answer<Dataset> {
    Ok(axum::Json(datasets::show(&state, owner, dataset).await?))
}

/// Marks a dataset as being deleted, before its parts are deleted at all services.
///
/// No job can begin any more. If the caller stops before all parts are deleted, the service continues the deletion.
/// Repeating the call changes nothing.
#[utoipa::path(put, path = "/v1/datasets/{dataset}/deletion", tag = "datasets",
    security(("bearer" = [])), params(("dataset" = Uuid, Path)),
    responses((status = 204, description = "Marked"),
        Unauthenticated, Forbidden, NotFound, Internal, Unavailable))]
async fn begin_deletion(
    Shared(state): Shared<State>,
    User(owner): User,
    Path(dataset): Path<Uuid>,
) -> Result<StatusCode, Failure> {
    datasets::begin_deletion(&state, owner, dataset).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Deletes this service's part of a dataset: jobs, releases and models. Stops queued and running
/// jobs.
#[utoipa::path(delete, path = "/v1/datasets/{dataset}", tag = "datasets",
    security(("bearer" = [])), params(("dataset" = Uuid, Path)),
    responses((status = 204, description = "Deleted"),
        Unauthenticated, Forbidden, NotFound, Conflict, Internal, Unavailable))]
async fn delete_dataset(
    Shared(state): Shared<State>,
    User(owner): User,
    Path(dataset): Path<Uuid>,
) -> Result<StatusCode, Failure> {
    datasets::delete(&state, owner, dataset).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Renames a dataset. The name is only for people: nothing else changes.
#[utoipa::path(put, path = "/v1/datasets/{dataset}/name", tag = "datasets",
    security(("bearer" = [])), params(("dataset" = Uuid, Path)), request_body = NewName,
    responses((status = 200, description = "The dataset", body = Dataset),
        Malformed, Unauthenticated, Forbidden, NotFound, TooLarge, UnsupportedMediaType,
        Invalid, Internal, Unavailable))]
async fn rename_dataset(
    Shared(state): Shared<State>,
    User(owner): User,
    Path(dataset): Path<Uuid>,
    Json(new): Json<NewName>,
) -> Answer<Dataset> {
    let renamed = datasets::rename(&state, owner, dataset, new).await?;
    Ok(axum::Json(renamed))
}

/// Vouches for a dataset: the crypto service creates keys for the caller that shows the voucher.
///
/// Refused once the dataset has had keys.
#[utoipa::path(get, path = "/v1/datasets/{dataset}/voucher", tag = "datasets",
    security(("bearer" = [])), params(("dataset" = Uuid, Path)),
    responses((status = 200, description = "The voucher", body = Voucher),
        Unauthenticated, Forbidden, NotFound, Conflict, Internal, Unavailable))]
async fn vouch_for_dataset(
    Shared(state): Shared<State>,
    User(owner): User,
    Path(dataset): Path<Uuid>,
) -> Answer<Voucher> {
    Ok(axum::Json(datasets::vouch(&state, owner, dataset).await?))
}

/// Marks a dataset as ready for jobs once the computation service has all of its objects.
#[utoipa::path(post, path = "/v1/datasets/{dataset}/ready", tag = "datasets",
    security(("bearer" = [])), params(("dataset" = Uuid, Path)),
    responses((status = 200, description = "The dataset", body = Dataset),
        Unauthenticated, Forbidden, NotFound, Conflict, Internal, Unavailable))]
async fn make_dataset_ready(
    Shared(state): Shared<State>,
    User(owner): User,
    Path(dataset): Path<Uuid>,
) -> Answer<Dataset> {
    Ok(axum::Json(
        datasets::make_ready(&state, owner, dataset).await?,
    ))
}

/// Lists a dataset's jobs.
#[utoipa::path(get, path = "/v1/datasets/{dataset}/jobs", tag = "jobs", security(("bearer" = [])),
    params(("dataset" = Uuid, Path), Paging),
    responses((status = 200, description = "A page of jobs", body = Page<Job>),
        Unauthenticated, Forbidden, NotFound, Invalid, Internal, Unavailable))]
async fn list_jobs(
    Shared(state): Shared<State>,
    User(owner): User,
    Path(dataset): Path<Uuid>,
    Query(paging): Query<Paging>,
) -> Answer<Page<Job>> {
    Ok(axum::Json(
        jobs::list(&state, owner, dataset, &paging).await?,
    ))
}

/// Queues a job under an identifier that the caller chooses.
///
/// A job is one run of the dataset's mechanism and uses one share of its budget. Repeating the call
/// changes nothing and spends nothing.
#[utoipa::path(put, path = "/v1/datasets/{dataset}/jobs/{job}", tag = "jobs",
    security(("bearer" = [])), params(("dataset" = Uuid, Path), ("job" = Uuid, Path)),
    request_body = NewJob,
    responses((status = 201, description = "The job", body = Job),
        (status = 200, description = "The job was already queued", body = Job),
        Malformed, Unauthenticated, Forbidden, NotFound, Conflict, TooLarge, UnsupportedMediaType,
        Invalid, Internal, Unavailable))]
async fn make_job(
    Shared(state): Shared<State>,
    User(owner): User,
    Path((dataset, job)): Path<(Uuid, Uuid)>,
    Json(new): Json<NewJob>,
) -> Result<Put<Job>, Failure> {
    jobs::create(&state, owner, dataset, job, new).await
}

/// Returns a job.
#[utoipa::path(get, path = "/v1/jobs/{job}", tag = "jobs", security(("bearer" = [])),
    params(("job" = Uuid, Path)),
    responses((status = 200, description = "The job", body = Job),
        Unauthenticated, Forbidden, NotFound, Internal, Unavailable))]
async fn show_job(
    Shared(state): Shared<State>,
    User(owner): User,
    Path(job): Path<Uuid>,
) -> Answer<Job> {
    Ok(axum::Json(jobs::show(&state, owner, job).await?))
}

/// Sets a job's note, by which the dataset's holders tell jobs apart.
#[utoipa::path(put, path = "/v1/jobs/{job}/note", tag = "jobs", security(("bearer" = [])),
    params(("job" = Uuid, Path)), request_body = NewNote,
    responses((status = 200, description = "The job", body = Job),
        Malformed, Unauthenticated, Forbidden, NotFound, TooLarge, UnsupportedMediaType,
        Invalid, Internal, Unavailable))]
async fn annotate_job(
    Shared(state): Shared<State>,
    User(user): User,
    Path(job): Path<Uuid>,
    Json(new): Json<NewNote>,
) -> Answer<Job> {
    Ok(axum::Json(jobs::annotate(&state, user, job, new).await?))
}

/// Cancels a queued or running job. Releases that it already got stay released and paid for.
#[utoipa::path(post, path = "/v1/jobs/{job}/cancel", tag = "jobs", security(("bearer" = [])),
    params(("job" = Uuid, Path)),
    responses((status = 200, description = "The job", body = Job),
        Unauthenticated, Forbidden, NotFound, Conflict, Internal, Unavailable))]
async fn cancel_job(
    Shared(state): Shared<State>,
    User(owner): User,
    Path(job): Path<Uuid>,
) -> Answer<Job> {
    Ok(axum::Json(jobs::cancel(&state, owner, job).await?))
}

/// Queues a failed or cancelled job again. The job resumes where it stopped.
#[utoipa::path(post, path = "/v1/jobs/{job}/retry", tag = "jobs", security(("bearer" = [])),
    params(("job" = Uuid, Path)),
    responses((status = 200, description = "The job", body = Job),
        Unauthenticated, Forbidden, NotFound, Conflict, Internal, Unavailable))]
async fn retry_job(
    Shared(state): Shared<State>,
    User(owner): User,
    Path(job): Path<Uuid>,
) -> Answer<Job> {
    Ok(axum::Json(jobs::retry(&state, owner, job).await?))
}

/// Number of the last event that a reconnecting client saw.
struct LastEvent(i64);

impl<S: Sync> FromRequestParts<S> for LastEvent {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        let Some(header) = parts.headers.get("last-event-id") else {
            return Ok(Self(0));
        };
        let number = header.to_str().ok().and_then(|text| text.parse().ok());
        match number {
            Some(number) if number >= 0 => Ok(Self(number)),
            _ => Err(Refusal::LastEvent.into()),
        }
    }
}

/// Streams a job's events as server-sent events; their `data` is a `JobEvent`.
///
/// The stream ends with the job. A client that reconnects resumes after `Last-Event-ID`.
#[utoipa::path(get, path = "/v1/jobs/{job}/events", tag = "jobs", security(("bearer" = [])),
    params(("job" = Uuid, Path),
        ("Last-Event-ID" = Option<i64>, Header, minimum = 0, description = "Number of the last event seen")),
    responses(
        (status = 200, description = "Events", body = JobEventMessage, content_type = "text/event-stream"),
        Malformed, Unauthenticated, Forbidden, NotFound, Internal, Unavailable))]
async fn watch_job(
    Shared(state): Shared<State>,
    user: SessionUser,
    Path(job): Path<Uuid>,
    LastEvent(last): LastEvent,
) -> Result<Response, Failure> {
    jobs::show(&state, user.account, job).await?;
    Ok(events::watch(state, user, job, last).into_response())
}

/// Lists everything that a job has released so far, with the cost of each release.
#[utoipa::path(get, path = "/v1/jobs/{job}/releases", tag = "results", security(("bearer" = [])),
    params(("job" = Uuid, Path)),
    responses((status = 200, description = "The releases", body = Vec<ReleasedStatistic>),
        Unauthenticated, Forbidden, NotFound, Internal, Unavailable))]
async fn list_releases(
    Shared(state): Shared<State>,
    User(owner): User,
    Path(job): Path<Uuid>,
) -> Answer<Vec<ReleasedStatistic>> {
    Ok(axum::Json(results::releases(&state, owner, job).await?))
}

/// Returns a view of a finished job's model.
#[utoipa::path(get, path = "/v1/jobs/{job}/model", tag = "results", security(("bearer" = [])),
    params(("job" = Uuid, Path)),
    responses((status = 200, description = "The model", body = ModelView),
        Unauthenticated, Forbidden, NotFound, Conflict, Internal, Unavailable))]
async fn show_model(
    Shared(state): Shared<State>,
    User(owner): User,
    Path(job): Path<Uuid>,
) -> Answer<ModelView> {
    Ok(axum::Json(results::view(&state, owner, job).await?))
}

/// Downloads the model of a finished job in the format that `fhaim run` writes.
///
/// `fhaim sample` draws tables from the file, and `fhaim-lab attack` runs membership attacks against
/// it. The model depends only on released values, as synthetic tables do.
#[utoipa::path(get, path = "/v1/jobs/{job}/model/file", tag = "results", security(("bearer" = [])),
    params(("job" = Uuid, Path)),
    responses(
        (status = 200, description = "The file", body = Vec<u8>, content_type = "application/octet-stream"),
        Unauthenticated, Forbidden, NotFound, Conflict, Internal, Unavailable))]
async fn download_model(
    Shared(state): Shared<State>,
    User(owner): User,
    Path(job): Path<Uuid>,
) -> Result<Response, Failure> {
    results::file(&state, owner, job).await
}

/// Draws a synthetic table from the model of a finished job. The table is streamed while it is drawn.
///
/// With conditions, the table has only records that satisfy all of them, as distributed in the model.
#[utoipa::path(get, path = "/v1/jobs/{job}/synthetic", tag = "results", security(("bearer" = [])),
    params(("job" = Uuid, Path), Draw),
    responses(
        (status = 200, description = "The table", headers(
            ("fhaim-seed" = u64, description = "Seed of the table"),
            ("fhaim-rows" = u64, description = "Number of records"),
        ), content(
            (String = "text/csv"),
            (Vec<u8> = "application/vnd.apache.parquet"),
        )),
        Unauthenticated, Forbidden, NotFound, Conflict, Invalid, Internal, Unavailable))]
async fn draw_table(
    Shared(state): Shared<State>,
    User(owner): User,
    Path(job): Path<Uuid>,
    Query(draw): Query<Draw>,
) -> Result<Response, Failure> {
    synthetic::draw_own(&state, owner, job, draw).await
}

//! Links to results: routes for holders and for accounts that open links.

use axum::extract::{FromRequestParts, State as Shared};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use fhaim_api::account::Secret;
use fhaim_api::job::Draw;
use fhaim_api::link::{LINK_HEADER, Link, LinkMade, LinkedResult, NewLink};
use fhaim_api::{Page, Paging};
use fhaim_platform::Failure;
use fhaim_platform::extract::{Json, Path, Query};
use fhaim_platform::token::User;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::Answer;
use crate::answers::{
    Conflict, Forbidden, Internal, Invalid, Malformed, NotFound, TooLarge, Unauthenticated,
    Unavailable, UnsupportedMediaType,
};
use crate::put::Put;
use crate::{State, links};

/// Routes of links with their documentation.
pub fn documented() -> OpenApiRouter<State> {
    OpenApiRouter::new()
        .routes(routes!(list_links))
        .routes(routes!(make_link, revoke_link))
        .routes(routes!(open_link))
        .routes(routes!(draw_linked_table))
}

/// The secret of a link from the request's header.
struct Shown(Secret);

impl<S: Sync> FromRequestParts<S> for Shown {
    type Rejection = Failure;

    /// A missing secret is answered in the same way as a wrong one.
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        let header = parts.headers.get(LINK_HEADER);
        let secret = header.and_then(|value| value.to_str().ok());
        let secret = secret.ok_or_else(Failure::not_found)?;
        Ok(Self(Secret(secret.to_owned())))
    }
}

/// Lists the links to a job's result. Any of the dataset's holders may have made them.
#[utoipa::path(get, path = "/v1/jobs/{job}/links", tag = "links", security(("bearer" = [])),
    params(("job" = Uuid, Path), Paging),
    responses((status = 200, description = "A page of links", body = Page<Link>),
        Unauthenticated, Forbidden, NotFound, Invalid, Internal, Unavailable))]
async fn list_links(
    Shared(state): Shared<State>,
    User(user): User,
    Path(job): Path<Uuid>,
    Query(paging): Query<Paging>,
) -> Answer<Page<Link>> {
    Ok(axum::Json(links::list(&state, user, job, &paging).await?))
}

/// Makes a link to a finished job's result under an identifier that the caller chooses.
///
/// Any signed-in account with the link's secret sees the data card and draws tables, but nothing
/// else of the dataset. The secret is shown only in this response. Repeating the call before the
/// link is first opened replaces the secret, which may have been lost.
#[utoipa::path(put, path = "/v1/jobs/{job}/links/{link}", tag = "links",
    security(("bearer" = [])), params(("job" = Uuid, Path), ("link" = Uuid, Path)),
    request_body = NewLink,
    responses((status = 201, description = "The link", body = LinkMade),
        (status = 200, description = "The existing link with a new secret", body = LinkMade),
        Malformed, Unauthenticated, Forbidden, NotFound, Conflict, TooLarge,
        UnsupportedMediaType, Invalid, Internal, Unavailable))]
async fn make_link(
    Shared(state): Shared<State>,
    User(user): User,
    Path((job, link)): Path<(Uuid, Uuid)>,
    Json(new): Json<NewLink>,
) -> Result<Put<LinkMade>, Failure> {
    links::make(&state, user, (job, link), new).await
}

/// Revokes a link, so that it can no longer be opened. Tables that were drawn from it remain.
#[utoipa::path(delete, path = "/v1/jobs/{job}/links/{link}", tag = "links",
    security(("bearer" = [])), params(("job" = Uuid, Path), ("link" = Uuid, Path)),
    responses((status = 204, description = "Revoked"),
        Unauthenticated, Forbidden, NotFound, Internal, Unavailable))]
async fn revoke_link(
    Shared(state): Shared<State>,
    User(user): User,
    Path((job, link)): Path<(Uuid, Uuid)>,
) -> Result<StatusCode, Failure> {
    links::revoke(&state, user, job, link).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the data card of a link, for any account.
#[utoipa::path(get, path = "/v1/links/{link}", tag = "links", security(("bearer" = [])),
    params(("link" = Uuid, Path),
        ("fhaim-link" = String, Header, description = "The link's secret")),
    responses((status = 200, description = "The data card", body = LinkedResult),
        Unauthenticated, Forbidden, NotFound, Internal, Unavailable))]
async fn open_link(
    Shared(state): Shared<State>,
    User(user): User,
    Path(link): Path<Uuid>,
    Shown(secret): Shown,
) -> Answer<LinkedResult> {
    let card = links::show(&state, user, link, &secret).await?;
    Ok(axum::Json(card))
}

/// Draws a synthetic table from a link, for any account. The table is streamed while it is drawn.
#[utoipa::path(get, path = "/v1/links/{link}/synthetic", tag = "links",
    security(("bearer" = [])),
    params(("link" = Uuid, Path),
        ("fhaim-link" = String, Header, description = "The link's secret"), Draw),
    responses(
        (status = 200, description = "The table", headers(
            ("fhaim-seed" = u64, description = "Seed of the table"),
            ("fhaim-rows" = u64, description = "Number of records"),
        ), content(
            (String = "text/csv"),
            (Vec<u8> = "application/vnd.apache.parquet"),
        )),
        Unauthenticated, Forbidden, NotFound, Invalid, Internal, Unavailable))]
async fn draw_linked_table(
    Shared(state): Shared<State>,
    User(user): User,
    Path(link): Path<Uuid>,
    Shown(secret): Shown,
    Query(draw): Query<Draw>,
) -> Result<Response, Failure> {
    links::draw(&state, user, (link, &secret), draw).await
}

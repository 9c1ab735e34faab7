//! Links to results: for their holders, and for whoever opens them.

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

/// Routes of links, documented.
pub fn documented() -> OpenApiRouter<State> {
    OpenApiRouter::new()
        .routes(routes!(list_links))
        .routes(routes!(make_link, revoke_link))
        .routes(routes!(open_link))
        .routes(routes!(draw_linked_table))
}

/// The secret of a link, as it is shown with a call.
struct Shown(Secret);

impl<S: Sync> FromRequestParts<S> for Shown {
    type Rejection = Failure;

    /// Without a secret there is nothing to be seen, as with a wrong one.
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        let header = parts.headers.get(LINK_HEADER);
        let secret = header.and_then(|value| value.to_str().ok());
        let secret = secret.ok_or_else(Failure::not_found)?;
        Ok(Self(Secret(secret.to_owned())))
    }
}

/// The links to a job's result, whichever of the dataset's holders made them.
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

/// Makes a link to a finished job's result under an identifier that the caller chooses: whoever is
/// signed in and has its secret sees a data card and draws tables, and nothing else of the dataset.
/// The secret is shown this once. The same again, before the link was opened, gives a new secret in
/// the place of one that was lost.
#[utoipa::path(put, path = "/v1/jobs/{job}/links/{link}", tag = "links",
    security(("bearer" = [])), params(("job" = Uuid, Path), ("link" = Uuid, Path)),
    request_body = NewLink,
    responses((status = 201, description = "The link", body = LinkMade),
        (status = 200, description = "The link, with another secret", body = LinkMade),
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

/// Revokes a link: it opens nothing after. What was drawn by it stays with whoever drew it.
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

/// The data card of what a link opens, for any account.
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

/// A synthetic table drawn from what a link opens, for any account, streamed as it is drawn.
#[utoipa::path(get, path = "/v1/links/{link}/synthetic", tag = "links",
    security(("bearer" = [])),
    params(("link" = Uuid, Path),
        ("fhaim-link" = String, Header, description = "The link's secret"), Draw),
    responses(
        (status = 200, description = "The table", headers(
            ("fhaim-seed" = u64, description = "The seed it was drawn with"),
            ("fhaim-rows" = u64, description = "Its records"),
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

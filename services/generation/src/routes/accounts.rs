//! Routes of accounts, sessions, API keys and usage.

use axum::extract::State as Shared;
use axum::http::StatusCode;
use fhaim_api::account::{
    Account, ApiKey, ApiKeyMade, CloseAccount, Credentials, KeyExchange, NewApiKey, NewPassword,
    Refresh, Session,
};
use fhaim_api::usage::Usage;
use fhaim_api::{Page, Paging};
use fhaim_platform::Failure;
use fhaim_platform::extract::{Brief, Json, Path, Query};
use fhaim_platform::token::{SessionUser, User};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::Answer;
use crate::accounts::Client;
use crate::answers::{
    Conflict, Forbidden, Internal, Invalid, Malformed, NotFound, TooLarge, TooManyRequests,
    Unauthenticated, Unavailable, UnsupportedMediaType,
};
use crate::problem::Refusal;
use crate::put::Put;
use crate::{State, accounts, limits};

/// Routes of accounts with their documentation.
pub fn documented() -> OpenApiRouter<State> {
    OpenApiRouter::new()
        .routes(routes!(sign_up))
        .routes(routes!(sign_in, end_session))
        .routes(routes!(refresh_session))
        .routes(routes!(exchange_key))
        .routes(routes!(show_account, close_account))
        .routes(routes!(change_password))
        .routes(routes!(end_all_sessions))
        .routes(routes!(show_usage))
        .routes(routes!(list_keys))
        .routes(routes!(make_key, delete_key))
}

type Made<T> = Result<(StatusCode, axum::Json<T>), Failure>;

/// Creates an account.
#[utoipa::path(post, path = "/v1/accounts", tag = "accounts", request_body = Credentials,
    responses((status = 201, description = "The account", body = Account),
        Malformed, Forbidden, Conflict, TooLarge, UnsupportedMediaType, Invalid, TooManyRequests,
        Internal, Unavailable))]
async fn sign_up(
    Shared(state): Shared<State>,
    client: Client,
    Brief(credentials): Brief<Credentials>,
) -> Made<Account> {
    if !state.config.sign_up {
        return Err(Refusal::SignUpClosed.into());
    }
    state.sign_ins.try_address(client)?;
    let account = accounts::create(&state, credentials).await?;
    Ok((StatusCode::CREATED, axum::Json(account)))
}

/// Signs in and begins a session.
#[utoipa::path(post, path = "/v1/sessions", tag = "accounts", request_body = Credentials,
    responses((status = 201, description = "The session", body = Session),
        Malformed, Unauthenticated, TooLarge, UnsupportedMediaType, Invalid, TooManyRequests,
        Internal, Unavailable))]
async fn sign_in(
    Shared(state): Shared<State>,
    client: Client,
    Brief(credentials): Brief<Credentials>,
) -> Made<Session> {
    let session = accounts::sign_in(&state, client, credentials).await?;
    Ok((StatusCode::CREATED, axum::Json(session)))
}

/// Ends all sessions that come from the same sign-in as a refresh token.
#[utoipa::path(delete, path = "/v1/sessions", tag = "accounts", request_body = Refresh,
    responses((status = 204, description = "The sessions have ended"),
        Malformed, TooLarge, UnsupportedMediaType, Invalid, Internal, Unavailable))]
async fn end_session(
    Shared(state): Shared<State>,
    Brief(refresh): Brief<Refresh>,
) -> Result<StatusCode, Failure> {
    accounts::end(&state, &refresh.refresh_token).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Exchanges a single-use refresh token for a new session.
///
/// A client that lost the response can repeat the call with the same token.
#[utoipa::path(post, path = "/v1/sessions/refresh", tag = "accounts", request_body = Refresh,
    responses((status = 201, description = "The session", body = Session),
        Malformed, Unauthenticated, TooLarge, UnsupportedMediaType, Invalid, Internal,
        Unavailable))]
async fn refresh_session(
    Shared(state): Shared<State>,
    Brief(refresh): Brief<Refresh>,
) -> Made<Session> {
    let session = accounts::refresh(&state, &refresh.refresh_token).await?;
    Ok((StatusCode::CREATED, axum::Json(session)))
}

/// Exchanges an API key for a session.
#[utoipa::path(post, path = "/v1/sessions/api-key", tag = "accounts", request_body = KeyExchange,
    responses((status = 201, description = "The session", body = Session),
        Malformed, Unauthenticated, TooLarge, UnsupportedMediaType, Invalid, Internal,
        Unavailable))]
async fn exchange_key(
    Shared(state): Shared<State>,
    Brief(exchange): Brief<KeyExchange>,
) -> Made<Session> {
    let session = accounts::exchange(&state, &exchange.api_key).await?;
    Ok((StatusCode::CREATED, axum::Json(session)))
}

/// Returns the caller's account.
#[utoipa::path(get, path = "/v1/account", tag = "accounts", security(("bearer" = [])),
    responses((status = 200, description = "The account", body = Account),
        Unauthenticated, Forbidden, NotFound, Internal, Unavailable))]
async fn show_account(Shared(state): Shared<State>, User(id): User) -> Answer<Account> {
    Ok(axum::Json(accounts::show(&state, id).await?))
}

/// Deletes the account with its sessions and API keys.
///
/// An account that has datasets cannot be deleted. Delete the datasets first, at all three services.
#[utoipa::path(delete, path = "/v1/account", tag = "accounts", security(("bearer" = [])),
    request_body = CloseAccount,
    responses((status = 204, description = "Deleted"),
        Malformed, Unauthenticated, Forbidden, NotFound, Conflict, TooLarge, UnsupportedMediaType,
        Invalid, TooManyRequests, Internal, Unavailable))]
async fn close_account(
    Shared(state): Shared<State>,
    client: Client,
    User(account): User,
    Brief(closing): Brief<CloseAccount>,
) -> Result<StatusCode, Failure> {
    accounts::close(&state, client, account, closing.password).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Changes the account's password, ends all of its sessions and begins a new one.
#[utoipa::path(put, path = "/v1/account/password", tag = "accounts", security(("bearer" = [])),
    request_body = NewPassword,
    responses((status = 201, description = "The new session", body = Session),
        Malformed, Unauthenticated, Forbidden, NotFound, TooLarge, UnsupportedMediaType, Invalid,
        TooManyRequests, Internal, Unavailable))]
async fn change_password(
    Shared(state): Shared<State>,
    client: Client,
    User(account): User,
    Brief(new): Brief<NewPassword>,
) -> Made<Session> {
    let session = accounts::change_password(&state, client, account, new).await?;
    Ok((StatusCode::CREATED, axum::Json(session)))
}

/// Ends all sessions of the account.
///
/// API keys stay valid. Access tokens end at this service at once, and at the others within seconds.
#[utoipa::path(delete, path = "/v1/account/sessions", tag = "accounts", security(("bearer" = [])),
    responses((status = 204, description = "All sessions have ended"),
        Unauthenticated, Forbidden, Internal, Unavailable))]
async fn end_all_sessions(
    Shared(state): Shared<State>,
    User(account): User,
) -> Result<StatusCode, Failure> {
    accounts::end_all(&state, account).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the account's usage and limits at this service.
#[utoipa::path(get, path = "/v1/usage", tag = "accounts", security(("bearer" = [])),
    responses((status = 200, description = "One entry for each limit", body = Usage),
        Unauthenticated, Forbidden, Internal, Unavailable))]
async fn show_usage(Shared(state): Shared<State>, User(owner): User) -> Answer<Usage> {
    Ok(axum::Json(limits::usage(&state, owner).await?))
}

/// Lists the caller's API keys.
#[utoipa::path(get, path = "/v1/api-keys", tag = "accounts", security(("bearer" = [])),
    params(Paging),
    responses((status = 200, description = "A page of keys", body = Page<ApiKey>),
        Unauthenticated, Forbidden, Invalid, Internal, Unavailable))]
async fn list_keys(
    Shared(state): Shared<State>,
    User(id): User,
    Query(paging): Query<Paging>,
) -> Answer<Page<ApiKey>> {
    Ok(axum::Json(accounts::list_keys(&state, id, &paging).await?))
}

/// Makes an API key under an identifier that the caller chooses.
///
/// The key's text is shown only in this response. Repeating the call before the key is first used
/// replaces the text, which may have been lost. A session from an API key makes no keys.
#[utoipa::path(put, path = "/v1/api-keys/{id}", tag = "accounts", security(("bearer" = [])),
    params(("id" = Uuid, Path)), request_body = NewApiKey,
    responses((status = 201, description = "The key", body = ApiKeyMade),
        (status = 200, description = "The existing key with a new text", body = ApiKeyMade),
        Malformed, Unauthenticated, Forbidden, NotFound, Conflict, TooLarge,
        UnsupportedMediaType, Invalid, Internal, Unavailable))]
async fn make_key(
    Shared(state): Shared<State>,
    user: SessionUser,
    Path(id): Path<Uuid>,
    Json(new): Json<NewApiKey>,
) -> Result<Put<ApiKeyMade>, Failure> {
    accounts::make_key(&state, user, id, new).await
}

/// Deletes an API key.
#[utoipa::path(delete, path = "/v1/api-keys/{id}", tag = "accounts", security(("bearer" = [])),
    params(("id" = Uuid, Path)),
    responses((status = 204, description = "Deleted"),
        Unauthenticated, Forbidden, NotFound, Internal, Unavailable))]
async fn delete_key(
    Shared(state): Shared<State>,
    User(account): User,
    Path(id): Path<Uuid>,
) -> Result<StatusCode, Failure> {
    accounts::delete_key(&state, account, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

//! Sessions: short access tokens, refresh tokens that are good for one use.
//!
//! All refresh tokens that come from one sign-in are a family. A token that is used a second time
//! has been copied, by a thief or from one: the whole family ends (RFC 9700, section 4.14.2).

use fhaim_api::account::{Credentials, Secret, Session};
use fhaim_api::problem::ProblemKind;
use fhaim_platform::clock::Millis;
use fhaim_platform::store::Tx;
use fhaim_platform::{Failure, clock};
use sqlx::Row;
use std::time::Duration;
use uuid::Uuid;

use super::limits::Client;
use super::tokens;
use crate::State;

const ACCESS_LIFETIME: Duration = Duration::from_secs(15 * 60);

const REFRESH_LIFETIME: Millis = 30 * 24 * 3600 * 1000;

/// Signs in.
///
/// # Errors
/// Wrong credentials, without saying which part; too many tries.
pub async fn sign_in(
    state: &State,
    client: Client,
    credentials: Credentials,
) -> Result<Session, Failure> {
    state.sign_ins.try_address(client)?;
    state.sign_ins.try_email(&credentials.email)?;
    let email = super::normal_email(&credentials.email).unwrap_or_default();
    let row = sqlx::query("SELECT id, password FROM accounts WHERE email = $1")
        .bind(email)
        .fetch_optional(state.base.store.pool())
        .await?;
    let (id, hash): (Option<String>, Option<String>) = match row {
        Some(row) => (row.try_get("id")?, row.try_get("password")?),
        None => (None, None),
    };
    let right = state.passwords.verify(credentials.password, hash).await?;
    match id {
        Some(account) if right => begin(state, &account).await,
        _ => Err(Failure::new(
            ProblemKind::Unauthenticated,
            "there is no account with this address and password",
        )),
    }
}

/// Exchanges a refresh token for a session.
///
/// # Errors
/// A token that is unknown, expired or used: the latter ends its family.
pub async fn refresh(state: &State, token: &Secret) -> Result<Session, Failure> {
    let mut tx = state.base.store.begin().await?;
    let find = state.base.store.locking(
        "SELECT family, account, used FROM refresh_tokens WHERE digest = $1 AND expires_at > $2",
    );
    let row = sqlx::query(find)
        .bind(tokens::digest(token))
        .bind(clock::now())
        .fetch_optional(&mut *tx)
        .await?
        .ok_or_else(not_accepted)?;
    let (family, account): (String, String) = (row.try_get("family")?, row.try_get("account")?);
    if row.try_get::<i64, _>("used")? != 0 {
        end_family(&mut tx, &family).await?;
        tx.commit().await?;
        tracing::warn!(account, "a refresh token was used twice: its sessions end");
        return Err(not_accepted());
    }
    sqlx::query("UPDATE refresh_tokens SET used = 1 WHERE digest = $1")
        .bind(tokens::digest(token))
        .execute(&mut *tx)
        .await?;
    let next = add_token(&mut tx, &family, &account).await?;
    tx.commit().await?;
    session(state, &account, Some(next))
}

/// Exchanges an API key for a session.
///
/// # Errors
/// A key that is unknown.
pub async fn exchange(state: &State, key: &Secret) -> Result<Session, Failure> {
    let used =
        sqlx::query("UPDATE api_keys SET last_used_at = $1 WHERE digest = $2 RETURNING account")
            .bind(clock::now())
            .bind(tokens::digest(key))
            .fetch_optional(state.base.store.pool())
            .await?
            .ok_or_else(not_accepted)?;
    session(state, &used.try_get::<String, _>("account")?, None)
}

/// Ends the sessions that came from the same sign-in as a refresh token; nothing if there are
/// none.
///
/// # Errors
/// A failure of the store.
pub async fn end(state: &State, token: &Secret) -> Result<(), Failure> {
    let mut tx = state.base.store.begin().await?;
    let row = sqlx::query("SELECT family FROM refresh_tokens WHERE digest = $1")
        .bind(tokens::digest(token))
        .fetch_optional(&mut *tx)
        .await?;
    if let Some(row) = row {
        end_family(&mut tx, &row.try_get::<String, _>("family")?).await?;
        tx.commit().await?;
    }
    Ok(())
}

/// Deletes refresh tokens that are past their time.
///
/// # Errors
/// A failure of the store.
pub async fn forget_expired(state: &State) -> Result<(), Failure> {
    sqlx::query("DELETE FROM refresh_tokens WHERE expires_at <= $1")
        .bind(clock::now())
        .execute(state.base.store.pool())
        .await?;
    Ok(())
}

async fn begin(state: &State, account: &str) -> Result<Session, Failure> {
    let mut tx = state.base.store.begin().await?;
    let family = Uuid::new_v4().to_string();
    let token = add_token(&mut tx, &family, account).await?;
    tx.commit().await?;
    session(state, account, Some(token))
}

async fn add_token(tx: &mut Tx, family: &str, account: &str) -> Result<Secret, Failure> {
    let token = tokens::random()?;
    sqlx::query(
        "INSERT INTO refresh_tokens (digest, family, account, used, expires_at) \
         VALUES ($1, $2, $3, 0, $4)",
    )
    .bind(tokens::digest(&token))
    .bind(family)
    .bind(account)
    .bind(clock::now() + REFRESH_LIFETIME)
    .execute(&mut **tx)
    .await?;
    Ok(token)
}

async fn end_family(tx: &mut Tx, family: &str) -> Result<(), Failure> {
    sqlx::query("DELETE FROM refresh_tokens WHERE family = $1")
        .bind(family)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

fn session(state: &State, account: &str, refresh: Option<Secret>) -> Result<Session, Failure> {
    let account = Uuid::try_parse(account).map_err(Failure::internal)?;
    let access = state.base.signer.user_token(account, ACCESS_LIFETIME)?;
    Ok(Session {
        access_token: Secret(access),
        expires_in: ACCESS_LIFETIME.as_secs(),
        refresh_token: refresh,
    })
}

fn not_accepted() -> Failure {
    let detail = "this token or key is not accepted: sign in again";
    Failure::new(ProblemKind::Unauthenticated, detail)
}

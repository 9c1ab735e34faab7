//! API keys: for programs, exchanged for sessions.

use fhaim_api::account::{ApiKey, ApiKeyMade, NewApiKey, Secret};
use fhaim_api::problem::ProblemKind;
use fhaim_api::{Page, Paging};
use fhaim_platform::store::Row;
use fhaim_platform::{Failure, clock};
use sqlx::Row as _;
use uuid::Uuid;

use super::{checked_name, tokens};
use crate::paging::Cut;
use crate::{State, rows};

/// What a key begins with, so that people and scanners know one when they see it.
const PREFIX: &str = "fhaim_";

const LONGEST_NAME: usize = 100;

/// Most keys of an account.
const MOST_KEYS: i64 = 100;

/// Makes a key.
///
/// # Errors
/// A name that cannot be used, too many keys.
pub async fn make_key(state: &State, account: Uuid, new: NewApiKey) -> Result<ApiKeyMade, Failure> {
    let name = checked_name("name", new.name, LONGEST_NAME)?;
    let text = Secret(format!("{PREFIX}{}", tokens::random()?.0));
    let (id, now) = (Uuid::now_v7(), clock::now());
    let mut tx = state.base.store.begin().await?;
    // The account's row is locked so that two keys cannot both be the last.
    let account = account.to_string();
    let lock = state
        .base
        .store
        .locking("SELECT id FROM accounts WHERE id = $1");
    let row = sqlx::query(lock)
        .bind(&account)
        .fetch_optional(&mut *tx)
        .await?;
    row.ok_or_else(Failure::not_found)?;
    let row = sqlx::query("SELECT COUNT(*) AS keys FROM api_keys WHERE account = $1")
        .bind(&account)
        .fetch_one(&mut *tx)
        .await?;
    if row.try_get::<i64, _>("keys")? >= MOST_KEYS {
        let detail = format!("an account can have {MOST_KEYS} keys: delete one first");
        return Err(Failure::new(ProblemKind::Conflict, detail));
    }
    sqlx::query(
        "INSERT INTO api_keys (id, account, name, digest, created_at, last_used_at) \
         VALUES ($1, $2, $3, $4, $5, 0)",
    )
    .bind(id.to_string())
    .bind(&account)
    .bind(&name)
    .bind(tokens::digest(&text))
    .bind(now)
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    let key = ApiKey {
        id,
        name,
        created_at: clock::date(now),
        last_used_at: None,
    };
    Ok(ApiKeyMade { key, text })
}

/// An account's keys, without their texts.
///
/// # Errors
/// A page that cannot be.
pub async fn list_keys(
    state: &State,
    account: Uuid,
    paging: &Paging,
) -> Result<Page<ApiKey>, Failure> {
    let cut = Cut::new(paging)?;
    let rows = sqlx::query(
        "SELECT id, name, created_at, last_used_at FROM api_keys WHERE account = $1 \
         AND (created_at < $2 OR (created_at = $2 AND id < $3)) \
         ORDER BY created_at DESC, id DESC LIMIT $4",
    )
    .bind(account.to_string())
    .bind(cut.before)
    .bind(&cut.id)
    .bind(cut.rows())
    .fetch_all(state.base.store.pool())
    .await?;
    cut.page(&rows, key)
}

fn key(row: &Row) -> Result<ApiKey, Failure> {
    let last_used: i64 = row.try_get("last_used_at")?;
    Ok(ApiKey {
        id: rows::uuid(row, "id")?,
        name: row.try_get("name")?,
        created_at: clock::date(row.try_get("created_at")?),
        last_used_at: (last_used != 0).then(|| clock::date(last_used)),
    })
}

/// Deletes a key: it cannot be exchanged after.
///
/// # Errors
/// There is no such key.
pub async fn delete_key(state: &State, account: Uuid, id: Uuid) -> Result<(), Failure> {
    let deleted = sqlx::query("DELETE FROM api_keys WHERE id = $1 AND account = $2")
        .bind(id.to_string())
        .bind(account.to_string())
        .execute(state.base.store.pool())
        .await?;
    if deleted.rows_affected() == 0 {
        return Err(Failure::not_found());
    }
    Ok(())
}

//! API keys, stored by digest.

use fhaim_api::account::ApiKey;
use fhaim_platform::clock::Millis;
use fhaim_platform::store::{Row, Store, StoreError, Tx, is_duplicate};
use fhaim_platform::{clock, rows};
use sqlx::Row as _;
use uuid::Uuid;

use crate::paging::Cut;
use crate::store::lists::{Entries, List};

/// Locks an account's row. Returns whether the account exists and is not disabled.
///
/// # Errors
/// A failure of the store.
pub async fn lock_account(store: &Store, tx: &mut Tx, account: Uuid) -> Result<bool, StoreError> {
    let row = sqlx::query(store.locking("SELECT id FROM accounts WHERE id = $1 AND disabled = 0"))
        .bind(account.to_string())
        .fetch_optional(&mut **tx)
        .await?;
    Ok(row.is_some())
}

/// An API key.
#[derive(Clone, Debug)]
pub struct Found {
    /// The account that owns it.
    pub account: Uuid,
    /// Its name.
    pub name: String,
    /// Its creation time.
    pub created_at: Millis,
}

/// Returns the key with an identifier.
///
/// # Errors
/// A failure of the store.
pub async fn find(tx: &mut Tx, id: Uuid) -> Result<Option<Found>, StoreError> {
    let row = sqlx::query("SELECT account, name, created_at FROM api_keys WHERE id = $1")
        .bind(id.to_string())
        .fetch_optional(&mut **tx)
        .await?;
    let found = |row: Row| {
        Ok(Found {
            account: rows::parsed(&row, "account")?,
            name: row.try_get("name")?,
            created_at: row.try_get("created_at")?,
        })
    };
    row.map(found).transpose()
}

/// Replaces the digest of a key that was never used. Returns `false` if it was used.
///
/// # Errors
/// A failure of the store.
pub async fn renew(tx: &mut Tx, id: Uuid, digest: &str) -> Result<bool, StoreError> {
    let renewed = sqlx::query("UPDATE api_keys SET digest = $1 WHERE id = $2 AND last_used_at = 0")
        .bind(digest)
        .bind(id.to_string())
        .execute(&mut **tx)
        .await?;
    Ok(renewed.rows_affected() > 0)
}

/// Adds a key and returns its creation time, or `None` if the identifier is taken.
///
/// # Errors
/// A failure of the store.
pub async fn insert(
    tx: &mut Tx,
    (account, id): (Uuid, Uuid),
    name: &str,
    digest: &str,
) -> Result<Option<Millis>, StoreError> {
    let now = clock::now();
    let added = sqlx::query(
        "INSERT INTO api_keys (id, account, name, digest, created_at, last_used_at) \
         VALUES ($1, $2, $3, $4, $5, 0)",
    )
    .bind(id.to_string())
    .bind(account.to_string())
    .bind(name)
    .bind(digest)
    .bind(now)
    .execute(&mut **tx)
    .await;
    match added {
        Err(error) if is_duplicate(&error) => Ok(None),
        other => other.map(|_| Some(now)),
    }
}

/// Lists an account's keys from a cut on.
///
/// # Errors
/// A failure of the store.
pub async fn list(store: &Store, account: Uuid, cut: &Cut) -> Result<Entries<ApiKey>, StoreError> {
    let list = List {
        table: "api_keys",
        columns: "id, name, created_at, last_used_at",
        condition: "account = $1",
        bound: &[&account.to_string()],
    };
    list.fetch(store, cut, key).await
}

fn key(row: &Row) -> Result<ApiKey, StoreError> {
    let last_used: Millis = row.try_get("last_used_at")?;
    Ok(ApiKey {
        id: rows::parsed(row, "id")?,
        name: row.try_get("name")?,
        created_at: clock::date(row.try_get("created_at")?),
        last_used_at: (last_used != 0).then(|| clock::date(last_used)),
    })
}

/// Deletes a key. Returns whether it existed.
///
/// # Errors
/// A failure of the store.
pub async fn delete(store: &Store, account: Uuid, id: Uuid) -> Result<bool, StoreError> {
    let deleted = sqlx::query("DELETE FROM api_keys WHERE id = $1 AND account = $2")
        .bind(id.to_string())
        .bind(account.to_string())
        .execute(store.pool())
        .await?;
    Ok(deleted.rows_affected() > 0)
}

/// Lists all keys of an account, the newest first.
///
/// # Errors
/// A failure of the store.
pub async fn all(store: &Store, account: Uuid) -> Result<Vec<ApiKey>, StoreError> {
    let all = "SELECT id, name, created_at, last_used_at FROM api_keys WHERE account = $1 \
         ORDER BY created_at DESC, id DESC";
    let found = sqlx::query(all)
        .bind(account.to_string())
        .fetch_all(store.pool())
        .await?;
    found.iter().map(key).collect()
}

/// Deletes all keys of an account, or the one with an identifier. Returns their number.
///
/// # Errors
/// A failure of the store.
pub async fn revoke(tx: &mut Tx, account: Uuid, one: Option<Uuid>) -> Result<u64, StoreError> {
    let deleted = match one {
        Some(id) => sqlx::query("DELETE FROM api_keys WHERE account = $1 AND id = $2")
            .bind(account.to_string())
            .bind(id.to_string()),
        None => sqlx::query("DELETE FROM api_keys WHERE account = $1").bind(account.to_string()),
    };
    Ok(deleted.execute(&mut **tx).await?.rows_affected())
}

/// Records the use of a key and returns its account, unless the key is unknown or the account is
/// disabled.
///
/// # Errors
/// A failure of the store.
pub async fn used(store: &Store, digest: &str) -> Result<Option<Uuid>, StoreError> {
    let used = "UPDATE api_keys SET last_used_at = $1 WHERE digest = $2 \
         AND account IN (SELECT id FROM accounts WHERE disabled = 0) RETURNING account";
    let row = sqlx::query(used)
        .bind(clock::now())
        .bind(digest)
        .fetch_optional(store.pool())
        .await?;
    row.map(|row| rows::parsed(&row, "account")).transpose()
}

//! Refresh tokens, stored by digest.

use fhaim_platform::clock::Millis;
use fhaim_platform::store::{Row, Store, StoreError, Tx};
use fhaim_platform::{clock, rows};
use sqlx::Row as _;
use uuid::Uuid;

/// State of a refresh token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// It can be exchanged.
    Good,
    /// It has been exchanged.
    Used,
    /// It has been replaced by another token.
    Void,
}

impl Use {
    fn stored(self) -> i64 {
        match self {
            Self::Good => 0,
            Self::Used => 1,
            Self::Void => 2,
        }
    }
}

/// A refresh token that has not expired.
#[derive(Clone, Debug)]
pub struct Found {
    /// Family of all tokens from one sign-in.
    pub family: String,
    /// Its state.
    pub used: Use,
}

/// Returns an unexpired refresh token and locks its row.
///
/// # Errors
/// A failure of the store.
pub async fn lock(store: &Store, tx: &mut Tx, digest: &str) -> Result<Option<Found>, StoreError> {
    let find = store
        .locking("SELECT family, used FROM refresh_tokens WHERE digest = $1 AND expires_at > $2");
    let row = sqlx::query(find)
        .bind(digest)
        .bind(clock::now())
        .fetch_optional(&mut **tx)
        .await?;
    let found = |row: Row| {
        Ok(Found {
            family: row.try_get("family")?,
            used: match row.try_get::<i64, _>("used")? {
                0 => Use::Good,
                1 => Use::Used,
                _ => Use::Void,
            },
        })
    };
    row.map(found).transpose()
}

/// Returns the account of an unexpired refresh token.
///
/// # Errors
/// A failure of the store.
pub async fn account(tx: &mut Tx, digest: &str) -> Result<Option<Uuid>, StoreError> {
    let find = "SELECT account FROM refresh_tokens WHERE digest = $1 AND expires_at > $2";
    let row = sqlx::query(find)
        .bind(digest)
        .bind(clock::now())
        .fetch_optional(&mut **tx)
        .await?;
    row.map(|row| rows::parsed(&row, "account")).transpose()
}

/// Marks a good token as used. Returns whether it was good.
///
/// # Errors
/// A failure of the store.
pub async fn mark_used(tx: &mut Tx, digest: &str) -> Result<bool, StoreError> {
    let mark = "UPDATE refresh_tokens SET used = $1 WHERE digest = $2 AND used = $3";
    mark_as(tx, mark, Use::Used, digest).await
}

/// Marks the good successor of a token as void. Returns whether there was one.
///
/// # Errors
/// A failure of the store.
pub async fn void_successor(tx: &mut Tx, digest: &str) -> Result<bool, StoreError> {
    let mark = "UPDATE refresh_tokens SET used = $1 WHERE parent = $2 AND used = $3";
    mark_as(tx, mark, Use::Void, digest).await
}

async fn mark_as(
    tx: &mut Tx,
    mark: &'static str,
    becomes: Use,
    digest: &str,
) -> Result<bool, StoreError> {
    let changed = sqlx::query(mark)
        .bind(becomes.stored())
        .bind(digest)
        .bind(Use::Good.stored())
        .execute(&mut **tx)
        .await?;
    Ok(changed.rows_affected() == 1)
}

/// Adds a good token. `parent` is the digest of the token that it replaces.
///
/// # Errors
/// A failure of the store.
pub async fn insert(
    tx: &mut Tx,
    digest: &str,
    (family, account): (&str, Uuid),
    lifetime: Millis,
    parent: Option<&str>,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO refresh_tokens (digest, family, account, used, expires_at, parent) \
         VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .bind(digest)
    .bind(family)
    .bind(account.to_string())
    .bind(Use::Good.stored())
    .bind(clock::now() + lifetime)
    .bind(parent)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Returns the family of a token.
///
/// # Errors
/// A failure of the store.
pub async fn family(tx: &mut Tx, digest: &str) -> Result<Option<String>, StoreError> {
    let row = sqlx::query("SELECT family FROM refresh_tokens WHERE digest = $1")
        .bind(digest)
        .fetch_optional(&mut **tx)
        .await?;
    row.map(|row| row.try_get("family")).transpose()
}

/// Deletes all tokens of a family.
///
/// # Errors
/// A failure of the store.
pub async fn end_family(tx: &mut Tx, family: &str) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM refresh_tokens WHERE family = $1")
        .bind(family)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Deletes all tokens of an account.
///
/// # Errors
/// A failure of the store.
pub async fn end_all(tx: &mut Tx, account: Uuid) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM refresh_tokens WHERE account = $1")
        .bind(account.to_string())
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Deletes expired tokens.
///
/// # Errors
/// A failure of the store.
pub async fn forget_expired(store: &Store) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM refresh_tokens WHERE expires_at <= $1")
        .bind(clock::now())
        .execute(store.pool())
        .await?;
    Ok(())
}

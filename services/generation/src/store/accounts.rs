//! Who signs in.

use fhaim_api::account::Account;
use fhaim_platform::store::{Row, Store, StoreError, is_duplicate};
use fhaim_platform::{clock, rows};
use sqlx::Row as _;
use uuid::Uuid;

/// Adds an account with a password's hash; none where the address has one.
///
/// # Errors
/// A failure of the store.
pub async fn insert(
    store: &Store,
    email: String,
    password: String,
) -> Result<Option<Account>, StoreError> {
    let (id, now) = (Uuid::new_v4(), clock::now());
    let inserted = sqlx::query(
        "INSERT INTO accounts (id, email, password, created_at) VALUES ($1, $2, $3, $4)",
    )
    .bind(id.to_string())
    .bind(&email)
    .bind(password)
    .bind(now)
    .execute(store.pool())
    .await;
    match inserted {
        Err(error) if is_duplicate(&error) => Ok(None),
        Err(error) => Err(error),
        Ok(_) => Ok(Some(Account {
            id,
            email,
            created_at: clock::date(now),
        })),
    }
}

/// An account, if there is one.
///
/// # Errors
/// A failure of the store.
pub async fn find(store: &Store, id: Uuid) -> Result<Option<Account>, StoreError> {
    let row = sqlx::query("SELECT email, created_at FROM accounts WHERE id = $1")
        .bind(id.to_string())
        .fetch_optional(store.pool())
        .await?;
    let account = |row: Row| {
        Ok(Account {
            id,
            email: row.try_get("email")?,
            created_at: clock::date(row.try_get("created_at")?),
        })
    };
    row.map(account).transpose()
}

/// The account of an address, and its password's hash.
///
/// # Errors
/// A failure of the store.
pub async fn of_email(store: &Store, email: &str) -> Result<Option<(Uuid, String)>, StoreError> {
    let row = sqlx::query("SELECT id, password FROM accounts WHERE email = $1")
        .bind(email)
        .fetch_optional(store.pool())
        .await?;
    let pair = |row: Row| Ok((rows::parsed(&row, "id")?, row.try_get("password")?));
    row.map(pair).transpose()
}

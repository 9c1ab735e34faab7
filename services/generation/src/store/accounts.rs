//! Accounts.

use fhaim_api::account::Account;
use fhaim_api::token::{AccountTokens, EndedTokens};
use fhaim_platform::clock::Millis;
use fhaim_platform::store::{Row, Store, StoreError, Tx, is_duplicate};
use fhaim_platform::{clock, rows};
use sqlx::{AssertSqlSafe, Row as _};
use uuid::Uuid;

/// Adds an account with a password's hash. Returns `None` if the address already has an account.
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

/// Returns an account.
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

/// The sign-in data of an account.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The account.
    pub id: Uuid,
    /// Its address.
    pub email: String,
    /// Its password's hash.
    pub hash: String,
    /// Whether the operator has disabled the account.
    pub disabled: bool,
    /// The number that the account's tokens must have.
    pub epoch: u64,
}

impl Entry {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: rows::parsed(row, "id")?,
            email: row.try_get("email")?,
            hash: row.try_get("password")?,
            disabled: row.try_get::<i64, _>("disabled")? != 0,
            epoch: rows::number(row, "epoch")?,
        })
    }
}

/// Returns the number that the tokens of an account must have, or `None` if the account does not exist or is disabled.
///
/// # Errors
/// A failure of the store.
pub async fn epoch(store: &Store, id: Uuid) -> Result<Option<u64>, StoreError> {
    let row = sqlx::query("SELECT epoch FROM accounts WHERE id = $1 AND disabled = 0")
        .bind(id.to_string())
        .fetch_optional(store.pool())
        .await?;
    row.map(|row| rows::number(&row, "epoch")).transpose()
}

/// Ends all access tokens of an account.
///
/// # Errors
/// A failure of the store.
pub async fn end_tokens(tx: &mut Tx, id: Uuid) -> Result<(), StoreError> {
    let update = "UPDATE accounts SET epoch = epoch + 1 WHERE id = $1 RETURNING epoch";
    let row = sqlx::query(update)
        .bind(id.to_string())
        .fetch_optional(&mut **tx)
        .await?;
    let Some(row) = row else {
        return Ok(());
    };
    let insert = "INSERT INTO ended_tokens (account, epoch, ended_at) VALUES ($1, $2, $3) \
         ON CONFLICT (account) DO UPDATE SET epoch = $2, ended_at = $3";
    sqlx::query(insert)
        .bind(AccountTokens::digest(id).to_string())
        .bind(row.try_get::<i64, _>("epoch")?)
        .bind(clock::now())
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Returns the access tokens that ended before their expiry.
///
/// # Errors
/// A failure of the store.
pub async fn ended_tokens(store: &Store) -> Result<EndedTokens, StoreError> {
    let select = "SELECT account, epoch FROM ended_tokens";
    let found = sqlx::query(select).fetch_all(store.pool()).await?;
    let of_account = |row: &Row| {
        Ok(AccountTokens {
            account: rows::parsed(row, "account")?,
            epoch: rows::number(row, "epoch")?,
        })
    };
    let accounts = found.iter().map(|row| rows::undamaged(of_account(row)));
    let accounts = accounts
        .filter_map(Result::transpose)
        .collect::<Result<_, _>>()?;
    Ok(EndedTokens { accounts })
}

/// Deletes the tokens that ended before a time.
///
/// # Errors
/// A failure of the store.
pub async fn forget_ended_tokens(store: &Store, before: Millis) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM ended_tokens WHERE ended_at < $1")
        .bind(before)
        .execute(store.pool())
        .await?;
    Ok(())
}

/// Returns the sign-in data of the account with an address.
///
/// # Errors
/// A failure of the store.
pub async fn of_email(store: &Store, email: &str) -> Result<Option<Entry>, StoreError> {
    entry(store, "email", email).await
}

/// Returns the sign-in data of an account.
///
/// # Errors
/// A failure of the store.
pub async fn of_id(store: &Store, id: Uuid) -> Result<Option<Entry>, StoreError> {
    entry(store, "id", &id.to_string()).await
}

/// Returns the sign-in data of an account and locks its row. Code that ends an account's sessions
/// also locks the row, so a session that begins or is renewed at the same time is either ended with
/// the others or refused.
///
/// # Errors
/// A failure of the store.
pub async fn lock(store: &Store, tx: &mut Tx, id: Uuid) -> Result<Option<Entry>, StoreError> {
    let select = "SELECT id, email, password, disabled, epoch FROM accounts WHERE id = $1";
    let row = sqlx::query(store.locking(select))
        .bind(id.to_string())
        .fetch_optional(&mut **tx)
        .await?;
    row.as_ref().map(Entry::from_row).transpose()
}

async fn entry(store: &Store, by: &str, value: &str) -> Result<Option<Entry>, StoreError> {
    // Safe: `by` is a constant of this crate.
    let select =
        format!("SELECT id, email, password, disabled, epoch FROM accounts WHERE {by} = $1");
    let row = sqlx::query(AssertSqlSafe(select))
        .bind(value)
        .fetch_optional(store.pool())
        .await?;
    row.as_ref().map(Entry::from_row).transpose()
}

/// Replaces the hash of an account's password.
///
/// # Errors
/// A failure of the store.
pub async fn set_password(tx: &mut Tx, id: Uuid, hash: &str) -> Result<(), StoreError> {
    sqlx::query("UPDATE accounts SET password = $1 WHERE id = $2")
        .bind(hash)
        .bind(id.to_string())
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Disables or enables an account.
///
/// # Errors
/// A failure of the store.
pub async fn set_disabled(tx: &mut Tx, id: Uuid, disabled: bool) -> Result<(), StoreError> {
    sqlx::query("UPDATE accounts SET disabled = $1 WHERE id = $2")
        .bind(i64::from(disabled))
        .bind(id.to_string())
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Deletes an account that has no datasets, with its sessions, keys and links.
///
/// # Errors
/// A failure of the store.
pub async fn delete(tx: &mut Tx, id: Uuid) -> Result<(), StoreError> {
    let id = id.to_string();
    for statement in [
        "DELETE FROM refresh_tokens WHERE account = $1",
        "DELETE FROM api_keys WHERE account = $1",
        "DELETE FROM links WHERE account = $1",
        "DELETE FROM owners WHERE owner = $1",
        "DELETE FROM accounts WHERE id = $1",
    ] {
        sqlx::query(statement).bind(&id).execute(&mut **tx).await?;
    }
    Ok(())
}

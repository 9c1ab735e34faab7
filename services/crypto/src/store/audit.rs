//! The audit log.

use fhaim_api::keys::AuditEntry;
use fhaim_platform::clock::{self, Millis};
use fhaim_platform::rows;
use fhaim_platform::store::{Row, Store, StoreError, Tx};
use sqlx::Row as _;
use uuid::Uuid;

/// Adds an entry. The dataset's row must be locked, or not exist.
///
/// # Errors
/// A failure of the store.
pub async fn write(
    tx: &mut Tx,
    dataset: Uuid,
    actor: &str,
    action: &str,
    granted: bool,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO audit (dataset, number, at, actor, action, granted) \
         SELECT $1, COALESCE(MAX(number), 0) + 1, $2, $3, $4, $5 FROM audit WHERE dataset = $1",
    )
    .bind(dataset.to_string())
    .bind(clock::now())
    .bind(actor)
    .bind(action)
    .bind(i64::from(granted))
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Counts the granted entries of an actor and an action since a time.
///
/// # Errors
/// A failure of the store.
pub async fn count(
    tx: &mut Tx,
    dataset: Uuid,
    actor: &str,
    action: &str,
    since: Millis,
) -> Result<u64, StoreError> {
    let row = sqlx::query(
        "SELECT COUNT(*) AS entries FROM audit \
         WHERE dataset = $1 AND actor = $2 AND action = $3 AND granted = 1 AND at > $4",
    )
    .bind(dataset.to_string())
    .bind(actor)
    .bind(action)
    .bind(since)
    .fetch_one(&mut **tx)
    .await?;
    rows::number(&row, "entries")
}

/// Returns the audit log of a dataset after a number, oldest entry first.
///
/// # Errors
/// A failure of the store.
pub async fn read(
    store: &Store,
    dataset: Uuid,
    after: i64,
    limit: i64,
) -> Result<Vec<AuditEntry>, StoreError> {
    let found = sqlx::query(
        "SELECT number, at, actor, action, granted FROM audit \
         WHERE dataset = $1 AND number > $2 ORDER BY number LIMIT $3",
    )
    .bind(dataset.to_string())
    .bind(after)
    .bind(limit)
    .fetch_all(store.pool())
    .await?;
    let entry = |row: &Row| {
        Ok(AuditEntry {
            number: rows::number(row, "number")?,
            at: clock::date(row.try_get("at")?),
            actor: row.try_get("actor")?,
            action: row.try_get("action")?,
            granted: row.try_get::<i64, _>("granted")? != 0,
        })
    };
    found.iter().map(entry).collect()
}

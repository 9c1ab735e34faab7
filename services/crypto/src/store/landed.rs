//! Runs and debits as the release before stored them: nothing is added to these tables.

use fhaim_dp::Entry;
use fhaim_platform::rows;
use fhaim_platform::store::{Row, StoreError, Tx};
use sqlx::Row as _;
use uuid::Uuid;

/// Jobs that had begun a run, oldest first.
///
/// # Errors
/// A failure of the store.
pub async fn jobs(tx: &mut Tx, dataset: Uuid) -> Result<Vec<Uuid>, StoreError> {
    let found = sqlx::query("SELECT job FROM runs WHERE dataset = $1 ORDER BY number")
        .bind(dataset.to_string())
        .fetch_all(&mut **tx)
        .await?;
    found.iter().map(|row| rows::parsed(row, "job")).collect()
}

/// Debits with their jobs, in the order of their numbers.
///
/// # Errors
/// A failure of the store.
pub async fn debits(tx: &mut Tx, dataset: Uuid) -> Result<Vec<(Uuid, Entry)>, StoreError> {
    let debits = "SELECT job, entry FROM debits WHERE dataset = $1 ORDER BY number";
    let found = sqlx::query(debits)
        .bind(dataset.to_string())
        .fetch_all(&mut **tx)
        .await?;
    let pair = |row: &Row| Ok((rows::parsed(row, "job")?, rows::json(row, "entry")?));
    found.iter().map(pair).collect()
}

/// The same as it is written, job by job: what a digest is made of.
///
/// # Errors
/// A failure of the store.
pub async fn written_debits(tx: &mut Tx, dataset: Uuid) -> Result<Vec<[String; 2]>, StoreError> {
    let debits = "SELECT job, entry FROM debits WHERE dataset = $1 ORDER BY job, number";
    let found = sqlx::query(debits)
        .bind(dataset.to_string())
        .fetch_all(&mut **tx)
        .await?;
    let pair = |row: &Row| Ok([row.try_get("job")?, row.try_get("entry")?]);
    found.iter().map(pair).collect()
}

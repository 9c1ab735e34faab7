//! Runs: the last stored window of the noise ladder of each job.

use fhaim_platform::store::{Store, StoreError, Tx, is_duplicate};
use sqlx::Row as _;
use uuid::Uuid;

/// Returns the window of a job as text, or `None` if the job has none yet.
///
/// # Errors
/// A failure of the store.
pub async fn window(store: &Store, dataset: Uuid, job: Uuid) -> Result<Option<String>, StoreError> {
    let row = sqlx::query("SELECT state FROM windows WHERE dataset = $1 AND job = $2")
        .bind(dataset.to_string())
        .bind(job.to_string())
        .fetch_optional(store.pool())
        .await?;
    row.map(|row| row.try_get("state")).transpose()
}

/// Replaces a job's window unless it has changed since it was read (compare and set). Returns whether
/// it was replaced.
///
/// # Errors
/// A failure of the store.
pub async fn replace_window(
    tx: &mut Tx,
    (dataset, job): (Uuid, Uuid),
    before: Option<&str>,
    after: &str,
) -> Result<bool, StoreError> {
    let query = match before {
        Some(before) => sqlx::query(
            "UPDATE windows SET state = $1 WHERE dataset = $2 AND job = $3 AND state = $4",
        )
        .bind(after)
        .bind(dataset.to_string())
        .bind(job.to_string())
        .bind(before),
        None => sqlx::query("INSERT INTO windows (state, dataset, job) VALUES ($1, $2, $3)")
            .bind(after)
            .bind(dataset.to_string())
            .bind(job.to_string()),
    };
    match query.execute(&mut **tx).await {
        Err(error) if is_duplicate(&error) => Ok(false),
        other => Ok(other?.rows_affected() == 1),
    }
}

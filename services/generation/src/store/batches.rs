//! Batches that a job asked for, with their answers.

use fhaim_api::job::JobProgress;
use fhaim_platform::store::{Row, Store, StoreError, Tx};
use fhaim_platform::{clock, rows};
use fhaim_release::ReleaseRequest;
use fhaim_release::{ReleaseBatch, StoredBatch};
use uuid::Uuid;

/// Returns a job's batches in order.
///
/// # Errors
/// A failure of the store.
pub async fn of_job(tx: &mut Tx, job: &str) -> Result<Vec<StoredBatch>, StoreError> {
    let select = "SELECT requests, answers FROM batches WHERE job = $1 ORDER BY number";
    let found = sqlx::query(select).bind(job).fetch_all(&mut **tx).await?;
    let stored = |row: &Row| {
        Ok(StoredBatch {
            requests: rows::json(row, "requests")?,
            answers: rows::some_json(row, "answers")?,
        })
    };
    found.iter().map(stored).collect()
}

/// Returns whether a job has asked for a batch.
///
/// # Errors
/// A failure of the store.
pub async fn has_asked(tx: &mut Tx, job: Uuid) -> Result<bool, StoreError> {
    let row = sqlx::query("SELECT number FROM batches WHERE job = $1 LIMIT 1")
        .bind(job.to_string())
        .fetch_optional(&mut **tx)
        .await?;
    Ok(row.is_some())
}

/// Adds a batch before the job asks for it.
///
/// # Errors
/// A failure of the store.
pub async fn insert(
    tx: &mut Tx,
    job: &str,
    batch: &ReleaseBatch,
    progress: &JobProgress,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO batches (job, number, progress, requests, asked_at) \
         VALUES ($1, $2, $3, $4, $5)",
    )
    .bind(job)
    .bind(rows::stored(batch.number)?)
    .bind(rows::to_json(progress)?)
    .bind(rows::to_json(&batch.requests)?)
    .bind(clock::now())
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Stores a batch's answers.
///
/// # Errors
/// A failure of the store.
pub async fn answer(
    tx: &mut Tx,
    job: &str,
    number: usize,
    answers: &[Vec<i64>],
) -> Result<(), StoreError> {
    sqlx::query("UPDATE batches SET answers = $1, released_at = $2 WHERE job = $3 AND number = $4")
        .bind(rows::to_json(answers)?)
        .bind(clock::now())
        .bind(job)
        .bind(rows::stored(number)?)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// A batch with its answers.
#[derive(Clone, Debug)]
pub struct Answered {
    /// Progress of the mechanism when it asked.
    pub progress: JobProgress,
    /// The requested releases.
    pub requests: Vec<ReleaseRequest>,
    /// The released integers.
    pub answers: Vec<Vec<i64>>,
}

/// Returns a job's answered batches in order.
///
/// # Errors
/// A failure of the store.
pub async fn answered(store: &Store, job: Uuid) -> Result<Vec<Answered>, StoreError> {
    let found = sqlx::query(
        "SELECT progress, requests, answers FROM batches \
         WHERE job = $1 AND answers IS NOT NULL ORDER BY number",
    )
    .bind(job.to_string())
    .fetch_all(store.pool())
    .await?;
    let answered = |row: &Row| {
        Ok(Answered {
            progress: rows::json(row, "progress")?,
            requests: rows::json(row, "requests")?,
            answers: rows::json(row, "answers")?,
        })
    };
    found.iter().map(answered).collect()
}

/// Deletes the unanswered batches of a job.
///
/// # Errors
/// A failure of the store.
pub async fn forget_unanswered(tx: &mut Tx, job: &str) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM batches WHERE job = $1 AND answers IS NULL")
        .bind(job)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

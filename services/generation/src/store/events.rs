//! Events of jobs.

use fhaim_api::job::{Happening, JobEvent, JobState};
use fhaim_platform::store::{Row, Store, StoreError, Tx};
use fhaim_platform::{clock, rows};
use sqlx::Row as _;

/// Adds an event to a job, in the same transaction as the change that it reports.
///
/// # Errors
/// A failure of the store.
pub async fn record(tx: &mut Tx, job: &str, what: &Happening) -> Result<(), StoreError> {
    // The update locks the job's row, so events become visible in the order of their numbers.
    let row = sqlx::query("UPDATE jobs SET events = events + 1 WHERE id = $1 RETURNING events")
        .bind(job)
        .fetch_one(&mut **tx)
        .await?;
    sqlx::query("INSERT INTO job_events (job, number, at, what) VALUES ($1, $2, $3, $4)")
        .bind(job)
        .bind(row.try_get::<i64, _>("events")?)
        .bind(clock::now())
        .bind(rows::to_json(what)?)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Returns a job's state and the number of its last event, or `None` if the job does not exist.
///
/// # Errors
/// A failure of the store.
pub async fn last(store: &Store, job: &str) -> Result<Option<(JobState, i64)>, StoreError> {
    let row = sqlx::query("SELECT state, events FROM jobs WHERE id = $1")
        .bind(job)
        .fetch_optional(store.pool())
        .await?;
    let pair = |row: Row| Ok((rows::named(&row, "state")?, row.try_get("events")?));
    row.map(pair).transpose()
}

/// Returns at most `most` events of a job after the event with number `last`.
///
/// # Errors
/// A failure of the store.
pub async fn after(
    store: &Store,
    job: &str,
    last: i64,
    most: i64,
) -> Result<Vec<JobEvent>, StoreError> {
    let found = sqlx::query(
        "SELECT number, at, what FROM job_events WHERE job = $1 AND number > $2 \
         ORDER BY number LIMIT $3",
    )
    .bind(job)
    .bind(last)
    .bind(most)
    .fetch_all(store.pool())
    .await?;
    let event = |row: &Row| {
        Ok(JobEvent {
            number: rows::number(row, "number")?,
            at: clock::date(row.try_get("at")?),
            what: rows::json(row, "what")?,
        })
    };
    found.iter().map(event).collect()
}

//! Counts of an account's objects.

use fhaim_platform::store::{StoreError, Tx};
use fhaim_platform::{clock, rows};
use uuid::Uuid;

/// Number of objects of an account.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    /// Datasets, including those that are being deleted.
    pub datasets: u64,
    /// Jobs.
    pub jobs: u64,
    /// Jobs that are queued or running.
    pub jobs_under_way: u64,
    /// API keys.
    pub api_keys: u64,
    /// Unexpired links to results.
    pub links: u64,
}

/// Counts the objects of an account.
///
/// # Errors
/// A failure of the store.
pub async fn count(tx: &mut Tx, owner: Uuid) -> Result<Counted, StoreError> {
    let count = "SELECT (SELECT COUNT(*) FROM datasets WHERE owner = $1) AS datasets, \
         (SELECT COUNT(*) FROM jobs WHERE owner = $1) AS jobs, \
         (SELECT COUNT(*) FROM jobs WHERE owner = $1 AND state IN ('queued', 'running')) \
         AS jobs_under_way, \
         (SELECT COUNT(*) FROM api_keys WHERE account = $1) AS api_keys, \
         (SELECT COUNT(*) FROM links WHERE account = $1 \
          AND (expires_at = 0 OR expires_at > $2)) AS links";
    let row = sqlx::query(count)
        .bind(owner.to_string())
        .bind(clock::now())
        .fetch_one(&mut **tx)
        .await?;
    Ok(Counted {
        datasets: rows::number(&row, "datasets")?,
        jobs: rows::number(&row, "jobs")?,
        jobs_under_way: rows::number(&row, "jobs_under_way")?,
        api_keys: rows::number(&row, "api_keys")?,
        links: rows::number(&row, "links")?,
    })
}

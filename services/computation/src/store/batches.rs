//! Batches, which are tasks under a lease, and their results.

use fhaim_api::batch::{Batch, BatchStatus};
use fhaim_api::keys::Receipt;
use fhaim_platform::lease::Lease;
use fhaim_platform::store::{Row, Store, StoreError, Tx, is_duplicate};
use fhaim_platform::{clock, rows};
use fhaim_release::ReleaseRequest;
use sqlx::Row as _;
use uuid::Uuid;

use crate::store::uploads::StoredUpload;

/// The state of a batch that was refused because its job got no run.
const WITHOUT_RUN: &str = "without-run";

/// Name of the table of tasks.
pub const TABLE: &str = "batches";

/// Name of a batch: its dataset, its job and the number of its first release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    /// The dataset.
    pub dataset: Uuid,
    /// The job.
    pub job: Uuid,
    /// Number of its first release.
    pub first: u32,
}

impl Name {
    fn id(&self) -> String {
        format!("{}/{}", self.job, self.first)
    }
}

/// The client's view of a batch.
#[derive(Clone, Debug)]
pub struct Found {
    /// The requested releases.
    pub requests: Vec<ReleaseRequest>,
    /// Its status.
    pub status: BatchStatus,
    /// Receipts of the crypto service's ledger that the client has shown.
    pub shown: Vec<Receipt>,
}

/// Returns a batch.
///
/// # Errors
/// A failure of the store.
pub async fn find(store: &Store, name: Name) -> Result<Option<Found>, StoreError> {
    let row = sqlx::query("SELECT * FROM batches WHERE id = $1 AND dataset = $2")
        .bind(name.id())
        .bind(name.dataset.to_string())
        .fetch_optional(store.pool())
        .await?;
    let found = |row: Row| {
        Ok(Found {
            requests: rows::json(&row, "requests")?,
            status: status(&row)?,
            shown: rows::json(&row, "shown")?,
        })
    };
    row.map(found).transpose()
}

fn status(row: &Row) -> Result<BatchStatus, StoreError> {
    let state: String = row.try_get("state")?;
    let reason: Option<String> = row.try_get("reason")?;
    Ok(match (state.as_str(), reason) {
        ("queued" | "running", Some(reason)) => BatchStatus::Waiting { reason },
        ("queued", None) => BatchStatus::Queued,
        ("running", None) => BatchStatus::Running {
            seconds: (clock::now() - row.try_get::<i64, _>("created_at")?) as f64 / 1e3,
        },
        ("released", _) => BatchStatus::Released {
            answers: rows::json(row, "answers")?,
            compute_seconds: row.try_get("seconds")?,
            receipt: rows::json(row, "receipt")?,
        },
        (_, reason) => BatchStatus::Refused {
            reason: reason.unwrap_or_default(),
            without_run: state == WITHOUT_RUN,
        },
    })
}

/// Queues a batch. Returns `false` if the batch already exists; the transaction can then not be used
/// any more.
///
/// # Errors
/// A failure of the store.
pub async fn insert(
    tx: &mut Tx,
    upload: &StoredUpload,
    name: Name,
    batch: &Batch,
) -> Result<bool, StoreError> {
    let inserted = sqlx::query(
        "INSERT INTO batches (id, dataset, owner, job, first, requests, state, seconds, \
         lease_expires, attempts, created_at, shown) \
         VALUES ($1, $2, $3, $4, $5, $6, 'queued', 0, 0, 0, $7, $8)",
    )
    .bind(name.id())
    .bind(name.dataset.to_string())
    .bind(upload.owner.to_string())
    .bind(name.job.to_string())
    .bind(i64::from(name.first))
    .bind(rows::to_json(&batch.requests)?)
    .bind(clock::now())
    .bind(rows::to_json(&batch.receipts)?)
    .execute(&mut **tx)
    .await;
    match inserted {
        Err(error) if is_duplicate(&error) => Ok(false),
        other => other.map(|_| true),
    }
}

/// Returns the receipts that clients have shown with a batch and locks its row. Returns `None` if the
/// batch does not exist.
///
/// # Errors
/// A failure of the store.
pub async fn lock_shown(
    store: &Store,
    tx: &mut Tx,
    name: Name,
) -> Result<Option<Vec<Receipt>>, StoreError> {
    let select = store.locking("SELECT shown FROM batches WHERE id = $1 AND dataset = $2");
    let row = sqlx::query(select)
        .bind(name.id())
        .bind(name.dataset.to_string())
        .fetch_optional(&mut **tx)
        .await?;
    row.map(|row| rows::json(&row, "shown")).transpose()
}

/// Stores the receipts that clients have shown with a batch.
///
/// # Errors
/// A failure of the store.
pub async fn set_shown(tx: &mut Tx, name: Name, shown: &[Receipt]) -> Result<(), StoreError> {
    sqlx::query("UPDATE batches SET shown = $1 WHERE id = $2")
        .bind(rows::to_json(shown)?)
        .bind(name.id())
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Queues a refused batch again, without its sealed pages.
///
/// # Errors
/// A failure of the store.
pub async fn reopen(store: &Store, name: Name) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE batches SET state = 'queued', reason = NULL, faults = 0, outages = 0, \
         lease_expires = 0, sealed = NULL WHERE id = $1 AND state IN ('refused', $2)",
    )
    .bind(name.id())
    .bind(WITHOUT_RUN)
    .execute(store.pool())
    .await?;
    Ok(())
}

/// Queues a released batch again, with its sealed pages.
///
/// # Errors
/// A failure of the store.
pub async fn repeat(store: &Store, name: Name) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE batches SET state = 'queued', faults = 0, outages = 0, lease_expires = 0 \
         WHERE id = $1 AND state = 'released'",
    )
    .bind(name.id())
    .execute(store.pool())
    .await?;
    Ok(())
}

/// A worker's view of a batch.
#[derive(Debug)]
pub struct Task {
    /// The dataset.
    pub dataset: Uuid,
    /// The job.
    pub job: Uuid,
    /// The requested releases.
    pub requests: Vec<ReleaseRequest>,
    /// The blob of the sealed request, once it exists.
    pub sealed: Option<String>,
    /// Receipts of the crypto service's ledger that clients have shown.
    pub receipts: Vec<Receipt>,
}

/// Returns the batch of a lease.
///
/// # Errors
/// A failure of the store.
pub async fn task(store: &Store, lease: &Lease) -> Result<Task, StoreError> {
    let select = "SELECT dataset, job, requests, sealed, shown FROM batches WHERE id = $1";
    let row = sqlx::query(select)
        .bind(&lease.id)
        .fetch_one(store.pool())
        .await?;
    Ok(Task {
        dataset: rows::parsed(&row, "dataset")?,
        job: rows::parsed(&row, "job")?,
        requests: rows::json(&row, "requests")?,
        sealed: row.try_get("sealed")?,
        receipts: rows::json(&row, "shown")?,
    })
}

/// Stores the blob of a batch's sealed request and the computing time.
///
/// # Errors
/// A failure of the store.
pub async fn seal(tx: &mut Tx, lease: &Lease, blob: &str, seconds: f64) -> Result<(), StoreError> {
    sqlx::query("UPDATE batches SET sealed = $1, seconds = $2 WHERE id = $3")
        .bind(blob)
        .bind(seconds)
        .bind(&lease.id)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Ends a batch with its integers and their receipt.
///
/// # Errors
/// A failure of the store.
pub async fn release(
    tx: &mut Tx,
    lease: &Lease,
    answers: &[Vec<i64>],
    receipt: &Receipt,
) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE batches SET state = 'released', answers = $1, receipt = $2, reason = NULL \
         WHERE id = $3",
    )
    .bind(rows::to_json(answers)?)
    .bind(rows::to_json(receipt)?)
    .bind(&lease.id)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Stores why a batch is postponed.
///
/// # Errors
/// A failure of the store.
pub async fn postpone(tx: &mut Tx, lease: &Lease, reason: &str) -> Result<(), StoreError> {
    sqlx::query("UPDATE batches SET reason = $1 WHERE id = $2")
        .bind(reason)
        .bind(&lease.id)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Forgets why a batch was postponed, because it continues.
///
/// # Errors
/// A failure of the store.
pub async fn resume(store: &Store, lease: &Lease) -> Result<(), StoreError> {
    sqlx::query("UPDATE batches SET reason = NULL WHERE id = $1 AND state = 'running'")
        .bind(&lease.id)
        .execute(store.pool())
        .await?;
    Ok(())
}

/// Ends a batch as refused with a reason.
///
/// # Errors
/// A failure of the store.
pub async fn refuse(tx: &mut Tx, lease: &Lease, reason: &str) -> Result<(), StoreError> {
    end(tx, lease, "refused", reason).await
}

/// Ends a batch because the crypto service had no run left for the job.
///
/// # Errors
/// A failure of the store.
pub async fn refuse_run(tx: &mut Tx, lease: &Lease, reason: &str) -> Result<(), StoreError> {
    end(tx, lease, WITHOUT_RUN, reason).await
}

async fn end(tx: &mut Tx, lease: &Lease, state: &str, reason: &str) -> Result<(), StoreError> {
    sqlx::query("UPDATE batches SET state = $1, reason = $2 WHERE id = $3")
        .bind(state)
        .bind(reason)
        .bind(&lease.id)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

//! Digests that the second computation service reported for batches.

use fhaim_api::Digest;
use fhaim_api::keys::Witnessed;
use fhaim_platform::rows;
use fhaim_platform::store::{StoreError, Tx};
use uuid::Uuid;

/// Returns the digest of a batch's sealed request that was reported.
///
/// # Errors
/// A failure of the store.
pub async fn find(
    tx: &mut Tx,
    dataset: Uuid,
    job: Uuid,
    asked: Digest,
) -> Result<Option<Digest>, StoreError> {
    let select = "SELECT request FROM witnessed WHERE dataset = $1 AND job = $2 AND asked = $3";
    let row = sqlx::query(select)
        .bind(dataset.to_string())
        .bind(job.to_string())
        .bind(asked.to_string())
        .fetch_optional(&mut **tx)
        .await?;
    row.map(|row| rows::parsed(&row, "request")).transpose()
}

/// Stores the reported digest of a batch. The dataset's row must be locked.
///
/// # Errors
/// A failure of the store.
pub async fn insert(
    tx: &mut Tx,
    dataset: Uuid,
    job: Uuid,
    new: &Witnessed,
) -> Result<(), StoreError> {
    sqlx::query("INSERT INTO witnessed (dataset, job, asked, request) VALUES ($1, $2, $3, $4)")
        .bind(dataset.to_string())
        .bind(job.to_string())
        .bind(new.asked.to_string())
        .bind(new.request.to_string())
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Deletes all reported digests of a dataset.
///
/// # Errors
/// A failure of the store.
pub async fn forget(tx: &mut Tx, dataset: Uuid) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM witnessed WHERE dataset = $1")
        .bind(dataset.to_string())
        .execute(&mut **tx)
        .await?;
    Ok(())
}

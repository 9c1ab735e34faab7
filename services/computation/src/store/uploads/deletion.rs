//! Deleting an upload: its work first, its blobs by others in between, its rows last.

use fhaim_platform::rows;
use fhaim_platform::store::{Row, Store, StoreError};
use sqlx::Row as _;
use uuid::Uuid;

/// Forgets a dataset's batches and windows, and what its pages are sealed with: whoever works on a
/// batch finds that it is no longer theirs. The upload is gone for its owner; its row stays, so that
/// whoever deletes its blobs finds them.
///
/// # Errors
/// A failure of the store.
pub async fn begin_deletion(store: &Store, dataset: Uuid) -> Result<(), StoreError> {
    let statements = [
        "UPDATE uploads SET deleting = 1, sealing_key = NULL WHERE dataset = $1",
        "DELETE FROM batches WHERE dataset = $1",
        "DELETE FROM jobs WHERE dataset = $1",
        "DELETE FROM windows WHERE dataset = $1",
    ];
    each(store, dataset, &statements).await
}

/// Deletes what is left of a dataset whose blobs are gone.
///
/// # Errors
/// A failure of the store.
pub async fn finish_deletion(store: &Store, dataset: Uuid) -> Result<(), StoreError> {
    let statements = [
        "DELETE FROM objects WHERE dataset = $1",
        "DELETE FROM contributions WHERE dataset = $1",
        "DELETE FROM uploads WHERE dataset = $1 AND deleting <> 0",
    ];
    each(store, dataset, &statements).await
}

async fn each(store: &Store, dataset: Uuid, statements: &[&'static str]) -> Result<(), StoreError> {
    let dataset = dataset.to_string();
    let mut tx = store.begin().await?;
    for &statement in statements {
        let statement = sqlx::query(statement).bind(&dataset);
        statement.execute(&mut *tx).await?;
    }
    tx.commit().await
}

/// Datasets whose deletion was begun, with their folders.
///
/// # Errors
/// A failure of the store.
pub async fn deleting(store: &Store) -> Result<Vec<(Uuid, String)>, StoreError> {
    let found = sqlx::query("SELECT dataset, folder FROM uploads WHERE deleting <> 0")
        .fetch_all(store.pool())
        .await?;
    let pair = |row: &Row| Ok((rows::parsed(row, "dataset")?, row.try_get("folder")?));
    found.iter().map(pair).collect()
}

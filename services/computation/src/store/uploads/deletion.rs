//! Deleting an upload: its work first, its blobs by others in between, its rows last.

use fhaim_platform::rows;
use fhaim_platform::store::{Row, Store, StoreError, Tx};
use sqlx::Row as _;
use uuid::Uuid;

use super::part_folder;

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

/// Whether a contribution is there, also while it is being taken back.
///
/// # Errors
/// A failure of the store.
pub async fn is_there(tx: &mut Tx, dataset: Uuid, contribution: u32) -> Result<bool, StoreError> {
    let select = "SELECT COUNT(*) AS n FROM contributions WHERE dataset = $1 AND number = $2";
    let row = sqlx::query(select)
        .bind(dataset.to_string())
        .bind(i64::from(contribution))
        .fetch_one(&mut **tx)
        .await?;
    Ok(row.try_get::<i64, _>("n")? > 0)
}

/// Marks a contribution as being taken back: it is gone for its holder, and what was made when all
/// were complete is forgotten. Its row stays, so that whoever deletes its blobs finds their folder.
///
/// # Errors
/// A failure of the store.
pub async fn begin_taking_back(
    tx: &mut Tx,
    dataset: Uuid,
    contribution: u32,
) -> Result<(), StoreError> {
    let dataset = dataset.to_string();
    for statement in [
        "DELETE FROM objects WHERE dataset = $1 AND contribution = $2",
        // Open, for replicas of the release before, which do not know the mark.
        "UPDATE contributions SET state = 'open', taken_back = 1 \
         WHERE dataset = $1 AND number = $2",
    ] {
        let statement = sqlx::query(statement).bind(&dataset);
        let statement = statement.bind(i64::from(contribution));
        statement.execute(&mut **tx).await?;
    }
    sqlx::query("UPDATE uploads SET sealing_key = NULL, manifest = NULL WHERE dataset = $1")
        .bind(&dataset)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Deletes the row of a contribution whose blobs are gone: it no longer counts with what its holder
/// stores, and can be registered anew.
///
/// # Errors
/// A failure of the store.
pub async fn finish_taking_back(
    store: &Store,
    dataset: Uuid,
    contribution: u32,
) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM contributions WHERE dataset = $1 AND number = $2 AND taken_back <> 0")
        .bind(dataset.to_string())
        .bind(i64::from(contribution))
        .execute(store.pool())
        .await?;
    Ok(())
}

/// Contributions that are being taken back, with the folders of their blobs.
///
/// # Errors
/// A failure of the store.
pub async fn taken_back(store: &Store) -> Result<Vec<(Uuid, u32, String)>, StoreError> {
    let select = "SELECT contributions.dataset, contributions.number, uploads.folder \
         FROM contributions JOIN uploads ON uploads.dataset = contributions.dataset \
         WHERE contributions.taken_back <> 0";
    let found = sqlx::query(select).fetch_all(store.pool()).await?;
    let part = |row: &Row| {
        let (folder, number) = (
            row.try_get::<String, _>("folder")?,
            rows::number(row, "number")?,
        );
        Ok((
            rows::parsed(row, "dataset")?,
            number,
            part_folder(&folder, number),
        ))
    };
    found.iter().map(part).collect()
}

//! Deletion of an upload: its batches first, its rows last. Callers delete its blobs in between.

use fhaim_platform::rows;
use fhaim_platform::store::{Row, Store, StoreError, Tx};
use sqlx::Row as _;
use uuid::Uuid;

use super::part_folder;

/// Deletes a dataset's batches and windows and the sealing key of its pages. A worker on a batch finds that
/// its lease is lost. The upload is hidden from its owner, but its row stays, so that its blobs can be
/// found and deleted.
///
/// # Errors
/// A failure of the store.
pub async fn begin_deletion(store: &Store, dataset: Uuid) -> Result<(), StoreError> {
    let statements = [
        "UPDATE uploads SET deleting = 1, sealing_key = NULL WHERE dataset = $1",
        "DELETE FROM batches WHERE dataset = $1",
        "DELETE FROM windows WHERE dataset = $1",
    ];
    each(store, dataset, &statements).await
}

/// Deletes the remaining rows of a dataset whose blobs are deleted.
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

/// Lists the datasets that are being deleted, with their folders.
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

/// Returns whether a contribution exists, even if it is being taken back.
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

/// A contribution that is being taken back.
#[derive(Clone, Debug)]
pub struct TakenBack {
    /// Its dataset.
    pub dataset: Uuid,
    /// Its number within the dataset.
    pub contribution: u32,
    /// Distinguishes this deletion from any other of a contribution with the same number.
    pub mark: i64,
    /// Folder of its blobs.
    pub folder: String,
}

/// Marks a contribution as being taken back and returns the mark. If it was marked before, the mark stays the
/// same. The contribution is hidden from its holder, and the data of the complete upload is deleted. The row
/// stays, so that the folder of its blobs can be found.
///
/// # Errors
/// A failure of the store.
pub async fn begin_taking_back(
    tx: &mut Tx,
    dataset: Uuid,
    contribution: u32,
) -> Result<i64, StoreError> {
    let dataset = dataset.to_string();
    sqlx::query("DELETE FROM objects WHERE dataset = $1 AND contribution = $2")
        .bind(&dataset)
        .bind(i64::from(contribution))
        .execute(&mut **tx)
        .await?;
    let update = "UPDATE contributions SET state = 'open', \
         taken_back = CASE WHEN taken_back = 0 THEN $3 ELSE taken_back END \
         WHERE dataset = $1 AND number = $2 RETURNING taken_back";
    let row = sqlx::query(update)
        .bind(&dataset)
        .bind(i64::from(contribution))
        .bind(new_mark())
        .fetch_one(&mut **tx)
        .await?;
    let mark = row.try_get("taken_back")?;
    sqlx::query("UPDATE uploads SET sealing_key = NULL, manifest = NULL WHERE dataset = $1")
        .bind(&dataset)
        .execute(&mut **tx)
        .await?;
    Ok(mark)
}

/// Returns a positive mark that is new.
fn new_mark() -> i64 {
    let (high, _) = Uuid::new_v4().as_u64_pair();
    (high >> 1) as i64 | 1
}

/// Returns whether this deletion of a contribution is still under way.
///
/// # Errors
/// A failure of the store.
pub async fn is_taken_back(store: &Store, taken: &TakenBack) -> Result<bool, StoreError> {
    let select = "SELECT COUNT(*) AS n FROM contributions \
         WHERE dataset = $1 AND number = $2 AND taken_back = $3";
    let row = sqlx::query(select)
        .bind(taken.dataset.to_string())
        .bind(i64::from(taken.contribution))
        .bind(taken.mark)
        .fetch_one(store.pool())
        .await?;
    Ok(row.try_get::<i64, _>("n")? > 0)
}

/// Deletes the row of a contribution whose blobs are deleted. It no longer counts towards its holder's limit,
/// and can be registered again.
///
/// # Errors
/// A failure of the store.
pub async fn finish_taking_back(store: &Store, taken: &TakenBack) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM contributions WHERE dataset = $1 AND number = $2 AND taken_back = $3")
        .bind(taken.dataset.to_string())
        .bind(i64::from(taken.contribution))
        .bind(taken.mark)
        .execute(store.pool())
        .await?;
    Ok(())
}

/// Lists the contributions that are being taken back, with the folders of their blobs.
///
/// # Errors
/// A failure of the store.
pub async fn taken_back(store: &Store) -> Result<Vec<TakenBack>, StoreError> {
    let select = "SELECT contributions.dataset, contributions.number, contributions.taken_back, \
         uploads.folder \
         FROM contributions JOIN uploads ON uploads.dataset = contributions.dataset \
         WHERE contributions.taken_back <> 0";
    let found = sqlx::query(select).fetch_all(store.pool()).await?;
    let part = |row: &Row| {
        let folder: String = row.try_get("folder")?;
        let contribution = rows::number(row, "number")?;
        Ok(TakenBack {
            dataset: rows::parsed(row, "dataset")?,
            contribution,
            mark: row.try_get("taken_back")?,
            folder: part_folder(&folder, contribution),
        })
    };
    found.iter().map(part).collect()
}

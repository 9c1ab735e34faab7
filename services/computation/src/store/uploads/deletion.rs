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

/// A contribution that is being taken back.
#[derive(Clone, Debug)]
pub struct TakenBack {
    /// Its dataset.
    pub dataset: Uuid,
    /// Its number within the dataset.
    pub contribution: u32,
    /// Tells this time from any other that a contribution of the number is taken back.
    pub mark: i64,
    /// Where its blobs are.
    pub folder: String,
}

/// Marks a contribution as being taken back: it is gone for its holder, and what was made when all
/// were complete is forgotten. Its row stays, so that whoever deletes its blobs finds their folder.
/// The mark, which is the one before where it is being taken back already.
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

/// A mark that was never given before, which is positive.
fn new_mark() -> i64 {
    let (high, _) = Uuid::new_v4().as_u64_pair();
    (high >> 1) as i64 | 1
}

/// Whether a contribution is still being taken back, this time.
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

/// Deletes the row of a contribution whose blobs are gone: it no longer counts with what its holder
/// stores, and can be registered anew.
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

/// Contributions that are being taken back, with the folders of their blobs.
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

//! Contributions of an upload and their objects.

use fhaim_api::Digest;
use fhaim_api::upload::{UploadState, WireLayout};
use fhaim_platform::rows;
use fhaim_platform::store::{Row, Store, StoreError, Tx, is_duplicate};
use fhaim_protocol::upload::Object;
use sqlx::Row as _;
use std::collections::BTreeMap;
use uuid::Uuid;

use super::{layout, numbers};

/// A stored object: its digest and blob.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    /// Digest of its bytes.
    pub digest: Digest,
    /// Distinguishes its blob from those of other `PUT` calls for the object.
    pub version: Uuid,
}

impl Kept {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            digest: rows::parsed(row, "digest")?,
            version: rows::parsed(row, "version")?,
        })
    }
}

/// A new contribution without objects.
#[derive(Clone, Copy, Debug)]
pub struct NewPart {
    /// Its number within the dataset.
    pub number: u32,
    /// Its holder, if the dataset has several.
    pub owner: Option<Uuid>,
    /// Layout of its records; `None` for counts.
    pub layout: Option<WireLayout>,
    /// Number of one-hot columns.
    pub columns: usize,
    /// Bytes that count towards its holder's limit.
    pub bytes: u64,
}

/// Adds a contribution to an upload. Returns `false` if its number is taken; the transaction can then not
/// be used any more.
///
/// # Errors
/// A failure of the store.
pub async fn insert_part(tx: &mut Tx, dataset: Uuid, part: &NewPart) -> Result<bool, StoreError> {
    let (chunks, stride) = numbers(part.layout);
    let inserted = sqlx::query(
        "INSERT INTO contributions (dataset, number, chunks, columns, state, owner, stride, bytes) \
         VALUES ($1, $2, $3, $4, 'open', $5, $6, $7)",
    )
    .bind(dataset.to_string())
    .bind(i64::from(part.number))
    .bind(rows::stored(chunks)?)
    .bind(rows::stored(part.columns)?)
    .bind(part.owner.map(|owner| owner.to_string()))
    .bind(rows::stored(stride)?)
    .bind(rows::stored(part.bytes)?)
    .execute(&mut **tx)
    .await;
    match inserted {
        Err(error) if is_duplicate(&error) => Ok(false),
        other => other.map(|_| true),
    }
}

/// A stored contribution.
#[derive(Clone, Copy, Debug)]
pub struct StoredPart {
    /// Its number within the dataset.
    pub number: u32,
    /// Its holder, if the dataset has several.
    pub owner: Option<Uuid>,
    /// Layout of its records; `None` for counts.
    pub layout: Option<WireLayout>,
    /// Number of one-hot columns.
    pub columns: usize,
    /// Its state.
    pub state: UploadState,
    /// Number of stored objects.
    pub present: u64,
    /// Number of them that are a holder's own keys: at most one.
    pub keys: u64,
}

/// Returns the contributions of a dataset that are not being taken back, in order.
///
/// # Errors
/// A failure of the store.
pub async fn parts(store: &Store, dataset: Uuid) -> Result<Vec<StoredPart>, StoreError> {
    parts_by(store.pool(), dataset).await
}

/// Like [`parts`], within a transaction.
///
/// # Errors
/// A failure of the store.
pub async fn parts_in(tx: &mut Tx, dataset: Uuid) -> Result<Vec<StoredPart>, StoreError> {
    parts_by(&mut **tx, dataset).await
}

async fn parts_by(
    executor: impl sqlx::Executor<'_, Database = sqlx::Any>,
    dataset: Uuid,
) -> Result<Vec<StoredPart>, StoreError> {
    let select = "SELECT contributions.*, (SELECT COUNT(*) FROM objects \
         WHERE objects.dataset = contributions.dataset \
         AND objects.contribution = contributions.number) AS present, (SELECT COUNT(*) FROM objects \
         WHERE objects.dataset = contributions.dataset \
         AND objects.contribution = contributions.number AND objects.name = 'keys') AS holder_keys \
         FROM contributions WHERE dataset = $1 AND taken_back = 0 ORDER BY number";
    let found = sqlx::query(select)
        .bind(dataset.to_string())
        .fetch_all(executor)
        .await?;
    let part = |row: &Row| {
        let size = |column| rows::number(row, column);
        Ok(StoredPart {
            number: rows::number(row, "number")?,
            owner: rows::some_parsed(row, "owner")?,
            layout: layout(size("chunks")?, size("stride")?),
            columns: size("columns")?,
            state: rows::named(row, "state")?,
            present: rows::number(row, "present")?,
            keys: rows::number(row, "holder_keys")?,
        })
    };
    found.iter().map(part).collect()
}

/// Locks a contribution's row and returns its state. Returns `None` if the contribution does not exist
/// or is being taken back.
///
/// # Errors
/// A failure of the store.
pub async fn lock(
    store: &Store,
    tx: &mut Tx,
    dataset: Uuid,
    contribution: u32,
) -> Result<Option<UploadState>, StoreError> {
    let select = store.locking(
        "SELECT state FROM contributions \
             WHERE dataset = $1 AND number = $2 AND taken_back = 0 \
             AND EXISTS (SELECT 1 FROM uploads WHERE dataset = $1 AND deleting = 0)",
    );
    let row = sqlx::query(select)
        .bind(dataset.to_string())
        .bind(i64::from(contribution))
        .fetch_optional(&mut **tx)
        .await?;
    row.map(|row| rows::named(&row, "state")).transpose()
}

const COMPLETE: &str = "SELECT COUNT(*) AS whole FROM uploads WHERE dataset = $1 AND parts = \
     (SELECT COUNT(*) FROM contributions WHERE dataset = $1 AND state = 'complete')";

/// Returns whether every contribution of a dataset is complete.
///
/// # Errors
/// A failure of the store.
pub async fn is_complete(store: &Store, dataset: Uuid) -> Result<bool, StoreError> {
    complete_in(store.pool(), dataset).await
}

/// Like [`is_complete`], within a transaction.
///
/// # Errors
/// A failure of the store.
pub async fn is_complete_in(tx: &mut Tx, dataset: Uuid) -> Result<bool, StoreError> {
    complete_in(&mut **tx, dataset).await
}

async fn complete_in(
    executor: impl sqlx::Executor<'_, Database = sqlx::Any>,
    dataset: Uuid,
) -> Result<bool, StoreError> {
    let row = sqlx::query(COMPLETE)
        .bind(dataset.to_string())
        .fetch_one(executor)
        .await?;
    Ok(row.try_get::<i64, _>("whole")? == 1)
}

/// Returns whether a contribution is complete.
///
/// # Errors
/// A failure of the store.
pub async fn is_part_complete(
    store: &Store,
    dataset: Uuid,
    contribution: u32,
) -> Result<bool, StoreError> {
    let found = sqlx::query(
        "SELECT state FROM contributions WHERE dataset = $1 AND number = $2 AND state = 'complete'",
    )
    .bind(dataset.to_string())
    .bind(i64::from(contribution))
    .fetch_optional(store.pool())
    .await?;
    Ok(found.is_some())
}

/// Marks a contribution as complete.
///
/// # Errors
/// A failure of the store.
pub async fn complete(tx: &mut Tx, dataset: Uuid, contribution: u32) -> Result<(), StoreError> {
    sqlx::query("UPDATE contributions SET state = 'complete' WHERE dataset = $1 AND number = $2")
        .bind(dataset.to_string())
        .bind(i64::from(contribution))
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Returns the stored objects of a contribution by name.
///
/// # Errors
/// A failure of the store.
pub async fn objects(
    store: &Store,
    dataset: Uuid,
    contribution: u32,
) -> Result<BTreeMap<String, Kept>, StoreError> {
    present(store.pool(), dataset, contribution).await
}

/// Returns one stored object of a contribution.
///
/// # Errors
/// A failure of the store.
pub async fn object(
    store: &Store,
    dataset: Uuid,
    contribution: u32,
    name: &str,
) -> Result<Option<Kept>, StoreError> {
    let select = "SELECT digest, version FROM objects \
         WHERE dataset = $1 AND contribution = $2 AND name = $3";
    let found = sqlx::query(select)
        .bind(dataset.to_string())
        .bind(i64::from(contribution))
        .bind(name)
        .fetch_optional(store.pool())
        .await?;
    found.as_ref().map(Kept::from_row).transpose()
}

/// Like [`objects`], within a transaction.
///
/// # Errors
/// A failure of the store.
pub async fn objects_in(
    tx: &mut Tx,
    dataset: Uuid,
    contribution: u32,
) -> Result<BTreeMap<String, Kept>, StoreError> {
    present(&mut **tx, dataset, contribution).await
}

async fn present(
    executor: impl sqlx::Executor<'_, Database = sqlx::Any>,
    dataset: Uuid,
    contribution: u32,
) -> Result<BTreeMap<String, Kept>, StoreError> {
    let found = sqlx::query(
        "SELECT name, digest, version FROM objects WHERE dataset = $1 AND contribution = $2",
    )
    .bind(dataset.to_string())
    .bind(i64::from(contribution))
    .fetch_all(executor)
    .await?;
    let entry = |row: &Row| Ok((row.try_get("name")?, Kept::from_row(row)?));
    found.iter().map(entry).collect()
}

/// Enters a stored blob as an object of a contribution, and returns the replaced one.
///
/// # Errors
/// A failure of the store.
pub async fn put_object(
    tx: &mut Tx,
    dataset: Uuid,
    contribution: u32,
    object: Object,
    new: Kept,
) -> Result<Option<Kept>, StoreError> {
    let (dataset, name) = (dataset.to_string(), object.name());
    let before = sqlx::query(
        "SELECT digest, version FROM objects \
         WHERE dataset = $1 AND contribution = $2 AND name = $3",
    )
    .bind(&dataset)
    .bind(i64::from(contribution))
    .bind(&name)
    .fetch_optional(&mut **tx)
    .await?;
    sqlx::query(
        "INSERT INTO objects (dataset, contribution, name, digest, version) \
         VALUES ($1, $2, $3, $4, $5) ON CONFLICT (dataset, contribution, name) \
         DO UPDATE SET digest = excluded.digest, version = excluded.version",
    )
    .bind(&dataset)
    .bind(i64::from(contribution))
    .bind(&name)
    .bind(new.digest.to_string())
    .bind(new.version.to_string())
    .execute(&mut **tx)
    .await?;
    before.as_ref().map(Kept::from_row).transpose()
}

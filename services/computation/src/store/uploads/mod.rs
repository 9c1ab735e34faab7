//! Uploads: their registration, their objects, and the data that runs need.

mod computed;
mod contributions;
mod deletion;

use fhaim_api::Digest;
use fhaim_api::upload::WireLayout;
use fhaim_he::UploadKeyId;
use fhaim_platform::store::{Row, Store, StoreError, Tx, is_duplicate};
use fhaim_platform::{clock, rows};
use fhaim_protocol::terms::Terms;
use fhaim_protocol::upload::Object;
use sqlx::Row as _;
use std::collections::BTreeSet;
use std::fmt::Display;
use uuid::Uuid;

pub use self::computed::{Prepared, lock_receipts, prepare, prepared, receipts, set_receipts};
pub use self::contributions::{
    Kept, NewPart, StoredPart, complete, insert_part, is_complete, is_complete_in,
    is_part_complete, lock, object, objects, objects_in, parts, parts_in, put_object,
};
pub use self::deletion::{
    TakenBack, begin_deletion, begin_taking_back, deleting, finish_deletion, finish_taking_back,
    is_taken_back, is_there, taken_back,
};

/// A dataset's keys as received from the crypto service.
#[derive(Clone, Debug)]
pub struct Keys {
    /// Digest of the public key.
    pub public: Digest,
    /// Digest of the evaluation keys.
    pub evaluation: Digest,
    /// Names of the upload keys of a roster's holders in the roster's order.
    pub uploads: Vec<UploadKeyId>,
}

/// A stored upload.
#[derive(Clone, Debug)]
pub struct StoredUpload {
    /// The dataset.
    pub dataset: Uuid,
    /// Its owner.
    pub owner: Uuid,
    /// Its terms.
    pub terms: Terms,
    /// Layout of the first registered part. It reveals the range of the number of records.
    pub layout: Option<WireLayout>,
    /// Folder of its objects and keys.
    pub folder: String,
    /// Its keys.
    pub keys: Keys,
}

/// Returns the layout of a part, or `None` for counts.
fn layout(chunks: usize, stride: usize) -> Option<WireLayout> {
    (chunks > 0).then_some(WireLayout { chunks, stride })
}

/// Returns a layout's chunks and stride as they are stored.
fn numbers(layout: Option<WireLayout>) -> (usize, usize) {
    layout.map_or((0, 0), |layout| (layout.chunks, layout.stride))
}

impl StoredUpload {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        rows::of_dataset(rows::parsed(row, "dataset")?, Self::from_whole_row(row))
    }

    fn from_whole_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            dataset: rows::parsed(row, "dataset")?,
            owner: rows::parsed(row, "owner")?,
            terms: rows::json(row, "terms")?,
            layout: layout(rows::number(row, "chunks")?, rows::number(row, "stride")?),
            folder: row.try_get("folder")?,
            keys: Keys {
                public: rows::parsed(row, "public_key")?,
                evaluation: rows::parsed(row, "evaluation_keys")?,
                uploads: rows::json(row, "upload_keys")?,
            },
        })
    }

    /// Returns the blob of an object. Every `PUT` uses its own blob, so that none changes what another
    /// stored. The object's row names the current one.
    pub fn blob(&self, contribution: u32, object: Object, version: Uuid) -> String {
        blob(&self.folder, contribution, &object.name(), version)
    }

    /// Returns the folder of a contribution's blobs.
    pub fn part_folder(&self, contribution: u32) -> String {
        part_folder(&self.folder, contribution)
    }
}

fn part_folder(folder: &str, contribution: impl Display) -> String {
    format!("{folder}/{contribution}")
}

/// Returns the name of an object's blob.
fn blob(folder: &str, contribution: impl Display, object: &str, version: Uuid) -> String {
    let folder = part_folder(folder, contribution);
    format!("{folder}/{object}.{version}")
}

/// Returns an upload that is not being deleted.
///
/// # Errors
/// A failure of the store.
pub async fn find(store: &Store, dataset: Uuid) -> Result<Option<StoredUpload>, StoreError> {
    let row = sqlx::query("SELECT * FROM uploads WHERE dataset = $1 AND deleting = 0")
        .bind(dataset.to_string())
        .fetch_optional(store.pool())
        .await;
    let row = rows::of_dataset(dataset, row)?;
    row.as_ref().map(StoredUpload::from_row).transpose()
}

/// Returns the folder of an owner's upload, even while the upload is being deleted.
///
/// # Errors
/// A failure of the store.
pub async fn folder(
    store: &Store,
    dataset: Uuid,
    owner: Uuid,
) -> Result<Option<String>, StoreError> {
    let row = sqlx::query("SELECT folder FROM uploads WHERE dataset = $1 AND owner = $2")
        .bind(dataset.to_string())
        .bind(owner.to_string())
        .fetch_optional(store.pool())
        .await?;
    row.map(|row| row.try_get("folder")).transpose()
}

/// Adds an upload. `bytes` is the size for a single holder; for several holders, sizes are counted with
/// their contributions. Returns `false` if the dataset already has an upload; the transaction can then
/// not be used any more.
///
/// # Errors
/// A failure of the store.
pub async fn insert(tx: &mut Tx, stored: &StoredUpload, bytes: u64) -> Result<bool, StoreError> {
    let dataset = stored.dataset.to_string();
    let (chunks, stride) = numbers(stored.layout);
    let inserted = sqlx::query(
        "INSERT INTO uploads (dataset, owner, terms, chunks, stride, folder, created_at, \
         public_key, evaluation_keys, upload_keys, bytes, parts, receipts) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, '[]')",
    )
    .bind(&dataset)
    .bind(stored.owner.to_string())
    .bind(rows::to_json(&stored.terms)?)
    .bind(rows::stored(chunks)?)
    .bind(rows::stored(stride)?)
    .bind(&stored.folder)
    .bind(clock::now())
    .bind(stored.keys.public.to_string())
    .bind(stored.keys.evaluation.to_string())
    .bind(rows::to_json(&stored.keys.uploads)?)
    .bind(rows::stored(bytes)?)
    .bind(rows::stored(stored.terms.part_count())?)
    .execute(&mut **tx)
    .await;
    match inserted {
        Err(error) if is_duplicate(&error) => Ok(false),
        other => other.map(|_| true),
    }
}

/// Locks an upload, so that only one of its contributions is completed or taken back at a time.
///
/// # Errors
/// A failure of the store.
pub async fn lock_upload(store: &Store, tx: &mut Tx, dataset: Uuid) -> Result<(), StoreError> {
    sqlx::query(store.locking("SELECT dataset FROM uploads WHERE dataset = $1"))
        .bind(dataset.to_string())
        .fetch_optional(&mut **tx)
        .await?;
    Ok(())
}

/// Deletes a dataset's batches that were refused before anything was sealed for them. Then returns whether
/// anything of the dataset is or may soon be sealed.
///
/// # Errors
/// A failure of the store.
pub async fn is_used(tx: &mut Tx, dataset: Uuid) -> Result<bool, StoreError> {
    let dataset = dataset.to_string();
    // A batch that is retried at the same moment is either deleted here or counted below.
    let refused = "DELETE FROM batches WHERE dataset = $1 AND sealed IS NULL \
         AND state NOT IN ('queued', 'running', 'released') \
         AND job NOT IN (SELECT job FROM windows WHERE dataset = $1)";
    sqlx::query(refused)
        .bind(&dataset)
        .execute(&mut **tx)
        .await?;
    let row = sqlx::query(
        "SELECT (SELECT COUNT(*) FROM windows WHERE dataset = $1) \
         + (SELECT COUNT(*) FROM batches WHERE dataset = $1) AS used",
    )
    .bind(&dataset)
    .fetch_one(&mut **tx)
    .await?;
    Ok(row.try_get::<i64, _>("used")? > 0)
}

/// Returns the bytes of an owner's uploads at their complete size.
///
/// # Errors
/// A failure of the store.
pub async fn bytes(tx: &mut Tx, owner: Uuid) -> Result<u64, StoreError> {
    // Postgres sums have another type than their summands.
    let sum = "SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) AS bytes FROM \
         (SELECT bytes FROM uploads WHERE owner = $1 \
         UNION ALL SELECT bytes FROM contributions WHERE owner = $1) AS held";
    let row = sqlx::query(sum)
        .bind(owner.to_string())
        .fetch_one(&mut **tx)
        .await?;
    rows::number(&row, "bytes")
}

/// Lists all datasets whose uploads are not being deleted.
///
/// # Errors
/// A failure of the store.
pub async fn all(store: &Store) -> Result<Vec<Uuid>, StoreError> {
    let select = "SELECT dataset FROM uploads WHERE deleting = 0 ORDER BY created_at, dataset";
    let found = sqlx::query(select).fetch_all(store.pool()).await?;
    found
        .iter()
        .map(|row| rows::parsed(row, "dataset"))
        .collect()
}

/// Returns the folders of all uploads.
///
/// # Errors
/// A failure of the store.
pub async fn folders(store: &Store) -> Result<BTreeSet<String>, StoreError> {
    let found = sqlx::query("SELECT folder FROM uploads");
    let found = found.fetch_all(store.pool()).await?;
    found.iter().map(|row| row.try_get("folder")).collect()
}

/// Returns the blobs of objects and sealed pages that rows name in an upload's folder. The keys are not
/// among them, because only the upload's own row names them.
///
/// # Errors
/// A failure of the store.
pub async fn blobs(store: &Store, folder: &str) -> Result<BTreeSet<String>, StoreError> {
    let objects = sqlx::query(
        "SELECT contribution, name, version FROM objects \
         JOIN uploads ON uploads.dataset = objects.dataset WHERE uploads.folder = $1",
    )
    .bind(folder)
    .fetch_all(store.pool())
    .await?;
    let object = |row: &Row| {
        let (contribution, name): (i64, String) =
            (row.try_get("contribution")?, row.try_get("name")?);
        let version = rows::parsed(row, "version")?;
        Ok(blob(folder, contribution, &name, version))
    };
    let pages = sqlx::query(
        "SELECT batches.sealed FROM batches JOIN uploads ON uploads.dataset = batches.dataset \
         WHERE uploads.folder = $1 AND batches.sealed IS NOT NULL",
    )
    .bind(folder)
    .fetch_all(store.pool())
    .await?;
    let page = |row: &Row| row.try_get("sealed");
    objects
        .iter()
        .map(object)
        .chain(pages.iter().map(page))
        .collect()
}

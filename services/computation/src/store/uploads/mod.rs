//! Uploads: what holders registered, the objects that arrived, what complete ones need.

mod computed;
mod contributions;
mod deletion;

use fhaim_api::Digest;
use fhaim_api::upload::WireLayout;
use fhaim_platform::store::{Row, Store, StoreError, Tx, is_duplicate};
use fhaim_platform::{clock, rows};
use fhaim_protocol::terms::Terms;
use fhaim_protocol::upload::Object;
use sqlx::Row as _;
use std::collections::BTreeSet;
use uuid::Uuid;

pub use self::computed::{
    Prepared, lock_receipts, prepare, prepared, receipts, set_receipts, unprepared,
};
pub use self::contributions::{
    Kept, Part, complete, is_complete, lock, objects, objects_in, parts, put_object,
};
pub use self::deletion::{begin_deletion, deleting, finish_deletion};

/// Digests of a dataset's keys, as they came from the crypto service.
#[derive(Clone, Copy, Debug)]
pub struct KeyDigests {
    /// Of the public key.
    pub public: Digest,
    /// Of the evaluation keys.
    pub evaluation: Digest,
}

/// An upload as it is stored.
#[derive(Clone, Debug)]
pub struct Stored {
    /// The dataset.
    pub dataset: Uuid,
    /// Its owner.
    pub owner: Uuid,
    /// Its terms.
    pub terms: Terms,
    /// What is told of the number of records.
    pub layout: WireLayout,
    /// Where its objects and keys are.
    pub folder: String,
    /// Digests of its keys; releases before this was kept had none.
    pub keys: Option<KeyDigests>,
}

impl Stored {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        let digest = |column| rows::some_parsed(row, column);
        Ok(Self {
            dataset: rows::parsed(row, "dataset")?,
            owner: rows::parsed(row, "owner")?,
            terms: rows::json(row, "terms")?,
            layout: WireLayout {
                chunks: rows::number(row, "chunks")?,
                stride: rows::number(row, "stride")?,
            },
            folder: row.try_get("folder")?,
            keys: match (digest("public_key")?, digest("evaluation_keys")?) {
                (Some(public), Some(evaluation)) => Some(KeyDigests { public, evaluation }),
                _ => None,
            },
        })
    }

    /// The blob that holds an object. Every put has one of its own, so that none changes what
    /// another stored: the object's row says which it is.
    pub fn blob(&self, contribution: u32, object: Object, version: Option<Uuid>) -> String {
        let name = format!("{}/{contribution}/{object}", self.folder);
        match version {
            Some(version) => format!("{name}.{version}"),
            None => name,
        }
    }
}

/// An upload, if there is one that is not being deleted.
///
/// # Errors
/// A failure of the store.
pub async fn find(store: &Store, dataset: Uuid) -> Result<Option<Stored>, StoreError> {
    let row = sqlx::query("SELECT * FROM uploads WHERE dataset = $1 AND deleting = 0")
        .bind(dataset.to_string())
        .fetch_optional(store.pool())
        .await?;
    row.as_ref().map(Stored::from_row).transpose()
}

/// Where the blobs of an owner's upload are, also while it is being deleted.
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

/// Adds an upload of so many bytes with one contribution, the whole grid of so many columns, as
/// number 0. Whether it was added: not where there is one of the dataset, and then the transaction
/// is of no more use.
///
/// # Errors
/// A failure of the store.
pub async fn insert(
    tx: &mut Tx,
    stored: &Stored,
    columns: usize,
    bytes: u64,
) -> Result<bool, StoreError> {
    let dataset = stored.dataset.to_string();
    let inserted = sqlx::query(
        "INSERT INTO uploads (dataset, owner, terms, chunks, stride, folder, created_at, \
         public_key, evaluation_keys, bytes) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
    )
    .bind(&dataset)
    .bind(stored.owner.to_string())
    .bind(rows::to_json(&stored.terms)?)
    .bind(rows::stored(stored.layout.chunks)?)
    .bind(rows::stored(stored.layout.stride)?)
    .bind(&stored.folder)
    .bind(clock::now())
    .bind(stored.keys.map(|keys| keys.public.to_string()))
    .bind(stored.keys.map(|keys| keys.evaluation.to_string()))
    .bind(rows::stored(bytes)?)
    .execute(&mut **tx)
    .await;
    match inserted {
        Err(error) if is_duplicate(&error) => return Ok(false),
        other => other?,
    };
    sqlx::query(
        "INSERT INTO contributions (dataset, number, first_chunk, chunks, first_column, columns, \
         state) VALUES ($1, 0, 0, $2, 0, $3, 'open')",
    )
    .bind(&dataset)
    .bind(rows::stored(stored.layout.chunks)?)
    .bind(rows::stored(columns)?)
    .execute(&mut **tx)
    .await?;
    Ok(true)
}

/// Bytes that an owner's uploads take, or will when they are complete.
///
/// # Errors
/// A failure of the store.
pub async fn bytes(tx: &mut Tx, owner: Uuid) -> Result<u64, StoreError> {
    // A sum is of another type on Postgres than what it adds up.
    let sum =
        "SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) AS bytes FROM uploads WHERE owner = $1";
    let row = sqlx::query(sum)
        .bind(owner.to_string())
        .fetch_one(&mut **tx)
        .await?;
    rows::number(&row, "bytes")
}

/// Datasets of whose uploads it is not known what they take.
///
/// # Errors
/// A failure of the store.
pub async fn unmeasured(store: &Store) -> Result<Vec<Uuid>, StoreError> {
    let found = sqlx::query("SELECT dataset FROM uploads WHERE bytes IS NULL")
        .fetch_all(store.pool())
        .await?;
    found
        .iter()
        .map(|row| rows::parsed(row, "dataset"))
        .collect()
}

/// Stores what an upload takes.
///
/// # Errors
/// A failure of the store.
pub async fn set_bytes(store: &Store, dataset: Uuid, bytes: u64) -> Result<(), StoreError> {
    sqlx::query("UPDATE uploads SET bytes = $1 WHERE dataset = $2")
        .bind(rows::stored(bytes)?)
        .bind(dataset.to_string())
        .execute(store.pool())
        .await?;
    Ok(())
}

/// All datasets whose uploads are not being deleted.
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

/// Where the blobs of all uploads are.
///
/// # Errors
/// A failure of the store.
pub async fn folders(store: &Store) -> Result<BTreeSet<String>, StoreError> {
    let found = sqlx::query("SELECT folder FROM uploads");
    let found = found.fetch_all(store.pool()).await?;
    found.iter().map(|row| row.try_get("folder")).collect()
}

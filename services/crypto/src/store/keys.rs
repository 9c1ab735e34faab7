//! Key sets, one for each dataset.

use fhaim_api::Digest;
use fhaim_platform::clock::Millis;
use fhaim_platform::rows;
use fhaim_platform::store::{Row, Store, StoreError, Tx, is_duplicate};
use fhaim_protocol::terms::Terms;
use sqlx::Row as _;
use std::collections::BTreeSet;
use std::fmt;
use uuid::Uuid;

/// A stored key set.
pub struct StoredKeySet {
    /// The dataset.
    pub dataset: Uuid,
    /// Its owner.
    pub owner: Uuid,
    /// Its terms.
    pub terms: Terms,
    /// Folder of its public and evaluation keys.
    pub(crate) folder: String,
    /// The sealed secret key; `None` if it is destroyed.
    pub(crate) secret: Option<Vec<u8>>,
    pub(crate) public_key: Digest,
    pub(crate) evaluation_keys: Digest,
    /// The sealed key that signs receipts.
    pub(crate) receipt_key: Vec<u8>,
    pub(crate) created_at: Millis,
    /// Number of key sets as which it counts towards its owner's limits.
    pub(crate) counted_as: u64,
}

impl fmt::Debug for StoredKeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stored(key set of {})", self.dataset)
    }
}

impl StoredKeySet {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        rows::of_dataset(rows::parsed(row, "dataset")?, Self::from_whole_row(row))
    }

    fn from_whole_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            dataset: rows::parsed(row, "dataset")?,
            owner: rows::parsed(row, "owner")?,
            terms: rows::json(row, "terms")?,
            folder: row.try_get("folder")?,
            secret: row.try_get("secret")?,
            public_key: rows::parsed(row, "public_key")?,
            evaluation_keys: rows::parsed(row, "evaluation_keys")?,
            receipt_key: row.try_get("receipt_key")?,
            created_at: row.try_get("created_at")?,
            counted_as: rows::number(row, "counted_as")?,
        })
    }
}

const FIND: &str = "SELECT * FROM key_sets WHERE dataset = $1";

/// Returns a key set.
///
/// # Errors
/// A failure of the store.
pub async fn find(store: &Store, dataset: Uuid) -> Result<Option<StoredKeySet>, StoreError> {
    let row = sqlx::query(FIND)
        .bind(dataset.to_string())
        .fetch_optional(store.pool())
        .await;
    let row = rows::of_dataset(dataset, row)?;
    row.as_ref().map(StoredKeySet::from_row).transpose()
}

/// Returns a key set and locks its row.
///
/// # Errors
/// A failure of the store.
pub async fn lock(
    store: &Store,
    tx: &mut Tx,
    dataset: Uuid,
) -> Result<Option<StoredKeySet>, StoreError> {
    let row = sqlx::query(store.locking(FIND))
        .bind(dataset.to_string())
        .fetch_optional(&mut **tx)
        .await;
    let row = rows::of_dataset(dataset, row)?;
    row.as_ref().map(StoredKeySet::from_row).transpose()
}

/// The parts of a key set that its deletion needs. The others may be damaged.
#[derive(Clone, Debug)]
pub struct Deletable {
    /// Its owner.
    pub owner: Uuid,
    /// Folder of its public and evaluation keys.
    pub folder: String,
    /// Whether its secret key is destroyed.
    pub is_destroyed: bool,
}

/// Returns the parts of a key set that its deletion needs, and locks its row.
///
/// # Errors
/// A failure of the store.
pub async fn lock_deletable(
    store: &Store,
    tx: &mut Tx,
    dataset: Uuid,
) -> Result<Option<Deletable>, StoreError> {
    let select = "SELECT owner, folder, CASE WHEN secret IS NULL THEN 1 ELSE 0 END AS destroyed \
         FROM key_sets WHERE dataset = $1";
    let row = sqlx::query(store.locking(select))
        .bind(dataset.to_string())
        .fetch_optional(&mut **tx)
        .await?;
    let deletable = |row: Row| {
        Ok(Deletable {
            owner: rows::parsed(&row, "owner")?,
            folder: row.try_get("folder")?,
            is_destroyed: rows::number::<u8>(&row, "destroyed")? == 1,
        })
    };
    row.map(deletable).transpose()
}

/// Adds a key set. Returns `false` if the dataset already has one; the transaction can then not be used
/// any more.
///
/// # Errors
/// A failure of the store.
pub async fn insert(tx: &mut Tx, stored: &StoredKeySet) -> Result<bool, StoreError> {
    let inserted = sqlx::query(
        "INSERT INTO key_sets (dataset, owner, terms, folder, secret, public_key, \
         evaluation_keys, receipt_key, created_at, counted_as) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
    )
    .bind(stored.dataset.to_string())
    .bind(stored.owner.to_string())
    .bind(rows::to_json(&stored.terms)?)
    .bind(&stored.folder)
    .bind(&stored.secret)
    .bind(stored.public_key.to_string())
    .bind(stored.evaluation_keys.to_string())
    .bind(&stored.receipt_key)
    .bind(stored.created_at)
    .bind(i64::try_from(stored.counted_as).unwrap_or(i64::MAX))
    .execute(&mut **tx)
    .await;
    match inserted {
        Err(error) if is_duplicate(&error) => Ok(false),
        other => other.map(|_| true),
    }
}

/// Number of an owner's key sets.
#[derive(Clone, Copy, Debug)]
pub struct KeySetCount {
    /// Key sets that are not destroyed.
    pub kept: u64,
    /// Key sets made since a time, including destroyed ones.
    pub recent: u64,
}

/// Counts an owner's key sets; `since` is the time from which they are recent.
///
/// # Errors
/// A failure of the store.
pub async fn count(tx: &mut Tx, owner: Uuid, since: Millis) -> Result<KeySetCount, StoreError> {
    let count = "SELECT \
         CAST(COALESCE(SUM(CASE WHEN secret IS NOT NULL THEN counted_as END), 0) AS BIGINT) AS kept, \
         CAST(COALESCE(SUM(CASE WHEN created_at > $2 THEN counted_as END), 0) AS BIGINT) AS recent \
         FROM key_sets WHERE owner = $1";
    let row = sqlx::query(count)
        .bind(owner.to_string())
        .bind(since)
        .fetch_one(&mut **tx)
        .await?;
    Ok(KeySetCount {
        kept: rows::number(&row, "kept")?,
        recent: rows::number(&row, "recent")?,
    })
}

/// Lists the datasets with keys that are not destroyed.
///
/// # Errors
/// A failure of the store.
pub async fn all(store: &Store) -> Result<Vec<Uuid>, StoreError> {
    let select =
        "SELECT dataset FROM key_sets WHERE secret IS NOT NULL ORDER BY created_at, dataset";
    let found = sqlx::query(select).fetch_all(store.pool()).await?;
    found
        .iter()
        .map(|row| rows::parsed(row, "dataset"))
        .collect()
}

/// Returns the folders of key sets that are not destroyed.
///
/// # Errors
/// A failure of the store.
pub async fn folders(store: &Store) -> Result<BTreeSet<String>, StoreError> {
    let found = sqlx::query("SELECT folder FROM key_sets WHERE secret IS NOT NULL")
        .fetch_all(store.pool())
        .await?;
    found.iter().map(|row| row.try_get("folder")).collect()
}

/// Deletes a secret key.
///
/// # Errors
/// A failure of the store.
pub async fn forget_secret(tx: &mut Tx, dataset: Uuid) -> Result<(), StoreError> {
    sqlx::query("UPDATE key_sets SET secret = NULL WHERE dataset = $1")
        .bind(dataset.to_string())
        .execute(&mut **tx)
        .await?;
    Ok(())
}

//! Data that runs over a complete upload need, and known receipts of the crypto service's ledger.

use fhaim_api::Digest;
use fhaim_api::keys::Receipt;
use fhaim_platform::rows;
use fhaim_platform::store::{Row, Store, StoreError, Tx};
use sqlx::Row as _;
use uuid::Uuid;

/// Stores an upload's sealing key, in sealed form, and its manifest's digest, unless it has them.
///
/// # Errors
/// A failure of the store.
pub async fn prepare(
    tx: &mut Tx,
    dataset: Uuid,
    sealing_key: Vec<u8>,
    manifest: Digest,
) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE uploads SET sealing_key = $1, manifest = $2 \
         WHERE dataset = $3 AND sealing_key IS NULL",
    )
    .bind(sealing_key)
    .bind(manifest.to_string())
    .bind(dataset.to_string())
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Data that runs over an upload need.
#[derive(Debug)]
pub struct Prepared {
    /// The sealing key of its pages, in sealed form.
    pub sealing_key: Option<Vec<u8>>,
    /// Digest of its manifest.
    pub manifest: Option<Digest>,
}

/// Returns the data that runs over an upload need.
///
/// # Errors
/// A failure of the store.
pub async fn prepared(store: &Store, dataset: Uuid) -> Result<Option<Prepared>, StoreError> {
    let row = sqlx::query("SELECT sealing_key, manifest FROM uploads WHERE dataset = $1")
        .bind(dataset.to_string())
        .fetch_optional(store.pool())
        .await?;
    let prepared = |row: Row| {
        Ok(Prepared {
            sealing_key: row.try_get("sealing_key")?,
            manifest: rows::some_parsed(&row, "manifest")?,
        })
    };
    row.map(prepared).transpose()
}

/// Returns the receipts of the crypto service's ledger, without those that a later known receipt contains.
/// Returns `None` if the upload does not exist.
///
/// # Errors
/// A failure of the store.
pub async fn receipts(store: &Store, dataset: Uuid) -> Result<Option<Vec<Receipt>>, StoreError> {
    let row = sqlx::query("SELECT receipts FROM uploads WHERE dataset = $1")
        .bind(dataset.to_string())
        .fetch_optional(store.pool())
        .await?;
    row.map(|row| rows::json(&row, "receipts")).transpose()
}

/// Like [`receipts`], and locks the upload's row.
///
/// # Errors
/// A failure of the store.
pub async fn lock_receipts(
    store: &Store,
    tx: &mut Tx,
    dataset: Uuid,
) -> Result<Option<Vec<Receipt>>, StoreError> {
    let select = store.locking("SELECT receipts FROM uploads WHERE dataset = $1");
    let row = sqlx::query(select)
        .bind(dataset.to_string())
        .fetch_optional(&mut **tx)
        .await?;
    row.map(|row| rows::json(&row, "receipts")).transpose()
}

/// Stores an upload's receipts.
///
/// # Errors
/// A failure of the store.
pub async fn set_receipts(
    tx: &mut Tx,
    dataset: Uuid,
    receipts: &[Receipt],
) -> Result<(), StoreError> {
    sqlx::query("UPDATE uploads SET receipts = $1 WHERE dataset = $2")
        .bind(rows::to_json(receipts)?)
        .bind(dataset.to_string())
        .execute(&mut **tx)
        .await?;
    Ok(())
}

//! Keys that several services share: this service's signing key, its promises, and services that still have to
//! destroy a share.

use fhaim_api::Digest;
use fhaim_api::keys::Confirmation;
use fhaim_api::token::Service;
use fhaim_platform::rows;
use fhaim_platform::store::{Row, Store, StoreError, Tx};
use sqlx::Row as _;
use uuid::Uuid;

/// Returns the sealed signing key of a service.
///
/// # Errors
/// A failure of the store.
pub async fn service_key(store: &Store, service: Service) -> Result<Option<Vec<u8>>, StoreError> {
    let row = sqlx::query("SELECT sealed FROM service_keys WHERE service = $1")
        .bind(service.as_str())
        .fetch_optional(store.pool())
        .await?;
    row.map(|row| row.try_get("sealed")).transpose()
}

/// Stores the sealed signing key of a service, unless another replica was faster.
///
/// # Errors
/// A failure of the store.
pub async fn insert_service_key(
    store: &Store,
    service: Service,
    sealed: &[u8],
) -> Result<(), StoreError> {
    let insert =
        "INSERT INTO service_keys (service, sealed) VALUES ($1, $2) ON CONFLICT DO NOTHING";
    sqlx::query(insert)
        .bind(service.as_str())
        .bind(sealed)
        .execute(store.pool())
        .await?;
    Ok(())
}

/// A stored shared key, in addition to its key set.
#[derive(Clone, Debug)]
pub struct SharedKey {
    /// Name of the attempt that made it.
    pub attempt: String,
    /// The confirmations of all services, once this service has seen them.
    pub confirmation: Option<Confirmation>,
}

/// Returns a dataset's shared key.
///
/// # Errors
/// A failure of the store.
pub async fn find(tx: &mut Tx, dataset: Uuid) -> Result<Option<SharedKey>, StoreError> {
    let row = sqlx::query("SELECT attempt, confirmation FROM shared_keys WHERE dataset = $1")
        .bind(dataset.to_string())
        .fetch_optional(&mut **tx)
        .await?;
    let read = |row: Row| {
        Ok(SharedKey {
            attempt: row.try_get("attempt")?,
            confirmation: rows::some_json(&row, "confirmation")?,
        })
    };
    row.map(read).transpose()
}

/// Returns whether a dataset's key is shared by several key services.
///
/// # Errors
/// A failure of the store.
pub async fn is_shared(tx: &mut Tx, dataset: Uuid) -> Result<bool, StoreError> {
    let row = sqlx::query("SELECT COUNT(*) AS shared FROM shared_keys WHERE dataset = $1")
        .bind(dataset.to_string())
        .fetch_one(&mut **tx)
        .await?;
    Ok(row.try_get::<i64, _>("shared")? > 0)
}

/// Adds a dataset's shared key.
///
/// # Errors
/// A failure of the store.
pub async fn insert(tx: &mut Tx, dataset: Uuid, key: &SharedKey) -> Result<(), StoreError> {
    let insert = "INSERT INTO shared_keys (dataset, attempt, confirmation) VALUES ($1, $2, $3)";
    sqlx::query(insert)
        .bind(dataset.to_string())
        .bind(&key.attempt)
        .bind(key.confirmation.as_ref().map(rows::to_json).transpose()?)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Stores the confirmations of all services for a key.
///
/// # Errors
/// A failure of the store.
pub async fn confirm(
    tx: &mut Tx,
    dataset: Uuid,
    confirmation: &Confirmation,
) -> Result<(), StoreError> {
    sqlx::query("UPDATE shared_keys SET confirmation = $1 WHERE dataset = $2")
        .bind(rows::to_json(confirmation)?)
        .bind(dataset.to_string())
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Deletes a key set whose key is not confirmed.
///
/// # Errors
/// A failure of the store.
pub async fn forget_attempt(tx: &mut Tx, dataset: Uuid) -> Result<(), StoreError> {
    let statements = [
        "DELETE FROM shared_keys WHERE dataset = $1",
        "DELETE FROM key_sets WHERE dataset = $1",
    ];
    for statement in statements {
        sqlx::query(statement)
            .bind(dataset.to_string())
            .execute(&mut **tx)
            .await?;
    }
    Ok(())
}

/// Returns the request of a job that is promised but not yet debited.
///
/// # Errors
/// A failure of the store.
pub async fn promised(tx: &mut Tx, dataset: Uuid, job: Uuid) -> Result<Option<Digest>, StoreError> {
    let row = sqlx::query("SELECT request FROM promises WHERE dataset = $1 AND job = $2")
        .bind(dataset.to_string())
        .bind(job.to_string())
        .fetch_optional(&mut **tx)
        .await?;
    row.map(|row| rows::parsed(&row, "request")).transpose()
}

/// Stores a promise. The dataset's row must be locked, and the job must have no promise.
///
/// # Errors
/// A failure of the store.
pub async fn promise(
    tx: &mut Tx,
    dataset: Uuid,
    job: Uuid,
    request: Digest,
) -> Result<(), StoreError> {
    sqlx::query("INSERT INTO promises (dataset, job, request) VALUES ($1, $2, $3)")
        .bind(dataset.to_string())
        .bind(job.to_string())
        .bind(request.to_string())
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Deletes a promise that was kept.
///
/// # Errors
/// A failure of the store.
pub async fn forget_promise(tx: &mut Tx, dataset: Uuid, job: Uuid) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM promises WHERE dataset = $1 AND job = $2")
        .bind(dataset.to_string())
        .bind(job.to_string())
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Records that a service must destroy its share.
///
/// # Errors
/// A failure of the store.
pub async fn orphan(tx: &mut Tx, dataset: Uuid, service: Service) -> Result<(), StoreError> {
    let insert =
        "INSERT INTO orphaned_shares (dataset, service) VALUES ($1, $2) ON CONFLICT DO NOTHING";
    sqlx::query(insert)
        .bind(dataset.to_string())
        .bind(service.as_str())
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Lists the services that still have to destroy a share, with the dataset.
///
/// # Errors
/// A failure of the store.
pub async fn orphaned(store: &Store) -> Result<Vec<(Uuid, Service)>, StoreError> {
    let select = "SELECT dataset, service FROM orphaned_shares ORDER BY dataset, service";
    let found = sqlx::query(select).fetch_all(store.pool()).await?;
    let read = |row: &Row| Ok((rows::parsed(row, "dataset")?, rows::named(row, "service")?));
    let orphaned = found.iter().map(|row| rows::undamaged(read(row)));
    orphaned.filter_map(Result::transpose).collect()
}

/// Records that a service has destroyed its share.
///
/// # Errors
/// A failure of the store.
pub async fn told(store: &Store, dataset: Uuid, service: Service) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM orphaned_shares WHERE dataset = $1 AND service = $2")
        .bind(dataset.to_string())
        .bind(service.as_str())
        .execute(store.pool())
        .await?;
    Ok(())
}

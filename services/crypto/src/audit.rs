//! Everything that was asked of a dataset's keys, and whether it was granted.

use fhaim_api::keys::AuditEntry;
use fhaim_platform::clock;
use fhaim_platform::store::{StoreError, Tx};
use fhaim_platform::token::Caller;
use sqlx::Row;
use uuid::Uuid;

use crate::State;

/// Who asked for what.
#[derive(Clone, Copy, Debug)]
pub struct Act<'a> {
    /// The dataset.
    pub dataset: Uuid,
    /// Who asked.
    pub actor: Caller,
    /// For what.
    pub action: &'a str,
}

impl Act<'_> {
    /// Writes the act into a transaction. The dataset's row must be locked, or not be there.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn write(&self, tx: &mut Tx, granted: bool) -> Result<(), StoreError> {
        let actor = match self.actor {
            Caller::User(account) => format!("user {account}"),
            Caller::Service(service) => format!("service {service}"),
        };
        sqlx::query(
            "INSERT INTO audit (dataset, number, at, actor, action, granted) \
             SELECT $1, COALESCE(MAX(number), 0) + 1, $2, $3, $4, $5 FROM audit WHERE dataset = $1",
        )
        .bind(self.dataset.to_string())
        .bind(clock::now())
        .bind(actor)
        .bind(self.action)
        .bind(i64::from(granted))
        .execute(&mut **tx)
        .await?;
        Ok(())
    }

    /// Writes a refusal, in a transaction of its own.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn refused(&self, state: &State) -> Result<(), StoreError> {
        let mut tx = state.base.store.begin().await?;
        let lock = state
            .base
            .store
            .locking("SELECT dataset FROM key_sets WHERE dataset = $1");
        let known = sqlx::query(lock)
            .bind(self.dataset.to_string())
            .fetch_optional(&mut *tx)
            .await?;
        // Nothing is kept of datasets that are not there, or anyone could fill the disk.
        if known.is_some() {
            self.write(&mut tx, false).await?;
        }
        tx.commit().await
    }
}

/// The audit log of a dataset, oldest first, from a number on.
///
/// # Errors
/// A failure of the store.
pub async fn read(
    state: &State,
    dataset: Uuid,
    after: i64,
    limit: i64,
) -> Result<Vec<AuditEntry>, StoreError> {
    let rows = sqlx::query(
        "SELECT number, at, actor, action, granted FROM audit \
         WHERE dataset = $1 AND number > $2 ORDER BY number LIMIT $3",
    )
    .bind(dataset.to_string())
    .bind(after)
    .bind(limit)
    .fetch_all(state.base.store.pool())
    .await?;
    let entry = |row: &fhaim_platform::store::Row| {
        let number: i64 = row.try_get("number")?;
        Ok(AuditEntry {
            number: number.unsigned_abs(),
            at: clock::date(row.try_get("at")?),
            actor: row.try_get("actor")?,
            action: row.try_get("action")?,
            granted: row.try_get::<i64, _>("granted")? != 0,
        })
    };
    rows.iter().map(entry).collect()
}

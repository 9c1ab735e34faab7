//! Long work under a lease: who takes a task has it until the lease expires, and renews it while
//! at work. A killed worker's task goes to another; a worker that lost its lease finds out at its
//! next write and stops.
//!
//! A table of tasks has the columns `id` (text), `state` (text: `queued`, `running`, or anything
//! that is final), `lease_token` (text), `lease_expires` (milliseconds; 0 when queued), `attempts`
//! and `created_at`.

use sqlx::{AssertSqlSafe, Row};
use std::time::Duration;
use uuid::Uuid;

use crate::clock::{Millis, now};
use crate::store::{Store, StoreError, Tx};

/// A table of tasks.
#[derive(Clone, Debug)]
pub struct Tasks {
    store: Store,
    table: &'static str,
    length: Millis,
}

/// A task taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The task.
    pub id: String,
    /// Proves that it is ours.
    pub token: String,
    /// How often it has been taken, this time included.
    pub attempt: u32,
}

/// The lease was lost: someone else has the task, or it was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the lease was lost")]
pub struct Lost;

impl Tasks {
    /// The tasks of a table, with leases of so many seconds.
    pub fn new(store: Store, table: &'static str, lease_seconds: u64) -> Self {
        Self {
            store,
            table,
            length: crate::clock::seconds(lease_seconds.max(1)),
        }
    }

    /// How often a worker should renew: three times a lease.
    pub fn renewal(&self) -> Duration {
        Duration::from_millis(u64::try_from(self.length / 3).unwrap_or(1).max(1))
    }

    /// Takes the oldest task that is queued or whose lease has expired.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn take(&self) -> Result<Option<Lease>, StoreError> {
        let Self { table, .. } = self;
        let mut tx = self.store.begin().await?;
        let oldest = self.store.locking_free(&format!(
            "SELECT id, attempts FROM {table} WHERE state IN ('queued', 'running') \
             AND lease_expires <= $1 ORDER BY created_at, id LIMIT 1"
        ));
        let row = sqlx::query(oldest)
            .bind(now())
            .fetch_optional(&mut *tx)
            .await?;
        let Some(row) = row else {
            return Ok(None);
        };
        let attempts: i64 = row.try_get("attempts")?;
        let lease = Lease {
            id: row.try_get("id")?,
            token: Uuid::new_v4().to_string(),
            attempt: u32::try_from(attempts + 1).unwrap_or(u32::MAX),
        };
        let take = AssertSqlSafe(format!(
            "UPDATE {table} SET state = 'running', lease_token = $1, lease_expires = $2, \
             attempts = $3 WHERE id = $4"
        ));
        sqlx::query(take)
            .bind(&lease.token)
            .bind(now() + self.length)
            .bind(i64::from(lease.attempt))
            .bind(&lease.id)
            .execute(&mut *tx)
            .await?;
        tx.commit().await?;
        Ok(Some(lease))
    }

    /// Renews a lease.
    ///
    /// # Errors
    /// A failure of the store; within, [`Lost`].
    pub async fn renew(&self, lease: &Lease) -> Result<Result<(), Lost>, StoreError> {
        let mut tx = self.store.begin().await?;
        let renewed = self.extend(&mut tx, lease, now() + self.length).await?;
        tx.commit().await?;
        Ok(renewed)
    }

    /// Makes sure, within a transaction, that a lease still holds; the transaction's writes then
    /// belong to its holder alone.
    ///
    /// # Errors
    /// A failure of the store; within, [`Lost`].
    pub async fn hold(&self, tx: &mut Tx, lease: &Lease) -> Result<Result<(), Lost>, StoreError> {
        self.extend(tx, lease, now() + self.length).await
    }

    /// Puts a task back for another worker, at once.
    ///
    /// # Errors
    /// A failure of the store; within, [`Lost`].
    pub async fn give_back(&self, lease: &Lease) -> Result<Result<(), Lost>, StoreError> {
        let mut tx = self.store.begin().await?;
        let given = self.extend(&mut tx, lease, 0).await?;
        tx.commit().await?;
        Ok(given)
    }

    async fn extend(
        &self,
        tx: &mut Tx,
        lease: &Lease,
        until: Millis,
    ) -> Result<Result<(), Lost>, StoreError> {
        let Self { table, .. } = self;
        let update = AssertSqlSafe(format!(
            "UPDATE {table} SET lease_expires = $1 \
             WHERE id = $2 AND lease_token = $3 AND state = 'running'"
        ));
        let done = sqlx::query(update)
            .bind(until)
            .bind(&lease.id)
            .bind(&lease.token)
            .execute(&mut **tx)
            .await?;
        Ok(if done.rows_affected() == 1 {
            Ok(())
        } else {
            Err(Lost)
        })
    }
}

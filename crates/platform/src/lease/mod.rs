//! Long work under a lease. A worker has a task as long as it renews the task's lease. The task of a killed worker
//! goes to another one. A worker that has lost its lease notices at its next write, and stops.
//!
//! A lease is identified by its token and its beat, a number that every renewal increases. Clocks of different
//! machines are never compared: a worker may only take a task over if it has seen the same token and beat for the
//! length of a lease, by its own steady clock.
//!
//! A table of tasks has these columns:
//!
//! | column | value |
//! |---|---|
//! | `id` | text |
//! | `owner` | text: the owner of the task |
//! | `dataset` | text: the dataset of the task |
//! | `state` | text: `queued`, `running`, or a final state |
//! | `lease_token` | text; empty if no worker has the task |
//! | `lease_beat` | number of renewals |
//! | `lease_expires` | milliseconds since 1970: the time from which a task without a worker may be taken |
//! | `attempts` | number of attempts |
//! | `faults` | consecutive attempts without a step, including the current one |
//! | `outages` | consecutive outages |
//! | `created_at` | milliseconds since 1970 |

use sqlx::{AssertSqlSafe, Row as _};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::clock::{Millis, now};
use crate::store::{Store, StoreError, Tx};
use take::Watched;

mod take;

/// Longest time that a task is postponed. If a task seems to be postponed for longer, the clock has been set back
/// since, and the task does not wait.
pub const MAX_PAUSE: Duration = Duration::from_secs(60);

/// A table of tasks. Its clones share their observations of other workers' leases.
#[derive(Clone, Debug)]
pub struct Tasks {
    store: Store,
    table: &'static str,
    length: Duration,
    /// The last observed state of each lease, by task.
    watched: Arc<Mutex<HashMap<String, Watched>>>,
}

/// The amount of outstanding work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depth {
    /// Number of waiting tasks.
    pub queued: i64,
    /// Number of tasks that a worker has.
    pub running: i64,
    /// Seconds since the oldest of these tasks was created.
    pub oldest_seconds: i64,
}

/// A task that this worker has taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The task.
    pub id: String,
    /// The task's owner.
    pub owner: String,
    /// The task's dataset.
    pub dataset: String,
    /// The token that proves possession of the lease.
    pub token: String,
    /// How often the task has been taken, including this time. Restarts, kills and outages count, so this number says
    /// nothing about faults.
    pub attempt: u32,
    /// Number of consecutive earlier attempts that ended without a step, including those that were killed. Outages
    /// and orderly restarts do not count.
    pub faults: u32,
}

/// The reason why a task is postponed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Something is temporarily not available. This is not a fault, however long it lasts.
    Outage,
    /// A fault of the service itself.
    Fault,
}

/// The lease was lost: another worker has the task, or the task was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the lease was lost")]
pub struct Lost;

impl Tasks {
    /// Makes the tasks of a table, with leases of the given number of seconds.
    pub fn new(store: Store, table: &'static str, lease_seconds: u64) -> Self {
        Self {
            store,
            table,
            length: Duration::from_secs(lease_seconds.max(1)),
            watched: Arc::default(),
        }
    }

    /// Returns the interval in which a worker should renew its lease, a third of the lease.
    pub fn renewal(&self) -> Duration {
        self.length / 3
    }

    /// Renews a lease.
    ///
    /// # Errors
    /// A failure of the store. The inner error is [`Lost`].
    pub async fn renew(&self, lease: &Lease) -> Result<Result<(), Lost>, StoreError> {
        let mut tx = self.store.begin().await?;
        let renewed = self.hold(&mut tx, lease).await?;
        tx.commit().await?;
        Ok(renewed)
    }

    /// Checks within a transaction that a lease still holds, and renews it. The transaction's writes then belong to
    /// the lease's holder.
    ///
    /// # Errors
    /// A failure of the store. The inner error is [`Lost`].
    pub async fn hold(&self, tx: &mut Tx, lease: &Lease) -> Result<Result<(), Lost>, StoreError> {
        self.beat(tx, lease, "").await
    }

    /// Like [`Tasks::hold`], for a transaction that brings the task nearer to its end. Resets the counters of faults
    /// and outages.
    ///
    /// # Errors
    /// A failure of the store. The inner error is [`Lost`].
    pub async fn step(&self, tx: &mut Tx, lease: &Lease) -> Result<Result<(), Lost>, StoreError> {
        self.beat(tx, lease, ", faults = 0, outages = 0").await
    }

    async fn beat(
        &self,
        tx: &mut Tx,
        lease: &Lease,
        counters: &'static str,
    ) -> Result<Result<(), Lost>, StoreError> {
        let beat = AssertSqlSafe(format!(
            "UPDATE {} SET lease_beat = lease_beat + 1{counters} \
             WHERE id = $1 AND lease_token = $2 AND state = 'running'",
            self.table
        ));
        let done = sqlx::query(beat)
            .bind(&lease.id)
            .bind(&lease.token)
            .execute(&mut **tx)
            .await?;
        Ok(held(done.rows_affected()))
    }

    /// Gives a task back for another worker, which may take it at once. The task itself did not fail.
    ///
    /// # Errors
    /// A failure of the store. The inner error is [`Lost`].
    pub async fn give_back(&self, lease: &Lease) -> Result<Result<(), Lost>, StoreError> {
        let mut tx = self.store.begin().await?;
        let given = self.free(&mut tx, lease, 0, "faults = 0").await?;
        tx.commit().await?;
        Ok(given)
    }

    /// Returns the numbers of waiting and running tasks, and the age of the oldest of both.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn depth(&self) -> Result<Depth, StoreError> {
        let count = AssertSqlSafe(format!(
            "SELECT COUNT(CASE WHEN state = 'queued' THEN 1 END) AS queued, \
             COUNT(CASE WHEN state = 'running' THEN 1 END) AS running, \
             COALESCE(MIN(created_at), 0) AS oldest \
             FROM {} WHERE state IN ('queued', 'running')",
            self.table
        ));
        let row = sqlx::query(count).fetch_one(self.store.pool()).await?;
        let oldest: Millis = row.try_get("oldest")?;
        let age = match oldest {
            0 => 0,
            oldest => now().saturating_sub(oldest).max(0),
        };
        Ok(Depth {
            queued: row.try_get("queued")?,
            running: row.try_get("running")?,
            oldest_seconds: age / 1000,
        })
    }

    /// Takes a task from its worker, so that any worker may take it at once. This is for operators who know that the
    /// worker is gone; a worker that still exists notices at its next write. Returns whether a worker had the task.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn release(&self, id: &str) -> Result<bool, StoreError> {
        let release = AssertSqlSafe(format!(
            "UPDATE {} SET lease_token = '', lease_expires = 0 \
             WHERE id = $1 AND state = 'running' AND lease_token <> ''",
            self.table
        ));
        let done = sqlx::query(release)
            .bind(id)
            .execute(self.store.pool())
            .await?;
        Ok(done.rows_affected() > 0)
    }

    /// Gives a task back for any worker after a pause of at most [`MAX_PAUSE`]. A change of its state in the same
    /// transaction must come afterwards.
    ///
    /// # Errors
    /// A failure of the store. The inner error is [`Lost`].
    pub async fn put_off(
        &self,
        tx: &mut Tx,
        lease: &Lease,
        cause: Cause,
        after: Duration,
    ) -> Result<Result<(), Lost>, StoreError> {
        let until = match millis(after.min(MAX_PAUSE)) {
            0 => 0, // independent of the clock
            pause => now().saturating_add(pause),
        };
        let counters = match cause {
            Cause::Outage => "faults = 0, outages = outages + 1",
            Cause::Fault => "outages = 0", // the attempt was counted when it began
        };
        self.free(tx, lease, until, counters).await
    }

    async fn free(
        &self,
        tx: &mut Tx,
        lease: &Lease,
        until: Millis,
        counters: &'static str,
    ) -> Result<Result<(), Lost>, StoreError> {
        let free = AssertSqlSafe(format!(
            "UPDATE {} SET lease_token = '', lease_expires = $1, {counters} \
             WHERE id = $2 AND lease_token = $3 AND state = 'running'",
            self.table
        ));
        let done = sqlx::query(free)
            .bind(until)
            .bind(&lease.id)
            .bind(&lease.token)
            .execute(&mut **tx)
            .await?;
        Ok(held(done.rows_affected()))
    }

    /// Returns a task's numbers of consecutive faults and outages, if its lease holds.
    ///
    /// # Errors
    /// A failure of the store. The inner error is [`Lost`].
    pub async fn counters(
        &self,
        tx: &mut Tx,
        lease: &Lease,
    ) -> Result<Result<(u32, u32), Lost>, StoreError> {
        let counters = self.store.locking(&format!(
            "SELECT faults, outages FROM {} \
             WHERE id = $1 AND lease_token = $2 AND state = 'running'",
            self.table
        ));
        let row = sqlx::query(counters)
            .bind(&lease.id)
            .bind(&lease.token)
            .fetch_optional(&mut **tx)
            .await?;
        let Some(row) = row else {
            return Ok(Err(Lost));
        };
        let count = |n: i64| u32::try_from(n).unwrap_or(u32::MAX);
        Ok(Ok((
            count(row.try_get("faults")?),
            count(row.try_get("outages")?),
        )))
    }

    /// Begins a transaction on the table's store.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn begin(&self) -> Result<Tx, StoreError> {
        self.store.begin().await
    }
}

fn held(rows: u64) -> Result<(), Lost> {
    if rows == 1 { Ok(()) } else { Err(Lost) }
}

fn millis(time: Duration) -> Millis {
    Millis::try_from(time.as_millis()).unwrap_or(Millis::MAX)
}

#[cfg(test)]
mod tests;

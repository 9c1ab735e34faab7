//! Long work under a lease: who takes a task has it as long as it renews the lease while at work.
//! A killed worker's task goes to another; a worker that lost its lease finds out at its next
//! write and stops.
//!
//! A lease is known by its token and its beat, a number that every renewal raises. No clock of
//! one machine is compared with another's: whoever wants a task that someone has must have seen,
//! by its own steady clock, the same token and beat for the length of a lease.
//!
//! A table of tasks has the columns `id` (text), `owner` (text: whose task it is), `state` (text:
//! `queued`, `running`, or anything that is final), `lease_token` (text; empty where nobody has
//! the task), `lease_beat`, `lease_expires` (milliseconds since 1970: when a task that nobody
//! has may be taken), `attempts`, `faults` (attempts in a row without a step; the one under way is
//! one of them), `outages` (in a row) and `created_at`.

use sqlx::{AssertSqlSafe, Row as _};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::clock::{Millis, now};
use crate::store::{Store, StoreError, Tx};
use take::Watched;

mod take;

/// A task is put off for so long at most. One that seems to be put off for longer was put off by
/// a clock that has been set back since, and waits no more.
pub const MAX_PAUSE: Duration = Duration::from_secs(60);

/// A table of tasks. Clones watch others' leases together.
#[derive(Clone, Debug)]
pub struct Tasks {
    store: Store,
    table: &'static str,
    length: Duration,
    /// Leases as they were seen last, by task.
    watched: Arc<Mutex<HashMap<String, Watched>>>,
}

/// How much there is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depth {
    /// Tasks that wait.
    pub queued: i64,
    /// Tasks that somebody has.
    pub running: i64,
    /// Seconds since the oldest of both was made.
    pub oldest_seconds: i64,
}

/// A task taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The task.
    pub id: String,
    /// Whose it is.
    pub owner: String,
    /// Proves that it is ours.
    pub token: String,
    /// How often it has been taken, this time included. Restarts, kills and outages count, so
    /// this says nothing of faults.
    pub attempt: u32,
    /// Attempts in a row before this one that ended without a step, also by a kill. Outages and
    /// restarts in order do not count.
    pub faults: u32,
}

/// What a task is put off for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Something is away that will be back: however long it lasts, no fault.
    Outage,
    /// A fault of the service itself.
    Fault,
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
            length: Duration::from_secs(lease_seconds.max(1)),
            watched: Arc::default(),
        }
    }

    /// How often a worker should renew: three times a lease.
    pub fn renewal(&self) -> Duration {
        self.length / 3
    }

    /// Renews a lease.
    ///
    /// # Errors
    /// A failure of the store; within, [`Lost`].
    pub async fn renew(&self, lease: &Lease) -> Result<Result<(), Lost>, StoreError> {
        let mut tx = self.store.begin().await?;
        let renewed = self.hold(&mut tx, lease).await?;
        tx.commit().await?;
        Ok(renewed)
    }

    /// Makes sure, within a transaction, that a lease still holds, and renews it; the
    /// transaction's writes then belong to its holder alone.
    ///
    /// # Errors
    /// A failure of the store; within, [`Lost`].
    pub async fn hold(&self, tx: &mut Tx, lease: &Lease) -> Result<Result<(), Lost>, StoreError> {
        self.beat(tx, lease, "").await
    }

    /// As [`Tasks::hold`], for a transaction that brings the task nearer to its end: faults and
    /// outages are counted anew from here.
    ///
    /// # Errors
    /// A failure of the store; within, [`Lost`].
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

    /// Puts a task back for another worker, at once: not for its sake.
    ///
    /// # Errors
    /// A failure of the store; within, [`Lost`].
    pub async fn give_back(&self, lease: &Lease) -> Result<Result<(), Lost>, StoreError> {
        let mut tx = self.store.begin().await?;
        let given = self.free(&mut tx, lease, 0, "faults = 0").await?;
        tx.commit().await?;
        Ok(given)
    }

    /// How many tasks wait, how many somebody has, and how old the oldest of both is.
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

    /// Takes a task from whoever has it, so that any worker may have it at once: for an operator who
    /// knows that its worker is gone. Whether somebody had it; one that is there finds out at its
    /// next write.
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

    /// Puts a task back for any worker after a while, at most [`MAX_PAUSE`]. Whoever changes
    /// its state in the same transaction does so afterwards.
    ///
    /// # Errors
    /// A failure of the store; within, [`Lost`].
    pub async fn put_off(
        &self,
        tx: &mut Tx,
        lease: &Lease,
        cause: Cause,
        after: Duration,
    ) -> Result<Result<(), Lost>, StoreError> {
        let until = match millis(after.min(MAX_PAUSE)) {
            0 => 0, // whatever the clock says
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

    /// A task's faults and outages in a row, while its lease holds.
    ///
    /// # Errors
    /// A failure of the store; within, [`Lost`].
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

    /// A transaction over the table's store.
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

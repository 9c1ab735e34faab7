//! Taking a task that no worker has, or whose worker has not renewed its lease for too long.

use sqlx::{AssertSqlSafe, Row as _};
use std::collections::HashMap;
use std::sync::{MutexGuard, PoisonError};
use std::time::Instant;
use uuid::Uuid;

use super::{Lease, MAX_PAUSE, Tasks, millis};
use crate::clock::{Millis, now};
use crate::rows;
use crate::store::{Row, StoreError, Tx};

/// A lease, and the time since which it has been seen without a renewal.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    owner: String,
    token: String,
    beat: i64,
    since: Instant,
}

/// Number of tasks among which one is taken if the first is damaged.
const LOOK_BEHIND: usize = 20;

/// The columns that describe a lease.
const COLUMNS: &str = "id, owner, dataset, attempts, faults";

impl Tasks {
    /// Takes a task of any owner not in `served`. The first choice is the oldest task whose lease was not renewed for
    /// its length while this process watched. The second is a task without a worker: the oldest one of the owners
    /// whose tasks are taken least, and of these of the datasets whose tasks are taken least.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn take(&self, served: &[String]) -> Result<Option<Lease>, StoreError> {
        let taken = self.take_at(served, now(), Instant::now).await;
        if taken.is_err() {
            // While the store fails, no worker can renew its lease, so watching starts again.
            self.watches().clear();
        }
        taken
    }

    /// Does the work of [`Tasks::take`] with given clocks: the time of day, and a steady clock.
    pub(super) async fn take_at(
        &self,
        served: &[String],
        now: Millis,
        steady: impl Fn() -> Instant,
    ) -> Result<Option<Lease>, StoreError> {
        let abandoned = self.abandoned(steady).await?;
        let mut tx = self.store.begin().await?;
        for (id, last) in abandoned {
            if served.contains(&last.owner) {
                continue;
            }
            let same = self.store.locking_free(&format!(
                "SELECT {COLUMNS} FROM {} WHERE id = $1 AND state = 'running' \
                 AND lease_token = $2 AND lease_beat = $3",
                self.table
            ));
            let row = sqlx::query(same)
                .bind(&id)
                .bind(&last.token)
                .bind(last.beat)
                .fetch_optional(&mut *tx)
                .await?;
            if let Some(row) = row {
                return self.taken(tx, &row).await.map(Some);
            }
        }
        let oldest = match self.oldest_free(&mut tx, served, now, 1).await {
            // The first task is damaged, which must not stop the others.
            Err(StoreError::Decode(_)) => self.oldest_free(&mut tx, served, now, LOOK_BEHIND).await,
            oldest => oldest,
        };
        match oldest? {
            Some(row) => self.taken(tx, &row).await.map(Some),
            None => Ok(None),
        }
    }

    /// Observes all leases. Returns those that have been seen without a renewal for long enough, the oldest task
    /// first.
    async fn abandoned(
        &self,
        steady: impl Fn() -> Instant,
    ) -> Result<Vec<(String, Watched)>, StoreError> {
        let held = AssertSqlSafe(format!(
            "SELECT id, owner, lease_token, lease_beat FROM {} \
             WHERE state = 'running' AND lease_token <> '' ORDER BY created_at, id",
            self.table
        ));
        // The time before this query is compared with earlier observations, and the time after it with later ones. An
        // observation is therefore never counted as longer than it was.
        let before = steady();
        let rows = sqlx::query(held).fetch(self.store.pool());
        let rows = rows::readable(self.table, rows).await?.rows;
        let after = steady();
        let mut watched = self.watches();
        let mut seen = HashMap::with_capacity(rows.len());
        let mut abandoned = Vec::new();
        for row in rows {
            let id: String = row.try_get("id")?;
            let mut lease = Watched {
                owner: row.try_get("owner")?,
                token: row.try_get("lease_token")?,
                beat: row.try_get("lease_beat")?,
                since: after,
            };
            if let Some(last) = watched.get(&id)
                && (&last.token, last.beat) == (&lease.token, lease.beat)
            {
                lease.since = last.since;
            }
            if before.saturating_duration_since(lease.since) >= self.length {
                abandoned.push((id.clone(), lease.clone()));
            }
            seen.insert(id, lease);
        }
        *watched = seen;
        Ok(abandoned)
    }

    /// Returns a task that has no worker and is not postponed: the first of `most` rows that can be read.
    async fn oldest_free(
        &self,
        tx: &mut Tx,
        served: &[String],
        now: Millis,
        most: usize,
    ) -> Result<Option<Row>, StoreError> {
        let others: String = (3..)
            .zip(served)
            .map(|(n, _)| format!(" AND owner <> ${n}"))
            .collect();
        let oldest = self.store.locking_free(&format!(
            "SELECT {COLUMNS} FROM {table} AS task WHERE (state = 'queued' OR (state = 'running' \
             AND lease_token = '')) \
             AND (lease_expires <= $1 OR lease_expires > $2){others} \
             ORDER BY (SELECT COUNT(*) FROM {table} AS other WHERE other.owner = task.owner \
             AND other.state = 'running' AND other.lease_token <> ''), \
             (SELECT COUNT(*) FROM {table} AS other WHERE other.dataset = task.dataset \
             AND other.state = 'running' AND other.lease_token <> ''), created_at, id LIMIT {most}",
            table = self.table
        ));
        let query = sqlx::query(oldest)
            .bind(now)
            .bind(now.saturating_add(millis(MAX_PAUSE)));
        let query = served.iter().fold(query, |query, owner| query.bind(owner));
        if most == 1 {
            return query.fetch_optional(&mut **tx).await;
        }
        let rows = rows::readable(self.table, query.fetch(&mut **tx)).await?;
        Ok(rows.rows.into_iter().next())
    }

    /// Takes a task whose row is locked.
    async fn taken(&self, mut tx: Tx, row: &Row) -> Result<Lease, StoreError> {
        let (attempts, faults): (i64, i64) = (row.try_get("attempts")?, row.try_get("faults")?);
        let lease = Lease {
            id: row.try_get("id")?,
            owner: row.try_get("owner")?,
            dataset: row.try_get("dataset")?,
            token: Uuid::new_v4().to_string(),
            attempt: u32::try_from(attempts + 1).unwrap_or(u32::MAX),
            faults: u32::try_from(faults).unwrap_or(u32::MAX),
        };
        let take = AssertSqlSafe(format!(
            "UPDATE {} SET state = 'running', lease_token = $1, lease_expires = 0, \
             attempts = $2, faults = faults + 1 WHERE id = $3",
            self.table
        ));
        sqlx::query(take)
            .bind(&lease.token)
            .bind(i64::from(lease.attempt))
            .bind(&lease.id)
            .execute(&mut *tx)
            .await?;
        tx.commit().await?;
        Ok(lease)
    }

    fn watches(&self) -> MutexGuard<'_, HashMap<String, Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

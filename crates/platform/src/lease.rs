//! Long work under a lease: who takes a task has it as long as it renews the lease while at work.
//! A killed worker's task goes to another; a worker that lost its lease finds out at its next
//! write and stops.
//!
//! A lease is known by its token and its beat, a number that every renewal raises. No clock of
//! one machine is compared with another's: whoever wants a task that someone has must have seen,
//! by its own steady clock, the same token and beat for the length of a lease.
//!
//! A table of tasks has the columns `id` (text), `owner` (text: whose task it is), `state` (text:
//! `queued`, `running`, or anything that is final), `lease_token` (text; none or empty where nobody
//! has the task), `lease_beat`, `lease_expires` (milliseconds since 1970: when a task that nobody
//! has may be taken), `attempts`, `faults` (attempts in a row without a step; the one under way is
//! one of them), `outages` (in a row) and `created_at`.

use sqlx::{AssertSqlSafe, Row as _};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use uuid::Uuid;

use crate::clock::{Millis, now};
use crate::store::{Row, Store, StoreError, Tx};

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

/// A lease, and since when it is seen without a renewal.
#[derive(Clone, Debug)]
struct Watched {
    owner: String,
    token: String,
    beat: i64,
    since: Instant,
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

/// A table's columns that say what a lease is of.
const COLUMNS: &str = "id, owner, attempts, faults";

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

    /// Takes a task of anyone but `served`: the oldest whose lease was not renewed for its length
    /// while this process watched, or else one that nobody has: of the owners whose tasks have the
    /// fewest workers at the moment, the oldest.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn take(&self, served: &[String]) -> Result<Option<Lease>, StoreError> {
        let taken = self.take_at(served, now(), Instant::now).await;
        if taken.is_err() {
            // While the store fails nobody can renew: watching begins anew.
            self.watches().clear();
        }
        taken
    }

    /// [`Tasks::take`] by given clocks: the time of day, and one that nobody sets.
    async fn take_at(
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
        match self.oldest_free(&mut tx, served, now).await? {
            Some(row) => self.taken(tx, &row).await.map(Some),
            None => Ok(None),
        }
    }

    /// Looks at all leases, and returns those that were seen without a renewal for long enough,
    /// the oldest task first.
    async fn abandoned(
        &self,
        steady: impl Fn() -> Instant,
    ) -> Result<Vec<(String, Watched)>, StoreError> {
        let held = AssertSqlSafe(format!(
            "SELECT id, owner, lease_token, lease_beat FROM {} \
             WHERE state = 'running' AND lease_token <> '' ORDER BY created_at, id",
            self.table
        ));
        // What is compared with an earlier look is a time before this one; what later looks will
        // be compared with, a time after it: so nothing is seen for longer than it was.
        let before = steady();
        let rows = sqlx::query(held).fetch_all(self.store.pool()).await?;
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

    /// A task that nobody has and that is not put off.
    async fn oldest_free(
        &self,
        tx: &mut Tx,
        served: &[String],
        now: Millis,
    ) -> Result<Option<Row>, StoreError> {
        let others: String = (3..)
            .zip(served)
            .map(|(n, _)| format!(" AND owner <> ${n}"))
            .collect();
        let oldest = self.store.locking_free(&format!(
            "SELECT {COLUMNS} FROM {table} AS task WHERE (state = 'queued' OR (state = 'running' \
             AND (lease_token IS NULL OR lease_token = ''))) \
             AND (lease_expires <= $1 OR lease_expires > $2){others} \
             ORDER BY (SELECT COUNT(*) FROM {table} AS other WHERE other.owner = task.owner \
             AND other.state = 'running' AND other.lease_token <> ''), created_at, id LIMIT 1",
            table = self.table
        ));
        let query = sqlx::query(oldest)
            .bind(now)
            .bind(now.saturating_add(millis(MAX_PAUSE)));
        let query = served.iter().fold(query, |query, owner| query.bind(owner));
        query.fetch_optional(&mut **tx).await
    }

    /// Makes a task ours whose row is locked.
    async fn taken(&self, mut tx: Tx, row: &Row) -> Result<Lease, StoreError> {
        let (attempts, faults): (i64, i64) = (row.try_get("attempts")?, row.try_get("faults")?);
        let lease = Lease {
            id: row.try_get("id")?,
            owner: row.try_get("owner")?,
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
mod tests {
    use super::*;
    use crate::config::Database;
    use crate::store::Step;
    use tempfile::TempDir;

    const TABLE: &str = "CREATE TABLE tasks (id TEXT PRIMARY KEY, owner TEXT NOT NULL, \
         state TEXT NOT NULL, lease_token TEXT, lease_expires BIGINT NOT NULL, \
         lease_beat BIGINT NOT NULL DEFAULT 0, attempts BIGINT NOT NULL, \
         faults BIGINT NOT NULL DEFAULT 0, outages BIGINT NOT NULL DEFAULT 0, \
         created_at BIGINT NOT NULL)";

    /// The time of day at the beginning of a test.
    const NOON: Millis = 1_800_000_000_000;

    const HOUR: Millis = 3_600_000;

    /// A store with a queued task.
    async fn store() -> (Store, TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let config = Database {
            url: format!("sqlite://{}/store.db", folder.path().display()),
            connections: 2,
        };
        let step = Step {
            version: 1,
            name: "tasks",
            sqlite: TABLE,
            postgres: TABLE,
        };
        let store = Store::open(&config, &[step]).await.unwrap();
        add(&store, "a", "ana", 0).await;
        (store, folder)
    }

    async fn add(store: &Store, id: &str, owner: &str, created_at: i64) {
        let add = "INSERT INTO tasks (id, owner, state, lease_expires, attempts, created_at) \
                   VALUES ($1, $2, 'queued', 0, 0, $3)";
        let add = sqlx::query(add).bind(id).bind(owner).bind(created_at);
        add.execute(store.pool()).await.unwrap();
    }

    fn process(store: &Store) -> Tasks {
        Tasks::new(store.clone(), "tasks", 30)
    }

    /// A look for a task by a clock of the day and so many seconds of a steady one.
    async fn look(tasks: &Tasks, now: Millis, seconds: u64, start: Instant) -> Option<Lease> {
        let steady = || start + Duration::from_secs(seconds);
        tasks.take_at(&[], now, steady).await.unwrap()
    }

    #[tokio::test]
    async fn only_what_was_watched_for_a_lease_is_taken_over() {
        let (store, _folder) = store().await;
        let (first, second) = (process(&store), process(&store));
        let start = Instant::now();
        let lease = look(&first, NOON, 0, start).await.unwrap();
        assert_eq!((lease.id.as_str(), lease.attempt), ("a", 1));
        // A renewal between any two looks.
        for seconds in (1..200).step_by(20) {
            let now = NOON + seconds * 1000;
            let seconds = u64::try_from(seconds).unwrap();
            assert_eq!(look(&second, now, seconds, start).await, None);
            assert_eq!(first.renew(&lease).await.unwrap(), Ok(()));
        }
        // None any more; looked at first at 200 s.
        for seconds in [200, 215, 229] {
            assert_eq!(look(&second, NOON, seconds, start).await, None);
        }
        // Another process has not watched for as long.
        assert_eq!(look(&process(&store), NOON, 231, start).await, None);
        let taken = look(&second.clone(), NOON, 231, start).await.unwrap();
        assert_eq!((taken.id.as_str(), taken.attempt), ("a", 2));
        assert_eq!(first.renew(&lease).await.unwrap(), Err(Lost));
        assert_eq!(first.give_back(&lease).await.unwrap(), Err(Lost));
        assert_eq!(second.renew(&taken).await.unwrap(), Ok(()));
    }

    #[tokio::test]
    async fn the_time_of_day_may_jump_while_a_task_is_held() {
        for jump in [HOUR, -HOUR] {
            let (store, _folder) = store().await;
            let (first, second) = (process(&store), process(&store));
            let start = Instant::now();
            let lease = look(&first, NOON, 0, start).await.unwrap();
            for (seconds, now) in [(1, NOON + jump), (20, NOON), (25, NOON - jump)] {
                assert_eq!(look(&second, now, seconds, start).await, None, "{jump}");
            }
            assert_eq!(first.renew(&lease).await.unwrap(), Ok(()));
            assert_eq!(look(&second, NOON + jump, 40, start).await, None, "{jump}");
            let taken = look(&second, NOON + jump, 71, start).await;
            assert!(taken.is_some(), "{jump}: the task hangs");
        }
    }

    #[tokio::test]
    async fn a_task_put_off_waits_by_the_clock_but_not_for_a_clock_set_back() {
        let (store, _folder) = store().await;
        let tasks = process(&store);
        let start = Instant::now();
        let mut lease = look(&tasks, NOON, 0, start).await.unwrap();
        // By the true clock, which is that of put_off.
        for (after, later, taken) in [
            (Duration::from_secs(20), 0, false),
            (Duration::from_secs(20), 50_000, true),
            (Duration::from_secs(3600), 30_000, false),
            (Duration::from_secs(3600), 90_000, true),
            (Duration::from_secs(20), -HOUR, true),
            (Duration::ZERO, -HOUR, true),
        ] {
            let before = now();
            let mut tx = store.begin().await.unwrap();
            let put_off = tasks.put_off(&mut tx, &lease, Cause::Outage, after).await;
            let put_off = put_off.unwrap();
            assert_eq!(put_off, Ok(()));
            tx.commit().await.unwrap();
            assert_eq!(tasks.renew(&lease).await.unwrap(), Err(Lost));
            let looked = look(&tasks, before + later, 0, start).await;
            assert_eq!(
                looked.is_some(),
                taken,
                "{after:?}, looked {later} ms later"
            );
            lease = match looked {
                Some(lease) => lease,
                None => look(&tasks, before + 100 * HOUR, 0, start).await.unwrap(),
            };
        }
    }

    #[tokio::test]
    async fn a_task_that_ended_or_began_anew_is_no_longer_held() {
        let (store, _folder) = store().await;
        let tasks = process(&store);
        let start = Instant::now();
        let lease = look(&tasks, NOON, 0, start).await.unwrap();
        let become_ = |state: &'static str| {
            let change = AssertSqlSafe(format!("UPDATE tasks SET state = '{state}'"));
            sqlx::query(change).execute(store.pool())
        };
        become_("cancelled").await.unwrap();
        assert_eq!(tasks.renew(&lease).await.unwrap(), Err(Lost));
        for seconds in [1, 40, 80] {
            assert_eq!(look(&tasks, NOON, seconds, start).await, None);
        }
        become_("queued").await.unwrap();
        let again = look(&tasks, NOON, 81, start).await.unwrap();
        assert_eq!(again.attempt, 2);
        assert_eq!(tasks.renew(&lease).await.unwrap(), Err(Lost));
    }

    #[tokio::test]
    async fn owners_take_turns_and_one_that_is_served_waits() {
        let (store, _folder) = store().await;
        for (id, owner, at) in [
            ("b", "ana", 1),
            ("c", "ana", 2),
            ("d", "eve", 3),
            ("e", "eve", 4),
        ] {
            add(&store, id, owner, at).await;
        }
        let tasks = process(&store);
        let take = async |served: &[&str]| {
            let served: Vec<String> = served.iter().map(|&owner| owner.to_owned()).collect();
            tasks.take(&served).await.unwrap().map(|lease| lease.id)
        };
        let mut taken = Vec::new();
        for _ in 0..3 {
            taken.push(take(&[]).await.unwrap());
        }
        assert_eq!(taken, ["a", "d", "b"]);
        assert_eq!(take(&["ana"]).await.as_deref(), Some("e"));
        assert_eq!(take(&["ana", "eve"]).await, None);
        assert_eq!(take(&[]).await.as_deref(), Some("c"));
        assert_eq!(take(&[]).await, None);
    }

    #[tokio::test]
    async fn attempts_without_a_step_are_counted_and_outages_are_not() {
        let (store, _folder) = store().await;
        let tasks = process(&store);
        let start = Instant::now();
        let put_off = async |lease: &Lease, cause| {
            let mut tx = store.begin().await.unwrap();
            let counters = tasks.counters(&mut tx, lease).await.unwrap().unwrap();
            let after = Duration::ZERO;
            assert!(
                tasks
                    .put_off(&mut tx, lease, cause, after)
                    .await
                    .unwrap()
                    .is_ok()
            );
            tx.commit().await.unwrap();
            counters
        };
        let take = async || look(&tasks, now() + 1, 0, start).await.unwrap();
        for faults in 0..3 {
            let lease = take().await;
            assert_eq!(lease.faults, faults);
            assert_eq!(put_off(&lease, Cause::Fault).await, (faults + 1, 0));
        }
        let lease = take().await;
        assert_eq!(lease.faults, 3);
        assert_eq!(put_off(&lease, Cause::Outage).await, (4, 0));
        let lease = take().await;
        assert_eq!(lease.faults, 0);
        let mut tx = store.begin().await.unwrap();
        assert_eq!(tasks.counters(&mut tx, &lease).await.unwrap(), Ok((1, 1)));
        assert_eq!(tasks.step(&mut tx, &lease).await.unwrap(), Ok(()));
        assert_eq!(tasks.counters(&mut tx, &lease).await.unwrap(), Ok((0, 0)));
        tx.commit().await.unwrap();
        assert_eq!(put_off(&lease, Cause::Fault).await, (0, 0));
        let lease = take().await;
        assert_eq!(tasks.give_back(&lease).await.unwrap(), Ok(()));
        assert_eq!(take().await.faults, 0);
    }
}

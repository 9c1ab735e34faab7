//! The worker of a task does not depend on anyone's clock.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use crate::common;

use common::{TASKS, queue};
use fhaim_kit::config::{postgres, sqlite};
use fhaim_platform::config::Database;
use fhaim_platform::lease::{Lease, Lost, Tasks};
use fhaim_platform::store::Store;
use std::time::{Duration, Instant};

/// Error of the clock of a worker's machine.
const HOUR: i64 = 3_600_000;

struct Table {
    store: Store,
}

impl Table {
    async fn new(database: &Database) -> Self {
        Self {
            store: Store::open(database, &[TASKS]).await.unwrap(),
        }
    }

    /// Returns the table as another process sees it.
    fn process(&self) -> Tasks {
        Tasks::new(self.store.clone(), "tasks", 1)
    }

    /// Changes what a worker wrote by its clock, as if the clock were wrong.
    async fn skew(&self, by: i64) {
        sqlx::query("UPDATE tasks SET lease_expires = lease_expires + $1")
            .bind(by)
            .execute(self.store.pool())
            .await
            .unwrap();
    }
}

/// Looks for a task like an idle worker, for at most the given time.
async fn look(tasks: &Tasks, patience: Duration) -> Option<Lease> {
    let started = Instant::now();
    while started.elapsed() < patience {
        if let Some(lease) = tasks.take(&[]).await.unwrap() {
            return Some(lease);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    None
}

/// Checks that a task stays with a worker that renews its lease, and passes to another worker when the first is
/// killed, independent of the first worker's clock.
async fn check_task_has_one_worker(table: &Table, clock_error: i64) {
    queue(&table.store, "a").await;
    let (first, second) = (table.process(), table.process());
    let lease = first.take(&[]).await.unwrap().unwrap();
    for _ in 0..8 {
        table.skew(clock_error).await;
        assert_eq!(second.take(&[]).await.unwrap(), None);
        tokio::time::sleep(first.renewal()).await;
        assert_eq!(first.renew(&lease).await.unwrap(), Ok(()));
    }
    table.skew(clock_error).await;
    let taken = look(&second, Duration::from_secs(20)).await;
    let taken = taken.expect("the second worker takes the task");
    assert_eq!((taken.id.as_str(), taken.attempt), ("a", 2));
    assert_eq!(first.renew(&lease).await.unwrap(), Err(Lost));
    assert_eq!(second.renew(&taken).await.unwrap(), Ok(()));
}

#[tokio::test]
async fn task_has_one_worker_when_a_clock_is_an_hour_ahead() {
    let folder = tempfile::tempdir().unwrap();
    check_task_has_one_worker(&Table::new(&sqlite(folder.path())).await, HOUR).await;
}

#[tokio::test]
async fn task_has_one_worker_when_a_clock_is_an_hour_behind() {
    let folder = tempfile::tempdir().unwrap();
    check_task_has_one_worker(&Table::new(&sqlite(folder.path())).await, -HOUR).await;
}

#[tokio::test]
#[ignore = "needs FHAIM_TEST_POSTGRES"]
async fn task_has_one_worker_when_a_clock_is_wrong_on_postgres() {
    for clock_error in [HOUR, -HOUR] {
        check_task_has_one_worker(&Table::new(&postgres().await).await, clock_error).await;
    }
}

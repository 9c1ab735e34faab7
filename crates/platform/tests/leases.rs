//! Who has a task does not hang on what anyone's clock says.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

mod common;

use common::{TASKS, queue};
use fhaim_kit::config::{postgres, sqlite};
use fhaim_platform::config::Database;
use fhaim_platform::lease::{Lease, Tasks};
use fhaim_platform::store::Store;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// What the clock of a worker's machine is off.
const HOUR: i64 = 3_600_000;

struct Table {
    store: Store,
    _folder: TempDir,
}

impl Table {
    async fn new(database: Option<Database>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let database = database.unwrap_or_else(|| sqlite(folder.path()));
        let store = Store::open(&database, &[TASKS]).await.unwrap();
        Self {
            store,
            _folder: folder,
        }
    }

    /// The table as another process sees it.
    fn process(&self) -> Tasks {
        Tasks::new(self.store.clone(), "tasks", 1)
    }

    /// Whatever a worker wrote by its clock, had that been off.
    async fn skew(&self, by: i64) {
        sqlx::query("UPDATE tasks SET lease_expires = lease_expires + $1")
            .bind(by)
            .execute(self.store.pool())
            .await
            .unwrap();
    }
}

/// Looks for a task as an idle worker does, for so long at most.
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

/// Databases to test over.
async fn databases() -> Vec<Option<Database>> {
    let mut databases = vec![None];
    if let Some(database) = postgres().await {
        databases.push(Some(database));
    }
    databases
}

#[tokio::test]
async fn a_clock_off_by_an_hour_neither_hangs_a_task_nor_shares_it() {
    for by in [HOUR, -HOUR] {
        for database in databases().await {
            let table = Table::new(database).await;
            queue(&table.store, "a").await;
            let (first, second) = (table.process(), table.process());
            let lease = first.take(&[]).await.unwrap().unwrap();
            // As long as the first worker renews, nobody else gets the task.
            for _ in 0..8 {
                table.skew(by).await;
                assert_eq!(second.take(&[]).await.unwrap(), None, "{by}");
                tokio::time::sleep(first.renewal()).await;
                assert_eq!(first.renew(&lease).await.unwrap(), Ok(()), "{by}");
            }
            // When it is killed, another does.
            table.skew(by).await;
            let taken = look(&second, Duration::from_secs(20)).await;
            let taken = taken.unwrap_or_else(|| panic!("{by}: the task hangs"));
            assert_eq!((taken.id.as_str(), taken.attempt), ("a", 2));
            assert!(first.renew(&lease).await.unwrap().is_err());
            assert!(second.renew(&taken).await.unwrap().is_ok());
        }
    }
}

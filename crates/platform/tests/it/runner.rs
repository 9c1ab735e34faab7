//! Tasks that the runner runs: postponed, given up, given back, and shared between owners.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use crate::common;

use common::TASKS;
use fhaim_kit::config::{in_folder, sqlite};
use fhaim_platform::Failure;
use fhaim_platform::config::Common;
use fhaim_platform::lease::{Lease, Tasks};
use fhaim_platform::runner::{self, Policy, Stop, Turn, Work};
use fhaim_platform::shutdown::{Stopper, channel};
use fhaim_platform::store::{Store, Tx};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// Work that does what the task's identifier says, and records every attempt.
#[derive(Clone)]
struct Tale {
    store: Store,
    tasks: Tasks,
    queued: Arc<Notify>,
    attempts: Arc<Mutex<Vec<String>>>,
}

impl Tale {
    fn attempts(&self, id: &str) -> usize {
        let attempts = self.attempts.lock().unwrap();
        attempts.iter().filter(|&other| other == id).count()
    }
}

impl Work for Tale {
    const TASK: &'static str = "tale";
    const POLICY: Policy = Policy {
        first_pause: Duration::from_millis(1),
        max_faults: 3,
    };

    fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    fn queued(&self) -> &Notify {
        &self.queued
    }

    async fn attempt(&self, lease: &Lease, turn: &Turn) -> Result<(), Stop> {
        self.attempts.lock().unwrap().push(lease.id.clone());
        match lease.id.split('-').next().unwrap() {
            "fault" => Err(Stop::Fault(Failure::internal("a fault"))),
            "panic" => panic!("on purpose"),
            "fail" => Err(Stop::Failed("it cannot be".to_owned())),
            "outage" if self.attempts(&lease.id) < 6 => Err(Stop::Outage("away".to_owned())),
            "hang" => std::future::pending().await,
            "wait" => turn.wait(std::future::pending()).await,
            _ => {
                let mut tx = self.store.begin().await?;
                self.tasks.step(&mut tx, lease).await??;
                sqlx::query("UPDATE tasks SET state = 'done' WHERE id = $1")
                    .bind(&lease.id)
                    .execute(&mut *tx)
                    .await?;
                Ok(tx.commit().await?)
            }
        }
    }

    async fn fail(&self, tx: &mut Tx, lease: &Lease, reason: &str) -> Result<(), Failure> {
        sqlx::query("UPDATE tasks SET state = $1 WHERE id = $2")
            .bind(format!("failed: {reason}"))
            .bind(&lease.id)
            .execute(&mut **tx)
            .await?;
        Ok(())
    }

    fn given_up(attempts: u32) -> String {
        format!("given up after {attempts}")
    }
}

struct Process {
    tale: Tale,
    stopper: Stopper,
    running: JoinHandle<()>,
    folder: TempDir,
}

impl Process {
    /// Runs tasks, which are given by identifier and owner.
    async fn start(tasks: &[(&str, &str)], change: impl FnOnce(&mut Common)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut common = in_folder(folder.path());
        change(&mut common);
        let store = Store::open(&sqlite(folder.path()), &[TASKS]).await.unwrap();
        for (at, (id, owner)) in (0i64..).zip(tasks) {
            let insert = "INSERT INTO tasks (id, owner, state, lease_expires, attempts, created_at) \
                          VALUES ($1, $2, 'queued', 0, 0, $3)";
            let insert = sqlx::query(insert).bind(*id).bind(*owner).bind(at);
            insert.execute(store.pool()).await.unwrap();
        }
        let tale = Tale {
            tasks: Tasks::new(store.clone(), "tasks", common.lease_seconds),
            queued: Arc::default(),
            attempts: Arc::default(),
            store,
        };
        let (stopper, shutdown) = channel();
        let work = tale.clone();
        let running = tokio::spawn(async move { runner::run(work, &common, shutdown).await });
        Self {
            tale,
            stopper,
            running,
            folder,
        }
    }

    async fn state(&self, id: &str) -> String {
        use sqlx::Row;
        let row = sqlx::query("SELECT state FROM tasks WHERE id = $1").bind(id);
        let row = row.fetch_one(self.tale.store.pool()).await.unwrap();
        row.get("state")
    }

    async fn wait_for(&self, id: &str, state: &str) {
        for _ in 0..3000 {
            if self.state(id).await == state {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{id} is {}, not {state}", self.state(id).await);
    }

    /// Stops the process. Returns its folder, which keeps the store until it is dropped.
    async fn stop(self) -> TempDir {
        self.stopper.stop();
        self.running.await.unwrap();
        self.folder
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_end_according_to_their_attempts() {
    let tasks = ["done", "fault", "fail", "outage", "panic"].map(|id| (id, "ana"));
    let process = Process::start(&tasks, |_| {}).await;
    process.wait_for("done", "done").await;
    process.wait_for("fail", "failed: it cannot be").await;
    process.wait_for("fault", "failed: given up after 3").await;
    // An outage is never given up, however long it lasts.
    process.wait_for("outage", "done").await;
    // A panic ends the worker, and another one starts.
    process.wait_for("panic", "failed: given up after 3").await;
    for (id, attempts) in [
        ("done", 1),
        ("fail", 1),
        ("fault", 3),
        ("outage", 6),
        ("panic", 3),
    ] {
        assert_eq!(process.tale.attempts(id), attempts, "{id}");
    }
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "slow"]
async fn hanging_attempt_is_aborted() {
    let deadline = |common: &mut Common| common.attempt_seconds = 1;
    let process = Process::start(&[("hang", "ana")], deadline).await;
    process.wait_for("hang", "failed: given up after 3").await;
    assert_eq!(process.tale.attempts("hang"), 3);
    process.stop().await;
}

/// Tasks of damaged datasets wait for another service until it gives up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_tasks_hold_no_worker() {
    let tasks = [
        ("wait-1", "ana"),
        ("wait-2", "ana"),
        ("wait-3", "eve"),
        ("done", "joe"),
    ];
    for workers in [1, 2] {
        let process = Process::start(&tasks, |common| common.workers = workers).await;
        process.wait_for("done", "done").await;
        // All of them were taken, and none of them ended.
        for id in ["wait-1", "wait-2", "wait-3"] {
            process.wait_for(id, "running").await;
        }
        process.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_tasks_of_one_owner_do_not_block_others() {
    let tasks = [("hang-1", "ana"), ("hang-2", "ana"), ("done", "eve")];
    let two = |common: &mut Common| common.workers = 2;
    let process = Process::start(&tasks, two).await;
    process.wait_for("done", "done").await;
    assert_eq!(process.tale.attempts("hang-1"), 1);
    assert_eq!(process.tale.attempts("hang-2"), 0);
    // A task that was given back at a stop can be taken at once.
    let (tasks, store) = (process.tale.tasks.clone(), process.tale.store.clone());
    let _folder = process.stop().await;
    let lease = tasks.take(&[]).await.unwrap().unwrap();
    assert_eq!(
        (lease.id.as_str(), lease.attempt, lease.faults),
        ("hang-1", 2, 0)
    );
    store.close().await;
}

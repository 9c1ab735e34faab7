//! Runs tasks: takes them under a lease, aborts attempts after a deadline, postpones them with back-off, gives them
//! up after a number of faults, and gives them back when the process stops.
//!
//! A service describes its work with [`Work`]. Everything that is common to all work is here.
//!
//! An attempt has a worker while it computes, and gives it up while it [waits](Turn::wait) for another service. The
//! tasks of a dataset that waits for a long time therefore do not delay those of others.

use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, Notify};
use tokio::task::JoinSet;

use crate::Failure;
use crate::config::Common;
use crate::lease::{Cause, Lease, Lost, MAX_PAUSE, Tasks};
use crate::server::with_request_id;
use crate::shutdown::Shutdown;
use crate::store::{StoreError, Tx};
use crate::telemetry;
use fhaim_api::problem::ProblemKind;
use workers::{Claimant, Worker, Workers};

mod workers;

/// Number of tasks for each worker that this process has at a time. Tasks that wait have no worker, but keep their
/// state in memory. One owner has at most half of these places.
const PLACES_PER_WORKER: usize = 4;

/// Time between two searches of an idle worker for tasks that another process has queued.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Longest time between two renewals of a lease. A worker whose task was ended notices after this time at the latest,
/// and stops.
const NOTICE_AFTER: Duration = Duration::from_secs(2);

/// The possible ends of an attempt, as labels of a metric.
const ENDS: [&str; 5] = ["done", "lost", "failed", "fault", "outage"];

/// The reason why an attempt at a task ended before the task did.
#[derive(Debug)]
pub enum Stop {
    /// The lease was lost, or the task was ended. This worker must not change the task.
    Lost,
    /// The task cannot continue, for this reason.
    Failed(String),
    /// Something is temporarily not available, as this text says.
    Outage(String),
    /// A fault of this service, which may be temporary.
    Fault(Failure),
}

impl From<Failure> for Stop {
    /// A full disk and a missing store are temporary, however often a task meets them. Damaged data stays damaged.
    fn from(failure: Failure) -> Self {
        match failure.kind() {
            ProblemKind::Unavailable => {
                tracing::warn!(%failure, "a store is not available");
                Self::Outage("the service's own store is temporarily not available".to_owned())
            }
            ProblemKind::Damaged => {
                tracing::error!(%failure, "a task cannot continue");
                Self::Failed(failure.problem.to_string())
            }
            _ => Self::Fault(failure),
        }
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Failure::from(error).into()
    }
}

impl From<serde_json::Error> for Stop {
    fn from(error: serde_json::Error) -> Self {
        Self::Fault(error.into())
    }
}

impl From<Lost> for Stop {
    fn from(_: Lost) -> Self {
        Self::Lost
    }
}

/// How long tasks are postponed, and when they are given up.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// The pause after the first outage, which doubles with each outage that follows. The pause after a fault is twice
    /// as long.
    pub first_pause: Duration,
    /// Number of consecutive attempts without a step after which a task is given up. A damaged task does not repair
    /// itself, and without a limit nobody would notice it.
    pub max_faults: u32,
}

impl Policy {
    fn pause(&self, doublings: u32) -> Duration {
        let factor = 2u32.saturating_pow(doublings.min(16));
        self.first_pause.saturating_mul(factor).min(MAX_PAUSE)
    }
}

/// Work that is done under leases.
pub trait Work: Clone + Send + Sync + 'static {
    /// The name of a task in the log.
    const TASK: &'static str;
    /// How long tasks are postponed, and when they are given up.
    const POLICY: Policy;

    /// Returns the table of tasks.
    fn tasks(&self) -> &Tasks;

    /// Returns the notifier that is raised when this process queues a task.
    fn queued(&self) -> &Notify;

    /// Makes one attempt at a task. It continues from the last stored state, and stores the task's end. It may be
    /// dropped at any point. Its writes must hold the lease ([`Tasks::hold`], [`Tasks::step`]). It has a worker, which
    /// it gives up with `turn` while it waits for something else than this process.
    fn attempt(&self, lease: &Lease, turn: &Turn) -> impl Future<Output = Result<(), Stop>> + Send;

    /// Ends a task that cannot continue, in a transaction that holds its lease.
    fn fail(
        &self,
        tx: &mut Tx,
        lease: &Lease,
        reason: &str,
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Returns the reason for giving a task up after the given number of attempts.
    fn given_up(attempts: u32) -> String;

    /// Reports an outage, in the transaction that postpones the task.
    fn tell_outage(
        &self,
        _tx: &mut Tx,
        _lease: &Lease,
        _reason: &str,
        _pause: Duration,
    ) -> impl Future<Output = Result<(), Failure>> + Send {
        async { Ok(()) }
    }

    /// Called after [`Work::fail`] has ended a task.
    fn failed(&self) {}
}

/// An attempt's right to compute.
#[derive(Debug)]
pub struct Turn {
    workers: Arc<Workers>,
    claimant: Claimant,
    worker: Mutex<Option<Worker>>,
}

impl Turn {
    /// Gives the worker up, waits for a future, and then for a worker again.
    pub async fn wait<T>(&self, waiting: impl Future<Output = T>) -> T {
        let mut worker = self.worker.lock().await;
        drop(worker.take());
        let done = waiting.await;
        *worker = self.workers.take(self.claimant.clone()).await;
        done
    }
}

/// Runs tasks until `shutdown`, with the configured number of workers.
pub async fn run<W: Work>(work: W, common: &Common, shutdown: Shutdown) {
    for end in ENDS {
        telemetry::announce("task_attempts_total", &[("task", W::TASK), ("end", end)]);
    }
    let count = common.workers.max(1);
    let runner = Runner {
        work,
        shutdown,
        workers: Workers::new(count),
        places: count.saturating_mul(PLACES_PER_WORKER),
        deadline: Duration::from_secs(common.attempt_seconds.max(1)),
        owners: Owners::default(),
    };
    runner.dispatch().await;
}

/// Logs a panic of an attempt. The lease of its task expires. After the policy's number of attempts, the task is given
/// up.
fn report<W: Work>(ended: &Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, task = W::TASK, "an attempt panicked");
    }
}

/// Counts how an attempt ended.
fn ended_as<W: Work>(ended: &Result<(), Stop>) {
    let [done, lost, failed, fault, outage] = ENDS;
    let end = match ended {
        Ok(()) => done,
        Err(Stop::Lost) => lost,
        Err(Stop::Failed(_)) => failed,
        Err(Stop::Fault(_)) => fault,
        Err(Stop::Outage(_)) => outage,
    };
    metrics::counter!("task_attempts_total", "task" => W::TASK, "end" => end).increment(1);
}

#[derive(Clone)]
struct Runner<W> {
    work: W,
    shutdown: Shutdown,
    workers: Arc<Workers>,
    /// Largest number of tasks that this process has at a time.
    places: usize,
    deadline: Duration,
    owners: Owners,
}

/// The owners of the tasks that this process has.
#[derive(Clone, Debug, Default)]
struct Owners(Arc<std::sync::Mutex<Vec<String>>>);

impl Owners {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        let locked = self.0.lock();
        locked.unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn enter(&self, owner: &str) -> Place {
        self.lock().push(owner.to_owned());
        Place {
            owner: owner.to_owned(),
            owners: self.clone(),
        }
    }

    /// Returns the owners with at least `most` tasks.
    fn with(&self, most: usize) -> Vec<String> {
        let all = self.lock();
        let has = |owner: &String| all.iter().filter(|other| *other == owner).count();
        let mut full: Vec<String> = all
            .iter()
            .filter(|owner| has(owner) >= most)
            .cloned()
            .collect();
        full.sort();
        full.dedup();
        full
    }
}

/// An owner's place among the tasks of this process. Dropping it gives the place up.
struct Place {
    owner: String,
    owners: Owners,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut owners = self.owners.lock();
        if let Some(index) = owners.iter().position(|owner| *owner == self.owner) {
            owners.swap_remove(index);
        }
    }
}

impl<W: Work> Runner<W> {
    /// Takes tasks while there are places and workers, and waits until all attempts have ended.
    async fn dispatch(self) {
        let mut attempts = JoinSet::new();
        while !self.shutdown.is_raised() {
            if attempts.len() < self.places && self.begin(&mut attempts).await {
                continue;
            }
            tokio::select! {
                () = self.shutdown.raised() => {}
                () = self.work.queued().notified() => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
                Some(ended) = attempts.join_next() => report::<W>(&ended),
            }
        }
        while let Some(ended) = attempts.join_next().await {
            report::<W>(&ended);
        }
    }

    /// Waits for a worker, and begins an attempt at a task. Returns `false` if there is no task.
    async fn begin(&self, attempts: &mut JoinSet<()>) -> bool {
        let worker = tokio::select! {
            worker = self.workers.take(Claimant::default()) => worker,
            () = self.shutdown.raised() => None,
        };
        let Some(mut worker) = worker else {
            return false;
        };
        let mut served = self.workers.served();
        served.extend(self.owners.with((self.places / 2).max(1)));
        let lease = match self.work.tasks().take(&served).await {
            Ok(Some(lease)) => lease,
            Ok(None) => return false,
            Err(error) => {
                tracing::error!(%error, task = W::TASK, "cannot take a task");
                return false;
            }
        };
        let claimant = Claimant {
            owner: lease.owner.clone(),
            dataset: lease.dataset.clone(),
        };
        worker.assign(claimant.clone());
        let turn = Turn {
            workers: self.workers.clone(),
            claimant,
            worker: Mutex::new(Some(worker)),
        };
        let (runner, place) = (self.clone(), self.owners.enter(&lease.owner));
        attempts.spawn(async move {
            let _place = place;
            let dataset = lease.dataset.parse().ok();
            with_request_id(dataset, runner.see_through(&lease, &turn)).await;
        });
        true
    }

    /// Makes one attempt at a task, renews its lease meanwhile, and handles the end of the attempt.
    async fn see_through(&self, lease: &Lease, turn: &Turn) {
        let (task, id, attempt) = (W::TASK, &lease.id, lease.attempt);
        tracing::info!(task, id, attempt, "taken");
        let ended = if lease.faults >= W::POLICY.max_faults {
            Err(Stop::Failed(W::given_up(lease.faults)))
        } else {
            tokio::select! {
                ended = self.work.attempt(lease, turn) => ended,
                () = self.keep(lease) => Err(Stop::Lost),
                () = tokio::time::sleep(self.deadline) => Err(Stop::Fault(self.overdue())),
                () = self.shutdown.raised() => return self.give_back(lease).await,
            }
        };
        ended_as::<W>(&ended);
        let stop = match ended {
            Ok(()) => {
                tracing::info!(task, id, "done");
                return;
            }
            Err(Stop::Lost) => {
                tracing::info!(task, id, "the lease was lost");
                return;
            }
            Err(stop) => stop,
        };
        if let Err(failure) = self.settle(lease, stop).await {
            // The lease expires, and another worker takes the task.
            tracing::error!(task, id, %failure, "the end of an attempt could not be stored");
        }
    }

    fn overdue(&self) -> Failure {
        let seconds = self.deadline.as_secs();
        Failure::internal(format!("an attempt took longer than {seconds} s"))
    }

    /// Renews a lease until it is lost.
    async fn keep(&self, lease: &Lease) {
        let tasks = self.work.tasks();
        loop {
            tokio::time::sleep(tasks.renewal().min(NOTICE_AFTER)).await;
            match tasks.renew(lease).await {
                Ok(Ok(())) => {}
                Ok(Err(Lost)) => return,
                Err(error) => {
                    tracing::warn!(%error, task = W::TASK, id = lease.id, "a lease could not be renewed");
                }
            }
        }
    }

    async fn give_back(&self, lease: &Lease) {
        if let Err(error) = self.work.tasks().give_back(lease).await {
            let (task, id) = (W::TASK, &lease.id);
            tracing::warn!(%error, task, id, "a task could not be given back: its lease will expire");
        }
    }

    /// Stores the state that follows from the end of an attempt.
    async fn settle(&self, lease: &Lease, stop: Stop) -> Result<(), Failure> {
        let (task, id, tasks) = (W::TASK, &lease.id, self.work.tasks());
        let mut tx = tasks.begin().await?;
        let Ok((faults, outages)) = tasks.counters(&mut tx, lease).await? else {
            tracing::info!(task, id, "the lease was lost");
            return Ok(());
        };
        let reason = match stop {
            Stop::Lost => return Ok(()),
            Stop::Failed(reason) => reason,
            Stop::Fault(failure) if faults >= W::POLICY.max_faults => {
                tracing::error!(task, id, %failure, "given up after a fault");
                W::given_up(faults)
            }
            Stop::Fault(failure) => {
                let pause = W::POLICY.pause(faults);
                let seconds = pause.as_secs_f64();
                tracing::error!(task, id, %failure, seconds, "postponed after a fault");
                let put_off = tasks.put_off(&mut tx, lease, Cause::Fault, pause).await?;
                if put_off.is_ok() {
                    tx.commit().await?;
                }
                return Ok(());
            }
            Stop::Outage(reason) => {
                let pause = W::POLICY.pause(outages);
                tracing::warn!(
                    task,
                    id,
                    reason,
                    seconds = pause.as_secs_f64(),
                    "postponed because of an outage"
                );
                let put_off = tasks.put_off(&mut tx, lease, Cause::Outage, pause).await?;
                if put_off.is_ok() {
                    self.work
                        .tell_outage(&mut tx, lease, &reason, pause)
                        .await?;
                    tx.commit().await?;
                }
                return Ok(());
            }
        };
        tracing::warn!(task, id, reason, "failed");
        if tasks.hold(&mut tx, lease).await?.is_ok() {
            self.work.fail(&mut tx, lease, &reason).await?;
            tx.commit().await?;
            self.work.failed();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_maximum() {
        let policy = Policy {
            first_pause: Duration::from_millis(500),
            max_faults: 3,
        };
        assert_eq!(policy.pause(0), Duration::from_millis(500));
        assert_eq!(policy.pause(3), Duration::from_secs(4));
        for doublings in [7, 31, 32, u32::MAX] {
            assert_eq!(policy.pause(doublings), MAX_PAUSE);
        }
    }
}

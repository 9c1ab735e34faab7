//! Runs tasks: takes them under a lease, aborts attempts after a deadline, postpones them with back-off, gives them
//! up after a number of faults, and gives them back when the process stops.
//!
//! A service describes its work with [`Work`]. Everything that is common to all work is here.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::Failure;
use crate::config::Common;
use crate::lease::{Cause, Lease, Lost, MAX_PAUSE, Tasks};
use crate::server::with_request_id;
use crate::shutdown::Shutdown;
use crate::store::{StoreError, Tx};
use crate::telemetry;
use fhaim_api::problem::ProblemKind;

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
    /// A full disk and a missing store are temporary, however often a task meets them.
    fn from(failure: Failure) -> Self {
        if failure.kind() == ProblemKind::Unavailable {
            tracing::warn!(%failure, "a store is not available");
            return Self::Outage("the service's own store is temporarily not available".to_owned());
        }
        Self::Fault(failure)
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
    /// dropped at any point. Its writes must hold the lease ([`Tasks::hold`], [`Tasks::step`]).
    fn attempt(&self, lease: &Lease) -> impl Future<Output = Result<(), Stop>> + Send;

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

/// Runs tasks until `shutdown`, with the configured number of workers.
pub async fn run<W: Work>(work: W, common: &Common, shutdown: Shutdown) {
    for end in ENDS {
        telemetry::announce("task_attempts_total", &[("task", W::TASK), ("end", end)]);
    }
    let runner = Runner {
        work,
        shutdown,
        workers: common.workers.max(1),
        deadline: Duration::from_secs(common.attempt_seconds.max(1)),
        taking: Arc::default(),
        owners: Arc::default(),
    };
    let mut workers = JoinSet::new();
    for _ in 0..runner.workers {
        workers.spawn(runner.clone().worker());
    }
    while let Some(ended) = workers.join_next().await {
        if let Err(error) = ended
            && error.is_panic()
        {
            // The lease of its task expires. After the policy's number of attempts, the task is given up.
            tracing::error!(%error, task = W::TASK, "a worker panicked: starting another");
            workers.spawn(runner.clone().worker());
        }
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
    workers: usize,
    deadline: Duration,
    /// Held while a task is taken, so that two workers do not both take the last place of an owner.
    taking: Arc<tokio::sync::Mutex<()>>,
    /// The owners of the tasks that this process's workers have.
    owners: Owners,
}

type Owners = Arc<Mutex<Vec<String>>>;

/// An owner's place among those that are served. Dropping it gives the place up.
struct Place {
    owner: String,
    owners: Owners,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut owners = lock(&self.owners);
        if let Some(index) = owners.iter().position(|owner| *owner == self.owner) {
            owners.swap_remove(index);
        }
    }
}

fn lock(owners: &Owners) -> MutexGuard<'_, Vec<String>> {
    owners.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the owners that have all workers except one, if there are several workers. The last worker is reserved for
/// other owners.
fn served(owners: &[String], workers: usize) -> Vec<String> {
    let mut served = owners.to_vec();
    served.sort();
    served.dedup();
    served.retain(|owner| {
        let has = owners.iter().filter(|other| *other == owner).count();
        workers > 1 && has + 1 >= workers
    });
    served
}

impl<W: Work> Runner<W> {
    async fn worker(self) {
        while !self.shutdown.is_raised() {
            match self.take().await {
                Ok(Some((lease, _place))) => {
                    with_request_id(self.see_through(&lease)).await;
                    continue;
                }
                Ok(None) => {}
                Err(error) => tracing::error!(%error, task = W::TASK, "cannot take a task"),
            }
            tokio::select! {
                () = self.shutdown.raised() => {}
                () = self.work.queued().notified() => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    }

    async fn take(&self) -> Result<Option<(Lease, Place)>, StoreError> {
        let _one = self.taking.lock().await;
        let served = served(&lock(&self.owners), self.workers);
        let lease = self.work.tasks().take(&served).await?;
        Ok(lease.map(|lease| {
            let owner = lease.owner.clone();
            lock(&self.owners).push(owner.clone());
            let owners = self.owners.clone();
            (lease, Place { owner, owners })
        }))
    }

    /// Makes one attempt at a task, renews its lease meanwhile, and handles the end of the attempt.
    async fn see_through(&self, lease: &Lease) {
        let (task, id, attempt) = (W::TASK, &lease.id, lease.attempt);
        tracing::info!(task, id, attempt, "taken");
        let ended = if lease.faults >= W::POLICY.max_faults {
            Err(Stop::Failed(W::given_up(lease.faults)))
        } else {
            tokio::select! {
                ended = self.work.attempt(lease) => ended,
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

    #[test]
    fn one_owner_never_occupies_every_worker() {
        let owners = |list: &[&str]| list.iter().map(|&o| o.to_owned()).collect::<Vec<_>>();
        for (held, workers, waits) in [
            (&["ana"][..], 1, &[][..]),
            (&["ana"], 2, &["ana"]),
            (&["ana"], 3, &[]),
            (&["ana", "eve", "ana"], 4, &[]),
            (&["ana", "eve", "ana"], 3, &["ana"]),
            (&["ana", "ana"], 3, &["ana"]),
            (&[], 2, &[]),
        ] {
            assert_eq!(
                served(&owners(held), workers),
                owners(waits),
                "{held:?} {workers}"
            );
        }
    }
}

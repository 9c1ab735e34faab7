//! Workers: they take jobs under leases and see them through.
//!
//! A worker drives a [`fhaim_release::MechanismRun`]: what the run wants stored goes into the database, in one transaction
//! with the event that tells of it and with proof that the lease still holds; what it asks for
//! goes to the computation service. Whatever ends a worker, the next one finds the job where the
//! last transaction left it.

use fhaim_api::batch::{self, BatchStatus};
use fhaim_api::job::{Happening, JobProgress, JobState};
use fhaim_api::keys::{RECEIPT_HEADER, Receipt};
use fhaim_api::problem::ProblemKind;
use fhaim_api::token::Service;
use fhaim_dp::Rho;
use fhaim_platform::Failure;
use fhaim_platform::housekeeping::{self, Counter, Housekeeping};
use fhaim_platform::lease::{Lease, Tasks};
use fhaim_platform::peer::{Body, PeerClient, PeerError};
use fhaim_platform::runner::{self, Policy, Stop, Work};
use fhaim_platform::shutdown::Shutdown;
use fhaim_platform::store::Tx;
use fhaim_platform::threads::blocking;
use fhaim_protocol::generation;
use fhaim_release::{Action, ReleaseBatch, RunError, StoredBatch};
use fhaim_synth::{Mechanisms, RunOutcome};
use reqwest::Method;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

use crate::store::jobs::Task;
use crate::store::{batches, datasets as parents, events, jobs, sessions};
use crate::{State, datasets, models};

/// First and longest wait between two looks at a batch; the computation service waits, too.
const POLL: (Duration, Duration) = (Duration::from_millis(25), Duration::from_secs(1));

/// How often watchers are told that a batch is being computed.
const TELL_EVERY: Duration = Duration::from_secs(2);

/// The second computation service is asked to say again what it computed so long after it did.
const SAY_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// Works on jobs, rotates keys and forgets what is expired, until `shutdown`.
pub async fn work(state: State, shutdown: Shutdown) {
    let common = state.config.common.clone();
    let stopping = async {
        shutdown.raised().await;
        state.stop();
    };
    tokio::join!(
        runner::run(state.clone(), &common, shutdown.clone()),
        housekeeping::keep(&state, &shutdown),
        stopping,
    );
}

impl Housekeeping for State {
    const FOLDER: &'static str = datasets::FOLDER;
    const COUNTERS: &'static [Counter] = &[("releases_total", &[("service", "generation")])];

    async fn folders(&self) -> Result<BTreeSet<String>, Failure> {
        let all = parents::all(&self.base.store).await?;
        Ok(all.into_iter().map(datasets::folder).collect())
    }

    async fn tidy(&self) -> Result<(), Failure> {
        self.sign_ins.forget();
        sessions::forget_expired(&self.base.store).await?;
        datasets::finish_deletions(self).await
    }

    fn queue(&self) -> Option<(&'static str, &Tasks)> {
        Some((Self::TASK, &self.tasks))
    }
}

impl Work for State {
    const TASK: &'static str = "job";
    const POLICY: Policy = Policy {
        first_pause: Duration::from_secs(1),
        max_faults: 5,
    };

    fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    fn queued(&self) -> &Notify {
        &self.wake
    }

    async fn attempt(&self, lease: &Lease) -> Result<(), Stop> {
        let (job, stored) = Attempt::begin(self, lease).await?;
        job.drive(stored).await
    }

    async fn fail(&self, tx: &mut Tx, lease: &Lease, reason: &str) -> Result<(), Failure> {
        Ok(jobs::set_state(tx, &lease.id, JobState::Failed, Some(reason)).await?)
    }

    fn given_up(attempts: u32) -> String {
        format!("given up: {attempts} attempts in a row ended without a step")
    }

    async fn tell_outage(
        &self,
        tx: &mut Tx,
        lease: &Lease,
        reason: &str,
        pause: Duration,
    ) -> Result<(), Failure> {
        let reason = format!("{reason}: trying again in {} s", pause.as_secs());
        Ok(jobs::set_state(tx, &lease.id, JobState::Queued, Some(&reason)).await?)
    }
}

/// One attempt at a job.
struct Attempt<'a> {
    state: &'a State,
    lease: &'a Lease,
    task: Task,
}

/// A batch that came back.
struct Released {
    answers: Vec<Vec<i64>>,
    receipt: Receipt,
    /// What the job has spent with it.
    spent: Rho,
}

#[expect(clippy::needless_pass_by_value, reason = "errors are mapped by it")]
fn failed(error: impl ToString) -> Stop {
    Stop::Failed(error.to_string())
}

impl<'a> Attempt<'a> {
    /// Reads a job, and what is stored of it.
    async fn begin(state: &'a State, lease: &'a Lease) -> Result<(Self, Vec<StoredBatch>), Stop> {
        let mut tx = state.base.store.begin().await?;
        state.tasks.hold(&mut tx, lease).await??;
        jobs::set_state(&mut tx, &lease.id, JobState::Running, None).await?;
        let task = jobs::task(&mut tx, &lease.id).await?;
        let stored = batches::of_job(&mut tx, &lease.id).await?;
        tx.commit().await?;
        let attempt = Self { state, lease, task };
        Ok((attempt, stored))
    }

    /// Sees the job through to its end.
    async fn drive(&self, stored: Vec<StoredBatch>) -> Result<(), Stop> {
        let terms = self.task.terms.clone();
        let run = blocking(move || generation::start(&Mechanisms, &terms, stored)).await?;
        let mut run = run.map_err(failed)?;
        loop {
            let action;
            (run, action) = blocking(move || {
                let action = run.advance();
                (run, action)
            })
            .await?;
            match action.map_err(|error| self.failed(&error))? {
                Action::Store(batch) => {
                    self.store(&batch).await?;
                    run.stored().map_err(failed)?;
                }
                Action::Ask(batch) => {
                    let (answers, receipt) = self.ask(&batch).await?;
                    let answers = run.decrypted(answers).map_err(failed)?;
                    let released = Released {
                        answers,
                        receipt,
                        spent: run.spent(),
                    };
                    self.store_answers(&batch, released).await?;
                }
                Action::Finish(outcome, last) => {
                    return self.finish(outcome, last.into(), run.spent()).await;
                }
            }
        }
    }

    /// The end of the job after an error of its run. The releases stay stored: `job retry` continues from them.
    fn failed(&self, error: &RunError<fhaim_synth::Error>) -> Stop {
        match error {
            RunError::Mechanism(fhaim_synth::Error::Unfitted(unfitted)) => {
                Stop::Failed(unfitted.describe(&self.task.terms.schema))
            }
            other => Stop::Failed(other.to_string()),
        }
    }

    /// A transaction that only the holder of the lease can have.
    async fn hold(&self) -> Result<Tx, Stop> {
        let mut tx = self.state.base.store.begin().await?;
        self.state.tasks.hold(&mut tx, self.lease).await??;
        Ok(tx)
    }

    /// The same, for what brings the job nearer to its end.
    async fn step(&self) -> Result<Tx, Stop> {
        let mut tx = self.state.base.store.begin().await?;
        self.state.tasks.step(&mut tx, self.lease).await??;
        Ok(tx)
    }

    /// Stores a batch before it is asked for.
    async fn store(&self, batch: &ReleaseBatch) -> Result<(), Stop> {
        let (job, progress) = (&self.lease.id, JobProgress::from(batch.progress));
        let mut tx = self.step().await?;
        batches::insert(&mut tx, job, batch, &progress).await?;
        jobs::set_progress(&mut tx, job, progress, batch.requests.len()).await?;
        Ok(tx.commit().await?)
    }

    /// Gets a batch released by the computation service: its integers, and the receipt of the
    /// ledger that has them. It is asked for once, and then looked at; again where that service
    /// no longer knows it, having been set back.
    async fn ask(&self, batch: &ReleaseBatch) -> Result<(Vec<Vec<i64>>, Receipt), Stop> {
        let first = batch
            .first()
            .ok_or_else(|| failed("a batch without a release"))?;
        let (dataset, job) = (self.task.dataset, self.task.job);
        let path = format!("/v1/datasets/{dataset}/jobs/{job}/batches/{first}");
        let mut second = Second::new(self, &path, batch)?;
        if let Some(second) = &mut second {
            second.begin().await?;
        }
        let first = &self.state.computation;
        // What was refused before is asked for anew by whoever tries the job again, once.
        let mut status = self.put(first, &path, batch, true).await?;
        let (mut wait, longest) = POLL;
        let mut told = Instant::now();
        loop {
            match status {
                BatchStatus::Released {
                    answers, receipt, ..
                } => return Ok((answers, receipt)),
                BatchStatus::Refused {
                    reason,
                    without_run,
                } => {
                    let reason = format!("the computation service refused a release: {reason}");
                    return Err(match without_run {
                        true => self.end_without_run(&reason).await?,
                        false => Stop::Failed(reason),
                    });
                }
                BatchStatus::Running { seconds } if told.elapsed() >= TELL_EVERY => {
                    told = Instant::now();
                    self.tell_computing(seconds).await?;
                }
                BatchStatus::Queued | BatchStatus::Running { .. } => {}
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 3 / 2).min(longest);
            if let Some(second) = &mut second {
                second.look().await?;
            }
            status = match self.look(first, &path).await? {
                Some(status) => status,
                None => self.put(first, &path, batch, false).await?,
            };
        }
    }

    /// Ends the job: no run was left for it, so it holds none. What it asked for is forgotten, or it
    /// would be counted as holding the run of a job that has one, which could then not go on.
    async fn end_without_run(&self, reason: &str) -> Result<Stop, Stop> {
        let job = &self.lease.id;
        tracing::warn!(job, reason, "job failed: no run is left for it");
        let mut tx = self.hold().await?;
        batches::forget_unanswered(&mut tx, job).await?;
        jobs::set_state(&mut tx, job, JobState::Failed, Some(reason)).await?;
        tx.commit().await?;
        Ok(Stop::Lost)
    }

    /// Receipts of the job's owner, of other holders, and of all jobs of the dataset. Read anew each time: other jobs may have brought later
    /// ones.
    async fn receipts(&self) -> Result<Vec<Receipt>, Stop> {
        let (store, owner) = (&self.state.base.store, &self.lease.owner);
        Ok(parents::receipts(store, self.task.dataset, owner).await?)
    }

    async fn put(
        &self,
        computation: &PeerClient,
        path: &str,
        batch: &ReleaseBatch,
        again: bool,
    ) -> Result<BatchStatus, Stop> {
        let wanted = batch::Batch {
            requests: batch.requests.clone(),
            receipts: self.receipts().await?,
            again,
        };
        let body = Body::Json(serde_json::to_vec(&wanted)?);
        let status = computation.json(Method::PUT, path, body).await;
        status.map_err(stop_of)
    }

    /// Where a batch is; nothing if it is not there.
    async fn look(
        &self,
        computation: &PeerClient,
        path: &str,
    ) -> Result<Option<BatchStatus>, Stop> {
        let receipts = self.receipts().await?;
        let headers = receipts.iter().map(|r| (RECEIPT_HEADER, r.to_header()));
        let computation = computation.with_headers(headers.collect());
        match computation.json(Method::GET, path, Body::Empty).await {
            Ok(status) => Ok(Some(status)),
            Err(PeerError::Problem { problem, .. }) if problem.kind == ProblemKind::NotFound => {
                Ok(None)
            }
            Err(error) => Err(stop_of(error)),
        }
    }

    async fn tell_computing(&self, seconds: f64) -> Result<(), Stop> {
        let mut tx = self.hold().await?;
        events::record(&mut tx, &self.lease.id, &Happening::Computing { seconds }).await?;
        Ok(tx.commit().await?)
    }

    async fn store_answers(&self, batch: &ReleaseBatch, released: Released) -> Result<(), Stop> {
        let Released {
            answers,
            receipt,
            spent,
        } = released;
        let (job, releases) = (&self.lease.id, batch.requests.len());
        let mut tx = self.step().await?;
        batches::answer(&mut tx, job, batch.number, &answers).await?;
        jobs::add_releases(&mut tx, job, releases, spent, &receipt).await?;
        let released = Happening::Released {
            releases,
            cells: batch.cells(),
            spent: spent.into(),
        };
        events::record(&mut tx, job, &released).await?;
        tx.commit().await?;
        metrics::counter!("releases_total", "service" => "generation").increment(releases as u64);
        Ok(())
    }

    /// Stores the model, and then that the job is done.
    async fn finish(
        &self,
        outcome: Box<RunOutcome>,
        last: JobProgress,
        spent: Rho,
    ) -> Result<(), Stop> {
        if outcome.spent != spent {
            let problem = "the mechanism's account differs from the sum of its releases";
            return Err(Stop::Failed(problem.to_owned()));
        }
        let model = blocking(move || outcome.model.save()).await?;
        self.hold().await?.commit().await?;
        let (dataset, job) = (self.task.dataset, self.task.job);
        models::put(self.state, dataset, job, model).await?;
        let mut tx = match self.step().await {
            Ok(tx) => tx,
            Err(stop) => {
                // Where its dataset was deleted meanwhile; what another worker has is not touched.
                models::discard_unnamed(self.state, dataset, job).await?;
                return Err(stop);
            }
        };
        jobs::set_progress(&mut tx, &self.lease.id, last, 0).await?;
        jobs::set_state(&mut tx, &self.lease.id, JobState::Done, None).await?;
        Ok(tx.commit().await?)
    }
}

/// A batch at the second computation service: nothing is released before that has said what it computed,
/// and it says so again as long as the first waits.
struct Second<'a> {
    attempt: &'a Attempt<'a>,
    service: &'a PeerClient,
    path: &'a str,
    batch: &'a ReleaseBatch,
    /// Since when it has said so, if it has.
    said: Option<Instant>,
    looked: Instant,
}

impl<'a> Second<'a> {
    /// Nothing where the terms have none.
    fn new(
        attempt: &'a Attempt<'a>,
        path: &'a str,
        batch: &'a ReleaseBatch,
    ) -> Result<Option<Self>, Stop> {
        if !attempt.task.terms.witness {
            return Ok(None);
        }
        let service = attempt.state.witness.as_ref();
        let service = service.ok_or_else(|| {
            failed("the terms want a second computation service, and this service knows none")
        })?;
        Ok(Some(Self {
            attempt,
            service,
            path,
            batch,
            said: None,
            looked: Instant::now(),
        }))
    }

    /// Asks for the batch.
    async fn begin(&mut self) -> Result<(), Stop> {
        let status = self
            .attempt
            .put(self.service, self.path, self.batch, true)
            .await;
        self.take(status?).await
    }

    /// Looks where it is, now and then.
    async fn look(&mut self) -> Result<(), Stop> {
        if self.looked.elapsed() < TELL_EVERY {
            return Ok(());
        }
        match self.said {
            // Said, and the first waits all the same: who keeps the ledger may have been set back.
            Some(said) if said.elapsed() < SAY_AGAIN_AFTER => return Ok(()),
            Some(_) => return self.begin().await,
            None => {}
        }
        match self.attempt.look(self.service, self.path).await? {
            Some(status) => self.take(status).await,
            None => self.begin().await,
        }
    }

    async fn take(&mut self, status: BatchStatus) -> Result<(), Stop> {
        self.looked = Instant::now();
        self.said = match status {
            BatchStatus::Released { .. } => Some(self.looked),
            BatchStatus::Refused {
                reason,
                without_run,
            } => {
                let reason = format!("the second computation service refused a release: {reason}");
                return Err(match without_run {
                    true => self.attempt.end_without_run(&reason).await?,
                    false => Stop::Failed(reason),
                });
            }
            BatchStatus::Queued | BatchStatus::Running { .. } => None,
        };
        Ok(())
    }
}

/// What an error of the computation service means for the job: its last word ends it, and all
/// else passes. A token that it cannot check while it cannot reach us passes too.
fn stop_of(error: PeerError) -> Stop {
    let who = match error.service() {
        Some(Service::Witness) => "the second computation service",
        _ => "the computation service",
    };
    if let Some(problem) = error.refusal() {
        return Stop::Failed(match problem.kind {
            ProblemKind::NotFound => format!("{who} no longer has the dataset"),
            _ => format!("{who}: {problem}"),
        });
    }
    match error {
        PeerError::Unreachable { .. } => Stop::Outage(format!("{who} is out of reach")),
        PeerError::Problem { problem, .. } => Stop::Outage(format!("{who}: {problem}")),
        PeerError::Unsigned => Stop::Fault(Failure::internal(error)),
    }
}

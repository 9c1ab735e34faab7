//! Workers that take jobs under leases and run them to completion.
//!
//! A worker drives a [`fhaim_release::MechanismRun`]. It stores the run's batches in the database, each in one
//! transaction with the event that reports it and a check that the lease still holds. It asks the computation
//! service for the releases. If a worker stops for any reason, the next one resumes the job after its last
//! transaction.

use fhaim_api::batch::{self, BatchStatus};
use fhaim_api::job::{Happening, JobProgress, JobState};
use fhaim_api::keys::{RECEIPT_HEADER, Receipt};
use fhaim_api::problem::ProblemKind;
use fhaim_api::token::Service;
use fhaim_dp::Rho;
use fhaim_platform::Failure;
use fhaim_platform::clock::{self, Millis};
use fhaim_platform::housekeeping::{self, Counter, Housekeeping};
use fhaim_platform::lease::{Lease, Tasks};
use fhaim_platform::peer::{Body, PeerClient, PeerError};
use fhaim_platform::runner::{self, Policy, Stop, Turn, Work};
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
use crate::store::{accounts, batches, datasets as parents, events, jobs, sessions};
use crate::{State, datasets, models};

/// First and longest delay between two looks at a batch. The computation service also waits before it answers.
const POLL: (Duration, Duration) = (Duration::from_millis(25), Duration::from_secs(1));

/// Time between two events that report that a batch is being computed.
const TELL_EVERY: Duration = Duration::from_secs(2);

/// Delay before the witness is asked again for a digest that it has already computed.
const SAY_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// Time for which ended tokens are published. It is longer than a token lives by any service's clock.
const ENDED_FOR: Millis = 3_600_000;

/// Runs jobs, rotates keys and deletes expired data until `shutdown`.
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
        let before = clock::now() - ENDED_FOR;
        accounts::forget_ended_tokens(&self.base.store, before).await?;
        datasets::finish_deletions(self).await
    }

    fn queue(&self) -> Option<(&'static str, &Tasks)> {
        Some((Self::TASK, &self.tasks))
    }

    fn release_memory(&self) {
        self.passwords.release_memory();
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

    async fn attempt(&self, lease: &Lease, turn: &Turn) -> Result<(), Stop> {
        let (job, stored) = Attempt::begin(self, lease, turn).await?;
        job.drive(stored).await
    }

    async fn fail(&self, tx: &mut Tx, lease: &Lease, reason: &str) -> Result<(), Failure> {
        Ok(jobs::set_state(tx, &lease.id, JobState::Failed, Some(reason)).await?)
    }

    fn given_up(attempts: u32) -> String {
        format!("the job failed: {attempts} attempts in a row made no progress")
    }

    async fn tell_outage(
        &self,
        tx: &mut Tx,
        lease: &Lease,
        reason: &str,
        pause: Duration,
    ) -> Result<(), Failure> {
        let reason = format!("{reason}; trying again in {} s", pause.as_secs());
        Ok(jobs::set_state(tx, &lease.id, JobState::Queued, Some(&reason)).await?)
    }
}

/// One attempt at a job.
struct Attempt<'a> {
    state: &'a State,
    lease: &'a Lease,
    turn: &'a Turn,
    task: Task,
}

/// A released batch.
struct Released {
    answers: Vec<Vec<i64>>,
    receipt: Receipt,
    /// Total cost of the job including this batch.
    spent: Rho,
}

#[expect(clippy::needless_pass_by_value, reason = "used with map_err")]
fn failed(error: impl ToString) -> Stop {
    Stop::Failed(error.to_string())
}

impl<'a> Attempt<'a> {
    /// Reads a job and its stored batches.
    async fn begin(
        state: &'a State,
        lease: &'a Lease,
        turn: &'a Turn,
    ) -> Result<(Self, Vec<StoredBatch>), Stop> {
        let mut tx = state.base.store.begin().await?;
        state.tasks.hold(&mut tx, lease).await??;
        jobs::set_state(&mut tx, &lease.id, JobState::Running, None).await?;
        let task = jobs::task(&mut tx, &lease.id).await?;
        let stored = batches::of_job(&mut tx, &lease.id).await?;
        tx.commit().await?;
        let attempt = Self {
            state,
            lease,
            turn,
            task,
        };
        Ok((attempt, stored))
    }

    /// Runs the job to its end.
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
                    let asking = Box::pin(self.ask(&batch));
                    let (answers, receipt) = self.turn.wait(asking).await?;
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

    /// Converts an error of the job's run. The releases stay stored, so `job retry` can resume from them.
    fn failed(&self, error: &RunError<fhaim_synth::Error>) -> Stop {
        match error {
            RunError::Mechanism(fhaim_synth::Error::Unfitted(unfitted)) => {
                Stop::Failed(unfitted.describe(&self.task.terms.schema))
            }
            other => Stop::Failed(other.to_string()),
        }
    }

    /// Begins a transaction that requires the lease.
    async fn hold(&self) -> Result<Tx, Stop> {
        let mut tx = self.state.base.store.begin().await?;
        self.state.tasks.hold(&mut tx, self.lease).await??;
        Ok(tx)
    }

    /// Begins a transaction that requires the lease and counts as progress of the job.
    async fn step(&self) -> Result<Tx, Stop> {
        let mut tx = self.state.base.store.begin().await?;
        self.state.tasks.step(&mut tx, self.lease).await??;
        Ok(tx)
    }

    /// Stores a batch before the worker asks for it.
    async fn store(&self, batch: &ReleaseBatch) -> Result<(), Stop> {
        let (job, progress) = (&self.lease.id, JobProgress::from(batch.progress));
        let mut tx = self.step().await?;
        batches::insert(&mut tx, job, batch, &progress).await?;
        jobs::set_progress(&mut tx, job, progress, batch.requests.len()).await?;
        Ok(tx.commit().await?)
    }

    /// Gets a batch from the computation service: its integers and the receipt of the ledger that records them.
    ///
    /// Asks once and then polls. Asks again if the service no longer knows the batch because it was restored
    /// from a backup.
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
        // `again` makes the service compute a batch again that it refused in an earlier attempt.
        let mut status = self.put(first, &path, batch, true).await?;
        let (mut wait, longest) = POLL;
        let mut last_event = Instant::now();
        let mut waits_for: Option<String> = None;
        loop {
            match status {
                BatchStatus::Released {
                    answers, receipt, ..
                } => {
                    if waits_for.is_some() {
                        self.tell_waiting(None).await?;
                    }
                    return Ok((answers, receipt));
                }
                BatchStatus::Waiting { reason } if waits_for.as_ref() != Some(&reason) => {
                    self.tell_waiting(Some(&reason)).await?;
                    waits_for = Some(reason);
                }
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
                BatchStatus::Running { seconds } if last_event.elapsed() >= TELL_EVERY => {
                    last_event = Instant::now();
                    self.tell_computing(seconds).await?;
                }
                BatchStatus::Queued | BatchStatus::Running { .. } if waits_for.is_some() => {
                    self.tell_waiting(None).await?;
                    waits_for = None;
                }
                BatchStatus::Queued | BatchStatus::Running { .. } | BatchStatus::Waiting { .. } => {
                }
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

    /// Ends a job for which the dataset has no run left. Its unanswered request is deleted: the job would
    /// otherwise be counted as holding a run, and block the job that has it.
    async fn end_without_run(&self, reason: &str) -> Result<Stop, Stop> {
        let job = &self.lease.id;
        tracing::warn!(job, reason, "job failed: no run is left for it");
        let mut tx = self.hold().await?;
        batches::forget_unanswered(&mut tx, job).await?;
        jobs::set_state(&mut tx, job, JobState::Failed, Some(reason)).await?;
        tx.commit().await?;
        Ok(Stop::Lost)
    }

    /// Returns the receipts of the job's owner, of other holders and of all jobs of the dataset. Reads them each
    /// time, because other jobs may have stored later ones.
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

    /// Polls a batch. Returns `None` if the service does not know it.
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

    /// Reports that the job waits for a service, or no longer does.
    async fn tell_waiting(&self, reason: Option<&str>) -> Result<(), Stop> {
        let mut tx = self.hold().await?;
        let reason = reason.map(|reason| format!("waiting for the computation service: {reason}"));
        let job = &self.lease.id;
        jobs::set_state(&mut tx, job, JobState::Running, reason.as_deref()).await?;
        Ok(tx.commit().await?)
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

    /// Stores the model and then marks the job as done.
    async fn finish(
        &self,
        outcome: Box<RunOutcome>,
        last: JobProgress,
        spent: Rho,
    ) -> Result<(), Stop> {
        if outcome.spent != spent {
            let problem =
                "the mechanism's cost differs from the sum of its releases; this is a bug";
            return Err(Stop::Failed(problem.to_owned()));
        }
        let model = blocking(move || outcome.model.save()).await?;
        self.hold().await?.commit().await?;
        let (dataset, job) = (self.task.dataset, self.task.job);
        models::put(self.state, dataset, job, model).await?;
        let mut tx = match self.step().await {
            Ok(tx) => tx,
            Err(stop) => {
                // The dataset may have been deleted meanwhile. A job that another worker holds is not changed.
                models::discard_unnamed(self.state, dataset, job).await?;
                return Err(stop);
            }
        };
        jobs::set_progress(&mut tx, &self.lease.id, last, 0).await?;
        jobs::set_state(&mut tx, &self.lease.id, JobState::Done, None).await?;
        Ok(tx.commit().await?)
    }
}

/// A batch at the second computation service (the witness). Nothing is released before the witness has reported
/// the digest that it computed. It repeats the report for as long as the first service waits.
struct Second<'a> {
    attempt: &'a Attempt<'a>,
    service: &'a PeerClient,
    path: &'a str,
    batch: &'a ReleaseBatch,
    /// Time of the last report, if there was one.
    reported: Option<Instant>,
    looked: Instant,
}

impl<'a> Second<'a> {
    /// Returns `None` if the terms name no second computation service.
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
            failed(
                "the dataset's terms name a second computation service, but this service has none; \
                 configure `peers.witness`",
            )
        })?;
        Ok(Some(Self {
            attempt,
            service,
            path,
            batch,
            reported: None,
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

    /// Polls the batch every `TELL_EVERY`.
    async fn look(&mut self) -> Result<(), Stop> {
        if self.looked.elapsed() < TELL_EVERY {
            return Ok(());
        }
        match self.reported {
            // The first still waits after the report: the crypto service may have been restored from a backup.
            Some(reported) if reported.elapsed() < SAY_AGAIN_AFTER => return Ok(()),
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
        self.reported = match status {
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
            BatchStatus::Queued | BatchStatus::Running { .. } | BatchStatus::Waiting { .. } => None,
        };
        Ok(())
    }
}

/// Converts an error of a computation service. A refusal ends the job; everything else is temporary,
/// including a token that the service cannot check while it cannot reach this one.
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
        PeerError::Unreachable { .. } => Stop::Outage(format!("{who} cannot be reached")),
        PeerError::Problem { problem, .. } => Stop::Outage(format!("{who}: {problem}")),
        PeerError::Unsigned => Stop::Fault(Failure::internal(error)),
    }
}

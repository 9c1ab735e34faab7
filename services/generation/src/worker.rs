//! Workers: they take jobs under leases and see them through.
//!
//! A worker drives a [`Run`]: what the run wants stored goes into the database, in one transaction
//! with the event that tells of it and with proof that the lease still holds; what it asks for
//! goes to the computation service. Whatever ends a worker, the next one finds the job where the
//! last transaction left it.

use fhaim_api::batch::{self, BatchStatus};
use fhaim_api::job::{Happening, JobProgress, JobState};
use fhaim_api::problem::{Problem, ProblemKind};
use fhaim_dp::Rho;
use fhaim_platform::clock::Millis;
use fhaim_platform::lease::{Lease, Lost};
use fhaim_platform::peer::{Body, PeerError};
use fhaim_platform::shutdown::Shutdown;
use fhaim_platform::store::{StoreError, Tx};
use fhaim_platform::{Failure, clock, server};
use fhaim_protocol::terms::Terms;
use fhaim_synth::Outcome;
use reqwest::Method;
use sqlx::Row;
use std::time::{Duration, Instant};
use tokio::task::{JoinSet, spawn_blocking};
use uuid::Uuid;

use crate::run::{Action, Batch, Run, RunError, StoredBatch};
use crate::{State, accounts, datasets, events, jobs, models, rows};

/// How often a worker with nothing to do looks for work that another process has queued.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// First and longest wait between two looks at a batch.
const POLL: (Duration, Duration) = (Duration::from_millis(25), Duration::from_secs(1));

/// How often watchers are told that a batch is being computed.
const TELL_EVERY: Duration = Duration::from_secs(2);

/// Attempts in a row without a step after which a job is given up.
const MOST_STALLS: i64 = 5;

/// The longest wait before another attempt, in seconds.
const LONGEST_PAUSE: u64 = 60;

/// A cancelled job's worker stops after so long at the latest.
const NOTICE_AFTER: Duration = Duration::from_secs(2);

/// How often keys are rotated if due, and what is expired forgotten.
const TIDY_EVERY: Duration = Duration::from_secs(60);

/// Works on jobs, rotates keys and forgets what is expired, until `shutdown`.
pub async fn workers(state: State, shutdown: Shutdown) {
    let mut tasks = JoinSet::new();
    for _ in 0..state.config.common.workers {
        tasks.spawn(work(state.clone(), shutdown.clone()));
    }
    tasks.spawn(tidy(state.clone(), shutdown.clone()));
    shutdown.raised().await;
    state.stop();
    while tasks.join_next().await.is_some() {}
}

async fn tidy(state: State, shutdown: Shutdown) {
    loop {
        state.sign_ins.forget();
        let tidied = async {
            state.base.signer.rotate().await?;
            accounts::forget_expired(&state).await?;
            datasets::finish_deletions(&state).await
        };
        if let Err(failure) = tidied.await {
            tracing::error!(%failure, "tidying failed");
        }
        tokio::select! {
            () = shutdown.raised() => return,
            () = tokio::time::sleep(TIDY_EVERY) => {}
        }
    }
}

async fn work(state: State, shutdown: Shutdown) {
    while !shutdown.is_raised() {
        let taken = state.tasks.take().await;
        match taken {
            Ok(Some(lease)) => {
                server::with_request_id(attempt(&state, &lease, &shutdown)).await;
                continue;
            }
            Ok(None) => {}
            Err(error) => tracing::error!(%error, "no job can be taken"),
        }
        tokio::select! {
            () = shutdown.raised() => {}
            () = state.wake.notified() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}

/// Why an attempt at a job ended before the job did.
#[derive(Debug)]
enum Stop {
    /// The lease was lost, or the job was cancelled: it is not ours to touch.
    Lost,
    /// The service is stopping.
    Stopping,
    /// The job cannot go on.
    Failed(String),
    /// The computation service is out of reach.
    Outage(String),
    /// A fault here.
    Fault(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Fault(failure)
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Fault(error.into())
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

impl From<RunError> for Stop {
    fn from(error: RunError) -> Self {
        Self::Failed(error.to_string())
    }
}

/// One attempt at a job, with its lease renewed beside the work.
async fn attempt(state: &State, lease: &Lease, shutdown: &Shutdown) {
    tracing::info!(job = lease.id, attempt = lease.attempt, "job taken");
    let ended = tokio::select! {
        ended = drive(state, lease) => ended,
        () = keep_lease(state, lease) => Err(Stop::Lost),
        () = shutdown.raised() => Err(Stop::Stopping),
    };
    let Err(stop) = ended else {
        tracing::info!(job = lease.id, "job done");
        return;
    };
    if let Err(failure) = settle(state, lease, stop).await {
        // The lease runs out, and another worker takes the job.
        tracing::error!(job = lease.id, %failure, "the end of an attempt was not stored");
    }
}

/// Renews a lease until it is lost, which it is when the job is cancelled.
async fn keep_lease(state: &State, lease: &Lease) {
    loop {
        tokio::time::sleep(state.tasks.renewal().min(NOTICE_AFTER)).await;
        match state.tasks.renew(lease).await {
            Ok(Ok(())) => {}
            Ok(Err(Lost)) => return,
            Err(error) => tracing::warn!(job = lease.id, %error, "a lease was not renewed"),
        }
    }
}

/// Leaves a job in the state that the end of an attempt calls for.
async fn settle(state: &State, lease: &Lease, stop: Stop) -> Result<(), Failure> {
    let mut tx = state.base.store.begin().await?;
    if state.tasks.hold(&mut tx, lease).await?.is_err() {
        tracing::info!(job = lease.id, "the job is no longer ours");
        return Ok(());
    }
    match stop {
        Stop::Lost => return Ok(()),
        Stop::Stopping => release(&mut tx, &lease.id, 0, "stalls = 0").await?,
        Stop::Failed(reason) => {
            tracing::warn!(job = lease.id, reason, "job failed");
            jobs::set_state(&mut tx, &lease.id, JobState::Failed, Some(reason)).await?;
        }
        Stop::Outage(reason) => {
            let seconds = pause(count(&mut tx, &lease.id, "outages").await?);
            tracing::warn!(job = lease.id, reason, seconds, "job put off");
            let reason = Some(format!("{reason}: trying again in {seconds} s"));
            jobs::set_state(&mut tx, &lease.id, JobState::Queued, reason).await?;
            let counters = "stalls = 0, outages = outages + 1";
            release(&mut tx, &lease.id, clock::seconds(seconds), counters).await?;
        }
        Stop::Fault(failure) => {
            let seconds = pause(count(&mut tx, &lease.id, "stalls").await?);
            tracing::error!(job = lease.id, %failure, seconds, "an attempt broke off");
            let later = clock::seconds(seconds);
            release(&mut tx, &lease.id, later, "stalls = stalls").await?;
        }
    }
    tx.commit().await?;
    Ok(())
}

/// Seconds before another attempt: doubled by each, to a minute.
fn pause(attempts: i64) -> u64 {
    let doublings = u32::try_from(attempts.clamp(0, 6)).unwrap_or(6);
    2u64.pow(doublings).min(LONGEST_PAUSE)
}

async fn count(tx: &mut Tx, job: &str, column: &'static str) -> Result<i64, Failure> {
    let query = sqlx::AssertSqlSafe(format!("SELECT {column} FROM jobs WHERE id = $1"));
    let row = sqlx::query(query).bind(job).fetch_one(&mut **tx).await?;
    Ok(row.try_get(column)?)
}

/// Lets any worker take a job after a while.
async fn release(
    tx: &mut Tx,
    job: &str,
    after: Millis,
    counters: &'static str,
) -> Result<(), Failure> {
    let query =
        format!("UPDATE jobs SET lease_token = '', lease_expires = $1, {counters} WHERE id = $2");
    sqlx::query(sqlx::AssertSqlSafe(query))
        .bind(if after == 0 { 0 } else { clock::now() + after })
        .bind(job)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// What a worker knows of its job.
struct Task<'a> {
    state: &'a State,
    lease: &'a Lease,
    job: Uuid,
    dataset: Uuid,
    terms: Terms,
}

/// Sees a job through to its end.
async fn drive(state: &State, lease: &Lease) -> Result<(), Stop> {
    let (task, stored) = begin(state, lease).await?;
    let terms = task.terms.clone();
    let mut run = blocking(move || Run::new(&terms, stored)).await??;
    loop {
        let action;
        (run, action) = blocking(move || {
            let action = run.advance();
            (run, action)
        })
        .await?;
        match action? {
            Action::Store(batch) => {
                task.store(&batch).await?;
                run.stored()?;
            }
            Action::Ask(batch) => {
                let answers = task.ask(&batch).await?;
                run.answered(answers.clone())?;
                task.store_answers(&batch, &answers, run.spent()).await?;
            }
            Action::Finish(outcome, last) => {
                return task.finish(outcome, last.into(), run.spent()).await;
            }
        }
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    spawn_blocking(work).await.map_err(Failure::internal)
}

/// Counts the attempt, and reads the job.
async fn begin<'a>(
    state: &'a State,
    lease: &'a Lease,
) -> Result<(Task<'a>, Vec<StoredBatch>), Stop> {
    let mut tx = state.base.store.begin().await?;
    state.tasks.hold(&mut tx, lease).await??;
    let stalls = count(&mut tx, &lease.id, "stalls").await?;
    if stalls >= MOST_STALLS {
        let reason = format!("given up: {stalls} attempts in a row ended without a step");
        return Err(Stop::Failed(reason));
    }
    sqlx::query("UPDATE jobs SET stalls = stalls + 1 WHERE id = $1")
        .bind(&lease.id)
        .execute(&mut *tx)
        .await?;
    jobs::set_state(&mut tx, &lease.id, JobState::Running, None).await?;
    let row = sqlx::query(
        "SELECT jobs.id AS job, dataset, terms FROM jobs \
         JOIN datasets ON datasets.id = jobs.dataset WHERE jobs.id = $1",
    )
    .bind(&lease.id)
    .fetch_one(&mut *tx)
    .await?;
    let rows = sqlx::query("SELECT requests, answers FROM batches WHERE job = $1 ORDER BY number")
        .bind(&lease.id)
        .fetch_all(&mut *tx)
        .await?;
    tx.commit().await?;
    let stored = rows.iter().map(|row| {
        Ok(StoredBatch {
            requests: rows::json(row, "requests")?,
            answers: rows::some_json(row, "answers")?,
        })
    });
    let task = Task {
        state,
        lease,
        job: rows::uuid(&row, "job")?,
        dataset: rows::uuid(&row, "dataset")?,
        terms: rows::json(&row, "terms")?,
    };
    Ok((task, stored.collect::<Result<_, Failure>>()?))
}

impl Task<'_> {
    /// A transaction that only the holder of the lease can have.
    async fn begin(&self) -> Result<Tx, Stop> {
        let mut tx = self.state.base.store.begin().await?;
        self.state.tasks.hold(&mut tx, self.lease).await??;
        Ok(tx)
    }

    /// Stores a batch before it is asked for.
    async fn store(&self, batch: &Batch) -> Result<(), Stop> {
        let progress = JobProgress::from(batch.progress);
        let mut tx = self.begin().await?;
        sqlx::query(
            "INSERT INTO batches (job, number, progress, requests, asked_at) \
             VALUES ($1, $2, $3, $4, $5)",
        )
        .bind(&self.lease.id)
        .bind(batch.number as i64)
        .bind(serde_json::to_string(&progress)?)
        .bind(serde_json::to_string(&batch.requests)?)
        .bind(clock::now())
        .execute(&mut *tx)
        .await?;
        self.tell_phase(&mut tx, progress, batch.requests.len())
            .await?;
        tx.commit().await?;
        Ok(())
    }

    async fn tell_phase(
        &self,
        tx: &mut Tx,
        progress: JobProgress,
        releases: usize,
    ) -> Result<(), Stop> {
        sqlx::query("UPDATE jobs SET progress = $1, stalls = 0 WHERE id = $2")
            .bind(serde_json::to_string(&progress)?)
            .bind(&self.lease.id)
            .execute(&mut **tx)
            .await?;
        let phase = Happening::Phase { progress, releases };
        Ok(events::record(tx, &self.lease.id, &phase).await?)
    }

    /// Asks the computation service for a batch until it is released.
    async fn ask(&self, batch: &Batch) -> Result<Vec<Vec<i64>>, Stop> {
        let first = batch.first().ok_or(RunError::Contradiction)?;
        let path = format!(
            "/v1/datasets/{}/jobs/{}/batches/{first}",
            self.dataset, self.job
        );
        let body = Body::Json(serde_json::to_vec(&batch::Batch {
            requests: batch.requests.clone(),
        })?);
        let (mut wait, longest) = POLL;
        let mut told = Instant::now();
        loop {
            let status = (self.state.computation)
                .json::<BatchStatus>(Method::PUT, &path, body.clone())
                .await
                .map_err(stop_of)?;
            match status {
                BatchStatus::Released { answers, .. } => return Ok(answers),
                BatchStatus::Refused { reason } => {
                    let reason = format!("the computation service refused a release: {reason}");
                    return Err(Stop::Failed(reason));
                }
                BatchStatus::Running { seconds } if told.elapsed() >= TELL_EVERY => {
                    told = Instant::now();
                    self.tell_computing(seconds).await?;
                }
                BatchStatus::Queued | BatchStatus::Running { .. } => {}
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 3 / 2).min(longest);
        }
    }

    async fn tell_computing(&self, seconds: f64) -> Result<(), Stop> {
        let mut tx = self.begin().await?;
        events::record(&mut tx, &self.lease.id, &Happening::Computing { seconds }).await?;
        tx.commit().await?;
        Ok(())
    }

    async fn store_answers(
        &self,
        batch: &Batch,
        answers: &[Vec<i64>],
        spent: Rho,
    ) -> Result<(), Stop> {
        let mut tx = self.begin().await?;
        sqlx::query(
            "UPDATE batches SET answers = $1, released_at = $2 WHERE job = $3 AND number = $4",
        )
        .bind(serde_json::to_string(answers)?)
        .bind(clock::now())
        .bind(&self.lease.id)
        .bind(batch.number as i64)
        .execute(&mut *tx)
        .await?;
        sqlx::query(
            "UPDATE jobs SET releases = releases + $1, spent = $2, stalls = 0, outages = 0 \
             WHERE id = $3",
        )
        .bind(batch.requests.len() as i64)
        .bind(spent.count().to_string())
        .bind(&self.lease.id)
        .execute(&mut *tx)
        .await?;
        let released = Happening::Released {
            releases: batch.requests.len(),
            cells: batch.cells(),
            spent: spent.into(),
        };
        events::record(&mut tx, &self.lease.id, &released).await?;
        tx.commit().await?;
        metrics::counter!("releases_total", "service" => "generation")
            .increment(batch.requests.len() as u64);
        Ok(())
    }

    /// Stores the model, and then that the job is done.
    async fn finish(
        &self,
        outcome: Box<Outcome>,
        last: JobProgress,
        spent: Rho,
    ) -> Result<(), Stop> {
        if outcome.spent != spent {
            let problem = "the mechanism's account differs from the sum of its releases";
            return Err(Stop::Failed(problem.to_owned()));
        }
        let model = blocking(move || outcome.model.save()).await?;
        // So that a job that was cancelled and deleted meanwhile leaves no blob behind.
        self.begin().await?.commit().await?;
        models::put(self.state, self.dataset, self.job, model).await?;
        let mut tx = self.begin().await?;
        self.tell_phase(&mut tx, last, 0).await?;
        jobs::set_state(&mut tx, &self.lease.id, JobState::Done, None).await?;
        tx.commit().await?;
        Ok(())
    }
}

/// What an error of the computation service means for the job.
fn stop_of(error: PeerError) -> Stop {
    match error {
        PeerError::Problem { problem, .. } => stop_of_problem(&problem),
        PeerError::Unreachable { .. } => {
            Stop::Outage("the computation service is out of reach".to_owned())
        }
        PeerError::Unsigned => Stop::Fault(Failure::internal(error)),
    }
}

fn stop_of_problem(problem: &Problem) -> Stop {
    match problem.kind {
        // It cannot check our token while it cannot reach us.
        ProblemKind::Unauthenticated
        | ProblemKind::TooManyRequests
        | ProblemKind::Unavailable
        | ProblemKind::Internal => Stop::Outage(format!("the computation service: {problem}")),
        ProblemKind::NotFound => {
            Stop::Failed("the computation service no longer has the dataset".to_owned())
        }
        ProblemKind::BudgetSpent => {
            Stop::Failed("the dataset's budget is spent: no run of it is left".to_owned())
        }
        _ => Stop::Failed(format!("the computation service: {problem}")),
    }
}

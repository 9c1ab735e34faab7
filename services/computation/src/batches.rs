//! Batches of releases as tasks: asked for, taken, sealed, ended.

use fhaim_api::batch::{Batch, BatchStatus};
use fhaim_api::problem::ProblemKind;
use fhaim_domain::counted;
use fhaim_platform::lease::Lease;
use fhaim_platform::store::{Row, is_duplicate};
use fhaim_platform::{Failure, clock};
use fhaim_protocol::computation::JobState;
use fhaim_protocol::request::JobId;
use fhaim_protocol::terms::Plan;
use fhaim_synth::ReleaseRequest;
use sqlx::Row as _;
use std::time::Duration;
use uuid::Uuid;

use crate::State;
use crate::uploads::{self, Stored};

/// A request waits so long for its batch before it answers that the batch is under way.
const PATIENCE: Duration = Duration::from_secs(2);

/// A batch as a worker sees it.
#[derive(Debug)]
pub struct Task {
    /// The dataset.
    pub dataset: Uuid,
    /// The job.
    pub job: Uuid,
    /// What to release.
    pub requests: Vec<ReleaseRequest>,
    /// The blob of the sealed request, once there is one.
    pub sealed: Option<String>,
}

fn id(job: Uuid, first: u32) -> String {
    format!("{job}/{first}")
}

/// Asks for a batch, waits a little, and says where it is. The same batch again changes nothing.
///
/// # Errors
/// [`ProblemKind::Conflict`] where another batch has this number, or the upload is incomplete;
/// [`ProblemKind::NotFound`] for a dataset that is not there.
pub async fn ask(
    state: &State,
    dataset: Uuid,
    job: Uuid,
    first: u32,
    batch: &Batch,
) -> Result<BatchStatus, Failure> {
    if batch.requests.first().map(|request| request.number) != Some(first) {
        let detail = "the address names another release than the batch begins with";
        return Err(Failure::new(ProblemKind::Invalid, detail));
    }
    let ended = state.ended.notified();
    let status = look(state, dataset, job, first, batch).await?;
    let status = match status {
        Some(status) => status,
        None => {
            let stored = uploads::find(state, dataset).await?;
            enqueue(state, &stored, job, first, batch).await?;
            BatchStatus::Queued
        }
    };
    if matches!(
        status,
        BatchStatus::Released { .. } | BatchStatus::Refused { .. }
    ) {
        return Ok(status);
    }
    // Whichever comes first; a wake-up for another batch only makes the answer early.
    let _ = tokio::time::timeout(PATIENCE, ended).await;
    let status = look(state, dataset, job, first, batch).await?;
    status.ok_or_else(Failure::not_found)
}

async fn look(
    state: &State,
    dataset: Uuid,
    job: Uuid,
    first: u32,
    batch: &Batch,
) -> Result<Option<BatchStatus>, Failure> {
    let row = sqlx::query("SELECT * FROM batches WHERE id = $1 AND dataset = $2")
        .bind(id(job, first))
        .bind(dataset.to_string())
        .fetch_optional(state.base.store.pool())
        .await?;
    let Some(row) = row else {
        return Ok(None);
    };
    let requests: Vec<ReleaseRequest> =
        serde_json::from_str(&row.try_get::<String, _>("requests")?)?;
    if requests != batch.requests {
        let detail = format!("release {first} of the job was asked for with other content");
        return Err(Failure::new(ProblemKind::Conflict, detail));
    }
    status(&row).map(Some)
}

fn status(row: &Row) -> Result<BatchStatus, Failure> {
    let state: String = row.try_get("state")?;
    let text = |name: &str| row.try_get::<Option<String>, _>(name);
    Ok(match state.as_str() {
        "queued" => BatchStatus::Queued,
        "running" => BatchStatus::Running {
            seconds: (clock::now() - row.try_get::<i64, _>("created_at")?) as f64 / 1e3,
        },
        "released" => BatchStatus::Released {
            answers: serde_json::from_str(&text("answers")?.unwrap_or_default())?,
            compute_seconds: row.try_get("seconds")?,
        },
        _ => BatchStatus::Refused {
            reason: text("reason")?.unwrap_or_default(),
        },
    })
}

async fn enqueue(
    state: &State,
    stored: &Stored,
    job: Uuid,
    first: u32,
    batch: &Batch,
) -> Result<(), Failure> {
    if !uploads::is_complete(state, stored.dataset).await? {
        let detail = "the dataset's upload is not complete";
        return Err(Failure::new(ProblemKind::Conflict, detail));
    }
    let inserted = sqlx::query(
        "INSERT INTO batches (id, dataset, job, first, requests, state, seconds, lease_expires, \
         attempts, created_at) VALUES ($1, $2, $3, $4, $5, 'queued', 0, 0, 0, $6)",
    )
    .bind(id(job, first))
    .bind(stored.dataset.to_string())
    .bind(job.to_string())
    .bind(i64::from(first))
    .bind(serde_json::to_string(&batch.requests)?)
    .bind(clock::now())
    .execute(state.base.store.pool())
    .await;
    match inserted {
        Err(error) if is_duplicate(&error) => {}
        other => {
            other?;
        }
    }
    state.queued.notify_one();
    Ok(())
}

/// The batch that a lease is for.
///
/// # Errors
/// A failure of the store.
pub async fn task(state: &State, lease: &Lease) -> Result<Task, Failure> {
    let row = sqlx::query("SELECT dataset, job, requests, sealed FROM batches WHERE id = $1")
        .bind(&lease.id)
        .fetch_one(state.base.store.pool())
        .await?;
    let text = |name: &str| row.try_get::<String, _>(name);
    Ok(Task {
        dataset: text("dataset")?.parse().map_err(Failure::internal)?,
        job: text("job")?.parse().map_err(Failure::internal)?,
        requests: serde_json::from_str(&text("requests")?)?,
        sealed: row.try_get("sealed")?,
    })
}

/// A job's place on the noise ladder; its first batch gives it the next run.
///
/// # Errors
/// [`ProblemKind::BudgetSpent`] where no run is left.
pub async fn job_state(
    state: &State,
    dataset: Uuid,
    job: Uuid,
    plan: &Plan,
) -> Result<JobState, Failure> {
    let mut tx = state.base.store.begin().await?;
    // The dataset's row keeps two first batches from taking the same run.
    let lock = state
        .base
        .store
        .locking("SELECT dataset FROM uploads WHERE dataset = $1");
    sqlx::query(lock)
        .bind(dataset.to_string())
        .fetch_optional(&mut *tx)
        .await?
        .ok_or_else(Failure::not_found)?;
    let rows = sqlx::query("SELECT job, state FROM jobs WHERE dataset = $1")
        .bind(dataset.to_string())
        .fetch_all(&mut *tx)
        .await?;
    let name = job.to_string();
    for row in &rows {
        if row.try_get::<String, _>("job")? == name {
            return Ok(serde_json::from_str(&row.try_get::<String, _>("state")?)?);
        }
    }
    let run = u32::try_from(rows.len()).map_err(Failure::internal)?;
    if run >= plan.runs {
        let runs = counted(plan.runs, "run");
        let detail = format!("the dataset's budget is for {runs}, and none is left");
        return Err(Failure::new(ProblemKind::BudgetSpent, detail));
    }
    let fresh = JobState::new(JobId(job.into_bytes()), run, plan.run_ladder);
    sqlx::query("INSERT INTO jobs (dataset, job, run, state) VALUES ($1, $2, $3, $4)")
        .bind(dataset.to_string())
        .bind(&name)
        .bind(i64::from(run))
        .bind(serde_json::to_string(&fresh)?)
        .execute(&mut *tx)
        .await?;
    tx.commit().await?;
    Ok(fresh)
}

/// Makes a sealed batch and the noise it uses durable, together.
///
/// # Errors
/// A failure of the store; within, a lost lease.
pub async fn seal(
    state: &State,
    lease: &Lease,
    task: &Task,
    blob: &str,
    after: &JobState,
    seconds: f64,
) -> Result<Result<(), fhaim_platform::lease::Lost>, Failure> {
    let mut tx = state.base.store.begin().await?;
    if let Err(lost) = state.tasks.hold(&mut tx, lease).await? {
        return Ok(Err(lost));
    }
    sqlx::query("UPDATE batches SET sealed = $1, seconds = $2 WHERE id = $3")
        .bind(blob)
        .bind(seconds)
        .bind(&lease.id)
        .execute(&mut *tx)
        .await?;
    sqlx::query("UPDATE jobs SET state = $1 WHERE dataset = $2 AND job = $3")
        .bind(serde_json::to_string(after)?)
        .bind(task.dataset.to_string())
        .bind(task.job.to_string())
        .execute(&mut *tx)
        .await?;
    tx.commit().await?;
    Ok(Ok(()))
}

/// How a batch ends.
#[derive(Clone, Debug)]
pub enum End {
    /// With its integers.
    Released(Vec<Vec<i64>>),
    /// With a reason.
    Refused(String),
}

/// Ends a batch.
///
/// # Errors
/// A failure of the store. A lost lease is no error: someone else ends the batch.
pub async fn end(state: &State, lease: &Lease, end: End) -> Result<(), Failure> {
    let (name, answers, reason) = match end {
        End::Released(answers) => ("released", Some(serde_json::to_string(&answers)?), None),
        End::Refused(reason) => ("refused", None, Some(reason)),
    };
    let mut tx = state.base.store.begin().await?;
    if state.tasks.hold(&mut tx, lease).await?.is_err() {
        return Ok(());
    }
    sqlx::query("UPDATE batches SET state = $1, answers = $2, reason = $3 WHERE id = $4")
        .bind(name)
        .bind(answers)
        .bind(reason)
        .bind(&lease.id)
        .execute(&mut *tx)
        .await?;
    tx.commit().await?;
    state.ended.notify_waiters();
    Ok(())
}

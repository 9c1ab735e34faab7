//! Jobs, as their owners see them.

use fhaim_api::job::{Happening, Job, JobState};
use fhaim_api::problem::ProblemKind;
use fhaim_api::{Page, Paging};
use fhaim_domain::counted;
use fhaim_dp::Rho;
use fhaim_platform::store::{Row, Tx};
use fhaim_platform::{Failure, clock};
use sqlx::{AssertSqlSafe, Row as _};
use uuid::Uuid;

use crate::paging::Cut;
use crate::{State, datasets, events, rows};

const SELECT: &str = "SELECT id, dataset, state, progress, releases, spent, attempts, error, \
     created_at, updated_at FROM jobs";

/// Queues a job.
///
/// # Errors
/// There is no such dataset, or it is not ready; all of its runs are begun or promised.
pub async fn create(state: &State, owner: Uuid, dataset: Uuid) -> Result<Job, Failure> {
    let mut tx = state.base.store.begin().await?;
    claim_run(state, &mut tx, owner, dataset).await?;
    let (id, now) = (Uuid::now_v7(), clock::now());
    sqlx::query(
        "INSERT INTO jobs (id, dataset, owner, state, lease_token, lease_expires, attempts, \
         stalls, outages, releases, spent, events, created_at, updated_at) \
         VALUES ($1, $2, $3, $4, '', 0, 0, 0, 0, 0, $5, 0, $6, $6)",
    )
    .bind(id.to_string())
    .bind(dataset.to_string())
    .bind(owner.to_string())
    .bind(rows::name(JobState::Queued)?)
    .bind(Rho::ZERO.count().to_string())
    .bind(now)
    .execute(&mut *tx)
    .await?;
    events::record(&mut tx, &id.to_string(), &queued()).await?;
    tx.commit().await?;
    state.wake.notify_one();
    show(state, owner, id).await
}

fn queued() -> Happening {
    Happening::State {
        state: JobState::Queued,
        error: None,
    }
}

/// Makes sure that a dataset is ready and has a run that no job has begun or waits for. The
/// crypto service has the last word on this; here it saves jobs that could only fail.
async fn claim_run(state: &State, tx: &mut Tx, owner: Uuid, dataset: Uuid) -> Result<(), Failure> {
    let lock = (state.base.store).locking(
        "SELECT state, runs FROM datasets WHERE id = $1 AND owner = $2 AND state <> 'deleting'",
    );
    let row = sqlx::query(lock)
        .bind(dataset.to_string())
        .bind(owner.to_string())
        .fetch_optional(&mut **tx)
        .await?
        .ok_or_else(Failure::not_found)?;
    if row.try_get::<String, _>("state")? != "ready" {
        let detail = "the dataset is not ready: upload its records first";
        return Err(Failure::new(ProblemKind::Conflict, detail));
    }
    let runs: i64 = row.try_get("runs")?;
    let taken = sqlx::query(
        "SELECT COUNT(*) AS jobs FROM jobs WHERE dataset = $1 \
         AND (releases > 0 OR state IN ('queued', 'running'))",
    )
    .bind(dataset.to_string())
    .fetch_one(&mut **tx)
    .await?;
    if taken.try_get::<i64, _>("jobs")? >= runs {
        let runs = counted(runs, "run");
        let detail = format!("the dataset's budget is for {runs}, and other jobs left none");
        return Err(Failure::new(ProblemKind::BudgetSpent, detail));
    }
    Ok(())
}

/// An owner's job.
///
/// # Errors
/// There is none.
pub async fn show(state: &State, owner: Uuid, id: Uuid) -> Result<Job, Failure> {
    let query = AssertSqlSafe(format!("{SELECT} WHERE id = $1 AND owner = $2"));
    let row = sqlx::query(query)
        .bind(id.to_string())
        .bind(owner.to_string())
        .fetch_optional(state.base.store.pool())
        .await?;
    job(&row.ok_or_else(Failure::not_found)?)
}

/// A dataset's jobs.
///
/// # Errors
/// There is no such dataset, or no such page.
pub async fn list(
    state: &State,
    owner: Uuid,
    dataset: Uuid,
    paging: &Paging,
) -> Result<Page<Job>, Failure> {
    let cut = Cut::new(paging)?;
    datasets::show(state, owner, dataset).await?;
    let query = format!(
        "{SELECT} WHERE dataset = $1 AND owner = $2 \
         AND (created_at < $3 OR (created_at = $3 AND id < $4)) \
         ORDER BY created_at DESC, id DESC LIMIT $5"
    );
    let rows = sqlx::query(AssertSqlSafe(query))
        .bind(dataset.to_string())
        .bind(owner.to_string())
        .bind(cut.before)
        .bind(&cut.id)
        .bind(cut.rows())
        .fetch_all(state.base.store.pool())
        .await?;
    cut.page(&rows, job)
}

fn job(row: &Row) -> Result<Job, Failure> {
    let (releases, attempts): (i64, i64) = (row.try_get("releases")?, row.try_get("attempts")?);
    Ok(Job {
        id: rows::uuid(row, "id")?,
        dataset: rows::uuid(row, "dataset")?,
        state: rows::named(row, "state")?,
        progress: rows::some_json(row, "progress")?,
        releases: usize::try_from(releases).unwrap_or(0),
        spent: rows::rho(row, "spent")?.into(),
        attempts: u32::try_from(attempts).unwrap_or(u32::MAX),
        error: row.try_get("error")?,
        created_at: clock::date(row.try_get("created_at")?),
        updated_at: clock::date(row.try_get("updated_at")?),
    })
}

/// Where a job is, locked until the transaction ends.
async fn lock(state: &State, tx: &mut Tx, owner: Uuid, id: Uuid) -> Result<JobState, Failure> {
    let lock = (state.base.store).locking("SELECT state FROM jobs WHERE id = $1 AND owner = $2");
    let row = sqlx::query(lock)
        .bind(id.to_string())
        .bind(owner.to_string())
        .fetch_optional(&mut **tx)
        .await?;
    rows::named(&row.ok_or_else(Failure::not_found)?, "state")
}

/// Ends a job. Its worker notices at its next write, and stops; what is released stays released.
///
/// # Errors
/// There is no such job, or it has ended otherwise.
pub async fn cancel(state: &State, owner: Uuid, id: Uuid) -> Result<Job, Failure> {
    let mut tx = state.base.store.begin().await?;
    match lock(state, &mut tx, owner, id).await? {
        JobState::Queued | JobState::Running => {}
        JobState::Cancelled => return show_after(state, tx, owner, id).await,
        JobState::Done | JobState::Failed => {
            let detail = "the job has ended already";
            return Err(Failure::new(ProblemKind::Conflict, detail));
        }
    }
    let cancelled = JobState::Cancelled;
    set_state(&mut tx, &id.to_string(), cancelled, None).await?;
    show_after(state, tx, owner, id).await
}

/// Queues a job that failed or was cancelled again: it goes on where it was.
///
/// # Errors
/// There is no such job, or it is not at its end, or done; if it has released nothing yet, all
/// of the dataset's runs may be taken.
pub async fn retry(state: &State, owner: Uuid, id: Uuid) -> Result<Job, Failure> {
    let job = show(state, owner, id).await?;
    let mut tx = state.base.store.begin().await?;
    if job.releases == 0 {
        // Locks the dataset before the job, as deletion does.
        claim_run(state, &mut tx, owner, job.dataset).await?;
    }
    match lock(state, &mut tx, owner, id).await? {
        JobState::Failed | JobState::Cancelled => {}
        JobState::Queued | JobState::Running => return show_after(state, tx, owner, id).await,
        JobState::Done => {
            let detail = "the job is done: there is nothing to try again";
            return Err(Failure::new(ProblemKind::Conflict, detail));
        }
    }
    sqlx::query("UPDATE jobs SET lease_expires = 0, stalls = 0, outages = 0 WHERE id = $1")
        .bind(id.to_string())
        .execute(&mut *tx)
        .await?;
    set_state(&mut tx, &id.to_string(), JobState::Queued, None).await?;
    let job = show_after(state, tx, owner, id).await;
    state.wake.notify_one();
    job
}

async fn show_after(state: &State, tx: Tx, owner: Uuid, id: Uuid) -> Result<Job, Failure> {
    tx.commit().await?;
    show(state, owner, id).await
}

/// Changes a job's state and tells of it.
///
/// # Errors
/// A failure of the store.
pub async fn set_state(
    tx: &mut Tx,
    job: &str,
    state: JobState,
    error: Option<String>,
) -> Result<(), Failure> {
    sqlx::query("UPDATE jobs SET state = $1, error = $2, updated_at = $3 WHERE id = $4")
        .bind(rows::name(state)?)
        .bind(error.as_deref())
        .bind(clock::now())
        .bind(job)
        .execute(&mut **tx)
        .await?;
    events::record(tx, job, &Happening::State { state, error }).await
}

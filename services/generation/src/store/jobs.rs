//! Jobs, which are tasks under a lease.

use fhaim_api::job::{Happening, Job, JobProgress, JobState};
use fhaim_api::keys::Receipt;
use fhaim_dp::Rho;
use fhaim_platform::store::{Row, Store, StoreError, Tx, is_duplicate};
use fhaim_platform::{clock, rows};
use fhaim_protocol::terms::Terms;
use sqlx::{AssertSqlSafe, Row as _};
use uuid::Uuid;

use crate::paging::Cut;
use crate::store::events;
use crate::store::lists::{Entries, List};

/// Name of the table of tasks.
pub const TABLE: &str = "jobs";

const COLUMNS: &str = "id, owner, dataset, state, progress, releases, spent, attempts, error, \
     note, created_at, updated_at";

/// Condition: the account bound as `$2` started the job or is a holder of its dataset.
const HELD: &str = "(jobs.owner = $2 OR EXISTS (SELECT 1 FROM holders \
     WHERE holders.dataset = jobs.dataset AND holders.account = $2))";

fn select(rest: &str) -> AssertSqlSafe<String> {
    // Safe: all parts are constants of this crate.
    AssertSqlSafe(format!("SELECT {COLUMNS} FROM jobs WHERE {rest}"))
}

fn job(row: &Row) -> Result<Job, StoreError> {
    rows::of_dataset(rows::parsed(row, "dataset")?, whole_job(row))
}

fn whole_job(row: &Row) -> Result<Job, StoreError> {
    Ok(Job {
        id: rows::parsed(row, "id")?,
        dataset: rows::parsed(row, "dataset")?,
        note: row.try_get("note")?,
        state: rows::named(row, "state")?,
        progress: rows::some_json(row, "progress")?,
        releases: rows::number(row, "releases")?,
        spent: rows::named::<Rho>(row, "spent")?.into(),
        attempts: rows::number(row, "attempts")?,
        error: row.try_get("error")?,
        created_at: clock::date(row.try_get("created_at")?),
        updated_at: clock::date(row.try_get("updated_at")?),
    })
}

/// Queues a job. Returns `false` if the identifier is taken; the transaction can then not be used
/// any more.
///
/// # Errors
/// A failure of the store.
pub async fn insert(tx: &mut Tx, owner: Uuid, dataset: Uuid, id: Uuid) -> Result<bool, StoreError> {
    let queued = sqlx::query(
        "INSERT INTO jobs (id, dataset, owner, state, lease_token, lease_expires, attempts, \
         faults, outages, releases, spent, events, created_at, updated_at) \
         VALUES ($1, $2, $3, $4, '', 0, 0, 0, 0, 0, $5, 0, $6, $6)",
    )
    .bind(id.to_string())
    .bind(dataset.to_string())
    .bind(owner.to_string())
    .bind(rows::name(JobState::Queued)?)
    .bind(Rho::ZERO.count().to_string())
    .bind(clock::now())
    .execute(&mut **tx)
    .await;
    match queued {
        Err(error) if is_duplicate(&error) => return Ok(false),
        other => other?,
    };
    let queued = Happening::State {
        state: JobState::Queued,
        error: None,
    };
    events::record(tx, &id.to_string(), &queued).await?;
    Ok(true)
}

/// Returns the job with an identifier and the account that started it.
///
/// # Errors
/// A failure of the store.
pub async fn find(tx: &mut Tx, id: Uuid) -> Result<Option<(Uuid, Job)>, StoreError> {
    let row = sqlx::query(select("id = $1"))
        .bind(id.to_string())
        .fetch_optional(&mut **tx)
        .await?;
    let pair = |row: Row| Ok((rows::parsed(&row, "owner")?, job(&row)?));
    row.map(pair).transpose()
}

/// Returns a job of a dataset of which an account is a sole or joint holder.
///
/// # Errors
/// A failure of the store.
pub async fn held(store: &Store, user: Uuid, id: Uuid) -> Result<Option<Job>, StoreError> {
    let row = sqlx::query(select(&format!("id = $1 AND {HELD}")))
        .bind(id.to_string())
        .bind(user.to_string())
        .fetch_optional(store.pool())
        .await?;
    row.as_ref().map(job).transpose()
}

/// Lists a dataset's jobs from a cut on.
///
/// # Errors
/// A failure of the store.
pub async fn list(store: &Store, dataset: Uuid, cut: &Cut) -> Result<Entries<Job>, StoreError> {
    let list = List {
        table: TABLE,
        columns: COLUMNS,
        condition: "dataset = $1",
        bound: &[&dataset.to_string()],
    };
    list.fetch(store, cut, job).await
}

/// Returns a job's state and locks the job until the transaction ends. The caller checks access
/// before.
///
/// # Errors
/// A failure of the store.
pub async fn lock(store: &Store, tx: &mut Tx, id: Uuid) -> Result<Option<JobState>, StoreError> {
    let lock = store.locking("SELECT state FROM jobs WHERE id = $1");
    let row = sqlx::query(lock)
        .bind(id.to_string())
        .fetch_optional(&mut **tx)
        .await?;
    row.map(|row| rows::named(&row, "state")).transpose()
}

/// Changes a job's state and records an event.
///
/// # Errors
/// A failure of the store.
pub async fn set_state(
    tx: &mut Tx,
    job: &str,
    state: JobState,
    error: Option<&str>,
) -> Result<(), StoreError> {
    sqlx::query("UPDATE jobs SET state = $1, error = $2, updated_at = $3 WHERE id = $4")
        .bind(rows::name(state)?)
        .bind(error)
        .bind(clock::now())
        .bind(job)
        .execute(&mut **tx)
        .await?;
    let error = error.map(str::to_owned);
    events::record(tx, job, &Happening::State { state, error }).await
}

/// Queues a job again and resets its faults and outages.
///
/// # Errors
/// A failure of the store.
pub async fn queue_again(tx: &mut Tx, id: Uuid) -> Result<(), StoreError> {
    let id = id.to_string();
    sqlx::query("UPDATE jobs SET lease_expires = 0, faults = 0, outages = 0 WHERE id = $1")
        .bind(&id)
        .execute(&mut **tx)
        .await?;
    set_state(tx, &id, JobState::Queued, None).await
}

/// Sets a job's note.
///
/// # Errors
/// A failure of the store.
pub async fn set_note(store: &Store, id: Uuid, note: &str) -> Result<(), StoreError> {
    sqlx::query("UPDATE jobs SET note = $1 WHERE id = $2")
        .bind(note)
        .bind(id.to_string())
        .execute(store.pool())
        .await?;
    Ok(())
}

/// A worker's view of a job.
#[derive(Clone, Debug)]
pub struct Task {
    /// The job.
    pub job: Uuid,
    /// Its dataset.
    pub dataset: Uuid,
    /// The dataset's terms.
    pub terms: Terms,
}

/// Reads a job for a worker.
///
/// # Errors
/// A failure of the store.
pub async fn task(tx: &mut Tx, job: &str) -> Result<Task, StoreError> {
    let row = sqlx::query(
        "SELECT jobs.id AS job, dataset, terms FROM jobs \
         JOIN datasets ON datasets.id = jobs.dataset WHERE jobs.id = $1",
    )
    .bind(job)
    .fetch_one(&mut **tx)
    .await?;
    let dataset = rows::parsed(&row, "dataset")?;
    Ok(Task {
        job: rows::parsed(&row, "job")?,
        dataset,
        terms: rows::of_dataset(dataset, rows::json(&row, "terms"))?,
    })
}

/// Stores a job's progress and records an event.
///
/// # Errors
/// A failure of the store.
pub async fn set_progress(
    tx: &mut Tx,
    job: &str,
    progress: JobProgress,
    releases: usize,
) -> Result<(), StoreError> {
    sqlx::query("UPDATE jobs SET progress = $1 WHERE id = $2")
        .bind(rows::to_json(&progress)?)
        .bind(job)
        .execute(&mut **tx)
        .await?;
    events::record(tx, job, &Happening::Phase { progress, releases }).await
}

/// Adds to a job's number of releases and stores its total cost and last receipt.
///
/// # Errors
/// A failure of the store.
pub async fn add_releases(
    tx: &mut Tx,
    job: &str,
    releases: usize,
    spent: Rho,
    receipt: &Receipt,
) -> Result<(), StoreError> {
    sqlx::query("UPDATE jobs SET releases = releases + $1, spent = $2, receipt = $3 WHERE id = $4")
        .bind(rows::stored(releases)?)
        .bind(spent.count().to_string())
        .bind(rows::to_json(receipt)?)
        .bind(job)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

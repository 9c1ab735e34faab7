//! Datasets: what their holders fixed, and how far they are.

use fhaim_api::dataset::{Dataset, DatasetState, NewDataset, WireTerms};
use fhaim_api::problem::ProblemKind;
use fhaim_api::upload::{Upload, UploadState};
use fhaim_api::{Page, Paging};
use fhaim_domain::counted;
use fhaim_dp::Rho;
use fhaim_platform::peer::{Body, PeerError};
use fhaim_platform::store::Row;
use fhaim_platform::{Failure, clock};
use fhaim_protocol::terms::Terms;
use reqwest::Method;
use sqlx::Row as _;
use tokio::task::spawn_blocking;
use uuid::Uuid;

use crate::accounts::checked_name;
use crate::paging::Cut;
use crate::{State, rows};

const LONGEST_NAME: usize = 200;

/// A state that only this service knows of: gone for its owner, its blobs being deleted.
const DELETING: &str = "deleting";

/// Columns of a dataset; `begun` counts its jobs with releases.
const SELECT: &str = "SELECT id, name, terms, runs, budget, state, created_at, \
     (SELECT COUNT(*) FROM jobs WHERE jobs.dataset = datasets.id AND jobs.releases > 0) AS begun \
     FROM datasets";

/// Makes a dataset.
///
/// # Errors
/// A name that cannot be used, terms that cannot be met.
pub async fn create(state: &State, owner: Uuid, new: NewDataset) -> Result<Dataset, Failure> {
    let name = checked_name("name", new.name, LONGEST_NAME)?;
    let terms = new.terms.0;
    let budget = budget(state, &terms).await?;
    let (id, now) = (Uuid::now_v7(), clock::now());
    sqlx::query(
        "INSERT INTO datasets (id, owner, name, terms, runs, budget, state, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind(id.to_string())
    .bind(owner.to_string())
    .bind(&name)
    .bind(serde_json::to_string(&terms)?)
    .bind(i64::from(terms.runs))
    .bind(budget.count().to_string())
    .bind(rows::name(DatasetState::Uploading)?)
    .bind(now)
    .execute(state.base.store.pool())
    .await?;
    Ok(Dataset {
        id,
        name,
        runs_left: terms.runs,
        terms: WireTerms(terms),
        state: DatasetState::Uploading,
        budget: budget.into(),
        created_at: clock::date(now),
    })
}

/// Works a dataset's plan out, as the other services will; returns the budget.
async fn budget(state: &State, terms: &Terms) -> Result<Rho, Failure> {
    let invalid = |detail: String| Failure::new(ProblemKind::Invalid, detail);
    let most = state.config.limits.model_bytes;
    if terms.model_bytes > most {
        let detail = format!(
            "model_bytes: at most {most} here, not {}",
            terms.model_bytes
        );
        return Err(invalid(detail));
    }
    let _permit = state.plans.acquire().await.map_err(Failure::internal)?;
    let terms = terms.clone();
    let plan = spawn_blocking(move || terms.plan()).await;
    let plan = plan.map_err(Failure::internal)?;
    Ok(plan.map_err(|error| invalid(error.to_string()))?.budget)
}

/// An owner's dataset.
///
/// # Errors
/// There is none.
pub async fn show(state: &State, owner: Uuid, id: Uuid) -> Result<Dataset, Failure> {
    let query = format!("{SELECT} WHERE id = $1 AND owner = $2 AND state <> $3");
    let row = sqlx::query(sqlx::AssertSqlSafe(query))
        .bind(id.to_string())
        .bind(owner.to_string())
        .bind(DELETING)
        .fetch_optional(state.base.store.pool())
        .await?;
    dataset(&row.ok_or_else(Failure::not_found)?)
}

/// An owner's datasets.
///
/// # Errors
/// A page that cannot be.
pub async fn list(state: &State, owner: Uuid, paging: &Paging) -> Result<Page<Dataset>, Failure> {
    let cut = Cut::new(paging)?;
    let query = format!(
        "{SELECT} WHERE owner = $1 AND state <> $2 \
         AND (created_at < $3 OR (created_at = $3 AND id < $4)) \
         ORDER BY created_at DESC, id DESC LIMIT $5"
    );
    let rows = sqlx::query(sqlx::AssertSqlSafe(query))
        .bind(owner.to_string())
        .bind(DELETING)
        .bind(cut.before)
        .bind(&cut.id)
        .bind(cut.rows())
        .fetch_all(state.base.store.pool())
        .await?;
    cut.page(&rows, dataset)
}

fn dataset(row: &Row) -> Result<Dataset, Failure> {
    let (runs, begun): (i64, i64) = (row.try_get("runs")?, row.try_get("begun")?);
    Ok(Dataset {
        id: rows::uuid(row, "id")?,
        name: row.try_get("name")?,
        terms: rows::json(row, "terms")?,
        state: rows::named(row, "state")?,
        budget: rows::rho(row, "budget")?.into(),
        runs_left: u32::try_from(runs.saturating_sub(begun)).unwrap_or(0),
        created_at: clock::date(row.try_get("created_at")?),
    })
}

/// Marks a dataset as ready, if the computation service has all of its objects.
///
/// # Errors
/// There is no such dataset, its upload is not complete, the computation service is out of reach.
pub async fn make_ready(state: &State, owner: Uuid, id: Uuid) -> Result<Dataset, Failure> {
    let dataset = show(state, owner, id).await?;
    if dataset.state == DatasetState::Ready {
        return Ok(dataset);
    }
    check_upload(state, id).await?;
    sqlx::query("UPDATE datasets SET state = $1 WHERE id = $2 AND state = $3")
        .bind(rows::name(DatasetState::Ready)?)
        .bind(id.to_string())
        .bind(rows::name(DatasetState::Uploading)?)
        .execute(state.base.store.pool())
        .await?;
    show(state, owner, id).await
}

async fn check_upload(state: &State, id: Uuid) -> Result<(), Failure> {
    let conflict = |detail: String| Failure::new(ProblemKind::Conflict, detail);
    let path = format!("/v1/datasets/{id}");
    let upload = state
        .computation
        .json(Method::GET, &path, Body::Empty)
        .await;
    let upload: Upload = match upload {
        Ok(upload) => upload,
        Err(PeerError::Problem { problem, .. }) if problem.kind == ProblemKind::NotFound => {
            return Err(conflict("nothing has been uploaded yet".to_owned()));
        }
        Err(error) => return Err(error.into()),
    };
    let parts = &upload.contributions;
    if !parts.is_empty() && parts.iter().all(|part| part.state == UploadState::Complete) {
        return Ok(());
    }
    let missing: u64 = (parts.iter())
        .map(|part| part.objects.saturating_sub(part.objects_present))
        .sum();
    Err(conflict(format!(
        "the upload is not complete: it lacks {}, or `complete` was not called",
        counted(missing, "object")
    )))
}

/// Deletes this service's part of a dataset: jobs, releases, models.
///
/// # Errors
/// There is no such dataset; a job is still queued or running.
pub async fn delete(state: &State, owner: Uuid, id: Uuid) -> Result<(), Failure> {
    let mut tx = state.base.store.begin().await?;
    let lock = (state.base.store)
        .locking("SELECT id FROM datasets WHERE id = $1 AND owner = $2 AND state <> $3");
    let dataset = id.to_string();
    sqlx::query(lock)
        .bind(&dataset)
        .bind(owner.to_string())
        .bind(DELETING)
        .fetch_optional(&mut *tx)
        .await?
        .ok_or_else(Failure::not_found)?;
    let active = sqlx::query(
        "SELECT id FROM jobs WHERE dataset = $1 AND state IN ('queued', 'running') LIMIT 1",
    )
    .bind(&dataset)
    .fetch_optional(&mut *tx)
    .await?;
    if let Some(job) = active {
        let detail = format!(
            "job {} is not at its end: cancel it first",
            rows::uuid(&job, "id")?
        );
        return Err(Failure::new(ProblemKind::Conflict, detail));
    }
    for rows in [
        "DELETE FROM job_events WHERE job IN (SELECT id FROM jobs WHERE dataset = $1)",
        "DELETE FROM batches WHERE job IN (SELECT id FROM jobs WHERE dataset = $1)",
        "DELETE FROM jobs WHERE dataset = $1",
    ] {
        sqlx::query(rows).bind(&dataset).execute(&mut *tx).await?;
    }
    // The row goes last, after the blobs: if this is the last that happens here, another finds it.
    sqlx::query("UPDATE datasets SET state = $1 WHERE id = $2")
        .bind(DELETING)
        .bind(&dataset)
        .execute(&mut *tx)
        .await?;
    tx.commit().await?;
    state.models.forget(id);
    finish_deletion(state, &dataset).await
}

async fn finish_deletion(state: &State, dataset: &str) -> Result<(), Failure> {
    state.base.blobs.delete_folder(&folder(dataset)).await?;
    sqlx::query("DELETE FROM datasets WHERE id = $1 AND state = $2")
        .bind(dataset)
        .bind(DELETING)
        .execute(state.base.store.pool())
        .await?;
    Ok(())
}

/// Goes on with deletions that were broken off.
///
/// # Errors
/// A failure of the store or of the blobs.
pub async fn finish_deletions(state: &State) -> Result<(), Failure> {
    let rows = sqlx::query("SELECT id FROM datasets WHERE state = $1")
        .bind(DELETING)
        .fetch_all(state.base.store.pool())
        .await?;
    for row in rows {
        finish_deletion(state, &row.try_get::<String, _>("id")?).await?;
    }
    Ok(())
}

/// Where a dataset's blobs are.
pub fn folder(dataset: &str) -> String {
    format!("datasets/{dataset}")
}

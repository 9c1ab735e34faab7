//! Stored debits and runs.

use fhaim_api::keys::{DatasetLedger, RunLedger};
use fhaim_api::problem::ProblemKind;
use fhaim_domain::counted;
use fhaim_dp::{Entry, Ledger, Rho};
use fhaim_platform::store::Tx;
use fhaim_platform::{Failure, clock};
use fhaim_protocol::terms::Plan;
use sqlx::Row;
use std::collections::BTreeMap;
use uuid::Uuid;

use crate::keys::{self, Stored};
use crate::{State, decryption};

/// A job's share of the budget, and what it has spent.
#[derive(Debug)]
pub struct Run {
    /// The job.
    pub job: Uuid,
    /// Its debits.
    pub ledger: Ledger,
}

/// Claims a run for a job, unless it has one.
///
/// # Errors
/// [`ProblemKind::BudgetSpent`] where no run is left.
pub async fn claim(tx: &mut Tx, stored: &Stored, plan: &Plan, job: Uuid) -> Result<(), Failure> {
    let dataset = stored.dataset.to_string();
    let jobs = sqlx::query("SELECT job FROM runs WHERE dataset = $1")
        .bind(&dataset)
        .fetch_all(&mut **tx)
        .await?;
    let name = job.to_string();
    for row in &jobs {
        if row.try_get::<String, _>("job")? == name {
            return Ok(());
        }
    }
    if jobs.len() >= plan.runs as usize {
        let runs = counted(plan.runs, "run");
        let detail = format!("the dataset's budget is for {runs}, and none is left");
        return Err(Failure::new(ProblemKind::BudgetSpent, detail));
    }
    sqlx::query("INSERT INTO runs (dataset, number, job, claimed_at) VALUES ($1, $2, $3, $4)")
        .bind(&dataset)
        .bind(i64::try_from(jobs.len()).map_err(Failure::internal)?)
        .bind(&name)
        .bind(clock::now())
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// A job's ledger.
///
/// # Errors
/// A stored ledger that breaks its own rules.
pub async fn read(tx: &mut Tx, dataset: Uuid, job: Uuid, budget: Rho) -> Result<Ledger, Failure> {
    let rows =
        sqlx::query("SELECT entry FROM debits WHERE dataset = $1 AND job = $2 ORDER BY number")
            .bind(dataset.to_string())
            .bind(job.to_string())
            .fetch_all(&mut **tx)
            .await?;
    let mut ledger = Ledger::new(budget);
    for row in &rows {
        restore(&mut ledger, &row.try_get::<String, _>("entry")?)?;
    }
    Ok(ledger)
}

/// Writes the debits that a ledger has gained.
///
/// # Errors
/// A failure of the store.
pub async fn write(
    tx: &mut Tx,
    dataset: Uuid,
    job: Uuid,
    before: &Ledger,
    after: &Ledger,
) -> Result<(), Failure> {
    for entry in after.entries().iter().skip(before.entries().len()) {
        sqlx::query(
            "INSERT INTO debits (dataset, job, number, entry, debited_at) \
             VALUES ($1, $2, $3, $4, $5)",
        )
        .bind(dataset.to_string())
        .bind(job.to_string())
        .bind(i64::from(entry.debit.number))
        .bind(serde_json::to_string(entry)?)
        .bind(clock::now())
        .execute(&mut **tx)
        .await?;
    }
    Ok(())
}

/// All runs of a dataset, oldest first.
///
/// # Errors
/// A failure of the store, or a stored ledger that breaks its own rules.
pub async fn runs(state: &State, dataset: Uuid) -> Result<Vec<Run>, Failure> {
    let stored = keys::find(state, dataset).await?;
    let plan = keys::plan(stored.terms).await?;
    let name = dataset.to_string();
    let claimed = sqlx::query("SELECT job FROM runs WHERE dataset = $1 ORDER BY number")
        .bind(&name)
        .fetch_all(state.base.store.pool())
        .await?;
    let debits = sqlx::query("SELECT job, entry FROM debits WHERE dataset = $1 ORDER BY number")
        .bind(&name)
        .fetch_all(state.base.store.pool())
        .await?;
    let mut ledgers: BTreeMap<String, Ledger> = BTreeMap::new();
    for row in &debits {
        let ledger = ledgers
            .entry(row.try_get("job")?)
            .or_insert_with(|| Ledger::new(plan.job.rho));
        restore(ledger, &row.try_get::<String, _>("entry")?)?;
    }
    let run = |row: &fhaim_platform::store::Row| {
        let job: String = row.try_get("job")?;
        Ok(Run {
            ledger: ledgers
                .remove(&job)
                .unwrap_or_else(|| Ledger::new(plan.job.rho)),
            job: job.parse().map_err(Failure::internal)?,
        })
    };
    claimed.iter().map(run).collect()
}

/// Debits a stored entry again, so that a stored ledger cannot be looser than its rules.
fn restore(ledger: &mut Ledger, entry: &str) -> Result<(), Failure> {
    let entry: Entry = serde_json::from_str(entry)?;
    ledger
        .debit(entry.debit)
        .map_err(|error| Failure::internal(format!("the stored ledger: {error}")))?;
    Ok(())
}

/// A sum of costs.
///
/// # Errors
/// A sum past what can be counted.
pub fn total(costs: impl IntoIterator<Item = Rho>) -> Result<Rho, Failure> {
    Rho::checked_sum(costs).ok_or_else(|| Failure::internal(decryption::OVERFLOW))
}

/// What a dataset's owner may see.
///
/// # Errors
/// [`ProblemKind::NotFound`].
pub async fn show(state: &State, dataset: Uuid, owner: Uuid) -> Result<DatasetLedger, Failure> {
    let stored = keys::find_owned(state, dataset, owner).await?;
    let plan = keys::plan(stored.terms).await?;
    let runs = runs(state, dataset).await?;
    let spent = total(runs.iter().map(|run| run.ledger.spent()))?;
    let promised = total(runs.iter().map(|_| plan.job.rho))?;
    let run = |run: Run| RunLedger {
        job: run.job,
        budget: run.ledger.budget().into(),
        spent: run.ledger.spent().into(),
        entries: run.ledger.entries().to_vec(),
    };
    Ok(DatasetLedger {
        dataset,
        budget: plan.budget.into(),
        spent: spent.into(),
        unclaimed: plan
            .budget
            .checked_sub(promised)
            .unwrap_or(Rho::ZERO)
            .into(),
        runs: runs.into_iter().map(run).collect(),
    })
}

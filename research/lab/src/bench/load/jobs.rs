//! Jobs of `fhaim-lab bench load`. Each has its own dataset, and must be paid once.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use fhaim_api::job::JobState;
use fhaim_domain::{Schema, Table};
use fhaim_protocol::terms::Terms;
use fhaim_sdk::{Client, Journal, NoiseSource, UploadSource};
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde::Serialize;
use uuid::Uuid;

use super::COLUMNS;
use crate::error::Error;

/// Pause after a job that failed.
const AFTER_A_PROBLEM: Duration = Duration::from_secs(2);

/// A job that ended, or whose dataset could not be made.
#[derive(Debug, Serialize)]
pub struct Ended {
    /// The job; `None` if it was not accepted.
    pub job: Option<Uuid>,
    /// Seconds from the request to the end of the job.
    pub seconds: f64,
    /// The problem, if any: the job failed, exists twice, or does not match its ledger.
    pub wrong: Option<String>,
}

/// A client that runs one job after the other.
pub struct Writer {
    client: Client,
    records: usize,
    seed: u64,
    /// The dataset of the first job, which is made before the load begins.
    first: Uuid,
}

impl Writer {
    /// Creates a writer, with the dataset for its first job.
    pub async fn prepare(client: Client, records: usize, number: u64) -> Result<Self, Error> {
        let seed = (number + 1) * 1_000_000;
        let first = dataset(&client, records, COLUMNS, seed).await?;
        Ok(Self {
            client,
            records,
            seed,
            first,
        })
    }

    /// Starts jobs until a time and waits for the last one. Returns all requested jobs.
    pub async fn write(self, until: Instant) -> Vec<Ended> {
        let mut ended = vec![self.job(Ok(self.first)).await];
        let mut seed = self.seed;
        while Instant::now() < until {
            seed += 1;
            let made = dataset(&self.client, self.records, COLUMNS, seed).await;
            let job = self.job(made).await;
            if job.wrong.is_some() {
                tokio::time::sleep(AFTER_A_PROBLEM).await;
            }
            ended.push(job);
        }
        ended
    }

    async fn job(&self, dataset: Result<Uuid, Error>) -> Ended {
        let started = Instant::now();
        let seconds = || started.elapsed().as_secs_f64();
        let dataset = match dataset {
            Ok(dataset) => dataset,
            Err(error) => {
                return Ended {
                    job: None,
                    seconds: seconds(),
                    wrong: Some(format!("no dataset: {error}")),
                };
            }
        };
        let job = Uuid::now_v7();
        let finished = finish(&self.client, dataset, job).await;
        let seconds = seconds();
        let wrong = match finished {
            Ok(_) => not_once(&self.client, dataset, job).await,
            Err(error) => Err(error),
        };
        Ended {
            job: Some(job),
            seconds,
            wrong: wrong.unwrap_or_else(|error| Some(format!("{dataset}: {error}"))),
        }
    }
}

/// Checks that a dataset's only job was done exactly once: one job, one run, and a single debit for each release.
/// Returns a description of the difference, if there is one.
async fn not_once(client: &Client, dataset: Uuid, job: Uuid) -> Result<Option<String>, Error> {
    let (jobs, ledger) = (
        client.jobs(dataset).await?.items,
        client.ledger(dataset).await?,
    );
    let releases = client.releases(job).await?;
    let numbered = (0..).zip(&releases).all(|(number, r)| r.number == number);
    let [only] = jobs.as_slice() else {
        return Ok(Some(format!("{dataset}: {} jobs", jobs.len())));
    };
    let [run] = ledger.runs.as_slice() else {
        return Ok(Some(format!("{dataset}: {} runs", ledger.runs.len())));
    };
    let counts = (run.entries.len(), releases.len(), only.releases);
    let once = (only.id, run.job) == (job, job)
        && numbered
        && counts == (releases.len(), releases.len(), releases.len())
        && run.spent == only.spent
        && ledger.frozen.is_none();
    Ok((!once).then(|| {
        let (entries, listed, counted) = counts;
        format!("{dataset}: {entries} debits, {listed} releases listed, {counted} counted")
    }))
}

/// Formats the results of jobs.
pub fn lines(jobs: &[Ended]) -> String {
    let mut seconds: Vec<f64> = jobs.iter().map(|job| job.seconds).collect();
    seconds.sort_unstable_by(f64::total_cmp);
    let (accepted, well) = (
        jobs.iter().filter(|job| job.job.is_some()).count(),
        jobs.iter().filter(|job| job.wrong.is_none()).count(),
    );
    let mut text = format!("{accepted} jobs during the load, {well} done and paid once");
    if let (Some(least), Some(most)) = (seconds.first(), seconds.last()) {
        text.push_str(&format!(", in {least:.1} to {most:.1} s each"));
    }
    text.push('\n');
    for wrong in jobs.iter().filter_map(|job| job.wrong.as_ref()) {
        text.push_str(&format!("problem: {wrong}\n"));
    }
    text
}

/// Makes and uploads a table of columns with eight values, each of which depends on the column before.
pub async fn dataset(
    client: &Client,
    records: usize,
    columns: usize,
    seed: u64,
) -> Result<Uuid, Error> {
    let table = generated(records, columns, seed)?;
    let terms = terms_of(&table)?;
    let made = client.create_dataset(Uuid::now_v7(), "load", terms).await?;
    let source = UploadSource {
        records: fhaim_sdk::Records::Table(Arc::new(table)),
        noise: NoiseSource::System,
        signer: None,
    };
    let quiet = |_: fhaim_sdk::UploadProgress| {};
    client
        .upload(&made, &source, Journal::in_memory(), &quiet)
        .await?;
    Ok(made.id)
}

/// Returns the terms of such a dataset.
pub fn terms(records: usize, columns: usize, seed: u64) -> Result<Terms, Error> {
    terms_of(&generated(records, columns, seed)?)
}

fn terms_of(table: &Table) -> Result<Terms, Error> {
    let terms = Terms::new(table.schema().clone(), 1.0, 1e-9, table.records() as u64);
    Ok(terms.complete(&fhaim_synth::Mechanisms)?)
}

fn generated(records: usize, columns: usize, seed: u64) -> Result<Table, Error> {
    let column = |c: usize| {
        let categories: Vec<String> = (0..8).map(|v| format!("v{v}")).collect();
        serde_json::json!({"name": format!("c{c}"), "kind": "categorical", "categories": categories})
    };
    let schema = serde_json::json!({
        "name": "load", "columns": (0..columns).map(column).collect::<Vec<_>>(),
    });
    let schema = Schema::from_json("generated", schema.to_string().as_bytes())?;
    let mut rng = StdRng::seed_from_u64(seed);
    let mut values = vec![Vec::with_capacity(records); columns];
    for _ in 0..records {
        let mut value: u32 = rng.random_range(0..8);
        for column in &mut values {
            value = if rng.random_bool(0.7) {
                value
            } else {
                rng.random_range(0..8)
            };
            column.push(value);
        }
    }
    Table::new(schema, values).map_err(|problem| Error::Service(problem.to_string()))
}

/// Runs a job and waits for its end.
pub async fn finish(client: &Client, dataset: Uuid, job: Uuid) -> Result<Uuid, Error> {
    client.run(dataset, job).await?;
    loop {
        let now = client.job(job).await?;
        match now.state {
            JobState::Done => return Ok(job),
            JobState::Failed | JobState::Cancelled => {
                let reason = now.error.map(|problem| problem.to_string());
                return Err(Error::Service(reason.unwrap_or_default()));
            }
            _ => tokio::time::sleep(Duration::from_millis(200)).await,
        }
    }
}

//! `fhaim-lab bench load`: measures the services while many users read and download, and jobs run.
//!
//! The services are new processes on loopback, or run already behind one address. Users are signed-in clients that send
//! a request about once a second. Every job has its own dataset, and is compared with its ledger when it has ended.

mod jobs;
mod users;

use std::time::{Duration, Instant};

use fhaim_api::account::{Credentials, Secret};
use fhaim_files::progress::Progress;
use fhaim_sdk::{Client, Endpoints};
use serde::Serialize;
use tempfile::TempDir;
use tokio::task::JoinSet;
use uuid::Uuid;

pub use self::jobs::terms;
use self::{
    jobs::{Ended, Writer},
    users::Row,
};
use super::{
    args::LoadArguments,
    fleet::{Fleet, Usage},
};
use crate::{error::Error, output};

/// Number of accounts that the users share. Each account has a finished job.
const ACCOUNTS: usize = 10;

/// Number of attributes of the jobs' tables.
const COLUMNS: usize = 12;

/// An account with a finished job.
#[derive(Clone)]
struct Owned {
    credentials: Credentials,
    dataset: Uuid,
    job: Uuid,
}

/// The results.
#[derive(Debug, Serialize)]
struct Outcome {
    users: usize,
    seconds: f64,
    requests_per_second: f64,
    reads: Vec<Row>,
    /// The messages of the first errors of the users.
    read_errors: Vec<String>,
    /// Jobs that ran during the load.
    jobs: Vec<Ended>,
    /// Empty if the services ran already.
    services: Vec<Usage>,
}

/// Runs the command: starts services or uses running ones, prepares accounts, applies the load, and prints the results.
pub fn run(arguments: &LoadArguments, progress: &Progress) -> Result<(), Error> {
    let outcome = match &arguments.server {
        Some(server) => {
            let endpoints = Endpoints::behind(server);
            fhaim_cli::shared::runtime()?.block_on(load(&endpoints, arguments, progress))?
        }
        None => on_new_services(arguments, progress)?,
    };
    match arguments.json {
        true => output::print_json(&outcome)?,
        false => output::print(&table(&outcome))?,
    }
    match outcome
        .jobs
        .iter()
        .filter(|job| job.wrong.is_some())
        .count()
    {
        0 => Ok(()),
        count => Err(Error::Service(format!(
            "{count} jobs failed, or do not match their ledgers"
        ))),
    }
}

fn on_new_services(arguments: &LoadArguments, progress: &Progress) -> Result<Outcome, Error> {
    let folder = TempDir::new().map_err(|error| Error::Service(error.to_string()))?;
    let mut fleet = Fleet::start(folder.path())?;
    let endpoints = fleet.endpoints();
    let mut outcome = fhaim_cli::shared::runtime()?.block_on(async {
        fleet.ready().await?;
        load(&endpoints, arguments, progress).await
    })?;
    outcome.services = fleet.usage();
    Ok(outcome)
}

async fn load(
    endpoints: &Endpoints,
    arguments: &LoadArguments,
    progress: &Progress,
) -> Result<Outcome, Error> {
    let phase = progress.counted("accounts with a finished job", ACCOUNTS as u64, "accounts");
    let mut owned = Vec::new();
    for account in 0..ACCOUNTS {
        owned.push(prepare(endpoints, account).await?);
        phase.reach(account as u64 + 1);
    }
    phase.finish();
    let phase = progress.uncounted(format!("sign in {} users", arguments.users));
    let users = users::sign_in(endpoints, &owned, arguments.users).await?;
    phase.finish();
    let phase = progress.counted("datasets for the jobs", arguments.jobs as u64, "datasets");
    let mut writers = Vec::new();
    for number in 0..arguments.jobs {
        // Jobs take the accounts in turn, because one account gets no more than its share of the workers.
        let Some(owned) = owned.get(number % ACCOUNTS) else {
            break; // there are ACCOUNTS of them
        };
        let client = client(endpoints, &owned.credentials).await?;
        writers.push(Writer::prepare(client, arguments.records, number as u64).await?);
        phase.reach(number as u64 + 1);
    }
    phase.finish();

    let phase = progress.uncounted("load");
    let started = Instant::now();
    let until = started + Duration::from_secs(arguments.seconds);
    let mut writing = JoinSet::new();
    for writer in writers {
        writing.spawn(writer.write(until));
    }
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let mut running = JoinSet::new();
    for (number, (client, owned)) in users.into_iter().enumerate() {
        running.spawn(users::user(client, owned, number as u64, stopped.clone()));
    }
    let mut jobs = Vec::new();
    while let Some(written) = writing.join_next().await {
        jobs.extend(written.map_err(|error| Error::Service(error.to_string()))?);
    }
    tokio::time::sleep_until(until.into()).await;
    // Fails only if no user is left.
    let _ = stop.send(true);
    let mut samples = Vec::new();
    while let Some(user) = running.join_next().await {
        samples.extend(user.map_err(|error| Error::Service(error.to_string()))?);
    }
    phase.finish();
    let seconds = started.elapsed().as_secs_f64();
    Ok(Outcome {
        users: arguments.users,
        seconds,
        requests_per_second: samples.len() as f64 / seconds,
        reads: users::rows(&samples),
        read_errors: users::errors(&samples),
        jobs,
        services: Vec::new(),
    })
}

async fn client(endpoints: &Endpoints, credentials: &Credentials) -> Result<Client, Error> {
    let client = Client::new(endpoints.clone())?;
    client.sign_in(credentials).await?;
    Ok(client)
}

/// Signs up, and runs a whole job on a small dataset.
async fn prepare(endpoints: &Endpoints, account: usize) -> Result<Owned, Error> {
    // The name must be new even on services that ran already.
    let name = Uuid::new_v4().simple();
    let credentials = Credentials {
        email: format!("load-{account}-{name}@example.org"),
        password: Secret(format!("a password for measurements {account}")),
    };
    Client::new(endpoints.clone())?
        .sign_up(&credentials)
        .await?;
    let client = client(endpoints, &credentials).await?;
    let dataset = jobs::dataset(&client, 500, 4, account as u64).await?;
    let job = jobs::finish(&client, dataset, Uuid::now_v7()).await?;
    Ok(Owned {
        credentials,
        dataset,
        job,
    })
}

/// Runs a job on a small dataset of the account that `client` is signed in to, and returns the job.
pub async fn finished_job(client: &Client) -> Result<Uuid, Error> {
    let dataset = jobs::dataset(client, 500, COLUMNS, 0).await?;
    jobs::finish(client, dataset, Uuid::now_v7()).await
}

fn table(outcome: &Outcome) -> String {
    let mut text = format!(
        "{} users, {:.0} requests a second for {:.1} s\n{:10} {:>8} {:>7} {:>8} {:>8} {:>8}\n",
        outcome.users,
        outcome.requests_per_second,
        outcome.seconds,
        "request",
        "number",
        "errors",
        "p50 ms",
        "p99 ms",
        "max ms"
    );
    for row in &outcome.reads {
        text.push_str(&format!(
            "{:10} {:>8} {:>7} {:>8.1} {:>8.1} {:>8.1}\n",
            row.request, row.requests, row.errors, row.p50_ms, row.p99_ms, row.max_ms
        ));
    }
    for error in &outcome.read_errors {
        text.push_str(&format!("an error: {error}\n"));
    }
    text.push_str(&jobs::lines(&outcome.jobs));
    for usage in &outcome.services {
        let peak = match usage.peak_bytes {
            Some(bytes) => format!("{:.0} MB", bytes as f64 / 1e6),
            None => "unknown".to_owned(),
        };
        text.push_str(&format!("{}: peak memory {peak}\n", usage.service));
    }
    text
}

//! `fhaim bench load`: many users read and download while jobs run, on loopback.
//!
//! The services are processes of their own. Users are signed-in clients that ask for something
//! once a second: mostly how a job is, sometimes lists, the ledger, a model, a synthetic table.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use fhaim_api::{
    account::{Credentials, Secret},
    job::{Draw, JobState},
};
use fhaim_domain::{Schema, Table};
use fhaim_protocol::terms::Terms;
use fhaim_sdk::{Client, Endpoints, Journal, Records, Source};
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde::Serialize;
use tempfile::TempDir;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::fleet::{Fleet, Usage};
use crate::{args::LoadArguments, error::Error, output, progress::Progress, serve::runtime};

/// Accounts that the users share; each has a finished job.
const ACCOUNTS: usize = 10;

/// Records of a downloaded table.
const ROWS: u64 = 1000;

/// Seconds between a user's requests: uniform between these.
const THINK: (f64, f64) = (0.5, 1.5);

/// An account with a finished job.
#[derive(Clone)]
struct Owned {
    credentials: Credentials,
    dataset: Uuid,
    job: Uuid,
}

/// One request's kind, milliseconds, and whether it was answered well.
type Sample = (&'static str, f64, bool);

/// Requests of one kind.
#[derive(Debug, Serialize)]
struct Row {
    request: &'static str,
    requests: usize,
    errors: usize,
    p50_ms: f64,
    p99_ms: f64,
    max_ms: f64,
}

/// What came out.
#[derive(Debug, Serialize)]
struct Outcome {
    users: usize,
    seconds: f64,
    requests_per_second: f64,
    reads: Vec<Row>,
    /// Seconds of each job that ran meanwhile.
    job_seconds: Vec<f64>,
    services: Vec<Usage>,
}

/// Starts services, prepares, loads, prints.
pub fn run(arguments: &LoadArguments, progress: &Progress) -> Result<(), Error> {
    let folder = TempDir::new().map_err(|error| Error::Service(error.to_string()))?;
    let mut fleet = Fleet::start(folder.path())?;
    let outcome = runtime()?.block_on(async {
        fleet.ready().await?;
        load(&fleet, arguments, progress).await
    })?;
    if arguments.json {
        return output::print_json(&outcome);
    }
    output::print(&table(&outcome))
}

async fn load(
    fleet: &Fleet,
    arguments: &LoadArguments,
    progress: &Progress,
) -> Result<Outcome, Error> {
    let endpoints = fleet.endpoints();
    let phase = progress.counted("accounts with a finished job", ACCOUNTS as u64, "accounts");
    let mut owned = Vec::new();
    for account in 0..ACCOUNTS {
        owned.push(prepare(&endpoints, account).await?);
        phase.reach(account as u64 + 1);
    }
    phase.finish();
    let phase = progress.uncounted(format!("sign in {} users", arguments.users));
    let users = sign_in(&endpoints, &owned, arguments.users).await?;
    phase.finish();
    let busy = client(&endpoints, &owned[0].credentials).await?;
    let phase = progress.counted("datasets for the jobs", arguments.jobs as u64, "datasets");
    let mut datasets = Vec::new();
    for job in 0..arguments.jobs {
        datasets.push(dataset(&busy, arguments.records, 12, 1000 + job as u64).await?);
        phase.reach(job as u64 + 1);
    }
    phase.finish();

    let phase = progress.uncounted("load");
    let started = Instant::now();
    let mut jobs = JoinSet::new();
    for dataset in datasets {
        let client = busy.clone();
        jobs.spawn(async move { finish(&client, dataset).await });
    }
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let mut running = JoinSet::new();
    for (number, (client, owned)) in users.into_iter().enumerate() {
        running.spawn(user(client, owned, number as u64, stopped.clone()));
    }
    let mut job_seconds = Vec::new();
    while let Some(job) = jobs.join_next().await {
        job.map_err(|error| Error::Service(error.to_string()))??;
        job_seconds.push(started.elapsed().as_secs_f64());
    }
    let least = Duration::from_secs(arguments.seconds);
    tokio::time::sleep(least.saturating_sub(started.elapsed())).await;
    // Fails only where no user is left to tell.
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
        reads: rows(&samples),
        job_seconds,
        services: fleet.usage(),
    })
}

async fn client(endpoints: &Endpoints, credentials: &Credentials) -> Result<Client, Error> {
    let client = Client::new(endpoints.clone())?;
    client.sign_in(credentials).await?;
    Ok(client)
}

/// Signs up, and takes a small dataset through a whole job.
async fn prepare(endpoints: &Endpoints, account: usize) -> Result<Owned, Error> {
    let credentials = Credentials {
        email: format!("load-{account}@example.org"),
        password: Secret(format!("a password for measurements {account}")),
    };
    Client::new(endpoints.clone())?
        .sign_up(&credentials)
        .await?;
    let client = client(endpoints, &credentials).await?;
    let dataset = dataset(&client, 500, 4, account as u64).await?;
    let job = finish(&client, dataset).await?;
    Ok(Owned {
        credentials,
        dataset,
        job,
    })
}

/// Makes and uploads a table of columns of eight values, each leaning on the one before.
async fn dataset(
    client: &Client,
    records: usize,
    columns: usize,
    seed: u64,
) -> Result<Uuid, Error> {
    let table = generated(records, columns, seed)?;
    let terms = terms_of(&table)?;
    let made = client.create_dataset(Uuid::now_v7(), "load", terms).await?;
    let source = Source {
        records: Records::Table(Arc::new(table)),
        ladder: None,
    };
    let quiet = |_: fhaim_sdk::Progress| {};
    client
        .upload(&made, &source, Journal::in_memory(), &quiet)
        .await?;
    Ok(made.id)
}

/// The terms of such a dataset.
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

/// Runs a job to its end.
async fn finish(client: &Client, dataset: Uuid) -> Result<Uuid, Error> {
    let job = client.run(dataset, Uuid::now_v7()).await?.id;
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

/// Signs all users in, a few at a time.
async fn sign_in(
    endpoints: &Endpoints,
    owned: &[Owned],
    users: usize,
) -> Result<Vec<(Client, Owned)>, Error> {
    let mut signed_in = Vec::with_capacity(users);
    for number in 0..users {
        let owned = owned[number % owned.len()].clone();
        signed_in.push((client(endpoints, &owned.credentials).await?, owned));
    }
    Ok(signed_in)
}

/// One user: asks, thinks, asks again until told to stop.
async fn user(
    client: Client,
    owned: Owned,
    seed: u64,
    mut stop: tokio::sync::watch::Receiver<bool>,
) -> Vec<Sample> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut samples = Vec::new();
    loop {
        let think = Duration::from_secs_f64(rng.random_range(THINK.0..THINK.1));
        tokio::select! {
            _ = stop.changed() => return samples,
            () = tokio::time::sleep(think) => {}
        }
        let started = Instant::now();
        let (request, answered) = ask(&client, &owned, rng.random_range(0..100)).await;
        samples.push((request, started.elapsed().as_secs_f64() * 1e3, answered));
    }
}

/// One request, chosen by a number below 100.
async fn ask(client: &Client, owned: &Owned, choice: u32) -> (&'static str, bool) {
    let draw = Draw {
        rows: Some(ROWS),
        ..Draw::default()
    };
    match choice {
        0..60 => ("job", client.job(owned.job).await.is_ok()),
        60..75 => ("datasets", client.datasets().await.is_ok()),
        75..85 => ("ledger", client.ledger(owned.dataset).await.is_ok()),
        85..90 => ("releases", client.releases(owned.job).await.is_ok()),
        90..95 => ("model", client.model(owned.job).await.is_ok()),
        _ => {
            let mut table = tokio::io::sink();
            let drawn = client.download(owned.job, &draw, &mut table).await;
            ("download", drawn.is_ok())
        }
    }
}

fn rows(samples: &[Sample]) -> Vec<Row> {
    let mut kinds: BTreeMap<&'static str, (Vec<f64>, usize)> = BTreeMap::new();
    for &(kind, milliseconds, answered) in samples {
        for kind in [kind, "all"] {
            let (times, errors) = kinds.entry(kind).or_default();
            times.push(milliseconds);
            *errors += usize::from(!answered);
        }
    }
    let row = |(request, (mut times, errors)): (_, (Vec<f64>, usize))| {
        times.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize];
        Row {
            request,
            requests: times.len(),
            errors,
            p50_ms: at(0.5),
            p99_ms: at(0.99),
            max_ms: at(1.0),
        }
    };
    kinds.into_iter().map(row).collect()
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
    for seconds in &outcome.job_seconds {
        text.push_str(&format!("a job meanwhile: {seconds:.1} s\n"));
    }
    for usage in &outcome.services {
        let peak = match usage.peak_bytes {
            Some(bytes) => format!("{:.0} MB", bytes as f64 / 1e6),
            None => "unknown".to_owned(),
        };
        text.push_str(&format!("{}: peak memory {peak}\n", usage.service));
    }
    text
}

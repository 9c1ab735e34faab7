//! Users of `fhaim-lab bench load`. Each sends about one request a second, mostly for the state of a job, sometimes for
//! lists, the ledger, a model, or a synthetic table.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use fhaim_api::job::Draw;
use fhaim_sdk::{Client, Endpoints};
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde::Serialize;

use super::{Owned, client};
use crate::error::Error;

/// Number of records of a downloaded table.
const ROWS: u64 = 1000;

/// Range of the pause between a user's requests, in seconds. The pause is uniform.
const THINK: (f64, f64) = (0.5, 1.5);

/// The largest number of different errors that are reported.
const MAX_ERRORS: usize = 10;

/// The measurement of one request.
pub struct Sample {
    kind: &'static str,
    milliseconds: f64,
    /// The error, after all retries of the client.
    error: Option<String>,
}

/// Measurements of all requests of one kind.
#[derive(Debug, Serialize)]
pub struct Row {
    pub request: &'static str,
    pub requests: usize,
    pub errors: usize,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub max_ms: f64,
}

/// Signs in all users, one after the other.
pub async fn sign_in(
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

/// Simulates one user, which sends requests with pauses until `stop` is set.
pub async fn user(
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
        let (kind, error) = ask(&client, &owned, rng.random_range(0..100)).await;
        samples.push(Sample {
            kind,
            milliseconds: started.elapsed().as_secs_f64() * 1e3,
            error: error.map(|error| format!("{kind}: {error}")),
        });
    }
}

/// Sends one request, whose kind depends on a number below 100.
async fn ask(
    client: &Client,
    owned: &Owned,
    choice: u32,
) -> (&'static str, Option<fhaim_sdk::Error>) {
    let draw = Draw {
        rows: Some(ROWS),
        ..Draw::default()
    };
    match choice {
        0..60 => ("job", client.job(owned.job).await.err()),
        60..75 => ("datasets", client.datasets().await.err()),
        75..85 => ("ledger", client.ledger(owned.dataset).await.err()),
        85..90 => ("releases", client.releases(owned.job).await.err()),
        90..95 => ("model", client.model(owned.job).await.err()),
        _ => {
            let mut table = tokio::io::sink();
            let drawn = client.download(owned.job, &draw, &mut table).await;
            ("download", drawn.err())
        }
    }
}

/// Returns the different errors.
pub fn errors(samples: &[Sample]) -> Vec<String> {
    let errors = samples.iter().filter_map(|sample| sample.error.clone());
    let errors: BTreeSet<String> = errors.collect();
    errors.into_iter().take(MAX_ERRORS).collect()
}

pub fn rows(samples: &[Sample]) -> Vec<Row> {
    let mut kinds: BTreeMap<&'static str, (Vec<f64>, usize)> = BTreeMap::new();
    for sample in samples {
        for kind in [sample.kind, "all"] {
            let (times, errors) = kinds.entry(kind).or_default();
            times.push(sample.milliseconds);
            *errors += usize::from(sample.error.is_some());
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

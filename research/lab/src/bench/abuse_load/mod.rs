//! `fhaim-lab bench abuse-load`: how much memory and time clients can take from the services, with or without an
//! account.
//!
//! One attack after the other targets services that run as separate processes, each with the usual limit of 1,024
//! descriptors. Meanwhile, a legitimate user sends each service a small request ten times a second. The results are the
//! memory of each service before, during and after the attack, the time until it is idle again, and the duration of the
//! legitimate requests.

mod attacks;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use fhaim_api::{
    account::{Credentials, Secret},
    token::Service,
};
use fhaim_files::progress::Progress;
use fhaim_he::Layout;
use fhaim_platform::connections::capacity;
use fhaim_sdk::{Client, Endpoints};
use serde::Serialize;
use tempfile::TempDir;
use uuid::Uuid;

use self::attacks::{Attack, Target};
use super::{
    args::AbuseLoadArguments,
    fleet::{Fleet, Usage},
    load,
};
use crate::{error::Error, output};

/// Descriptors per service: the default limit of the operating system.
const DESCRIPTORS: u32 = 1024;

/// Pause between two rounds of the legitimate user's requests.
const PAUSE: Duration = Duration::from_millis(100);

/// Time without requests before the first attack. Services then return the memory of the preparation.
const SETTLE: Duration = Duration::from_secs(40);

/// Longest time that a service may take to be idle again.
const RECOVERY: Duration = Duration::from_secs(60);

/// A service is idle again if it has at most this many bytes more than before the first attack: pages that it has read,
/// and connections of its database.
const IDLE_MARGIN: u64 = 24 << 20;

/// The state of one service during one attack.
#[derive(Debug, Serialize)]
struct Row {
    attack: &'static str,
    service: Service,
    /// Resident memory before the attack.
    bytes_before: Option<u64>,
    /// Peak resident memory during the attack.
    bytes_at_most: Option<u64>,
    /// Resident memory after the attack, when the service was idle again or [`RECOVERY`] was over.
    bytes_after: Option<u64>,
    /// Seconds until the service was idle again; `None` if it was not within [`RECOVERY`].
    seconds_to_idle: Option<u64>,
    /// Number of legitimate requests during the attack, and number of those that failed.
    requests: usize,
    errors: usize,
    p99_ms: f64,
}

/// Number of responses by status; 0 stands for no response.
type Answers = BTreeMap<u16, usize>;

/// The result of one attack.
#[derive(Debug, Serialize)]
struct Attacked {
    attack: &'static str,
    seconds: f64,
    /// Empty for attacks that wait for no responses.
    answers: Answers,
}

/// The results of all attacks.
#[derive(Debug, Serialize)]
struct Outcome {
    attacks: Vec<Attacked>,
    rows: Vec<Row>,
}

/// Runs the command: starts the services, attacks them, and prints the results.
pub fn run(arguments: &AbuseLoadArguments, progress: &Progress) -> Result<(), Error> {
    let (wanted, most) = (arguments.connections.max(arguments.bodies), capacity());
    if wanted > most {
        return Err(Error::Usage(format!(
            "{wanted} concurrent connections exceed the {most} that a process may have on this system: raise \
             `ulimit -n`, or lower --connections and --bodies"
        )));
    }
    let folder = TempDir::new().map_err(|error| Error::Service(error.to_string()))?;
    let mut fleet = Fleet::start_with(folder.path(), Some(DESCRIPTORS))?;
    let outcome = fhaim_cli::shared::runtime()?.block_on(async {
        fleet.ready().await?;
        abuse(&fleet, arguments, progress).await
    })?;
    if arguments.json {
        return output::print_json(&outcome);
    }
    output::print(&table(&outcome))
}

async fn abuse(
    fleet: &Fleet,
    arguments: &AbuseLoadArguments,
    progress: &Progress,
) -> Result<Outcome, Error> {
    let endpoints = fleet.endpoints();
    let phase = progress.uncounted("a legitimate user's dataset");
    let (client, target) = user(&endpoints).await?;
    phase.finish();
    tokio::time::sleep(SETTLE).await;
    let idle: Vec<Option<u64>> = fleet.resident_since_now();
    let mut outcome = Outcome {
        attacks: Vec::new(),
        rows: Vec::new(),
    };
    for attack in Attack::all(arguments) {
        let phase = progress.uncounted(attack.name());
        let before = fleet.resident_since_now();
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let legitimate = tokio::spawn(ask(client.clone(), target.dataset.id, stopped));
        let started = Instant::now();
        let answers = attack.run(&endpoints, &target).await?;
        let seconds = started.elapsed().as_secs_f64();
        // Fails only if the task has ended, which the next line reports.
        let _ = stop.send(true);
        let samples = legitimate
            .await
            .map_err(|error| Error::Service(error.to_string()))?;
        outcome.attacks.push(Attacked {
            attack: attack.name(),
            seconds,
            answers,
        });
        let usage = fleet.usage();
        let recovered = recover(fleet, &idle).await;
        for ((before, usage), recovered) in before.into_iter().zip(usage).zip(recovered) {
            let own = samples.iter().filter(|sample| sample.0 == usage.service);
            outcome
                .rows
                .push(row(&attack, (before, usage, recovered), own));
        }
        phase.finish();
    }
    Ok(outcome)
}

/// The memory of a service after an attack, and the seconds until it was idle again.
type Recovered = (Option<u64>, Option<u64>);

/// Waits until every service is idle again, or [`RECOVERY`] is over.
async fn recover(fleet: &Fleet, idle: &[Option<u64>]) -> Vec<Recovered> {
    let ended = Instant::now();
    let mut recovered: Vec<Recovered> = vec![(None, None); idle.len()];
    loop {
        let seconds = ended.elapsed().as_secs();
        let now = fleet.resident();
        for ((recovered, now), idle) in recovered.iter_mut().zip(now).zip(idle) {
            let Some((now, idle)) = now.zip(*idle) else {
                continue;
            };
            if recovered.1.is_none() {
                *recovered = (Some(now), (now <= idle + IDLE_MARGIN).then_some(seconds));
            }
        }
        if recovered.iter().all(|(_, seconds)| seconds.is_some()) || ended.elapsed() > RECOVERY {
            return recovered;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

fn row<'a>(
    attack: &Attack,
    (before, usage, recovered): (Option<u64>, Usage, Recovered),
    samples: impl Iterator<Item = &'a Sample>,
) -> Row {
    let (mut times, mut errors) = (Vec::new(), 0);
    for &(_, milliseconds, answered) in samples {
        times.push(milliseconds);
        errors += usize::from(!answered);
    }
    times.sort_unstable_by(f64::total_cmp);
    let last = times.len().saturating_sub(1);
    Row {
        attack: attack.name(),
        service: usage.service,
        bytes_before: before,
        bytes_at_most: usage.peak_bytes,
        bytes_after: recovered.0,
        seconds_to_idle: recovered.1,
        requests: times.len(),
        errors,
        p99_ms: times
            .get((last as f64 * 0.99).round() as usize)
            .copied()
            .unwrap_or(f64::NAN),
    }
}

/// The service, the duration in milliseconds, and whether the response was successful.
type Sample = (Service, f64, bool);

/// Sends a request to each service in turn until `stop` is set.
async fn ask(
    client: Client,
    dataset: Uuid,
    stop: tokio::sync::watch::Receiver<bool>,
) -> Vec<Sample> {
    let mut samples = Vec::new();
    while !*stop.borrow() {
        for service in [Service::Generation, Service::Computation, Service::Crypto] {
            let started = Instant::now();
            let answered = match service {
                Service::Generation => client.dataset(dataset).await.is_ok(),
                Service::Computation | Service::Witness => {
                    client.upload_state(dataset).await.is_ok()
                }
                Service::Crypto | Service::Keyshare1 | Service::Keyshare2 => {
                    client.ledger(dataset).await.is_ok()
                }
            };
            samples.push((service, started.elapsed().as_secs_f64() * 1e3, answered));
        }
        tokio::time::sleep(PAUSE).await;
    }
    samples
}

/// Creates an account with a dataset that has its keys and is registered for an upload, and with a finished job.
async fn user(endpoints: &Endpoints) -> Result<(Client, Target), Error> {
    let client = Client::new(endpoints.clone())?;
    client.sign_up(&credentials()).await?;
    client.sign_in(&credentials()).await?;
    let terms = load::terms(500, 4, 1)?;
    let dataset = client
        .create_dataset(Uuid::now_v7(), "abuse", terms)
        .await?;
    client.prepare(&dataset, Some(layout()?)).await?;
    let job = load::finished_job(&client).await?;
    Ok((client, Target { dataset, job }))
}

fn credentials() -> Credentials {
    Credentials {
        email: "abuse@example.org".to_owned(),
        password: Secret("a password for measurements".to_owned()),
    }
}

fn layout() -> Result<Layout, Error> {
    Layout::for_records(500).map_err(|error| Error::Service(error.to_string()))
}

fn table(outcome: &Outcome) -> String {
    let mut text = format!(
        "{:30} {:12} {:>9} {:>8} {:>8} {:>7} {:>8} {:>7} {:>8}\n",
        "attack",
        "service",
        "MB before",
        "MB most",
        "MB after",
        "idle s",
        "requests",
        "errors",
        "p99 ms"
    );
    let megabytes = |bytes: Option<u64>| {
        bytes.map_or_else(|| "?".to_owned(), |b| format!("{:.0}", b as f64 / 1e6))
    };
    for row in &outcome.rows {
        let idle = row.seconds_to_idle;
        text.push_str(&format!(
            "{:30} {:12} {:>9} {:>8} {:>8} {:>7} {:>8} {:>7} {:>8.1}\n",
            row.attack,
            row.service.as_str(),
            megabytes(row.bytes_before),
            megabytes(row.bytes_at_most),
            megabytes(row.bytes_after),
            idle.map_or_else(|| "never".to_owned(), |seconds| seconds.to_string()),
            row.requests,
            row.errors,
            row.p99_ms
        ));
    }
    for attacked in &outcome.attacks {
        let answers = attacked.answers.iter().map(|(status, count)| match status {
            0 => format!(", {count} not answered"),
            status => format!(", {count} answered {status}"),
        });
        let answers: String = answers.collect();
        let (attack, seconds) = (attacked.attack, attacked.seconds);
        text.push_str(&format!("{attack}: {seconds:.1} s{answers}\n"));
    }
    text
}

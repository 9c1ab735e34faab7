//! `fhaim-lab bench siege`: how much memory and time unauthorised clients can take from the services.
//!
//! One attack after the other targets services that run as separate processes, each with the usual limit of 1,024
//! descriptors. Meanwhile, a legitimate user sends each service a small request ten times a second. The results are the
//! peak memory of a service during the attack, and the duration of the legitimate requests.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use fhaim_api::{
    account::{Credentials, Secret, Session},
    dataset::{Dataset, Voucher},
    keys::NewKeySet,
    token::Service,
};
use fhaim_files::progress::Progress;
use fhaim_he::Layout;
use fhaim_platform::connections::capacity;
use fhaim_sdk::{Client, Endpoints};
use serde::{Serialize, de::DeserializeOwned};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};
use uuid::Uuid;

use super::{args::SiegeArguments, fleet::Fleet, load};
use crate::{error::Error, output};

/// Descriptors per service: the default limit of the operating system.
const DESCRIPTORS: u32 = 1024;

/// Pause between two rounds of the legitimate user's requests.
const PAUSE: Duration = Duration::from_millis(100);

/// Number of concurrent requests of an attack.
const AT_A_TIME: usize = 64;

/// Length of the e-mail address in an oversized sign-in, in bytes. With it, the body is just below the default limit of
/// a route, 4 MiB, so that only the limit of sign-ins themselves rejects it.
const LONG_EMAIL: usize = (4 << 20) - 512;

/// How long idle connections are held open.
const HELD: Duration = Duration::from_secs(8);

/// The state of one service during one attack.
#[derive(Debug, Serialize)]
struct Row {
    attack: &'static str,
    service: Service,
    /// Resident memory before the attack.
    bytes_before: Option<u64>,
    /// Peak resident memory during the attack.
    bytes_at_most: Option<u64>,
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
pub fn run(arguments: &SiegeArguments, progress: &Progress) -> Result<(), Error> {
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
        siege(&fleet, arguments, progress).await
    })?;
    if arguments.json {
        return output::print_json(&outcome);
    }
    output::print(&table(&outcome))
}

async fn siege(
    fleet: &Fleet,
    arguments: &SiegeArguments,
    progress: &Progress,
) -> Result<Outcome, Error> {
    let endpoints = fleet.endpoints();
    let phase = progress.uncounted("a legitimate user's dataset");
    let (client, dataset) = user(&endpoints).await?;
    phase.finish();
    let mut outcome = Outcome {
        attacks: Vec::new(),
        rows: Vec::new(),
    };
    for attack in Attack::all(arguments) {
        let phase = progress.uncounted(attack.name());
        let before = fleet.resident_since_now();
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let legitimate = tokio::spawn(ask(client.clone(), dataset.id, stopped));
        let started = Instant::now();
        let answers = attack.run(&endpoints, &dataset).await?;
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
        for (before, after) in before.into_iter().zip(fleet.usage()) {
            let service = after.service;
            let own = samples.iter().filter(move |s| s.0 == service);
            outcome.rows.push(row(&attack, before, after, own));
        }
        phase.finish();
    }
    Ok(outcome)
}

fn row<'a>(
    attack: &Attack,
    before: Option<u64>,
    after: super::fleet::Usage,
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
        service: after.service,
        bytes_before: before,
        bytes_at_most: after.peak_bytes,
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

/// Creates an account with a dataset that has its keys and is registered for an upload.
async fn user(endpoints: &Endpoints) -> Result<(Client, Dataset), Error> {
    let client = Client::new(endpoints.clone())?;
    client.sign_up(&credentials()).await?;
    client.sign_in(&credentials()).await?;
    let terms = load::terms(500, 4, 1)?;
    let dataset = client
        .create_dataset(Uuid::now_v7(), "siege", terms)
        .await?;
    client.prepare(&dataset, Some(layout()?)).await?;
    Ok((client, dataset))
}

fn credentials() -> Credentials {
    Credentials {
        email: "siege@example.org".to_owned(),
        password: Secret("a password for measurements".to_owned()),
    }
}

fn layout() -> Result<Layout, Error> {
    Layout::for_records(500).map_err(|error| Error::Service(error.to_string()))
}

/// An attack, with its number of requests or connections.
enum Attack {
    Methods(usize),
    SignIns(usize),
    Bodies(usize),
    Connections(usize),
    Keys(usize),
}

impl Attack {
    fn all(arguments: &SiegeArguments) -> [Self; 5] {
        [
            Self::Methods(arguments.methods),
            Self::SignIns(arguments.sign_ins),
            Self::Bodies(arguments.bodies),
            Self::Connections(arguments.connections),
            Self::Keys(arguments.keys),
        ]
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Methods(_) => "odd methods",
            Self::SignIns(_) => "sign-ins of 4 MB",
            Self::Bodies(_) => "half-sent bodies",
            Self::Connections(_) => "idle connections",
            Self::Keys(_) => "key requests of one account",
        }
    }

    /// Runs the attack, and returns the responses by status.
    async fn run(&self, endpoints: &Endpoints, dataset: &Dataset) -> Result<Answers, Error> {
        let mut answers = Answers::new();
        let all = [
            &endpoints.generation,
            &endpoints.computation,
            &endpoints.crypto,
        ];
        let all = all.map(|endpoint| address(endpoint));
        match *self {
            Self::Methods(count) => {
                let head = |n: usize| format!("M{n:x}ABC /v1/datasets HTTP/1.1");
                for address in all {
                    let asked = requests(&address, count, move |n| with_body(&head(n), "")).await;
                    add(&mut answers, asked);
                }
            }
            Self::SignIns(count) => {
                let body = |n: usize| {
                    let email = format!("{n}{}@example.org", "x".repeat(LONG_EMAIL));
                    format!("{{\"email\":\"{email}\",\"password\":\"wrong\"}}")
                };
                let whole = move |n| with_body("POST /v1/sessions HTTP/1.1", &body(n));
                answers = requests(&address(&endpoints.generation), count, whole).await;
            }
            Self::Bodies(count) => {
                let half = half_body();
                for address in all {
                    hold(&address, count, &half).await;
                }
            }
            Self::Connections(count) => {
                for address in all {
                    hold(&address, count, b"").await;
                }
            }
            Self::Keys(count) => answers = keys(endpoints, dataset, count).await?,
        }
        Ok(answers)
    }
}

fn add(all: &mut Answers, more: Answers) {
    for (status, count) in more {
        *all.entry(status).or_default() += count;
    }
}

/// Returns host and port of a service.
fn address(endpoint: &str) -> Arc<str> {
    endpoint.trim_start_matches("http://").into()
}

/// Returns a request that asks the service to close the connection.
fn with_body(head: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "{head}\r\nhost: siege\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// Returns a request with the first megabyte of a body of four; the rest is never sent.
fn half_body() -> Vec<u8> {
    let mut bytes = b"POST /v1/sessions HTTP/1.1\r\nhost: siege\r\n\
        content-type: application/json\r\ncontent-length: 4194304\r\n\r\n"
        .to_vec();
    bytes.resize(bytes.len() + (1 << 20), b' ');
    bytes
}

/// Sends `count` requests, some of them concurrently, and reads the responses completely. Refused connections are
/// expected: the bench measures the effect on the legitimate user.
async fn requests(
    address: &Arc<str>,
    count: usize,
    request: impl Fn(usize) -> Vec<u8> + Clone + Send + 'static,
) -> Answers {
    let next = Arc::new(AtomicUsize::new(0));
    let mut workers = JoinSet::new();
    for _ in 0..AT_A_TIME.min(count) {
        let (address, next, request) = (address.clone(), next.clone(), request.clone());
        workers.spawn(async move {
            let mut answers = Answers::new();
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                if n >= count {
                    return answers;
                }
                let answer = exchange(&address, &request(n)).await;
                *answers.entry(status(&answer)).or_default() += 1;
            }
        });
    }
    let mut all = Answers::new();
    while let Some(answers) = workers.join_next().await {
        // A worker that panicked counts as without responses.
        add(&mut all, answers.unwrap_or_default());
    }
    all
}

/// Sends a request on a new connection and returns the whole response.
async fn exchange(address: &str, request: &[u8]) -> Vec<u8> {
    let mut answer = Vec::new();
    if let Ok(mut stream) = TcpStream::connect(address).await {
        // The service may close the connection before it has read everything.
        let _ = stream.write_all(request).await;
        let _ = stream.read_to_end(&mut answer).await;
    }
    answer
}

/// Returns the status of a response, or 0 for an empty one.
fn status(answer: &[u8]) -> u16 {
    let line = answer.split(|&byte| byte == b' ').nth(1);
    let status = line.and_then(|status| std::str::from_utf8(status).ok()?.parse().ok());
    status.unwrap_or(0)
}

/// Opens `count` connections that send only `bytes`, and holds them for a while.
async fn hold(address: &Arc<str>, count: usize, bytes: &[u8]) {
    let bytes: Arc<[u8]> = bytes.into();
    let until = Instant::now() + HELD;
    let mut held = JoinSet::new();
    for _ in 0..count {
        let (address, bytes) = (address.clone(), bytes.clone());
        held.spawn(async move {
            let connection = async {
                let mut stream = TcpStream::connect(&*address).await?;
                stream.write_all(&bytes).await?;
                tokio::time::sleep_until(until.into()).await;
                std::io::Result::Ok(())
            };
            // The service is expected to refuse some of the connections.
            let _ = tokio::time::timeout_at(until.into(), connection).await;
        });
    }
    while held.join_next().await.is_some() {}
}

/// Requests keys of `count` datasets that do not exist, with the valid token of an account and the voucher of one of
/// its datasets.
async fn keys(endpoints: &Endpoints, dataset: &Dataset, count: usize) -> Result<Answers, Error> {
    let generation = address(&endpoints.generation);
    let sign_in = serde_json::to_string(&credentials()).map_err(|error| unreadable(&error))?;
    let sign_in = with_body("POST /v1/sessions HTTP/1.1", &sign_in);
    let session: Session = json(&exchange(&generation, &sign_in).await)?;
    let voucher = format!(
        "GET /v1/datasets/{}/voucher HTTP/1.1\r\nauthorization: Bearer {}",
        dataset.id, session.access_token.0
    );
    let vouched: Voucher = json(&exchange(&generation, &with_body(&voucher, "")).await)?;
    let body = NewKeySet {
        terms: dataset.terms.clone(),
        voucher: Some(vouched.voucher),
    };
    let body = serde_json::to_string(&body).map_err(|error| unreadable(&error))?;
    let token = session.crypto_token.0.clone();
    let request = move |_: usize| {
        let id = Uuid::now_v7();
        let head = format!("PUT /v1/datasets/{id} HTTP/1.1\r\nauthorization: Bearer {token}");
        with_body(&head, &body)
    };
    Ok(requests(&address(&endpoints.crypto), count, request).await)
}

/// Parses the JSON body of a response.
fn json<T: DeserializeOwned>(answer: &[u8]) -> Result<T, Error> {
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    let body = end
        .and_then(|end| answer.get(end + 4..))
        .unwrap_or_default();
    serde_json::from_slice(body).map_err(|error| unreadable(&error))
}

fn unreadable(error: &serde_json::Error) -> Error {
    Error::Service(format!("a response cannot be read: {error}"))
}

fn table(outcome: &Outcome) -> String {
    let mut text = format!(
        "{:28} {:12} {:>9} {:>9} {:>8} {:>7} {:>8}\n",
        "attack", "service", "MB before", "MB most", "requests", "errors", "p99 ms"
    );
    let megabytes = |bytes: Option<u64>| {
        bytes.map_or_else(|| "?".to_owned(), |b| format!("{:.0}", b as f64 / 1e6))
    };
    for row in &outcome.rows {
        text.push_str(&format!(
            "{:28} {:12} {:>9} {:>9} {:>8} {:>7} {:>8.1}\n",
            row.attack,
            row.service.as_str(),
            megabytes(row.bytes_before),
            megabytes(row.bytes_at_most),
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

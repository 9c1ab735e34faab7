//! The attacks, as raw requests: clients that behave well cannot make them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use fhaim_api::{
    account::Session,
    dataset::{Dataset, NewDataset, Voucher, WireTerms},
    keys::NewKeySet,
};
use fhaim_domain::Schema;
use fhaim_protocol::terms::Terms;
use fhaim_sdk::Endpoints;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};
use uuid::Uuid;

use super::{Answers, credentials};
use crate::{bench::args::AbuseLoadArguments, error::Error};

/// Number of concurrent requests of an attack.
const AT_A_TIME: usize = 64;

/// Length of the e-mail address in an oversized sign-in, in bytes. With it, the body is just below the default limit of
/// a route, 4 MiB, so that only the limit of sign-ins themselves rejects it.
const LONG_EMAIL: usize = (4 << 20) - 512;

/// How long idle connections are held open.
const HELD: Duration = Duration::from_secs(8);

/// Number of columns and of the categories of each in a large schema, whose JSON has 154 kB.
const LARGE_SCHEMA: (usize, usize) = (2, 10_000);

/// Number of records of a table in an attack with downloads. The client reads none of them.
const ROWS: u64 = 4_000_000;

/// What the attacks aim at.
pub struct Target {
    /// A dataset of an account, with keys and without an upload.
    pub dataset: Dataset,
    /// A finished job of the account.
    pub job: Uuid,
}

/// An attack, with its number of requests or connections.
pub enum Attack {
    Methods(usize),
    Passwords(usize),
    SignIns(usize),
    Schemas(usize),
    Tables(usize),
    Bodies(usize),
    Connections(usize),
    Keys(usize),
}

impl Attack {
    /// Returns all attacks that the arguments ask for.
    pub fn all(arguments: &AbuseLoadArguments) -> Vec<Self> {
        let all = [
            Self::Methods(arguments.methods),
            Self::Passwords(arguments.passwords),
            Self::SignIns(arguments.sign_ins),
            Self::Schemas(arguments.schemas),
            Self::Tables(arguments.tables),
            Self::Bodies(arguments.bodies),
            Self::Connections(arguments.connections),
            Self::Keys(arguments.keys),
        ];
        all.into_iter()
            .filter(|attack| attack.count() > 0)
            .collect()
    }

    fn count(&self) -> usize {
        match *self {
            Self::Methods(count)
            | Self::Passwords(count)
            | Self::SignIns(count)
            | Self::Schemas(count)
            | Self::Tables(count)
            | Self::Bodies(count)
            | Self::Connections(count)
            | Self::Keys(count) => count,
        }
    }

    /// Returns the name in the results.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Methods(_) => "odd methods",
            Self::Passwords(_) => "wrong sign-ins",
            Self::SignIns(_) => "sign-ins of 4 MB",
            Self::Schemas(_) => "schemas of 154 kB",
            Self::Tables(_) => "tables in Parquet, not read",
            Self::Bodies(_) => "half-sent bodies",
            Self::Connections(_) => "idle connections",
            Self::Keys(_) => "key requests of one account",
        }
    }

    /// Runs the attack, and returns the responses by status.
    pub async fn run(&self, endpoints: &Endpoints, target: &Target) -> Result<Answers, Error> {
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
            Self::Passwords(count) => {
                let whole = |n: usize| {
                    let email = credentials().email;
                    let body = json!({ "email": email, "password": format!("wrong password {n}") });
                    with_body("POST /v1/sessions HTTP/1.1", &body.to_string())
                };
                answers = requests(&address(&endpoints.generation), count, whole).await;
            }
            Self::SignIns(count) => {
                let body = |n: usize| {
                    let email = format!("{n}{}@example.org", "x".repeat(LONG_EMAIL));
                    format!("{{\"email\":\"{email}\",\"password\":\"wrong\"}}")
                };
                let whole = move |n| with_body("POST /v1/sessions HTTP/1.1", &body(n));
                answers = requests(&address(&endpoints.generation), count, whole).await;
            }
            Self::Schemas(count) => answers = schemas(endpoints, target, count).await?,
            Self::Tables(count) => {
                let token = session(endpoints).await?.access_token;
                let path = format!(
                    "/v1/jobs/{}/synthetic?rows={ROWS}&format=parquet",
                    target.job
                );
                let head = format!("GET {path} HTTP/1.1\r\nauthorization: Bearer {}", token.0);
                let whole = with_body(&head, "");
                hold(&address(&endpoints.generation), count, &whole).await;
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
            Self::Keys(count) => answers = keys(endpoints, &target.dataset, count).await?,
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
        "{head}\r\nhost: abuse\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// Returns a request with the first megabyte of a body of four; the rest is never sent.
fn half_body() -> Vec<u8> {
    let mut bytes = b"POST /v1/sessions HTTP/1.1\r\nhost: abuse\r\n\
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

/// Signs the account in.
async fn session(endpoints: &Endpoints) -> Result<Session, Error> {
    let sign_in = serde_json::to_string(&credentials()).map_err(|error| unreadable(&error))?;
    let sign_in = with_body("POST /v1/sessions HTTP/1.1", &sign_in);
    json(&exchange(&address(&endpoints.generation), &sign_in).await)
}

/// Returns a voucher of the account's dataset.
async fn voucher(
    endpoints: &Endpoints,
    session: &Session,
    dataset: &Dataset,
) -> Result<Voucher, Error> {
    let head = format!(
        "GET /v1/datasets/{}/voucher HTTP/1.1\r\nauthorization: Bearer {}",
        dataset.id, session.access_token.0
    );
    json(&exchange(&address(&endpoints.generation), &with_body(&head, "")).await)
}

/// Returns terms with a schema of many categories.
fn large_terms() -> Result<WireTerms, Error> {
    let (columns, categories) = LARGE_SCHEMA;
    let categories: Vec<String> = (0..categories).map(|n| format!("{n:x}")).collect();
    let column =
        |n| json!({ "name": format!("c{n}"), "kind": "categorical", "categories": categories });
    let columns: Vec<serde_json::Value> = (0..columns).map(column).collect();
    let schema = json!({ "name": "large", "columns": columns }).to_string();
    let schema = Schema::from_json("large", schema.as_bytes())
        .map_err(|error| Error::Service(error.to_string()))?;
    Ok(WireTerms(Terms::new(schema, 1.0, 1e-9, 1_000)))
}

/// Creates `count` datasets with a large schema, and requests `count` key sets with it.
async fn schemas(endpoints: &Endpoints, target: &Target, count: usize) -> Result<Answers, Error> {
    let session = session(endpoints).await?;
    let vouched = voucher(endpoints, &session, &target.dataset).await?;
    let new = NewDataset {
        name: "large".to_owned(),
        terms: large_terms()?,
    };
    let keys = NewKeySet {
        terms: large_terms()?,
        voucher: Some(vouched.voucher),
    };
    let mut answers = Answers::new();
    for (endpoint, token, body) in [
        (
            &endpoints.generation,
            &session.access_token,
            serde_json::to_string(&new),
        ),
        (
            &endpoints.crypto,
            &session.crypto_token,
            serde_json::to_string(&keys),
        ),
    ] {
        let (token, body) = (token.0.clone(), body.map_err(|error| unreadable(&error))?);
        let request = move |_: usize| {
            let id = Uuid::now_v7();
            let head = format!("PUT /v1/datasets/{id} HTTP/1.1\r\nauthorization: Bearer {token}");
            with_body(&head, &body)
        };
        add(
            &mut answers,
            requests(&address(endpoint), count, request).await,
        );
    }
    Ok(answers)
}

/// Requests keys of `count` datasets that do not exist, with the valid token of an account and the voucher of one of
/// its datasets.
async fn keys(endpoints: &Endpoints, dataset: &Dataset, count: usize) -> Result<Answers, Error> {
    let session = session(endpoints).await?;
    let vouched = voucher(endpoints, &session, dataset).await?;
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

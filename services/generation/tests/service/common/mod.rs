//! The service on a loopback port over a real database, with a stand-in for the computation service
//! that answers with counts plus discrete Gaussian noise.
#![allow(dead_code, unused_macros, clippy::unwrap_used)]

pub mod computation;

use computation::Computation;
use fhaim_api::account::{Account, ApiKeyMade, Credentials, Secret, Session};
use fhaim_api::dataset::{Dataset, NewDataset, WireTerms};
use fhaim_api::job::{Job, JobEvent, JobState};
use fhaim_api::problem::Problem;
use fhaim_api::token::Service as Name;
use fhaim_domain::Schema;
use fhaim_generation::{Config, Limits, State};
pub use fhaim_kit::PASSWORD;
use fhaim_kit::config;
use fhaim_platform::connections;
use fhaim_platform::program::Program;
use fhaim_platform::shutdown::{Stopper, channel};
use fhaim_protocol::terms::Terms;
use reqwest::{Method, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use uuid::Uuid;

/// Makes two tests of each function: over SQLite and over Postgres.
macro_rules! over_both {
    ($($name:ident),* $(,)?) => {$(
        mod $name {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                super::$name($crate::common::Kind::Sqlite).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "needs FHAIM_TEST_POSTGRES"]
            async fn postgres() {
                super::$name($crate::common::Kind::Postgres).await;
            }
        }
    )*};
}

#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Sqlite,
    Postgres,
}

/// A running service.
pub struct Service {
    pub base: String,
    pub state: State,
    pub computation: Computation,
    pub folder: TempDir,
    http: reqwest::Client,
    stopper: Stopper,
    working: Option<(Stopper, JoinHandle<()>)>,
    serving: JoinHandle<()>,
}

impl Service {
    pub async fn start(kind: Kind) -> Self {
        Self::start_with(kind, |_| {}).await
    }

    pub async fn start_with(kind: Kind, change: impl FnOnce(&mut Config)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let computation = Computation::start(table()).await;
        let mut common = config::in_folder(folder.path());
        // The stand-in also receives the calls to the crypto service.
        for peer in [Name::Computation, Name::Crypto] {
            common.peers.insert(peer, computation.base.clone());
        }
        if matches!(kind, Kind::Postgres) {
            common.database = config::postgres().await;
        }
        let mut config = Config {
            common,
            sign_up: true,
            limits: Limits {
                sign_ins_per_address: 10_000.try_into().unwrap(),
                ..Limits::default()
            },
        };
        change(&mut config);
        let state = State::open(&config).await.unwrap();
        let listener = tokio::net::TcpListener::bind(config.common.listen)
            .await
            .unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let (stopper, shutdown) = channel();
        let routes = state.clone().router();
        let serving = tokio::spawn(async move {
            connections::serve(listener, routes, 100, shutdown).await;
        });
        Self {
            base,
            state,
            computation,
            folder,
            http: reqwest::Client::new(),
            stopper,
            working: None,
            serving,
        }
    }

    /// Starts the service with a worker.
    pub async fn start_working(kind: Kind) -> Self {
        let mut service = Self::start(kind).await;
        service.work();
        service
    }

    /// Starts a worker.
    pub fn work(&mut self) {
        let (stopper, shutdown) = channel();
        let working = tokio::spawn(self.state.clone().work(shutdown));
        self.working = Some((stopper, working));
    }

    /// Aborts the worker, as a crash would.
    pub async fn kill_worker(&mut self) {
        let (_stopper, working) = self.working.take().unwrap();
        working.abort();
        assert!(working.await.unwrap_err().is_cancelled());
    }

    /// Stops everything, as on a termination signal, and returns the time that this took.
    pub async fn stop(mut self) -> Duration {
        let started = Instant::now();
        if let Some((stopper, working)) = self.working.take() {
            stopper.stop();
            working.await.unwrap();
        }
        self.stopper.stop();
        self.serving.await.unwrap();
        self.state.close().await;
        started.elapsed()
    }

    pub fn blobs(&self) -> PathBuf {
        self.folder.path().join("blobs")
    }

    pub async fn send(&self, method: Method, path: &str, body: Option<Value>) -> Response {
        self.send_as(None, method, path, body).await
    }

    pub async fn send_as(
        &self,
        token: Option<&str>,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Response {
        let mut request = self.http.request(method, format!("{}{path}", self.base));
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        if let Some(body) = body {
            request = request.json(&body);
        }
        request.send().await.unwrap()
    }

    /// Signs up, signs in and returns the user.
    pub async fn user(&self, email: &str) -> User<'_> {
        let credentials = json!({ "email": email, "password": PASSWORD });
        let account = self
            .send(Method::POST, "/v1/accounts", Some(credentials))
            .await;
        let account: Account = read(account, StatusCode::CREATED).await;
        let session = self.sign_in(email, PASSWORD).await;
        let session: Session = read(session, StatusCode::CREATED).await;
        User {
            service: self,
            account,
            session,
        }
    }

    pub async fn sign_in(&self, email: &str, password: &str) -> Response {
        let credentials = json!({ "email": email, "password": password });
        self.send(Method::POST, "/v1/sessions", Some(credentials))
            .await
    }
}

/// A signed-in user.
pub struct User<'a> {
    pub service: &'a Service,
    pub account: Account,
    pub session: Session,
}

impl User<'_> {
    pub fn token(&self) -> &str {
        &self.session.access_token.0
    }

    pub async fn send(&self, method: Method, path: &str, body: Option<Value>) -> Response {
        (self.service)
            .send_as(Some(self.token()), method, path, body)
            .await
    }

    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> T {
        read(self.send(Method::GET, path, None).await, StatusCode::OK).await
    }

    pub async fn post<T: DeserializeOwned>(&self, path: &str) -> T {
        let response = self.send(Method::POST, path, None).await;
        let status = response.status();
        assert!(status.is_success(), "{path}: {status}");
        response.json().await.unwrap()
    }

    /// Sends a request that must fail, and returns its problem.
    pub async fn refused(&self, method: Method, path: &str, status: u16) -> Problem {
        problem(self.send(method, path, None).await, status).await
    }

    pub async fn new_dataset(&self, terms: Terms) -> Dataset {
        let new = NewDataset {
            name: "Some patients, 2026".to_owned(),
            terms: WireTerms(terms.choices()),
        };
        let new = serde_json::to_value(new).unwrap();
        let made = self.put(&fresh("/v1/datasets"), new).await;
        read(made, StatusCode::CREATED).await
    }

    /// Makes a dataset whose upload is complete.
    pub async fn ready_dataset(&self, terms: Terms) -> Dataset {
        let dataset = self.new_dataset(terms).await;
        self.service.computation.complete_upload(dataset.id);
        self.post(&format!("/v1/datasets/{}/ready", dataset.id))
            .await
    }

    pub async fn put(&self, path: &str, body: Value) -> Response {
        self.send(Method::PUT, path, Some(body)).await
    }

    pub async fn new_job(&self, dataset: Uuid) -> Job {
        let path = fresh(&format!("/v1/datasets/{dataset}/jobs"));
        read(self.put(&path, json!({})).await, StatusCode::CREATED).await
    }

    /// Tries to create another job, which must fail, and returns the problem.
    pub async fn no_job(&self, dataset: Uuid) -> Problem {
        let path = fresh(&format!("/v1/datasets/{dataset}/jobs"));
        problem(self.put(&path, json!({})).await, 409).await
    }

    pub async fn new_key(&self, name: &str) -> ApiKeyMade {
        let made = self
            .put(&fresh("/v1/api-keys"), json!({ "name": name }))
            .await;
        read(made, StatusCode::CREATED).await
    }

    pub async fn job(&self, job: Uuid) -> Job {
        self.get(&format!("/v1/jobs/{job}")).await
    }

    /// Waits at most a minute until a job is in a state.
    pub async fn wait_for(&self, job: Uuid, state: JobState) -> Job {
        self.wait_until(job, |job| job.state == state).await
    }

    pub async fn wait_until(&self, id: Uuid, reached: impl Fn(&Job) -> bool) -> Job {
        let started = Instant::now();
        loop {
            let job = self.job(id).await;
            if reached(&job) {
                return job;
            }
            assert!(
                started.elapsed() < Duration::from_secs(60),
                "stuck: {job:?}"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Runs a job on a new dataset until it is done.
    pub async fn done_job(&self) -> Job {
        let dataset = self.ready_dataset(terms()).await;
        let job = self.new_job(dataset.id).await;
        self.wait_for(job.id, JobState::Done).await
    }

    /// Returns a job's events after number `after`, until the stream ends.
    pub async fn events(&self, job: Uuid, after: u64) -> Vec<JobEvent> {
        let request = (self.service.http)
            .get(format!("{}/v1/jobs/{job}/events", self.service.base))
            .bearer_auth(self.token())
            .header("Last-Event-ID", after.to_string());
        let response = request.send().await.unwrap();
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        parse_events(&response.text().await.unwrap())
    }
}

/// Returns a path for a new object in a list.
pub fn fresh(list: &str) -> String {
    format!("{list}/{}", Uuid::now_v7())
}

/// Parses the events of a stream, each with `id` and `data`.
pub fn parse_events(text: &str) -> Vec<JobEvent> {
    let mut events: Vec<JobEvent> = Vec::new();
    for block in text.split("\n\n") {
        let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
        if let (Some(id), Some(data)) = (field("id: "), field("data: ")) {
            let event: JobEvent = serde_json::from_str(data).unwrap();
            assert_eq!(id, event.number.to_string());
            events.push(event);
        }
    }
    events
}

/// Parses a JSON response.
pub async fn read<T: DeserializeOwned>(response: Response, status: StatusCode) -> T {
    let found = response.status();
    let text = response.text().await.unwrap();
    assert_eq!(found, status, "{text}");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Parses a problem document.
pub async fn problem(response: Response, status: u16) -> Problem {
    let found = response.status();
    let media = response.headers().get("content-type").cloned();
    let text = response.text().await.unwrap();
    assert_eq!(found.as_u16(), status, "{text}");
    assert_eq!(media.unwrap(), "application/problem+json", "{text}");
    let problem: Problem = serde_json::from_str(&text).unwrap();
    assert_eq!(problem.status, status);
    problem
}

pub fn credentials(email: &str) -> Credentials {
    Credentials {
        email: email.to_owned(),
        password: Secret(PASSWORD.to_owned()),
    }
}

pub fn schema() -> Schema {
    let json = br#"{"name":"patients","target":"sick","columns":[
        {"name":"sex","kind":"categorical","categories":["f","m"]},
        {"name":"race","kind":"categorical","categories":["Asian","Black","White, other","x"]},
        {"name":"age","kind":"numeric","min":0,"max":90,"bins":9,"integer":true},
        {"name":"dose","kind":"numeric","min":0,"max":2.5,"bins":5,"nullable":true},
        {"name":"sick","kind":"categorical","categories":["no","yes"],"nullable":true}
    ]}"#;
    Schema::from_json("patients.json", json).unwrap()
}

/// Terms with a budget at which the mechanism asks for several batches.
pub fn terms() -> Terms {
    let terms = Terms::new(schema(), 5.0, 1e-9, 4000);
    terms.complete(&fhaim_synth::Mechanisms).unwrap()
}

/// 2,000 records in which dose depends on age, and sickness on sex. No record has race x.
pub fn table() -> fhaim_domain::Table {
    use rand::{Rng, SeedableRng};
    let mut rng = rand_chacha::ChaCha20Rng::seed_from_u64(5);
    let mut columns = vec![Vec::new(); 5];
    for _ in 0..2000 {
        let (sex, age) = (rng.random_range(0..2u32), rng.random_range(0..9u32));
        let dose = if rng.random_ratio(1, 8) { 5 } else { age / 2 };
        let sick = if rng.random_ratio(4, 5) { sex } else { 2 };
        let record = [sex, rng.random_range(0..3), age, dose, sick];
        for (column, code) in columns.iter_mut().zip(record) {
            column.push(code);
        }
    }
    fhaim_domain::Table::new(schema(), columns).unwrap()
}

//! Lost answers: a service processes a call, its answer is lost, and the caller repeats the call. Nothing may be made
//! or spent twice.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use fhaim_api::account::{Credentials, Secret};
use fhaim_kit::{Backing, PASSWORD, Services};
use fhaim_sdk::{Client, Endpoints};
use serde_json::Value;
use uuid::Uuid;

use super::PROGRAM;

/// A proxy in front of a service. It loses the first answers to a kind of call.
struct Losing {
    address: String,
    lost: Arc<AtomicUsize>,
}

impl Losing {
    /// Starts a proxy that loses the first `answers` answers to calls whose request line satisfies `is_one`.
    fn start(to: &str, answers: usize, is_one: fn(&str) -> bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let to = to.trim_start_matches("http://").to_owned();
        let lost = Arc::new(AtomicUsize::new(0));
        let count = lost.clone();
        std::thread::spawn(move || {
            for caller in listener.incoming() {
                let (to, count) = (to.clone(), count.clone());
                let loses = move |head: &str| {
                    let below = |lost| (lost < answers).then_some(lost + 1);
                    let order = Ordering::SeqCst;
                    is_one(head) && count.fetch_update(order, order, below).is_ok()
                };
                std::thread::spawn(move || relay(&caller.unwrap(), &to, loses));
            }
        });
        Self { address, lost }
    }

    fn lost(&self) -> usize {
        self.lost.load(Ordering::SeqCst)
    }
}

/// Forwards bytes in both directions. If the answer to a request is to be lost, waits until the service has answered,
/// and closes both connections.
fn relay(mut caller: &TcpStream, to: &str, loses: impl Fn(&str) -> bool) -> io::Result<()> {
    let mut service = TcpStream::connect(to)?;
    let (mut answers, mut back) = (service.try_clone()?, caller.try_clone()?);
    let losing = Arc::new(AtomicUsize::new(0));
    let told = losing.clone();
    std::thread::spawn(move || -> io::Result<()> {
        let mut bytes = vec![0; 1 << 16];
        loop {
            let read = answers.read(&mut bytes)?;
            if read == 0 || told.load(Ordering::SeqCst) > 0 {
                let _ = back.shutdown(Shutdown::Both);
                return answers.shutdown(Shutdown::Both);
            }
            back.write_all(&bytes[..read])?;
        }
    });
    let mut bytes = vec![0; 1 << 16];
    loop {
        let read = caller.read(&mut bytes)?;
        if read == 0 {
            return service.shutdown(Shutdown::Write);
        }
        let head = String::from_utf8_lossy(&bytes[..read.min(200)]).into_owned();
        if loses(head.lines().next().unwrap_or_default()) {
            losing.store(1, Ordering::SeqCst);
        }
        service.write_all(&bytes[..read])?;
    }
}

/// Signs up a user whose calls to the generation service go through a proxy.
fn sign_up(services: &Services, user: &str, losing: &Losing) {
    let [computation, crypto] = [1, 2].map(|service| services.address(service));
    services.sign_up_at(user, &[losing.address.clone(), computation, crypto]);
}

fn makes_a_job(line: &str) -> bool {
    makes(line, "/v1/datasets/") && line.contains("/jobs")
}

fn makes_a_dataset(line: &str) -> bool {
    makes(line, "/v1/datasets") && !line.contains("/jobs") && !line.contains("/ready")
}

/// Checks whether a request line is a `POST` or `PUT` to a path with this prefix.
fn makes(line: &str, path: &str) -> bool {
    let mut words = line.split(' ');
    let method = words.next().unwrap_or_default();
    matches!(method, "POST" | "PUT") && words.next().is_some_and(|at| at.starts_with(path))
}

#[test]
fn repeated_create_after_lost_answer_makes_one_dataset() {
    let services = Services::start(PROGRAM, &Backing::Local);
    let losing = Losing::start(&services.address(0), 2, makes_a_dataset);
    sign_up(&services, "ana", &losing);
    let made = services.create("ana", &[]);
    assert_eq!(losing.lost(), 2);
    let datasets = services.json("ana", &["dataset", "list"]);
    let datasets = datasets.as_array().unwrap();
    assert_eq!(datasets.len(), 1);
    assert_eq!(datasets[0]["id"], made);
}

#[test]
fn repeated_run_after_lost_answer_makes_one_job_and_one_debit() {
    let services = Services::start(PROGRAM, &Backing::Local);
    let losing = Losing::start(&services.address(0), 2, makes_a_job);
    sign_up(&services, "ana", &losing);
    let dataset = services.create("ana", &["--runs", "2"]);
    services.run(
        "ana",
        &["dataset", "upload", &dataset, "--data", "t.csv", "--yes"],
    );
    let told = services.run("ana", &["job", "run", &dataset, "--yes", "--watch"]);
    assert_eq!(losing.lost(), 2);
    let jobs = services.json("ana", &["job", "list", &dataset]);
    let jobs = jobs.as_array().unwrap();
    assert_eq!(jobs.len(), 1, "{jobs:?}");
    assert_eq!(told.lines().next().unwrap(), jobs[0]["id"]);
    let ledger = services.json("ana", &["ledger", &dataset]);
    assert_eq!(ledger["runs"].as_array().unwrap().len(), 1);

    // A user who repeats a lost command with the job's identifier gets the same job, which is done.
    let id = jobs[0]["id"].as_str().unwrap();
    let again = services.json("ana", &["job", "run", &dataset, "--job", id]);
    assert_eq!(
        (&again["id"], &again["state"]),
        (&jobs[0]["id"], &Value::from("done"))
    );
    let after = services.json("ana", &["ledger", &dataset]);
    assert_eq!(after["spent"], ledger["spent"]);
}

/// Every command renews the session. A lost answer must not end it.
#[test]
fn repeated_refresh_after_lost_answer_keeps_the_session() {
    let services = Services::start(PROGRAM, &Backing::Local);
    let is_refresh = |line: &str| line.starts_with("POST /v1/sessions/refresh");
    let losing = Losing::start(&services.address(0), 3, is_refresh);
    sign_up(&services, "ana", &losing);
    services.run("ana", &["dataset", "list"]);
    assert_eq!(losing.lost(), 3);
    for _ in 0..3 {
        services.run("ana", &["dataset", "list"]);
    }
}

#[test]
fn repeated_key_creation_after_lost_answer_makes_one_key() {
    let services = Services::start(PROGRAM, &Backing::Local);
    let losing = Losing::start(&services.address(0), 2, |line| makes(line, "/v1/api-keys"));
    let endpoints = Endpoints {
        generation: losing.address.clone(),
        computation: services.address(1),
        crypto: services.address(2),
        witness: None,
    };
    let credentials = Credentials {
        email: "ana@example.org".to_owned(),
        password: Secret(PASSWORD.to_owned()),
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let client = Client::new(endpoints.clone()).unwrap();
        client.sign_up(&credentials).await.unwrap();
        client.sign_in(&credentials).await.unwrap();
        let made = client.create_key(Uuid::now_v7(), "nightly").await.unwrap();
        assert_eq!(losing.lost(), 2);
        let keys = client.keys().await.unwrap();
        assert_eq!(keys.len(), 1);
        assert_eq!(keys[0].id, made.key.id);
        let other = Client::new(endpoints).unwrap();
        other.sign_in_with_key(made.text).await.unwrap();
        assert_eq!(other.account().await.unwrap().email, credentials.email);
    });
}

//! Schedulers and executors refuse clients without a certificate of the operator's authority. Clients refuse a server
//! whose certificate has another host name.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

mod common;

use arrow_flight::flight_service_client::FlightServiceClient;
use ballista_core::serde::protobuf::GetJobStatusParams;
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use common::{Authority, Process, free_port};
use fhaim_ballista::config::Trouble;
use fhaim_ballista::tls::Identity;
use std::time::{Duration, Instant};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};

/// A program to call, with its port.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Scheduler(u16),
    Executor(u16),
}

impl Asked {
    fn endpoint(self, scheme: &str, host: &str) -> Endpoint {
        let (Self::Scheduler(port) | Self::Executor(port)) = self;
        Endpoint::from_shared(format!("{scheme}://{host}:{port}")).unwrap()
    }

    /// Connects and makes a call that every member of the cluster may make.
    async fn answers(self, endpoint: Endpoint) -> Result<(), String> {
        let channel: Channel = endpoint.connect().await.map_err(|e| format!("{e:?}"))?;
        match self {
            Self::Scheduler(_) => {
                let job_id = "none".to_owned();
                let mut scheduler = SchedulerGrpcClient::new(channel);
                let asked = scheduler.get_job_status(GetJobStatusParams { job_id });
                asked.await.map(|_| ()).map_err(|e| format!("{e:?}"))
            }
            Self::Executor(_) => {
                let mut executor = FlightServiceClient::new(channel);
                let asked = executor.handshake(futures::stream::empty());
                asked.await.map(|_| ()).map_err(|e| format!("{e:?}"))
            }
        }
    }
}

/// Waits until a program answers a client with a valid certificate.
async fn wait(asked: Asked, identity: &Identity, process: &Process) {
    let started = Instant::now();
    loop {
        let endpoint = identity.secured(asked.endpoint("https", "127.0.0.1"));
        match asked.answers(endpoint.unwrap()).await {
            Ok(()) => return,
            Err(error) if started.elapsed() > Duration::from_secs(600) => {
                panic!("{asked:?} does not answer: {error}\n{}", process.log())
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Returns the ports on which a process listens.
#[cfg(target_os = "linux")]
fn listening(process: &Process) -> Vec<u16> {
    let of_process = format!("/proc/{}", process.child.id());
    let files = std::fs::read_dir(format!("{of_process}/fd")).unwrap();
    let links = files.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
    let sockets: Vec<String> = links.map(|link| link.display().to_string()).collect();
    let mut ports = Vec::new();
    for table in ["tcp", "tcp6"] {
        let lines = std::fs::read_to_string(format!("{of_process}/net/{table}")).unwrap();
        for line in lines.lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            // State 0A is a listening socket. The tenth field is the socket's inode.
            if fields[3] == "0A" && sockets.contains(&format!("socket:[{}]", fields[9])) {
                let port = fields[1].rsplit(':').next().unwrap();
                ports.push(u16::from_str_radix(port, 16).unwrap());
            }
        }
    }
    ports
}

#[tokio::test]
async fn client_without_certificate_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let authority = Authority::new(&at("own"));
    let files = authority.issue("127.0.0.1");
    let identity = Identity::read(&files).unwrap();
    let (first, second) = (free_port(), free_port());
    let scheduler = Process::start(
        env!("CARGO_BIN_EXE_fhaim-scheduler"),
        folder.path(),
        "scheduler",
        &common::scheduler(first, &files),
    );
    std::fs::create_dir(at("blobs")).unwrap();
    let places = (1 << 30, at("work"), at("blobs"));
    let config = common::executor(second, first, (places.0, &places.1, &places.2), &files);
    let program = env!("CARGO_BIN_EXE_fhaim-executor");
    let executor = Process::start(program, folder.path(), "executor", &config);

    let stranger = Identity::read(&Authority::new(&at("other")).issue("127.0.0.1")).unwrap();
    let ca = Certificate::from_pem(std::fs::read(&files.authority).unwrap());
    let anonymous = ClientTlsConfig::new().ca_certificate(ca);
    for (asked, process) in [
        (Asked::Scheduler(first), &scheduler),
        (Asked::Executor(second), &executor),
    ] {
        // A client with a certificate gets an answer, even for an address with http.
        wait(asked, &identity, process).await;
        let rewritten = identity.secured(asked.endpoint("http", "127.0.0.1"));
        asked.answers(rewritten.unwrap()).await.unwrap();

        let plain = asked.endpoint("http", "127.0.0.1");
        let nameless = asked.endpoint("https", "127.0.0.1");
        let nameless = nameless.tls_config(anonymous.clone()).unwrap();
        let strange = stranger.secured(asked.endpoint("https", "127.0.0.1"));
        // The server's certificate does not have this host name.
        let misnamed = identity.secured(asked.endpoint("https", "localhost"));
        for (name, endpoint) in [
            ("in the clear", plain),
            ("without a certificate", nameless),
            ("with another authority's certificate", strange.unwrap()),
            ("with another host name", misnamed.unwrap()),
        ] {
            let answered = asked.answers(endpoint).await;
            assert!(answered.is_err(), "{asked:?} answered a client {name}");
        }
        let (Asked::Scheduler(port) | Asked::Executor(port)) = asked;
        #[cfg(target_os = "linux")]
        assert_eq!(listening(process), [port], "{asked:?}");
    }
}

/// Invalid files are reported when a program starts, and not when it first connects.
#[test]
fn invalid_certificate_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path());
    let (one, other) = (authority.issue("one"), authority.issue("other"));
    assert!(Identity::read(&one).is_ok());
    let mut absent = one.clone();
    absent.key = folder.path().join("absent");
    let mut no_key = one.clone();
    no_key.key = one.certificate.clone();
    let mut another_key = one.clone();
    another_key.key = other.key;
    assert!(matches!(
        Identity::read(&absent),
        Err(Trouble::Unreadable { .. })
    ));
    for files in [no_key, another_key] {
        let refused = Identity::read(&files);
        assert!(matches!(refused, Err(Trouble::Tls(_))), "{refused:?}");
    }
}

#[test]
fn debug_output_of_an_identity_has_no_key() {
    let folder = tempfile::tempdir().unwrap();
    let identity = Identity::read(&Authority::new(folder.path()).issue("one")).unwrap();
    assert_eq!(format!("{identity:?}"), "Identity { .. }");
}

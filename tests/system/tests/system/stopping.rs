//! Services that are stopped during work end soon and lose nothing.

use std::time::{Duration, Instant};

use fhaim_kit::{Backing, NAMES, Services, until};

use super::{
    PROGRAM,
    operators::{Up, fhaim, on_database},
};

/// Longest time to the end of a service. Answers and work in progress have ten seconds each, and a scheduler grants
/// half a minute.
const MAX_END: Duration = Duration::from_secs(25);

/// A batch in progress must not keep the computation service from ending.
#[test]
fn each_service_stops_in_the_middle_of_a_job() {
    let services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    let dataset = services.dataset("ana", &[]);
    let job = services.run("ana", &["job", "run", &dataset, "--yes"]);
    let job = job.lines().next().unwrap().to_owned();
    let running = "SELECT id FROM batches WHERE state = 'running'";
    until(|| match on_database(&services, 1, running).1.len() {
        0 => Err("no batch is running".to_owned()),
        _ => Ok(()),
    });
    for (service, name) in NAMES.iter().enumerate().rev() {
        let started = Instant::now();
        services.signal(service, "TERM");
        let status = until(|| {
            services
                .ended(service)
                .ok_or_else(|| format!("{name} is still running"))
        });
        assert!(status.success(), "{name}: {status}");
        assert!(
            started.elapsed() < MAX_END,
            "{name} took {:?}",
            started.elapsed()
        );
        // Removes the ended process, so that another can be launched.
        services.kill(service);
        services.launch(service);
    }
    services.wait_until_ready();
    services.run("ana", &["job", "watch", &job]);
}

/// A request of which only half was sent must not keep the process from ending.
#[test]
fn all_services_stop_with_work_and_half_a_request_in_progress() {
    use std::io::Write;
    let folder = tempfile::TempDir::new().unwrap();
    let data = folder.path().join("data");
    fhaim_kit::tables::write_small(folder.path(), 300);
    let port = fhaim_kit::Port::take();
    let listen = port.address();
    let mut up = Up::start(&data, &listen);
    let run = |arguments: &[&str]| {
        let (well, words) = fhaim(folder.path(), &data, arguments);
        assert!(well, "{arguments:?}: {words}");
        words.lines().next().unwrap_or_default().to_owned()
    };
    let login = |up: &Up| {
        run(&[
            "account",
            "login",
            "--server",
            &up.address,
            "--email",
            "holder@fhaim.local",
        ])
    };
    login(&up);
    let create = [
        "dataset",
        "create",
        "--schema",
        "t.schema.json",
        "--data",
        "t.csv",
    ];
    let dataset = run(&[&create[..], &["--epsilon", "1", "--yes"]].concat());
    run(&["dataset", "upload", &dataset, "--data", "t.csv", "--yes"]);
    let job = run(&["job", "run", &dataset, "--yes"]);
    let mut half = std::net::TcpStream::connect(&listen).unwrap();
    let head = b"POST /v1/sessions HTTP/1.1\r\nhost: a\r\ncontent-length: 400\r\n\r\nha";
    half.write_all(head).unwrap();
    let started = Instant::now();
    let id = up.child.id().to_string();
    std::process::Command::new("kill")
        .args(["-s", "TERM", &id])
        .status()
        .unwrap();
    let status = until(|| {
        up.child
            .try_wait()
            .unwrap()
            .ok_or_else(|| "the process is still running".to_owned())
    });
    assert!(status.success(), "{status}");
    assert!(
        started.elapsed() < MAX_END,
        "the process took {:?} to end",
        started.elapsed()
    );
    drop(up);
    let up = Up::start(&data, &listen);
    login(&up);
    run(&["job", "watch", &job]);
}

//! Ctrl-C while a job is watched, and messages about passwords and addresses.

use std::{
    io::{BufRead, BufReader, Read},
    process::{Command, Stdio},
};

use fhaim_kit::{Backing, Services, until};
use serde_json::Value;

use super::PROGRAM;

const COMPUTATION: usize = 1;

#[test]
fn watching_that_ctrl_c_ends_names_the_command_that_continues_it() {
    let services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    let dataset = services.dataset("ana", &[]);
    // Without this service, the job cannot end.
    services.kill(COMPUTATION);
    let run = ["job", "run", &dataset, "--watch", "--yes"];
    let mut run = services.command_under(Command::new("env"), "ana", &run);
    let run = run.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = run.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let job = lines.next().unwrap().unwrap();
    until(|| {
        let output = services.command("ana", &["job", "show", &job]);
        output
            .status
            .success()
            .then_some(())
            .ok_or("no such job".to_owned())
    });
    let id = child.id().to_string();
    // The command listens for the signal once it has started the job.
    std::thread::sleep(std::time::Duration::from_secs(1));
    Command::new("kill")
        .args(["-s", "INT", &id])
        .status()
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let mut told = String::new();
    child.stderr.unwrap().read_to_string(&mut told).unwrap();
    let words =
        format!("job {job} continues on the server. Watch it again with `fhaim job watch {job}`");
    assert!(told.contains(&words), "{told}");
    services.launch(COMPUTATION);
    services.wait_until_ready();
    services.run("ana", &["job", "watch", &job]);
}

#[test]
fn wrong_password_is_reported_as_such() {
    let services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    let base = services.address(0);
    let login = [
        "account",
        "login",
        "--generation",
        &base,
        "--email",
        "ana@example.org",
    ];
    let mut command = services.command_under(Command::new("env"), "ana", &login);
    let output = command
        .env("FHAIM_PASSWORD", "not the password")
        .output()
        .unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        told.contains("the email address or the password is wrong"),
        "{told}"
    );
    assert!(!told.contains("ign in first"), "{told}");
}

#[test]
fn error_of_a_service_is_reported_as_json_with_its_kind() {
    let services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    let job = "0198c0de-0000-7000-8000-000000000001";
    let output = services.command("ana", &["job", "show", job, "--json"]);
    let told = String::from_utf8(output.stderr).unwrap();
    let error: Value = serde_json::from_str(told.lines().last().unwrap()).unwrap();
    assert_eq!(error["kind"], "not-found", "{told}");
    assert!(
        error["way_out"]
            .as_str()
            .unwrap()
            .contains("check the identifier"),
        "{told}"
    );
    assert_eq!(error["exit_code"], 2);
}

//! Concurrent uploads of one dataset, by two processes on one machine and from two machines of one account.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use fhaim_kit::{Backing, Services, command::stderr, until};

use super::{PROGRAM, parties};

/// Returns the path of a dataset's upload journal on a machine.
fn journal(services: &Services, machine: &str, dataset: &str) -> PathBuf {
    let folder = services.folder.path().join(machine);
    let name = format!("{dataset}.upload");
    let found = walk(&folder).into_iter().find(|path| path.ends_with(&name));
    found.unwrap_or_else(|| folder.join(name))
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => walk(&path),
            false => vec![path],
        })
        .collect()
}

/// Returns the number of sent objects in a journal.
fn sent(journal: &Path) -> usize {
    let text = fs::read_to_string(journal).unwrap_or_default();
    text.matches("\"object\":").count()
}

fn begin(services: &Services, machine: &str, dataset: &str, table: &str) -> Child {
    let upload = ["dataset", "upload", dataset, "--data", table, "--yes"];
    let mut command = services.command_under(Command::new("nice"), machine, &upload);
    command.stderr(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().unwrap()
}

fn signal(child: &Child, signal: &str) {
    let id = child.id().to_string();
    let sent = Command::new("kill").args(["-s", signal, &id]).status();
    assert!(sent.unwrap().success(), "{signal}");
}

/// Begins an upload of a table, and stops its process when some objects are sent and others are not.
fn begin_and_stop(services: &Services, machine: &str, dataset: &str, table: &str) -> Child {
    let uploading = begin(services, machine, dataset, table);
    until(|| match sent(&journal(services, machine, dataset)) {
        0 | 1 => Err("fewer than two objects are sent".to_owned()),
        _ => Ok(()),
    });
    signal(&uploading, "STOP");
    uploading
}

/// Signs in to an account on another machine.
fn sign_in_on(services: &Services, machine: &str, account: &str) {
    let email = format!("{account}@example.org");
    let [generation, computation, crypto] = [0, 1, 2].map(|service| services.address(service));
    let login = ["account", "login", "--email", &email];
    let at = [
        "--generation",
        &generation,
        "--computation",
        &computation,
        "--crypto",
        &crypto,
    ];
    services.run(machine, &[&login[..], &at].concat());
}

#[test]
fn second_upload_on_one_machine_is_refused_and_the_first_completes() {
    let services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    let dataset = services.create("ana", &[]);
    let first = begin_and_stop(&services, "ana", &dataset, "t.csv");
    let upload = ["dataset", "upload", &dataset, "--data", "t.csv", "--yes"];
    let second = services.command("ana", &upload);
    signal(&first, "CONT");
    let process = first.id();
    let first = first.wait_with_output().unwrap();
    assert!(
        first.status.success(),
        "the first upload: {}",
        stderr(&first)
    );
    let told = stderr(&second);
    let running = format!("another upload of this dataset is running (process {process})");
    assert!(
        !second.status.success() && told.contains(&running),
        "{told}"
    );
    services.run("ana", &["job", "run", &dataset, "--yes", "--watch"]);
    services.run("ana", &["verify", &dataset, "--data", "t.csv"]);
}

#[test]
fn two_uploads_at_the_same_moment_leave_a_complete_dataset() {
    let services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    let dataset = services.create("ana", &[]);
    let both = [(); 2].map(|()| begin(&services, "ana", &dataset, "t.csv"));
    let both = both.map(|child| child.wait_with_output().unwrap());
    let well = both.iter().filter(|output| output.status.success()).count();
    let told = both.each_ref().map(stderr);
    assert_eq!(well, 1, "{told:?}");
    services.run("ana", &["job", "run", &dataset, "--yes", "--watch"]);
}

/// Each upload replaces some objects of the other. Neither completes the mixed upload, but the next upload that runs
/// without another does.
#[test]
fn mixed_uploads_from_two_machines_are_refused_and_can_be_repeated() {
    let services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    sign_in_on(&services, "laptop", "ana");
    let dataset = services.create("ana", &[]);
    for machine in ["ana", "laptop"] {
        let stopped = begin_and_stop(&services, machine, &dataset, "t.csv");
        signal(&stopped, "KILL");
        stopped.wait_with_output().unwrap();
    }
    let upload = ["dataset", "upload", &dataset, "--data", "t.csv", "--yes"];
    let mixed = services.command("ana", &upload);
    let told = stderr(&mixed);
    assert!(
        !mixed.status.success() && told.contains("another upload of this dataset"),
        "{told}"
    );
    services.run("ana", &upload);
    services.run("ana", &["job", "run", &dataset, "--yes", "--watch"]);
    services.run("ana", &["verify", &dataset, "--data", "t.csv"]);
    let late = services.command("laptop", &upload);
    assert!(
        stderr(&late).contains("has been uploaded already"),
        "{}",
        stderr(&late)
    );
}

/// A complete part accepts no more objects. A program whose objects are not in it must not claim that it uploaded them.
#[test]
#[ignore = "slow"]
fn interrupted_upload_is_refused_once_another_upload_of_the_part_is_complete() {
    let services = Services::start(PROGRAM, &Backing::Local);
    let dataset = parties::dataset(&services, parties::Division::Records, &[]);
    let ana = parties::HOLDERS[0];
    let table = "ana.csv";
    let stopped = begin_and_stop(&services, ana, &dataset, table);
    signal(&stopped, "KILL");
    stopped.wait_with_output().unwrap();
    // Upload without the record of the interrupted upload, as from another machine of the account.
    let record = journal(&services, ana, &dataset);
    let aside = record.with_extension("aside");
    fs::rename(&record, &aside).unwrap();
    let upload = ["dataset", "upload", &dataset, "--data", table, "--yes"];
    services.run(ana, &upload);
    fs::rename(&aside, &record).unwrap();
    let refused = services.command(ana, &upload);
    let told = stderr(&refused);
    assert!(
        !refused.status.success() && told.contains("another upload of this part was completed"),
        "{told}"
    );
    // The complete upload is usable.
    for (number, holder) in parties::HOLDERS.into_iter().enumerate() {
        services.run(holder, &["dataset", "sign", &dataset, "--yes"]);
        if number > 0 {
            let table = format!("{holder}.csv");
            let upload = ["dataset", "upload", &dataset, "--data", &table, "--yes"];
            services.run(holder, &upload);
        }
    }
    services.run(ana, &["job", "run", &dataset, "--yes", "--watch"]);
}

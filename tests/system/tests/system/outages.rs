//! Faults that pass: a run that was begun goes on when they are over.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fhaim_kit::{Backing, Services, until};

use super::{PROGRAM, operators::ask};

const COMPUTATION: usize = 1;
const CRYPTO: usize = 2;

/// Longer than it took five failed attempts to end a batch for good.
const OUTAGE: Duration = Duration::from_secs(6);

fn begin(services: &Services) -> String {
    let dataset = services.create("ana", &[]);
    services.run("ana", &["dataset", "upload", &dataset, "--data", "t.csv"]);
    dataset
}

/// Waits until the computation service has told of a fault.
fn told(services: &Services, service: usize, words: &str) {
    until(|| match services.log(service).contains(words) {
        true => Ok(()),
        false => Err(format!("nothing was told of: {words}")),
    });
}

/// Waits until a service's metrics have more than nothing of a name with its labels.
fn counted(services: &Services, service: usize, name: &str) {
    until(|| {
        let metrics = ask(
            &format!("{}/metrics", services.address(service)),
            None,
            None,
        )
        .1;
        let mut lines = metrics.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
        match value {
            Some(value) if value > 0.0 => Ok(()),
            value => Err(format!("{name} is {value:?}")),
        }
    });
}

fn done(services: &Services, job: &str, dataset: &str) {
    let output = services.command("ana", &["job", "watch", job]);
    let status = services.json("ana", &["job", "show", job]);
    assert!(output.status.success(), "{status}");
    let ledger = services.json("ana", &["ledger", dataset]);
    let runs = ledger["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 1);
    let entries = runs[0]["entries"].as_array().unwrap().len();
    assert_eq!(Some(entries as u64), status["releases"].as_u64());
}

#[test]
#[ignore = "slow"]
fn a_blob_store_that_is_away_destroys_no_run() {
    let services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    let dataset = begin(&services);
    let blobs = services.home(COMPUTATION).join("blobs");
    let away = services.home(COMPUTATION).join("away");
    fs::rename(&blobs, &away).unwrap();
    fs::write(&blobs, "not a folder").unwrap();
    let job = services.json("ana", &["job", "run", &dataset]);
    let job = job["id"].as_str().unwrap();
    told(&services, COMPUTATION, "put off");
    let outages = "task_attempts_total{task=\"batch\",end=\"outage\"}";
    counted(&services, COMPUTATION, outages);
    std::thread::sleep(OUTAGE);
    fs::remove_file(&blobs).unwrap();
    fs::rename(&away, &blobs).unwrap();
    done(&services, job, &dataset);
    counted(&services, CRYPTO, "ledger_acts");
    counted(&services, CRYPTO, "releases_debited_total");
}

#[test]
#[ignore = "slow"]
fn a_key_service_that_is_away_destroys_no_run() {
    let services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    let dataset = begin(&services);
    let job = services.json("ana", &["job", "run", &dataset]);
    let job = job["id"].as_str().unwrap();
    services.kill(CRYPTO);
    std::thread::sleep(OUTAGE);
    services.launch(CRYPTO);
    services.wait_until_ready();
    done(&services, job, &dataset);
}

/// Bytes of a noise object change where it is stored: nothing is released with it, its name is told, and the job goes on when it is
/// mended, with one run and each release debited once.
#[test]
#[ignore = "slow"]
fn damaged_noise_is_told_of_and_destroys_no_run() {
    let services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    let dataset = begin(&services);
    let uploads = services.home(COMPUTATION).join("blobs/uploads");
    let noise = files(&uploads.join(&dataset), "noise");
    assert!(!noise.is_empty());
    flip(&noise);
    let job = services.json("ana", &["job", "run", &dataset]);
    let job = job["id"].as_str().unwrap();
    told(
        &services,
        COMPUTATION,
        "what is stored is not what its digest says",
    );
    counted(
        &services,
        COMPUTATION,
        "task_attempts_total{task=\"batch\",end=\"fault\"}",
    );
    let ledger = services.json("ana", &["ledger", &dataset]);
    let debited = ledger["runs"].as_array().unwrap().iter();
    let debited = debited.flat_map(|run| run["entries"].as_array().unwrap());
    assert_eq!(debited.count(), 0);
    flip(&noise);
    done(&services, job, &dataset);
}

/// All files below a folder's part of this name.
fn files(folder: &Path, part: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.iter().any(|name| name == part) {
                found.push(path);
            }
        }
    }
    found
}

/// Changes a bit of each file; twice changes nothing.
fn flip(files: &[PathBuf]) {
    for file in files {
        let mut bytes = fs::read(file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(file, bytes).unwrap();
    }
}

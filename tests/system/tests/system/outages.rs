//! Temporary faults. A run that has begun continues when they are over.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fhaim_kit::{Backing, Services, until};

use super::{PROGRAM, operators::ask};

const COMPUTATION: usize = 1;
const CRYPTO: usize = 2;

/// Duration of an outage. It is longer than five attempts of a batch with their pauses.
const OUTAGE: Duration = Duration::from_secs(6);

fn begin(services: &Services) -> String {
    let dataset = services.create("ana", &[]);
    services.run(
        "ana",
        &["dataset", "upload", &dataset, "--data", "t.csv", "--yes"],
    );
    dataset
}

/// Waits until a service has logged these words.
fn logged(services: &Services, service: usize, words: &str) {
    until(|| match services.log(service).contains(words) {
        true => Ok(()),
        false => Err(format!("not in the log: {words}")),
    });
}

/// Waits until a service's metric with these labels is above 0.
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
    let entries = runs[0]["releases"].as_array().unwrap().len();
    assert_eq!(Some(entries as u64), status["releases"].as_u64());
}

#[test]
#[ignore = "slow"]
fn run_survives_an_outage_of_the_blob_store() {
    let services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    let dataset = begin(&services);
    let blobs = services.home(COMPUTATION).join("blobs");
    let away = services.home(COMPUTATION).join("away");
    fs::rename(&blobs, &away).unwrap();
    fs::write(&blobs, "not a folder").unwrap();
    let job = services.json("ana", &["job", "run", &dataset, "--yes"]);
    let job = job["id"].as_str().unwrap();
    logged(&services, COMPUTATION, "postponed");
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
fn run_survives_an_outage_of_the_key_service() {
    let services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    let dataset = begin(&services);
    let job = services.json("ana", &["job", "run", &dataset, "--yes"]);
    let job = job["id"].as_str().unwrap();
    services.kill(CRYPTO);
    std::thread::sleep(OUTAGE);
    let waits = "waiting for the computation service: the crypto service does not answer";
    until(|| {
        let shown = services.json("ana", &["job", "show", job]);
        match shown["error"] == waits {
            true => Ok(()),
            false => Err(shown.to_string()),
        }
    });
    services.launch(CRYPTO);
    services.wait_until_ready();
    done(&services, job, &dataset);
    let shown = services.json("ana", &["job", "show", job]);
    assert!(shown.get("error").is_none(), "{shown}");
}

/// Stored bytes of noise objects change. The job fails at once with the name of the object, and nothing is debited. When
/// the objects are repaired, the job is resumed, with one run and one debit for each release.
#[test]
#[ignore = "slow"]
fn run_with_damaged_noise_fails_at_once_and_is_resumed_after_a_repair() {
    let services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    let dataset = begin(&services);
    let uploads = services.home(COMPUTATION).join("blobs/uploads");
    let noise = files(&uploads.join(&dataset), "noise");
    assert!(!noise.is_empty());
    flip(&noise);
    let job = services.json("ana", &["job", "run", &dataset, "--yes"]);
    let job = job["id"].as_str().unwrap();
    let watched = services.command("ana", &["job", "watch", job]);
    assert!(!watched.status.success());
    let error = services.json("ana", &["job", "show", job])["error"].to_string();
    for words in [
        "object noise/",
        dataset.as_str(),
        "do not match their digest",
    ] {
        assert!(error.contains(words), "{words}: {error}");
    }
    // A fault would be tried again with pauses.
    let no_fault = "task_attempts_total{task=\"batch\",end=\"fault\"} 0";
    let metrics = ask(
        &format!("{}/metrics", services.address(COMPUTATION)),
        None,
        None,
    )
    .1;
    assert!(metrics.contains(no_fault), "{metrics}");
    let ledger = services.json("ana", &["ledger", &dataset]);
    let debited = ledger["runs"].as_array().unwrap().iter();
    let debited = debited.flat_map(|run| run["releases"].as_array().unwrap());
    assert_eq!(debited.count(), 0);
    flip(&noise);
    services.run("ana", &["job", "retry", job]);
    done(&services, job, &dataset);
}

/// Returns all files below a folder with this name in their path.
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

/// Flips a bit in the middle of each file. A second call restores the files.
fn flip(files: &[PathBuf]) {
    for file in files {
        let mut bytes = fs::read(file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(file, bytes).unwrap();
    }
}

//! Kills each service at random points of a job. The job ends with the releases of an undisturbed run, and the ledger
//! is debited once.

use std::time::{Duration, Instant};

use fhaim_kit::{Backing, NAMES, Services};
use rand::Rng;
use serde_json::Value;

use super::PROGRAM;

/// Number of kills of each service.
const POINTS: usize = 10;

struct Finished {
    releases: Value,
    debits: usize,
    spent: String,
    seconds: f64,
}

/// Runs a job over a new dataset with the same table and seed, and calls `disturb` while it runs.
fn job(services: &mut Services, disturb: impl FnOnce(&mut Services)) -> Finished {
    let dataset = services.dataset("ana", &[]);
    let started = Instant::now();
    let job = services.json("ana", &["job", "run", &dataset, "--yes"]);
    let job = job["id"].as_str().unwrap().to_owned();
    disturb(services);
    services.run("ana", &["job", "watch", &job]);
    let seconds = started.elapsed().as_secs_f64();
    let releases = services.json("ana", &["job", "releases", &job]);
    let ledger = services.json("ana", &["ledger", &dataset]);
    assert_eq!(ledger["runs"].as_array().unwrap().len(), 1);
    Finished {
        debits: ledger["runs"][0]["releases"].as_array().unwrap().len(),
        spent: ledger["spent"]["exact"].to_string(),
        releases,
        seconds,
    }
}

#[test]
#[ignore = "slow"]
fn job_with_killed_service_has_the_same_releases_and_debits() {
    let mut services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    let undisturbed = job(&mut services, |_| ());
    let mut rng = rand::rng();
    for (service, name) in NAMES.iter().enumerate() {
        for point in 0..POINTS {
            let wait = Duration::from_secs_f64(rng.random_range(0.0..undisturbed.seconds));
            let disturbed = job(&mut services, |services| {
                std::thread::sleep(wait);
                services.kill(service);
                services.launch(service);
                services.wait_until_ready();
            });
            let place = format!("{name} killed after {wait:?}, point {point}");
            assert_eq!(disturbed.releases, undisturbed.releases, "{place}");
            assert_eq!(disturbed.debits, undisturbed.debits, "{place}");
            assert_eq!(disturbed.spent, undisturbed.spent, "{place}");
        }
    }
}

//! Rollbacks of one, two or all services to older copies of their data, between jobs and within a job. Either jobs
//! continue and no noise is used twice, or the dataset is refused.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use fhaim_kit::{Backing, NAMES, Services, files::copy, until};
use serde_json::Value;

use super::{PROGRAM, parties::start_without_looking};

pub const CRYPTO: usize = 2;

/// Returns all non-empty sets of services.
fn subsets() -> impl Iterator<Item = Vec<usize>> {
    (1..8).map(|bits| (0..3).filter(|service| bits >> service & 1 == 1).collect())
}

fn names(set: &[usize]) -> String {
    let names: Vec<_> = set.iter().map(|&service| NAMES[service]).collect();
    names.join(" and ")
}

/// Stops all services, copies their data, and starts them again.
pub fn back_up(services: &mut Services, to: &Path) {
    (0..3).for_each(|service| services.kill(service));
    for (service, name) in NAMES.iter().enumerate() {
        let from = services.home(service);
        copy(&from, &to.join(name));
    }
    (0..3).for_each(|service| services.launch(service));
    services.wait_until_ready();
}

/// Stops all services, rolls some of them back, and starts all again.
pub fn restore(services: &mut Services, set: &[usize], from: &Path) {
    (0..3).for_each(|service| services.kill(service));
    for &service in set {
        let home = services.home(service);
        fs::remove_dir_all(&home).unwrap();
        copy(&from.join(NAMES[service]), &home);
    }
    (0..3).for_each(|service| services.launch(service));
    services.wait_until_ready();
    // A generation service that was rolled back does not know the current session.
    services.sign_in("ana");
}

fn dataset(services: &Services) -> String {
    let id = services.create("ana", &["--runs", "2"]);
    services.run(
        "ana",
        &["dataset", "upload", &id, "--data", "t.csv", "--yes"],
    );
    id
}

/// All released integers of a dataset, by job and release number.
#[derive(Default)]
struct Seen(BTreeMap<(String, u64), Value>);

impl Seen {
    /// Adds the integers that a job has released so far. Integers that were seen before must be the same.
    fn take(&mut self, services: &Services, job: &str) {
        let output = services.command("ana", &["job", "releases", job, "--json"]);
        if !output.status.success() {
            return; // A generation service that was rolled back may not know the job.
        }
        let releases: Value = serde_json::from_slice(&output.stdout).unwrap();
        for release in releases.as_array().unwrap() {
            let number = release["number"].as_u64().unwrap();
            let values = release["values"].clone();
            let before = self.0.insert((job.to_owned(), number), values.clone());
            assert!(before.is_none_or(|before| before == values), "{number}");
        }
    }

    fn of(&self, job: &str) -> Vec<&Value> {
        let of = self.0.iter().filter(|((one, _), _)| one == job);
        of.map(|(_, values)| values).collect()
    }
}

/// Watches a job to its end, and returns whether it is done.
pub fn watch(services: &Services, job: &str) -> bool {
    services
        .command("ana", &["job", "watch", job])
        .status
        .success()
}

pub fn begin(services: &Services, dataset: &str) -> Result<String, String> {
    let output = services.command("ana", &["job", "run", dataset, "--yes", "--json"]);
    if output.status.success() {
        let job: Value = serde_json::from_slice(&output.stdout).unwrap();
        Ok(job["id"].as_str().unwrap().to_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// Returns the crypto service's ledger, with all runs and their releases.
fn ledger(services: &Services, dataset: &str) -> Value {
    services.json("ana", &["ledger", dataset])
}

pub fn job_error(services: &Services, job: &str) -> String {
    services.json("ana", &["job", "show", job])["error"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
#[ignore = "slow"]
fn services_restored_between_jobs_are_refused_or_continue() {
    let mut services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    for set in subsets() {
        between_jobs(&mut services, &set);
        services = Services::start(PROGRAM, &Backing::Local);
        services.sign_up("ana");
    }
}

fn between_jobs(services: &mut Services, set: &[usize]) {
    let place = names(set);
    let dataset = dataset(services);
    let copies = services.folder.path().join("copies");
    back_up(services, &copies);
    let mut seen = Seen::default();
    let first = begin(services, &dataset).unwrap();
    assert!(watch(services, &first), "{place}");
    seen.take(services, &first);
    // If all services are rolled back, the holder's program must know the job only because it watched it.
    let before = (set.len() < 3).then(|| ledger(services, &dataset));
    restore(services, set, &copies);
    let second = begin(services, &dataset);
    if set.contains(&CRYPTO) {
        // The services that were not rolled back, or the holder's program, have a receipt that the ledger lacks.
        match second {
            Err(words) => assert!(words.contains("set back"), "{place}: {words}"),
            Ok(job) => {
                assert!(!watch(services, &job), "{place}");
                let words = job_error(services, &job);
                assert!(words.contains("set back"), "{place}: {words}");
            }
        }
        assert!(!runs(services, &dataset), "{place}");
        let shown = services.run("ana", &["dataset", "show", &dataset]);
        assert!(shown.contains("set back"), "{place}: {shown}");
        return;
    }
    let forgets = set.contains(&0);
    assert_eq!(second.is_err(), forgets, "{place}: {second:?}");
    let second = match second {
        Ok(second) => second,
        // The job that the generation service has forgotten continues first, at no further cost.
        Err(words) => {
            assert!(
                words.contains(&format!("--job {first}")),
                "{place}: {words}"
            );
            let again = ["job", "run", &dataset, "--job", &first, "--yes", "--watch"];
            services.run("ana", &again);
            seen.take(services, &first);
            begin(services, &dataset).unwrap()
        }
    };
    assert!(
        watch(services, &second),
        "{place}: {}",
        job_error(services, &second)
    );
    seen.take(services, &second);
    let (one, other) = (seen.of(&first), seen.of(&second));
    // All runs have the same first batch, so equal answers would mean the same noise. Single small counts can be equal
    // by chance.
    let pairs = || one.iter().zip(&other);
    let alike = pairs().filter(|(a, b)| a == b).count();
    assert!(pairs().len() > 3 && 2 * alike < pairs().len(), "{place}");
    // The first run's entries are unchanged, and the second run has its own.
    let after = ledger(services, &dataset);
    assert_eq!(charged(&after), charged(&before.unwrap()), "{place}");
    assert_eq!(after["runs"].as_array().unwrap().len(), 2, "{place}");
    assert!(
        !runs(services, &dataset),
        "{place}: a third run was possible"
    );
}

/// Returns the first run of a ledger without the names of its phases, which a restored generation service has lost.
fn charged(ledger: &Value) -> Value {
    let mut run = ledger["runs"][0].clone();
    run.as_object_mut().unwrap().remove("phases");
    for release in run["releases"].as_array_mut().unwrap() {
        release.as_object_mut().unwrap().remove("phase");
    }
    run
}

/// Checks whether another job can be run to its end.
fn runs(services: &Services, dataset: &str) -> bool {
    begin(services, dataset).is_ok_and(|job| watch(services, &job))
}

#[test]
#[ignore = "slow"]
fn services_restored_within_a_job_are_refused_or_continue() {
    for set in subsets() {
        let mut services = Services::start(PROGRAM, &Backing::Local);
        services.sign_up("ana");
        within_a_job(&mut services, &set);
    }
}

/// Waits until a job has more than `releases` releases or has ended. Returns their number.
fn released(services: &Services, job: &str, releases: u64) -> u64 {
    until(|| {
        let status = services.json("ana", &["job", "show", job]);
        let now = status["releases"].as_u64().unwrap();
        let over = status["state"] != "running" && status["state"] != "queued";
        match now > releases || over {
            true => Ok(now),
            false => Err(format!("the job hangs: {status}")),
        }
    })
}

fn within_a_job(services: &mut Services, set: &[usize]) {
    let place = names(set);
    let dataset = dataset(services);
    let copies = services.folder.path().join("copies");
    let mut seen = Seen::default();
    let job = begin(services, &dataset).unwrap();
    let some = released(services, &job, 0);
    back_up(services, &copies);
    seen.take(services, &job);
    released(services, &job, some);
    // This takes fewer calls than the whole job, so that the rollback happens within it.
    restore(services, set, &copies);
    seen.take(services, &job);
    let done = watch(services, &job);
    seen.take(services, &job);
    let ledger = ledger(services, &dataset);
    let entries = ledger["runs"][0]["releases"].as_array().unwrap().len();
    if set.len() == 3 {
        // No party remembers the lost releases here. `between_jobs` covers the case in which the holder's program does.
        return;
    }
    if !set.contains(&CRYPTO) {
        assert!(done, "{place}: {}", job_error(services, &job));
        assert_eq!(entries, seen.of(&job).len(), "{place}");
        assert_eq!(ledger["runs"].as_array().unwrap().len(), 1, "{place}");
    } else if done {
        // Either the lost releases were repeated, with the same integers and so the same chain, or the crypto service
        // received no more requests. The next request then notices the rollback.
        let whole = entries == seen.of(&job).len();
        assert!(
            whole || !runs(services, &dataset),
            "{place}: the rollback was not noticed"
        );
    } else {
        let words = job_error(services, &job);
        assert!(words.contains("set back"), "{place}: {words}");
        let again = services.command("ana", &["job", "retry", &job]);
        assert!(!again.status.success() || !watch(services, &job), "{place}");
    }
}

/// The generation service is rolled back to a state before a run that has releases. The error of another job names the
/// lost job, which can continue under its own identifier.
#[test]
#[ignore = "slow"]
fn job_forgotten_by_a_restored_service_is_named_and_continues() {
    let mut services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    let dataset = services.create("ana", &[]);
    services.run(
        "ana",
        &["dataset", "upload", &dataset, "--data", "t.csv", "--yes"],
    );
    let copies = services.folder.path().join("copies");
    back_up(&mut services, &copies);
    let forgotten = begin(&services, &dataset).unwrap();
    let some = released(&services, &forgotten, 0);
    restore(&mut services, &[0], &copies);
    for _ in 0..2 {
        let words = begin(&services, &dataset).unwrap_err();
        let named = words.contains(&format!("fhaim job run {dataset} --job {forgotten}"));
        assert!(named, "{words}");
    }
    // The services name it to a program that does not look before.
    let words = start_without_looking(&services, &dataset);
    let named = words.contains(&forgotten) && words.contains("fhaim job run DATASET --job");
    assert!(named, "{words}");
    services.run(
        "ana",
        &["job", "run", &dataset, "--job", &forgotten, "--watch"],
    );
    let ledger = ledger(&services, &dataset);
    assert_eq!(ledger["runs"].as_array().unwrap().len(), 1);
    let mut seen = Seen::default();
    seen.take(&services, &forgotten);
    let entries = ledger["runs"][0]["releases"].as_array().unwrap().len();
    assert!(entries == seen.of(&forgotten).len() && entries as u64 > some);
}

/// All services are rolled back. The holder's program has a later receipt, and stops the job.
#[test]
#[ignore = "slow"]
fn retry_after_restore_of_all_services_is_refused() {
    let mut services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    let dataset = dataset(&services);
    let job = begin(&services, &dataset).unwrap();
    released(&services, &job, 0);
    services.run("ana", &["job", "cancel", &job]);
    let copies = services.folder.path().join("copies");
    back_up(&mut services, &copies);
    services.run("ana", &["job", "retry", &job]);
    assert!(watch(&services, &job));
    restore(&mut services, &[0, 1, 2], &copies);
    let again = services.command("ana", &["job", "retry", &job]);
    let words = String::from_utf8_lossy(&again.stderr);
    assert!(
        !again.status.success() && words.contains("set back"),
        "{words}"
    );
}

/// The generation service is rolled back to a state before the end of an upload, and the holder's program no longer has
/// a journal of it. Another upload command makes the dataset ready without sending objects again.
#[test]
#[ignore = "slow"]
fn upload_forgotten_by_the_generation_service_is_not_lost() {
    let mut services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    let dataset = services.create("ana", &[]);
    let copies = services.folder.path().join("copies");
    back_up(&mut services, &copies);
    let upload = ["dataset", "upload", &dataset, "--data", "t.csv", "--yes"];
    services.run("ana", &upload);
    restore(&mut services, &[0], &copies);
    let shown = services.json("ana", &["dataset", "show", &dataset]);
    assert_eq!(shown["state"], "uploading");
    services.run("ana", &upload);
    let job = begin(&services, &dataset).unwrap();
    assert!(watch(&services, &job), "{}", job_error(&services, &job));
}

/// The computation service is set back to before an upload. Until a run has begun, the holder uploads again.
#[test]
fn upload_that_the_computation_service_lost_is_repeated() {
    const COMPUTATION: usize = 1;
    let mut services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    let id = services.create("ana", &[]);
    let before = tempfile::tempdir().unwrap();
    back_up(&mut services, before.path());
    let upload = ["dataset", "upload", &id, "--data", "t.csv", "--yes"];
    services.run("ana", &upload);
    restore(&mut services, &[COMPUTATION], before.path());
    services.run("ana", &upload);
    // An upload that the service has is not repeated.
    let twice = services.command("ana", &upload);
    let told = String::from_utf8_lossy(&twice.stderr).into_owned();
    assert!(
        !twice.status.success() && told.contains("uploaded already"),
        "{told}"
    );
    services.run("ana", &["job", "run", &id, "--yes", "--watch"]);
    services.run("ana", &["verify", &id, "--data", "t.csv"]);
    // Runs over an upload have begun, so no other upload takes its place.
    restore(&mut services, &[COMPUTATION], before.path());
    let lost = services.command("ana", &upload);
    let told = String::from_utf8_lossy(&lost.stderr).into_owned();
    assert!(
        !lost.status.success() && told.contains("create a new dataset"),
        "{told}"
    );
}

/// The key service is set back to before the dataset's keys were made. No run has begun, so no receipt shows it; the job
/// fails with the reason.
#[test]
fn job_without_the_keys_that_the_key_service_lost_says_so() {
    let mut services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    let before = tempfile::tempdir().unwrap();
    back_up(&mut services, before.path());
    let id = services.create("ana", &[]);
    let upload = ["dataset", "upload", &id, "--data", "t.csv", "--yes"];
    services.run("ana", &upload);
    restore(&mut services, &[CRYPTO], before.path());
    let job = begin(&services, &id).unwrap();
    assert!(!watch(&services, &job));
    let error = job_error(&services, &job);
    for words in [
        "does not have the keys of this dataset",
        "fhaim dataset create",
    ] {
        assert!(error.contains(words), "{words}: {error}");
    }
}

//! Key services that share keys. They release the same as one key service, and only batches that all of them have
//! debited.

use fhaim_kit::{
    Backing, KEYSHARE, ServiceOptions, Services, WITNESS,
    command::stderr,
    files::{copy, read_json},
    until,
};

use super::{
    PROGRAM,
    flow::{answers, released},
    operators::on_database,
};

fn services(backing: &Backing, keys: usize, witness: bool) -> Services {
    let setting = ServiceOptions {
        witness,
        keys,
        ..ServiceOptions::new(PROGRAM)
    };
    Services::start_in(backing, setting)
}

/// Returns the integers of `fhaim run` with the same seed as the noise of [`Services::dataset`].
fn own(services: &Services) -> Vec<Vec<i64>> {
    let data = ["run", "--data", "t.csv", "--schema", "t.schema.json"];
    let more = [
        "--epsilon",
        "1",
        "--out",
        "own.csv",
        "--seed",
        "5",
        "--yes",
        "--force",
    ];
    services.run("ana", &[&data[..], &more].concat());
    let own = read_json(&services.folder.path().join("own.releases.json"));
    answers(&own["releases"], "values")
}

/// Returns the kinds of acts in a key service's chain, in order.
fn acts(services: &Services, service: usize) -> Vec<String> {
    on_database(services, service, "SELECT kind FROM chain ORDER BY height").1
}

/// Returns the job's identifier from the first line that `job run` prints.
fn job(printed: &str) -> String {
    printed.lines().next().unwrap().to_owned()
}

/// Makes a dataset whose key this number of services share, runs a job, and checks that its releases equal those of one
/// service.
fn shared(services: &Services, keys: usize, more: &[&str]) -> String {
    services.sign_up("ana");
    let count = keys.to_string();
    let dataset = services.dataset("ana", &[&["--keys", &count], more].concat());
    let shown = services.run("ana", &["dataset", "show", &dataset]);
    for name in ["crypto", "keyshare1", "keyshare2"].iter().take(keys) {
        assert!(shown.contains(&format!(": {name}, key ")), "{shown}");
    }
    let printed = services.run("ana", &["job", "run", &dataset, "--yes", "--watch"]);
    assert_eq!(released(services, "ana", &job(&printed)), own(services));
    for service in [2].into_iter().chain(KEYSHARE..KEYSHARE + keys - 1) {
        assert_eq!(services.log(service), "");
    }
    dataset
}

/// Like [`shared`], and checks the stored data of each service (SQLite only).
fn whole(services: &Services, keys: usize, more: &[&str]) {
    let dataset = shared(services, keys, more);
    // The chains of all services have the same releases. Only the first has separate acts for debits.
    let mut first = acts(services, 2);
    first.retain(|kind| kind != "debited");
    for other in KEYSHARE..KEYSHARE + keys - 1 {
        assert_eq!(acts(services, other), first);
    }
    services.run("ana", &["dataset", "delete", &dataset, "--yes"]);
    for other in [2].into_iter().chain(KEYSHARE..KEYSHARE + keys - 1) {
        let kept = "SELECT dataset FROM key_sets WHERE secret IS NOT NULL";
        assert_eq!(on_database(services, other, kept).1, Vec::<String>::new());
        assert_eq!(acts(services, other).last().unwrap(), "keys-destroyed");
    }
}

#[test]
#[ignore = "slow"]
fn two_key_services_release_the_same_as_one() {
    let services = services(&Backing::Local, 2, false);
    whole(&services, 2, &[]);
    // A dataset with a single key service leaves no data at the other.
    let dataset = services.dataset("ana", &[]);
    services.run("ana", &["job", "run", &dataset, "--yes", "--watch"]);
    let known = "SELECT dataset FROM key_sets WHERE secret IS NOT NULL";
    assert_eq!(
        on_database(&services, KEYSHARE, known).1,
        Vec::<String>::new()
    );
}

#[test]
#[ignore = "slow"]
fn three_key_services_release_the_same_with_a_second_computation_service() {
    whole(&services(&Backing::Local, 3, true), 3, &["--witness"]);
}

#[test]
#[ignore = "needs FHAIM_TEST_POSTGRES and FHAIM_TEST_S3"]
fn two_key_services_release_the_same_on_postgres_and_s3() {
    let services = services(&Backing::remote(), 2, true);
    let dataset = shared(&services, 2, &["--witness"]);
    services.run("ana", &["dataset", "delete", &dataset, "--yes"]);
}

/// Each service is killed repeatedly while keys are made and while a job runs. The keys are made, and the job ends.
#[test]
#[ignore = "slow"]
fn keys_and_jobs_survive_kills_of_key_services() {
    let services = services(&Backing::Local, 3, false);
    services.sign_up("ana");
    let mut killed = 0;
    for (round, victim) in [2, KEYSHARE, KEYSHARE + 1].into_iter().enumerate() {
        let dataset = services.create("ana", &["--keys", "3"]);
        let upload = [
            "dataset", "upload", &dataset, "--data", "t.csv", "--seed", "5", "--yes",
        ];
        let disturbed = |arguments: &[&str]| {
            std::thread::scope(|scope| {
                let working = scope.spawn(|| services.command("ana", arguments));
                let mut pause = 40 + 35 * round as u64;
                while !working.is_finished() {
                    std::thread::sleep(std::time::Duration::from_millis(pause));
                    services.kill(victim);
                    killed += 1;
                    services.launch(victim);
                    until(|| match services.is_ready(victim) {
                        true => Ok(()),
                        false => Err("the service is not ready".to_owned()),
                    });
                    pause *= 2;
                }
                working.join().unwrap()
            })
        };
        let mut disturbed = disturbed;
        // If an attempt to make the key fails, the next one makes it with other shares.
        if !disturbed(&upload).status.success() {
            services.run("ana", &upload);
        }
        let job = job(&services.run("ana", &["job", "run", &dataset, "--yes"]));
        disturbed(&["job", "watch", &job]);
        services.run("ana", &["job", "watch", &job]);
        assert_eq!(released(&services, "ana", &job), own(&services));
        let of = |service| {
            // Only the first service has separate acts for debits. The others debit and release their share in one act.
            let acts = format!(
                "SELECT kind FROM chain WHERE dataset = '{dataset}' AND kind <> 'debited' ORDER BY height"
            );
            on_database(&services, service, &acts).1
        };
        assert_eq!(of(2), of(KEYSHARE));
        assert_eq!(of(2), of(KEYSHARE + 1));
    }
    assert!(killed >= 6, "only {killed} kills");
}

/// Returns the number of batches that a service has debited and released.
fn debited(services: &Services, service: usize) -> usize {
    let acts = acts(services, service);
    acts.iter().filter(|kind| *kind == "released").count()
}

/// While one key service does not answer, no service debits. A batch that one service refuses is not debited.
#[test]
#[ignore = "slow"]
fn batch_that_one_key_service_refuses_is_not_debited() {
    let services = services(&Backing::Local, 2, false);
    services.sign_up("ana");
    let dataset = services.dataset("ana", &["--keys", "2"]);
    services.kill(KEYSHARE);
    let waiting = job(&services.run("ana", &["job", "run", &dataset, "--yes"]));
    until(|| {
        match on_database(&services, 2, "SELECT request FROM promises")
            .1
            .len()
        {
            0 => Err("the first service has not promised a request yet".to_owned()),
            _ => Ok(()),
        }
    });
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert_eq!(debited(&services, 2), 0);
    // The other service starts again, but its share has been destroyed.
    on_database(&services, KEYSHARE, "UPDATE key_sets SET secret = NULL");
    services.launch(KEYSHARE);
    let told = services.command("ana", &["job", "watch", &waiting]);
    assert!(!told.status.success());
    assert!(stderr(&told).contains("refused"), "{}", stderr(&told));
    assert_eq!(debited(&services, 2), 0);
    assert_eq!(debited(&services, KEYSHARE), 0);
    let ledger = services.json("ana", &["ledger", &dataset]);
    assert_eq!(ledger["spent"]["rho"].as_f64(), Some(0.0));
}

/// The first service is rolled back to a state before a release, and nobody shows it a receipt. The other service has
/// its own ledger, and refuses a second release with the same noise.
#[test]
#[ignore = "slow"]
fn restored_key_service_gets_no_second_share_of_the_other() {
    let services = services(&Backing::Local, 2, false);
    services.sign_up("ana");
    let dataset = services.dataset("ana", &["--keys", "2"]);
    services.kill(2);
    let before = services.folder.path().join("before");
    copy(&services.home(2), &before);
    services.launch(2);
    services.wait_until_ready();
    services.run("ana", &["job", "run", &dataset, "--yes", "--watch"]);
    let spent = debited(&services, KEYSHARE);
    assert!(spent > 0);
    // Roll the first service back, and remove all receipts.
    services.kill(2);
    std::fs::remove_dir_all(services.home(2)).unwrap();
    copy(&before, &services.home(2));
    for service in [0, 1] {
        services.kill(service);
    }
    on_database(&services, 1, "UPDATE uploads SET receipts = '[]'");
    for service in 0..3 {
        services.launch(service);
    }
    services.wait_until_ready();
    assert_eq!(acts(&services, 2), ["keys-made"]);
    let again = services.command("ana", &["job", "run", &dataset, "--yes", "--watch"]);
    assert!(!again.status.success());
    assert_eq!(debited(&services, KEYSHARE), spent);
    assert_eq!(debited(&services, 2), 0);
}

/// A key service that makes keys without the others and claims that they share them is detected before the upload.
#[test]
#[ignore = "slow"]
fn keys_without_all_confirmations_are_not_used() {
    let services = services(&Backing::Local, 2, false);
    services.sign_up("ana");
    let upload = |dataset: &str| {
        let upload = ["dataset", "upload", dataset, "--data", "t.csv", "--yes"];
        stderr(&services.command("ana", &upload))
    };
    let confirmation = |dataset: &str| {
        let select = format!("SELECT confirmation FROM shared_keys WHERE dataset = '{dataset}'");
        on_database(&services, 2, &select).1.remove(0)
    };
    let honest = services.dataset("ana", &["--keys", "2"]);
    let one = services.dataset("ana", &["--keys", "2"]);
    let forge = |confirmation: Option<&str>| {
        let value = confirmation.map_or("NULL".to_owned(), |text| format!("'{text}'"));
        let forged =
            format!("UPDATE shared_keys SET confirmation = {value} WHERE dataset = '{one}'");
        assert_eq!(on_database(&services, 2, &forged).0, 1);
        on_database(&services, 0, "UPDATE datasets SET state = 'uploading'");
        upload(&one)
    };
    // No confirmation, the confirmations of another key, and the confirmation of one service.
    let kept = confirmation(&one);
    let mut alone: serde_json::Value = serde_json::from_str(&kept).unwrap();
    alone["messages"].as_array_mut().unwrap().truncate(1);
    for forged in [None, Some(confirmation(&honest)), Some(alone.to_string())] {
        let told = forge(forged.as_deref());
        assert!(told.contains("do not upload"), "{told}");
    }
    assert!(!forge(Some(&kept)).contains("do not upload"));
}

/// The command refuses more shares than there are key services, mechanisms with squared scores, and key services that
/// do not answer.
#[test]
#[ignore = "slow"]
fn dataset_with_too_few_key_services_is_refused() {
    let services = services(&Backing::Local, 2, false);
    services.sign_up("ana");
    let create = [
        "dataset",
        "create",
        "--schema",
        "t.schema.json",
        "--data",
        "t.csv",
    ];
    let more = ["--epsilon", "1", "--keys", "3"];
    let told = stderr(&services.command("ana", &[&create[..], &more].concat()));
    assert!(told.contains("only 2 are known"), "{told}");
    let squares = ["--epsilon", "1", "--keys", "2", "--mechanism", "fhaim-l2"];
    let told = stderr(&services.command("ana", &[&create[..], &squares].concat()));
    assert!(told.contains("squared scores"), "{told}");
    services.kill(KEYSHARE);
    let two = ["--epsilon", "1", "--keys", "2"];
    let told = stderr(&services.command("ana", &[&create[..], &two].concat()));
    assert!(told.contains("keyshare1 service does not answer"), "{told}");
}

/// Every key service waits for the digest that the second computation service sends to it. It does not trust the first
/// key service.
#[test]
#[ignore = "slow"]
fn every_key_service_waits_for_the_second_computation_service() {
    let services = services(&Backing::Local, 2, true);
    services.sign_up("ana");
    let dataset = services.dataset("ana", &["--keys", "2", "--witness"]);
    services.kill(KEYSHARE);
    let job = job(&services.run("ana", &["job", "run", &dataset, "--yes"]));
    // The second computation service sends its digest to the other key service first, which does not answer.
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert_eq!(
        on_database(&services, 2, "SELECT request FROM witnessed")
            .1
            .len(),
        0
    );
    services.kill(WITNESS);
    services.launch(KEYSHARE);
    let word =
        format!("SELECT dataset FROM chain WHERE dataset = '{dataset}' AND kind = 'released'");
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert_eq!(on_database(&services, KEYSHARE, &word).1.len(), 0);
    services.launch(WITNESS);
    services.run("ana", &["job", "watch", &job]);
    assert_eq!(released(&services, "ana", &job), own(&services));
}

/// The other key service is set back to before a run. It does not know its later debits, and the next job fails with its name.
#[test]
#[ignore = "slow"]
fn key_service_that_was_set_back_is_named() {
    let services = services(&Backing::Local, 2, false);
    services.sign_up("ana");
    let dataset = services.dataset("ana", &["--keys", "2", "--runs", "2"]);
    services.kill(KEYSHARE);
    let before = services.copy(KEYSHARE);
    services.launch(KEYSHARE);
    services.wait_until_ready();
    services.run("ana", &["job", "run", &dataset, "--yes", "--watch"]);
    services.kill(KEYSHARE);
    services.set_back(KEYSHARE, &before);
    services.launch(KEYSHARE);
    services.wait_until_ready();
    let next = job(&services.run("ana", &["job", "run", &dataset, "--yes"]));
    let error = until(|| {
        let shown = services.json("ana", &["job", "show", &next]);
        match shown["state"].as_str() {
            Some("failed") => Ok(shown["error"].to_string()),
            _ => Err(format!("the job does not end: {shown}")),
        }
    });
    for words in ["key service keyshare1 was set back", "fhaim dataset create"] {
        assert!(error.contains(words), "{words}: {error}");
    }
    // It has no run, because it could not release anything.
    let ledger = services.json("ana", &["ledger", &dataset]);
    assert_eq!(ledger["runs"].as_array().unwrap().len(), 1, "{ledger}");
}

/// Sets all services but one key service back to before a run, two of them to before the upload. The holder then uploads
/// again, from another machine, and starts the same job or another one. Returns the job's error.
fn error_after_a_restore(is_same_job: bool) -> String {
    let services = services(&Backing::Local, 2, false);
    services.sign_up("ana");
    let dataset = services.create("ana", &["--keys", "2", "--runs", "2"]);
    let upload = |seed: &str| {
        let upload = ["dataset", "upload", &dataset, "--data", "t.csv", "--yes"];
        services.run("ana", &[&upload[..], &["--seed", seed]].concat());
    };
    let copied = |service: usize| {
        services.kill(service);
        let copy = services.copy(service);
        services.launch(service);
        services.wait_until_ready();
        (service, copy)
    };
    let without_upload = [0, 1].map(copied);
    upload("5");
    let without_run = copied(2);
    let first = job(&services.run("ana", &["job", "run", &dataset, "--yes", "--watch"]));
    for (service, copy) in without_upload.iter().chain([&without_run]) {
        services.kill(*service);
        services.set_back(*service, copy);
        services.launch(*service);
    }
    services.wait_until_ready();
    // The restored service does not know the session.
    services.try_sign_in("ana");
    std::fs::remove_dir_all(services.folder.path().join("ana/receipts")).unwrap();
    upload("6");
    let run = ["job", "run", &dataset, "--yes"];
    let same = ["--job", &first];
    let more: &[&str] = if is_same_job { &same } else { &[] };
    let next = job(&services.run("ana", &[&run[..], more].concat()));
    until(|| {
        let shown = services.json("ana", &["job", "show", &next]);
        match shown["state"].as_str() {
            Some("failed") => Ok(shown["error"].to_string()),
            _ => Err(format!("the job does not end: {shown}")),
        }
    })
}

#[test]
#[ignore = "slow"]
fn second_upload_after_a_restore_is_refused_with_the_reason() {
    let error = error_after_a_restore(true);
    for words in ["key service keyshare1: ", "bound to another upload"] {
        assert!(error.contains(words), "{words}: {error}");
    }
}

#[test]
#[ignore = "slow"]
fn run_that_another_job_has_after_a_restore_is_refused_with_the_reason() {
    let error = error_after_a_restore(false);
    for words in [
        "key service keyshare1: another job has this run",
        "fhaim dataset create",
    ] {
        assert!(error.contains(words), "{words}: {error}");
    }
}

/// The first key service was set back to before the keys. The deletion still destroys the share of the other.
#[test]
#[ignore = "slow"]
fn share_of_keys_that_the_first_service_forgot_is_destroyed() {
    let services = services(&Backing::Local, 2, false);
    services.sign_up("ana");
    services.sign_up("eve");
    services.kill(2);
    let before = services.copy(2);
    services.launch(2);
    services.wait_until_ready();
    let dataset = services.dataset("ana", &["--keys", "2"]);
    services.kill(2);
    services.set_back(2, &before);
    services.launch(2);
    services.wait_until_ready();
    let shares = || {
        let select = "SELECT dataset FROM key_sets WHERE secret IS NOT NULL";
        on_database(&services, KEYSHARE, select).1
    };
    let delete = ["dataset", "delete", &dataset, "--yes"];
    assert!(!services.command("eve", &delete).status.success());
    assert_eq!(shares(), [&*dataset]);
    services.run("ana", &delete);
    assert_eq!(shares(), Vec::<String>::new());
}

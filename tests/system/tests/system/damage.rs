//! Damaged rows of one dataset.

use fhaim_kit::{Backing, Services};

use super::PROGRAM;
use super::operators::{ask, on_database};

const GENERATION: usize = 0;
const COMPUTATION: usize = 1;
const CRYPTO: usize = 2;

/// A job over damaged data ends at once, with the name of its dataset. The job of another account runs, and the damaged
/// dataset can be deleted.
#[test]
#[ignore = "slow"]
fn damaged_rows_are_named_and_their_dataset_can_be_deleted() {
    let services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    services.sign_up("eve");
    let upload = |user| {
        let dataset = services.create(user, &[]);
        let arguments = ["dataset", "upload", &dataset, "--data", "t.csv", "--yes"];
        services.run(user, &arguments);
        dataset
    };
    for (service, change) in [
        (CRYPTO, "key_sets SET secret = x'0011' WHERE dataset"),
        (CRYPTO, "key_sets SET terms = '{' WHERE dataset"),
        (CRYPTO, "chain SET act = '{}' WHERE height = 1 AND dataset"),
        (COMPUTATION, "uploads SET receipts = x'0011' WHERE dataset"),
        (COMPUTATION, "uploads SET terms = '{' WHERE dataset"),
        (
            COMPUTATION,
            "uploads SET sealing_key = x'0011' WHERE dataset",
        ),
        (GENERATION, "datasets SET receipt = '{' WHERE id"),
        (GENERATION, "datasets SET terms = x'00ff' WHERE id"),
    ] {
        let dataset = upload("ana");
        let (changed, _) = on_database(
            &services,
            service,
            &format!("UPDATE {change} = '{dataset}'"),
        );
        assert_eq!(changed, 1, "{change}");
        let run = ["job", "run", &dataset, "--yes", "--watch"];
        let output = services.command("ana", &run);
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{change}: {words}");
        for expected in ["damaged", dataset.as_str()] {
            assert!(words.contains(expected), "{change}: {expected}: {words}");
        }
        let list = services.command("ana", &["dataset", "list"]);
        let listed = [list.stdout, list.stderr].concat();
        let listed = String::from_utf8_lossy(&listed);
        assert!(listed.contains(&dataset), "{change}: {listed}");
        // To another account, the damaged dataset does not exist.
        let foreign = services.command("eve", &["dataset", "delete", &dataset, "--yes"]);
        let words = String::from_utf8_lossy(&foreign.stderr);
        assert!(
            !foreign.status.success() && words.contains("Not found"),
            "{change}: {words}"
        );
        services.run("ana", &["dataset", "delete", &dataset, "--yes"]);
        let left = services.run("ana", &["dataset", "list"]);
        assert!(!left.contains(&dataset), "{change}: {left}");
    }
    let dataset = upload("eve");
    services.run("eve", &["job", "run", &dataset, "--yes", "--watch"]);
    for dataset in [&dataset, "01a2225c-8004-70f2-9444-898a33b4da17"] {
        let foreign = services.command("ana", &["dataset", "delete", dataset, "--yes"]);
        let words = String::from_utf8_lossy(&foreign.stderr);
        assert!(
            !foreign.status.success() && words.contains("Not found"),
            "{words}"
        );
    }
    // Damaged data is not tried again.
    for (service, task) in [(COMPUTATION, "batch"), (GENERATION, "job")] {
        let address = format!("{}/metrics", services.address(service));
        let metrics = ask(&address, None, None).1;
        let faults = format!("task_attempts_total{{task=\"{task}\",end=\"fault\"}} 0");
        assert!(metrics.contains(&faults), "{metrics}");
    }
}

/// The operator copies the damaged column from a backup, and the job continues with its run.
#[test]
#[ignore = "slow"]
fn job_over_a_damaged_key_is_resumed_after_a_repair() {
    let services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    let dataset = services.dataset("ana", &[]);
    let (_, copy) = on_database(&services, CRYPTO, "SELECT hex(secret) FROM key_sets");
    on_database(&services, CRYPTO, "UPDATE key_sets SET secret = x'0011'");
    let run = ["job", "run", &dataset, "--yes", "--watch"];
    let output = services.command("ana", &run);
    assert!(!output.status.success());
    let jobs = services.json("ana", &["job", "list", &dataset]);
    let job = jobs[0]["id"].as_str().unwrap();
    let repair = format!("UPDATE key_sets SET secret = x'{}'", copy[0]);
    on_database(&services, CRYPTO, &repair);
    services.run("ana", &["job", "retry", job]);
    services.run("ana", &["job", "watch", job]);
    let ledger = services.json("ana", &["ledger", &dataset]);
    assert_eq!(ledger["runs"].as_array().unwrap().len(), 1, "{ledger}");
}

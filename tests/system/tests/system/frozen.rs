//! The way forward for holders whose dataset is frozen and cannot be resumed (docs/FROZEN.md).

use fhaim_kit::{Backing, Services};
use fhaim_protocol::crypto::chain::Freeze;
use serde_json::Value;

use super::PROGRAM;
use super::operators::{admin, freeze};
use super::parties::{Division, HOLDERS, dataset};

/// Signs a dataset and uploads the part of each holder.
fn sign_and_upload(services: &Services, id: &str) {
    for holder in HOLDERS {
        services.run(holder, &["dataset", "sign", id, "--yes"]);
        let data = format!("{holder}.csv");
        services.run(holder, &["dataset", "upload", id, "--data", &data, "--yes"]);
    }
}

/// Returns the exact cost of all releases of a dataset.
fn spent(services: &Services, holder: &str, id: &str) -> Value {
    services.json(holder, &["ledger", id])["spent"]["exact"].clone()
}

#[test]
#[ignore = "slow"]
fn holders_of_a_frozen_dataset_start_again_and_its_cost_stays_counted() {
    let services = Services::start(PROGRAM, &Backing::Local);
    let old = dataset(&services, Division::Counts, &["--runs", "2"]);
    sign_and_upload(&services, &old);
    let job = services.json("ana", &["job", "run", &old, "--yes"]);
    let job = job["id"].as_str().unwrap().to_owned();
    services.run("ana", &["job", "watch", &job]);
    let paid = spent(&services, "ana", &old);

    freeze(&services, &old, Freeze::Noise);
    let told = services.command("ben", &["job", "run", &old, "--yes", "--watch"]);
    assert!(!told.status.success());
    let (thawed, words) = admin(&services, 2, &["thaw", &old]);
    assert!(!thawed, "{words}");
    assert!(
        words.contains("make a new dataset with the same holders"),
        "{words}"
    );
    // The results and the ledger stay available to every holder.
    for holder in HOLDERS {
        services.run(holder, &["download", &job, "--out", "kept.csv", "--force"]);
        assert_eq!(spent(&services, holder, &old), paid, "{holder}");
    }

    // The same cards are used for the new dataset.
    let mut create = vec![
        "dataset",
        "create",
        "--schema",
        "t.schema.json",
        "--epsilon",
        "1",
    ];
    create.extend(["--contribution", "counts"]);
    let cards = HOLDERS.map(|holder| format!("{holder}.json"));
    for card in &cards {
        create.extend(["--holder", card]);
    }
    let new = services.run("ana", &create).trim().to_owned();
    services.run("ana", &["dataset", "sign", &new, "--yes"]);
    // A holder's program knows that its records were used, and asks before it uploads them again.
    let upload = ["dataset", "upload", &new, "--data", "ana.csv"];
    let asked = services.command("ana", &upload);
    let words = String::from_utf8_lossy(&asked.stderr).into_owned();
    assert!(!asked.status.success(), "{words}");
    assert!(
        words.contains("used before") || words.contains("total"),
        "{words}"
    );
    sign_and_upload(&services, &new);
    services.run("ana", &["job", "run", &new, "--yes", "--watch"]);
    // The old ledger keeps its cost, and the new one adds its own.
    assert_eq!(spent(&services, "eva", &old), paid);
    assert_ne!(spent(&services, "eva", &new), Value::from("0"));
    let frozen = services.json("eva", &["ledger", &old]);
    assert!(frozen["frozen"].is_string(), "{frozen}");
}

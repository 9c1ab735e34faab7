//! Rollbacks of the key service to a state before a dataset's keys were made. Either no other keys are made, or nothing
//! is released with them.

use std::fs;

use fhaim_api::account::{Credentials, Secret};
use fhaim_kit::{Backing, PASSWORD, Services, command::stderr};
use fhaim_sdk::{Client, Endpoints};
use serde_json::Value;

use super::{
    PROGRAM,
    operators::on_database,
    restores::{CRYPTO, back_up, begin, job_error, restore, watch},
};

const GENERATION: usize = 0;
const COMPUTATION: usize = 1;

/// Makes a dataset of which one of two runs is released. Returns it with copies of all services from before its keys
/// were made.
fn released(services: &mut Services) -> (String, std::path::PathBuf) {
    services.sign_up("ana");
    let dataset = services.create("ana", &["--runs", "2"]);
    let copies = services.folder.path().join("copies");
    back_up(services, &copies);
    services.run(
        "ana",
        &["dataset", "upload", &dataset, "--data", "t.csv", "--yes"],
    );
    let job = begin(services, &dataset).unwrap();
    assert!(watch(services, &job));
    (dataset, copies)
}

/// Removes the receipts of the holder's program, as on another machine.
fn forget_receipts(services: &Services) {
    fs::remove_dir_all(services.folder.path().join("ana/receipts")).unwrap();
}

/// Asks for the keys of a dataset as a program without receipts.
fn ask_for_keys(services: &Services, dataset: &str) -> Result<(), String> {
    let endpoints = Endpoints {
        generation: services.address(GENERATION),
        computation: services.address(COMPUTATION),
        crypto: services.address(CRYPTO),
        witness: None,
    };
    let credentials = Credentials {
        email: "ana@example.org".to_owned(),
        password: Secret(PASSWORD.to_owned()),
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let client = Client::new(endpoints).unwrap();
        client.sign_in(&credentials).await.unwrap();
        let dataset = client.dataset(dataset.parse().unwrap()).await.unwrap();
        let made = client.prepare_keys(&dataset).await;
        made.map(|_| ()).map_err(|error| error.to_string())
    })
}

fn spent(of: &Value) -> f64 {
    of["spent"]["rho"].as_f64().unwrap()
}

#[test]
fn keys_are_not_made_again_for_a_dataset_with_a_released_job() {
    let mut services = Services::start(PROGRAM, &Backing::Local);
    let (dataset, copies) = released(&mut services);
    restore(&mut services, &[COMPUTATION, CRYPTO], &copies);
    forget_receipts(&services);
    if ask_for_keys(&services, &dataset).is_ok() {
        let jobs = services.json("ana", &["job", "list", &dataset]);
        let ledger = services.json("ana", &["ledger", &dataset]);
        panic!(
            "other keys were made: the ledger has rho {} of {}, but the jobs have spent {}",
            spent(&ledger),
            ledger["budget"]["rho"],
            spent(&jobs[0])
        );
    }
    let words = ask_for_keys(&services, &dataset).unwrap_err();
    assert!(words.contains("set back"), "{words}");
}

/// The generation service was rolled back as well, so it vouches for the dataset. The computation service was not, and
/// has a receipt of the lost ledger.
#[test]
#[ignore = "slow"]
fn receipt_of_a_lost_ledger_freezes_the_dataset() {
    let mut services = Services::start(PROGRAM, &Backing::Local);
    let (dataset, copies) = released(&mut services);
    restore(&mut services, &[GENERATION, CRYPTO], &copies);
    forget_receipts(&services);
    services.run(
        "ana",
        &["dataset", "upload", &dataset, "--data", "t.csv", "--yes"],
    );
    let job = begin(&services, &dataset).unwrap();
    assert!(!watch(&services, &job));
    let words = job_error(&services, &job);
    assert!(words.contains("before the dataset's keys"), "{words}");
    let frozen = services.json("ana", &["ledger", &dataset])["frozen"].clone();
    let frozen = frozen.as_str().unwrap_or_default().to_owned();
    assert!(frozen.contains("before the dataset's keys"), "{frozen}");
    let another = begin(&services, &dataset).unwrap();
    assert!(!watch(&services, &another));
}

/// All services were rolled back, but the holder's program has a receipt.
#[test]
fn holder_with_a_receipt_has_no_other_keys_made() {
    let mut services = Services::start(PROGRAM, &Backing::Local);
    let (dataset, copies) = released(&mut services);
    restore(&mut services, &[GENERATION, COMPUTATION, CRYPTO], &copies);
    let upload = ["dataset", "upload", &dataset, "--data", "t.csv", "--yes"];
    let told = services.command("ana", &upload);
    assert!(!told.status.success());
    assert!(stderr(&told).contains("set back"), "{}", stderr(&told));
    // No keys were made before the program noticed.
    let made = on_database(&services, CRYPTO, "SELECT dataset FROM key_sets");
    assert_eq!(made.1, Vec::<String>::new());
}

/// The keys and ciphertexts of a dataset that the generation service does not know are deleted by its identifier.
#[test]
#[ignore = "slow"]
fn dataset_that_the_generation_service_forgot_can_be_deleted() {
    let mut services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    let copies = services.folder.path().join("copies");
    back_up(&mut services, &copies);
    let dataset = services.dataset("ana", &[]);
    restore(&mut services, &[GENERATION], &copies);
    services.sign_in("ana");
    services.run("ana", &["dataset", "delete", &dataset, "--yes"]);
    let kept = on_database(
        &services,
        CRYPTO,
        "SELECT dataset FROM key_sets WHERE secret IS NOT NULL",
    );
    assert_eq!(kept.1, Vec::<String>::new());
    let uploads = on_database(&services, COMPUTATION, "SELECT dataset FROM uploads");
    assert_eq!(uploads.1, Vec::<String>::new());
}

#[test]
#[ignore = "slow"]
fn ledger_of_a_crypto_service_that_forgot_the_dataset_is_named() {
    let mut services = Services::start(PROGRAM, &Backing::Local);
    let (dataset, copies) = released(&mut services);
    restore(&mut services, &[CRYPTO], &copies);
    for command in [&["ledger"][..], &["verify", "--data", "t.csv"]] {
        let arguments = [&command[..1], &[&*dataset], &command[1..]].concat();
        let told = services.command("ana", &arguments);
        let words = stderr(&told);
        assert!(!told.status.success(), "{words}");
        assert!(words.contains("has no ledger of dataset"), "{words}");
    }
}

/// Generation and computation are set back to before an upload over which a run has begun. A second upload would make
/// the run unverifiable, and the runs that are left unusable.
#[test]
#[ignore = "slow"]
fn upload_over_which_runs_have_begun_is_not_replaced() {
    let mut services = Services::start(PROGRAM, &Backing::Local);
    let (dataset, copies) = released(&mut services);
    let ladder = services.folder.path().join(format!("ana/{dataset}.ladder"));
    let before = fs::read(&ladder).unwrap();
    restore(&mut services, &[GENERATION, COMPUTATION], &copies);
    let upload = ["dataset", "upload", &dataset, "--data", "t.csv", "--yes"];
    let told = services.command("ana", &upload);
    let words = stderr(&told);
    assert!(!told.status.success(), "{words}");
    assert!(words.contains("no longer has"), "{words}");
    assert!(
        fs::read(&ladder).unwrap() == before,
        "the key of the noise was replaced"
    );
}

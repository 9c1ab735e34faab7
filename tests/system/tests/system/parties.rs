//! Three holders of one dataset, each with its own account, machine and part of the table.
//!
//! The joint releases equal those of `fhaim local` for the whole table with the sum of their noise, integer for
//! integer. For this, the holders have consecutive seeds. The releases stay the same when a holder's upload is killed
//! and resumed, another holder sends malformed bytes, and every service is killed while the job runs.

use std::{fs, path::PathBuf, process::Command, thread::sleep, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use fhaim_he::Layout;
use fhaim_kit::{Backing, NAMES, Services, files::read_json, until};
use fhaim_protocol::terms::Terms;
use serde_json::Value;

use super::{PROGRAM, deletion::files, restores::CRYPTO, tenants::tokens, views};

pub const HOLDERS: [&str; 3] = ["ana", "ben", "eva"];

/// Seed of the first holder.
const SEED: u64 = 5;

/// Division of the table between the holders, and the kind of upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Division {
    Records,
    Counts,
    Columns,
}

impl Division {
    /// Returns the flags of `fhaim local` and of `dataset create`.
    fn flags(self) -> [&'static [&'static str]; 2] {
        match self {
            Self::Records => [&["--by", "records", "--honest", "2"], &["--honest", "2"]],
            Self::Counts => [&["--contribution", "counts"]; 2],
            Self::Columns => [&["--by", "columns"], &[]],
        }
    }

    /// Returns a holder's part of `t.csv`, with the division of `fhaim local`: 100 records or one column.
    fn part(self, whole: &str, holder: usize) -> String {
        let mut lines = whole.lines();
        let header = lines.next().unwrap();
        if self == Self::Columns {
            let column = |line: &str| line.split(',').nth(holder).unwrap().to_owned() + "\n";
            return whole.lines().map(column).collect();
        }
        let rows: Vec<&str> = lines.skip(100 * holder).take(100).collect();
        format!("{header}\n{}\n", rows.join("\n"))
    }

    /// Returns the layout of each holder's upload, which depends on its number of records.
    fn layout(self) -> Option<Layout> {
        let records = match self {
            Self::Records => 100,
            Self::Columns => 300,
            Self::Counts => return None,
        };
        Some(Layout::for_records(records).unwrap())
    }

    /// Returns the flags for a holder's card, with the record bound that `fhaim local` uses.
    fn card(self, holder: usize) -> Vec<&'static str> {
        match self {
            Self::Columns => vec![
                "--record-bound",
                "512",
                "--columns",
                ["x", "c", "y"][holder],
            ],
            _ => vec!["--record-bound", "128"],
        }
    }
}

const SETTINGS: [Division; 3] = [Division::Records, Division::Counts, Division::Columns];

/// Makes accounts with cards, a file with each holder's part, and an unsigned dataset of all holders.
pub fn dataset(services: &Services, setting: Division, more: &[&str]) -> String {
    let path = |name: String| services.folder.path().join(name);
    let whole = fs::read_to_string(path("t.csv".to_owned())).unwrap();
    let mut create = vec![
        "dataset",
        "create",
        "--schema",
        "t.schema.json",
        "--epsilon",
        "1",
    ];
    for (number, holder) in HOLDERS.into_iter().enumerate() {
        services.sign_up(holder);
        let card = services.run(
            holder,
            &[&["dataset", "join"], &setting.card(number)[..]].concat(),
        );
        fs::write(path(format!("{holder}.json")), card).unwrap();
        fs::write(path(format!("{holder}.csv")), setting.part(&whole, number)).unwrap();
    }
    let cards = HOLDERS.map(|holder| format!("{holder}.json"));
    for card in &cards {
        create.extend(["--holder", card]);
    }
    create.extend(setting.flags()[1].iter().chain(more));
    services.run(HOLDERS[0], &create).trim().to_owned()
}

fn upload(services: &Services, dataset: &str, number: usize) {
    let (data, seed) = (format!("{}.csv", HOLDERS[number]), SEED + number as u64);
    let seed = seed.to_string();
    let upload = [
        "dataset", "upload", dataset, "--data", &data, "--seed", &seed, "--yes",
    ];
    services.run(HOLDERS[number], &upload);
}

fn values(releases: &Value) -> Vec<Value> {
    let releases = releases.as_array().unwrap().iter();
    releases.map(|release| release["values"].clone()).collect()
}

/// Runs a command that must fail, and returns its error.
fn refused(services: &Services, user: &str, arguments: &[&str]) -> String {
    let output = services.command(user, arguments);
    assert!(!output.status.success(), "{arguments:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Checks that the dataset shows the missing holders, that no run begins before all holders have signed and uploaded,
/// and that then every holder can run a job, read the ledger and download.
fn whole(services: &Services, setting: Division) -> String {
    let id = dataset(services, setting, &[]);
    let run = ["job", "run", &id, "--yes", "--watch"];
    let told = refused(services, "eva", &run);
    assert!(
        told.contains("ben@example.org") && told.contains("not signed"),
        "{told}"
    );
    for holder in HOLDERS {
        services.run(holder, &["dataset", "sign", &id, "--yes"]);
    }
    let shown = services.run("ben", &["dataset", "show", &id]);
    assert_eq!(
        shown.matches(": signed, not uploaded").count(),
        3,
        "{shown}"
    );
    upload(services, &id, 0);
    // Kill Ben's upload, and resume it.
    let mut timeout = Command::new("timeout");
    timeout.args(["--signal", "KILL", "1"]);
    let broken = [
        "dataset", "upload", &id, "--data", "ben.csv", "--seed", "6", "--yes",
    ];
    services
        .command_under(timeout, "ben", &broken)
        .output()
        .unwrap();
    upload(services, &id, 1);
    malformed_bytes_are_refused(services, setting, &id);
    let told = refused(services, "ana", &run);
    assert!(told.contains("not ready"), "{told}");
    upload(services, &id, 2);
    let job = services.json("ben", &["job", "run", &id, "--yes"]);
    let job = job["id"].as_str().unwrap().to_owned();
    kill_each_service(services);
    services.run("ben", &["job", "watch", &job]);
    check_releases(services, setting, &id, &job);
    id
}

/// Kills each service in turn while a job runs.
fn kill_each_service(services: &Services) {
    for service in 0..NAMES.len() {
        sleep(Duration::from_millis(300));
        services.kill(service);
        services.launch(service);
        services.wait_until_ready();
    }
}

/// Checks that every holder sees the releases and the ledger of the pooled table.
fn check_releases(services: &Services, setting: Division, id: &str, job: &str) {
    let data = [
        "--data",
        "t.csv",
        "--schema",
        "t.schema.json",
        "--epsilon",
        "1",
    ];
    let seed = SEED.to_string();
    let files = ["--out", "own.csv", "--seed", &seed, "--yes", "--force"];
    let together = [
        &["local", "--holders", "3"],
        &data[..],
        &files,
        setting.flags()[0],
    ];
    services.run("ana", &together.concat());
    let own = read_json(&services.folder.path().join("own.releases.json"));
    for holder in HOLDERS {
        let served: Value = services.json(holder, &["job", "releases", job]);
        assert_eq!(values(&served), values(&own["releases"]), "{holder}");
        let ledger = services.json(holder, &["ledger", id]);
        let entries = ledger["runs"][0]["releases"].as_array().unwrap();
        assert_eq!(ledger["runs"].as_array().unwrap().len(), 1);
        assert_eq!(entries.len(), served.as_array().unwrap().len());
        services.run(holder, &["download", job, "--out", "made.csv", "--force"]);
        let made = fs::read_to_string(services.folder.path().join("made.csv")).unwrap();
        assert_eq!(made.lines().next(), Some("x,c,y"));
    }
    services.run(HOLDERS[0], &["download", job, "--card", "made.card.json"]);
    let card = read_json(&services.folder.path().join("made.card.json"));
    assert_eq!(card["fhaim:parties"]["fhaim:holders"], HOLDERS.len());
    assert_eq!(
        card["fhaim:privacy"]["fhaim:spentOnTheseRecords"]["fhaim:uses"],
        1
    );
    assert!(card["variableMeasured"][0]["fhaim:noise"].is_number());
}

/// Checks that the services refuse bytes that are not a ciphertext, an object for another holder's part, and an invalid
/// signature.
fn malformed_bytes_are_refused(services: &Services, setting: Division, id: &str) {
    let eva = tokens(services, "eva");
    let http = fhaim_platform::peer::http_client().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let bytes = vec![7; 1000];
    let digest = fhaim_api::Digest::of(&bytes);
    let digest = format!("sha-256=:{}:", STANDARD.encode(digest.0));
    let shown = services.json("eva", &["dataset", "show", id]);
    let mut part = serde_json::json!({ "terms": shown["terms"] });
    if let Some(layout) = setting.layout() {
        let (chunks, stride) = (layout.chunks(), layout.stride());
        part["layout"] = serde_json::json!({ "chunks": chunks, "stride": stride });
    }
    let address = format!("{}/v1/datasets/{id}", services.address(1));
    let call = http.put(address).bearer_auth(&eva[1]).json(&part);
    let status = runtime.block_on(async { call.send().await.unwrap().status() });
    assert_eq!(status.as_u16(), 201);
    let put = |contribution: u32| {
        let object = format!("contributions/{contribution}/objects/noise%2F0%2F0%2F0");
        let address = format!("{}/v1/datasets/{id}/{object}", services.address(1));
        let call = http
            .put(address)
            .bearer_auth(&eva[1])
            .header("content-digest", &digest);
        let call = call.header("content-type", "application/octet-stream");
        runtime.block_on(async { call.body(bytes.clone()).send().await.unwrap().status() })
    };
    assert_eq!(put(2).as_u16(), 422);
    assert_eq!(put(0).as_u16(), 404);
    let address = format!("{}/v1/datasets/{id}/signature", services.address(2));
    let signature = serde_json::json!({ "signature": "0".repeat(128) });
    let call = http.put(address).bearer_auth(&eva[2]).json(&signature);
    let status = runtime.block_on(async { call.send().await.unwrap().status() });
    assert_eq!(status.as_u16(), 422);
}

#[test]
#[ignore = "slow"]
fn three_holders_of_records_release_the_same_as_the_pooled_table() {
    let services = Services::start(PROGRAM, &Backing::Local);
    let id = whole(&services, Division::Records);
    // Only the holder that created a dataset can delete it, and that deletes it for all holders.
    let told = refused(&services, "ben", &["dataset", "delete", &id, "--yes"]);
    assert!(told.contains("withdraw"), "{told}");
    services.run("ana", &["dataset", "delete", &id, "--yes"]);
    refused(&services, "ben", &["dataset", "show", &id]);
}

#[test]
#[ignore = "slow"]
fn three_holders_of_counts_release_the_same_as_the_pooled_table() {
    whole(&Services::start(PROGRAM, &Backing::Local), Division::Counts);
}

#[test]
#[ignore = "slow"]
fn three_holders_of_columns_release_the_same_as_the_pooled_table() {
    whole(
        &Services::start(PROGRAM, &Backing::Local),
        Division::Columns,
    );
}

#[test]
#[ignore = "needs FHAIM_TEST_POSTGRES and FHAIM_TEST_S3"]
fn three_holders_release_the_same_on_postgres_and_s3() {
    for setting in SETTINGS {
        whole(&Services::start(PROGRAM, &Backing::remote()), setting);
    }
}

/// Makes a dataset that all holders have signed and uploaded.
fn ready(services: &Services, setting: Division, more: &[&str]) -> String {
    let id = dataset(services, setting, more);
    for (number, holder) in HOLDERS.into_iter().enumerate() {
        services.run(holder, &["dataset", "sign", &id, "--yes"]);
        upload(services, &id, number);
    }
    id
}

/// Returns the number of runs in the key service's ledger.
fn runs(services: &Services, id: &str) -> usize {
    let ledger = services.json("ana", &["ledger", id]);
    ledger["runs"].as_array().unwrap().len()
}

/// A holder that withdraws before the first run takes its part back, and no run can begin. Another account has no
/// access to the dataset.
fn one_withdraws_before(services: &Services, setting: Division) {
    let id = ready(services, setting, &[]);
    services.sign_up("bob");
    refused(services, "bob", &["dataset", "show", &id]);
    refused(services, "bob", &["dataset", "withdraw", &id, "--yes"]);
    services.run("ben", &["dataset", "withdraw", &id, "--yes"]);
    let shown = services.run("ana", &["dataset", "show", &id]);
    assert!(shown.contains(": withdrew, not uploaded"), "{shown}");
    let told = refused(services, "ana", &["job", "run", &id, "--yes"]);
    assert!(told.contains("withdrew"), "{told}");
    let upload = ["dataset", "upload", &id, "--data", "t.csv", "--yes"];
    let told = refused(services, "ben", &upload);
    assert!(told.contains("has withdrawn"), "{told}");
    // The key service begins no run either, for a program that does not check first.
    start_without_looking(services, &id);
    assert_eq!(runs(services, &id), 0);
}

/// A holder that withdraws after a run stops all later runs. Its uploaded part remains, because a run has used it.
fn one_withdraws_between_runs(services: &Services, setting: Division) {
    let id = ready(services, setting, &["--runs", "3"]);
    services.run("ana", &["job", "run", &id, "--yes", "--watch"]);
    services.kill(CRYPTO);
    let before = services.copy(CRYPTO);
    services.launch(CRYPTO);
    services.wait_until_ready();
    services.run("eva", &["dataset", "withdraw", &id, "--yes"]);
    let shown = services.run("ben", &["dataset", "show", &id]);
    assert!(shown.contains(": withdrew, "), "{shown}");
    assert!(!shown.contains(": withdrew, not uploaded"), "{shown}");
    let told = refused(services, "ben", &["job", "run", &id, "--yes"]);
    assert!(told.contains("withdrew"), "{told}");
    start_without_looking(services, &id);
    assert_eq!(runs(services, &id), 1);
    // The crypto service is set back to before the withdrawal, which only the computation service knows of.
    services.kill(CRYPTO);
    services.set_back(CRYPTO, &before);
    services.launch(CRYPTO);
    services.wait_until_ready();
    for holder in HOLDERS {
        let _ = fs::remove_dir_all(services.folder.path().join(holder).join("receipts"));
    }
    let told = start_without_looking(services, &id);
    assert!(told.contains("set back"), "{told}");
}

/// Starts a job without the command's checks. The services must not release anything for it. Returns the error of the
/// job.
pub fn start_without_looking(services: &Services, id: &str) -> String {
    let ana = tokens(services, "ana");
    let job = uuid::Uuid::now_v7();
    let address = format!("{}/v1/datasets/{id}/jobs/{job}", services.address(0));
    let http = fhaim_platform::peer::http_client().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let call = http
        .put(address)
        .bearer_auth(&ana[0])
        .json(&serde_json::json!({}));
    runtime.block_on(async { call.send().await.unwrap() });
    let told = refused(services, "ana", &["job", "watch", &job.to_string()]);
    assert!(!told.is_empty());
    told
}

/// Returns the files of a holder's part.
fn part(services: &Services, id: &str, number: usize) -> Vec<PathBuf> {
    let uploads = services.home(1).join("blobs/uploads").join(id);
    let folders = fs::read_dir(uploads)
        .unwrap()
        .map(|folder| folder.unwrap().path());
    folders
        .flat_map(|folder| files(&folder.join(number.to_string())))
        .collect()
}

/// The computation service is killed at several points of a withdrawal. No file of the part remains, and the command
/// succeeds.
#[test]
fn withdrawal_interrupted_by_a_kill_leaves_no_part() {
    let services = Services::start(PROGRAM, &Backing::Local);
    let id = dataset(&services, Division::Records, &[]);
    for number in 0..3 {
        upload(&services, &id, number);
    }
    for (number, wait) in [(0, 120), (1, 60), (2, 200)] {
        assert!(!part(&services, &id, number).is_empty());
        std::thread::scope(|scope| {
            let (services, withdraw) = (&services, ["dataset", "withdraw", &id, "--yes"]);
            let command = scope.spawn(move || services.command(HOLDERS[number], &withdraw));
            sleep(Duration::from_millis(wait));
            services.kill(1);
            services.launch(1);
            services.wait_until_ready();
            let done = command.join().unwrap();
            let told = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success(), "{told}");
        });
        until(|| match part(&services, &id, number).first() {
            None => Ok(()),
            Some(path) => Err(format!("after {wait} ms: {} still exists", path.display())),
        });
    }
}

/// Before the dataset has keys, the command says that a withdrawal is not recorded.
#[test]
fn withdrawal_before_keys_says_that_nothing_is_recorded() {
    let services = Services::start(PROGRAM, &Backing::Local);
    let cards = dataset(&services, Division::Records, &[]);
    let shown = services.json("ana", &["dataset", "show", &cards]);
    // The state after a program that was interrupted when it had created the dataset.
    let (ana, id) = (tokens(&services, "ana"), uuid::Uuid::now_v7());
    let mut terms: Terms = serde_json::from_value(shown["terms"].clone()).unwrap();
    terms = terms.choices();
    let body = serde_json::json!({ "name": "t", "terms": fhaim_api::dataset::WireTerms(terms) });
    let address = format!("{}/v1/datasets/{id}", services.address(0));
    let http = fhaim_platform::peer::http_client().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let call = http.put(address).bearer_auth(&ana[0]).json(&body);
    let status = runtime.block_on(async { call.send().await.unwrap().status() });
    assert_eq!(status.as_u16(), 201);
    let done = services.command("ben", &["dataset", "withdraw", &id.to_string(), "--yes"]);
    let told = String::from_utf8_lossy(&done.stderr);
    assert!(
        done.status.success() && told.contains("was not recorded"),
        "{told}"
    );
    let standings = String::from_utf8_lossy(&done.stdout);
    assert_eq!(standings.matches("not signed").count(), 3, "{standings}");
}

/// A job that was started before all holders had signed began no run, so a holder that withdraws takes its part back.
#[test]
#[ignore = "slow"]
fn holder_withdraws_its_part_after_a_job_without_run() {
    let services = Services::start(PROGRAM, &Backing::Local);
    let id = dataset(&services, Division::Records, &[]);
    for (number, holder) in HOLDERS.into_iter().enumerate() {
        upload(&services, &id, number);
        if holder != "eva" {
            services.run(holder, &["dataset", "sign", &id, "--yes"]);
        }
    }
    start_without_looking(&services, &id);
    assert!(!part(&services, &id, 1).is_empty());
    services.run("ben", &["dataset", "withdraw", &id, "--yes"]);
    assert!(part(&services, &id, 1).is_empty(), "the part still exists");
    let shown = services.run("ana", &["dataset", "show", &id]);
    assert!(shown.contains(": withdrew, not uploaded"), "{shown}");
    let told = refused(&services, "ana", &["job", "run", &id, "--yes"]);
    assert!(told.contains("withdrew"), "{told}");
    // The key service begins no run either, for a program that does not check first.
    start_without_looking(&services, &id);
    let ledger = services.json("ana", &["ledger", &id]);
    assert_eq!(ledger["runs"].as_array().unwrap().len(), 0);
}

#[test]
#[ignore = "slow"]
fn withdrawal_of_one_holder_stops_all_later_runs() {
    for setting in SETTINGS {
        one_withdraws_before(&Services::start(PROGRAM, &Backing::Local), setting);
        one_withdraws_between_runs(&Services::start(PROGRAM, &Backing::Local), setting);
    }
}

#[test]
#[ignore = "needs FHAIM_TEST_POSTGRES and FHAIM_TEST_S3"]
fn withdrawal_of_one_holder_stops_all_later_runs_on_postgres_and_s3() {
    let backing = Backing::remote();
    for setting in SETTINGS {
        one_withdraws_before(&Services::start(PROGRAM, &backing), setting);
        one_withdraws_between_runs(&Services::start(PROGRAM, &backing), setting);
    }
}

/// Checks that all messages are calls of the design, with no other contents.
fn every_message_is_known(setting: Division) {
    let services = Services::start_captured(PROGRAM, &Backing::Local);
    let dataset = ready(&services, setting, &[]);
    let job = services.run("eva", &["job", "run", &dataset, "--yes", "--watch"]);
    let job = views::Job {
        messages: services.messages(),
        job: job.lines().next().unwrap().to_owned(),
        services,
        dataset,
    };
    views::check(&job, &[setting.layout(); 3]);
}

/// Key services share the key, so the first one must not learn the others' upload key seeds.
#[test]
#[ignore = "slow"]
fn upload_keys_of_a_split_key_are_fetched_encrypted() {
    let setting = fhaim_kit::ServiceOptions {
        keys: 2,
        ..fhaim_kit::ServiceOptions::new(PROGRAM)
    };
    let services = Services::start_captured_in(&Backing::Local, setting);
    let dataset = ready(&services, Division::Counts, &["--keys", "2"]);
    let job = services.run("eva", &["job", "run", &dataset, "--yes", "--watch"]);
    let job = views::Job {
        messages: services.messages(),
        job: job.lines().next().unwrap().to_owned(),
        services,
        dataset,
    };
    check_releases(&job.services, Division::Counts, &job.dataset, &job.job);
    views::upload_keys_are_fetched_encrypted(&job);
}

#[test]
#[ignore = "slow"]
fn messages_of_holders_of_records_are_part_of_the_design() {
    every_message_is_known(Division::Records);
}

#[test]
#[ignore = "slow"]
fn messages_of_holders_of_counts_are_part_of_the_design() {
    every_message_is_known(Division::Counts);
}

#[test]
#[ignore = "slow"]
fn messages_of_holders_of_columns_are_part_of_the_design() {
    every_message_is_known(Division::Columns);
}

//! Three holders of one dataset, each with its own account, machine and part of the table.
//!
//! What they release together is what `fhaim local` releases of the whole table with the sum of
//! their noise, integer for integer: each holder's seed is the next after the one's before. So it is
//! where a holder is killed on its way and comes back, another sends malformed bytes, and every service
//! is killed while the job runs.

use std::{fs, path::PathBuf, process::Command, thread::sleep, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use fhaim_he::Layout;
use fhaim_kit::{Backing, NAMES, Services, files::read_json, until};
use fhaim_protocol::terms::Terms;
use serde_json::Value;

use super::{PROGRAM, deletion::files, tenants::tokens, views};

pub const HOLDERS: [&str; 3] = ["ana", "ben", "eva"];

/// The seed of the first holder.
const SEED: u64 = 5;

/// How the table is divided, and what is uploaded of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Division {
    Records,
    Counts,
    Columns,
}

impl Division {
    /// The flags of `fhaim local`, and of `dataset create`.
    fn flags(self) -> [&'static [&'static str]; 2] {
        match self {
            Self::Records => [&["--by", "records", "--honest", "2"], &["--honest", "2"]],
            Self::Counts => [&["--contribution", "counts"]; 2],
            Self::Columns => [&["--by", "columns"], &[]],
        }
    }

    /// The part of each holder of `t.csv`, as `fhaim local` divides it: 100 records, or a column.
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

    /// What each holder's upload tells of its number of records.
    fn layout(self) -> Option<Layout> {
        let records = match self {
            Self::Records => 100,
            Self::Columns => 300,
            Self::Counts => return None,
        };
        Some(Layout::for_records(records).unwrap())
    }

    /// The flags of a holder's card: a record bound as `fhaim local` has it.
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

/// Accounts with cards, a dataset of theirs that nobody has signed, and each holder's part in a file.
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
        "dataset", "upload", dataset, "--data", &data, "--seed", &seed,
    ];
    services.run(HOLDERS[number], &upload);
}

fn values(releases: &Value) -> Vec<Value> {
    let releases = releases.as_array().unwrap().iter();
    releases.map(|release| release["values"].clone()).collect()
}

/// What a command that must fail says.
fn refused(services: &Services, user: &str, arguments: &[&str]) -> String {
    let output = services.command(user, arguments);
    assert!(!output.status.success(), "{arguments:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The dataset shows who is missing, no run begins before all have signed and uploaded, then any holder
/// runs, reads the ledger and downloads.
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
    // One is killed on its way, and comes back.
    let mut timeout = Command::new("timeout");
    timeout.args(["--signal", "KILL", "1"]);
    let broken = ["dataset", "upload", &id, "--data", "ben.csv", "--seed", "6"];
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

/// kill -9 of each service in turn, while a job is on its way.
fn kill_each_service(services: &Services) {
    for service in 0..NAMES.len() {
        sleep(Duration::from_millis(300));
        services.kill(service);
        services.launch(service);
        services.wait_until_ready();
    }
}

/// Every holder sees the same releases and the same ledger: those of the pooled table.
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
    let files = ["--out", "own.csv", "--ledger", "own.json", "--seed", &seed];
    let together = [
        &["local", "--holders", "3"],
        &data[..],
        &files,
        setting.flags()[0],
    ];
    services.run("ana", &together.concat());
    let own = read_json(&services.folder.path().join("own.json"));
    for holder in HOLDERS {
        let served: Value = services.json(holder, &["job", "releases", job]);
        assert_eq!(values(&served), values(&own["releases"]), "{holder}");
        let ledger = services.json(holder, &["ledger", id]);
        let entries = ledger["runs"][0]["entries"].as_array().unwrap();
        assert_eq!(ledger["runs"].as_array().unwrap().len(), 1);
        assert_eq!(entries.len(), served.as_array().unwrap().len());
        services.run(holder, &["download", job, "--out", "made.csv"]);
        let made = fs::read_to_string(services.folder.path().join("made.csv")).unwrap();
        assert_eq!(made.lines().next(), Some("x,c,y"));
    }
}

/// A holder sends bytes that are no ciphertext, a part that is another's, and a signature that is not
/// its own.
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
fn three_holders_of_records() {
    let services = Services::start(PROGRAM, &Backing::Local);
    let id = whole(&services, Division::Records);
    // Only who made a dataset deletes it, and then it is gone for all.
    let told = refused(&services, "ben", &["dataset", "delete", &id, "--yes"]);
    assert!(told.contains("withdraw"), "{told}");
    services.run("ana", &["dataset", "delete", &id, "--yes"]);
    refused(&services, "ben", &["dataset", "show", &id]);
}

#[test]
fn three_holders_of_counts() {
    whole(&Services::start(PROGRAM, &Backing::Local), Division::Counts);
}

#[test]
fn three_holders_of_columns() {
    whole(
        &Services::start(PROGRAM, &Backing::Local),
        Division::Columns,
    );
}

#[test]
#[ignore = "needs FHAIM_TEST_POSTGRES and FHAIM_TEST_S3"]
fn three_holders_on_postgres_and_s3() {
    for setting in SETTINGS {
        whole(&Services::start(PROGRAM, &Backing::remote()), setting);
    }
}

/// A dataset that all have signed and uploaded.
fn ready(services: &Services, setting: Division, more: &[&str]) -> String {
    let id = dataset(services, setting, more);
    for (number, holder) in HOLDERS.into_iter().enumerate() {
        services.run(holder, &["dataset", "sign", &id, "--yes"]);
        upload(services, &id, number);
    }
    id
}

/// Runs that began, as the key service says.
fn runs(services: &Services, id: &str) -> usize {
    let ledger = services.json("ana", &["ledger", id]);
    ledger["runs"].as_array().unwrap().len()
}

/// A holder that withdraws before the first run takes its part back, and no run begins any more; one
/// of whom the dataset knows nothing sees nothing.
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
    // Nor does the key service begin one for a program that does not look first.
    start_without_looking(services, &id);
    assert_eq!(runs(services, &id), 0);
}

/// One that withdraws after a run stops all that would follow; what was uploaded has been computed on,
/// and stays.
fn one_withdraws_between_runs(services: &Services, setting: Division) {
    let id = ready(services, setting, &["--runs", "2"]);
    services.run("ana", &["job", "run", &id, "--yes", "--watch"]);
    services.run("eva", &["dataset", "withdraw", &id, "--yes"]);
    let shown = services.run("ben", &["dataset", "show", &id]);
    assert!(shown.contains(": withdrew, "), "{shown}");
    assert!(!shown.contains(": withdrew, not uploaded"), "{shown}");
    let told = refused(services, "ben", &["job", "run", &id, "--yes"]);
    assert!(told.contains("withdrew"), "{told}");
    start_without_looking(services, &id);
    assert_eq!(runs(services, &id), 1);
}

/// Starts a job that no service may let release anything.
fn start_without_looking(services: &Services, id: &str) {
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
}

/// Files of a holder's part.
fn part(services: &Services, id: &str, number: usize) -> Vec<PathBuf> {
    let uploads = services.home(1).join("blobs/uploads").join(id);
    let folders = fs::read_dir(uploads)
        .unwrap()
        .map(|folder| folder.unwrap().path());
    folders
        .flat_map(|folder| files(&folder.join(number.to_string())))
        .collect()
}

/// Killed at several points, a withdrawal leaves nothing of the part, and the command that was on its
/// way ends well.
#[test]
fn a_withdrawal_that_is_killed_leaves_nothing() {
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
            Some(path) => Err(format!("after {wait} ms: {} is there", path.display())),
        });
    }
}

/// Whoever withdraws before there are keys is told that this is recorded nowhere.
#[test]
fn a_withdrawal_before_there_are_keys_says_so() {
    let services = Services::start(PROGRAM, &Backing::Local);
    let cards = dataset(&services, Division::Records, &[]);
    let shown = services.json("ana", &["dataset", "show", &cards]);
    // As a program leaves it that breaks off after it has made the dataset.
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
        done.status.success() && told.contains("nothing is recorded"),
        "{told}"
    );
    let standings = String::from_utf8_lossy(&done.stdout);
    assert_eq!(standings.matches("not signed").count(), 3, "{standings}");
}

/// A job that was started before all had signed began no run: whoever withdraws takes its part back.
#[test]
fn a_job_that_cannot_begin_keeps_no_part() {
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
    assert!(
        part(&services, &id, 1).is_empty(),
        "the part is still there"
    );
    let shown = services.run("ana", &["dataset", "show", &id]);
    assert!(shown.contains(": withdrew, not uploaded"), "{shown}");
    let told = refused(&services, "ana", &["job", "run", &id, "--yes"]);
    assert!(told.contains("withdrew"), "{told}");
    // Nor does the key service begin one for a program that does not look first.
    start_without_looking(&services, &id);
    let ledger = services.json("ana", &["ledger", &id]);
    assert_eq!(ledger["runs"].as_array().unwrap().len(), 0);
}

#[test]
#[ignore = "slow"]
fn one_withdraws() {
    for setting in SETTINGS {
        one_withdraws_before(&Services::start(PROGRAM, &Backing::Local), setting);
        one_withdraws_between_runs(&Services::start(PROGRAM, &Backing::Local), setting);
    }
}

#[test]
#[ignore = "needs FHAIM_TEST_POSTGRES and FHAIM_TEST_S3"]
fn one_withdraws_on_postgres_and_s3() {
    let backing = Backing::remote();
    for setting in SETTINGS {
        one_withdraws_before(&Services::start(PROGRAM, &backing), setting);
        one_withdraws_between_runs(&Services::start(PROGRAM, &backing), setting);
    }
}

/// Everything that passes is a call that the design knows, and carries no more than that.
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

/// With a key in shares, which the first key service cannot put together.
#[test]
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
fn every_message_of_holders_of_records_is_known() {
    every_message_is_known(Division::Records);
}

#[test]
#[ignore = "slow"]
fn every_message_of_holders_of_counts_is_known() {
    every_message_is_known(Division::Counts);
}

#[test]
#[ignore = "slow"]
fn every_message_of_holders_of_columns_is_known() {
    every_message_is_known(Division::Columns);
}

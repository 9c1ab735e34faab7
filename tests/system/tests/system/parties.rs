//! Three holders of one dataset, each with its own account, machine and part of the table.
//!
//! What they release together is what `fhaim local` releases of the whole table with the sum of
//! their noise, integer for integer: each holder's seed is the next after the one's before.

use std::{collections::BTreeSet, fs, process::Command};

use base64::{Engine, engine::general_purpose::STANDARD};
use fhaim_kit::{Backing, HOLDER, Services, files::read_json};
use fhaim_protocol::terms::Terms;
use serde_json::Value;

use super::{PROGRAM, tenants::tokens, views::is_known};

const HOLDERS: [&str; 3] = ["ana", "ben", "eva"];

/// The seed of the first holder.
const SEED: u64 = 5;

/// How the table is divided, and what is uploaded of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Setting {
    Records,
    Counts,
    Columns,
}

impl Setting {
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

    /// What the last holder's upload tells of its number of records.
    fn stride(self) -> Option<usize> {
        match self {
            Self::Records => Some(128),
            Self::Columns => Some(512),
            Self::Counts => None,
        }
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

/// Accounts with cards, a dataset of theirs that nobody has signed, and each holder's part in a file.
fn dataset(services: &Services, setting: Setting) -> String {
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
    create.extend(setting.flags()[1]);
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
fn whole(services: &Services, setting: Setting) -> String {
    let id = dataset(services, setting);
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
    let job = services.run("ben", &run);
    let job = job.lines().next().unwrap().to_owned();
    check_releases(services, setting, &id, &job);
    id
}

/// Every holder sees the same releases and the same ledger: those of the pooled table.
fn check_releases(services: &Services, setting: Setting, id: &str, job: &str) {
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
        assert_eq!(entries.len(), served.as_array().unwrap().len());
        services.run(holder, &["download", job, "--out", "made.csv"]);
        let made = fs::read_to_string(services.folder.path().join("made.csv")).unwrap();
        assert_eq!(made.lines().next(), Some("x,c,y"));
    }
}

/// A holder sends bytes that are no ciphertext, a part that is another's, and a signature that is not
/// its own.
fn malformed_bytes_are_refused(services: &Services, setting: Setting, id: &str) {
    let eva = tokens(services, "eva");
    let http = fhaim_platform::peer::http_client().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let bytes = vec![7; 1000];
    let digest = fhaim_api::Digest::of(&bytes);
    let digest = format!("sha-256=:{}:", STANDARD.encode(digest.0));
    let shown = services.json("eva", &["dataset", "show", id]);
    let mut part = serde_json::json!({ "terms": shown["terms"] });
    if let Some(stride) = setting.stride() {
        part["layout"] = serde_json::json!({ "chunks": 1, "stride": stride });
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
    let id = whole(&services, Setting::Records);
    // Only who made a dataset deletes it, and then it is gone for all.
    let told = refused(&services, "ben", &["dataset", "delete", &id, "--yes"]);
    assert!(told.contains("withdraw"), "{told}");
    services.run("ana", &["dataset", "delete", &id, "--yes"]);
    refused(&services, "ben", &["dataset", "show", &id]);
}

#[test]
fn three_holders_of_counts() {
    whole(&Services::start(PROGRAM, &Backing::Local), Setting::Counts);
}

#[test]
fn three_holders_of_columns() {
    whole(&Services::start(PROGRAM, &Backing::Local), Setting::Columns);
}

#[test]
fn three_holders_on_postgres_and_s3() {
    if let Some(backing) = Backing::remote() {
        for setting in [Setting::Records, Setting::Counts, Setting::Columns] {
            whole(&Services::start(PROGRAM, &backing), setting);
        }
    }
}

/// A holder that withdraws before the first run takes its part back, and no run begins any more; one
/// of whom the dataset knows nothing sees nothing.
#[test]
fn one_withdraws() {
    let services = Services::start(PROGRAM, &Backing::Local);
    let id = dataset(&services, Setting::Records);
    for (number, holder) in HOLDERS.into_iter().enumerate() {
        services.run(holder, &["dataset", "sign", &id, "--yes"]);
        upload(&services, &id, number);
    }
    services.sign_up("bob");
    refused(&services, "bob", &["dataset", "show", &id]);
    refused(&services, "bob", &["dataset", "withdraw", &id, "--yes"]);
    services.run("ben", &["dataset", "withdraw", &id, "--yes"]);
    let shown = services.run("ana", &["dataset", "show", &id]);
    assert!(shown.contains(": withdrew, 0 of "), "{shown}");
    let told = refused(&services, "ana", &["job", "run", &id, "--yes"]);
    assert!(told.contains("withdrew"), "{told}");
    // Nor does the key service begin one for a program that does not look first.
    let ana = tokens(&services, "ana");
    let job = uuid::Uuid::now_v7();
    let address = format!("{}/v1/datasets/{id}/jobs/{job}", services.address(0));
    let http = fhaim_platform::peer::http_client().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let call = http
        .put(address)
        .bearer_auth(&ana[0])
        .json(&serde_json::json!({}));
    runtime.block_on(async { call.send().await.unwrap() });
    let told = refused(&services, "ana", &["job", "watch", &job.to_string()]);
    assert!(!told.is_empty());
    let ledger = services.json("ana", &["ledger", &id]);
    assert_eq!(ledger["runs"].as_array().unwrap().len(), 0);
}

/// Everything that passes is a call that the design knows.
#[test]
fn every_message_of_three_holders_is_known() {
    let services = Services::start_captured(PROGRAM, &Backing::Local);
    let id = dataset(&services, Setting::Records);
    for (number, holder) in HOLDERS.into_iter().enumerate() {
        services.run(holder, &["dataset", "sign", &id, "--yes"]);
        upload(&services, &id, number);
    }
    services.run("eva", &["job", "run", &id, "--yes", "--watch"]);
    let shown = services.json("ana", &["dataset", "show", &id]);
    let terms: Terms = serde_json::from_value(shown["terms"].clone()).unwrap();
    let params = terms.plan().unwrap().parameters().unwrap();
    let messages = services.messages();
    assert!(messages.iter().any(|message| message.from == HOLDER));
    let strangers = messages
        .iter()
        .filter(|message| !is_known(message, &params));
    let strangers: BTreeSet<_> = strangers
        .map(|m| format!("{} to {}: {}", m.from, m.to, m.call))
        .collect();
    assert!(strangers.is_empty(), "{strangers:#?}");
}

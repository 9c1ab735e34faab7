//! Verification by holders: every released integer is compared with the table and its noise.

use std::fs;

use fhaim_kit::{Backing, Services, command::stderr};
use serde_json::Value;

use super::{
    PROGRAM,
    operators::on_database,
    parties::{self, Division, HOLDERS},
};

/// Creates and uploads a dataset as holders do, with a stored key of the noise, and runs one job.
fn released(services: &Services, more: &[&str]) -> String {
    let dataset = services.create("ana", more);
    services.run(
        "ana",
        &["dataset", "upload", &dataset, "--data", "t.csv", "--yes"],
    );
    services.run("ana", &["job", "run", &dataset, "--yes", "--watch"]);
    dataset
}

/// Runs a verification that must fail. Returns its exit code, output and errors.
fn refused(services: &Services, dataset: &str, data: &str) -> (i32, String, String) {
    let told = services.command("ana", &["verify", dataset, "--data", data]);
    let out = String::from_utf8_lossy(&told.stdout).into_owned();
    (told.status.code().unwrap(), out, stderr(&told))
}

/// Runs a statement on the crypto service's database.
fn edit(services: &Services, statement: &str) {
    assert!(on_database(services, 2, statement).0 > 0, "{statement}");
}

/// Covers all mechanisms with different statistics, both kinds of contribution, and several runs.
#[test]
#[ignore = "slow"]
fn verification_finds_all_releases_equal() {
    let services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    for more in [
        &[][..],
        &["--mechanism", "fhaim-l2"],
        &["--contribution", "counts"],
        &["--runs", "2"],
    ] {
        let dataset = released(&services, more);
        if more.contains(&"--runs") {
            services.run("ana", &["job", "run", &dataset, "--yes", "--watch"]);
        }
        let found = services.json("ana", &["verify", &dataset, "--data", "t.csv"]);
        let ledger = services.json("ana", &["ledger", &dataset]);
        let runs = ledger["runs"].as_array().unwrap().iter();
        let debits = runs.flat_map(|run| run["releases"].as_array().unwrap());
        let cells = |debit: &Value| debit["cells"].as_u64().unwrap();
        let (count, cells) = debits.fold((0, 0), |(n, sum), debit| (n + 1, sum + cells(debit)));
        assert_eq!(found["equal"], count, "{more:?}");
        assert_eq!(found["integers"], cells, "{more:?}");
        assert_eq!(found["findings"], Value::Array(Vec::new()), "{more:?}");
    }
}

#[test]
fn verification_names_a_changed_integer_and_refuses_another_table() {
    let services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    let dataset = released(&services, &[]);
    let text = services.run("ana", &["verify", &dataset, "--data", "t.csv"]);
    assert!(text.contains("integers compared"), "{text}");

    // One integer of one release, in the store of the key service.
    let stored = on_database(
        &services,
        2,
        "SELECT answers FROM chain WHERE kind = 'released' ORDER BY height LIMIT 1",
    );
    let before = stored.1[0].clone();
    let mut answers: Vec<Vec<i64>> = serde_json::from_str(&before).unwrap();
    let expected = answers[1][0];
    answers[1][0] += 1;
    let changed = serde_json::to_string(&answers).unwrap();
    let change = |from: &str, to: &str| {
        format!("UPDATE chain SET answers = '{to}' WHERE answers = '{from}'")
    };
    edit(&services, &change(&before, &changed));
    let (code, out, words) = refused(&services, &dataset, "t.csv");
    assert_eq!(code, 1, "{words}");
    let named = format!(
        "cell 0 was released as {}, but should be {expected}",
        expected + 1
    );
    assert!(out.contains("release 1 (") && out.contains(&named), "{out}");
    assert!(words.contains("1 of "), "{words}");
    // An additional integer, with all others unchanged.
    answers[1][0] -= 1;
    answers[1].push(0);
    let longer = serde_json::to_string(&answers).unwrap();
    edit(&services, &change(&changed, &longer));
    let (code, out, _) = refused(&services, &dataset, "t.csv");
    assert!(
        code == 1 && out.contains("cells released, but the statistic has"),
        "{out}"
    );
    edit(&services, &change(&longer, &before));
    services.run("ana", &["verify", &dataset, "--data", "t.csv"]);

    // Another table with the same noise would reveal the difference of the two tables.
    let folder = services.folder.path();
    let table = fs::read_to_string(folder.join("t.csv")).unwrap();
    let other: Vec<&str> = table.lines().rev().skip(1).collect();
    let other: Vec<&str> = other.into_iter().rev().collect();
    fs::write(folder.join("other.csv"), other.join("\n") + "\n").unwrap();
    let (code, out, words) = refused(&services, &dataset, "other.csv");
    assert!(code == 2 && out.is_empty(), "{out}");
    assert!(words.contains("not the table that was uploaded"), "{words}");

    // The key service omits the requests of the releases.
    edit(
        &services,
        "UPDATE chain SET requests = '[]' WHERE kind = 'released'",
    );
    let (code, out, _) = refused(&services, &dataset, "t.csv");
    assert!(
        code == 1 && out.contains("the shown request is not the one that was debited"),
        "{out}"
    );
}

/// Without the right key of the noise, the command says that the upload cannot be verified. A deleted dataset's key is
/// deleted too.
#[test]
#[ignore = "slow"]
fn verification_without_the_noise_key_is_refused_with_a_reason() {
    let services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    let seeded = services.dataset("ana", &[]);
    let (code, _, words) = refused(&services, &seeded, "t.csv");
    assert!(
        code == 2 && words.contains("has no key of the noise"),
        "{words}"
    );
    let dataset = released(&services, &[]);
    let key = services.folder.path().join(format!("ana/{dataset}.ladder"));
    // The keys of an upload that was not completed, and of one that the services do not have. With other noise, the
    // comparison would reveal a second noisy answer.
    let text = fs::read_to_string(&key).unwrap();
    let (before, manifest) = text.split_once("\"manifest\":\"").unwrap();
    let other = format!("{before}\"manifest\":\"{}\"}}", "0".repeat(64));
    assert_eq!(other.len(), text.len());
    let unended = before.trim_end_matches(',').to_owned() + "}";
    for kept in [other, unended] {
        fs::write(&key, kept).unwrap();
        let (code, _, words) = refused(&services, &dataset, "t.csv");
        assert!(
            code == 2 && words.contains("is not that of the upload"),
            "{words}"
        );
    }
    assert_eq!(manifest.len(), 64 + 2);
    let newer = text.replacen("\"version\":1", "\"version\":2", 1);
    fs::write(&key, newer).unwrap();
    let (code, _, words) = refused(&services, &dataset, "t.csv");
    assert!(
        code == 2 && words.contains("not a ladder key of version 1"),
        "{words}"
    );
    fs::write(&key, text).unwrap();
    services.run("ana", &["verify", &dataset, "--data", "t.csv"]);
    services.run("ana", &["dataset", "delete", &dataset, "--yes"]);
    assert!(!key.exists());
}

/// Makes a dataset of three holders who keep the keys of their noise, and runs one job.
pub fn shared(services: &Services, setting: Division, more: &[&str]) -> String {
    let dataset = parties::dataset(services, setting, more);
    for holder in HOLDERS {
        services.run(holder, &["dataset", "sign", &dataset, "--yes"]);
    }
    for holder in HOLDERS {
        let data = format!("{holder}.csv");
        let upload = ["dataset", "upload", &dataset, "--data", &data, "--yes"];
        services.run(holder, &upload);
    }
    services.run("ben", &["job", "run", &dataset, "--yes", "--watch"]);
    dataset
}

/// Checks that the sum of all holders' shares equals the releases, and that a single holder cannot verify them.
fn of_three(setting: Division) {
    let services = Services::start(PROGRAM, &Backing::Local);
    let dataset = shared(&services, setting, &[]);
    for holder in HOLDERS {
        let (data, share) = (format!("{holder}.csv"), format!("{holder}.share"));
        let verify = ["verify", &dataset, "--data", &data];
        services.run(holder, &[&verify[..], &["--share-out", &share]].concat());
        let alone = services.command(holder, &verify);
        assert_eq!(alone.status.code(), Some(2));
        assert!(stderr(&alone).contains("--share-out"), "{}", stderr(&alone));
        let other = ["verify", &dataset, "--data", "t.csv", "--share-out", "x"];
        assert_eq!(services.command(holder, &other).status.code(), Some(2));
    }
    let files = HOLDERS.map(|holder| format!("{holder}.share"));
    let shares = files.each_ref().map(|file| ["--share", file.as_str()]);
    let all = [&["verify", dataset.as_str()], shares.concat().as_slice()].concat();
    let found = services.json("eva", &all);
    assert!(found["equal"].as_u64().unwrap() > 3, "{found}");
    assert_eq!(found["findings"], Value::Array(Vec::new()));
    let two = services.command("eva", &all[..6]);
    assert_eq!(two.status.code(), Some(2));
    assert!(
        stderr(&two).contains("one share of each holder"),
        "{}",
        stderr(&two)
    );

    let first = "SELECT answers FROM chain WHERE kind = 'released' ORDER BY height LIMIT 1";
    let before = on_database(&services, 2, first).1[0].clone();
    let mut answers: Vec<Vec<i64>> = serde_json::from_str(&before).unwrap();
    answers[1][0] -= 1;
    let changed = serde_json::to_string(&answers).unwrap();
    let change = format!("UPDATE chain SET answers = '{changed}' WHERE answers = '{before}'");
    edit(&services, &change);
    let told = services.command("eva", &all);
    assert_eq!(told.status.code(), Some(1));
    let out = String::from_utf8_lossy(&told.stdout);
    assert!(
        out.contains("release 1 (") && out.contains("cell 0 was released as"),
        "{out}"
    );
}

#[test]
#[ignore = "slow"]
fn three_holders_of_records_verify_with_the_sum_of_their_shares() {
    of_three(Division::Records);
}

#[test]
#[ignore = "slow"]
fn three_holders_of_counts_verify_with_the_sum_of_their_shares() {
    of_three(Division::Counts);
}

#[test]
#[ignore = "slow"]
fn verification_by_holders_of_columns_is_refused_with_a_reason() {
    let services = Services::start(PROGRAM, &Backing::Local);
    let dataset = shared(&services, Division::Columns, &[]);
    for more in [&[][..], &["--share-out", "ana.share"]] {
        let verify = ["verify", &dataset, "--data", "ana.csv"];
        let told = services.command("ana", &[&verify[..], more].concat());
        assert_eq!(told.status.code(), Some(2));
        assert!(
            stderr(&told).contains("products over several tables"),
            "{}",
            stderr(&told)
        );
    }
}

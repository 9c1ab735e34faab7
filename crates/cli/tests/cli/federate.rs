//! A table divided among parties, and a synthetic one made from the parts.

use std::fs;

use crate::{SCHEMA, fhaim, folder, names, stderr, table};

const SPLIT: [&str; 10] = [
    "federate",
    "split",
    "--data",
    "t.csv",
    "--schema",
    "t.schema.json",
    "--out",
    "parts",
    "--rule",
    "ns",
];

const RUN: [&str; 8] = [
    "federate",
    "run",
    "--parts",
    "parts",
    "--schema",
    "t.schema.json",
    "--out",
    "s.csv",
];

#[test]
fn parts_hold_every_record_and_a_run_keeps_a_ledger_for_each() {
    let csv = table(240);
    let folder = folder(&csv, SCHEMA);
    let split = fhaim(folder.path(), &[&SPLIT[..], &["--parties", "6"]].concat());
    assert!(split.status.success(), "{}", stderr(&split));
    let said = String::from_utf8(split.stdout).unwrap();
    assert_eq!(said, "6 parties of 40 to 40 records each in parts\n");

    let parts = folder.path().join("parts");
    let part_names = names(&parts);
    assert_eq!(part_names.len(), 6);
    let mut lines: Vec<String> = Vec::new();
    for name in &part_names {
        let text = fs::read_to_string(parts.join(name)).unwrap();
        let (header, records) = text.split_once('\n').unwrap();
        assert_eq!(header, csv.lines().next().unwrap());
        lines.extend(records.lines().map(str::to_owned));
    }
    lines.sort();
    let mut expected: Vec<&str> = csv.lines().skip(1).collect();
    expected.sort_unstable();
    assert_eq!(lines, expected);

    for method in ["aug-private", "naive", "random", "naive-bayes", "dist-aim"] {
        let more = [
            "--method",
            method,
            "--epsilon",
            "5",
            "--participation",
            "0.3",
            "--rounds",
            "4",
        ];
        let files = [
            "--ledger",
            "ledger.json",
            "--records",
            "50",
            "--yes",
            "--json",
        ];
        let run = fhaim(folder.path(), &[&RUN[..], &more, &files].concat());
        assert!(run.status.success(), "{method}: {}", stderr(&run));
        let summary: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
        let share = |name: &str| summary[name].as_f64().unwrap();
        assert!(share("largest_rho_spent") > 0.0);
        assert!(share("largest_rho_spent") <= share("rho"));
        let synthetic = fs::read_to_string(folder.path().join("s.csv")).unwrap();
        assert_eq!(synthetic.lines().count(), 51);
        let ledger = fs::read(folder.path().join("ledger.json")).unwrap();
        let ledger: serde_json::Value = serde_json::from_slice(&ledger).unwrap();
        assert_eq!(ledger["parties"].as_array().unwrap().len(), 6);
        assert_eq!(ledger["method"], method);
    }
}

/// There may be more parties than files that a process may have open.
#[cfg(unix)]
#[test]
fn parties_may_be_more_than_open_files() {
    let folder = folder(table(240), SCHEMA);
    let script = format!(
        "ulimit -n 64 && exec \"$0\" {} --parties 200",
        SPLIT.join(" ")
    );
    let program = env!("CARGO_BIN_EXE_fhaim");
    let split = fhaim_kit::command::run("sh", folder.path(), &["-c", &script, program]);
    assert!(split.status.success(), "{}", stderr(&split));
    let parts = names(&folder.path().join("parts"));
    assert_eq!(parts.len(), 200);
    assert_eq!(parts[199], "part-199.csv");
}

#[test]
fn what_cannot_be_run_is_refused_in_one_line() {
    let folder = folder(table(30), SCHEMA);
    let refused = |arguments: &[&str], says: &str| {
        let output = fhaim(folder.path(), arguments);
        let errors = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(says), "{says:?} is not in: {errors}");
    };
    refused(
        &[&SPLIT[..], &["--parties", "31"]].concat(),
        "31 parties cannot",
    );
    let ruled = |rule| [&SPLIT[..9], &[rule, "--parties", "3"]].concat();
    refused(&ruled("dli:-1"), "must be a positive number");
    refused(&ruled("kmeans"), "choose ns, cluster");

    assert!(fhaim(folder.path(), &ruled("ns")).status.success());
    refused(&ruled("ns"), "parts is not empty");
    let with = |more: &[&'static str]| [&RUN[..], more].concat();
    refused(&with(&["--epsilon", "0"]), "epsilon must be");
    refused(
        &with(&["--epsilon", "1", "--ledger", "parts/part-000.csv"]),
        "named for two purposes",
    );
    refused(
        &with(&["--epsilon", "1", "--method", "aug-oracle"]),
        "not private",
    );
    refused(
        &with(&["--epsilon", "1", "--participation", "2"]),
        "participation must be",
    );
    refused(
        &with(&["--epsilon", "1", "--most-rounds", "11"]),
        "rounds of a party",
    );
    refused(
        &with(&["--epsilon", "1", "--most-rounds", "3"]),
        "3 parties that take part in at most 3 rounds each cannot fill 10 rounds: let each take part in 4, or run 9",
    );
    refused(
        &with(&["--epsilon", "1", "--records", "18446744073709551615"]),
        "(--records)",
    );
    refused(
        &with(&["--epsilon", "1", "--triples", "0"]),
        "0 is not in 1..=10000",
    );
    let dist_aim = [
        "--epsilon",
        "1",
        "--method",
        "dist-aim",
        "--most-rounds",
        "3",
    ];
    refused(&with(&dist_aim), "--most-rounds changes nothing");
    let random = ["--epsilon", "1", "--method", "random", "--local-steps", "2"];
    refused(&with(&random), "--local-steps changes nothing");
    fs::create_dir(folder.path().join("none")).unwrap();
    let mut elsewhere = with(&["--epsilon", "1"]);
    elsewhere[3] = "none";
    refused(&elsewhere, "no table in it");
    assert!(!folder.path().join("s.csv").exists());
}

/// The command as it stands, of one to three parties, more often than chance would let rounds without a party pass.
#[test]
fn few_parties_come_to_an_end() {
    for parties in ["1", "2", "3"] {
        let folder = folder(table(60), SCHEMA);
        let split = fhaim(
            folder.path(),
            &[&SPLIT[..], &["--parties", parties]].concat(),
        );
        assert!(split.status.success(), "{}", stderr(&split));
        for method in ["aug-private", "naive", "random", "naive-bayes", "dist-aim"] {
            let more = ["--epsilon", "1", "--yes", "--method", method];
            let all = ["--participation", "0.9"];
            for more in [&more[..], &[&more[..], &all].concat()] {
                let run = fhaim(folder.path(), &[&RUN[..], more].concat());
                assert!(run.status.success(), "{parties} {more:?}: {}", stderr(&run));
            }
        }
    }
}

#[cfg(unix)]
#[test]
fn a_pipe_among_the_parties_is_refused_and_not_waited_for() {
    let folder = folder(table(60), SCHEMA);
    let split = fhaim(folder.path(), &[&SPLIT[..], &["--parties", "2"]].concat());
    assert!(split.status.success(), "{}", stderr(&split));
    let pipe = folder.path().join("parts/part-002.csv");
    let made = std::process::Command::new("mkfifo").arg(pipe).status();
    assert!(made.unwrap().success());
    let run = fhaim(folder.path(), &[&RUN[..], &["--epsilon", "1"]].concat());
    assert_eq!(run.status.code(), Some(2), "{}", stderr(&run));
    assert!(stderr(&run).contains("name a file, not a pipe"));
}

#[test]
fn a_table_of_one_column_is_refused_by_name() {
    let schema = r#"{"name":"t","target":"c","columns":[
        {"name":"c","kind":"categorical","categories":["no","yes"]}]}"#;
    let folder = folder(format!("c\n{}", "no\nyes\n".repeat(30)), schema);
    let split = fhaim(folder.path(), &[&SPLIT[..], &["--parties", "4"]].concat());
    assert!(split.status.success(), "{}", stderr(&split));
    for method in ["aug-private", "naive", "random", "naive-bayes", "dist-aim"] {
        let more = ["--epsilon", "1", "--method", method];
        let run = fhaim(folder.path(), &[&RUN[..], &more].concat());
        assert_eq!(run.status.code(), Some(2), "{method}: {}", stderr(&run));
        assert!(
            stderr(&run).contains("the schema has one column"),
            "{}",
            stderr(&run)
        );
    }
    // AIM alone has nothing to choose from, and is done with the column.
    let files = ["local", "--data", "t.csv", "--schema", "t.schema.json"];
    let more = ["--mechanism", "aim", "--epsilon", "1", "--out", "s.csv"];
    let alone = fhaim(folder.path(), &[&files[..], &more].concat());
    assert!(alone.status.success(), "{}", stderr(&alone));
}

/// Parts are in UTF-8 whatever the table is in: as it is, a table of one column in UTF-16 was cut within its letters.
#[test]
fn a_table_in_another_encoding_is_divided_by_its_records() {
    let csv = table(30);
    let folder = folder("", SCHEMA);
    let units = csv.encode_utf16().flat_map(u16::to_le_bytes);
    let bytes: Vec<u8> = [0xff, 0xfe].into_iter().chain(units).collect();
    fs::write(folder.path().join("t.csv"), bytes).unwrap();
    let split = fhaim(folder.path(), &[&SPLIT[..], &["--parties", "2"]].concat());
    assert!(split.status.success(), "{}", stderr(&split));
    let parts = folder.path().join("parts");
    let mut records = Vec::new();
    for name in names(&parts) {
        let text = fs::read_to_string(parts.join(name)).unwrap();
        records.extend(text.lines().skip(1).map(str::to_owned));
    }
    records.sort();
    let mut expected: Vec<&str> = csv.lines().skip(1).collect();
    expected.sort_unstable();
    assert_eq!(records, expected);
}

#[cfg(target_os = "linux")]
#[test]
fn a_table_from_a_pipe_is_not_divided_into_nothing() {
    let folder = folder(table(30), SCHEMA);
    let script = "cat t.csv | \"$0\" federate split --data /dev/stdin --schema t.schema.json --out parts \
                  --rule ns --parties 2";
    let output = std::process::Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_fhaim")])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let errors = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("name a file, not a pipe"), "{errors}");
    assert!(!folder.path().join("parts").exists());
}

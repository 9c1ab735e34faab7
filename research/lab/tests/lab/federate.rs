//! Tests of `fhaim-lab federate`.

use std::fs;

use crate::{CONFIG, PROGRAM, SCHEMA, fhaim, folder, lab, names, stderr, table};

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
fn split_keeps_every_record_and_run_writes_a_ledger_per_party() {
    let csv = table(240);
    let folder = folder(&csv, SCHEMA);
    let split = lab(folder.path(), &[&SPLIT[..], &["--parties", "6"]].concat());
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
        let files = ["--ledger", "ledger.json", "--rows", "50", "--yes", "--json"];
        let run = lab(folder.path(), &[&RUN[..], &more, &files].concat());
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

/// Only some parties take part, but the synthetic table is as long as all parties' tables together.
#[test]
fn synthetic_table_has_about_as_many_records_as_all_parties() {
    let folder = folder(table(2000), SCHEMA);
    let split = lab(folder.path(), &[&SPLIT[..], &["--parties", "20"]].concat());
    assert!(split.status.success(), "{}", stderr(&split));
    for method in ["naive", "dist-aim"] {
        let more = [
            "--method",
            method,
            "--epsilon",
            "100",
            "--rounds",
            "3",
            "--yes",
        ];
        let run = lab(folder.path(), &[&RUN[..], &more, &["--json"]].concat());
        assert!(run.status.success(), "{method}: {}", stderr(&run));
        let summary: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
        let records = summary["records"].as_u64().unwrap();
        assert!((1900..2100).contains(&records), "{method}: {records}");
    }
}

#[test]
fn synthfs_makes_parties_that_a_run_reads() {
    let folder = folder(table(30), SCHEMA);
    let make =
        "federate synthfs --parties 8 --records 20 --skew 1 --schema x.schema.json --out skewed";
    let words: Vec<&str> = make.split(' ').collect();
    let made = lab(folder.path(), &words);
    assert!(made.status.success(), "{}", stderr(&made));
    let said = String::from_utf8(made.stdout).unwrap();
    assert_eq!(said, "8 parties of 20 records each in skewed\n");
    assert_eq!(names(&folder.path().join("skewed")).len(), 8);
    let run = "federate run --parts skewed --schema x.schema.json --epsilon 20 --rounds 2 --rows 9 --out y.csv --yes";
    let words: Vec<&str> = run.split(' ').collect();
    let run = lab(folder.path(), &words);
    assert!(run.status.success(), "{}", stderr(&run));
}

/// There can be more parties than files that a process may keep open.
#[cfg(unix)]
#[test]
fn split_supports_more_parties_than_open_files() {
    let folder = folder(table(240), SCHEMA);
    let script = format!(
        "ulimit -n 64 && exec \"$0\" {} --parties 200",
        SPLIT.join(" ")
    );
    let split = fhaim_kit::command::run("sh", folder.path(), &["-c", &script, PROGRAM]);
    assert!(split.status.success(), "{}", stderr(&split));
    let parts = names(&folder.path().join("parts"));
    assert_eq!(parts.len(), 200);
    assert_eq!(parts[199], "part-199.csv");
}

#[test]
fn invalid_requests_are_rejected_in_one_line() {
    let folder = folder(table(30), SCHEMA);
    let refused = |arguments: &[&str], says: &str| {
        let output = lab(folder.path(), arguments);
        let errors = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(says), "{says:?} is not in: {errors}");
    };
    refused(
        &[&SPLIT[..], &["--parties", "31"]].concat(),
        "cannot split 30 records among 31 parties: use from 1 to 30",
    );
    let ruled = |rule| [&SPLIT[..9], &[rule, "--parties", "3"]].concat();
    refused(&ruled("dli:-1"), "must be a positive number");
    refused(&ruled("kmeans"), "choose ns, cluster");

    assert!(lab(folder.path(), &ruled("ns")).status.success());
    refused(&ruled("ns"), "parts is not empty");
    let with = |more: &[&'static str]| [&RUN[..], more].concat();
    refused(&with(&["--epsilon", "0"]), "epsilon must be");
    refused(
        &with(&["--epsilon", "1", "--ledger", "parts/part-000.csv"]),
        "named both as an output and as another file",
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
        &with(&["--epsilon", "1", "--participation", "1e-300"]),
        "participation must be from 1e-6 to 1, not 1e-300\n",
    );
    for (flags, says) in [
        (
            ["--epsilon", "1e-9", "--method", "naive"],
            "raise --epsilon to ",
        ),
        (
            ["--epsilon", "1e-9", "--method", "random"],
            "raise --epsilon to ",
        ),
        (
            ["--epsilon", "1e-9", "--method", "dist-aim"],
            "raise --epsilon to ",
        ),
        (
            ["--epsilon", "1", "--measure-share", "1e-300"],
            "keeps this budget at --measure-share 1e-300: use a share from ",
        ),
    ] {
        refused(&with(&flags), says);
    }
    refused(
        &with(&["--epsilon", "1", "--most-rounds", "11"]),
        "rounds of a party",
    );
    refused(
        &with(&["--epsilon", "1", "--most-rounds", "3"]),
        "3 parties that take part in at most 3 rounds each cannot fill 10 rounds: allow 4 rounds per party, or run 9 \
         rounds",
    );
    refused(
        &with(&["--epsilon", "1", "--rows", "18446744073709551615"]),
        "(--rows)",
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
    refused(&with(&dist_aim), "--most-rounds has no effect");
    let random = ["--epsilon", "1", "--method", "random", "--local-steps", "2"];
    refused(&with(&random), "--local-steps has no effect");
    fs::create_dir(folder.path().join("none")).unwrap();
    let mut elsewhere = with(&["--epsilon", "1"]);
    elsewhere[3] = "none";
    refused(&elsewhere, "contains no table");
    assert!(!folder.path().join("s.csv").exists());
}

/// With default flags and one to three parties. Enough runs to notice rounds that are left without a party.
#[test]
fn runs_with_few_parties_finish() {
    for parties in ["1", "2", "3"] {
        let folder = folder(table(60), SCHEMA);
        let split = lab(
            folder.path(),
            &[&SPLIT[..], &["--parties", parties]].concat(),
        );
        assert!(split.status.success(), "{}", stderr(&split));
        for method in ["aug-private", "naive", "random", "naive-bayes", "dist-aim"] {
            let more = ["--epsilon", "1", "--yes", "--method", method];
            let all = ["--participation", "0.9"];
            for more in [&more[..], &[&more[..], &all].concat()] {
                let run = lab(folder.path(), &[&RUN[..], more].concat());
                assert!(run.status.success(), "{parties} {more:?}: {}", stderr(&run));
            }
        }
    }
}

#[cfg(unix)]
#[test]
fn pipe_among_the_parties_is_rejected_without_waiting() {
    let folder = folder(table(60), SCHEMA);
    let split = lab(folder.path(), &[&SPLIT[..], &["--parties", "2"]].concat());
    assert!(split.status.success(), "{}", stderr(&split));
    let pipe = folder.path().join("parts/part-002.csv");
    let made = std::process::Command::new("mkfifo").arg(pipe).status();
    assert!(made.unwrap().success());
    let run = lab(folder.path(), &[&RUN[..], &["--epsilon", "1"]].concat());
    assert_eq!(run.status.code(), Some(2), "{}", stderr(&run));
    assert!(stderr(&run).contains("is a pipe, but this command reads it twice"));
}

#[test]
fn table_of_one_column_is_rejected_by_name() {
    let schema = r#"{"name":"t","target":"c","columns":[
        {"name":"c","kind":"categorical","categories":["no","yes"]}]}"#;
    let folder = folder(format!("c\n{}", "no\nyes\n".repeat(30)), schema);
    let split = lab(folder.path(), &[&SPLIT[..], &["--parties", "4"]].concat());
    assert!(split.status.success(), "{}", stderr(&split));
    for method in ["aug-private", "naive", "random", "naive-bayes", "dist-aim"] {
        let more = ["--epsilon", "1", "--method", method];
        let run = lab(folder.path(), &[&RUN[..], &more].concat());
        assert_eq!(run.status.code(), Some(2), "{method}: {}", stderr(&run));
        assert!(
            stderr(&run).contains("the schema has one column"),
            "{}",
            stderr(&run)
        );
    }
    // AIM itself accepts the table: it measures the column and has nothing to choose from.
    let files = ["local", "--data", "t.csv", "--schema", "t.schema.json"];
    let more = [
        "--mechanism",
        "aim",
        "--epsilon",
        "1",
        "--out",
        "s.csv",
        "--yes",
    ];
    let alone = fhaim(folder.path(), &[&files[..], &more].concat());
    assert!(alone.status.success(), "{}", stderr(&alone));
}

/// Parts are in UTF-8, regardless of the table's encoding. Copying UTF-16 as bytes would cut within characters.
#[test]
fn table_in_another_encoding_is_split_by_records() {
    let csv = table(30);
    let folder = folder("", SCHEMA);
    let units = csv.encode_utf16().flat_map(u16::to_le_bytes);
    let bytes: Vec<u8> = [0xff, 0xfe].into_iter().chain(units).collect();
    fs::write(folder.path().join("t.csv"), bytes).unwrap();
    let split = lab(folder.path(), &[&SPLIT[..], &["--parties", "2"]].concat());
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
fn table_from_a_pipe_is_rejected() {
    let folder = folder(table(30), SCHEMA);
    let script = "cat t.csv | \"$0\" federate split --data /dev/stdin --schema t.schema.json --out parts \
                  --rule ns --parties 2";
    let output = std::process::Command::new("sh")
        .args(["-c", script, PROGRAM])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let errors = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(
        errors.contains("is a pipe, but this command reads it twice"),
        "{errors}"
    );
    assert!(!folder.path().join("parts").exists());
}

/// Returns a folder with a table of 240 records, split among `parties` parties.
fn divided(parties: &str) -> tempfile::TempDir {
    let folder = folder(table(240), SCHEMA);
    let split = [&SPLIT[..], &["--parties", parties]].concat();
    let split = lab(folder.path(), &split);
    assert!(split.status.success(), "{}", stderr(&split));
    folder
}

/// The earlier costs of all parties are reported in one remark, which names the file with each party's costs.
#[test]
fn costs_of_many_parties_are_reported_in_a_few_lines() {
    let folder = divided("6");
    let run_over = |parts, more: &[&str]| {
        let mut run = [
            &RUN[..],
            &[
                "--method",
                "dist-aim",
                "--yes",
                "--rounds",
                "2",
                "--participation",
                "1",
            ],
        ]
        .concat();
        run[3] = parts;
        let run = lab(folder.path(), &[&run[..], more].concat());
        assert!(run.status.success(), "{}", stderr(&run));
        stderr(&run)
    };
    let run = |more: &[&str]| run_over("parts", more);
    // All parties pay the same for the first run. Only one party takes part in the second.
    run(&["--epsilon", "1"]);
    fs::create_dir(folder.path().join("few")).unwrap();
    let part = |parts: &str, name: &str| folder.path().join(parts).join(name);
    fs::copy(part("parts", "part-003.csv"), part("few", "any.csv")).unwrap();
    let second = run_over("few", &["--epsilon", "2"]);
    let remark = "note: these records were used before";
    assert!(second.contains(remark), "{second}");

    let told = run(&["--epsilon", "3", "--json"]);
    assert_eq!(told.matches("note: ").count(), 1, "{told}");
    let expected = "the records of 6 of 6 parties were used before, and the privacy costs add up:\nfor a record added \
                    or removed:\n  lowest parts/part-000.csv: epsilon ";
    assert!(told.contains(expected), "{told}");
    assert!(
        told.contains("  highest parts/part-003.csv: epsilon 2."),
        "{told}"
    );
    let each = folder.path().join(CONFIG).join("memory.parties.txt");
    let is_in = format!("the costs of each party are in {}\n", each.display());
    assert!(told.contains(&is_in), "{told}");
    let each = fs::read_to_string(each).unwrap();
    assert_eq!(each.matches("these records were used before").count(), 6);
    let run_before = "a run of fhaim-lab federate, into s.csv: rho ";
    assert_eq!(each.matches(run_before).count(), 7, "{each}");
    assert!(each.contains("parts/part-003.csv: these records"), "{each}");

    let short = run(&["--epsilon", "1", "--quiet"]);
    assert_eq!(short.lines().count(), 1, "{short}");
    assert!(
        short.contains("for a record added or removed: at most epsilon ")
            && short.contains(" with this use;"),
        "{short}"
    );
}

/// If the costs of a run cannot be written completely, none is recorded, and nobody sees the result.
#[cfg(unix)]
#[test]
fn run_costs_are_recorded_for_all_parties_or_none() {
    let folder = divided("12");
    // Twelve uses are more than 2,500 bytes, and a block is 512 or 1,024.
    let script = "trap '' XFSZ; ulimit -f 2; exec \"$0\" \"$@\"";
    let more = ["--epsilon", "1", "--rows", "3", "--method", "dist-aim"];
    let run = [&["-c", script, PROGRAM], &RUN[..], &more].concat();
    let run = fhaim_kit::command::run("sh", folder.path(), &run);
    assert_eq!(run.status.code(), Some(1), "{}", stderr(&run));
    assert!(stderr(&run).contains("memory.json"), "{}", stderr(&run));
    assert!(!folder.path().join(CONFIG).join("memory.json").exists());
    assert!(!folder.path().join("s.csv").exists());
}

/// A result in the folder of the parties' tables would be read as a party's table by the next run.
#[test]
fn outputs_in_the_folder_of_parties_are_rejected() {
    let folder = divided("3");
    #[cfg(unix)]
    std::os::unix::fs::symlink("parts", folder.path().join("link")).unwrap();
    let before = names(&folder.path().join("parts"));
    for (flag, output) in [
        ("--out", "parts/s.csv"),
        ("--out", "./parts/../parts/s.parquet"),
        ("--ledger", "parts/ledger.csv"),
        #[cfg(unix)]
        ("--out", "link/s.csv"),
    ] {
        let mut run = [&RUN[..], &["--epsilon", "1", flag, output]].concat();
        if flag == "--out" {
            run.drain(6..8);
        }
        let run = lab(folder.path(), &run);
        assert_eq!(run.status.code(), Some(2), "{output}: {}", stderr(&run));
        let says = "would read it as a party's table: name a file in another folder";
        assert!(stderr(&run).contains(says), "{}", stderr(&run));
    }
    assert_eq!(names(&folder.path().join("parts")), before);
    // Files that a run does not read as a table are allowed.
    let run = [
        &RUN[..],
        &["--epsilon", "1", "--ledger", "parts/ledger.json"],
    ]
    .concat();
    let run = lab(folder.path(), &run);
    assert!(run.status.success(), "{}", stderr(&run));
}

/// The budget or share that an error message suggests is accepted.
#[test]
fn too_small_budget_is_rejected_with_the_least_sufficient_one() {
    let folder = divided("3");
    for method in ["aug-private", "naive", "random", "naive-bayes", "dist-aim"] {
        let run = |epsilon| {
            let more = [
                "--method",
                method,
                "--yes",
                "--rows",
                "20",
                "--epsilon",
                epsilon,
            ];
            lab(folder.path(), &[&RUN[..], &more].concat())
        };
        let told = stderr(&run("1e-9"));
        let least = told.trim().rsplit_once("raise --epsilon to ").unwrap().1;
        let kept = run(least);
        assert!(kept.status.success(), "{told} {}", stderr(&kept));
    }
    let run = |share| {
        let more = [
            "--yes",
            "--rows",
            "20",
            "--epsilon",
            "1",
            "--measure-share",
            share,
        ];
        lab(folder.path(), &[&RUN[..], &more].concat())
    };
    let told = stderr(&run("1e-300"));
    let least = told.split_once("use a share from ").unwrap().1;
    let kept = run(least.split_once(' ').unwrap().0);
    assert!(kept.status.success(), "{told} {}", stderr(&kept));
}

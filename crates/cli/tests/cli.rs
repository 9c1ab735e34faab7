//! The command as a script sees it: exit codes, one line for each error, files whole or absent.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use tempfile::TempDir;

const SCHEMA: &str = r#"{"name": "small", "target": "y", "columns": [
    {"name": "x", "kind": "numeric", "min": 0, "max": 10, "bins": 5},
    {"name": "c", "kind": "categorical", "categories": ["red", "green", "blue"]},
    {"name": "y", "kind": "categorical", "categories": ["0", "1"]}]}"#;

fn fhaim(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fhaim"))
        .args(arguments)
        .current_dir(folder)
        .env_remove("FHAIM_DATA_DIR")
        .env_remove("FHAIM_REFERENCE_DIR")
        .output()
        .unwrap()
}

fn table(records: usize) -> String {
    let colours = ["red", "green", "blue"];
    let row = |i: usize| format!("{},{},{}\n", i * 7 % 11, colours[i * 5 % 3], i * 3 % 4 / 2);
    let rows: String = (0..records).map(row).collect();
    format!("x,c,y\n{rows}")
}

fn folder(csv: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("t.csv"), csv).unwrap();
    fs::write(folder.path().join("t.schema.json"), SCHEMA).unwrap();
    folder
}

fn generate<'a>(command: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let fixed = [
        command,
        "--data",
        "t.csv",
        "--schema",
        "t.schema.json",
        "--out",
        "out.csv",
    ];
    fixed.iter().chain(more).copied().collect()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// The command fails with exit code 2 and one line that says `says`; it leaves no file behind.
fn refused(csv: &str, arguments: &[&str], says: &str) {
    for command in ["local", "run"] {
        let folder = folder(csv);
        let output = fhaim(folder.path(), &generate(command, arguments));
        let errors = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{command}: {errors}");
        assert_eq!(errors.lines().count(), 1, "{command}: {errors}");
        assert!(
            errors.starts_with("error: ") && errors.contains(says),
            "{command}: {errors}"
        );
        assert_eq!(names(folder.path()), ["t.csv", "t.schema.json"]);
    }
}

#[test]
fn bad_tables_are_refused_by_row_and_column() {
    let e1 = ["--epsilon", "1"];
    refused(
        "x,c,y\n1,red,0\n2,pink,1\n",
        &e1,
        "row 2 (line 3), column \"c\": \"pink\"",
    );
    refused(
        "x,c,y\n11,red,0\n",
        &e1,
        "row 1 (line 2), column \"x\": \"11\" is outside",
    );
    refused(
        "x,c,y\n1,red,0\n2,red\n",
        &e1,
        "row 2 (line 3): 2 fields where the header has 3",
    );
    refused("x,c,y\n,red,0\n", &e1, "column \"x\": the value is missing");
    refused("x,c,y\n", &e1, "no records");
    refused("", &e1, "empty");
    refused("x,y\n1,0\n", &e1, "column \"c\" is missing");
    refused(
        "x,c,y,z\n1,red,0,5\n",
        &e1,
        "column \"z\" is not in the schema",
    );
}

#[test]
fn bad_budgets_are_refused() {
    let table = table(20);
    refused(
        &table,
        &["--epsilon", "0"],
        "epsilon must be a positive number",
    );
    refused(
        &table,
        &["--epsilon", "-1"],
        "epsilon must be a positive number",
    );
    refused(
        &table,
        &["--epsilon", "NaN"],
        "epsilon must be a positive number",
    );
    refused(
        &table,
        &["--epsilon", "1", "--delta", "1"],
        "delta must lie strictly between",
    );
    refused(
        &table,
        &["--epsilon", "1", "--delta", "0"],
        "delta must lie strictly between",
    );
}

#[test]
fn what_does_not_fit_is_refused_before_the_work() {
    let tight = ["--epsilon", "1", "--memory-mb", "10"];
    refused(&table(20), &tight, "MB of memory where 10 MB may be used");
    let bound = ["--epsilon", "1", "--record-bound", "19"];
    refused(&table(20), &bound, "more than the 19 records");
}

#[test]
fn a_schema_too_large_for_memory_names_a_column() {
    let columns: Vec<String> = (0..200)
        .map(|i| format!(r#"{{"name":"c{i}","kind":"numeric","min":0,"max":1,"bins":400}}"#))
        .collect();
    let folder = TempDir::new().unwrap();
    let schema = format!(r#"{{"name":"wide","columns":[{}]}}"#, columns.join(","));
    fs::write(folder.path().join("t.schema.json"), schema).unwrap();
    let header: Vec<String> = (0..200).map(|i| format!("c{i}")).collect();
    let row = vec!["0.5"; 200].join(",");
    fs::write(
        folder.path().join("t.csv"),
        format!("{}\n{row}\n", header.join(",")),
    )
    .unwrap();
    let arguments = generate("local", &["--epsilon", "1", "--memory-mb", "2000"]);
    let output = fhaim(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("coarsen column \"c"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn results_never_overwrite_their_inputs() {
    let folder = folder(&table(20));
    let arguments = [
        "--data",
        "t.csv",
        "--schema",
        "t.schema.json",
        "--out",
        "./t.csv",
    ];
    let arguments: Vec<&str> = ["local", "--epsilon", "1"]
        .into_iter()
        .chain(arguments)
        .collect();
    let output = fhaim(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("two purposes"));
    assert_eq!(
        fs::read_to_string(folder.path().join("t.csv")).unwrap(),
        table(20)
    );
}

#[test]
fn aim_under_encryption_is_refused() {
    let folder = folder(&table(20));
    let arguments = generate("run", &["--epsilon", "1", "--mechanism", "aim"]);
    let output = fhaim(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert_eq!(names(folder.path()), ["t.csv", "t.schema.json"]);
}

#[test]
fn local_and_run_write_a_table_that_fits_the_schema() {
    for command in ["local", "run"] {
        let folder = folder(&table(200));
        let more = [
            "--epsilon",
            "10",
            "--records",
            "50",
            "--ledger",
            "l.json",
            "--report",
            "r.html",
            "--json",
        ];
        let output = fhaim(folder.path(), &generate(command, &more));
        assert!(output.status.success(), "{command}: {}", stderr(&output));
        let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(summary["records"], 50);
        assert!(summary["rho_spent"].as_f64() <= summary["rho"].as_f64());
        assert_eq!(summary["encryption"].is_object(), command == "run");
        let names = names(folder.path());
        assert_eq!(
            names,
            ["l.json", "out.csv", "r.html", "t.csv", "t.schema.json"]
        );
        let check = ["schema", "check", "t.schema.json", "--data", "out.csv"];
        let output = fhaim(folder.path(), &check);
        assert!(String::from_utf8_lossy(&output.stdout).contains("the table fits: 50 records"));
        let evaluate = [
            "evaluate",
            "--real",
            "t.csv",
            "--synthetic",
            "out.csv",
            "--schema",
            "t.schema.json",
        ];
        assert!(fhaim(folder.path(), &evaluate).status.success());
    }
}

#[test]
fn a_draft_is_a_schema_and_says_that_it_is_a_draft() {
    let folder = folder(&table(50));
    let output = fhaim(
        folder.path(),
        &["schema", "infer", "--data", "t.csv", "--target", "y"],
    );
    assert!(output.status.success());
    assert!(stderr(&output).contains("This is a draft."));
    fs::write(folder.path().join("draft.json"), &output.stdout).unwrap();
    let check = ["schema", "check", "draft.json", "--data", "t.csv", "--json"];
    let output = fhaim(folder.path(), &check);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["records"], 50);
}

#[test]
fn a_bench_without_its_tables_says_what_to_set() {
    let folder = TempDir::new().unwrap();
    for (bench, variable) in [
        ("compute", "FHAIM_DATA_DIR"),
        ("mechanisms", "FHAIM_DATA_DIR"),
        ("pgm", "FHAIM_REFERENCE_DIR"),
    ] {
        let output = fhaim(folder.path(), &["bench", bench]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(&format!("{variable} is not set")));
    }
}

/// `--help` of every command, as it was last agreed to. FHAIM_UPDATE_HELP=1 writes it anew.
#[test]
fn help_is_as_it_was() {
    let folder = TempDir::new().unwrap();
    let snapshots = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/help");
    for command in [
        "",
        "demo",
        "schema",
        "schema infer",
        "schema check",
        "run",
        "local",
        "evaluate",
        "bench",
        "bench compute",
        "bench mechanisms",
        "bench pgm",
    ] {
        let mut arguments: Vec<&str> = command.split_whitespace().collect();
        arguments.push("--help");
        let output = fhaim(folder.path(), &arguments);
        assert!(output.status.success());
        let help = String::from_utf8(output.stdout).unwrap();
        // The flag of builds for tests is not part of the agreement.
        let path = snapshots.join(format!("fhaim-{}.txt", command.replace(' ', "-")));
        if cfg!(feature = "insecure-test-seed") {
            continue;
        }
        if std::env::var_os("FHAIM_UPDATE_HELP").is_some() {
            fs::create_dir_all(&snapshots).unwrap();
            fs::write(&path, &help).unwrap();
        }
        let agreed = fs::read_to_string(&path).unwrap_or_default();
        assert!(help == agreed, "help of {command:?} changed:\n{help}");
    }
}

/// With one test seed, releases and synthetic records are those of a run in the clear.
#[cfg(feature = "insecure-test-seed")]
#[test]
fn encrypted_and_plaintext_runs_agree_integer_for_integer() {
    for mechanism in ["staged", "fhaim-l2", "one-ways"] {
        let folder = folder(&table(500));
        for command in ["local", "run"] {
            let (out, ledger) = (format!("{command}.csv"), format!("{command}.json"));
            let arguments = [
                command,
                "--data",
                "t.csv",
                "--schema",
                "t.schema.json",
                "--epsilon",
                "10",
                "--mechanism",
                mechanism,
                "--seed",
                "5",
                "--out",
                &out,
                "--ledger",
                &ledger,
            ];
            let output = fhaim(folder.path(), &arguments);
            assert!(output.status.success(), "{mechanism}: {}", stderr(&output));
        }
        let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
        assert_eq!(read("local.json"), read("run.json"), "{mechanism}");
        assert_eq!(read("local.csv"), read("run.csv"), "{mechanism}");
    }
}

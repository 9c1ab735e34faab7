//! Tests of errors as JSON, which `--json` prints to standard error.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{SCHEMA, fhaim, folder, generate, stderr, table};

/// Runs a command that fails, and returns the last line of its standard error as JSON.
fn error(folder: &TempDir, arguments: &[&str]) -> Value {
    let output = fhaim(folder.path(), arguments);
    let told = stderr(&output);
    let last = told.lines().last().unwrap();
    let error: Value = serde_json::from_str(last).unwrap_or_else(|_| panic!("{told}"));
    let code = output.status.code().map(i64::from);
    assert_eq!(error["exit_code"].as_i64(), code, "{told}");
    error
}

#[test]
fn bad_cell_is_reported_as_json_with_its_place() {
    let folder = folder("x,c,y\n1,red,0\n2,pink,1\n", SCHEMA);
    let found = error(&folder, &generate("local", &["--epsilon", "1", "--json"]));
    assert_eq!(found["kind"], "table");
    let place = json!({ "file": "t.csv", "row": 2, "line": 3, "column": "c" });
    assert_eq!(found["place"], place);
    assert!(
        found["way_out"].as_str().unwrap().contains("\"other\""),
        "{found}"
    );
    assert_eq!(found["exit_code"], 2);
}

#[test]
fn several_problems_of_a_table_are_listed_as_json() {
    let folder = folder("x,c,y\n1,red,0\nabc,pink,1\n", SCHEMA);
    let found = error(&folder, &generate("local", &["--epsilon", "1", "--json"]));
    let columns: Vec<&str> = found["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|problem| problem["place"]["column"].as_str().unwrap())
        .collect();
    assert_eq!(columns, ["x", "c"]);
}

#[test]
fn missing_file_is_reported_as_json_with_its_name() {
    let folder = folder(table(20), SCHEMA);
    let found = error(&folder, &["schema", "check", "none.json", "--json"]);
    assert_eq!(
        (found["kind"].as_str(), found["place"]["file"].as_str()),
        (Some("file"), Some("none.json"))
    );
    assert!(found["way_out"].is_string(), "{found}");
}

#[test]
fn invalid_arguments_are_reported_as_json_with_their_flag() {
    let folder = TempDir::new().unwrap();
    for (arguments, flag, words) in [
        (
            &["run", "--epsilom", "1", "--json"][..],
            "--epsilom",
            "'--epsilon'",
        ),
        (
            &["run", "--data", "t.csv", "--epsilon", "x", "--json"],
            "--epsilon",
            "see --help",
        ),
        (&["local", "--json"], "--data", "see --help"),
    ] {
        let found = error(&folder, arguments);
        assert_eq!(
            (&found["kind"], &found["place"]["flag"]),
            (&json!("usage"), &json!(flag)),
            "{found}"
        );
        assert!(
            found["way_out"].as_str().unwrap().contains(words),
            "{found}"
        );
    }
}

#[test]
fn every_kind_of_error_is_documented() {
    let reference = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/errors.md"
    );
    let reference = fs::read_to_string(reference).unwrap();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/error.rs");
    let source = fs::read_to_string(source).unwrap();
    let arms = source
        .lines()
        .filter_map(|line| line.trim().split_once("=> \""));
    let kinds: Vec<&str> = arms
        .filter_map(|(_, kind)| kind.strip_suffix("\","))
        .collect();
    assert!(kinds.len() > 15, "{kinds:?}");
    for kind in kinds {
        assert!(reference.contains(&format!("| `{kind}` |")), "{kind}");
    }
}

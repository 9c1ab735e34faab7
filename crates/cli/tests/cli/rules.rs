//! Tests of the rules between columns that a draft proposes.

use std::{
    fs,
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use fhaim_kit::command::CONFIG;
use serde_json::Value;
use tempfile::TempDir;

use crate::{fhaim, stderr};

/// Returns a folder with a table whose columns `ward` and `station` are equal.
fn folder() -> TempDir {
    let row = |i: u32| {
        let ward = ["east", "north", "west"][(i * 5 + i / 13) as usize % 3];
        format!("{ward},{ward},{}\n", i * 7 % 50)
    };
    let rows: String = (0..400).map(row).collect();
    let folder = TempDir::new().unwrap();
    fs::write(
        folder.path().join("t.csv"),
        format!("ward,station,days\n{rows}"),
    )
    .unwrap();
    folder
}

fn infer<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["schema", "infer", "--data", "t.csv"], more].concat()
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Returns the only proposed rule of the folder's table about equal columns, with its number of records.
fn proposed(folder: &TempDir) -> (String, Value) {
    let output = fhaim(folder.path(), &infer(&["--json"]));
    assert!(output.status.success(), "{}", stderr(&output));
    let draft: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rules = draft["rules"].as_array().unwrap();
    let columns = |rule: &&Value| {
        let mut columns: Vec<&str> = rule["columns"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(Value::as_str)
            .collect();
        columns.sort_unstable();
        columns == ["station", "ward"]
    };
    let rules: Vec<&Value> = rules.iter().filter(columns).collect();
    assert_eq!(rules.len(), 1, "{rules:?}");
    let text = rules[0]["rule"].as_str().unwrap().to_owned();
    (text, rules[0]["records"].clone())
}

/// Returns the kinds of the columns `ward` and `station`, in alphabetical order.
fn kinds(schema: &Value) -> Vec<&str> {
    let columns = schema["columns"].as_array().unwrap();
    let equal = columns.iter().filter(|column| column["name"] != "days");
    let mut kinds: Vec<&str> = equal.flat_map(|column| column["kind"].as_str()).collect();
    kinds.sort_unstable();
    kinds
}

#[test]
fn rules_are_printed_and_are_not_in_the_draft() {
    let folder = folder();
    let (rule, records) = proposed(&folder);
    assert_eq!(records, 400);
    let output = fhaim(folder.path(), &infer(&["--out", "s.json"]));
    let told = stderr(&output);
    assert!(output.status.success(), "{told}");
    for words in [
        &format!("1. {rule}: 400 records"),
        "is a statistic of the data",
        &format!("--accept-rule '{rule}'"),
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let schema = json(&folder.path().join("s.json"));
    assert_eq!(kinds(&schema), ["categorical", "categorical"]);
}

#[test]
fn rule_accepted_by_its_text_holds_in_a_synthetic_table() {
    let folder = folder();
    let (rule, _) = proposed(&folder);
    let output = fhaim(
        folder.path(),
        &infer(&["--accept-rule", &rule, "--out", "s.json"]),
    );
    assert!(output.status.success(), "{}", stderr(&output));
    let schema = json(&folder.path().join("s.json"));
    assert_eq!(kinds(&schema), ["categorical", "derived"]);
    let run = "local --data t.csv --schema s.json --epsilon 5 --out new.csv --yes";
    let output = fhaim(folder.path(), &run.split(' ').collect::<Vec<_>>());
    assert!(output.status.success(), "{}", stderr(&output));
    let new = fs::read_to_string(folder.path().join("new.csv")).unwrap();
    assert!(new.starts_with("ward,station,days\n"), "{new}");
    let mut records = new
        .lines()
        .skip(1)
        .map(|line| line.split(',').collect::<Vec<_>>());
    assert!(records.all(|cells| cells[0] == cells[1]), "{new}");
}

#[test]
fn rule_that_is_not_proposed_is_refused() {
    let folder = folder();
    let unknown = "\"ward\" is at most \"days\"";
    let output = fhaim(
        folder.path(),
        &infer(&["--accept-rule", unknown, "--out", "s.json"]),
    );
    assert_eq!(output.status.code(), Some(2));
    let told = stderr(&output);
    assert!(
        told.contains(unknown) && told.contains("--accept-rule"),
        "{told}"
    );
    assert!(!folder.path().join("s.json").exists());
}

/// Runs the command in a terminal that `script` of util-linux makes, and types the answers. Returns its output.
fn at_a_terminal(folder: &Path, answers: &str) -> String {
    let program = env!("CARGO_BIN_EXE_fhaim");
    let command = format!(
        "{program} {}",
        infer(&["--out", "s.json", "--force"]).join(" ")
    );
    let child = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .current_dir(folder)
        .env_remove("FHAIM_MEMORY_DIR")
        .env("FHAIM_CONFIG_DIR", folder.join(CONFIG))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.expect("`script` of util-linux must be installed");
    let mut input = child.stdin.take().unwrap();
    input.write_all(answers.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{shown}");
    shown
}

/// At a terminal, the command asks about each list and then about each rule. The default answer is no.
#[test]
#[ignore = "needs script"]
fn command_asks_about_each_rule_at_a_terminal() {
    let folder = folder();
    let schema = || json(&folder.path().join("s.json"));
    let shown = at_a_terminal(folder.path(), "y\ny\n\n");
    assert!(shown.contains("Add rule 1 to the public schema"), "{shown}");
    assert_eq!(kinds(&schema()), ["categorical", "categorical"]);
    at_a_terminal(folder.path(), "y\ny\ny\n");
    assert_eq!(kinds(&schema()), ["categorical", "derived"]);
    // A rule about a column whose list may not be public is not proposed.
    let shown = at_a_terminal(folder.path(), "y\nn\ny\n");
    assert!(!shown.contains("Add rule"), "{shown}");
    assert_eq!(kinds(&schema()), ["categorical", "left-out"]);
}

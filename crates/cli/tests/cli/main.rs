//! The command as a script sees it: exit codes, one line for each error, files whole or absent.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

#[cfg(feature = "insecure-test-seed")]
mod agreement;
mod help;
mod openapi;
mod refusals;
mod runs;
mod samples;

use std::{
    fs,
    path::Path,
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

/// A table of the schema above, `records` rows.
fn table(records: usize) -> String {
    let colours = ["red", "green", "blue"];
    let row = |i: usize| format!("{},{},{}\n", i * 7 % 11, colours[i * 5 % 3], i * 3 % 4 / 2);
    let rows: String = (0..records).map(row).collect();
    format!("x,c,y\n{rows}")
}

/// A folder with a table and its schema.
fn folder(csv: impl AsRef<[u8]>, schema: impl AsRef<[u8]>) -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("t.csv"), csv).unwrap();
    fs::write(folder.path().join("t.schema.json"), schema).unwrap();
    folder
}

/// `fhaim COMMAND` on the folder's table, with `more` arguments.
fn generate<'a>(command: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let files = ["--data", "t.csv", "--schema", "t.schema.json"];
    [&[command], &files[..], &["--out", "out.csv"], more].concat()
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

//! Tests of the command from outside: exit codes, one-line errors, and complete or absent files.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

mod align;
mod cards;
mod constraints;
mod draft;
mod errors;
mod estimates;
mod formats;
mod help;
mod holders;
mod hospital;
mod interrupted;
mod memory;
mod openapi;
mod refusals;
mod rules;
mod runs;
mod samples;

use std::{fs, path::Path, process::Output};

use fhaim_kit::{
    command::{self, CONFIG, stderr},
    tables::{self, SCHEMA, small as table},
};
use tempfile::TempDir;

fn fhaim(folder: &Path, arguments: &[&str]) -> Output {
    command::run(env!("CARGO_BIN_EXE_fhaim"), folder, arguments)
}

/// Creates a folder with a table and its schema.
fn folder(csv: impl AsRef<[u8]>, schema: impl AsRef<[u8]>) -> TempDir {
    let folder = TempDir::new().unwrap();
    tables::write(folder.path(), csv, schema);
    folder
}

/// Returns the arguments of `fhaim COMMAND` for the folder's table, followed by `more`. The command uses records that
/// were used before, and replaces the files of an earlier run.
fn generate<'a>(command: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let all = ["--yes", "--force"].into_iter();
    let missing = all.filter(|flag| !more.contains(flag));
    let missing: Vec<&str> = missing.collect();
    [&first_use(command, more), &missing[..]].concat()
}

/// Like [`generate`], for records that were not used before.
fn first_use<'a>(command: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let files = ["--data", "t.csv", "--schema", "t.schema.json"];
    [&[command], &files[..], &["--out", "out.csv"], more].concat()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != CONFIG)
        .collect();
    names.sort();
    names
}

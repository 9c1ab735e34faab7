//! The command as a script sees it: exit codes, one line for each error, files whole or absent.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

mod align;
mod constraints;
mod draft;
mod estimates;
mod help;
mod holders;
mod hospital;
mod memory;
mod openapi;
mod refusals;
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

/// A folder with a table and its schema.
fn folder(csv: impl AsRef<[u8]>, schema: impl AsRef<[u8]>) -> TempDir {
    let folder = TempDir::new().unwrap();
    tables::write(folder.path(), csv, schema);
    folder
}

/// `fhaim COMMAND` on the folder's table, with `more` arguments.
fn generate<'a>(command: &'a str, more: &[&'a str]) -> Vec<&'a str> {
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

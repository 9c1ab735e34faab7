//! Tests of `fhaim-lab` from the view of a script: exit codes, one line per error, and no partial files.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

mod attack;
mod bench;
mod federate;
mod gan;
mod help;
mod memory;
mod mix;
mod quick;

use std::{fs, path::Path, process::Output};

use fhaim_kit::{
    command::{self, CONFIG, stderr},
    tables::{self, SCHEMA, small as table},
};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_fhaim-lab");

fn lab(folder: &Path, arguments: &[&str]) -> Output {
    command::run(PROGRAM, folder, arguments)
}

/// Runs a command of the product, through the same program.
fn fhaim(folder: &Path, arguments: &[&str]) -> Output {
    lab(folder, &[&["fhaim"], arguments].concat())
}

/// Returns a folder with a table and its schema.
fn folder(csv: impl AsRef<[u8]>, schema: impl AsRef<[u8]>) -> TempDir {
    let folder = TempDir::new().unwrap();
    tables::write(folder.path(), csv, schema);
    folder
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

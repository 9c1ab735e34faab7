//! `fhaim-lab` as a script sees it: exit codes, one line for each error, files whole or absent.

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

/// A command of the product, which the same program runs.
fn fhaim(folder: &Path, arguments: &[&str]) -> Output {
    lab(folder, &[&["fhaim"], arguments].concat())
}

/// A folder with a table and its schema.
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

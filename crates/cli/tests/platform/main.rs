//! The platform as its users see it: real processes, real HTTP, real databases.
//!
//! Tests that compare releases need builds with a test seed. Postgres and S3 are used where
//! FHAIM_TEST_POSTGRES and FHAIM_TEST_S3 name servers, and said to be skipped elsewhere.

#![cfg(feature = "insecure-test-seed")]
#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

mod capture;
mod crashes;
mod flow;
mod services;
mod tenants;
mod views;

use std::{fs, path::Path};

const SCHEMA: &str = r#"{"name": "small", "target": "y", "columns": [
    {"name": "x", "kind": "numeric", "min": 0, "max": 10, "bins": 5},
    {"name": "c", "kind": "categorical", "categories": ["red", "green", "blue"]},
    {"name": "y", "kind": "categorical", "categories": ["0", "1"]}]}"#;

/// Writes a table of the schema above and the schema into a folder.
fn write_table(folder: &Path, records: usize) {
    let colours = ["red", "green", "blue"];
    let row = |i: usize| format!("{},{},{}\n", i * 7 % 11, colours[i * 5 % 3], i * 3 % 4 / 2);
    let rows: String = (0..records).map(row).collect();
    fs::write(folder.join("t.csv"), format!("x,c,y\n{rows}")).unwrap();
    fs::write(folder.join("t.schema.json"), SCHEMA).unwrap();
}

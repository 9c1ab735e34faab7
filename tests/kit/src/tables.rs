//! Tables for tests.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Schema of [`small`]: a number, a category and a target.
pub const SCHEMA: &str = r#"{"name": "small", "target": "y", "columns": [
    {"name": "x", "kind": "numeric", "min": 0, "max": 10, "bins": 5},
    {"name": "c", "kind": "categorical", "categories": ["red", "green", "blue"]},
    {"name": "y", "kind": "categorical", "categories": ["0", "1"]}]}"#;

/// Returns a table of [`SCHEMA`] as CSV with the given number of records.
pub fn small(records: usize) -> String {
    let colours = ["red", "green", "blue"];
    let row = |i: usize| format!("{},{},{}\n", i * 7 % 11, colours[i * 5 % 3], i * 3 % 4 / 2);
    let rows: String = (0..records).map(row).collect();
    format!("x,c,y\n{rows}")
}

/// Writes [`small`] and its schema into a folder, as `t.csv` and `t.schema.json`.
pub fn write_small(folder: &Path, records: usize) {
    write(folder, small(records), SCHEMA);
}

/// Writes a table and its schema into a folder, as `t.csv` and `t.schema.json`.
pub fn write(folder: &Path, csv: impl AsRef<[u8]>, schema: impl AsRef<[u8]>) {
    fs::write(folder.join("t.csv"), csv).unwrap();
    fs::write(folder.join("t.schema.json"), schema).unwrap();
}

/// Returns the folder of the published tables, for a test with `#[ignore = "needs FHAIM_DATA_DIR"]`.
///
/// # Panics
/// If the variable is not set.
pub fn published() -> PathBuf {
    std::env::var_os("FHAIM_DATA_DIR")
        .map(PathBuf::from)
        .expect("FHAIM_DATA_DIR must name the folder of the published tables")
}

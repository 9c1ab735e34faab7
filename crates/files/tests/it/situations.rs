//! Parquet and Excel tables as people have them, and what fhaim must give for them.
//!
//! `tests/tables` has the tables that the project started from, and `tests/situations` those of
//! public reports. The README of `crates/intake/tests/tables` documents their `expectations.json`.

use std::{
    io::Read,
    path::{Path, PathBuf},
};

use fhaim_domain::{Dialect, ReadOptions, Schema, Table, read_csv};
use fhaim_files::{
    FormatArguments,
    data::{Data, text},
    keeping,
};
use fhaim_intake::{InferOptions, infer_schema};

use crate::check::{
    Checked, assert_all, check_folder,
    drafted::{Drafted, Intake},
    summary,
};

/// Drafts and reads files of all types without options.
struct Files;

/// A table's text, its dialect and the remarks of opening it.
fn open(path: &Path) -> Result<(Vec<u8>, Dialect, Vec<String>), String> {
    let data = Data::from(path);
    let (opened, remarks) = keeping(|| text(&data, &FormatArguments::default()));
    let (mut opened, dialect) = opened.map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    let read = opened.read_to_end(&mut bytes);
    read.map_err(|error| error.to_string())?;
    Ok((bytes, dialect, remarks))
}

impl Intake for Files {
    fn draft(&self, path: &Path) -> Result<Drafted, String> {
        let (bytes, dialect, mut remarks) = open(path)?;
        let options = InferOptions {
            dialect,
            ..InferOptions::new(path.display().to_string(), "table")
        };
        let draft = infer_schema(&bytes[..], &options).map_err(|error| error.to_string())?;
        let notes = draft.notes().iter().map(ToString::to_string).collect();
        remarks.extend(draft.remarks);
        Ok(Drafted::new(draft.schema.to_json(), notes, remarks))
    }

    fn read(&self, schema_json: &str, path: &Path) -> Result<Table, String> {
        let (bytes, dialect, _) = open(path)?;
        let schema = Schema::from_json("draft.json", schema_json.as_bytes());
        let schema = schema.map_err(|error| error.to_string())?;
        let options = ReadOptions {
            dialect,
            ..ReadOptions::new(path.display().to_string())
        };
        let reading = read_csv(schema, &bytes[..], &options).map_err(|error| error.to_string())?;
        Ok(reading.table)
    }
}

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(name)
}

#[test]
fn parquet_columns_keep_their_type_or_are_left_out_by_name() {
    let mut checked = check_folder(&folder("tables"), Some("parquet"), &Files);
    checked.extend(check_folder(&folder("situations"), Some("parquet"), &Files));
    assert_all(&checked);
}

#[test]
fn excel_cells_keep_their_type() {
    let checked: Vec<Checked> = check_folder(&folder("situations"), Some("excel"), &Files);
    assert_all(&checked);
}

#[test]
#[ignore = "slow"]
fn print_results() {
    for name in ["tables", "situations"] {
        let checked = check_folder(&folder(name), None, &Files);
        println!("{}\n", summary(name, &checked));
    }
}

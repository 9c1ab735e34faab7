//! Tables in the form `SCHEMA NUL CSV`: a table that is read, written and read again has the same codes. The file as a
//! whole is opened as a text of any kind: detection, drafting and reading with the drafted schema do not panic.

#![no_main]

use std::sync::Arc;

use fhaim_domain::{
    Dialect, OutOfRange, ReadOptions, Schema, UnlistedColumn, WriteOptions, read_csv, write_csv,
};
use fhaim_fuzz::{choice, rng};
use fhaim_intake::{Given, InferOptions, infer_schema, open_text};
use libfuzzer_sys::fuzz_target;

const SCHEMA: &str = r#"{"name": "t", "columns": [
    {"name": "a", "kind": "categorical", "categories": ["x", "y, z", "\""]},
    {"name": "b", "kind": "numeric", "min": -2.5, "max": 7, "bins": 3, "nullable": true},
    {"name": "c", "kind": "numeric", "min": 0, "max": 9, "bins": 10, "integer": true}]}"#;

fuzz_target!(|data: &[u8]| {
    let mut data = data;
    let how = choice(&mut data);
    let mut parts = data.splitn(2, |&byte| byte == 0);
    let (first, second) = (parts.next().unwrap_or(&[]), parts.next());
    let own = second.and_then(|_| Schema::from_json("fuzz.json", first).ok());
    let table = second.unwrap_or(first);
    let fixed = || Schema::from_json("fixed.json", SCHEMA.as_bytes()).expect("it is valid");
    let schema = Arc::new(own.unwrap_or_else(fixed));
    let mut options = ReadOptions::new("fuzz.csv");
    if how & 1 != 0 {
        options.out_of_range = OutOfRange::Clamp;
        options.unlisted = UnlistedColumn::LeaveOut;
    }
    if how & 2 != 0 {
        options.missing.push("NA".to_owned());
        options.dialect = Dialect::of_delimiter(b';');
    }
    if let Ok(reading) = read_csv(schema.clone(), table, &options) {
        let mut written = Vec::new();
        let writing = WriteOptions::new("again.csv");
        if write_csv(&reading.table, &mut written, &mut rng(), &writing).is_ok() {
            let again = read_csv(schema, written.as_slice(), &ReadOptions::new("again.csv"));
            let again = again.expect("a written table can be read");
            assert_eq!(again.table.columns(), reading.table.columns());
        }
    }
    draft_and_read(table);
});

/// Opens a table as the command and the page do, drafts a schema, and reads the table with it.
fn draft_and_read(table: &[u8]) {
    let open = || open_text(table, &Given::default(), |_| ()).ok();
    let Some(opened) = open() else { return };
    let dialect = opened.dialect;
    let options = InferOptions {
        dialect,
        ..InferOptions::new("fuzz.csv", "draft")
    };
    let draft = infer_schema(opened.text, &options);
    if let (Ok(draft), Some(again)) = (draft, open()) {
        assert_eq!(again.dialect, dialect);
        let options = ReadOptions {
            dialect,
            ..ReadOptions::new("fuzz.csv")
        };
        let _ = read_csv(draft.schema, again.text, &options);
    }
}

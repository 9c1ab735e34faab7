//! Tables in the form `SCHEMA NUL CSV`: a table that is read, written and read again has the same codes. The file as a
//! whole is opened as a text of any kind: detection, drafting, and reading with the drafted schema do not panic, also with all proposed rules.

#![no_main]

use std::{io::Read, sync::Arc};

use fhaim_domain::{
    Dialect, OutOfRange, ReadOptions, Schema, UnlistedColumn, WriteOptions, read_csv, write_csv,
};
use fhaim_fuzz::{choice, draft_and_read, rng};
use fhaim_intake::{Given, open_text};
use libfuzzer_sys::fuzz_target;

const SCHEMA: &str = r#"{"name": "t", "columns": [
    {"name": "a", "kind": "categorical", "categories": ["x", "y, z", "\""]},
    {"name": "b", "kind": "numeric", "min": -2.5, "max": 7, "bins": 3, "nullable": true},
    {"name": "c", "kind": "numeric", "min": 0, "max": 9, "bins": 10, "integer": true}]}"#;

/// Bytes of text that are read. A small compressed file may have very long text.
const MOST: u64 = 1 << 20;

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
    if let Ok(opened) = open_text(table, &Given::default(), |_| ()) {
        let mut text = Vec::new();
        if opened.text.take(MOST).read_to_end(&mut text).is_ok() {
            draft_and_read(&text, &opened.dialect);
        }
    }
});

//! Schemas: a schema that is read, written and read again stays the same.

#![no_main]

use fhaim_domain::{Schema, check_schema};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(schema) = Schema::from_json("fuzz.json", data) {
        let again = Schema::from_json("fuzz.json", schema.to_json().as_bytes());
        assert_eq!(again.ok().as_ref(), Some(&schema));
        for column in schema.columns() {
            (0..column.size().min(100) as u32).for_each(|code| drop(column.label(code)));
        }
        let _ = check_schema(&schema, Some(1 << 20));
    }
});

//! Tests of the formats of output tables.

use std::fs;

use crate::{CONFIG, SCHEMA, fhaim, folder, names, stderr, table};

#[test]
fn output_with_the_extension_parquet_is_parquet_with_the_same_values() {
    let folder = folder(table(60), SCHEMA);
    let run = |out: &str, seedless: &[&str]| {
        let files = ["--data", "t.csv", "--schema", "t.schema.json", "--out", out];
        let output = fhaim(folder.path(), &[&["local"], &files[..], seedless].concat());
        assert!(output.status.success(), "{}", stderr(&output));
    };
    run(
        "s.parquet",
        &["--epsilon", "10", "--rows", "40", "--report", "r.html"],
    );
    let bytes = fs::read(folder.path().join("s.parquet")).unwrap();
    assert_eq!(
        (&bytes[..4], &bytes[bytes.len() - 4..]),
        (&b"PAR1"[..], &b"PAR1"[..])
    );
    // The Parquet file is a table that commands read.
    let check = [
        "schema",
        "check",
        "t.schema.json",
        "--data",
        "s.parquet",
        "--json",
    ];
    let output = fhaim(folder.path(), &check);
    assert!(output.status.success(), "{}", stderr(&output));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["records"], 40);
}

#[test]
fn output_in_another_format_is_rejected_before_anything_is_spent() {
    let folder = folder(table(60), SCHEMA);
    for out in ["s.xlsx", "s.csv.gz"] {
        for command in ["run", "local"] {
            let files = ["--data", "t.csv", "--schema", "t.schema.json", "--out", out];
            let output = fhaim(
                folder.path(),
                &[&[command], &files[..], &["--epsilon", "1"]].concat(),
            );
            assert_eq!(output.status.code(), Some(2));
            assert!(stderr(&output).contains(".parquet"), "{}", stderr(&output));
            assert_eq!(names(folder.path()), ["t.csv", "t.schema.json"]);
            // Nothing was remembered as spent.
            assert!(!folder.path().join(CONFIG).join("memory.json").exists());
        }
    }
}

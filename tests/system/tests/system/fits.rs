//! Columns of a table that is hard to fit keep their distribution.

use std::fs;

use fhaim_kit::command::{self, stderr};
use serde_json::Value;
use tempfile::TempDir;

use super::PROGRAM;

const DATA: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/fixtures/zero-inflated.csv"
);
const SCHEMA: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/fixtures/zero-inflated.schema.json"
);

/// Returns the share of records of a CSV text whose value in a column is not zero.
fn share_of_nonzero(csv: &str, column: usize) -> f64 {
    let values: Vec<f64> = (csv.lines().skip(1))
        .map(|line| line.split(',').nth(column).unwrap().parse().unwrap())
        .collect();
    values.iter().filter(|&&value| value != 0.0).count() as f64 / values.len() as f64
}

#[test]
fn zero_inflated_columns_keep_their_share_of_nonzero_values() {
    let real = fs::read_to_string(DATA).unwrap();
    for seed in ["18", "19", "20"] {
        let folder = TempDir::new().unwrap();
        let inputs = ["local", "--yes", "--seed", seed, "--epsilon", "1"];
        let files = ["--data", DATA, "--schema", SCHEMA, "--out", "out.csv"];
        let arguments = [&inputs[..], &files, &["--json", "--quiet"]].concat();
        let output = command::run(PROGRAM, folder.path(), &arguments);
        assert!(output.status.success(), "{}", stderr(&output));
        let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
        let fit = |name: &str| summary["fit"][name].as_f64().unwrap();
        assert!(fit("loss") <= fit("measured_values"), "{}", summary["fit"]);
        assert_eq!(2.0 * fit("noise_loss"), fit("measured_values"));
        let made = fs::read_to_string(folder.path().join("out.csv")).unwrap();
        // The columns for claims, amount and second.
        for column in [0, 1, 3] {
            let [real, made] = [&real, &made].map(|csv| share_of_nonzero(csv, column));
            assert!(
                (made / real - 1.0).abs() < 0.2,
                "seed {seed}, column {column}: {made} of the records are not zero, instead of {real}"
            );
        }
    }
}

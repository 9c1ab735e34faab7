//! Tests that the amounts of an estimate are close to those of a run. They do not compare seconds, which depend on the
//! machine.

use crate::{fhaim, folder, generate, stderr};

/// Returns a table of columns with these numbers of values, and its schema. Most values equal those of the column
/// before.
fn made(sizes: &[usize], records: usize) -> (String, String) {
    let columns: Vec<String> = (sizes.iter().enumerate())
        .map(|(number, size)| {
            let values: Vec<String> = (0..*size).map(|value| format!(r#""v{value}""#)).collect();
            let values = values.join(",");
            format!(r#"{{"name":"c{number}","kind":"categorical","categories":[{values}]}}"#)
        })
        .collect();
    let schema = format!(r#"{{"name":"made","columns":[{}]}}"#, columns.join(","));
    let names: Vec<String> = (0..sizes.len())
        .map(|number| format!("c{number}"))
        .collect();
    let mut csv = names.join(",") + "\n";
    let mut state = 1_u64;
    let mut next = |below: usize| {
        // Knuth's generator. The values only need to be irregular.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % below
    };
    for _ in 0..records {
        let mut last = 0;
        let row = sizes.iter().map(|&size| {
            last = if next(10) < 6 {
                last % size
            } else {
                next(size)
            };
            format!("v{last}")
        });
        csv += &row.collect::<Vec<_>>().join(",");
        csv.push('\n');
    }
    (csv, schema)
}

/// Names of amounts, each with the factor that the estimate must be within.
type Counted = [(&'static str, f64)];

const KEY_SWITCHES: (&str, f64) = ("key_switches", 2.5);

/// Fits of small models stop by themselves, some earlier than others, so their factors are larger.
const ALL: &Counted = &[KEY_SWITCHES, ("fit_cells", 6.0), ("fit_tables", 4.0)];

/// The contents of a sole holder's upload.
const SOLE: &[&str] = &["--contribution records", "--contribution counts"];

/// Asserts that the amounts of runs with each of these flags are close to the estimated ones.
fn assert_counted(flags: &[&str], counted: &Counted, sizes: &[usize], records: usize) {
    let (csv, schema) = made(sizes, records);
    for flags in flags {
        let folder = folder(&csv, &schema);
        let more = ["--epsilon", "1", "--model-mb", "1", "--json"];
        let more: Vec<&str> = more.into_iter().chain(flags.split(' ')).collect();
        let output = fhaim(folder.path(), &generate("run", &more));
        assert!(output.status.success(), "{}", stderr(&output));
        let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let encryption = &summary["encryption"];
        let (expected, done) = (&encryption["estimate"]["work"], &encryption["done"]);
        let uploaded = encryption["upload_ciphertexts"].as_f64();
        assert_eq!(expected["encryptions"].as_f64(), uploaded);
        let bytes = &encryption["estimate"]["upload_bytes"];
        assert_eq!(*bytes, encryption["upload_bytes"]);
        for &(name, factor) in counted {
            let [expected, done] = [expected, done].map(|of| of[name].as_f64().unwrap());
            let ratio = expected / done;
            assert!(
                (1.0 / factor..=factor).contains(&ratio),
                "{sizes:?}, {records} records, {flags}: {name} {done}, expected {expected}"
            );
        }
    }
}

#[test]
fn estimate_for_few_records_matches_the_run() {
    assert_counted(SOLE, ALL, &[3, 5, 2, 4, 7, 2], 200);
}

#[test]
fn estimate_for_many_records_in_few_columns_matches_the_run() {
    assert_counted(SOLE, ALL, &[3, 4, 2, 4, 3], 20_000);
}

#[test]
fn estimate_for_wide_columns_matches_the_run() {
    assert_counted(SOLE, ALL, &[12, 20, 9, 15], 6_000);
}

#[test]
fn estimate_for_many_columns_matches_the_run() {
    // Fits are not compared: depending on the noise, the model is the chain or a hundred times larger.
    assert_counted(SOLE, &[KEY_SWITCHES], &[2; 14], 6_000);
}

#[test]
#[ignore = "slow"]
fn estimate_for_several_holders_matches_the_run() {
    let flags = [
        "--holders 3 --contribution records",
        "--holders 3 --contribution counts",
        "--holders 2 --by columns",
    ];
    assert_counted(&flags, &[KEY_SWITCHES], &[12, 20, 9, 15], 6_000);
}

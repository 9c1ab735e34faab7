//! What an estimate counts is near to what a run does. Seconds are not compared: they are the machine's.

use crate::{fhaim, folder, generate, stderr};

/// A table of columns of so many values each, which mostly follow the one before; and its schema.
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
        // Knuth's generator: what it draws need only not be regular.
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

/// What is counted, and the factor that it is expected within.
type Counted = [(&'static str, f64)];

const KEY_SWITCHES: (&str, f64) = ("key_switches", 2.5);

/// Fits of models as small as these end by themselves, some sooner than others.
const ALL: &Counted = &[KEY_SWITCHES, ("fit_cells", 6.0), ("fit_tables", 4.0)];

/// What a sole holder can upload.
const SOLE: &[&str] = &["--contribution records", "--contribution counts"];

/// Asserts that the counts of runs with each of these flags are near the expected ones.
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
fn of_few_records() {
    assert_counted(SOLE, ALL, &[3, 5, 2, 4, 7, 2], 200);
}

#[test]
fn of_many_records_in_few_columns() {
    assert_counted(SOLE, ALL, &[3, 4, 2, 4, 3], 20_000);
}

#[test]
fn of_wide_columns() {
    assert_counted(SOLE, ALL, &[12, 20, 9, 15], 6_000);
}

#[test]
fn of_many_columns() {
    // The noise decides whether the model is the chain or a hundred times as large: fits are not compared.
    assert_counted(SOLE, &[KEY_SWITCHES], &[2; 14], 6_000);
}

#[test]
fn of_several_holders() {
    let flags = [
        "--holders 3 --contribution records",
        "--holders 3 --contribution counts",
        "--holders 2 --by columns",
    ];
    assert_counted(&flags, &[KEY_SWITCHES], &[12, 20, 9, 15], 6_000);
}

//! Reads the published tables from the folder that FHAIM_DATA_DIR names.
#![allow(clippy::unwrap_used)]

use std::{env, fs, path::PathBuf};

use fhaim_domain::{ReadOptions, Schema, check_schema, read_csv};

fn data_dir() -> PathBuf {
    env::var_os("FHAIM_DATA_DIR")
        .map(PathBuf::from)
        .expect("set FHAIM_DATA_DIR to the folder of the published tables")
}

#[test]
#[ignore = "needs FHAIM_DATA_DIR"]
fn published_tables_have_the_known_sizes() {
    let dir = data_dir();
    let tables = [
        ("breast-cancer", "breast-cancer", 286, 1_278),
        ("compas", "compas", 7_214, 201),
        ("diabetes", "diabetes", 768, 2_960),
        ("adult-32", "adult", 48_842, 31_066),
        ("adult", "adult", 48_842, 148_137),
    ];
    for (schema, table, records, cells) in tables {
        let path = dir.join(format!("{schema}.schema.json"));
        let json = fs::read(&path).unwrap();
        let schema = Schema::from_json(schema, &json).unwrap();
        assert_eq!(check_schema(&schema, None).pair_cells, cells, "{table}");
        let again = Schema::from_json(table, schema.to_json().as_bytes()).unwrap();
        assert_eq!(again, schema);
        let given: serde_json::Value = serde_json::from_slice(&json).unwrap();
        let written: serde_json::Value = serde_json::from_str(&schema.to_json()).unwrap();
        assert_eq!(written, given, "{table}");
        let file = format!("{table}.csv");
        let input = fs::File::open(dir.join(&file)).unwrap();
        let reading = read_csv(schema, input, &ReadOptions::new(file)).unwrap();
        assert_eq!(reading.table.records(), records);
        assert!(
            reading
                .adjusted
                .iter()
                .all(|adjusted| adjusted.clamped + adjusted.other == 0)
        );
    }
}

//! Tests of benches on small tables.

use tempfile::TempDir;

use crate::{SCHEMA, folder, lab, stderr, table};

#[test]
fn mechanisms_are_compared_on_a_users_own_table() {
    let folder = folder(table(200), SCHEMA);
    let bench = "bench mechanisms --data t.csv --schema t.schema.json --seeds 2 --epsilon 1 \
                 --epsilon 10 --model-mb 1 --model-mb 8 --mechanism one-ways --json";
    let output = lab(folder.path(), &bench.split_whitespace().collect::<Vec<_>>());
    assert!(output.status.success(), "{}", stderr(&output));
    let rows: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(rows.len(), 4);
    for row in rows {
        assert_eq!((&row["dataset"], &row["seeds"]), (&"t".into(), &2.into()));
        let error = |name: &str| row[name]["mean"].as_f64().unwrap();
        assert!(error("worst_pair") >= error("pairs"));
        assert!(error("sampled_pairs") > 0.0 && error("sampled_pairs") < 2.0);
    }
    let unpaired = "bench mechanisms --data t.csv";
    let output = lab(folder.path(), &unpaired.split(' ').collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("every table needs its schema"));
}

#[test]
fn bench_of_one_seed_has_one_row_without_standard_error() {
    let folder = folder(table(200), SCHEMA);
    let bench = "bench mechanisms --data t.csv --schema t.schema.json --seeds 1 --epsilon 1 \
                 --model-mb 1 --mechanism staged";
    let bench: Vec<_> = bench.split_whitespace().collect();
    let output = lab(folder.path(), &bench);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<_> = text.lines().filter(|line| line.starts_with("t ")).collect();
    assert_eq!(rows.len(), 1, "{text}");
    assert!(rows[0].contains(" staged  ") && rows[0].contains(" (-) "));
    let output = lab(folder.path(), &[&bench[..], &["--json"]].concat());
    let rows: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert!(rows[0]["pairs"]["standard_error"].is_null());
    let none = [&bench[..], &["--mechanism", "nothing"]].concat();
    let output = lab(folder.path(), &none);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("no mechanism has \"nothing\""));
}

#[test]
fn incomplete_name_of_a_federated_method_is_rejected() {
    let folder = folder(table(200), SCHEMA);
    let output = lab(
        folder.path(),
        &["bench", "federated", "t", "--method", "aug"],
    );
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("unknown method \"aug\""));
}

#[test]
fn bench_without_its_tables_names_the_missing_variable() {
    let folder = TempDir::new().unwrap();
    for (bench, variable) in [
        ("compute", "FHAIM_DATA_DIR"),
        ("mechanisms", "FHAIM_DATA_DIR"),
        ("pgm", "FHAIM_REFERENCE_DIR"),
    ] {
        let output = lab(folder.path(), &["bench", bench]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(&format!("{variable} is not set")));
    }
}

/// The bench reports costs of the last fit of a run and of a fit to generated measurements, and of queries of both
/// models.
#[test]
fn bench_of_fits_reports_costs_of_fits_and_queries() {
    let folder = folder(table(200), SCHEMA);
    let flags = "bench pgm --data t.csv --schema t.schema.json --attributes 12 --model-mb 0.1 --epsilon 10 \
                 --records 500 --steps 50 --json";
    let flags: Vec<&str> = flags.split_whitespace().collect();
    let output = lab(folder.path(), &flags);
    assert!(output.status.success(), "{}", stderr(&output));
    let rows: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    let [run, made] = rows.as_slice() else {
        panic!("{rows:?}");
    };
    assert_eq!(
        (&run["table"], &run["epsilon"]),
        (&"t".into(), &10.0.into())
    );
    assert_eq!(made["attributes"], 12);
    assert!(made["fit"]["steps"].as_u64().unwrap() <= 50);
    for row in [run, made] {
        let cells = row["fit"]["cells"].as_u64().unwrap();
        // Every attribute has at least two values, and one cell for each.
        assert!(cells >= 2 * row["attributes"].as_u64().unwrap());
        assert!(row["model_bytes"].as_u64().unwrap() >= 8 * cells);
        let (fit, asked) = (&row["fit"], &row["asked"]);
        assert!(fit["steps"].as_u64().unwrap() > 0);
        assert!(fit["cells_passed"].as_u64().unwrap() > cells);
        assert_eq!(asked["records"], 500);
        let fit = ["seconds", "limit_seconds"].map(|name| &fit[name]);
        let asked = ["sample_seconds", "density_seconds", "csv_seconds"].map(|name| &asked[name]);
        for seconds in fit.into_iter().chain(asked) {
            assert!(seconds.as_f64().unwrap() > 0.0);
        }
    }
}

/// The results of the product's bench are printed as JSON.
#[test]
fn bench_computes_a_table_under_encryption() {
    let folder = folder(table(200), SCHEMA);
    let bench = "bench compute --data t.csv --schema t.schema.json --json";
    let output = lab(folder.path(), &bench.split(' ').collect::<Vec<_>>());
    assert!(output.status.success(), "{}", stderr(&output));
    let rows: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&rows[0]["dataset"], &rows[0]["records"]),
        (&"t".into(), &200.into())
    );
    assert!(rows[0]["noise_bits_left"].as_f64().unwrap() > 0.0);
}

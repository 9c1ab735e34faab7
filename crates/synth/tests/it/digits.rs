//! Compares synthetic numbers with the real values themselves, not with bins, for columns with
//! digits.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::path::Path;

use fhaim_domain::{
    RawColumn, RawValues, ReadOptions, Schema, Table, WriteOptions, read_csv, write_csv,
};
use fhaim_dp::accounting;
use fhaim_intake::{InferOptions, infer_schema};
use fhaim_release::MechanismJob;
use fhaim_synth::{MechanismName, RunOutcome};
use rand::{Rng, SeedableRng, rngs::StdRng};

/// Returns a table with a spike, a skewed value, working hours, and a column that they depend on.
fn skewed(records: usize) -> String {
    let mut rng = StdRng::seed_from_u64(7);
    let mut csv = "gain,lab,hours,old\n".to_owned();
    for _ in 0..records {
        let old = rng.random_bool(0.4);
        let gain = match rng.random_bool(if old { 0.85 } else { 0.96 }) {
            true => 0,
            false => [114, 2407, 3103, 5178, 7298, 7688, 15024, 99_999][rng.random_range(0..8)],
        };
        let lab = (-rng.random::<f64>().max(1e-9).ln() * if old { 30.0 } else { 12.0 }).min(400.0);
        let hours = match rng.random_range(0..100) {
            0..48 => 40,
            48..60 => 50,
            _ => rng.random_range(1..99),
        };
        csv.push_str(&format!(
            "{gain},{lab:.1},{hours},{}\n",
            if old { "yes" } else { "no" }
        ));
    }
    csv
}

const SCHEMA: &str = r#"{"name": "skewed", "columns": [
    {"name": "gain", "kind": "number", "integer": true, "digits": 8,
     "special": [0, 114, 2407, 3103, 5178, 7298, 7688, 15024, 99999], "edges": [1, 5000, 99998]},
    {"name": "lab", "kind": "number", "decimals": 1, "digits": 32,
     "edges": [0, 2, 4, 8, 12, 16, 24, 32, 64, 128, 400]},
    {"name": "hours", "kind": "number", "integer": true, "special": [40],
     "min": 1, "max": 98, "bins": 10, "digits": 10},
    {"name": "old", "kind": "categorical", "categories": ["no", "yes"]}]}"#;

fn read(schema: &Schema, csv: &[u8]) -> (Table, Vec<RawColumn>) {
    let mut options = ReadOptions::new("t.csv");
    options.keep_values = true;
    let reading = read_csv(schema.clone(), csv, &options).unwrap();
    (reading.table, reading.values)
}

fn run(mechanism: &str, table: &Table, epsilon: f64, seed: u64) -> RunOutcome {
    let rho = accounting::rho(epsilon, 1e-9).unwrap().share(1);
    let job = MechanismJob::new(table.domain().clone(), rho, table.records() as u64);
    let mechanism: MechanismName = mechanism.parse().unwrap();
    let mut rng = StdRng::seed_from_u64(seed);
    mechanism
        .run_in_the_clear(table, &job, &mut rng, &mut |_| {})
        .unwrap()
}

/// Returns the values of a synthetic table with the same number of records.
fn synthetic(table: &Table, outcome: &RunOutcome) -> Vec<RawColumn> {
    let mut rng = StdRng::seed_from_u64(3);
    let columns = outcome.model.sample(table.records(), &mut rng);
    let made = Table::new(table.shared_schema(), columns).unwrap();
    let mut csv = Vec::new();
    write_csv(&made, &mut csv, &mut rng, &WriteOptions::new("s.csv")).unwrap();
    read(table.schema(), &csv).1
}

/// Returns half the L1 distance of two columns' values.
fn total_variation(one: &RawColumn, two: &RawColumn) -> f64 {
    let texts = |column: &RawColumn| -> Vec<String> {
        match &column.values {
            RawValues::Numbers(values) => values.iter().map(|v| format!("{v:?}")).collect(),
            RawValues::Texts { values, names } => values
                .iter()
                .map(|v| format!("{:?}", v.map(|v| &names[v as usize])))
                .collect(),
        }
    };
    let mut shares: HashMap<String, f64> = HashMap::new();
    for (column, sign) in [(one, 1.0), (two, -1.0)] {
        let texts = texts(column);
        let share = sign / texts.len() as f64;
        texts
            .into_iter()
            .for_each(|text| *shares.entry(text).or_default() += share);
    }
    shares.values().map(|share| share.abs()).sum::<f64>() / 2.0
}

fn quartiles(column: &RawColumn) -> [f64; 3] {
    let RawValues::Numbers(values) = &column.values else {
        panic!("numbers")
    };
    let mut values: Vec<f64> = values.iter().flatten().copied().collect();
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[values.len() * quarter / 4])
}

#[test]
fn spikes_and_quartiles_of_skewed_values_are_kept() {
    let schema = Schema::from_json("s.json", SCHEMA.as_bytes()).unwrap();
    let (table, real) = read(&schema, skewed(20_000).as_bytes());
    for (epsilon, bound) in [(10.0, 0.02), (1.0, 0.06)] {
        let made = synthetic(&table, &run("staged", &table, epsilon, 5));
        for column in [0, 2] {
            let distance = total_variation(&real[column], &made[column]);
            println!("epsilon {epsilon}, {}: {distance:.4}", real[column].name);
            assert!(
                distance < bound,
                "{} at {epsilon}: {distance}",
                real[column].name
            );
        }
        let (before, after) = (quartiles(&real[1]), quartiles(&made[1]));
        println!("quartiles {before:?} {after:?}");
        for (before, after) in before.iter().zip(after) {
            assert!((after / before - 1.0).abs() < 0.05, "{before} {after}");
        }
    }
}

#[test]
fn every_mechanism_draws_almost_only_possible_digits() {
    let schema = Schema::from_json("s.json", SCHEMA.as_bytes()).unwrap();
    let (table, _) = read(&schema, skewed(2_000).as_bytes());
    for mechanism in ["staged", "one-ways", "aim", "mst", "fhaim-l2"] {
        let outcome = run(mechanism, &table, 10.0, 5);
        let columns = outcome.model.sample(2_000, &mut StdRng::seed_from_u64(3));
        for digit in table.domain().digits() {
            let (coarse, fine) = (&columns[digit.coarse()], &columns[digit.fine()]);
            let impossible = coarse.iter().zip(fine);
            let impossible = impossible
                .filter(|&(&c, &f)| f >= digit.parts()[c as usize])
                .count();
            println!(
                "{mechanism}: {impossible} impossible of digit {}",
                digit.fine()
            );
            // With `aim`, twelve seeds give 8 to 45, and 25 on average, with either kind of passes
            // in its fits.
            assert!(impossible < 60, "{mechanism}: {impossible}");
        }
    }
}

/// Reproduces the measure of docs/BENCHMARKS.md: the drafted adult table, compared by its values.
#[test]
#[ignore = "needs FHAIM_DATA_DIR"]
fn adult_values_are_kept_with_a_drafted_schema() {
    let folder = std::env::var_os("FHAIM_DATA_DIR")
        .expect("FHAIM_DATA_DIR names the folder of the published tables");
    let csv = std::fs::read(Path::new(&folder).join("adult.csv")).unwrap();
    let options = InferOptions::new("adult.csv", "adult");
    let schema = infer_schema(&csv[..], &options).unwrap().schema;
    println!(
        "{} one-hot columns of {:?}",
        schema.domain().columns(),
        schema.domain().sizes()
    );
    let (table, real) = read(&schema, &csv);
    for (epsilon, bound) in [(10.0, 0.05), (1.0, 0.1)] {
        let made = synthetic(&table, &run("staged", &table, epsilon, 5));
        for name in [
            "capital-gain",
            "capital-loss",
            "native-country",
            "hours-per-week",
            "age",
        ] {
            let of = |columns: &[RawColumn]| columns.iter().find(|c| c.name == name).cloned();
            let (real, made) = (of(&real).unwrap(), of(&made).unwrap());
            let distance = total_variation(&real, &made);
            println!("epsilon {epsilon}, {name}: {distance:.4}");
            assert!(distance < bound, "{name} at {epsilon}: {distance}");
        }
    }
}

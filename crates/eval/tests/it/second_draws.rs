//! Tests that second samples of the same population have hardly any findings.
#![allow(clippy::unwrap_used)]

use fhaim_eval::Check;
use rand::{Rng, SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha8Rng;

use crate::cases::{SCHEMA, csv, report, stays};

/// Number of samples of each family.
const SEEDS: u64 = 20;

/// Compares pairs of samples, and returns the number of reports without findings.
fn clean(name: &str, schema: &str, mut samples: impl FnMut(u64) -> [String; 2]) -> usize {
    let mut clean = 0;
    for seed in 0..SEEDS {
        let [real, synthetic] = samples(seed);
        let findings = report(schema, &real, &synthetic).assessment.findings;
        let told: Vec<(Check, &str)> = findings
            .iter()
            .map(|f| (f.check, f.text.as_str()))
            .collect();
        if told.is_empty() {
            clean += 1;
        } else {
            println!("{name} {seed}: {told:?}");
        }
    }
    println!("{name}: {clean} of {SEEDS} without findings");
    clean
}

/// Splits the records of a published table at random into two halves.
fn halves(name: &str) -> usize {
    let folder = std::path::PathBuf::from(std::env::var_os("FHAIM_DATA_DIR").unwrap());
    let read = |end: &str| std::fs::read_to_string(folder.join(format!("{name}.{end}"))).unwrap();
    let (text, schema) = (read("csv"), read("schema.json"));
    let (header, records) = text.split_once('\n').unwrap();
    clean(name, &schema, |seed| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut records: Vec<&str> = records.lines().collect();
        records.shuffle(&mut rng);
        let (one, two) = records.split_at(records.len() / 2);
        [one, two].map(|half| format!("{header}\n{}\n", half.join("\n")))
    })
}

fn categorical(name: &str, values: usize) -> String {
    let list: Vec<String> = (0..values).map(|i| format!("\"{i}\"")).collect();
    format!(
        r#"{{"name":"{name}","kind":"categorical","categories":[{}]}}"#,
        list.join(",")
    )
}

/// Returns a table of categories with skewed shares, which depend on a hidden class.
fn categories(columns: usize, records: usize, rng: &mut ChaCha8Rng) -> String {
    let names: Vec<String> = (0..columns).map(|c| format!("c{c}")).collect();
    let mut text = names.join(",") + "\n";
    for _ in 0..records {
        let class = rng.random_range(0..3);
        let row: Vec<String> = (0..columns)
            .map(|column| {
                let values = 2 + column * 3 % 11;
                let skewed = (values as f64 * rng.random::<f64>().powi(3)) as usize;
                ((skewed + class * (column % 2)) % values).to_string()
            })
            .collect();
        text += &(row.join(",") + "\n");
    }
    text
}

fn category_schema(columns: usize) -> String {
    let columns: Vec<String> = (0..columns)
        .map(|c| categorical(&format!("c{c}"), 2 + c * 3 % 11))
        .collect();
    format!(
        r#"{{"name":"t","target":"c0","columns":[{}]}}"#,
        columns.join(",")
    )
}

/// Returns a table of numbers with heavy tails, decimals and gaps.
fn numbers(records: usize, rng: &mut ChaCha8Rng) -> String {
    let mut text = "a,b,c,d\n".to_owned();
    for _ in 0..records {
        let heavy = (1.0 / (1.0 - rng.random::<f64>())).min(900.0);
        let even: f64 = rng.random::<f64>() * 100.0;
        let zero = if rng.random_bool(0.6) {
            0.0
        } else {
            even * heavy
        };
        let missing = if rng.random_bool(0.1) {
            String::new()
        } else {
            format!("{:.1}", even)
        };
        text += &format!(
            "{heavy:.2},{missing},{:.0},{:.2}\n",
            even + heavy,
            zero.min(90_000.0)
        );
    }
    text
}

const NUMBERS: &str = r#"{"name":"t","columns":[
    {"name":"a","kind":"number","decimals":2,"min":0,"max":1000,"bins":50,"digits":50},
    {"name":"b","kind":"number","decimals":1,"min":0,"max":100,"bins":20,"digits":20,"nullable":true},
    {"name":"c","kind":"number","integer":true,"min":0,"max":1100,"bins":50,"digits":22},
    {"name":"d","kind":"number","decimals":2,"min":0,"max":90000,"bins":100,"digits":100}]}"#;

fn pair(mut table: impl FnMut(&mut ChaCha8Rng) -> String) -> impl FnMut(u64) -> [String; 2] {
    move |seed| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        [table(&mut rng), table(&mut rng)]
    }
}

#[test]
#[ignore = "slow; needs FHAIM_DATA_DIR"]
fn halves_of_published_tables_have_no_findings() {
    let clean: usize = ["adult", "compas", "diabetes", "breast-cancer"]
        .map(halves)
        .iter()
        .sum();
    assert!(clean >= 76, "{clean} of 80");
}

#[test]
#[ignore = "slow"]
fn second_draws_of_generated_tables_have_no_findings() {
    let mut all = Vec::new();
    for records in [300, 3_000] {
        let stays = |seed: u64| [seed, seed + 9_000].map(|seed| csv(&stays(records, seed)));
        all.push(clean(&format!("stays, {records}"), SCHEMA, stays));
        let name = format!("12 categories, {records}");
        all.push(clean(
            &name,
            &category_schema(12),
            pair(|rng| categories(12, records, rng)),
        ));
        all.push(clean(
            &format!("numbers, {records}"),
            NUMBERS,
            pair(|rng| numbers(records, rng)),
        ));
    }
    let name = "30 categories, 1000";
    all.push(clean(
        name,
        &category_schema(30),
        pair(|rng| categories(30, 1_000, rng)),
    ));
    let name = "2 categories, 500";
    all.push(clean(
        name,
        &category_schema(2),
        pair(|rng| categories(2, 500, rng)),
    ));
    let (clean, of) = (all.iter().sum::<usize>(), all.len() as u64 * SEEDS);
    assert!(clean as f64 >= 0.95 * of as f64, "{clean} of {of}");
}

//! Checks samples with constraints, drawn from models that have not learned the constraints.
#![allow(clippy::unwrap_used)]

use fhaim_domain::{ReadOptions, Schema, Table, WriteOptions, read_csv, write_csv};
use fhaim_dp::accounting;
use fhaim_release::MechanismJob;
use fhaim_synth::{Error, FittedModel, MechanismName, sample_allowed};
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::sync::Arc;

const SCHEMA: &str = r#"{"name": "stays", "columns": [
    {"name": "first", "kind": "number", "integer": true, "min": 0, "max": 99, "bins": 10, "digits": 10},
    {"name": "last", "kind": "number", "integer": true, "min": 0, "max": 99, "bins": 10, "digits": 10},
    {"name": "sex", "kind": "categorical", "categories": ["f", "m"]},
    {"name": "ward", "kind": "categorical", "categories": ["heart", "birth"]}],
    "constraints": [{"at_most": ["first", "last"]}, {"never": {"sex": "m", "ward": "birth"}}]}"#;

/// Returns a model of independent columns, which knows nothing of the dependences between them.
fn model(table: &Table) -> Arc<dyn FittedModel> {
    let rho = accounting::rho(10.0, 1e-9).unwrap();
    let job = MechanismJob::new(table.domain().clone(), rho, table.records() as u64);
    let mechanism: MechanismName = "one-ways".parse().unwrap();
    let mut rng = StdRng::seed_from_u64(1);
    let run = mechanism.run_in_the_clear(table, &job, &mut rng, &mut |_| {});
    run.unwrap().model
}

fn table(schema: &str, records: usize) -> Table {
    let mut rng = StdRng::seed_from_u64(5);
    let mut csv = "first,last,sex,ward\n".to_owned();
    for _ in 0..records {
        let first = rng.random_range(0..100);
        let last = rng.random_range(first..100);
        let (sex, ward) = [("f", "birth"), ("f", "heart"), ("m", "heart")][rng.random_range(0..3)];
        csv.push_str(&format!("{first},{last},{sex},{ward}\n"));
    }
    let schema = Schema::from_json("s.json", schema.as_bytes()).unwrap();
    read_csv(schema, csv.as_bytes(), &ReadOptions::new("t.csv"))
        .unwrap()
        .table
}

#[test]
fn constrained_samples_satisfy_constraints_that_the_model_does_not_know() {
    let table = table(SCHEMA, 4_000);
    let model = model(&table);
    let mut rng = StdRng::seed_from_u64(2);
    let free = model.sample(2_000, &mut rng);
    let breaks = (0..2_000)
        .filter(|&row| !table.schema().allows(&|a| free[a][row]))
        .count();
    assert!(
        breaks > 400,
        "the model must not satisfy the constraints by itself: {breaks}"
    );
    let sampled = sample_allowed(model.as_ref(), table.schema(), 2_000, &mut rng).unwrap();
    assert!((0.2..0.8).contains(&sampled.allowed), "{}", sampled.allowed);
    let drawn = Table::new(table.shared_schema(), sampled.columns).unwrap();
    assert_eq!(drawn.records(), 2_000);
    let mut csv = Vec::new();
    write_csv(&drawn, &mut csv, &mut rng, &WriteOptions::new("d.csv")).unwrap();
    let again = read_csv(table.shared_schema(), &csv[..], &ReadOptions::new("d.csv")).unwrap();
    assert_eq!(again.broken, [0, 0]);
    // The distribution is the model's, conditioned on the constraints.
    let text = String::from_utf8(csv).unwrap();
    let men = text
        .lines()
        .filter(|line| line.split(',').nth(2) == Some("m"));
    let share = men.count() as f64 / 2_000.0;
    // P(m | not (m and birth)) of independent sex (1/3 m) and ward (1/3 birth): (2/9) / (8/9).
    assert!((share - 0.25).abs() < 0.05, "{share}");
}

#[test]
fn sampling_is_unchanged_without_constraints_and_fails_if_nothing_is_allowed() {
    let free = SCHEMA
        .split_once(",\n    \"constraints\"")
        .unwrap()
        .0
        .to_owned()
        + "}";
    let table = table(&free, 500);
    let model = model(&table);
    let sampled = sample_allowed(
        model.as_ref(),
        table.schema(),
        300,
        &mut StdRng::seed_from_u64(3),
    );
    let sampled = sampled.unwrap();
    assert_eq!(
        sampled.columns,
        model.sample(300, &mut StdRng::seed_from_u64(3))
    );
    assert_eq!(sampled.allowed, 1.0);
    // The constraints forbid all combinations of sex and ward.
    let pairs = ["f", "m"].map(|sex| {
        ["heart", "birth"]
            .map(|ward| format!(r#"{{"never": {{"sex": "{sex}", "ward": "{ward}"}}}}"#))
            .join(",")
    });
    let nothing = free.trim_end_matches('}').to_owned()
        + &format!(", \"constraints\": [{}]}}", pairs.join(","));
    let schema = Schema::from_json("s.json", nothing.as_bytes()).unwrap();
    let refused = sample_allowed(model.as_ref(), &schema, 10, &mut StdRng::seed_from_u64(3));
    assert!(matches!(refused, Err(Error::Disallowed { kept: 0, drawn }) if drawn >= 10_000));
}

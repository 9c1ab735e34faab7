//! Compares `staged` with AIM on tables whose attributes depend on one another along a tree. AIM is
//! good at these, because it reads the exact marginals to choose pairs.
#![allow(clippy::unwrap_used)]

use fhaim_domain::{Schema, Table};
use fhaim_dp::accounting;
use fhaim_release::MechanismJob;
use fhaim_synth::{Aim, AimOptions, Mechanism, Staged};
use rand::{Rng, SeedableRng, rngs::StdRng};

/// Returns a table of `attributes` attributes of `size` categories. Each attribute has the permuted
/// value of a random earlier one, or, with a probability of one in four, an independent value.
fn tree(attributes: usize, size: u32, records: usize) -> Table {
    let mut rng = StdRng::seed_from_u64(5);
    let categories: Vec<String> = (0..size).map(|i| format!(r#""{i}""#)).collect();
    let categories = categories.join(", ");
    let column = |i: usize| {
        format!(r#"{{"name": "a{i}", "kind": "categorical", "categories": [{categories}]}}"#)
    };
    let columns: Vec<String> = (0..attributes).map(column).collect();
    let json = format!(r#"{{"name": "tree", "columns": [{}]}}"#, columns.join(", "));
    let schema = Schema::from_json("tree", json.as_bytes()).unwrap();
    let mut columns: Vec<Vec<u32>> = Vec::new();
    for i in 0..attributes {
        let parent = rng.random_range(0..i.max(1));
        let shift = rng.random_range(0..size);
        let column = (0..records).map(|record| match columns.get(parent) {
            Some(parent) if rng.random::<f64>() < 0.75 => (parent[record] * 5 + shift) % size,
            _ => rng.random_range(0..size).min(rng.random_range(0..size)),
        });
        let column = column.collect();
        columns.push(column);
    }
    Table::new(schema, columns).unwrap()
}

/// Returns the mean workload error of four runs at epsilon 1, each on its own 80% of the records.
/// The workload error is the mean over all pairs of the L1 distance between the shares of those
/// records and the model's.
fn error(table: &Table, mechanism: &dyn Mechanism) -> f64 {
    let pairs = table.domain().pairs();
    let run = |seed| {
        let mut rng = StdRng::seed_from_u64(seed);
        let (seen, _) = table.split(table.records() * 4 / 5, &mut rng).unwrap();
        let rho = accounting::rho(1.0, 1e-9).unwrap();
        let mut job = MechanismJob::new(table.domain().clone(), rho, seen.records() as u64);
        job.model_bytes = 500_000;
        let outcome = mechanism.run_in_the_clear(&seen, &job, &mut rng, &mut |_| {});
        let model = outcome.unwrap().model;
        let (records, total) = (seen.records() as f64, model.total());
        let marginals = model.marginals().unwrap().marginals_of(&pairs).unwrap();
        let distances = pairs.iter().zip(&marginals).map(|(pair, marginal)| {
            let counts = seen.counts(pair).unwrap();
            let cells = counts.iter().zip(marginal);
            let distance = cells.map(|(&m, mu)| (m as f64 / records - mu / total).abs());
            distance.sum::<f64>()
        });
        distances.sum::<f64>() / pairs.len() as f64
    };
    (0..4).map(run).sum::<f64>() / 4.0
}

#[test]
fn staged_is_nearly_as_accurate_as_aim_on_a_tree() {
    let table = tree(7, 7, 6000);
    let aim = Aim::new(AimOptions {
        rounds_per_attribute: 4.0,
        ..AimOptions::default()
    });
    let (staged, aim) = (
        error(&table, &Staged::default()),
        error(&table, &aim.unwrap()),
    );
    println!("staged {staged:.4}, aim {aim:.4}");
    assert!(staged < 1.1 * aim, "staged {staged}, aim {aim}");
}

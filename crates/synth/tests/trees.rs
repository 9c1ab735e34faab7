//! Tables whose attributes depend on one another along a tree: what AIM, which reads the exact
//! marginals to choose, is good at.
#![allow(clippy::unwrap_used)]

use fhaim_domain::{Schema, Table};
use fhaim_synth::bench::{Contender, Setting, mean_and_error, trial};
use rand::{Rng, SeedableRng, rngs::StdRng};

/// A table of `attributes` attributes of `size` categories: each has the value, permuted, of a
/// random one before it, or with one chance in four a value of its own.
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

/// Mean workload error at epsilon 1.
fn error(table: &Table, mechanism: &str) -> f64 {
    let mut rows = Contender::table_rows().into_iter();
    let (_, contender) = rows.find(|(name, _)| *name == mechanism).unwrap();
    let setting = Setting {
        epsilon: 1.0,
        delta: 1e-9,
        model_bytes: 500_000,
    };
    let run = |seed| trial(table, &contender, &setting, seed).unwrap().error;
    mean_and_error(&(0..4).map(run).collect::<Vec<_>>()).0
}

#[test]
fn staged_keeps_up_with_aim() {
    let table = tree(7, 7, 6000);
    let (staged, aim) = (error(&table, "staged"), error(&table, "aim, T = 4d"));
    println!("staged {staged:.4}, aim {aim:.4}");
    assert!(staged < 1.1 * aim, "staged {staged}, aim {aim}");
}

//! What a run is expected to ask for is near to what it asks for.
#![allow(clippy::unwrap_used)]

use fhaim_domain::{Schema, Table};
use fhaim_dp::Rho;
use fhaim_release::{Job, Run};
use fhaim_synth::{ExpectedBatch, Mechanism, PlaintextSource, Release, Staged, drive};
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::collections::BTreeSet;

/// Epsilon 1 at delta 1e-9.
const RHO: f64 = 0.01497;

/// A table whose attributes, of these sizes, are mostly what the one before says.
fn table(sizes: &[usize], records: usize) -> Table {
    let mut rng = StdRng::seed_from_u64(7);
    let column = |(number, size): (usize, &usize)| {
        let categories: Vec<String> = (0..*size).map(|value| format!("\"{value}\"")).collect();
        format!(
            r#"{{"name": "a{number}", "kind": "categorical", "categories": [{}]}}"#,
            categories.join(", ")
        )
    };
    let columns: Vec<String> = sizes.iter().enumerate().map(column).collect();
    let json = format!(
        r#"{{"name": "chain", "columns": [{}]}}"#,
        columns.join(", ")
    );
    let schema = Schema::from_json("chain", json.as_bytes()).unwrap();
    let mut codes: Vec<Vec<u32>> = vec![Vec::new(); sizes.len()];
    for _ in 0..records {
        let mut last = 0;
        for (column, &size) in codes.iter_mut().zip(sizes) {
            let size = size as u32;
            let own = if rng.random_bool(0.6) {
                last % size
            } else {
                rng.random_range(0..size)
            };
            column.push(own);
            last = own;
        }
    }
    Table::new(schema, codes).unwrap()
}

/// Cells and different variances of each batch that a run asked for, and what was expected.
fn both(table: &Table) -> Vec<([usize; 2], ExpectedBatch)> {
    let job = Job::new(
        table.domain().clone(),
        Rho::from_f64_down(RHO).unwrap(),
        8192,
    );
    let mechanism = Staged::recommended();
    let expected = mechanism.expected(&job, table.records()).unwrap();
    assert!((0.0..=1.0).contains(&expected.model_share));
    let run = Run::new(mechanism.start(job.clone()).unwrap(), job, Vec::new()).unwrap();
    let mut rng = StdRng::seed_from_u64(8);
    let mut source = PlaintextSource::with_rng(table, &mut rng);
    let outcome = drive(run, &mut source, &mut |_| ()).unwrap();
    let batches = outcome.releases.chunk_by(|a, b| a.phase == b.phase);
    let asked = batches.map(|batch: &[Release]| {
        let cells = batch
            .iter()
            .map(|release| release.request.statistic.cells());
        let variances = batch.iter().map(|release| release.request.variance_units);
        [cells.sum(), variances.collect::<BTreeSet<u64>>().len()]
    });
    let asked: Vec<[usize; 2]> = asked.collect();
    assert_eq!(
        asked.len(),
        expected.batches.len(),
        "{asked:?}, {expected:?}"
    );
    asked.into_iter().zip(expected.batches).collect()
}

fn within(factor: f64, one: usize, other: usize) -> bool {
    let ratio = one.max(1) as f64 / other.max(1) as f64;
    (1.0 / factor..=factor).contains(&ratio)
}

/// With many records there is a fine probe, and stages of blocks.
#[test]
fn batches_of_a_large_table_are_as_expected() {
    for sizes in [&[2, 3, 6, 3, 2, 3, 2][..], &[8, 8, 8, 12, 5, 16, 2, 9]] {
        for ([cells, variances], expected) in both(&table(sizes, 20_000)) {
            let counted = expected.sums + expected.products;
            assert!(within(2.0, cells, counted), "{cells} cells: {expected:?}");
            assert!(
                within(3.0, variances, expected.variances),
                "{variances}: {expected:?}"
            );
        }
    }
}

/// With few there are the 1-ways alone, three times.
#[test]
fn a_small_table_is_not_probed() {
    let batches = both(&table(&[9, 3, 12, 13, 2, 3, 2, 5, 2, 2], 250));
    assert_eq!(batches.len(), 3);
    for ([cells, _], expected) in batches {
        assert_eq!((cells, 0), (expected.sums, expected.products));
    }
}

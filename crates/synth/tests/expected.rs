//! What a run is expected to ask for is near to what it asks for.
#![allow(clippy::unwrap_used)]

use fhaim_domain::{Schema, Table};
use fhaim_dp::Rho;
use fhaim_release::{MechanismJob, MechanismRun};
use fhaim_synth::{
    Expected, ExpectedBatch, Mechanism, PlaintextSource, Release, RunOutcome, Staged, drive,
};
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

/// A run of the default mechanism on a table at epsilon 1, with a cap on its model.
fn run(table: &Table, model_bytes: usize) -> (Expected, RunOutcome) {
    let rho = Rho::from_f64_down(RHO).unwrap();
    let bound = table.records().next_multiple_of(8192) as u64;
    let job = MechanismJob {
        model_bytes,
        ..MechanismJob::new(table.domain().clone(), rho, bound)
    };
    let mechanism = Staged::default();
    let expected = mechanism.expected(&job, table.records()).unwrap();
    let run = MechanismRun::new(mechanism.start(job.clone()).unwrap(), job, Vec::new()).unwrap();
    let mut rng = StdRng::seed_from_u64(8);
    let mut source = PlaintextSource::with_rng(table, &mut rng);
    (expected, drive(run, &mut source, &mut |_| ()).unwrap())
}

/// Statistics, cells and different variances of each batch that a run asked for, and what was expected.
fn batches(expected: &Expected, outcome: &RunOutcome) -> Vec<([usize; 3], ExpectedBatch)> {
    let batches = outcome.releases.chunk_by(|a, b| a.phase == b.phase);
    let asked = batches.map(|batch: &[Release]| {
        let cells = batch
            .iter()
            .map(|release| release.request.statistic.cells());
        let variances = batch.iter().map(|release| release.request.variance_units);
        let variances: BTreeSet<u64> = variances.collect();
        [batch.len(), cells.sum(), variances.len()]
    });
    let asked: Vec<[usize; 3]> = asked.collect();
    assert_eq!(
        asked.len(),
        expected.batches.len(),
        "{asked:?}, {expected:?}"
    );
    asked.into_iter().zip(expected.batches.clone()).collect()
}

/// How far off each count may be. Statistics and cells of blocks are the more, the more pairs depend on each other: these
/// tables' do less than those that the constants are of.
const FACTORS: [(&str, f64); 6] = [
    ("statistics", 1.5),
    ("cells", 2.5),
    ("variances", 2.0),
    ("fits", 1.5),
    ("steps", 2.5),
    ("cells of fits", 2.5),
];

/// Asserts that everything that a run on a table has to do is near to what was expected.
fn assert_expected(sizes: &[usize], records: usize, model_bytes: usize) {
    assert_expected_within(1.0, sizes, records, model_bytes);
}

/// The same within so many times the factors.
fn assert_expected_within(times: f64, sizes: &[usize], records: usize, model_bytes: usize) {
    let (expected, outcome) = run(&table(sizes, records), model_bytes);
    let mut counts: Vec<(&str, f64, f64)> = Vec::new();
    for ([statistics, cells, variances], batch) in batches(&expected, &outcome) {
        let mut add = |what, counted: usize, expected: usize| {
            counts.push((what, counted as f64, expected as f64));
        };
        add("statistics", statistics, batch.statistics);
        add("cells", cells, batch.sums + batch.products);
        add("variances", variances, batch.variances);
    }
    let (chain, fits) = (outcome.model.fit().unwrap().chain, &expected.fits);
    counts.push(("fits", chain.fits as f64, fits.len() as f64));
    let steps = fits.iter().map(|fit| fit.steps).sum();
    counts.push(("steps", chain.steps as f64, steps));
    let cells = fits.iter().map(|fit| fit.steps * fit.cells).sum();
    counts.push(("cells of fits", chain.cells as f64, cells));
    let far = counts.iter().filter(|(what, counted, expected)| {
        let factor = FACTORS.iter().find(|(name, _)| name == what).unwrap().1 * times;
        !(1.0 / factor..=factor).contains(&(expected.max(1.0) / counted.max(1.0)))
    });
    let far: Vec<_> = far.collect();
    assert!(
        far.is_empty(),
        "{sizes:?}, {records} records: counted and expected {far:?}"
    );
}

/// With many records there is a fine probe, and stages of blocks, whether the model stays below its cap or not.
#[test]
fn narrow_tables_of_many_records_are_as_expected() {
    assert_expected(&[2, 3, 6, 3, 2, 3, 2], 20_000, 1 << 20);
    assert_expected(&[4; 10], 200_000, 1 << 20);
}

#[test]
fn tables_of_wide_columns_are_as_expected() {
    assert_expected(&[8, 8, 8, 12, 5, 16, 2, 9], 20_000, 1 << 20);
    assert_expected(&[20, 3, 15, 2, 30, 7, 12, 9, 2, 5], 50_000, 1 << 20);
}

#[test]
fn tables_of_many_columns_are_as_expected() {
    // Each depends on the next: hardly any of the pairs that are further apart, which are most of all, is worth measuring.
    assert_expected_within(4.0, &[3; 30], 20_000, 1 << 18);
}

/// With few there are the 1-ways alone, three times.
#[test]
fn a_small_table_is_not_probed() {
    let sizes = [9, 3, 12, 13, 2, 3, 2, 5, 2, 2];
    assert_expected(&sizes, 250, 1 << 20);
    let (expected, outcome) = run(&table(&sizes, 250), 1 << 20);
    let batches = batches(&expected, &outcome);
    assert_eq!(batches.len(), 3);
    for ([_, cells, _], expected) in batches {
        assert_eq!((cells, 0), (expected.sums, expected.products));
    }
}

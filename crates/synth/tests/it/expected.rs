//! Compares the expected batches and fits of runs with the actual ones.
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

/// Returns a table with attributes of these sizes, each of which mostly depends on the one before.
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

/// Runs the default mechanism on a table at epsilon 1, with a cap on its model.
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

/// Returns the number of statistics, cells and distinct variances of each requested batch, with the
/// expected batch.
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

/// The allowed factor between counted and expected numbers. Statistics and cells of blocks grow
/// with the dependence between pairs, which is lower in these tables than in those that the
/// constants are from.
const FACTORS: [(&str, f64); 6] = [
    ("statistics", 1.5),
    ("cells", 2.5),
    ("variances", 2.0),
    ("fits", 1.5),
    ("steps", 2.5),
    ("cells of fits", 2.5),
];

/// Asserts that the actual work of a run on a table is close to the expected work.
fn assert_expected(sizes: &[usize], records: usize, model_bytes: usize) {
    assert_expected_within(1.0, sizes, records, model_bytes);
}

/// As [`assert_expected`], with `times` times the factors.
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

/// With many records there is a fine probe, and stages of blocks, both in models below their cap
/// and at it.
#[test]
fn narrow_table_of_many_records_needs_the_expected_work() {
    assert_expected(&[2, 3, 6, 3, 2, 3, 2], 20_000, 1 << 20);
    assert_expected(&[4; 10], 200_000, 1 << 20);
}

#[test]
fn table_of_wide_columns_needs_the_expected_work() {
    assert_expected(&[8, 8, 8, 12, 5, 16, 2, 9], 20_000, 1 << 20);
    assert_expected(&[20, 3, 15, 2, 30, 7, 12, 9, 2, 5], 50_000, 1 << 20);
}

#[test]
fn table_of_many_columns_needs_the_expected_work() {
    // Each column depends on the one before. Most pairs are further apart, and hardly any of those
    // are worth measuring.
    assert_expected_within(4.0, &[3; 30], 20_000, 1 << 18);
}

/// With few records, only the 1-ways are measured, three times.
#[test]
fn small_table_is_not_probed() {
    let sizes = [9, 3, 12, 13, 2, 3, 2, 5, 2, 2];
    assert_expected(&sizes, 250, 1 << 20);
    let (expected, outcome) = run(&table(&sizes, 250), 1 << 20);
    let batches = batches(&expected, &outcome);
    assert_eq!(batches.len(), 3);
    for ([_, cells, _], expected) in batches {
        assert_eq!((cells, 0), (expected.sums, expected.products));
    }
}

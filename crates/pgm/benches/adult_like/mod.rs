//! A problem of the size of the Adult table: 14 attributes in at most 42 categories, 48,842
//! records.

use fhaim_domain::{Clique, Domain};
use fhaim_pgm::{FitOptions, Measurement, Model, ModelGraph, Passes, fit_once};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Number of records of the made-up table.
pub const RECORDS: usize = 48_842;

/// Returns the domain with the attributes' sizes.
pub fn domain() -> Domain {
    Domain::new(vec![32, 9, 32, 16, 7, 15, 6, 5, 2, 32, 32, 32, 42, 2])
}

/// Returns noisy 1-ways, and random pairs up to a model of the given size in kilobytes.
pub fn measurements(domain: &Domain, kilobytes: usize) -> Vec<Measurement> {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut measurements: Vec<Measurement> = (0..domain.len())
        .map(|a| noisy(domain, Clique::new([a]), &mut rng))
        .collect();
    let mut graph = ModelGraph::new(domain);
    let cap = kilobytes * 1000 / size_of::<f64>();
    let mut pairs = domain.pairs();
    while !pairs.is_empty() {
        let pair = pairs.swap_remove(rng.random_range(0..pairs.len()));
        if graph.cells_with(&pair).is_some_and(|cells| cells <= cap) {
            graph.add(&pair);
            measurements.push(noisy(domain, pair, &mut rng));
        }
    }
    measurements
}

/// Returns the model after `steps` steps of one kind. A tolerance of 0 keeps the fit from ending
/// earlier.
pub fn model(
    domain: &Domain,
    measurements: &[Measurement],
    (passes, steps): (Passes, usize),
) -> Model {
    let options = FitOptions {
        passes,
        steps,
        tolerance: 0.0,
        ..FitOptions::default()
    };
    fit_once(domain, measurements, &options, None).expect("the measurements are of the domain")
}

/// Returns counts that depend on the cell, with Gaussian-like noise of scale 30.
fn noisy(domain: &Domain, clique: Clique, rng: &mut ChaCha8Rng) -> Measurement {
    let cells = domain.cells(&clique).expect("a pair has few cells");
    let weights: Vec<f64> = (0..cells).map(|_| rng.random::<f64>().powi(6)).collect();
    let sum: f64 = weights.iter().sum();
    let values = (weights.iter())
        .map(|w| {
            let noise: f64 = (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
            (RECORDS as f64 * w / sum + 30.0 * noise).round()
        })
        .collect();
    Measurement::cells(clique, values, 30.0)
}

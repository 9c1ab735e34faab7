//! Compares fits with those of the reference implementation.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::Reference;
use fhaim_pgm::{FitOptions, Passes, fit_once};

fn agrees(dataset: &str) {
    for passes in [Passes::Tables, Passes::Contractions] {
        agrees_by(passes, dataset);
    }
}

fn agrees_by(passes: Passes, dataset: &str) {
    let reference = Reference::load(dataset);
    let options = FitOptions {
        steps: 5000,
        tolerance: 0.0,
        passes,
        ..FitOptions::default()
    };
    let model = fit_once(&reference.domain, &reference.measurements, &options, None).unwrap();
    // The reference works in single precision.
    assert!((model.total() / reference.total - 1.0).abs() < 1e-6);
    let (pairs, expected): (Vec<_>, Vec<_>) = reference.marginals.into_iter().unzip();
    let marginals = model.pair_marginals(&pairs).unwrap();
    let worst = (marginals.iter().zip(&expected))
        .map(|(a, b)| a.iter().zip(b).map(|(x, y)| (x - y).abs()).sum::<f64>() / model.total())
        .fold(0.0, f64::max);
    assert!(
        worst < 1e-3 || model.loss() < reference.loss,
        "{dataset}: marginals within {worst}, loss {} for {}",
        model.loss(),
        reference.loss
    );
    assert!(model.loss() < reference.loss * (1.0 + 1e-4));
}

#[test]
#[ignore = "needs FHAIM_REFERENCE_DIR"]
fn breast_cancer() {
    agrees("breast-cancer");
}

#[test]
#[ignore = "needs FHAIM_REFERENCE_DIR"]
fn compas() {
    agrees("compas");
}

#[test]
#[ignore = "needs FHAIM_REFERENCE_DIR"]
fn diabetes() {
    agrees("diabetes");
}

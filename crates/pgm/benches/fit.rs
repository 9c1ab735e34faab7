//! Times of planning, fitting and asking models: `cargo bench -p fhaim-pgm`.
//!
//! With FHAIM_REFERENCE_DIR set, also the agreement with the reference implementation's fits.

#[path = "../tests/common/mod.rs"]
mod common;

use std::hint::black_box;
use std::time::Instant;

use common::Reference;
use fhaim_domain::{Clique, Domain};
use fhaim_pgm::{FitOptions, Measurement, Model, ModelGraph, fit, model_cells};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn main() {
    for dataset in ["breast-cancer", "compas", "diabetes"] {
        if let Some(reference) = Reference::load(dataset) {
            for steps in [100, 1000, 10_000] {
                compare(dataset, &reference, steps);
            }
        }
    }
    let domain = Domain::new(vec![32, 9, 32, 16, 7, 15, 6, 5, 2, 32, 32, 32, 42, 2]);
    planning(&domain);
    for megabytes in [0.1, 0.5, 1.0] {
        adult_like(&domain, megabytes);
    }
}

fn seconds<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let started = Instant::now();
    let result = work();
    (result, started.elapsed().as_secs_f64())
}

fn compare(dataset: &str, reference: &Reference, steps: usize) {
    let options = FitOptions {
        steps,
        tolerance: 0.0,
        ..FitOptions::default()
    };
    let model =
        fit(&reference.domain, &reference.measurements, &options, None).expect("a valid model");
    let worst = (reference.marginals.iter())
        .map(|(clique, expected)| {
            let marginal = model.marginal(clique).expect("a valid model");
            let l1: f64 = marginal
                .iter()
                .zip(expected)
                .map(|(a, b)| (a - b).abs())
                .sum();
            l1 / model.total()
        })
        .fold(0.0, f64::max);
    let report = model.report();
    println!(
        "{dataset}: {} steps in {:.4} s (reference {:.1} s), loss {:.9} (reference {:.6}), \
         total {:.3} (reference {:.3}), marginals within {worst:.2e}",
        report.steps,
        report.seconds,
        reference.seconds,
        report.loss,
        reference.loss,
        model.total(),
        reference.total
    );
}

fn planning(domain: &Domain) {
    let pairs = domain.pairs();
    for count in [0, 13, 30, 91] {
        let cliques = &pairs[..count];
        let rounds = 2000u32;
        let (_, all) = seconds(|| {
            for _ in 0..rounds {
                black_box(model_cells(domain, black_box(cliques)));
            }
        });
        let mut graph = ModelGraph::new(domain);
        cliques.iter().for_each(|clique| graph.add(clique));
        let extra = Clique::new([12, 13]);
        let (_, one) = seconds(|| {
            for _ in 0..rounds {
                black_box(graph.cells_with(black_box(&extra)));
            }
        });
        println!(
            "planning {count} pairs: model_cells {:.2} us, one more {:.2} us",
            all / f64::from(rounds) * 1e6,
            one / f64::from(rounds) * 1e6
        );
    }
}

/// Random pairs, measured on a random table, up to a model of so many megabytes of cells.
fn adult_like(domain: &Domain, megabytes: f64) {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut measurements: Vec<Measurement> = (0..domain.len())
        .map(|a| noisy(domain, Clique::new([a]), &mut rng))
        .collect();
    let mut graph = ModelGraph::new(domain);
    let cap = (megabytes * 1e6 / 8.0) as usize;
    let mut pairs = domain.pairs();
    while !pairs.is_empty() {
        let pair = pairs.swap_remove(rng.random_range(0..pairs.len()));
        if graph.cells_with(&pair).is_some_and(|cells| cells <= cap) {
            graph.add(&pair);
            measurements.push(noisy(domain, pair, &mut rng));
        }
    }
    for steps in [100, 1000] {
        let options = FitOptions {
            steps,
            tolerance: 0.0,
            ..FitOptions::default()
        };
        let model = fit(domain, &measurements, &options, None).expect("a valid model");
        let report = model.report();
        println!(
            "adult-like, {megabytes} MB: {} cells, {} measurements, {} bytes; {} steps in {:.3} s, \
             {:.1} us a step, loss {:.6}",
            graph.cells().expect("a valid model"),
            measurements.len(),
            model.bytes(),
            report.steps,
            report.seconds,
            report.seconds / report.steps as f64 * 1e6,
            report.loss
        );
        if steps == 1000 {
            ask(domain, &model);
        }
    }
}

fn ask(domain: &Domain, model: &Model) {
    let pairs = domain.pairs();
    let (_, all) = seconds(|| model.pair_marginals(&pairs).expect("a valid model"));
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let (_, sample) = seconds(|| model.sample(48_842, &mut rng));
    println!(
        "  all pairs {:.1} ms, 48,842 records {:.1} ms",
        all * 1e3,
        sample * 1e3
    );
}

/// Counts of 48,842 records that depend on the cell, with Gaussian-like noise of scale 30.
fn noisy(domain: &Domain, clique: Clique, rng: &mut ChaCha8Rng) -> Measurement {
    let cells = domain.cells(&clique).expect("a valid model");
    let weights: Vec<f64> = (0..cells).map(|_| rng.random::<f64>().powi(6)).collect();
    let sum: f64 = weights.iter().sum();
    let values = (weights.iter())
        .map(|w| {
            let noise: f64 = (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
            (48_842.0 * w / sum + 30.0 * noise).round()
        })
        .collect();
    Measurement::cells(clique, values, 30.0)
}

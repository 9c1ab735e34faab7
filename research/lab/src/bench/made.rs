//! Measurements of a generated table, and a fit to them. They time models of many attributes.

use fhaim_domain::{Clique, Table};
use fhaim_pgm::{FitOptions, Measurement, Model, ModelGraph, Passes, fit_once};
use rand::{SeedableRng, rngs::StdRng};

use super::families::normal;
use crate::error::Error;

/// Number of records of the measured table.
pub const RECORDS: usize = 20_000;

/// Standard deviation of the noise on every measured cell, in records.
const SIGMA: f64 = 30.0;

/// The most pairs that are measured per attribute.
const PAIRS: usize = 3;

/// The memory and the tolerance of the default mechanism's last fit.
const MEMORY: usize = 20;
const TOLERANCE: f64 = 1e-4;

/// Fits a model of the table's single attributes and its strongest pairs, as the default mechanism does in its last
/// fit. The model has at most `cap` bytes of cells, and the fit at most `steps` steps.
pub fn model(table: &Table, cap: usize, steps: usize) -> Result<Model, Error> {
    let mut rng = StdRng::seed_from_u64(1);
    let pairs = strongest(table, cap)?;
    let singles = (0..table.domain().len()).map(|attribute| Clique::new([attribute]));
    let measurements = (singles.chain(pairs))
        .map(|clique| noisy(table, clique, &mut rng))
        .collect::<Result<Vec<_>, Error>>()?;
    let options = FitOptions {
        steps,
        tolerance: TOLERANCE,
        passes: Passes::Contractions,
        memory: MEMORY,
        max_bytes: usize::MAX,
        ..FitOptions::default()
    };
    Ok(fit_once(table.domain(), &measurements, &options, None)?)
}

/// Returns the pairs that are furthest from independent: as many as fit into a model within the cap, and as [`PAIRS`]
/// permits.
fn strongest(table: &Table, cap: usize) -> Result<Vec<Clique>, Error> {
    let domain = table.domain();
    let mut pairs = (domain.pairs().into_iter())
        .map(|pair| Ok((dependence(table, &pair)?, pair)))
        .collect::<Result<Vec<_>, Error>>()?;
    pairs.sort_by(|(x, _), (y, _)| y.total_cmp(x));
    let cap = cap / size_of::<f64>();
    let mut graph = ModelGraph::new(domain);
    let mut chosen = Vec::new();
    for (_, pair) in pairs {
        if chosen.len() == PAIRS * domain.len() {
            break;
        }
        if graph.cells_with(&pair).is_some_and(|cells| cells <= cap) {
            graph.add(&pair);
            chosen.push(pair);
        }
    }
    Ok(chosen)
}

/// Returns the L1 distance between a pair's counts and those of independent attributes, in records.
fn dependence(table: &Table, pair: &Clique) -> Result<f64, Error> {
    let [a, b] = [0, 1].map(|i| Clique::new([pair.attributes()[i]]));
    let (rows, columns) = (counts(table, &a)?, counts(table, &b)?);
    let records = table.records() as f64;
    let expected = (rows.iter()).flat_map(|x| columns.iter().map(move |y| x * y / records));
    let counted = counts(table, pair)?;
    Ok((counted.iter().zip(expected))
        .map(|(x, y)| (x - y).abs())
        .sum())
}

fn counts(table: &Table, clique: &Clique) -> Result<Vec<f64>, Error> {
    let counts = table.counts(clique).map_err(fhaim_synth::Error::from)?;
    Ok(counts.into_iter().map(|count| count as f64).collect())
}

/// Counts a marginal with noise. The table is generated, so this noise protects nothing and need not be secure.
fn noisy(table: &Table, clique: Clique, rng: &mut StdRng) -> Result<Measurement, Error> {
    let counts = counts(table, &clique)?;
    let values = counts.iter().map(|count| count + SIGMA * normal(rng));
    let values = values.collect();
    Ok(Measurement::cells(clique, values, SIGMA))
}

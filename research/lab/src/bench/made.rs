//! Measurements of a table made up, and a fit to them: how models of many attributes are timed.

use fhaim_domain::{Clique, Table};
use fhaim_pgm::{FitOptions, Measurement, Model, ModelGraph, Passes, fit_once};
use rand::{SeedableRng, rngs::StdRng};

use super::families::normal;
use crate::error::Error;

/// Records of the table that is measured.
pub const RECORDS: usize = 20_000;

/// Standard deviation of the noise of every measured cell, in records.
const SIGMA: f64 = 30.0;

/// At most so many pairs are measured for each attribute.
const PAIRS: usize = 3;

/// The default mechanism's last fits combine so many steps, and end below this tolerance.
const MEMORY: usize = 20;
const TOLERANCE: f64 = 1e-4;

/// A model of the table's single attributes and of its strongest pairs, with at most `cap` bytes of cells and so many
/// steps, fitted as the default mechanism's last one is.
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

/// The pairs that are furthest from independent, as many as a model within the cap has and [`PAIRS`] allows.
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

/// The L1 distance of a pair's counts to those of independent attributes, in records.
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

/// Counts with noise. The table is made up, so that nothing private depends on how it is drawn.
fn noisy(table: &Table, clique: Clique, rng: &mut StdRng) -> Result<Measurement, Error> {
    let counts = counts(table, &clique)?;
    let values = counts.iter().map(|count| count + SIGMA * normal(rng));
    let values = values.collect();
    Ok(Measurement::cells(clique, values, SIGMA))
}

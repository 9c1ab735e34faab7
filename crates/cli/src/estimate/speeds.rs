//! Speed of this machine, from two short measurements.
//!
//! [`Speeds::measure`] times key switches, which dominate encrypted computation, and steps of a fit. The costs of all
//! other operations are constants relative to these two; `research/bench/estimates.py` compares forecasts with runs.

use std::{sync::Arc, time::Instant};

use fhaim_domain::{Clique, Domain};
use fhaim_he::{
    Cell, Combination, DEGREE, EncryptedTable, EvaluationWork, Evaluator, Factors, Layout,
    Parameters, SecretKey, UploadKey,
};
use fhaim_pgm::{FitOptions, Measurement, Model, ModelGraph, Passes, fit_once};
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha20Rng;
use serde::Serialize;

use super::work::{ExpectedWork, Load};
use crate::{error::Error, randomness::system};

/// Number of one-hot columns of the timed table; all products of two of them are computed.
const COLUMNS: usize = 8;

/// Number of timed repetitions. The fastest one counts, because other programs only add time.
const REPETITIONS: usize = 2;

/// Costs of operations of all cores together, in key switches.
mod in_key_switches {
    /// Making and encoding a switching key.
    pub const KEY: f64 = 6.0;
    /// Encrypting and encoding a polynomial.
    pub const ENCRYPTION: f64 = 1.1;
    /// Drawing a noise sample.
    pub const SAMPLE: f64 = 4.5e-4;
    /// Reading and expanding a noise ciphertext.
    pub const VECTOR: f64 = 1.5;
    /// Switching a ciphertext from an upload key to the dataset's key.
    pub const CONVERSION: f64 = 1.8;
    /// Sealing and decrypting a ciphertext of a page.
    pub const SHEET: f64 = 34.0;
    /// Multiplying and summing a record chunk of two columns.
    pub const PRODUCT: f64 = 0.075;
    /// Weighing a table of counts for a leaf.
    pub const WEIGHING: f64 = 0.16;
    /// Squaring a page of counts.
    pub const SQUARE: f64 = 25.0;
}

/// Costs of operations, in cells of a model that a step of a fit visits.
mod in_cells {
    /// Estimating the counts of a column from its releases.
    pub const COLUMN: f64 = 1_800.0;
    /// Comparing a measured value with the model in a step.
    pub const VALUE: f64 = 7.0;
    /// Allocating a cell of a model.
    pub const TABLE: f64 = 2.5;
    /// Visiting a value while a record is drawn.
    pub const DRAWN_VALUE: f64 = 1.1;
    /// Writing a value of a record.
    pub const WRITTEN_VALUE: f64 = 9.0;
}

/// Measured seconds of this machine, with all of its cores in use.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Speeds {
    /// Seconds of a key switch of one polynomial.
    pub key_switch: f64,
    /// Seconds per cell of a step of a fit.
    pub fit_cell: f64,
}

impl Speeds {
    /// Measures this machine for a run.
    ///
    /// # Errors
    /// The operating system has no randomness.
    pub(super) fn measure(load: &Load) -> Result<Self, Error> {
        Ok(Self {
            key_switch: key_switch(&Parameters::shared(load.set)?, load.layout)?,
            fit_cell: fit_cell(load)?,
        })
    }

    /// Seconds of encrypted work, and of planning and fits.
    pub(super) fn seconds(&self, work: &ExpectedWork) -> [f64; 2] {
        use in_key_switches as cost;
        let switches = work.key_switches
            + work.keys * cost::KEY
            + work.encryptions * cost::ENCRYPTION
            + work.samples * cost::SAMPLE
            + work.vectors * cost::VECTOR
            + work.conversions * cost::CONVERSION
            + work.sheets * cost::SHEET
            + work.products * cost::PRODUCT
            + work.weighings * cost::WEIGHING
            + work.squares * cost::SQUARE;
        let cells = work.fit_cells
            + work.columns * in_cells::COLUMN
            + work.fit_values * in_cells::VALUE
            + work.fit_tables * in_cells::TABLE;
        [switches * self.key_switch, cells * self.fit_cell]
    }

    /// Seconds of drawing and writing a synthetic table.
    pub(super) fn draw_seconds(&self, load: &Load) -> f64 {
        let drawn = load.drawn_values * in_cells::DRAWN_VALUE;
        let written = load.written_values * in_cells::WRITTEN_VALUE;
        (drawn + written) * self.fit_cell
    }
}

/// Seconds in which a holder encrypts `polynomials` and draws `samples` of noise.
///
/// # Errors
/// The operating system has no randomness.
pub(super) fn upload_seconds(
    params: &Parameters,
    polynomials: usize,
    samples: usize,
) -> Result<f64, Error> {
    let encryption = polynomials as f64 * in_key_switches::ENCRYPTION;
    let noise = samples as f64 * in_key_switches::SAMPLE;
    Ok((encryption + noise) * key_switch(params, Layout::for_records(1)?)?)
}

/// Seconds of a key switch, from all products of [`COLUMNS`] columns of one record chunk.
fn key_switch(params: &Parameters, layout: Layout) -> Result<f64, Error> {
    let mut rng = system()?;
    let layout = Layout::of_many(1, layout.stride())?;
    let secret = SecretKey::random(params, &mut rng)?;
    let keys = secret.evaluation_keys(&mut rng)?;
    let upload = UploadKey::random(params, &mut rng)?;
    let switch_keys =
        Arc::new(upload.switch_keys(&secret.public_key(&mut rng)?, Some(layout), &mut rng)?);
    let columns = (0..COLUMNS).map(|_| -> fhaim_he::Result<Vec<_>> {
        let sent = upload.encrypt(&[1; DEGREE], &mut rng)?.into_iter();
        let chunk = sent.map(|one| one.expand(params));
        Ok(vec![chunk.collect::<Result<_, _>>()?])
    });
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let table = EncryptedTable::new(params, layout, columns)?;
    let evaluator = Evaluator::new(&keys, layout).with_switch_keys(&switch_keys)?;
    let all: Vec<Combination> = (0..COLUMNS).map(Combination::column).collect();
    let factors = Factors {
        left: &all,
        right: &all,
    };
    let pairs =
        (0..COLUMNS).flat_map(|left| (0..COLUMNS).map(move |right| Cell::Product { left, right }));
    let cells: Vec<(usize, Cell)> = pairs.enumerate().collect();
    let batch = std::slice::from_ref(&cells);
    let mut least = f64::INFINITY;
    for _ in 0..REPETITIONS {
        let mut work = EvaluationWork::default();
        let started = Instant::now();
        evaluator.pages(&table, 0, factors, batch, &mut work)?;
        let seconds = started.elapsed().as_secs_f64();
        // The threads' seconds add up to more than the elapsed time.
        let switching = work.switching + work.packing;
        let share = switching / (switching + work.tensor).max(f64::MIN_POSITIVE);
        least = least.min(share * seconds / work.key_switches.max(1) as f64);
    }
    Ok(least)
}

/// Maximum number of cells of the timed model: the cost per cell depends on the size of the tables.
const MAX_CELLS: usize = 1 << 21;
const MAX_ATTRIBUTES: usize = 20;
const MAX_GROUPS: usize = 8;

/// Steps that fill the memory of the search, and cells visited by the timed steps that follow.
const FIRST_STEPS: usize = 4;
const TIMED_CELLS: usize = 1 << 23;
const TIMED_STEPS: [usize; 2] = [4, 60];
const MEMORY: usize = 20;

/// Seconds per cell of a step of a fit, from a model of about the size that the run is expected to fit.
fn fit_cell(load: &Load) -> Result<f64, Error> {
    let sizes = load.sizes.iter().take(MAX_ATTRIBUTES);
    let domain = Domain::new(sizes.map(|&size| size.clamp(1, MAX_GROUPS)).collect());
    let most = load.model_cells.min(MAX_CELLS);
    let mut cliques: Vec<Clique> = (0..domain.len()).map(|a| Clique::new([a])).collect();
    let mut graph = ModelGraph::new(&domain);
    for pair in domain.pairs() {
        let mut with = graph.clone();
        with.add(&pair);
        if with.cells().is_some_and(|cells| cells <= most) {
            graph = with;
            cliques.push(pair);
        }
    }
    let measured = unfittable(&domain, cliques);
    let few = fitted(&domain, &measured, FIRST_STEPS)?.report();
    let cells = few.cells.max(1);
    let [least, most] = TIMED_STEPS;
    let timed = (TIMED_CELLS / cells).clamp(least, most);
    let many = fitted(&domain, &measured, FIRST_STEPS + timed)?.report();
    let step = match many.steps.saturating_sub(few.steps) {
        // The model is so small that the fit ended early.
        0 => many.seconds / many.steps.max(1) as f64,
        steps => (many.seconds - few.seconds).max(0.0) / steps as f64,
    };
    let values: usize = measured.iter().map(|one| one.values.len()).sum();
    Ok(step / (cells as f64 + values as f64 * in_cells::VALUE))
}

/// Measurements that no distribution has, so that a fit takes all of its steps.
fn unfittable(domain: &Domain, cliques: Vec<Clique>) -> Vec<Measurement> {
    let mut rng = ChaCha20Rng::seed_from_u64(0);
    let measured = cliques.into_iter().map(|clique| {
        let cells = domain.cells(&clique).unwrap_or(0);
        let counts = (0..cells).map(|_| f64::from(rng.next_u32() % 1000));
        Measurement::cells(clique, counts.collect(), 1.0)
    });
    measured.collect()
}

/// The fastest of [`REPETITIONS`] fits with the given number of steps.
fn fitted(domain: &Domain, measured: &[Measurement], steps: usize) -> Result<Model, Error> {
    let options = FitOptions {
        steps,
        tolerance: 0.0,
        passes: Passes::Contractions,
        memory: MEMORY,
        ..FitOptions::default()
    };
    let fit = || fit_once(domain, measured, &options, None);
    let mut best = fit()?;
    for _ in 1..REPETITIONS {
        let next = fit()?;
        if next.report().seconds < best.report().seconds {
            best = next;
        }
    }
    Ok(best)
}

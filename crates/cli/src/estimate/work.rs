//! What a run has to do, as counts of operations.

use std::ops::Add;

use fhaim_domain::Domain;
use fhaim_he::{Layout, ParameterSet};
use fhaim_synth::ExpectedFit;
use serde::Serialize;

/// Switching keys for packing: one for each level of a page's tree.
pub(super) const PACKING_KEYS: u64 = 13;

/// What a run has to do and to hold: sizes at most.
#[derive(Clone, Debug)]
pub struct Load {
    /// Memory: the upload, what is computed from it, the keys, and what a run in the clear needs.
    pub memory_bytes: u64,
    pub(super) upload_bytes: u64,
    pub(super) set: ParameterSet,
    /// How cells are packed.
    pub(super) layout: Layout,
    /// Whether the upload has columns of records, which are multiplied.
    pub(super) records: bool,
    /// What holders do.
    pub(super) upload: ExpectedWork,
    /// What is done for each batch, and then with its answers.
    pub(super) stages: Vec<ExpectedWork>,
    /// Sizes of the attributes, and cells of the largest model that is expected.
    pub(super) sizes: Vec<usize>,
    pub(super) model_cells: usize,
    /// Values that the thread looks at that draws most, and those that it writes.
    pub(super) drawn_values: f64,
    pub(super) written_values: f64,
}

/// How often a run does what takes its time, as it is expected before anything is known of the table.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ExpectedWork {
    /// Switching keys that are made.
    pub keys: f64,
    /// Ciphertexts of columns or counts, and of noise.
    pub encryptions: f64,
    /// Values of noise that holders draw.
    pub samples: f64,
    /// Ciphertexts that are read: noise for each page, columns or counts once.
    pub vectors: f64,
    /// Ciphertexts of counts and noise that are switched from an upload key to the dataset's key.
    pub conversions: f64,
    /// Ciphertexts that are sealed and decrypted.
    pub sheets: f64,
    /// Polynomials whose key is switched while cells are computed.
    pub key_switches: f64,
    /// Products of two combinations of a record chunk, summed.
    pub products: f64,
    /// Tables of counts that are weighed for a leaf of a page.
    pub weighings: f64,
    /// Of key switches and of weighings of counts those that one thread does while all others wait:
    pub lone_switches: f64,
    /// of the second.
    pub lone_weighings: f64,
    /// Squares of pages.
    pub squares: f64,
    /// Columns whose counts are estimated from their releases.
    pub columns: f64,
    /// Fits: calibrations,
    pub fit_steps: f64,
    /// the cells of their junction trees, each as often as it is calibrated,
    pub fit_cells: f64,
    /// values that they are fitted to, as often,
    pub fit_values: f64,
    /// and the cells of all trees, once.
    pub fit_tables: f64,
}

/// What drawing a record looks at: every value of a column, beside each of the columns drawn before.
pub(super) fn drawn_values(domain: &Domain) -> f64 {
    let values: usize = domain.sizes().iter().sum();
    values as f64 * (domain.len() + 1) as f64 / 2.0
}

impl ExpectedWork {
    /// Counts a fit.
    pub(super) fn fit(&mut self, fit: &ExpectedFit) {
        self.fit_steps += fit.steps;
        self.fit_cells += fit.steps * fit.cells;
        self.fit_values += fit.steps * fit.values;
        self.fit_tables += fit.cells;
    }
}

impl Add for ExpectedWork {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            keys: self.keys + other.keys,
            encryptions: self.encryptions + other.encryptions,
            samples: self.samples + other.samples,
            vectors: self.vectors + other.vectors,
            conversions: self.conversions + other.conversions,
            sheets: self.sheets + other.sheets,
            key_switches: self.key_switches + other.key_switches,
            products: self.products + other.products,
            weighings: self.weighings + other.weighings,
            lone_switches: self.lone_switches + other.lone_switches,
            lone_weighings: self.lone_weighings + other.lone_weighings,
            squares: self.squares + other.squares,
            columns: self.columns + other.columns,
            fit_steps: self.fit_steps + other.fit_steps,
            fit_cells: self.fit_cells + other.fit_cells,
            fit_values: self.fit_values + other.fit_values,
            fit_tables: self.fit_tables + other.fit_tables,
        }
    }
}

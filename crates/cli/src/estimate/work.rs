//! Expected numbers of operations of a run.

use std::ops::Add;

use fhaim_domain::Domain;
use fhaim_he::{Layout, ParameterSet};
use fhaim_synth::ExpectedFit;
use serde::Serialize;

/// Switching keys for packing: one for each level of a page's tree.
pub(super) const PACKING_KEYS: u64 = 13;

/// Upper bounds on the memory and the work of a run.
#[derive(Clone, Debug)]
pub struct Load {
    /// Memory for the upload, the results computed from it, the keys, and a run without encryption.
    pub memory_bytes: u64,
    pub(super) upload_bytes: u64,
    pub(super) set: ParameterSet,
    /// Packing of the cells.
    pub(super) layout: Layout,
    /// Work of the holders.
    pub(super) upload: ExpectedWork,
    /// Work of each batch, with the fits that follow it.
    pub(super) stages: Vec<ExpectedWork>,
    /// Sizes of the attributes, and number of cells of the largest expected model.
    pub(super) sizes: Vec<usize>,
    pub(super) model_cells: usize,
    /// Values that the busiest thread visits while it draws, and values that it writes.
    pub(super) drawn_values: f64,
    pub(super) written_values: f64,
}

/// Expected number of each operation of a run.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ExpectedWork {
    /// Generated switching keys.
    pub keys: f64,
    /// Encrypted polynomials of columns or counts, and of noise.
    pub encryptions: f64,
    /// Noise samples that holders draw.
    pub samples: f64,
    /// Ciphertexts that are read: noise once per page, columns or counts once.
    pub vectors: f64,
    /// Ciphertexts of counts and noise that are switched from an upload key to the dataset's key.
    pub conversions: f64,
    /// Sealed and decrypted ciphertexts.
    pub sheets: f64,
    /// Key switches of polynomials while cells are computed.
    pub key_switches: f64,
    /// Products of two combinations of columns in a record chunk.
    pub products: f64,
    /// Tables of counts that are weighed for the leaves of a page.
    pub weighings: f64,
    /// Squares of pages.
    pub squares: f64,
    /// Estimates of a column's counts from its releases.
    pub columns: f64,
    /// Steps of all fits.
    pub fit_steps: f64,
    /// Cells of the junction trees that all steps visit.
    pub fit_cells: f64,
    /// Measured values that all steps compare with the model.
    pub fit_values: f64,
    /// Cells of the junction trees of all fits.
    pub fit_tables: f64,
}

/// Number of values that drawing a record visits: all values of a column, for each of the columns drawn earlier.
pub(super) fn drawn_values(domain: &Domain) -> f64 {
    let values: usize = domain.sizes().iter().sum();
    values as f64 * (domain.len() + 1) as f64 / 2.0
}

impl ExpectedWork {
    /// Adds the work of a fit.
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
            squares: self.squares + other.squares,
            columns: self.columns + other.columns,
            fit_steps: self.fit_steps + other.fit_steps,
            fit_cells: self.fit_cells + other.fit_cells,
            fit_values: self.fit_values + other.fit_values,
            fit_tables: self.fit_tables + other.fit_tables,
        }
    }
}

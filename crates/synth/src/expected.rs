//! What a run can be expected to ask for and to fit, before anything is known of the table: what an estimate of time is
//! made of, and nothing else.

use fhaim_release::MechanismJob;

/// Batches and fits that can be expected of a run, by public numbers alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// Its batches of releases, in order.
    pub batches: Vec<ExpectedBatch>,
    /// Its fits, in order.
    pub fits: Vec<ExpectedFit>,
}

/// One batch, as whoever computes it under encryption sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpectedBatch {
    /// Statistics that are asked for.
    pub statistics: usize,
    /// Cells that are sums over columns.
    pub sums: usize,
    /// Cells that are sums over products of two combinations of columns.
    pub products: usize,
    /// Different combinations among the second factors of those products.
    pub factors: usize,
    /// Different variances: releases of one variance are decrypted together.
    pub variances: usize,
}

/// One fit of the graphical model.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ExpectedFit {
    /// Calibrations that it makes.
    pub steps: f64,
    /// Cells of the junction tree's cliques.
    pub cells: f64,
    /// Values that it is fitted to.
    pub values: f64,
}

/// Cells of the largest model of a job: within its cap, and no more than a table of the whole domain has.
pub(crate) fn most_cells(job: &MechanismJob) -> f64 {
    let sizes = job.domain.sizes().iter();
    let whole: f64 = sizes.map(|&size| size as f64).product();
    whole.min(job.model_cells() as f64)
}

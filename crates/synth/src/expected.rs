//! The expected batches and fits of a run, from public numbers only. They serve only to estimate
//! the time of a run before anything is known of its table.

use fhaim_release::MechanismJob;

/// Expected batches and fits of a run, computed from public numbers only.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// Batches of releases, in order.
    pub batches: Vec<ExpectedBatch>,
    /// Fits, in order.
    pub fits: Vec<ExpectedFit>,
}

/// The size of one batch, from the view of the service that computes it under encryption.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpectedBatch {
    /// Number of requested statistics.
    pub statistics: usize,
    /// Cells that are sums over columns.
    pub sums: usize,
    /// Cells that are sums over products of two combinations of columns.
    pub products: usize,
    /// Distinct combinations among the second factors of those products.
    pub factors: usize,
    /// Distinct variances. Releases of the same variance are decrypted together.
    pub variances: usize,
}

/// One fit of the graphical model.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ExpectedFit {
    /// Number of calibrations.
    pub steps: f64,
    /// Cells of the junction tree's cliques.
    pub cells: f64,
    /// Number of measured values.
    pub values: f64,
}

/// Returns the number of cells of the largest possible model of a job: at most its cap, and at most
/// those of a table of the whole domain.
pub(crate) fn most_cells(job: &MechanismJob) -> f64 {
    let sizes = job.domain.sizes().iter();
    let whole: f64 = sizes.map(|&size| size as f64).product();
    whole.min(job.model_cells() as f64)
}

//! Fits of the graphical model, between releases and at the end: what all mechanisms share.

use fhaim_pgm::{FitOptions, Measurement, Model, Passes, fit};

use crate::Error;
use crate::account::ReleaseAccount;
use crate::error::Unfitted;
use fhaim_release::MechanismJob;

/// The fit may take so many bytes for each byte of the junction tree: potentials, beliefs,
/// gradients and messages beside it.
const FIT_BYTES_PER_MODEL_BYTE: usize = 64;

/// Steps of a mechanism's fits between releases.
pub const FIT_STEPS: usize = 100;

/// Tolerance of the fits between releases.
pub(super) const FIT_TOLERANCE: f64 = 1e-3;

/// Steps of a mechanism's last fit. With more the loss still falls a little, but the workload error does not
/// (docs/PERFORMANCE.md, "Fits").
pub const FINAL_STEPS: usize = 200;

/// A mechanism's last fit ends early below this tolerance.
pub(super) const FINAL_TOLERANCE: f64 = 1e-4;

/// Number of past steps that a fit combines, unless a mechanism has a number of its own.
pub(super) const FIT_MEMORY: usize = 10;

/// What a fit may take, and how it takes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effort {
    pub steps: usize,
    pub tolerance: f64,
    pub passes: Passes,
    /// Steps that the search combines.
    pub memory: usize,
}

impl Effort {
    /// A fit by tables.
    pub fn by_tables(steps: usize, tolerance: f64) -> Self {
        Self {
            steps,
            tolerance,
            passes: Passes::Tables,
            memory: FIT_MEMORY,
        }
    }
}

/// Fits a model within a job's cap. The releases of `account` become part of the error where the model is too far from what
/// was measured.
pub(super) fn fit_job(
    job: &MechanismJob,
    account: &ReleaseAccount,
    measurements: &[Measurement],
    effort: Effort,
    warm_start: Option<&Model>,
) -> Result<Model, Error> {
    fit_to_total(job, account, measurements, None, effort, warm_start)
}

/// As [`fit_job`], with the number of records of the model given.
pub(super) fn fit_to_total(
    job: &MechanismJob,
    account: &ReleaseAccount,
    measurements: &[Measurement],
    total: Option<f64>,
    effort: Effort,
    warm_start: Option<&Model>,
) -> Result<Model, Error> {
    let options = FitOptions {
        steps: effort.steps,
        tolerance: effort.tolerance,
        passes: effort.passes,
        memory: effort.memory,
        total,
        max_bytes: job.model_bytes.saturating_mul(FIT_BYTES_PER_MODEL_BYTE),
    };
    fit(&job.domain, measurements, &options, warm_start).map_err(|error| match error {
        fhaim_pgm::Error::Unexplained {
            loss,
            values,
            attributes,
        } => Error::Unfitted(Box::new(Unfitted {
            loss,
            values,
            attributes,
            releases: account.settled().to_vec(),
            spent: account.spent(),
        })),
        other => other.into(),
    })
}

/// [`Error::Option`] unless the value `fits` its range.
pub(super) fn check(
    name: &'static str,
    range: &'static str,
    value: f64,
    fits: bool,
) -> Result<(), Error> {
    if fits {
        Ok(())
    } else {
        Err(Error::Option { name, range, value })
    }
}

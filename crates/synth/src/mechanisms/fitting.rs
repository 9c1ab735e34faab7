//! Fits of the graphical model between releases and at the end, for all mechanisms.

use fhaim_pgm::{FitOptions, Measurement, Model, Passes, fit};

use crate::Error;
use crate::account::ReleaseAccount;
use crate::error::Unfitted;
use fhaim_release::MechanismJob;

/// Memory limit of a fit, in bytes for each byte of the junction tree: potentials, beliefs,
/// gradients and messages.
const FIT_BYTES_PER_MODEL_BYTE: usize = 64;

/// Steps of a mechanism's fits between releases.
pub const FIT_STEPS: usize = 100;

/// Tolerance of the fits between releases.
pub(super) const FIT_TOLERANCE: f64 = 1e-3;

/// Steps of a mechanism's last fit. With more steps the loss still falls a little, but the workload
/// error does not (docs/PERFORMANCE.md, "Fits").
pub const FINAL_STEPS: usize = 200;

/// Tolerance of a mechanism's last fit, below which it ends early.
pub(super) const FINAL_TOLERANCE: f64 = 1e-4;

/// Number of past steps that a fit combines, unless a mechanism sets its own number.
pub(super) const FIT_MEMORY: usize = 10;

/// The effort of a fit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effort {
    pub steps: usize,
    pub tolerance: f64,
    pub passes: Passes,
    /// Number of past steps that the search combines.
    pub memory: usize,
}

impl Effort {
    /// Returns the effort of a fit by tables.
    pub fn by_tables(steps: usize, tolerance: f64) -> Self {
        Self {
            steps,
            tolerance,
            passes: Passes::Tables,
            memory: FIT_MEMORY,
        }
    }
}

/// Fits a model within a job's cap. If the model is too far from the measurements, the error
/// contains the releases of `account`.
pub(super) fn fit_job(
    job: &MechanismJob,
    account: &ReleaseAccount,
    measurements: &[Measurement],
    effort: Effort,
    warm_start: Option<&Model>,
) -> Result<Model, Error> {
    fit_to_total(job, account, measurements, None, effort, warm_start)
}

/// As [`fit_job`], with a given total number of records of the model.
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

/// Returns [`Error::Option`] unless the value `fits` its range.
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

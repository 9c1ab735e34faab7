//! What of the FHAIM paper's rule may be tuned.

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::mechanisms::anneal::check_rounds;
use crate::mechanisms::fitting::{FINAL_STEPS, check_fits};
use fhaim_release::Job;

/// What may be tuned.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FhaimL2Options {
    /// T over the number of attributes: the budget is cut for so many rounds each.
    pub rounds_per_attribute: f64,
    /// Steps of the fits between.
    pub fit_steps: usize,
    /// Tolerance of the fits between.
    pub fit_tolerance: f64,
    /// Steps of the last fit.
    pub final_steps: usize,
}

impl Default for FhaimL2Options {
    fn default() -> Self {
        Self {
            rounds_per_attribute: 4.0,
            fit_steps: 100,
            fit_tolerance: 1e-3,
            final_steps: FINAL_STEPS,
        }
    }
}

impl FhaimL2Options {
    pub(super) fn check(&self) -> Result<(), Error> {
        check_rounds(self.rounds_per_attribute)?;
        check_fits(self.fit_steps, self.fit_tolerance, self.final_steps)
    }

    /// T.
    pub(super) fn rounds(&self, job: &Job) -> f64 {
        self.rounds_per_attribute * job.domain.len() as f64
    }

    /// Batches there can be: noise is never more than at the start, so a round never costs less
    /// than the T-th part of rho.
    pub(super) fn most_batches(&self, job: &Job) -> usize {
        1 + 2 * (self.rounds(job).max(1.0).ceil() as usize + 1)
    }
}

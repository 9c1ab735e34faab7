//! The options of the FHAIM paper's rule.

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::mechanisms::anneal::check_rounds;
use fhaim_release::MechanismJob;

/// The options that terms may set.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FhaimL2Options {
    /// Number of rounds for each attribute that the budget is divided for (T divided by the number
    /// of attributes).
    pub rounds_per_attribute: f64,
}

impl Default for FhaimL2Options {
    fn default() -> Self {
        Self {
            rounds_per_attribute: 4.0,
        }
    }
}

impl FhaimL2Options {
    pub(super) fn check(&self) -> Result<(), Error> {
        check_rounds(self.rounds_per_attribute)
    }

    /// Returns the number of rounds, T.
    pub(super) fn rounds(&self, job: &MechanismJob) -> f64 {
        self.rounds_per_attribute * job.domain.len() as f64
    }

    /// Returns the largest possible number of batches. Noise never exceeds that of the start, so a
    /// round costs at least a T-th of rho.
    pub(super) fn most_batches(&self, job: &MechanismJob) -> usize {
        1 + 2 * (self.rounds(job).max(1.0).ceil() as usize + 1)
    }
}

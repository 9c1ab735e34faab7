//! What of AIM may be tuned.

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::mechanisms::anneal::check_rounds;
use crate::mechanisms::fitting::{FINAL_STEPS, check_fits};
use fhaim_release::Job;

/// What a candidate's score is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Score {
    /// w (||M - Mhat||_1 - c0 sigma n), sensitivity max w: AIM.
    #[default]
    L1,
    /// w (||M - Mhat||_2^2 - sigma^2 n), sensitivity max w (2 N + 1): the FHAIM paper's, paid
    /// for the winner alone.
    SquaredL2,
}

/// What may be tuned.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AimOptions {
    /// The score.
    pub score: Score,
    /// T over the number of attributes.
    pub rounds_per_attribute: f64,
    /// Steps of the fits between.
    pub fit_steps: usize,
    /// Tolerance of the fits between.
    pub fit_tolerance: f64,
    /// Steps of the last fit.
    pub final_steps: usize,
}

impl Default for AimOptions {
    fn default() -> Self {
        Self {
            score: Score::L1,
            rounds_per_attribute: 16.0,
            fit_steps: 100,
            fit_tolerance: 1e-3,
            final_steps: FINAL_STEPS,
        }
    }
}

impl AimOptions {
    pub(super) fn check(&self) -> Result<(), Error> {
        check_rounds(self.rounds_per_attribute)?;
        check_fits(self.fit_steps, self.fit_tolerance, self.final_steps)
    }

    /// T.
    pub(super) fn rounds(&self, job: &Job) -> f64 {
        self.rounds_per_attribute * job.domain.len() as f64
    }
}

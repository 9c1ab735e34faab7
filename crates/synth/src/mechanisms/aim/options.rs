//! The options of AIM.

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::mechanisms::anneal::check_rounds;
use crate::mechanisms::fitting::check;
use fhaim_release::MechanismJob;

/// The formula of a candidate's score.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Score {
    /// AIM's score: w (||M - Mhat||_1 - c0 sigma n), with sensitivity max w.
    #[default]
    L1,
    /// The FHAIM paper's score: w (||M - Mhat||_2^2 - sigma^2 n), with sensitivity max w (2 N + 1).
    /// Only the winner is paid for.
    SquaredL2,
    /// w (||M - Mhat|| - c0 sigma n) with the FHAIM paper's polynomial in place of the distance.
    /// Only the winner is paid for (docs/research/fhaim.md, "The paper's own experiment").
    PolynomialL1,
}

/// A schedule with a fixed number of rounds, all with the same noise and without annealing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixedRounds {
    /// Number of rounds, T.
    pub rounds: u32,
    /// Variance of the number of records, in units of 4. This number is released first, and the
    /// model uses it.
    pub total_units: u64,
    /// Variance of a marginal's cells, in units of 4.
    pub variance_units: u64,
    /// Epsilon of a selection.
    pub epsilon: f64,
}

/// The options of AIM.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AimOptions {
    /// The formula of the score.
    pub score: Score,
    /// Number of rounds for each attribute (T divided by the number of attributes).
    pub rounds_per_attribute: f64,
    /// A fixed schedule instead of AIM's. If it is set, `rounds_per_attribute` has no effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fixed: Option<FixedRounds>,
}

impl Default for AimOptions {
    fn default() -> Self {
        Self {
            score: Score::L1,
            rounds_per_attribute: 16.0,
            fixed: None,
        }
    }
}

impl AimOptions {
    pub(super) fn check(&self) -> Result<(), Error> {
        check_rounds(self.rounds_per_attribute)?;
        if let Some(fixed) = &self.fixed {
            let noised = fixed.rounds > 0 && fixed.variance_units > 0 && fixed.total_units > 0;
            let range = "a schedule with rounds and noise";
            check("fixed", range, f64::from(fixed.rounds), noised)?;
        }
        Ok(())
    }

    /// Returns the number of rounds, T.
    pub(super) fn rounds(&self, job: &MechanismJob) -> f64 {
        match &self.fixed {
            Some(fixed) => f64::from(fixed.rounds),
            None => self.rounds_per_attribute * job.domain.len() as f64,
        }
    }
}

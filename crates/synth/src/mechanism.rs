//! The mechanisms by name, and what each may ask of a noise ladder.

use std::fmt;
use std::str::FromStr;

use fhaim_dp::LadderPlan;
use serde::{Deserialize, Serialize};

use crate::fhaim_l2::{self, FhaimL2, FhaimL2Options};
use crate::one_ways::{self, OneWaysOnly};
use crate::staged::{self, Staged, StagedOptions};
use crate::{Error, Job, Mechanism};

/// A mechanism's name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MechanismName {
    /// Residual contrasts and a staged plan.
    #[default]
    Staged,
    /// The FHAIM paper's rule, the decryptor's view accounted.
    FhaimL2,
    /// AIM, in the clear only.
    Aim,
    /// The 1-ways alone.
    OneWays,
}

impl MechanismName {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Staged, Self::FhaimL2, Self::Aim, Self::OneWays];

    /// The name as users write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Staged => "staged",
            Self::FhaimL2 => "fhaim-l2",
            Self::Aim => "aim",
            Self::OneWays => "one-ways",
        }
    }

    /// Whether it can run over a source, and so under encryption.
    pub fn runs_over_a_source(self) -> bool {
        self != Self::Aim
    }

    /// The mechanism with default options, ready for its first step.
    ///
    /// # Errors
    /// [`Error::PlaintextOnly`] for `aim`; what the mechanism's constructor refuses.
    pub fn start(self, job: Job) -> Result<Box<dyn Mechanism + Send>, Error> {
        Ok(match self {
            Self::Staged => Box::new(Staged::new(job, StagedOptions::default())?),
            Self::FhaimL2 => Box::new(FhaimL2::new(job, FhaimL2Options::default())?),
            Self::OneWays => Box::new(OneWaysOnly::new(job)?),
            Self::Aim => return Err(Error::PlaintextOnly(self.as_str())),
        })
    }

    /// What the mechanism with default options may ask of a noise ladder.
    ///
    /// # Errors
    /// As [`MechanismName::start`]; [`Error::BudgetTooSmall`] where the budget does not pay for
    /// the first batch.
    pub fn ladder_need(self, job: &Job) -> Result<LadderNeed, Error> {
        job.check()?;
        match self {
            Self::Staged => staged::ladder_need(job, &StagedOptions::default()),
            Self::FhaimL2 => fhaim_l2::ladder_need(job, &FhaimL2Options::default()),
            Self::OneWays => one_ways::ladder_need(job),
            Self::Aim => Err(Error::PlaintextOnly(self.as_str())),
        }
    }
}

impl fmt::Display for MechanismName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for MechanismName {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|known| known.as_str() == name);
        found.ok_or_else(|| Error::UnknownMechanism(name.to_owned()))
    }
}

/// The most that a mechanism may ask of a noise ladder: a public function of schema, workload,
/// rho, record bound, caps and options, and never of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LadderNeed {
    /// Integers released over the whole run.
    pub cells: usize,
    /// The largest variance of a release, in units of [`crate::UNIT_VARIANCE`].
    pub largest_variance_units: u64,
}

impl LadderNeed {
    /// A ladder that is sure to last, in whatever order the releases come.
    ///
    /// # Errors
    /// A ladder past the limits of [`LadderPlan`].
    pub fn plan(&self) -> Result<LadderPlan, Error> {
        Ok(LadderPlan::for_any_order(
            self.cells,
            self.largest_variance_units,
        )?)
    }
}

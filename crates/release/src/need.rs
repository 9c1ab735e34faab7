//! What a mechanism needs of the noise and of the encryption, and who can say so.

use fhaim_dp::LadderPlan;
use serde::{Deserialize, Serialize};

use crate::{Error, Machine, MechanismJob};

/// The most that a mechanism may ask of a noise ladder: a public function of schema, workload,
/// rho, record bound, caps and options, and never of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LadderNeed {
    /// Integers released over the whole run.
    pub cells: usize,
    /// The largest variance of a release, in units of [`crate::UNIT_VARIANCE`].
    pub largest_variance_units: u64,
}

impl LadderNeed {
    /// A ladder that lasts for the whole run, in any order of the releases.
    ///
    /// # Errors
    /// A ladder past the limits of [`LadderPlan`].
    pub fn plan(&self) -> Result<LadderPlan, Error> {
        Ok(LadderPlan::new(self.cells, self.largest_variance_units)?)
    }
}

/// What a run of a mechanism needs: public, and worked out by whoever knows the mechanism. Others
/// take it as it is: too small a need ends a run early or wraps a released value, and never
/// weakens what is promised of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Need {
    /// The noise.
    pub ladder: LadderNeed,
    /// The largest absolute value of a released integer before its noise.
    #[serde(with = "fhaim_dp::decimal")]
    pub largest_cell: u128,
    /// Whether squared scores are released.
    pub squares: bool,
}

/// Why a mechanism does not say what it needs: what it refuses of a job, or that there is none of
/// the name.
pub type Refusal = Box<dyn std::error::Error + Send + Sync>;

/// Options of a mechanism by their names: public data, whose meaning the mechanism alone knows.
pub type Options = serde_json::Map<String, serde_json::Value>;

/// Which mechanism is to be used, as terms say it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice<'a> {
    /// The mechanism's name.
    pub mechanism: &'a str,
    /// Its options where they are not all the default; those that are left out have their default.
    pub options: Option<&'a Options>,
}

/// The mechanisms that a program knows, by name.
pub trait Catalogue {
    /// All options of a mechanism: those that were chosen, and the others' defaults.
    ///
    /// # Errors
    /// There is no mechanism of this name; an option that it does not have, by its name, or a
    /// value that the option cannot have.
    fn options(&self, choice: Choice<'_>) -> Result<Options, Refusal>;

    /// Whether a mechanism releases squared scores.
    ///
    /// # Errors
    /// As [`Catalogue::options`]; it releases nothing.
    fn squares(&self, choice: Choice<'_>) -> Result<bool, Refusal>;

    /// What a run of a mechanism needs.
    ///
    /// # Errors
    /// As [`Catalogue::squares`]; what the mechanism refuses of the job.
    fn need(&self, choice: Choice<'_>, job: &MechanismJob) -> Result<Need, Refusal>;
}

/// The mechanisms that a program can run, by name.
pub trait Generator: Catalogue {
    /// A run of any of them.
    type Machine: Machine + ?Sized;

    /// A run of a mechanism, ready for its first step.
    ///
    /// # Errors
    /// As [`Catalogue::need`].
    fn start(&self, choice: Choice<'_>, job: MechanismJob) -> Result<Box<Self::Machine>, Refusal>;
}

//! The noise and encryption that a mechanism needs, and the programs that can compute it.

use fhaim_dp::LadderPlan;
use serde::{Deserialize, Serialize};

use crate::{Error, Machine, MechanismJob};

/// The most noise that a mechanism may need from a ladder. It is a public function of schema,
/// workload, rho, record bound, caps and options, and never of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LadderNeed {
    /// Number of integers released in the whole run.
    pub cells: usize,
    /// Largest variance of a release, in units of [`crate::UNIT_VARIANCE`].
    pub largest_variance_units: u64,
}

impl LadderNeed {
    /// Plans a ladder that is enough for the whole run, for any order of the releases.
    ///
    /// # Errors
    /// A ladder beyond the limits of [`LadderPlan`].
    pub fn plan(&self) -> Result<LadderPlan, Error> {
        Ok(LadderPlan::new(self.cells, self.largest_variance_units)?)
    }
}

/// The needs of a run of a mechanism. They are public, and computed by programs that know the
/// mechanism. Other programs accept them unchanged: if a need is too small, a run ends early or a
/// released value wraps, but the protection of a record is never weakened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Need {
    /// The noise ladder.
    pub ladder: LadderNeed,
    /// Largest absolute value of a released integer before its noise.
    #[serde(with = "fhaim_dp::decimal")]
    pub largest_cell: u128,
    /// Whether the run releases squared scores.
    pub squares: bool,
}

/// The reason for which a mechanism does not compute its need: it refuses the job, or no mechanism
/// has the name.
pub type Refusal = Box<dyn std::error::Error + Send + Sync>;

/// Options of a mechanism by name. They are public, and only the mechanism knows their meaning.
pub type Options = serde_json::Map<String, serde_json::Value>;

/// The mechanism that terms choose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice<'a> {
    /// Name of the mechanism.
    pub mechanism: &'a str,
    /// Its options, unless all have their defaults. Options that are left out have their defaults.
    pub options: Option<&'a Options>,
}

/// The mechanisms that a program knows, by name.
pub trait Catalogue {
    /// Returns all options of a mechanism: the chosen ones, and the defaults of the others.
    ///
    /// # Errors
    /// An unknown mechanism; an option that it does not have, by name; an invalid value of an
    /// option.
    fn options(&self, choice: Choice<'_>) -> Result<Options, Refusal>;

    /// Whether a mechanism releases squared scores.
    ///
    /// # Errors
    /// Those of [`Catalogue::options`]; a mechanism that releases nothing.
    fn squares(&self, choice: Choice<'_>) -> Result<bool, Refusal>;

    /// Returns the needs of a run of a mechanism.
    ///
    /// # Errors
    /// Those of [`Catalogue::squares`]; the mechanism's refusal of the job.
    fn need(&self, choice: Choice<'_>, job: &MechanismJob) -> Result<Need, Refusal>;
}

/// The mechanisms that a program can run, by name.
pub trait Generator: Catalogue {
    /// A run of any of the mechanisms.
    type Machine: Machine + ?Sized;

    /// Creates a run of a mechanism, ready for its first step.
    ///
    /// # Errors
    /// Those of [`Catalogue::need`].
    fn start(&self, choice: Choice<'_>, job: MechanismJob) -> Result<Box<Self::Machine>, Refusal>;
}

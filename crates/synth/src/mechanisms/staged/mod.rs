//! `staged`: residual contrasts and a staged plan, the default mechanism (docs/MECHANISM.md, C).
//!
//! There are four batches of releases: total and 1-ways, a probe of every pair, and two planned
//! stages of contrast blocks. A finer probe may take two batches. Merges, scores, plans and scales
//! depend only on the earlier releases.

mod beside;
mod expected;
mod extent;
mod ladder;
mod machine;
mod options;
mod pair;
mod plan;
mod shares;
mod shrink;

use serde_json::Value;

pub use self::options::{Ablations, StagedOptions};

use self::machine::StagedMachine;
use crate::Error;
use crate::engine::AnyMachine;
use crate::expected::Expected;
use crate::forecast::BudgetPlan;
use crate::mechanism::{Mechanism, parse_options, write_options};
use fhaim_release::LadderNeed;
use fhaim_release::MechanismJob;

/// The staged mechanism.
#[derive(Clone, Copy, Debug, Default)]
pub struct Staged {
    options: StagedOptions,
    ablations: Ablations,
}

const NAME: &str = "staged";

impl Staged {
    /// Returns the mechanism with the given options.
    ///
    /// # Errors
    /// [`Error::Option`] if an option is out of its range.
    pub fn new(options: StagedOptions) -> Result<Self, Error> {
        options.check()?;
        Ok(Self {
            options,
            ablations: Ablations::default(),
        })
    }

    /// Returns the mechanism with the default options and without some of its parts.
    pub fn without(ablations: Ablations) -> Self {
        Self {
            ablations,
            ..Self::default()
        }
    }
}

impl Mechanism for Staged {
    fn name(&self) -> &'static str {
        NAME
    }

    fn label(&self) -> &'static str {
        "Staged"
    }

    fn about(&self) -> &'static str {
        "Probes all pairs, then measures the important ones as finely as the budget allows"
    }

    fn options(&self) -> Result<Value, Error> {
        write_options(NAME, &self.options)
    }

    fn with_options(&self, options: &Value) -> Result<Box<dyn Mechanism>, Error> {
        Ok(Box::new(Self::new(parse_options(NAME, options)?)?))
    }

    fn ladder_need(&self, job: &MechanismJob) -> Result<LadderNeed, Error> {
        ladder::need(job, &self.options)
    }

    fn expected(&self, job: &MechanismJob, records: usize) -> Result<Expected, Error> {
        Ok(expected::expected(job, &self.options, records))
    }

    fn budget_plan(&self, job: &MechanismJob) -> Option<BudgetPlan> {
        Some(expected::budget_plan(job, &self.options))
    }

    fn start(&self, job: MechanismJob) -> Result<Box<AnyMachine>, Error> {
        Ok(Box::new(StagedMachine::new(job, *self)?))
    }
}

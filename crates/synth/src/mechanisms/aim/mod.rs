//! `aim`: AIM in the clear (McKenna, Mullins, Sheldon and Miklau 2022; docs/MECHANISM.md, A).
//!
//! The reference for local runs and for tests. It reads exact marginals, so it cannot run under
//! encryption. Selections use the exponential mechanism, drawn exactly from integer scores
//! ([`fhaim_dp::Selection`]). Measurements have exact discrete Gaussian noise.

mod options;
mod polynomial;
mod run;

use fhaim_domain::Table;
use rand::RngCore;
use serde_json::Value;

pub use self::options::{AimOptions, FixedRounds, Score};

use self::run::Run;
use crate::Error;
use crate::engine::{AnyMachine, RunOutcome};
use crate::forecast::BudgetPlan;
use crate::mechanism::{Mechanism, parse_options, write_options};
use crate::mechanisms::anneal;
use fhaim_release::LadderNeed;
use fhaim_release::MechanismJob;
use fhaim_release::RunProgress;

/// AIM, or its variant with squared scores.
#[derive(Clone, Copy, Debug, Default)]
pub struct Aim(AimOptions);

const NAME: &str = "aim";

impl Aim {
    /// Returns the mechanism with the given options.
    ///
    /// # Errors
    /// [`Error::Option`] if an option is out of its range.
    pub fn new(options: AimOptions) -> Result<Self, Error> {
        options.check()?;
        Ok(Self(options))
    }
}

impl Mechanism for Aim {
    fn name(&self) -> &'static str {
        NAME
    }

    fn label(&self) -> &'static str {
        "AIM"
    }

    fn about(&self) -> &'static str {
        "AIM: measures the pair with the largest model error in each round"
    }

    fn clear_only(&self) -> bool {
        true
    }

    fn options(&self) -> Result<Value, Error> {
        write_options(NAME, &self.0)
    }

    fn with_options(&self, options: &Value) -> Result<Box<dyn Mechanism>, Error> {
        Ok(Box::new(Self::new(parse_options(NAME, options)?)?))
    }

    fn ladder_need(&self, job: &MechanismJob) -> Result<LadderNeed, Error> {
        job.check()?;
        Err(Error::PlaintextOnly(NAME))
    }

    fn budget_plan(&self, job: &MechanismJob) -> Option<BudgetPlan> {
        // A fixed schedule does not depend on the budget.
        let is_fixed = self.0.fixed.is_some();
        (!is_fixed).then(|| BudgetPlan::Rounds(anneal::budget_plan(job, self.0.rounds(job))))
    }

    fn start(&self, _: MechanismJob) -> Result<Box<AnyMachine>, Error> {
        Err(Error::PlaintextOnly(NAME))
    }

    fn run_in_the_clear(
        &self,
        table: &Table,
        job: &MechanismJob,
        rng: &mut dyn RngCore,
        progress: &mut dyn FnMut(RunProgress),
    ) -> Result<RunOutcome, Error> {
        Run::new(table, job, &self.0, rng)?.run(progress)
    }
}

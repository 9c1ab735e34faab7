//! `fhaim-l2`: the rule of the FHAIM paper, under encryption (docs/MECHANISM.md, B).
//!
//! The score of a candidate is w (||M - Mhat||_2^2 - sigma^2 n), with M encrypted and Mhat public:
//! ||M||^2 - 2 <M, Mhat> + ||Mhat||^2. The decryptor reads every noisy score. The scores are
//! therefore released, and paid for, as one Gaussian vector of sensitivity (2 N + 1) sqrt(sum w^2).
//! The paper pays only for the winner; [`crate::Aim`] uses that accounting in the clear, for
//! comparison.

mod ladder;
mod machine;
mod options;

use serde_json::Value;

pub use self::options::FhaimL2Options;

use self::machine::FhaimL2Machine;
use crate::Error;
use crate::engine::AnyMachine;
use crate::forecast::BudgetPlan;
use crate::mechanism::{Mechanism, parse_options, write_options};
use crate::mechanisms::anneal;
use fhaim_release::LadderNeed;
use fhaim_release::MechanismJob;

/// The mechanism of the paper, with the decryptor's view paid for.
#[derive(Clone, Copy, Debug, Default)]
pub struct FhaimL2(FhaimL2Options);

const NAME: &str = "fhaim-l2";

impl FhaimL2 {
    /// Returns the mechanism with the given options.
    ///
    /// # Errors
    /// [`Error::Option`] if an option is out of its range.
    pub fn new(options: FhaimL2Options) -> Result<Self, Error> {
        options.check()?;
        Ok(Self(options))
    }
}

impl Mechanism for FhaimL2 {
    fn name(&self) -> &'static str {
        NAME
    }

    fn label(&self) -> &'static str {
        "FHAIM paper's rule"
    }

    fn about(&self) -> &'static str {
        "The FHAIM paper's rule: measures the pair with the largest squared score in each round"
    }

    fn releases_squares(&self) -> bool {
        true
    }

    fn options(&self) -> Result<Value, Error> {
        write_options(NAME, &self.0)
    }

    fn with_options(&self, options: &Value) -> Result<Box<dyn Mechanism>, Error> {
        Ok(Box::new(Self::new(parse_options(NAME, options)?)?))
    }

    fn ladder_need(&self, job: &MechanismJob) -> Result<LadderNeed, Error> {
        ladder::need(job, self.0)
    }

    fn budget_plan(&self, job: &MechanismJob) -> Option<BudgetPlan> {
        let machine = FhaimL2Machine::new(job.clone(), self.0).ok()?;
        let mut plan = anneal::budget_plan(job, self.0.rounds(job));
        plan.squared_score_noise = ladder::score_noise(&machine).ok()?;
        if plan.squared_score_noise.is_none() {
            plan.most_pairs = 0;
        }
        Some(BudgetPlan::Rounds(plan))
    }

    fn start(&self, job: MechanismJob) -> Result<Box<AnyMachine>, Error> {
        let machine = FhaimL2Machine::new(job, self.0)?;
        ladder::first_scores(&machine)?;
        Ok(Box::new(machine))
    }
}

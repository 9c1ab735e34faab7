//! `mst`: MST in the clear (McKenna, Miklau and Sheldon 2021; docs/MECHANISM.md, E).
//!
//! The budget has three equal parts:
//!
//! 1. The first measures every single attribute.
//! 2. The second chooses the d - 1 edges of a tree, one after the other. The exponential mechanism
//!    selects each edge among the pairs that join two parts of the tree. The score is the pair's
//!    distance from independence.
//! 3. The third measures those pairs.
//!
//! The resulting model is a tree. It is small and cannot represent dependences that need three
//! attributes.
//!
//! The authors' program also merges rare values before it measures pairs. This implementation does
//! not.

mod run;

use fhaim_domain::Table;
use rand::RngCore;
use serde_json::Value;

use self::run::{PARTS, Run};
use crate::Error;
use crate::engine::{AnyMachine, RunOutcome};
use crate::forecast::{BudgetPlan, RoundPlan};
use crate::mechanism::{Mechanism, NoOptions, parse_options, write_options};
use crate::mechanisms::candidates::first_cliques;
use fhaim_release::{LadderNeed, MechanismJob, RunProgress};

const NAME: &str = "mst";

/// MST. It has no options.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mst;

impl Mechanism for Mst {
    fn name(&self) -> &'static str {
        NAME
    }

    fn label(&self) -> &'static str {
        "MST"
    }

    fn about(&self) -> &'static str {
        "MST: measures the pairs of a tree over all columns, chosen once"
    }

    fn clear_only(&self) -> bool {
        true
    }

    fn options(&self) -> Result<Value, Error> {
        write_options(NAME, &NoOptions {})
    }

    fn with_options(&self, options: &Value) -> Result<Box<dyn Mechanism>, Error> {
        let NoOptions {} = parse_options(NAME, options)?;
        Ok(Box::new(Self))
    }

    fn ladder_need(&self, job: &MechanismJob) -> Result<LadderNeed, Error> {
        job.check()?;
        Err(Error::PlaintextOnly(NAME))
    }

    fn budget_plan(&self, job: &MechanismJob) -> Option<BudgetPlan> {
        let edges = job.domain.coarse_attributes().len().saturating_sub(1);
        let first = first_cliques(&job.domain).len().max(1);
        Some(BudgetPlan::Rounds(RoundPlan {
            column: 1.0 / (PARTS * first as f64),
            pairs: 1.0 / PARTS,
            least_pairs: edges,
            most_pairs: edges,
            squared_score_noise: None,
        }))
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
        Run::new(table, job, rng)?.run(progress)
    }
}

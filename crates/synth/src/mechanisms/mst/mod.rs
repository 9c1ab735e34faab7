//! `mst`: MST in the clear (McKenna, Miklau and Sheldon 2021; docs/MECHANISM.md, E).
//!
//! A third of the budget measures all attributes alone; a third chooses the d - 1 edges of a tree, one after the
//! other, each by the exponential mechanism among the pairs that join two parts of it, by how far the pair is from
//! independent; a third measures those pairs. The model is a tree: small, and blind to all that needs three attributes.
//!
//! What the authors' program does beside, merging rare values before it measures pairs, is not done.

mod run;

use fhaim_domain::Table;
use rand::RngCore;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::run::Run;
use crate::Error;
use crate::engine::{AnyMachine, Outcome};
use crate::mechanism::{Mechanism, parse_options, write_options};
use crate::mechanisms::fitting::{FINAL_STEPS, check_fits};
use fhaim_release::{Job, LadderNeed, Progress};

const NAME: &str = "mst";

/// What may be tuned.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MstOptions {
    /// Steps of the fit to attributes alone.
    pub fit_steps: usize,
    /// Tolerance of the fit to attributes alone.
    pub fit_tolerance: f64,
    /// Steps of the last fit.
    pub final_steps: usize,
}

impl Default for MstOptions {
    fn default() -> Self {
        Self {
            fit_steps: 100,
            fit_tolerance: 1e-3,
            final_steps: FINAL_STEPS,
        }
    }
}

/// MST.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mst(MstOptions);

impl Mst {
    /// The mechanism with these options.
    ///
    /// # Errors
    /// [`Error::Option`] for one out of its range.
    pub fn new(options: MstOptions) -> Result<Self, Error> {
        check_fits(
            options.fit_steps,
            options.fit_tolerance,
            options.final_steps,
        )?;
        Ok(Self(options))
    }
}

impl Mechanism for Mst {
    fn name(&self) -> &'static str {
        NAME
    }

    fn label(&self) -> &'static str {
        "MST"
    }

    fn about(&self) -> &'static str {
        "MST: the pairs of a tree over all columns, chosen once"
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

    fn ladder_need(&self, job: &Job) -> Result<LadderNeed, Error> {
        job.check()?;
        Err(Error::PlaintextOnly(NAME))
    }

    fn start(&self, _: Job) -> Result<Box<AnyMachine>, Error> {
        Err(Error::PlaintextOnly(NAME))
    }

    fn run_in_the_clear(
        &self,
        table: &Table,
        job: &Job,
        rng: &mut dyn RngCore,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Outcome, Error> {
        Run::new(table, job, &self.0, rng)?.run(progress)
    }
}

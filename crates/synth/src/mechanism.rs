//! The mechanism trait, and helpers for options.

use std::fmt;

use fhaim_domain::Table;
use rand::RngCore;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Error;
use crate::engine::{AnyMachine, RunOutcome, drive};
use crate::expected::{Expected, ExpectedBatch, ExpectedFit, most_cells};
use crate::forecast::BudgetPlan;
use crate::mechanisms::fitting::FINAL_STEPS;
use crate::plaintext::PlaintextSource;
use fhaim_release::{LadderNeed, MechanismJob, MechanismRun, RunProgress};

/// A mechanism with its options: it spends a budget on releases and fits a model to them.
///
/// Everything that the methods return before a run is public: a function of the job and the
/// options, never of the data. To add a mechanism, implement this trait and add a line to the list
/// of [`crate::MechanismName`]. No other code distinguishes mechanisms.
pub trait Mechanism: fmt::Debug + Send + Sync {
    /// Returns the name that users write and terms store: lower case, with hyphens.
    fn name(&self) -> &'static str;

    /// Returns a few words that describe the mechanism on the web page, where people choose one.
    fn label(&self) -> &'static str;

    /// Returns one line for `--help` and the web page.
    fn about(&self) -> &'static str;

    /// Whether the mechanism reads the records themselves, so that it cannot run under encryption.
    fn clear_only(&self) -> bool {
        false
    }

    /// Whether the mechanism releases [`fhaim_release::Statistic::SquaredScores`], which need
    /// deeper ciphertexts.
    fn releases_squares(&self) -> bool {
        false
    }

    /// Returns all options as a JSON object, in the form that [`Mechanism::with_options`] reads.
    ///
    /// # Errors
    /// [`Error::Options`] if JSON cannot represent the options.
    fn options(&self) -> Result<Value, Error>;

    /// Returns the mechanism with other options. `options` is a JSON object; options that it leaves
    /// out get their defaults.
    ///
    /// # Errors
    /// [`Error::Options`] for an unknown field or a wrong type; [`Error::Option`] for a value out
    /// of its range.
    fn with_options(&self, options: &Value) -> Result<Box<dyn Mechanism>, Error>;

    /// Returns the most that the mechanism may request from a noise ladder, for any data. All
    /// releases together cost at most the job's rho.
    ///
    /// # Errors
    /// As [`MechanismJob::check`]; [`fhaim_release::Error::BudgetTooSmall`] if the budget does not
    /// pay for the first batch; [`Error::PlaintextOnly`].
    fn ladder_need(&self, job: &MechanismJob) -> Result<LadderNeed, Error>;

    /// Returns the batches and fits to expect of a run over a number of records. They serve only to
    /// estimate the time of a run before anything is known of the table.
    ///
    /// The default assumes that the mechanism requests as much as it may, in one batch, and fits
    /// the largest possible model once.
    ///
    /// # Errors
    /// As [`Mechanism::ladder_need`].
    fn expected(&self, job: &MechanismJob, _records: usize) -> Result<Expected, Error> {
        let products = self.ladder_need(job)?.cells;
        let batch = ExpectedBatch {
            statistics: 1 + job.domain.len() + job.workload.pairs().len(),
            sums: 0,
            products,
            factors: job.domain.columns(),
            variances: 1 + job.domain.len(),
        };
        let fit = ExpectedFit {
            steps: FINAL_STEPS as f64,
            cells: most_cells(job),
            values: products as f64,
        };
        Ok(Expected {
            batches: vec![batch],
            fits: vec![fit],
        })
    }

    /// Returns the division of the budget, from which a forecast computes the noise of a run. `None`
    /// if the mechanism has no forecast.
    fn budget_plan(&self, _job: &MechanismJob) -> Option<BudgetPlan> {
        None
    }

    /// Starts a run, which is then ready for its first step.
    ///
    /// # Errors
    /// As [`MechanismJob::check`], further errors of the mechanism, and [`Error::PlaintextOnly`].
    fn start(&self, job: MechanismJob) -> Result<Box<AnyMachine>, Error>;

    /// Runs the mechanism on a table in the clear, and draws noise from `rng` as needed.
    ///
    /// # Errors
    /// As [`MechanismJob::check`], and failures of the fit.
    fn run_in_the_clear(
        &self,
        table: &Table,
        job: &MechanismJob,
        rng: &mut dyn RngCore,
        progress: &mut dyn FnMut(RunProgress),
    ) -> Result<RunOutcome, Error> {
        let run = MechanismRun::new(self.start(job.clone())?, job.clone(), Vec::new())?;
        let source = PlaintextSource::with_rng(table, rng);
        let mut source = source.of_holders(job.holders.count());
        drive(run, &mut source, progress)
    }
}

/// Rejects a run that cannot start, for every reason that is known before its first release.
///
/// # Errors
/// As [`Mechanism::start`], except [`Error::PlaintextOnly`].
pub fn check_start(mechanism: &dyn Mechanism, job: &MechanismJob) -> Result<(), Error> {
    match mechanism.clear_only() {
        true => Ok(job.check()?),
        false => mechanism.start(job.clone()).map(drop),
    }
}

/// The options of a mechanism that has none.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct NoOptions {}

/// Parses a mechanism's options strictly, for [`Mechanism::with_options`]. `T` should have
/// `#[serde(default, deny_unknown_fields)]`.
///
/// # Errors
/// [`Error::Options`], which names the field.
pub fn parse_options<T: DeserializeOwned>(
    mechanism: &'static str,
    options: &Value,
) -> Result<T, Error> {
    let newer = |error: serde_json::Error| match error.to_string() {
        unknown if unknown.starts_with("unknown field") => {
            format!(
                "{unknown}; a newer release may support it: update the older of the program and the services"
            )
        }
        other => other,
    };
    T::deserialize(options).map_err(|error| Error::Options(mechanism, newer(error)))
}

/// Serializes a mechanism's options, for [`Mechanism::options`].
///
/// # Errors
/// [`Error::Options`] if JSON cannot represent the options.
pub fn write_options<T: Serialize>(mechanism: &'static str, options: &T) -> Result<Value, Error> {
    serde_json::to_value(options).map_err(|error| Error::Options(mechanism, error.to_string()))
}

//! What a mechanism is, and what it may ask of a noise ladder.

use std::fmt;

use fhaim_domain::Table;
use rand::RngCore;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Error;
use crate::engine::{AnyMachine, RunOutcome, drive};
use crate::expected::{Expected, ExpectedBatch, ExpectedFit, most_cells};
use crate::mechanisms::fitting::FINAL_STEPS;
use crate::plaintext::PlaintextSource;
use fhaim_release::{LadderNeed, MechanismJob, MechanismRun, RunProgress};

/// A mechanism with its options: a way to spend a budget on releases and to fit a model to them.
///
/// All that it says of itself is public and a function of the public job and its options, never of
/// the data. A new one is a type that implements this, and a line in the list of
/// [`crate::MechanismName`]; nothing else knows one mechanism from another.
pub trait Mechanism: fmt::Debug + Send + Sync {
    /// Its name, as users write it and as terms keep it: lower case, hyphens between.
    fn name(&self) -> &'static str;

    /// A few words by which people choose it, in the page.
    fn label(&self) -> &'static str;

    /// One line for `--help` and the page.
    fn about(&self) -> &'static str;

    /// Whether it reads the records themselves, and so has no place under encryption.
    fn clear_only(&self) -> bool {
        false
    }

    /// Whether it releases [`fhaim_release::Statistic::SquaredScores`], which take deeper ciphertexts.
    fn releases_squares(&self) -> bool {
        false
    }

    /// Its options, all of them, as a JSON object that [`Mechanism::with_options`] takes.
    ///
    /// # Errors
    /// [`Error::Options`] for options that JSON cannot write.
    fn options(&self) -> Result<Value, Error>;

    /// The mechanism with other options: a JSON object of those that are not to be the default.
    ///
    /// # Errors
    /// [`Error::Options`] for a field that is not known or of another kind; [`Error::Option`] for
    /// a value out of its range.
    fn with_options(&self, options: &Value) -> Result<Box<dyn Mechanism>, Error>;

    /// The most that it may ask of a noise ladder, whatever the data. All releases together cost
    /// at most the job's rho.
    ///
    /// # Errors
    /// As [`MechanismJob::check`]; [`fhaim_release::Error::BudgetTooSmall`] where the budget does not pay for the first
    /// batch; [`Error::PlaintextOnly`].
    fn ladder_need(&self, job: &MechanismJob) -> Result<LadderNeed, Error>;

    /// What a run over so many records can be expected to ask for, and to fit: what an estimate of
    /// time is made of before anything is known of the table, and nothing else. Unless a mechanism knows better, all
    /// that it may ask for, in one batch, and one fit of a model as large as it may be.
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

    /// A run of it, ready for its first step.
    ///
    /// # Errors
    /// As [`MechanismJob::check`], and what else the mechanism refuses; [`Error::PlaintextOnly`].
    fn start(&self, job: MechanismJob) -> Result<Box<AnyMachine>, Error>;

    /// A whole run on a table in the clear, with noise drawn from `rng` as it is needed.
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

/// The options of a mechanism without any.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct NoOptions {}

/// Reads a mechanism's options strictly, for [`Mechanism::with_options`]: `T` should have
/// `#[serde(default, deny_unknown_fields)]`.
///
/// # Errors
/// [`Error::Options`], naming the field.
pub fn parse_options<T: DeserializeOwned>(
    mechanism: &'static str,
    options: &Value,
) -> Result<T, Error> {
    let newer = |error: serde_json::Error| match error.to_string() {
        unknown if unknown.starts_with("unknown field") => {
            format!(
                "{unknown}; a newer release may know it: update the older of program and services"
            )
        }
        other => other,
    };
    T::deserialize(options).map_err(|error| Error::Options(mechanism, newer(error)))
}

/// Writes a mechanism's options, for [`Mechanism::options`].
///
/// # Errors
/// [`Error::Options`] for what JSON cannot write.
pub fn write_options<T: Serialize>(mechanism: &'static str, options: &T) -> Result<Value, Error> {
    serde_json::to_value(options).map_err(|error| Error::Options(mechanism, error.to_string()))
}

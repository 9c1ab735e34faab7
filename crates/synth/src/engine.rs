//! The outcome of a mechanism's run, and the loop that runs a mechanism over a source.

use std::sync::Arc;
use std::time::Instant;

use fhaim_dp::Rho;
use serde::Serialize;

use crate::Error;
use crate::account::{Release, ReleaseAccount};
use crate::model::FittedModel;
use fhaim_release::{Action, Machine, MechanismRun, Phase, ReleaseSource, RunProgress};

/// The next action of a mechanism of this crate.
pub type MechanismStep = fhaim_release::Next<RunOutcome>;

/// A run of any mechanism of this crate.
pub type AnyMachine = dyn Machine<Outcome = RunOutcome, Error = Error>;

/// The result of a run. All of it is differentially private.
#[derive(Debug)]
pub struct RunOutcome {
    /// The fitted model.
    pub model: Arc<dyn FittedModel>,
    /// All releases in order, as an itemised ledger.
    pub releases: Vec<Release>,
    /// The total cost of the releases.
    pub spent: Rho,
    /// Seconds of each batch and of the last step; filled in by [`drive`].
    pub timings: Vec<Timing>,
}

impl RunOutcome {
    /// Returns the outcome of a machine whose releases were paid from `account`.
    pub fn new(model: impl FittedModel + 'static, account: &ReleaseAccount) -> Self {
        Self {
            model: Arc::new(model),
            releases: account.settled().to_vec(),
            spent: account.spent(),
            timings: Vec::new(),
        }
    }
}

/// Seconds of one batch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Timing {
    /// The phase of the batch.
    pub phase: Phase,
    /// Releases in the batch.
    pub releases: usize,
    /// Seconds that the mechanism took to plan the batch, including the fit to earlier answers.
    pub plan_seconds: f64,
    /// Seconds that the source took to answer the batch.
    pub release_seconds: f64,
}

/// Runs a mechanism to its end in this process, and calls `progress` before every batch.
///
/// # Errors
/// Errors of the machine and of the source.
pub fn drive(
    mut run: MechanismRun<AnyMachine>,
    source: &mut dyn ReleaseSource,
    progress: &mut dyn FnMut(RunProgress),
) -> Result<RunOutcome, Error> {
    let mut timings: Vec<Timing> = Vec::new();
    loop {
        let planning = Instant::now();
        let action = run.advance()?;
        let plan_seconds = planning.elapsed().as_secs_f64();
        let mut planned = |at: RunProgress, releases| {
            progress(at);
            timings.push(Timing {
                phase: at.phase,
                releases,
                plan_seconds,
                release_seconds: 0.0,
            });
        };
        match action {
            // Nothing is stored, because the source does not outlive this process.
            Action::Store(batch) => {
                planned(batch.progress, batch.requests.len());
                run.stored()?;
            }
            Action::Ask(batch) => {
                let releasing = Instant::now();
                let answers = source.release(&batch.requests)?;
                if let Some(timing) = timings.last_mut() {
                    timing.release_seconds = releasing.elapsed().as_secs_f64();
                }
                run.answered(answers)?;
            }
            Action::Finish(mut outcome, last) => {
                planned(last, 0);
                outcome.timings = timings;
                return Ok(*outcome);
            }
        }
    }
}

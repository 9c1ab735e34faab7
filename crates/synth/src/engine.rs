//! Mechanisms as state machines, and the driver that runs them over a source.

use std::fmt;
use std::time::Instant;

use fhaim_dp::Rho;
use fhaim_pgm::Model;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::desk::Release;
use crate::source::{ReleaseRequest, Source};

/// What a mechanism is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Total and 1-ways.
    OneWays,
    /// One coarse block for every pair.
    Probe,
    /// A planned batch of blocks: stage 1 or 2.
    Stage(u8),
    /// Scores of all candidates.
    Select,
    /// The marginal selected.
    Measure,
    /// The last fit.
    Fit,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OneWays => f.write_str("1-ways"),
            Self::Probe => f.write_str("probe"),
            Self::Stage(stage) => write!(f, "stage {stage}"),
            Self::Select => f.write_str("select"),
            Self::Measure => f.write_str("measure"),
            Self::Fit => f.write_str("fit"),
        }
    }
}

/// What a mechanism wants next.
#[derive(Debug)]
pub enum Next {
    /// Answers to these, in this order.
    Release(Vec<ReleaseRequest>),
    /// Nothing: it is done.
    Done(Box<Outcome>),
}

/// A mechanism without I/O. It is given all answers so far, one batch a step, and depends on
/// nothing else but its public job: replaying the answers on a fresh one leads to the same
/// requests and the same model (on the same build; logarithms and the like may differ in the
/// last bit between platforms, so a service keeps the requests it has sent).
pub trait Mechanism {
    /// Takes the answers to the requests of the last step (none at the first) and says what
    /// comes next.
    ///
    /// # Errors
    /// Answers that do not fit the requests, and failures of the fit. The mechanism must not be
    /// stepped again after one.
    fn step(&mut self, answers: &[Vec<i64>]) -> Result<Next, Error>;

    /// The phase that the last requests belong to, and where the run stands.
    fn progress(&self) -> Progress;
}

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// The current phase.
    pub phase: Phase,
    /// The current batch, counted from 1; the last fit counts as one.
    pub round: usize,
    /// The most there can be.
    pub rounds: usize,
}

/// What a run leaves behind: everything in it is differentially private.
#[derive(Debug)]
pub struct Outcome {
    /// The fitted model.
    pub model: Model,
    /// All releases in order: the itemised ledger.
    pub releases: Vec<Release>,
    /// What they cost together.
    pub spent: Rho,
    /// Seconds by batch, and of the last step; filled in by [`run`].
    pub timings: Vec<Timing>,
}

/// Seconds of one batch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// The phase of the batch.
    pub phase: Phase,
    /// Releases in the batch.
    pub releases: usize,
    /// Seconds the mechanism took to plan the batch (and to fit what came before).
    pub plan_seconds: f64,
    /// Seconds the source took to answer it.
    pub release_seconds: f64,
}

/// Runs a mechanism to its end, telling `progress` before every batch.
///
/// # Errors
/// Those of the mechanism and of the source.
pub fn run(
    mechanism: &mut dyn Mechanism,
    source: &mut dyn Source,
    progress: &mut dyn FnMut(Progress),
) -> Result<Outcome, Error> {
    let mut timings = Vec::new();
    let mut answers = Vec::new();
    loop {
        let planning = Instant::now();
        let next = mechanism.step(&answers)?;
        let plan_seconds = planning.elapsed().as_secs_f64();
        let state = mechanism.progress();
        let timing = |releases, release_seconds| Timing {
            phase: state.phase,
            releases,
            plan_seconds,
            release_seconds,
        };
        progress(state);
        match next {
            Next::Release(requests) => {
                let releasing = Instant::now();
                answers = source.release(&requests)?;
                timings.push(timing(requests.len(), releasing.elapsed().as_secs_f64()));
            }
            Next::Done(mut outcome) => {
                timings.push(timing(0, 0.0));
                outcome.timings = timings;
                return Ok(*outcome);
            }
        }
    }
}

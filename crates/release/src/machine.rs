//! A run of a mechanism, as seen by the programs that carry its requests and answers.

use serde::Serialize;

use crate::{Phase, ReleaseRequest};

/// The next step of a mechanism.
#[derive(Debug)]
pub enum Next<O> {
    /// The mechanism needs answers to these requests, in this order.
    Release(Vec<ReleaseRequest>),
    /// The mechanism is done, with this outcome.
    Done(Box<O>),
}

/// A run of a mechanism, without I/O. It receives all answers so far, one batch per step, and
/// depends on nothing else but its public job and options.
///
/// To save its state between batches, keep the requests and answers of each batch. To restore it,
/// replay them on a new machine: it makes the same requests and has the same outcome on the same
/// build. Between platforms, logarithms and similar functions may differ in the last bit, so a
/// program that replays must compare the requests with the stored ones.
pub trait Machine: Send {
    /// Result of the run.
    type Outcome;
    /// Reason why it cannot continue.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Takes the answers to the requests of the last step (none at the first step), and returns the
    /// next step.
    ///
    /// # Errors
    /// Answers that do not fit the requests, and failures of the fit. The machine must not be
    /// stepped again after an error.
    fn step(&mut self, answers: &[Vec<i64>]) -> Result<Next<Self::Outcome>, Self::Error>;

    /// Returns the phase of the last requests, and the progress of the run.
    fn progress(&self) -> RunProgress;
}

/// The progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RunProgress {
    /// The current phase.
    pub phase: Phase,
    /// Number of the current batch, counted from 1. The last fit counts as a batch.
    pub round: usize,
    /// Largest possible number of batches.
    pub rounds: usize,
}

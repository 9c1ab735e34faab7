//! A run of a mechanism, as those see it who carry its requests and answers.

use serde::Serialize;

use crate::{Phase, ReleaseRequest};

/// What a mechanism wants next.
#[derive(Debug)]
pub enum Next<O> {
    /// Answers to these, in this order.
    Release(Vec<ReleaseRequest>),
    /// Nothing: it is done, and this is what it leaves.
    Done(Box<O>),
}

/// A run of a mechanism, without I/O. It is given all answers so far, one batch a step, and depends
/// on nothing else but its public job and options.
///
/// Its state between batches is therefore saved by keeping the requests and answers of each batch,
/// and restored by replaying them on a fresh machine, which comes to the same requests and the
/// same outcome. (It does so on the same build: logarithms and the like may differ in the last bit
/// between platforms. Whoever replays compares the requests with those that were kept.)
pub trait Machine: Send {
    /// What it leaves behind.
    type Outcome;
    /// Why it cannot go on.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Takes the answers to the requests of the last step (none at the first) and says what
    /// comes next.
    ///
    /// # Errors
    /// Answers that do not fit the requests, and failures of the fit. The machine must not be
    /// stepped again after one.
    fn step(&mut self, answers: &[Vec<i64>]) -> Result<Next<Self::Outcome>, Self::Error>;

    /// The phase that the last requests belong to, and where the run stands.
    fn progress(&self) -> RunProgress;
}

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RunProgress {
    /// The current phase.
    pub phase: Phase,
    /// The current batch, counted from 1; the last fit counts as one.
    pub round: usize,
    /// The most there can be.
    pub rounds: usize,
}

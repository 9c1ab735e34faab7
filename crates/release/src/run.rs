//! A running job as a state machine without I/O: stored batches in, the next action out.
//!
//! A [`MechanismRun`] plays a mechanism from its start. Batches that were stored before are
//! replayed from their answers. A new batch must be stored before it is requested, so that another
//! program that takes over the job requests the same. Command, service and simulation all drive
//! this state machine. It knows no databases, services or time.

use std::fmt;

use fhaim_dp::Rho;

use crate::{Machine, MechanismJob, Next, ReleaseRequest, RunProgress};

/// A batch that a mechanism requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseBatch {
    /// Number of the batch within the job, from 0.
    pub number: usize,
    /// Progress of the mechanism at the time of the request.
    pub progress: RunProgress,
    /// The requested releases.
    pub requests: Vec<ReleaseRequest>,
}

impl ReleaseBatch {
    /// Returns the number of its first release, by which the computation service identifies the
    /// batch.
    pub fn first(&self) -> Option<u32> {
        self.requests.first().map(|request| request.number)
    }

    /// Returns the number of integers in all its releases.
    pub fn cells(&self) -> usize {
        let cells = |request: &ReleaseRequest| request.statistic.cells();
        self.requests.iter().map(cells).sum()
    }
}

/// A stored batch, with its answers if they have arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredBatch {
    /// The requested releases.
    pub requests: Vec<ReleaseRequest>,
    /// The integers of each release, in the order of the requests.
    pub answers: Option<Vec<Vec<i64>>>,
}

/// The next action.
#[derive(Debug)]
pub enum Action<O> {
    /// Store this batch, and then call [`MechanismRun::stored`].
    Store(ReleaseBatch),
    /// Have this batch released, pass its integers to [`MechanismRun::answered`] or
    /// [`MechanismRun::decrypted`], and store them.
    Ask(ReleaseBatch),
    /// Store this outcome of the last fit. The job is done.
    Finish(Box<O>, RunProgress),
}

/// The reason for which a run cannot continue. A retry does not help.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError<E: std::error::Error + 'static> {
    /// The mechanism refused to continue.
    #[error(transparent)]
    Mechanism(E),
    /// A statistic or a variance is invalid.
    #[error(transparent)]
    Release(#[from] crate::Error),
    /// The mechanism requests other releases in the replay than before.
    #[error(
        "batch {0} was requested by another build of the service, which computes other numbers: \
         continue with that build, or start a new job"
    )]
    Diverged(usize),
    /// Stored batches have a gap in their answers, or are more than the mechanism requests.
    #[error("the stored batches of the job contradict each other")]
    Contradiction,
    /// Answers do not fit the requests.
    #[error("the answers to batch {0} do not fit its requests")]
    Answers(usize),
    /// A call does not follow from the last action.
    #[error("the call does not follow from the run's last action")]
    OutOfTurn,
}

/// A running job.
pub struct MechanismRun<M: Machine + ?Sized> {
    machine: Box<M>,
    job: MechanismJob,
    batches: Vec<StoredBatch>,
    /// The batch whose answers the mechanism waits for, once it has requested one.
    current: Option<usize>,
    /// A batch that is not stored yet.
    pending: Option<ReleaseBatch>,
    spent: Rho,
}

impl<M: Machine + ?Sized> fmt::Debug for MechanismRun<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Run(batch {:?} of {})", self.current, self.batches.len())
    }
}

impl<M: Machine + ?Sized> MechanismRun<M> {
    /// Creates a run from a machine at its start and the stored batches of the job, in order.
    ///
    /// # Errors
    /// Stored batches that contradict each other.
    pub fn new(
        machine: Box<M>,
        job: MechanismJob,
        stored: Vec<StoredBatch>,
    ) -> Result<Self, RunError<M::Error>> {
        let answered = stored.iter().take_while(|b| b.answers.is_some()).count();
        if answered + 1 < stored.len() {
            return Err(RunError::Contradiction);
        }
        let mut spent = Rho::ZERO;
        for batch in stored.iter().take(answered) {
            spent = add(spent, cost_of(&batch.requests, &job)?)?;
        }
        Ok(Self {
            machine,
            job,
            batches: stored,
            current: None,
            pending: None,
            spent,
        })
    }

    /// Returns the total cost of the releases so far.
    pub fn spent(&self) -> Rho {
        self.spent
    }

    /// Computes the next action. It takes as long as the mechanism's steps, so do not call it where
    /// other work waits for it.
    ///
    /// # Errors
    /// See [`RunError`]. The run must not be used after an error.
    pub fn advance(&mut self) -> Result<Action<M::Outcome>, RunError<M::Error>> {
        loop {
            if let Some(batch) = &self.pending {
                return Ok(Action::Store(batch.clone()));
            }
            let answers = match self.current {
                None => Vec::new(),
                Some(number) => {
                    let batch = self.batches.get(number).ok_or(RunError::OutOfTurn)?;
                    let Some(answers) = &batch.answers else {
                        return Ok(Action::Ask(ReleaseBatch {
                            number,
                            progress: self.machine.progress(),
                            requests: batch.requests.clone(),
                        }));
                    };
                    answers.clone()
                }
            };
            match self.machine.step(&answers).map_err(RunError::Mechanism)? {
                Next::Release(requests) => self.asked(requests)?,
                Next::Done(outcome) => return self.done(outcome),
            }
        }
    }

    fn asked(&mut self, requests: Vec<ReleaseRequest>) -> Result<(), RunError<M::Error>> {
        let number = self.current.map_or(0, |number| number + 1);
        match self.batches.get(number) {
            Some(stored) if stored.requests == requests => self.current = Some(number),
            Some(_) => return Err(RunError::Diverged(number)),
            None => {
                self.pending = Some(ReleaseBatch {
                    number,
                    progress: self.machine.progress(),
                    requests,
                });
            }
        }
        Ok(())
    }

    fn done(&self, outcome: Box<M::Outcome>) -> Result<Action<M::Outcome>, RunError<M::Error>> {
        let used = self.current.map_or(0, |number| number + 1);
        if used == self.batches.len() {
            Ok(Action::Finish(outcome, self.machine.progress()))
        } else {
            Err(RunError::Contradiction)
        }
    }

    /// Records that the batch of the last [`Action::Store`] is stored.
    ///
    /// # Errors
    /// [`RunError::OutOfTurn`].
    pub fn stored(&mut self) -> Result<(), RunError<M::Error>> {
        let batch = self.pending.take().ok_or(RunError::OutOfTurn)?;
        self.current = Some(batch.number);
        self.batches.push(StoredBatch {
            requests: batch.requests,
            answers: None,
        });
        Ok(())
    }

    /// Accepts the complete answers to the batch of the last [`Action::Ask`].
    ///
    /// # Errors
    /// [`RunError::OutOfTurn`]; [`RunError::Answers`] if their number does not fit the requests.
    pub fn answered(&mut self, answers: Vec<Vec<i64>>) -> Result<(), RunError<M::Error>> {
        let (number, requests) = self.asked_for()?;
        let cells = requests.iter().map(|request| request.statistic.cells());
        if !cells.eq(answers.iter().map(Vec::len)) {
            return Err(RunError::Answers(number));
        }
        let spent = add(self.spent, cost_of(requests, &self.job)?)?;
        let batch = self.batches.get_mut(number).ok_or(RunError::OutOfTurn)?;
        batch.answers = Some(answers);
        self.spent = spent;
        Ok(())
    }

    /// Accepts the decrypted answers to the batch of the last [`Action::Ask`], adds their public
    /// part, and returns the complete answers. The caller must store them.
    ///
    /// # Errors
    /// Those of [`MechanismRun::answered`].
    pub fn decrypted(
        &mut self,
        mut answers: Vec<Vec<i64>>,
    ) -> Result<Vec<Vec<i64>>, RunError<M::Error>> {
        let (number, requests) = self.asked_for()?;
        for (request, answer) in requests.iter().zip(&mut answers) {
            let whole = request.statistic.add_public_part(answer);
            whole.ok_or(RunError::Answers(number))?;
        }
        self.answered(answers.clone())?;
        Ok(answers)
    }

    /// Returns the batch that waits for its answers.
    fn asked_for(&self) -> Result<(usize, &[ReleaseRequest]), RunError<M::Error>> {
        let number = self.current.ok_or(RunError::OutOfTurn)?;
        match self.batches.get(number) {
            Some(batch) if batch.answers.is_none() => Ok((number, &batch.requests)),
            _ => Err(RunError::OutOfTurn),
        }
    }
}

fn cost_of(requests: &[ReleaseRequest], job: &MechanismJob) -> Result<Rho, crate::Error> {
    requests
        .iter()
        .try_fold(Rho::ZERO, |sum, request| add(sum, request.cost(job)?))
}

fn add(a: Rho, b: Rho) -> Result<Rho, crate::Error> {
    a.checked_add(b).ok_or(crate::Error::Overflow)
}

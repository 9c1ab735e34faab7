//! A job under way: a state machine without I/O, stored batches in, the next thing to do out.
//!
//! A [`MechanismRun`] plays a mechanism from its beginning. Batches that were stored before are replayed
//! from their answers; a batch that is new must be stored before it is asked for, so that whoever
//! takes the job over asks for the same. Command, service and simulation drive this one. Nothing
//! here knows of databases, services or time.

use std::fmt;

use fhaim_dp::Rho;

use crate::{Machine, MechanismJob, Next, ReleaseRequest, RunProgress};

/// A batch that a mechanism asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseBatch {
    /// Its number within the job, from 0.
    pub number: usize,
    /// Where the mechanism stood when it asked.
    pub progress: RunProgress,
    /// What it asked for.
    pub requests: Vec<ReleaseRequest>,
}

impl ReleaseBatch {
    /// Number of its first release: what it goes by at the computation service.
    pub fn first(&self) -> Option<u32> {
        self.requests.first().map(|request| request.number)
    }

    /// Numbers that its releases have together.
    pub fn cells(&self) -> usize {
        let cells = |request: &ReleaseRequest| request.statistic.cells();
        self.requests.iter().map(cells).sum()
    }
}

/// A batch as it was stored, with its answers if they have come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredBatch {
    /// What was asked for.
    pub requests: Vec<ReleaseRequest>,
    /// The integers of each release, in the order asked.
    pub answers: Option<Vec<Vec<i64>>>,
}

/// What to do next.
#[derive(Debug)]
pub enum Action<O> {
    /// Store this batch, then say so with [`MechanismRun::stored`].
    Store(ReleaseBatch),
    /// Get this batch released, hand its integers to [`MechanismRun::answered`] or [`MechanismRun::decrypted`], and
    /// store them.
    Ask(ReleaseBatch),
    /// Store this outcome, after a last fit: the job is done.
    Finish(Box<O>, RunProgress),
}

/// Why a run cannot go on. Trying again will not help.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError<E: std::error::Error + 'static> {
    /// The mechanism refused.
    #[error(transparent)]
    Mechanism(E),
    /// A statistic or a variance that no mechanism asks for.
    #[error(transparent)]
    Release(#[from] crate::Error),
    /// The mechanism, played again, asks for other releases than it did.
    #[error(
        "batch {0} was asked for by another build of the service, whose numbers differ: go on \
         with that build, or begin a new job"
    )]
    Diverged(usize),
    /// Stored batches with a gap in their answers, or more than the mechanism asks for.
    #[error("what is stored of the job contradicts itself")]
    Contradiction,
    /// Answers that are not those asked for.
    #[error("batch {0} was answered with other numbers than were asked for")]
    Answers(usize),
    /// A call that does not follow from the last action.
    #[error("the run was not asked to do this")]
    OutOfTurn,
}

/// A job under way.
pub struct MechanismRun<M: Machine + ?Sized> {
    machine: Box<M>,
    job: MechanismJob,
    batches: Vec<StoredBatch>,
    /// The batch that the mechanism waits for, once it has asked for one.
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
    /// A job over a machine at its beginning, with what is stored of it, in order.
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

    /// What the releases so far cost together.
    pub fn spent(&self) -> Rho {
        self.spent
    }

    /// Works out what to do next. Takes as long as the mechanism's steps do: call it where it
    /// keeps no one waiting.
    ///
    /// # Errors
    /// See [`RunError`]; the run must not be used after one.
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

    /// The batch of the last [`Action::Store`] is stored.
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

    /// Takes the whole answers to the batch of the last [`Action::Ask`].
    ///
    /// # Errors
    /// [`RunError::OutOfTurn`]; [`RunError::Answers`] where they are not as many as were asked
    /// for.
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

    /// Takes the answers to the batch of the last [`Action::Ask`] as they are decrypted, adds what
    /// of them is public, and returns the whole ones, which are to be stored.
    ///
    /// # Errors
    /// As [`MechanismRun::answered`].
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

    /// The batch that waits for its answers.
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

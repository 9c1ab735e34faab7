//! A run of the baseline, with one batch and one fit.

use crate::Error;
use crate::account::ReleaseAccount;
use crate::engine::{MechanismStep, RunOutcome};
use crate::mechanisms::columns::OneWays;
use crate::mechanisms::fitting::{Effort, FINAL_STEPS, FINAL_TOLERANCE, fit_job};
use fhaim_release::MechanismJob;
use fhaim_release::Phase;
use fhaim_release::{Machine, RunProgress};

/// A run in progress.
#[derive(Debug)]
pub(super) struct OneWaysMachine {
    job: MechanismJob,
    account: ReleaseAccount,
    one_ways: OneWays,
    asked: bool,
    done: bool,
}

impl OneWaysMachine {
    pub(super) fn new(job: MechanismJob) -> Result<Self, Error> {
        job.check()?;
        Ok(Self {
            account: ReleaseAccount::new(&job),
            one_ways: OneWays::new(&job, 1.0),
            job,
            asked: false,
            done: false,
        })
    }

    fn finish(&mut self, answers: &[Vec<i64>]) -> Result<MechanismStep, Error> {
        let first = self.account.settle(answers)?;
        for (item, release) in self
            .one_ways
            .items
            .iter_mut()
            .zip(&self.account.settled()[first..])
        {
            item.add(release, &self.job.holders);
        }
        self.one_ways.learn();
        let model = fit_job(
            &self.job,
            &self.account,
            &self.one_ways.measurements(),
            Effort::by_tables(FINAL_STEPS, FINAL_TOLERANCE),
            None,
        )?;
        self.done = true;
        Ok(MechanismStep::Done(Box::new(RunOutcome::new(
            model,
            &self.account,
        ))))
    }
}

impl Machine for OneWaysMachine {
    type Outcome = RunOutcome;
    type Error = Error;

    fn step(&mut self, answers: &[Vec<i64>]) -> Result<MechanismStep, Error> {
        if self.done {
            return Err(Error::Done);
        }
        if self.asked {
            return self.finish(answers);
        }
        if !answers.is_empty() {
            return Err(Error::AnswerCount {
                expected: 0,
                found: answers.len(),
            });
        }
        let offers = self.one_ways.offers(&self.account, self.job.rho.to_f64())?;
        self.asked = true;
        Ok(MechanismStep::Release(
            self.account.ask(Phase::ONE_WAYS, offers)?,
        ))
    }

    fn progress(&self) -> RunProgress {
        RunProgress {
            phase: if self.done {
                Phase::FIT
            } else {
                Phase::ONE_WAYS
            },
            round: usize::from(self.asked) + usize::from(self.done),
            rounds: 2,
        }
    }
}

//! A run of the baseline: one batch, one fit.

use crate::Error;
use crate::desk::Desk;
use crate::engine::{Next, Outcome};
use crate::mechanisms::columns::OneWays;
use crate::mechanisms::fitting::{Effort, FINAL_STEPS, FINAL_TOLERANCE, fit_job};
use fhaim_release::Job;
use fhaim_release::Phase;
use fhaim_release::{Machine, Progress};

/// A run under way.
#[derive(Debug)]
pub(super) struct OneWaysMachine {
    job: Job,
    desk: Desk,
    one_ways: OneWays,
    asked: bool,
    done: bool,
}

impl OneWaysMachine {
    pub(super) fn new(job: Job) -> Result<Self, Error> {
        job.check()?;
        Ok(Self {
            desk: Desk::new(&job),
            one_ways: OneWays::new(&job, 1.0),
            job,
            asked: false,
            done: false,
        })
    }

    fn finish(&mut self, answers: &[Vec<i64>]) -> Result<Next, Error> {
        let first = self.desk.settle(answers)?;
        for (item, release) in self
            .one_ways
            .items
            .iter_mut()
            .zip(&self.desk.settled()[first..])
        {
            item.add(release, &self.job.holders);
        }
        self.one_ways.learn();
        let model = fit_job(
            &self.job,
            &self.desk,
            &self.one_ways.measurements(),
            Effort::by_tables(FINAL_STEPS, FINAL_TOLERANCE),
            None,
        )?;
        self.done = true;
        Ok(Next::Done(Box::new(Outcome::new(model, &self.desk))))
    }
}

impl Machine for OneWaysMachine {
    type Outcome = Outcome;
    type Error = Error;

    fn step(&mut self, answers: &[Vec<i64>]) -> Result<Next, Error> {
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
        let offers = self.one_ways.offers(&self.desk, self.job.rho.to_f64())?;
        self.asked = true;
        Ok(Next::Release(self.desk.ask(Phase::ONE_WAYS, offers)?))
    }

    fn progress(&self) -> Progress {
        Progress {
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

//! A run of the staged mechanism: from each batch's answers to the next batch.

mod look;
mod probe;
mod stage;

use fhaim_domain::Clique;
use fhaim_pgm::{Measurement, Model, Passes};

use super::Staged;
use super::beside::estimate;
use super::ladder::need;
use super::options::STAGES;
use super::pair::Pair;
use super::plan::CandidateStatus;
use super::shrink::shrunk;
use crate::Error;
use crate::account::{Offer, ReleaseAccount};
use crate::engine::{MechanismStep, RunOutcome};
use crate::mechanisms::columns::{Measured, OneWays};
use crate::mechanisms::fitting::{
    Effort, FINAL_STEPS, FINAL_TOLERANCE, FIT_STEPS, FIT_TOLERANCE, fit_job,
};
use crate::mechanisms::merge::Merges;
use crate::mechanisms::score::Prior;
use fhaim_release::MechanismJob;
use fhaim_release::Phase;
use fhaim_release::{Machine, RunProgress};

pub(super) use self::look::{COARSE_LOOK, COARSE_LOOK_SCALE, FIRST_LOOK};
pub(super) use self::stage::ADDITIONS;

/// Weight of the noise of a digit's cell, against that of a pair's. What the digits get, pairs of coarse
/// attributes lose, and a value in the wrong place of its bin is still in its bin.
pub(super) const DIGIT_WEIGHT: f64 = 0.1;

/// Steps that the search of a fit combines. With 20 it needs fewer steps than with 10.
const FIT_MEMORY: usize = 20;

/// A coarse block of every pair, with much noise: tells whether there are any relationships.
const LOOK: Phase = Phase::new("look", "Finding relationships");

/// A coarse block of every pair: tells which pairs are worth measuring.
const PROBE: Phase = Phase::new("probe", "Choosing pairs");

/// A planned batch of blocks. The first has the strongest pairs; later ones have those that the model explains worst.
const fn stage_phase(stage: u8) -> Phase {
    let label = match stage {
        1 => "Measuring the strongest pairs",
        _ => "Measuring the pairs that the model explains worst",
    };
    Phase::numbered("stage", stage, label)
}

/// What a request of the current batch was for.
#[derive(Clone, Copy, Debug)]
enum Purpose {
    /// Index into the total and the 1-ways.
    OneWay(usize),
    /// Pair, and index into its blocks.
    Block(usize, usize),
}

/// What the next step does with its answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Start,
    OneWays,
    Look,
    Probe,
    Stage(u8),
    Done,
}

/// A run under way.
#[derive(Debug)]
pub(super) struct StagedMachine {
    job: MechanismJob,
    mechanism: Staged,
    account: ReleaseAccount,
    state: State,
    /// The ladder has no larger variances.
    largest_units: u64,
    purposes: Vec<Purpose>,
    one_ways: OneWays,
    merges: Vec<Merges>,
    fine_probe: bool,
    /// Whether it tells pairs' entries from noise so well that noise weighs less in plans.
    clear_probe: bool,
    /// What scorings take to be known of all pairs.
    prior: Option<Prior>,
    /// As `prior`, for the blocks of a coarse look.
    coarse_prior: Option<Prior>,
    pairs: Vec<Pair>,
    model: Option<Model>,
}

impl StagedMachine {
    pub(super) fn new(job: MechanismJob, mechanism: Staged) -> Result<Self, Error> {
        let need = need(&job, &mechanism.options)?;
        Ok(Self {
            largest_units: need.largest_variance_units,
            account: ReleaseAccount::new(&job),
            one_ways: OneWays::new(&job, DIGIT_WEIGHT),
            state: State::Start,
            purposes: Vec::new(),
            merges: Vec::new(),
            fine_probe: false,
            clear_probe: false,
            prior: None,
            coarse_prior: None,
            pairs: Vec::new(),
            model: None,
            job,
            mechanism,
        })
    }

    fn rho(&self) -> f64 {
        self.job.rho.to_f64()
    }

    /// Takes the answers of the current batch to where they belong.
    fn settle(&mut self, answers: &[Vec<i64>]) -> Result<(), Error> {
        let first = self.account.settle(answers)?;
        let purposes = std::mem::take(&mut self.purposes);
        for (purpose, release) in purposes.into_iter().zip(&self.account.settled()[first..]) {
            let item = match purpose {
                Purpose::OneWay(item) => &mut self.one_ways.items[item],
                Purpose::Block(pair, block) => &mut self.pairs[pair].blocks[block],
            };
            item.add(release, &self.job.holders);
        }
        self.one_ways.learn();
        Ok(())
    }

    /// Step 1: the total and all 1-ways.
    fn ask_one_ways(&mut self) -> Result<MechanismStep, Error> {
        let budget = self.mechanism.options.one_way_share * self.rho();
        let offers = self.one_ways.offers(&self.account, budget)?;
        self.purposes = (0..offers.len()).map(Purpose::OneWay).collect();
        self.state = State::OneWays;
        Ok(MechanismStep::Release(
            self.account.ask(Phase::ONE_WAYS, offers)?,
        ))
    }

    /// Fits what is in the model so far.
    fn fit(&self, steps: usize, tolerance: f64) -> Result<Model, Error> {
        let measurements = self.measurements();
        let effort = Effort {
            steps,
            tolerance,
            passes: Passes::Contractions,
            memory: FIT_MEMORY,
        };
        fit_job(
            &self.job,
            &self.account,
            &measurements,
            effort,
            self.model.as_ref(),
        )
    }

    fn fit_between(&mut self) -> Result<(), Error> {
        let model = self.fit(FIT_STEPS, FIT_TOLERANCE)?;
        self.model = Some(model);
        Ok(())
    }

    /// The 1-ways and every block of every member, its probe included.
    fn measurements(&self) -> Vec<Measurement> {
        let members = self
            .pairs
            .iter()
            .filter(|pair| pair.plan.standing != CandidateStatus::Outside && !pair.plan.beside);
        let total = self.model.as_ref().map_or(0.0, Model::total);
        let mut measurements = self.one_ways.measurements();
        for pair in members {
            let counts: Vec<f64> = pair.expected.iter().map(|share| share * total).collect();
            let measurement = |block| match counts.as_slice() {
                [] => Measured::measurement(block),
                counts => shrunk(block, counts),
            };
            measurements.extend(pair.blocks.iter().filter_map(measurement));
        }
        measurements
    }

    fn finish(&mut self) -> Result<MechanismStep, Error> {
        let model = self.fit(FINAL_STEPS, FINAL_TOLERANCE)?;
        let beside = self.beside(&model)?;
        let model = model.with_beside(beside)?;
        self.state = State::Done;
        Ok(MechanismStep::Done(Box::new(RunOutcome::new(
            model,
            &self.account,
        ))))
    }

    /// Step 5: the counts of the pairs that the model has no room for, where more is known of them than the model says.
    fn beside(&self, model: &Model) -> Result<Vec<(Clique, Vec<f64>)>, Error> {
        let pairs: Vec<&Pair> = self.pairs.iter().filter(|pair| pair.plan.beside).collect();
        let cliques: Vec<Clique> = pairs.iter().map(|pair| pair.clique()).collect();
        let expected = model.pair_marginals(&cliques)?;
        let tables = pairs.iter().zip(cliques).zip(expected);
        let tables = tables.filter_map(|((pair, clique), expected)| {
            let columns = self.job.domain.size(pair.plan.attributes[1]);
            let expected = (expected.as_slice(), columns);
            Some((clique, estimate(&pair.blocks, expected, model.total())?))
        });
        Ok(tables.collect())
    }

    /// Fits and goes on to the next batch that is not empty, or to the end.
    fn advance(&mut self) -> Result<MechanismStep, Error> {
        loop {
            let (state, phase, offers) = match self.state {
                State::Start => return self.ask_one_ways(),
                State::OneWays => {
                    self.fit_between()?;
                    let offers = self.ask_probe()?;
                    match self.looks_first() {
                        true => (State::Look, LOOK, offers),
                        false => (State::Probe, PROBE, offers),
                    }
                }
                // Of the total and the 1-ways nothing new is known: the model stays.
                State::Look => (State::Probe, PROBE, self.ask_rest_of_probe()?),
                State::Probe => self.next_stage(1)?,
                State::Stage(last) if last < STAGES => self.next_stage(last + 1)?,
                State::Stage(_) => return self.finish(),
                State::Done => return Err(Error::Done),
            };
            self.state = state;
            if !offers.is_empty() {
                return Ok(MechanismStep::Release(self.account.ask(phase, offers)?));
            }
        }
    }

    /// Step 4: one stage's batch.
    fn next_stage(&mut self, stage: u8) -> Result<(State, Phase, Vec<Offer>), Error> {
        self.fit_between()?;
        if stage == 1 && self.looks_first() {
            self.leave_noise_alone()?;
        }
        self.plan_stage()?;
        let offers = self.ask_stage(stage)?;
        Ok((State::Stage(stage), stage_phase(stage), offers))
    }
}

const NO_MODEL: Error = Error::Internal("no model was fitted");

impl Machine for StagedMachine {
    type Outcome = RunOutcome;
    type Error = Error;

    fn step(&mut self, answers: &[Vec<i64>]) -> Result<MechanismStep, Error> {
        if self.state == State::Done {
            return Err(Error::Done);
        }
        self.settle(answers)?;
        self.advance()
    }

    fn progress(&self) -> RunProgress {
        let looks = usize::from(!self.mechanism.ablations.first_look);
        let rounds = 3 + looks + usize::from(STAGES);
        let (phase, round) = match self.state {
            State::Start | State::OneWays => (Phase::ONE_WAYS, 1),
            State::Look => (LOOK, 2),
            State::Probe => (PROBE, 2 + looks),
            State::Stage(stage) => (stage_phase(stage), 2 + looks + usize::from(stage)),
            State::Done => (Phase::FIT, rounds),
        };
        RunProgress {
            phase,
            round,
            rounds,
        }
    }
}

#[cfg(test)]
mod tests;

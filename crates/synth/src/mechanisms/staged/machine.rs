//! A run of the staged mechanism, which computes each batch from the answers so far.

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
pub(super) use self::probe::RESOLUTIONS;
pub(super) use self::stage::{ADDITIONS, ONE_WAY_WEIGHT};

/// Weight of the noise of a digit's cell, relative to a pair's. Budget for digits is lost to pairs
/// of coarse attributes, and a wrong digit still leaves a value in its bin.
pub(super) const DIGIT_WEIGHT: f64 = 0.1;

/// Number of past steps that a fit combines. With 20 a fit needs fewer steps than with 10.
const FIT_MEMORY: usize = 20;

/// The first part of a finer probe: shows whether there are any dependences.
const LOOK: Phase = Phase::new("look", "Finding relationships");

/// The probe, or its rest: shows which pairs are worth measuring.
const PROBE: Phase = Phase::new("probe", "Choosing pairs");

/// A planned batch of blocks. The first measures the strongest pairs; later ones those that the
/// model explains worst.
const fn stage_phase(stage: u8) -> Phase {
    let label = match stage {
        1 => "Measuring the strongest pairs",
        _ => "Measuring the pairs that the model explains worst",
    };
    Phase::numbered("stage", stage, label)
}

/// The item that a request of the current batch measures.
#[derive(Clone, Copy, Debug)]
enum Purpose {
    /// Index into the total and the 1-ways.
    OneWay(usize),
    /// Pair, and index into its blocks.
    Block(usize, usize),
}

/// The use of the next answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Start,
    OneWays,
    Look,
    Probe,
    Stage(u8),
    Done,
}

/// A run in progress.
#[derive(Debug)]
pub(super) struct StagedMachine {
    job: MechanismJob,
    mechanism: Staged,
    account: ReleaseAccount,
    state: State,
    /// Largest variance of the ladder.
    largest_units: u64,
    purposes: Vec<Purpose>,
    one_ways: OneWays,
    merges: Vec<Merges>,
    fine_probe: bool,
    /// Whether the probe distinguishes pairs' entries from noise so well that noise weighs less in
    /// plans.
    clear_probe: bool,
    /// The prior of the pairs' signals, learned at the last scoring.
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

    /// Stores the answers of the current batch in the items that requested them.
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

    /// Step 1: requests the total and all 1-ways.
    fn ask_one_ways(&mut self) -> Result<MechanismStep, Error> {
        let budget = self.mechanism.options.one_way_share * self.rho();
        let offers = self.one_ways.offers(&self.account, budget)?;
        self.purposes = (0..offers.len()).map(Purpose::OneWay).collect();
        self.state = State::OneWays;
        Ok(MechanismStep::Release(
            self.account.ask(Phase::ONE_WAYS, offers)?,
        ))
    }

    /// Fits a model to the measurements of its members.
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

    /// Returns the measurements for the fit: the 1-ways, and every block of every pair in the
    /// model, including its probe.
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

    /// Step 5: estimates the counts of extra pairs whose measurements tell more than the model.
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

    /// Fits, and continues with the next batch that is not empty, or finishes.
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
                // The look tells nothing new about the total and the 1-ways, so the model stays.
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

    /// Step 4: returns one stage's batch.
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

//! `fhaim-l2`: the rule of the FHAIM paper, under encryption (docs/MECHANISM.md, B).
//!
//! Candidates are scored by w (||M - Mhat||_2^2 - sigma^2 n), with M encrypted and Mhat public:
//! ||M||^2 - 2 <M, Mhat> + ||Mhat||^2. The decryptor reads every noisy score, so they are
//! released, and paid for, as one Gaussian vector of sensitivity (2 N + 1) sqrt(sum w^2). (The
//! paper pays for the winner alone; [`crate::aim`] has that accounting in the clear, for
//! comparison.)

use fhaim_domain::Clique;
use fhaim_pgm::{Measurement, Model, ModelGraph};

use crate::anneal::Schedule;
use crate::candidates::{
    CELL_SCALE, Candidate, candidates, cells_measurement, cells_statistic, eligible, l1_distance,
};
use crate::desk::{Desk, Offer};
use crate::engine::{Mechanism, Next, Outcome, Phase, Progress};
use crate::one_ways::{FINAL_STEPS, FINAL_TOLERANCE, fit_job};
use crate::source::{SquaredTerm, Statistic};
use crate::{Error, Job, LadderNeed};

/// What may be tuned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FhaimL2Options {
    /// T over the number of attributes: the budget is cut for so many rounds each.
    pub rounds_per_attribute: f64,
    /// Steps of the fits between.
    pub fit_steps: usize,
    /// Tolerance of the fits between.
    pub fit_tolerance: f64,
    /// Steps of the last fit.
    pub final_steps: usize,
}

impl Default for FhaimL2Options {
    fn default() -> Self {
        Self {
            rounds_per_attribute: 4.0,
            fit_steps: 100,
            fit_tolerance: 1e-3,
            final_steps: FINAL_STEPS,
        }
    }
}

/// What the next step does with its answers.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Start,
    OneWays,
    /// Scores of these candidates were asked for.
    Select(Vec<usize>),
    /// This candidate's cells were asked for.
    Measure(usize),
    Done,
}

/// The mechanism of the paper over a source.
#[derive(Debug)]
pub struct FhaimL2 {
    job: Job,
    options: FhaimL2Options,
    desk: Desk,
    state: State,
    candidates: Vec<Candidate>,
    schedule: Schedule,
    graph: ModelGraph,
    measurements: Vec<Measurement>,
    model: Option<Model>,
    batches: usize,
}

/// Cells with less noise than this are released at [`CELL_SCALE`]: the ladder's step of two
/// counts would waste budget.
const FINE_BELOW: f64 = 8.0;

const NO_MODEL: Error = Error::Internal("no model was fitted");

impl FhaimL2 {
    /// Ready for its first step.
    ///
    /// # Errors
    /// As [`Job::check`]; fewer than one round.
    pub fn new(job: Job, options: FhaimL2Options) -> Result<Self, Error> {
        job.check()?;
        let mut candidates = candidates(&job, false);
        reduce_weights(&mut candidates);
        Ok(Self {
            desk: Desk::new(&job),
            state: State::Start,
            candidates,
            schedule: Schedule::new(job.rho.to_f64(), rounds(&job, &options))?,
            graph: ModelGraph::new(&job.domain),
            measurements: Vec::new(),
            model: None,
            batches: 0,
            job,
            options,
        })
    }

    /// Takes in answers that are cells of marginals.
    fn take_cells(&mut self, answers: &[Vec<i64>]) -> Result<(), Error> {
        let first = self.desk.settle(answers)?;
        for release in &self.desk.settled()[first..] {
            self.graph.add(&release.request.statistic.clique());
            self.measurements.push(cells_measurement(release));
        }
        Ok(())
    }

    fn fit(&self, steps: usize, tolerance: f64) -> Result<Model, Error> {
        let warm = self.model.as_ref();
        fit_job(&self.job, &self.measurements, steps, tolerance, warm)
    }

    fn fit_between(&mut self) -> Result<(), Error> {
        let model = self.fit(self.options.fit_steps, self.options.fit_tolerance)?;
        self.model = Some(model);
        Ok(())
    }

    /// All cells of a clique at the schedule's noise; `None` if the budget does not pay for it.
    fn offer_cells(&self, clique: &Clique) -> Result<Option<Offer>, Error> {
        let fine = self.schedule.sigma < FINE_BELOW;
        let scale = if fine { CELL_SCALE } else { 1 };
        let statistic = cells_statistic(&self.job, clique, scale);
        let share = self.schedule.measure_rho();
        self.desk.offer(statistic, share, u64::MAX)
    }

    fn ask_one_ways(&mut self) -> Result<Next, Error> {
        let offers = (0..self.job.domain.len())
            .map(|a| {
                let offer = self.offer_cells(&Clique::new([a]))?;
                offer.ok_or(Error::BudgetTooSmall(self.job.rho))
            })
            .collect::<Result<_, Error>>()?;
        self.state = State::OneWays;
        self.ask(Phase::OneWays, offers)
    }

    fn ask(&mut self, phase: Phase, offers: Vec<Offer>) -> Result<Next, Error> {
        self.batches += 1;
        Ok(Next::Release(self.desk.ask(phase, offers)?))
    }

    /// Asks for the scores of all candidates that the model has room for.
    fn ask_scores(&mut self) -> Result<Next, Error> {
        if self.schedule.last {
            return self.finish();
        }
        self.schedule.begin_round(self.desk.left().to_f64());
        let used = self.desk.spent().to_f64() / self.job.rho.to_f64();
        let used = if self.schedule.last { 1.0 } else { used };
        let eligible = eligible(&self.job, &self.graph, &self.candidates, used);
        if eligible.is_empty() {
            return self.finish();
        }
        let statistic = Statistic::SquaredScores(self.terms(&eligible)?);
        let share = self.schedule.select_rho();
        let Some(offer) = self.desk.offer(statistic, share, u64::MAX)? else {
            return self.finish();
        };
        self.state = State::Select(eligible);
        self.ask(Phase::Select, vec![offer])
    }

    fn terms(&self, eligible: &[usize]) -> Result<Vec<SquaredTerm>, Error> {
        let cliques: Vec<Clique> = eligible
            .iter()
            .map(|&i| self.candidates[i].clique.clone())
            .collect();
        let model = self.model.as_ref().ok_or(NO_MODEL)?;
        let marginals = model.pair_marginals(&cliques)?;
        let bound = self.job.record_bound.min(i64::MAX as u64) as f64;
        Ok(eligible
            .iter()
            .zip(cliques)
            .zip(&marginals)
            .map(|((&i, clique), marginal)| SquaredTerm {
                clique,
                weight: self.candidates[i].weight as i64,
                target: marginal
                    .iter()
                    .map(|mu| mu.round().clamp(0.0, bound) as i64)
                    .collect(),
            })
            .collect())
    }

    /// Reads the scores and asks for the winner's cells.
    fn ask_winner(&mut self, eligible: &[usize], answers: &[Vec<i64>]) -> Result<Next, Error> {
        let first = self.desk.settle(answers)?;
        let scores = &self.desk.settled()[first].values;
        let variance = self.schedule.sigma * self.schedule.sigma;
        let score = |position: usize| {
            let candidate = &self.candidates[eligible[position]];
            let noise = variance * candidate.cells as f64;
            scores[position] as f64 - candidate.weight as f64 * noise
        };
        let winner = (0..eligible.len())
            .max_by(|&i, &j| score(i).total_cmp(&score(j)))
            .map(|position| eligible[position])
            .ok_or(Error::Internal("no candidate was scored"))?;
        let Some(offer) = self.offer_cells(&self.candidates[winner].clique)? else {
            return self.finish();
        };
        self.state = State::Measure(winner);
        self.ask(Phase::Measure, vec![offer])
    }

    /// Fits the winner's cells and adjusts the noise.
    fn learn(&mut self, winner: usize) -> Result<(), Error> {
        let clique = self.candidates[winner].clique.clone();
        let before = self.model.as_ref().ok_or(NO_MODEL)?.marginal(&clique)?;
        self.fit_between()?;
        let after = self.model.as_ref().ok_or(NO_MODEL)?.marginal(&clique)?;
        self.schedule
            .end_round(l1_distance(&before, &after), before.len());
        Ok(())
    }

    fn finish(&mut self) -> Result<Next, Error> {
        let model = self.fit(self.options.final_steps, FINAL_TOLERANCE)?;
        self.state = State::Done;
        Ok(Next::Done(Box::new(Outcome {
            model,
            releases: self.desk.settled().to_vec(),
            spent: self.desk.spent(),
            timings: Vec::new(),
        })))
    }
}

impl Mechanism for FhaimL2 {
    fn step(&mut self, answers: &[Vec<i64>]) -> Result<Next, Error> {
        match self.state.clone() {
            State::Start => {
                self.desk.settle(answers)?;
                self.ask_one_ways()
            }
            State::OneWays => {
                self.take_cells(answers)?;
                self.fit_between()?;
                self.ask_scores()
            }
            State::Select(eligible) => self.ask_winner(&eligible, answers),
            State::Measure(winner) => {
                self.take_cells(answers)?;
                self.learn(winner)?;
                self.ask_scores()
            }
            State::Done => Err(Error::Done),
        }
    }

    fn progress(&self) -> Progress {
        let phase = match self.state {
            State::Start | State::OneWays => Phase::OneWays,
            State::Select(_) => Phase::Select,
            State::Measure(_) => Phase::Measure,
            State::Done => Phase::Fit,
        };
        Progress {
            phase,
            round: self.batches,
            rounds: most_batches(&self.job, &self.options),
        }
    }
}

/// Divides all weights by their greatest common divisor: scores keep their order and the
/// statistic its size.
fn reduce_weights(candidates: &mut [Candidate]) {
    let divisor = candidates
        .iter()
        .fold(0, |gcd, c| greatest_common_divisor(gcd, c.weight));
    if divisor > 1 {
        candidates.iter_mut().for_each(|c| c.weight /= divisor);
    }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        greatest_common_divisor(b, a % b)
    }
}

/// T.
fn rounds(job: &Job, options: &FhaimL2Options) -> f64 {
    options.rounds_per_attribute * job.domain.len() as f64
}

/// Batches there can be: noise is never more than at the start, so a round never costs less
/// than the T-th part of rho.
fn most_batches(job: &Job, options: &FhaimL2Options) -> usize {
    1 + 2 * (rounds(job, options).max(1.0).ceil() as usize + 1)
}

/// What the mechanism may ask of a noise ladder.
pub(crate) fn ladder_need(job: &Job, options: &FhaimL2Options) -> Result<LadderNeed, Error> {
    let mechanism = FhaimL2::new(job.clone(), *options)?;
    let desk = &mechanism.desk;
    let schedule = &mechanism.schedule;
    let too_small = || Error::BudgetTooSmall(job.rho);
    let largest = mechanism.candidates.iter().map(|c| c.cells).max();
    let rounds = most_batches(job, options) / 2;
    // The first round's noise is the largest, whatever is selected; scores of all candidates
    // have the largest sensitivity.
    let terms: Vec<SquaredTerm> = mechanism
        .candidates
        .iter()
        .map(|candidate| SquaredTerm {
            clique: candidate.clique.clone(),
            weight: candidate.weight as i64,
            target: Vec::new(),
        })
        .collect();
    let scored = terms.len();
    let scores = Statistic::SquaredScores(terms);
    let scores = desk
        .offer(scores, schedule.select_rho(), u64::MAX)?
        .ok_or_else(too_small)?;
    let cells = desk
        .offer(Statistic::Total, schedule.measure_rho(), u64::MAX)?
        .ok_or_else(too_small)?;
    let fine = cells_statistic(job, &Clique::new([0]), CELL_SCALE);
    let fine = desk.offer(fine, 1.0 / (2.0 * FINE_BELOW * FINE_BELOW), u64::MAX)?;
    let fine = fine.as_ref().map_or(1, Offer::variance_units);
    Ok(LadderNeed {
        cells: rounds
            .saturating_mul(largest.unwrap_or(0).saturating_add(scored))
            .saturating_add(job.domain.columns()),
        largest_variance_units: [scores.variance_units(), cells.variance_units(), fine]
            .into_iter()
            .fold(1, u64::max),
    })
}

//! A run of the paper's rule. Each round releases the scores, then the winner's cells.

use fhaim_domain::Clique;
use fhaim_pgm::{Measurement, Model, ModelGraph};

use super::options::FhaimL2Options;
use crate::Error;
use crate::account::{Offer, ReleaseAccount};
use crate::engine::{MechanismStep, RunOutcome};
use crate::mechanisms::anneal::Schedule;
use crate::mechanisms::candidates::{
    CELL_SCALE, Candidate, candidates, cells_measurement, cells_statistic, eligible, first_cliques,
    l1_distance,
};
use crate::mechanisms::fitting::{
    Effort, FINAL_STEPS, FINAL_TOLERANCE, FIT_STEPS, FIT_TOLERANCE, fit_job,
};
use fhaim_release::MechanismJob;
use fhaim_release::Phase;
use fhaim_release::{Machine, RunProgress};
use fhaim_release::{SquaredTerm, Statistic};

/// The use of the next answers.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Start,
    OneWays,
    /// The scores of these candidates were requested.
    Select(Vec<usize>),
    /// This candidate's cells were requested.
    Measure(usize),
    Done,
}

/// A run in progress.
#[derive(Debug)]
pub(super) struct FhaimL2Machine {
    job: MechanismJob,
    options: FhaimL2Options,
    pub(super) account: ReleaseAccount,
    state: State,
    pub(super) candidates: Vec<Candidate>,
    pub(super) schedule: Schedule,
    graph: ModelGraph,
    measurements: Vec<Measurement>,
    model: Option<Model>,
    batches: usize,
}

/// Cells with less noise than this are released at [`CELL_SCALE`], because the ladder's step of two
/// counts would waste budget.
const FINE_BELOW: f64 = 8.0;

/// Returns [`FINE_BELOW`] for each of the holders whose noise is paid for.
pub(super) fn fine_below(job: &MechanismJob) -> f64 {
    FINE_BELOW * f64::from(job.holders.honest()).sqrt()
}

const NO_MODEL: Error = Error::Internal("no model was fitted");

impl FhaimL2Machine {
    pub(super) fn new(job: MechanismJob, options: FhaimL2Options) -> Result<Self, Error> {
        job.check_pairs()?;
        let mut candidates = candidates(&job, false);
        reduce_weights(&mut candidates);
        Ok(Self {
            account: ReleaseAccount::new(&job),
            state: State::Start,
            candidates,
            schedule: Schedule::new(job.rho.to_f64(), options.rounds(&job))?,
            graph: ModelGraph::new(&job.domain),
            measurements: Vec::new(),
            model: None,
            batches: 0,
            job,
            options,
        })
    }

    /// Stores answers that are cells of marginals.
    fn take_cells(&mut self, answers: &[Vec<i64>]) -> Result<(), Error> {
        let first = self.account.settle(answers)?;
        for release in &self.account.settled()[first..] {
            self.graph.add(&release.request.statistic.clique());
            self.measurements
                .push(cells_measurement(&self.job, release));
        }
        Ok(())
    }

    fn fit(&self, steps: usize, tolerance: f64) -> Result<Model, Error> {
        let warm = self.model.as_ref();
        let effort = Effort::by_tables(steps, tolerance);
        fit_job(&self.job, &self.account, &self.measurements, effort, warm)
    }

    fn fit_between(&mut self) -> Result<(), Error> {
        let model = self.fit(FIT_STEPS, FIT_TOLERANCE)?;
        self.model = Some(model);
        Ok(())
    }

    /// Returns all cells of a clique with the schedule's noise, or `None` if the budget does not
    /// pay for them.
    fn offer_cells(&self, clique: &Clique) -> Result<Option<Offer>, Error> {
        let fine = self.schedule.sigma < fine_below(&self.job);
        let scale = if fine { CELL_SCALE } else { 1 };
        let statistic = cells_statistic(&self.job, clique, scale);
        let share = self.schedule.measure_rho();
        self.account.offer(statistic, share, u64::MAX)
    }

    fn ask_one_ways(&mut self) -> Result<MechanismStep, Error> {
        let offers = first_cliques(&self.job.domain)
            .iter()
            .map(|clique| {
                let offer = self.offer_cells(clique)?;
                offer.ok_or(Error::budget_too_small(self.job.rho))
            })
            .collect::<Result<_, Error>>()?;
        self.state = State::OneWays;
        self.ask(Phase::ONE_WAYS, offers)
    }

    fn ask(&mut self, phase: Phase, offers: Vec<Offer>) -> Result<MechanismStep, Error> {
        self.batches += 1;
        Ok(MechanismStep::Release(self.account.ask(phase, offers)?))
    }

    /// Requests the scores of all candidates that fit into the model.
    fn ask_scores(&mut self) -> Result<MechanismStep, Error> {
        if self.schedule.last {
            return self.finish();
        }
        self.schedule.begin_round(self.account.left().to_f64());
        let used = self.account.spent().to_f64() / self.job.rho.to_f64();
        let used = if self.schedule.last { 1.0 } else { used };
        let eligible = eligible(&self.job, &self.graph, &self.candidates, used);
        if eligible.is_empty() {
            return self.finish();
        }
        let statistic = Statistic::SquaredScores(self.terms(&eligible)?);
        let share = self.schedule.select_rho();
        let Some(offer) = self.account.offer(statistic, share, u64::MAX)? else {
            return self.finish();
        };
        self.state = State::Select(eligible);
        self.ask(Phase::SELECT, vec![offer])
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

    /// Reads the scores and requests the winner's cells.
    fn ask_winner(
        &mut self,
        eligible: &[usize],
        answers: &[Vec<i64>],
    ) -> Result<MechanismStep, Error> {
        let first = self.account.settle(answers)?;
        let scores = &self.account.settled()[first].values;
        let sigma = self.schedule.sigma * self.job.holders.inflation();
        let variance = sigma * sigma;
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
        self.ask(Phase::MEASURE, vec![offer])
    }

    /// Fits the model to the winner's cells and adjusts the noise.
    fn learn(&mut self, winner: usize) -> Result<(), Error> {
        let clique = self.candidates[winner].clique.clone();
        let before = self.model.as_ref().ok_or(NO_MODEL)?.marginal(&clique)?;
        self.fit_between()?;
        let after = self.model.as_ref().ok_or(NO_MODEL)?.marginal(&clique)?;
        // The schedule has the noise that is paid for; the answer has the noise of all holders.
        let moved = l1_distance(&before, &after) / self.job.holders.inflation();
        self.schedule.end_round(moved, before.len());
        Ok(())
    }

    fn finish(&mut self) -> Result<MechanismStep, Error> {
        let model = self.fit(FINAL_STEPS, FINAL_TOLERANCE)?;
        self.state = State::Done;
        Ok(MechanismStep::Done(Box::new(RunOutcome::new(
            model,
            &self.account,
        ))))
    }
}

impl Machine for FhaimL2Machine {
    type Outcome = RunOutcome;
    type Error = Error;

    fn step(&mut self, answers: &[Vec<i64>]) -> Result<MechanismStep, Error> {
        match self.state.clone() {
            State::Start => {
                self.account.settle(answers)?;
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

    fn progress(&self) -> RunProgress {
        let phase = match self.state {
            State::Start | State::OneWays => Phase::ONE_WAYS,
            State::Select(_) => Phase::SELECT,
            State::Measure(_) => Phase::MEASURE,
            State::Done => Phase::FIT,
        };
        RunProgress {
            phase,
            round: self.batches,
            rounds: self.options.most_batches(&self.job),
        }
    }
}

/// Divides all weights by their greatest common divisor. This keeps the order of the scores and
/// makes the statistic smaller.
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

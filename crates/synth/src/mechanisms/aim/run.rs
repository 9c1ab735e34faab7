//! A run of AIM: measures the 1-ways, then one selected candidate in each round, until the budget
//! is spent.

use fhaim_domain::{Clique, Table};
use fhaim_dp::{MAX_SELECTION_EPSILON, Selection};
use fhaim_pgm::{Measurement, Model, ModelGraph, Passes};
use rand::RngCore;

use super::options::{AimOptions, FixedRounds, Score};
use super::polynomial::Polynomial;
use crate::Error;
use crate::account::{Offer, ReleaseAccount};
use crate::engine::RunOutcome;
use crate::mechanisms::anneal::Schedule;
use crate::mechanisms::candidates::{
    CELL_SCALE, Candidate, candidates, cells_measurement, cells_statistic, eligible, first_cliques,
    l1_distance,
};
use crate::mechanisms::fitting::{
    Effort, FINAL_STEPS, FINAL_TOLERANCE, FIT_MEMORY, FIT_STEPS, FIT_TOLERANCE, fit_to_total,
};
use crate::mechanisms::score::MEAN_ABS;
use crate::plaintext::PlaintextSource;
use fhaim_release::MechanismJob;
use fhaim_release::Phase;
use fhaim_release::RunProgress;
use fhaim_release::{ReleaseSource, Statistic, UNIT_VARIANCE};

/// One run of AIM.
pub(super) struct Run<'a> {
    job: &'a MechanismJob,
    options: &'a AimOptions,
    candidates: Vec<Candidate>,
    /// The exact marginals of the candidates.
    exact: Vec<Vec<u64>>,
    table: &'a Table,
    rng: &'a mut dyn RngCore,
    account: ReleaseAccount,
    schedule: Schedule,
    graph: ModelGraph,
    measurements: Vec<Measurement>,
    /// The released number of records, if the schedule is fixed.
    total: Option<f64>,
    polynomial: Polynomial,
}

impl<'a> Run<'a> {
    /// Prepares a run on a table of the job's domain.
    pub(super) fn new(
        table: &'a Table,
        job: &'a MechanismJob,
        options: &'a AimOptions,
        rng: &'a mut dyn RngCore,
    ) -> Result<Self, Error> {
        job.check_pairs()?;
        if table.domain() != &job.domain {
            return Err(Error::OtherDomain);
        }
        let candidates = candidates(job, true);
        let exact = candidates
            .iter()
            .map(|candidate| Ok(table.counts(&candidate.clique)?))
            .collect::<Result<_, Error>>()?;
        let schedule = match &options.fixed {
            Some(fixed) => Schedule::fixed(sigma(fixed), fixed.epsilon, fixed.rounds),
            None => Schedule::new(job.rho.to_f64(), options.rounds(job))?,
        };
        Ok(Self {
            exact,
            candidates,
            table,
            rng,
            account: ReleaseAccount::new(job),
            schedule,
            graph: ModelGraph::new(&job.domain),
            measurements: Vec::new(),
            total: None,
            polynomial: Polynomial::up_to(job.record_bound),
            job,
            options,
        })
    }

    /// Runs until the budget is spent.
    pub(super) fn run(
        mut self,
        progress: &mut dyn FnMut(RunProgress),
    ) -> Result<RunOutcome, Error> {
        let rounds = self.options.rounds(self.job).ceil() as usize + 2;
        let mut tell = |phase, round| {
            progress(RunProgress {
                phase,
                round,
                rounds,
            });
        };
        tell(Phase::ONE_WAYS, 1);
        if let Some(fixed) = &self.options.fixed {
            let offer = self.account.offer_at(Statistic::Total, fixed.total_units)?;
            let first = self.release(Phase::ONE_WAYS, offer)?;
            let total = self.account.settled()[first].values[0];
            self.total = Some(total.max(1) as f64);
        }
        for clique in first_cliques(&self.job.domain) {
            self.measure(Phase::ONE_WAYS, &clique)?;
        }
        let mut model = self.fit_between(None)?;
        let mut round = 1;
        while !self.schedule.last {
            round += 1;
            tell(Phase::MEASURE, round);
            self.schedule.begin_round(self.account.left().to_f64());
            let Some(winner) = self.select(&model)? else {
                break;
            };
            let clique = self.candidates[winner].clique.clone();
            if !self.measure(Phase::MEASURE, &clique)? {
                break;
            }
            let before = model.marginal(&clique)?;
            model = self.fit_between(Some(&model))?;
            let moved = l1_distance(&before, &model.marginal(&clique)?);
            self.schedule.end_round(moved, before.len());
        }
        tell(Phase::FIT, round + 1);
        let model = self.fit(FINAL_STEPS, FINAL_TOLERANCE, Some(&model))?;
        Ok(RunOutcome::new(model, &self.account))
    }

    fn fit_between(&self, warm: Option<&Model>) -> Result<Model, Error> {
        self.fit(FIT_STEPS, FIT_TOLERANCE, warm)
    }

    fn fit(&self, steps: usize, tolerance: f64, warm: Option<&Model>) -> Result<Model, Error> {
        let effort = Effort {
            steps,
            tolerance,
            passes: Passes::Contractions,
            memory: FIT_MEMORY,
        };
        fit_to_total(
            self.job,
            &self.account,
            &self.measurements,
            self.total,
            effort,
            warm,
        )
    }

    /// Measures a clique with the current noise. Returns `false` if the budget does not pay for it.
    fn measure(&mut self, phase: Phase, clique: &Clique) -> Result<bool, Error> {
        let offer = match &self.options.fixed {
            Some(fixed) => {
                let statistic = cells_statistic(self.job, clique, 1);
                let offer = self.account.offer_at(statistic, fixed.variance_units)?;
                let offers = std::slice::from_ref(&offer);
                self.account.affords(offers).then_some(offer)
            }
            None => {
                let statistic = cells_statistic(self.job, clique, CELL_SCALE);
                let share = self.schedule.measure_rho();
                self.account.offer(statistic, share, u64::MAX)?
            }
        };
        let Some(offer) = offer else {
            return Ok(false);
        };
        let first = self.release(phase, offer)?;
        for release in &self.account.settled()[first..] {
            self.measurements.push(cells_measurement(self.job, release));
        }
        self.graph.add(clique);
        Ok(true)
    }

    /// Pays for an offer and gets its answer. Returns the index of the answer among the settled
    /// releases.
    fn release(&mut self, phase: Phase, offer: Offer) -> Result<usize, Error> {
        let requests = self.account.ask(phase, vec![offer])?;
        let mut source = PlaintextSource::continuing(self.table, self.rng, &requests);
        let answers = source.release(&requests)?;
        self.account.settle(&answers)
    }

    /// Selects a candidate that fits into the model by the exponential mechanism. The selection is
    /// drawn exactly from integer scores and costs epsilon^2 / 8.
    fn select(&mut self, model: &Model) -> Result<Option<usize>, Error> {
        let used = if self.schedule.last {
            1.0
        } else {
            self.account.spent().to_f64() / self.job.rho.to_f64()
        };
        let eligible = eligible(self.job, &self.graph, &self.candidates, used);
        let heaviest = self.candidates.iter().map(|c| c.weight).max().unwrap_or(0);
        // With a single column there is nothing more to measure, and no score to choose by.
        if eligible.is_empty() || heaviest == 0 {
            return Ok(None);
        }
        let epsilon = self.schedule.epsilon.min(MAX_SELECTION_EPSILON);
        let selection = Selection::new(epsilon, heaviest.saturating_mul(self.score_step()))?;
        if !self.account.spend(selection.rho()?) {
            return Ok(None);
        }
        let cliques: Vec<Clique> = eligible
            .iter()
            .map(|&i| self.candidates[i].clique.clone())
            .collect();
        let marginals = model.pair_marginals(&cliques)?;
        let scored = eligible.iter().zip(&marginals);
        let scores: Vec<i64> = scored.map(|(&i, m)| self.score(i, m)).collect();
        let chosen = selection.choose(&scores, self.rng);
        Ok(chosen.map(|position| eligible[position]))
    }

    /// Returns the most that one record changes a score of weight 1.
    fn score_step(&self) -> u64 {
        match self.options.score {
            Score::L1 => 1,
            Score::SquaredL2 => self.job.record_bound.saturating_mul(2).saturating_add(1),
            Score::PolynomialL1 => self.polynomial.step(),
        }
    }

    /// Returns a candidate's integer score. The model's counts are rounded, which changes the score
    /// but not its sensitivity.
    fn score(&self, candidate: usize, marginal: &[f64]) -> i64 {
        let Candidate { weight, cells, .. } = self.candidates[candidate];
        let exact = &self.exact[candidate];
        let (cells, sigma) = (cells as f64, self.schedule.sigma);
        let differences = exact.iter().zip(marginal);
        let differences = differences.map(|(&m, mu)| m.abs_diff(mu.round() as u64));
        let gain = match self.options.score {
            Score::L1 => {
                let distance: u64 = differences.sum();
                i128::from(distance) - (MEAN_ABS * sigma * cells).round() as i128
            }
            Score::SquaredL2 => {
                let squares: i128 = differences.map(|d| i128::from(d) * i128::from(d)).sum();
                squares - (sigma * sigma * cells).round() as i128
            }
            Score::PolynomialL1 => {
                let distance: i128 = differences.map(|d| self.polynomial.value(d)).sum();
                distance - self.polynomial.scaled(MEAN_ABS * sigma * cells)
            }
        };
        let score = gain.saturating_mul(i128::from(weight));
        score.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
    }
}

/// Returns the standard deviation of a fixed schedule's measurements.
fn sigma(fixed: &FixedRounds) -> f64 {
    (UNIT_VARIANCE as f64 * fixed.variance_units as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mechanism::Mechanism;
    use crate::{Aim, FhaimL2};
    use fhaim_domain::Schema;
    use fhaim_dp::Rho;
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    fn table() -> Table {
        let column = |name| {
            format!(r#"{{"name": "{name}", "kind": "categorical", "categories": ["x", "y", "z"]}}"#)
        };
        let columns = ["a", "b", "c"].map(column).join(", ");
        let json = format!(r#"{{"name": "three", "columns": [{columns}]}}"#);
        let schema = Schema::from_json("three", json.as_bytes()).unwrap();
        let columns = [1, 2, 4].map(|period| (0..200).map(|row| row / period % 3).collect());
        Table::new(schema, columns.to_vec()).unwrap()
    }

    #[test]
    fn large_budget_is_spent_even_with_little_noise() {
        let table = table();
        let rho = Rho::from_f64_down(1.0).unwrap();
        let job = MechanismJob::new(table.domain().clone(), rho, 200);
        let (aim, paper): (&dyn Mechanism, &dyn Mechanism) = (&Aim::default(), &FhaimL2::default());
        for (seed, mechanism) in (0..5)
            .map(|seed| (seed, aim))
            .chain([(0, paper), (1, paper)])
        {
            let mut rng = StdRng::seed_from_u64(seed);
            let outcome = mechanism.run_in_the_clear(&table, &job, &mut rng, &mut |_| {});
            let outcome = outcome.unwrap();
            assert!(outcome.spent <= rho);
            assert!(outcome.spent.to_f64() > 0.97 * rho.to_f64());
            let clique = Clique::new([0, 1]);
            let exact = table.counts(&clique).unwrap();
            let exact: Vec<f64> = exact.into_iter().map(|count| count as f64).collect();
            let fitted = outcome
                .model
                .marginals()
                .unwrap()
                .marginal(&clique)
                .unwrap();
            assert!(l1_distance(&exact, &fitted) < 20.0);
        }
    }
}

//! A run of AIM: the 1-ways, then the candidate chosen each round, until the budget is spent.

use fhaim_domain::{Clique, Table};
use fhaim_dp::Rho;
use fhaim_pgm::{Measurement, Model, ModelGraph};
use rand::{Rng, RngCore};

use super::options::{AimOptions, Score};
use crate::Error;
use crate::desk::Desk;
use crate::engine::Outcome;
use crate::mechanisms::anneal::Schedule;
use crate::mechanisms::candidates::{
    CELL_SCALE, Candidate, candidates, cells_measurement, cells_statistic, eligible, l1_distance,
};
use crate::mechanisms::fitting::{FINAL_TOLERANCE, fit_job};
use crate::mechanisms::score::MEAN_ABS;
use crate::plaintext::PlaintextSource;
use fhaim_release::Job;
use fhaim_release::Phase;
use fhaim_release::Progress;
use fhaim_release::Source;

/// One run.
pub(super) struct Run<'a> {
    job: &'a Job,
    options: &'a AimOptions,
    candidates: Vec<Candidate>,
    /// The exact marginals of the candidates.
    exact: Vec<Vec<f64>>,
    table: &'a Table,
    rng: &'a mut dyn RngCore,
    desk: Desk,
    schedule: Schedule,
    graph: ModelGraph,
    measurements: Vec<Measurement>,
}

impl<'a> Run<'a> {
    /// Ready to run on a table of the job's domain.
    pub(super) fn new(
        table: &'a Table,
        job: &'a Job,
        options: &'a AimOptions,
        rng: &'a mut dyn RngCore,
    ) -> Result<Self, Error> {
        job.check()?;
        if table.domain() != &job.domain {
            return Err(Error::OtherDomain);
        }
        let candidates = candidates(job, true);
        let exact = candidates
            .iter()
            .map(|candidate| {
                let counts = table.counts(&candidate.clique)?;
                Ok(counts.into_iter().map(|count| count as f64).collect())
            })
            .collect::<Result<_, Error>>()?;
        Ok(Self {
            exact,
            candidates,
            table,
            rng,
            desk: Desk::new(job),
            schedule: Schedule::new(job.rho.to_f64(), options.rounds(job))?,
            graph: ModelGraph::new(&job.domain),
            measurements: Vec::new(),
            job,
            options,
        })
    }

    /// Runs to the end of the budget.
    pub(super) fn run(mut self, progress: &mut dyn FnMut(Progress)) -> Result<Outcome, Error> {
        let rounds = self.options.rounds(self.job).ceil() as usize + 2;
        let mut tell = |phase, round| {
            progress(Progress {
                phase,
                round,
                rounds,
            });
        };
        tell(Phase::ONE_WAYS, 1);
        for attribute in 0..self.job.domain.len() {
            self.measure(Phase::ONE_WAYS, &Clique::new([attribute]))?;
        }
        let mut model = self.fit_between(None)?;
        let mut round = 1;
        while !self.schedule.last {
            round += 1;
            tell(Phase::MEASURE, round);
            self.schedule.begin_round(self.desk.left().to_f64());
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
        let steps = self.options.final_steps;
        let model = fit_job(
            self.job,
            &self.measurements,
            steps,
            FINAL_TOLERANCE,
            Some(&model),
        )?;
        Ok(Outcome::new(model, &self.desk))
    }

    fn fit_between(&self, warm: Option<&Model>) -> Result<Model, Error> {
        let AimOptions {
            fit_steps,
            fit_tolerance,
            ..
        } = *self.options;
        fit_job(self.job, &self.measurements, fit_steps, fit_tolerance, warm)
    }

    /// Measures a clique at the current noise; `false` if the budget does not pay for it.
    fn measure(&mut self, phase: Phase, clique: &Clique) -> Result<bool, Error> {
        let statistic = cells_statistic(self.job, clique, CELL_SCALE);
        let share = self.schedule.measure_rho();
        let Some(offer) = self.desk.offer(statistic, share, u64::MAX)? else {
            return Ok(false);
        };
        let requests = self.desk.ask(phase, vec![offer])?;
        let mut source = PlaintextSource::continuing(self.table, self.rng, &requests);
        let answers = source.release(&requests)?;
        let first = self.desk.settle(&answers)?;
        for release in &self.desk.settled()[first..] {
            self.measurements
                .push(cells_measurement(release, &self.job.holders));
        }
        self.graph.add(clique);
        Ok(true)
    }

    /// The exponential mechanism over what the model has room for, paid for with
    /// epsilon^2 / 8.
    fn select(&mut self, model: &Model) -> Result<Option<usize>, Error> {
        let used = if self.schedule.last {
            1.0
        } else {
            self.desk.spent().to_f64() / self.job.rho.to_f64()
        };
        let eligible = eligible(self.job, &self.graph, &self.candidates, used);
        let cost = Rho::from_f64_up(self.schedule.select_rho())?;
        if eligible.is_empty() || !self.desk.spend(cost) {
            return Ok(None);
        }
        let cliques: Vec<Clique> = eligible
            .iter()
            .map(|&i| self.candidates[i].clique.clone())
            .collect();
        let marginals = model.pair_marginals(&cliques)?;
        let heaviest = self.candidates.iter().map(|c| c.weight).max().unwrap_or(1) as f64;
        let rate = self.schedule.epsilon / (2.0 * heaviest * self.score_step());
        let mut best = None;
        for (&i, marginal) in eligible.iter().zip(&marginals) {
            let noisy = rate * self.score(i, marginal) + gumbel(self.rng);
            if best.is_none_or(|(most, _)| noisy > most) {
                best = Some((noisy, i));
            }
        }
        Ok(best.map(|(_, i)| i))
    }

    /// The most that one record moves a score of weight 1.
    fn score_step(&self) -> f64 {
        match self.options.score {
            Score::L1 => 1.0,
            Score::SquaredL2 => 2.0 * self.job.record_bound as f64 + 1.0,
        }
    }

    fn score(&self, candidate: usize, marginal: &[f64]) -> f64 {
        let Candidate { weight, cells, .. } = self.candidates[candidate];
        let exact = &self.exact[candidate];
        let (cells, sigma) = (cells as f64, self.schedule.sigma);
        let gain = match self.options.score {
            Score::L1 => l1_distance(exact, marginal) - MEAN_ABS * sigma * cells,
            Score::SquaredL2 => {
                let squares = exact.iter().zip(marginal).map(|(x, y)| (x - y) * (x - y));
                squares.sum::<f64>() - sigma * sigma * cells
            }
        };
        weight as f64 * gain
    }
}

/// A standard Gumbel variate.
fn gumbel(rng: &mut dyn RngCore) -> f64 {
    let uniform: f64 = 1.0 - rng.random::<f64>();
    -(-uniform.max(f64::MIN_POSITIVE).ln())
        .max(f64::MIN_POSITIVE)
        .ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mechanism::Mechanism;
    use crate::{Aim, FhaimL2};
    use fhaim_domain::Schema;
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
    fn large_budgets_are_spent_though_the_schedule_asks_for_little_noise() {
        let table = table();
        let rho = Rho::from_f64_down(1.0).unwrap();
        let job = Job::new(table.domain().clone(), rho, 200);
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

//! `aim`: AIM in the clear (McKenna, Mullins, Sheldon and Miklau 2022; docs/MECHANISM.md, A).
//!
//! The reference for local runs and for tests: it reads exact marginals, so it has no place in
//! an encrypted run. Selections are by the exponential mechanism, as permute-and-flip's cheaper
//! relative: argmax of score plus Gumbel noise, which is the same distribution, in double
//! precision. That makes it a reference, not a hardened release path. Measurements carry the
//! exact discrete Gaussian.

use fhaim_domain::{Clique, Table};
use fhaim_dp::Rho;
use fhaim_pgm::{Measurement, Model, ModelGraph};
use rand::{Rng, RngCore};
use serde::{Deserialize, Serialize};

use crate::anneal::Schedule;
use crate::candidates::{
    CELL_SCALE, Candidate, candidates, cells_measurement, cells_statistic, eligible, l1_distance,
};
use crate::desk::Desk;
use crate::engine::{Outcome, Phase, Progress};
use crate::one_ways::{FINAL_STEPS, FINAL_TOLERANCE, fit_job};
use crate::plaintext::PlaintextSource;
use crate::score::MEAN_ABS;
use crate::source::Source;
use crate::{Error, Job};

/// What a candidate's score is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Score {
    /// w (||M - Mhat||_1 - c0 sigma n), sensitivity max w: AIM.
    #[default]
    L1,
    /// w (||M - Mhat||_2^2 - sigma^2 n), sensitivity max w (2 N + 1): the FHAIM paper's, paid
    /// for the winner alone.
    SquaredL2,
}

/// What may be tuned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AimOptions {
    /// The score.
    pub score: Score,
    /// T over the number of attributes.
    pub rounds_per_attribute: f64,
    /// Steps of the fits between.
    pub fit_steps: usize,
    /// Tolerance of the fits between.
    pub fit_tolerance: f64,
    /// Steps of the last fit.
    pub final_steps: usize,
}

impl Default for AimOptions {
    fn default() -> Self {
        Self {
            score: Score::L1,
            rounds_per_attribute: 16.0,
            fit_steps: 100,
            fit_tolerance: 1e-3,
            final_steps: FINAL_STEPS,
        }
    }
}

/// One run.
struct Run<'a, R> {
    job: &'a Job,
    options: &'a AimOptions,
    candidates: Vec<Candidate>,
    /// The exact marginals of the candidates.
    exact: Vec<Vec<f64>>,
    table: &'a Table,
    rng: &'a mut R,
    desk: Desk,
    schedule: Schedule,
    graph: ModelGraph,
    measurements: Vec<Measurement>,
}

/// Runs AIM on a table.
///
/// # Errors
/// As [`Job::check`], a job over another domain than the table's, failures of the fit.
pub fn run_aim<R: RngCore>(
    table: &Table,
    job: &Job,
    options: &AimOptions,
    rng: &mut R,
    progress: &mut dyn FnMut(Progress),
) -> Result<Outcome, Error> {
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
    let rounds = options.rounds_per_attribute * job.domain.len() as f64;
    Run {
        exact,
        candidates,
        table,
        rng,
        desk: Desk::new(job),
        schedule: Schedule::new(job.rho.to_f64(), rounds)?,
        graph: ModelGraph::new(&job.domain),
        measurements: Vec::new(),
        job,
        options,
    }
    .run(rounds, progress)
}

impl<R: RngCore> Run<'_, R> {
    fn run(mut self, rounds: f64, progress: &mut dyn FnMut(Progress)) -> Result<Outcome, Error> {
        let mut tell = |phase, round| {
            progress(Progress {
                phase,
                round,
                rounds: rounds.ceil() as usize + 2,
            });
        };
        tell(Phase::OneWays, 1);
        for attribute in 0..self.job.domain.len() {
            self.measure(Phase::OneWays, &Clique::new([attribute]))?;
        }
        let mut model = self.fit_between(None)?;
        let mut round = 1;
        while !self.schedule.last {
            round += 1;
            tell(Phase::Measure, round);
            self.schedule.begin_round(self.desk.left().to_f64());
            let Some(winner) = self.select(&model)? else {
                break;
            };
            let clique = self.candidates[winner].clique.clone();
            if !self.measure(Phase::Measure, &clique)? {
                break;
            }
            let before = model.marginal(&clique)?;
            model = self.fit_between(Some(&model))?;
            let moved = l1_distance(&before, &model.marginal(&clique)?);
            self.schedule.end_round(moved, before.len());
        }
        tell(Phase::Fit, round + 1);
        let steps = self.options.final_steps;
        let model = fit_job(
            self.job,
            &self.measurements,
            steps,
            FINAL_TOLERANCE,
            Some(&model),
        )?;
        Ok(Outcome {
            model,
            spent: self.desk.spent(),
            releases: self.desk.into_settled(),
            timings: Vec::new(),
        })
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
            self.measurements.push(cells_measurement(release));
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
fn gumbel(rng: &mut impl Rng) -> f64 {
    let uniform: f64 = 1.0 - rng.random::<f64>();
    -(-uniform.max(f64::MIN_POSITIVE).ln())
        .max(f64::MIN_POSITIVE)
        .ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FhaimL2Options;
    use crate::bench::Contender;
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
        let paper = Contender::FhaimL2(FhaimL2Options::default());
        for (seed, contender) in (0..5)
            .map(|seed| (seed, Contender::Aim(AimOptions::default())))
            .chain([(0, paper.clone()), (1, paper)])
        {
            let mut rng = StdRng::seed_from_u64(seed);
            let outcome = contender.run(&table, job.clone(), &mut rng).unwrap();
            assert!(outcome.spent <= rho);
            assert!(outcome.spent.to_f64() > 0.97 * rho.to_f64());
            let clique = Clique::new([0, 1]);
            let exact = table.counts(&clique).unwrap();
            let exact: Vec<f64> = exact.into_iter().map(|count| count as f64).collect();
            let fitted = outcome.model.marginal(&clique).unwrap();
            assert!(l1_distance(&exact, &fitted) < 20.0);
        }
    }
}

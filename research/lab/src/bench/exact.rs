//! AIM's rounds without any noise, as the public program of the FHAIM paper's authors runs them
//! (github.com/mayank64ce/mbi, `aim_HE_simulate_*_nodp.py`): exact 1-ways, then ten rounds. Each round measures the
//! candidate with the largest weighted score exactly. There is no noise, so scores have no penalty.
//!
//! The results are not private. They exist only for comparison with the paper's figures without noise.

use fhaim_domain::Table;
use fhaim_pgm::{FitOptions, Measurement, Model, ModelGraph, Passes, fit_once};
use fhaim_release::MechanismJob;
use fhaim_synth::{Candidate, candidates, eligible};

use super::polynomial::Polynomial;
use crate::error::Error;

/// Number of rounds.
const ROUNDS: usize = 10;

/// Standard deviation that the fit assumes of exact counts. Only its ratios between measurements would matter.
const SIGMA: f64 = 1.0;

/// Steps and tolerance of each fit.
const STEPS: usize = 1000;
const TOLERANCE: f64 = 1e-6;

/// The distance of a marginal from the model's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExactScore {
    /// The L1 distance.
    L1,
    /// The paper's polynomial in place of the L1 distance.
    PolynomialL1,
    /// The squared L2 distance.
    SquaredL2,
}

/// Returns the model after ten rounds on a table of the job's domain, within the job's cap.
pub fn model(table: &Table, job: &MechanismJob, score: ExactScore) -> Result<Model, Error> {
    let candidates = candidates(job, true);
    let exact = (candidates.iter())
        .map(|candidate| counts(table, candidate))
        .collect::<Result<Vec<_>, Error>>()?;
    let measured = |i: usize| {
        let values = exact[i].clone();
        Measurement::cells(candidates[i].clique.clone(), values, SIGMA)
    };
    let one_ways = (0..candidates.len()).filter(|&i| candidates[i].clique.attributes().len() == 1);
    let mut measurements: Vec<Measurement> = one_ways.map(measured).collect();
    let polynomial = Polynomial::of_the_paper();
    let mut graph = ModelGraph::new(&job.domain);
    let mut model = fit(table, &measurements, None)?;
    for round in 1..=ROUNDS {
        let share = round as f64 / ROUNDS as f64;
        let mut best: Option<(f64, usize)> = None;
        for i in eligible(job, &graph, &candidates, share) {
            let Candidate { clique, weight, .. } = &candidates[i];
            let estimate = model.marginal(clique).map_err(fhaim_synth::Error::from)?;
            let value = *weight as f64 * distance(&exact[i], &estimate, score, &polynomial);
            if best.is_none_or(|(most, _)| value > most) {
                best = Some((value, i));
            }
        }
        let Some((_, winner)) = best else { break };
        graph.add(&candidates[winner].clique);
        measurements.push(measured(winner));
        model = fit(table, &measurements, Some(&model))?;
    }
    Ok(model)
}

fn counts(table: &Table, candidate: &Candidate) -> Result<Vec<f64>, Error> {
    let counts = table.counts(&candidate.clique);
    let counts = counts.map_err(fhaim_synth::Error::from)?;
    Ok(counts.into_iter().map(|count| count as f64).collect())
}

fn fit(table: &Table, measurements: &[Measurement], warm: Option<&Model>) -> Result<Model, Error> {
    let options = FitOptions {
        steps: STEPS,
        tolerance: TOLERANCE,
        passes: Passes::Contractions,
        max_bytes: usize::MAX,
        ..FitOptions::default()
    };
    Ok(fit_once(table.domain(), measurements, &options, warm)?)
}

/// Returns the distance of exact counts from a model's.
fn distance(exact: &[f64], estimate: &[f64], score: ExactScore, paper: &Polynomial) -> f64 {
    let differences = exact.iter().zip(estimate).map(|(x, y)| (x - y).abs());
    match score {
        ExactScore::L1 => differences.sum(),
        ExactScore::PolynomialL1 => differences.map(|difference| paper.value(difference)).sum(),
        ExactScore::SquaredL2 => differences.map(|difference| difference.powi(2)).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::families::Family;
    use fhaim_dp::Rho;
    use fhaim_eval::model_workload_error;

    /// With more rounds than pairs of the table, all pairs would be exact. Ten rounds leave an error below that of the
    /// 1-ways.
    #[test]
    fn rounds_without_noise_bring_the_model_closer_to_the_table() {
        let table = Family::Tree.table(1).unwrap();
        let pairs = table.domain().pairs();
        let rho = Rho::from_f64_down(1.0).unwrap();
        let job = MechanismJob::new(table.domain().clone(), rho, table.records() as u64);
        let error = |model: &Model| {
            let marginals: Vec<Vec<f64>> = pairs
                .iter()
                .map(|pair| model.marginal(pair).unwrap())
                .collect();
            model_workload_error(&table, &pairs, &marginals, model.total()).unwrap()
        };
        let singles: Vec<Measurement> = (candidates(&job, true).iter())
            .filter(|candidate| candidate.clique.attributes().len() == 1)
            .map(|candidate| {
                let values = counts(&table, candidate).unwrap();
                Measurement::cells(candidate.clique.clone(), values, SIGMA)
            })
            .collect();
        let before = error(&fit(&table, &singles, None).unwrap());
        for score in [ExactScore::L1, ExactScore::SquaredL2] {
            let after = error(&model(&table, &job, score).unwrap());
            assert!(after < 0.8 * before, "{score:?}: {after} and {before}");
        }
    }

    #[test]
    fn scores_measure_the_distance_that_they_name() {
        let paper = Polynomial::of_the_paper();
        let of = |score| distance(&[3.0, 4.0], &[1.0, 4.0], score, &paper);
        assert_eq!(of(ExactScore::L1), 2.0);
        assert_eq!(of(ExactScore::SquaredL2), 4.0);
        assert_eq!(of(ExactScore::PolynomialL1).round(), 1110.0);
    }
}

//! The most that the paper's rule may request from a noise ladder, as a public function of the job
//! and the options.

use fhaim_domain::Clique;
use fhaim_dp::{Digits, MAX_LEVELS};

use super::machine::{FhaimL2Machine, fine_below};
use super::options::FhaimL2Options;
use crate::Error;
use crate::account::Offer;
use crate::mechanisms::candidates::{CELL_SCALE, cells_statistic};
use fhaim_release::LadderNeed;
use fhaim_release::MechanismJob;
use fhaim_release::{SquaredTerm, Statistic, UNIT_VARIANCE};

/// Returns the scores of all candidates with the noise of the first round, or `None` if the budget does
/// not pay for them. No other release of a run has as much noise: the first round has the largest noise
/// for any selection, and all candidates together have the largest sensitivity.
///
/// # Errors
/// [`Error::Noise`] if the noise exceeds that of a ladder and of the sampler.
pub(super) fn first_scores(machine: &FhaimL2Machine) -> Result<Option<Offer>, Error> {
    let terms = (machine.candidates.iter()).map(|candidate| SquaredTerm {
        clique: candidate.clique.clone(),
        weight: candidate.weight as i64,
        target: Vec::new(),
    });
    let scores = Statistic::SquaredScores(terms.collect());
    let share = machine.schedule.select_rho();
    let offer = machine.account.offer(scores, share, u64::MAX)?;
    let units = offer.as_ref().map_or(1, Offer::variance_units);
    if Digits::of(units).levels() > MAX_LEVELS {
        let deviation = (UNIT_VARIANCE as f64 * units as f64).sqrt();
        return Err(Error::Noise {
            release: "the first scores",
            bits: deviation.log2().round() as u32,
        });
    }
    Ok(offer)
}

/// Returns the standard deviation of the noise on a pair's score in the first round, for a pair of mean
/// weight. `None` if the budget does not pay for scores.
///
/// # Errors
/// As [`first_scores`].
pub(super) fn score_noise(machine: &FhaimL2Machine) -> Result<Option<f64>, Error> {
    let Some(offer) = first_scores(machine)? else {
        return Ok(None);
    };
    let weights = machine.candidates.iter().map(|c| c.weight as f64);
    let mean = weights.sum::<f64>() / machine.candidates.len().max(1) as f64;
    let variance = UNIT_VARIANCE as f64 * offer.variance_units() as f64;
    Ok(Some(
        machine.account.holders().inflation() * variance.sqrt() / mean,
    ))
}

/// Returns the most that the mechanism may request from a noise ladder.
pub(super) fn need(job: &MechanismJob, options: FhaimL2Options) -> Result<LadderNeed, Error> {
    let machine = FhaimL2Machine::new(job.clone(), options)?;
    let account = &machine.account;
    let schedule = &machine.schedule;
    let too_small = || Error::budget_too_small(job.rho);
    let largest = machine.candidates.iter().map(|c| c.cells).max();
    let rounds = options.most_batches(job) / 2;
    let scored = machine.candidates.len();
    let scores = first_scores(&machine)?.ok_or_else(too_small)?;
    let cells = account
        .offer(Statistic::Total, schedule.measure_rho(), u64::MAX)?
        .ok_or_else(too_small)?;
    let fine = cells_statistic(job, &Clique::new([0]), CELL_SCALE);
    let least = fine_below(job);
    let fine = account.offer(fine, 1.0 / (2.0 * least * least), u64::MAX)?;
    let fine = fine.as_ref().map_or(1, Offer::variance_units);
    let digits = job.domain.digits().iter();
    let digits = digits.filter_map(|digit| job.domain.cells(&digit.clique()));
    Ok(LadderNeed {
        cells: rounds
            .saturating_mul(largest.unwrap_or(0).saturating_add(scored))
            .saturating_add(job.domain.columns())
            .saturating_add(digits.sum()),
        largest_variance_units: [scores.variance_units(), cells.variance_units(), fine]
            .into_iter()
            .fold(1, u64::max),
    })
}

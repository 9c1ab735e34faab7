//! The most that the paper's rule may request from a noise ladder, as a public function of the job
//! and the options.

use fhaim_domain::Clique;

use super::machine::{FhaimL2Machine, fine_below};
use super::options::FhaimL2Options;
use crate::Error;
use crate::account::Offer;
use crate::mechanisms::candidates::{CELL_SCALE, cells_statistic};
use fhaim_release::LadderNeed;
use fhaim_release::MechanismJob;
use fhaim_release::{SquaredTerm, Statistic};

/// Returns the most that the mechanism may request from a noise ladder.
pub(super) fn need(job: &MechanismJob, options: FhaimL2Options) -> Result<LadderNeed, Error> {
    let machine = FhaimL2Machine::new(job.clone(), options)?;
    let account = &machine.account;
    let schedule = &machine.schedule;
    let too_small = || Error::budget_too_small(job.rho);
    let largest = machine.candidates.iter().map(|c| c.cells).max();
    let rounds = options.most_batches(job) / 2;
    // The first round has the largest noise for any selection, and the scores of all candidates
    // together have the largest sensitivity.
    let terms: Vec<SquaredTerm> = (machine.candidates.iter())
        .map(|candidate| SquaredTerm {
            clique: candidate.clique.clone(),
            weight: candidate.weight as i64,
            target: Vec::new(),
        })
        .collect();
    let scored = terms.len();
    let scores = Statistic::SquaredScores(terms);
    let scores = account
        .offer(scores, schedule.select_rho(), u64::MAX)?
        .ok_or_else(too_small)?;
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

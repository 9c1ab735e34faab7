//! The most that the staged mechanism may request from a noise ladder.

use fhaim_dp::{Rho, least_variance_units};

use super::extent::{most_cells, stage_cells};
use super::machine::{COARSE_LOOK, DIGIT_WEIGHT, FIRST_LOOK};
use super::options::{STAGES, StagedOptions};
use crate::Error;
use crate::account::{Offer, ReleaseAccount, SLACK};
use crate::mechanisms::block::{MAX_CENTRED, functions, pair_cost};
use crate::mechanisms::columns::OneWays;
use fhaim_release::LadderNeed;
use fhaim_release::MechanismJob;

/// Returns the most that the mechanism may request from a noise ladder for any data, as a public
/// function of the job and the options.
pub(super) fn need(job: &MechanismJob, options: &StagedOptions) -> Result<LadderNeed, Error> {
    job.check_pairs()?;
    let one_ways = OneWays::new(job, DIGIT_WEIGHT);
    let sizes = job.domain.sizes();
    let over_pairs = |axis_cells: fn(usize) -> usize| {
        let pairs = job.workload.pairs().iter();
        pairs.fold(0usize, |sum, pair| {
            let [a, b] = pair.attributes.map(|a| axis_cells(sizes[a]));
            sum.saturating_add(a.saturating_mul(b))
        })
    };
    let probe = most_cells(job, options);
    // Only probed pairs are measured.
    let blocks = match probe {
        0 => 0,
        _ => over_pairs(functions).min(stage_cells(job)),
    };
    let stages = usize::from(STAGES);
    let cells = one_ways
        .cells()
        .saturating_mul(1 + stages)
        .saturating_add(probe)
        .saturating_add(blocks.saturating_mul(stages));
    let account = ReleaseAccount::new(job);
    let first = one_ways.offers(&account, options.one_way_share * job.rho.to_f64())?;
    let first = first.iter().map(Offer::variance_units).max().unwrap_or(1);
    Ok(LadderNeed {
        cells,
        largest_variance_units: first
            .max(largest_probe_units(job, options))
            .max(largest_stage_units(job)),
    })
}

/// Returns the largest number of groups of any attribute that are measured centred. Its functions
/// have the largest values.
fn most_centred(job: &MechanismJob) -> usize {
    let largest = job.domain.sizes().iter().copied().max().unwrap_or(1);
    largest.clamp(2, MAX_CENTRED)
}

/// Returns Delta_2^2 of one axis of `k` groups in a pair block.
fn axis_sensitivity(k: usize) -> u128 {
    match k {
        2 => 1,
        k if k <= MAX_CENTRED => (k * (k - 1)) as u128,
        _ => 1,
    }
}

/// Returns the largest variance of a probe. It belongs to the smallest share: a part of the probe
/// divided among all pairs of the workload.
fn largest_probe_units(job: &MechanismJob, options: &StagedOptions) -> u64 {
    let pairs = job.workload.pairs().len().max(1) as f64;
    // All f(k) are at most 1, so the scale is at most that of `pairs` factors of 1.
    let probe = options.probe_share_of(job.workload.pairs().len());
    let parts = [FIRST_LOOK, probe - FIRST_LOOK, COARSE_LOOK];
    let least = parts.into_iter().fold(probe, f64::min);
    let scale_share = least * job.rho.to_f64() * (1.0 - 2.0 * SLACK) / pairs;
    let leak = largest_leak(job);
    let groups = 2..=most_centred(job);
    let units = groups
        .clone()
        .flat_map(|ka| groups.clone().map(move |kb| (ka, kb)));
    units
        .filter_map(|(ka, kb)| {
            let share = scale_share * pair_cost([ka, kb]);
            let usable = Rho::from_f64_down(share).ok()?.checked_sub(leak)?;
            // A pair whose share does not pay for any variance is not probed.
            let sensitivity = axis_sensitivity(ka) * axis_sensitivity(kb);
            largest_units(job, sensitivity, usable).ok()
        })
        .max()
        .map_or(1, room_for_gap)
}

/// Returns the largest variance of a stage's release, which belongs to [`least_share`].
fn largest_stage_units(job: &MechanismJob) -> u64 {
    let largest = job.domain.sizes().iter().copied().max().unwrap_or(1) as u128;
    let centred = axis_sensitivity(most_centred(job));
    let sensitivity = (largest * (largest - 1)).max(centred * centred);
    let usable = least_share(job)
        .checked_sub(largest_leak(job))
        .unwrap_or(Rho::ZERO);
    largest_units(job, sensitivity, usable).map_or(u64::MAX, room_for_gap)
}

/// Returns the variance units of a release that one added or removed record changes by
/// `sensitivity`.
fn largest_units(
    job: &MechanismJob,
    sensitivity: u128,
    usable: Rho,
) -> Result<u64, fhaim_dp::Error> {
    let sensitivity = sensitivity * job.holders.largest_replacement();
    least_variance_units(sensitivity, usable, job.holders.honest())
}

/// Returns the most that a release of the mechanism is charged for its ciphertexts. A 1-way of the
/// widest attribute and the table of a digit may take several pages; blocks take one.
fn largest_leak(job: &MechanismJob) -> Rho {
    let digits = job.domain.digits().iter();
    let tables = digits.filter_map(|digit| job.domain.cells(&digit.clique()));
    let widest = job
        .domain
        .sizes()
        .iter()
        .copied()
        .chain(tables)
        .max()
        .unwrap_or(1);
    // The leak of a few ciphertexts is far below 2^48. If it were not, no release could be paid
    // for.
    job.leak.of(widest).unwrap_or(job.rho)
}

/// Returns an upper bound on a variance after it is raised to pay for the ladder's gap.
fn room_for_gap(units: u64) -> u64 {
    units.saturating_add(units >> 20).saturating_add(4)
}

/// Returns the least rho that a stage spends on one item. It makes the largest variance a public
/// function of the job.
pub(super) fn least_share(job: &MechanismJob) -> Rho {
    let items = 1 + job.domain.len() + job.workload.pairs().len();
    let share = job.rho.to_f64() / (MIN_SHARE_DIVISOR * items as f64);
    // At least half of a share pays for the statistic and not for the leak.
    let share = share.max(2.0 * largest_leak(job).to_f64());
    // At most the whole budget or twice the leak, so the value is in range and this never fails.
    Rho::from_f64_up(share).unwrap_or(job.rho)
}

/// An item is not worth measuring for less than an even share of rho divided by this.
const MIN_SHARE_DIVISOR: f64 = 64.0;

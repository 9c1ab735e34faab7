//! Limits on the size of a probe and a stage: before a run from public numbers, and during a run
//! from the merges.

use super::options::StagedOptions;
use super::pair::COARSE;
use crate::mechanisms::block::{MAX_CENTRED, functions, pair_cost};
use fhaim_release::MechanismJob;

/// Relative amount that rounding may add to a bound.
const ROUNDING: f64 = 1e-9;

/// Largest scale of a finer probe, as a share of the number of records.
pub(super) const FINE_PROBE_SCALE: f64 = 0.03;

/// Largest scale of any probe, as a share of the number of records. With more noise, hardly any
/// pair can be distinguished from an independent one, and the 1-ways make better use of the budget.
pub(super) const LARGEST_PROBE_SCALE: f64 = 0.125;

/// Largest number of integers of a probe, all its parts together: 128 pages of a ladder.
const PROBE_CELLS: usize = 1 << 20;

/// Number of times that the blocks of a finer probe are requested.
pub(super) const PARTS: usize = 2;

/// Integers that the blocks of one stage may have in any table.
const STAGE_CELLS: usize = 1 << 13;

/// Integers that the blocks of one stage may have for each pair of the workload.
const PAIR_CELLS: usize = 64;

/// Most integers that [`PAIR_CELLS`] allows for all pairs: eight pages of a ladder.
const MAX_CELLS_OF_PAIRS: usize = 1 << 16;

/// Largest number of cells of the junction tree, 16 MB. A larger tree takes seconds and lowers no
/// error (docs/PERFORMANCE.md, "Fits").
const MODEL_CELLS: usize = 1 << 21;

/// Returns the largest number of integers that one stage's blocks release.
///
/// P pairs of c integers each that share rho have noise of c sqrt(P / (2 rho)) each, up to
/// constants. Noise of more than N records is useless, and this limit is reached at P c = N sqrt(2
/// rho P).
pub(super) fn stage_cells(job: &MechanismJob) -> usize {
    let pairs = job.workload.pairs().len();
    let useful = job.record_bound as f64 * (2.0 * job.rho.to_f64() * pairs as f64).sqrt();
    let of_pairs = pairs.saturating_mul(PAIR_CELLS);
    STAGE_CELLS.max(of_pairs.min(MAX_CELLS_OF_PAIRS).min(useful as usize))
}

/// Returns the largest number of cells of the model's junction tree.
pub(super) fn model_cells(job: &MechanismJob) -> usize {
    MODEL_CELLS.min(job.model_cells())
}

/// Returns the number of integers of all pairs with the given numbers of groups.
fn cells(pairs: impl Iterator<Item = [usize; 2]>) -> usize {
    let cells = pairs.map(|pair| {
        let [a, b] = pair.map(functions);
        a.saturating_mul(b)
    });
    cells.fold(0, usize::saturating_add)
}

/// Returns the largest number of groups of an attribute with which a finer probe stays within its
/// limit, given the numbers of groups that its pairs want. Returns `None` if even three groups are
/// too many.
pub(super) fn most_groups(wanted: &[[usize; 2]]) -> Option<usize> {
    most_groups_within(PROBE_CELLS, wanted)
}

fn most_groups_within(limit: usize, wanted: &[[usize; 2]]) -> Option<usize> {
    let fits = |&most: &usize| {
        let pairs = wanted.iter().map(|pair| pair.map(|k| k.min(most)));
        // A coarse look has one integer for each pair.
        let all = cells(pairs)
            .saturating_mul(PARTS)
            .saturating_add(wanted.len());
        all <= limit
    };
    (3..=MAX_CENTRED).rev().find(fits)
}

/// Returns the largest number of integers that a probe releases, all parts together, for any data.
pub(super) fn most_cells(job: &MechanismJob, options: &StagedOptions) -> usize {
    let sizes = job.domain.sizes();
    let pairs = job.workload.pairs().iter();
    let widest = pairs.map(|pair| pair.attributes.map(|a| sizes[a].min(MAX_CENTRED)));
    // Among pairs of the same total cost, those with the most groups have the most integers.
    let dense = widest
        .clone()
        .filter(|pair| pair.iter().all(|&k| k > 1))
        .map(|pair| cells([pair].into_iter()) as f64 / pair_cost(pair))
        .fold(0.0, f64::max);
    let paid = |scale, dense| (most_cost(job, options, scale) * dense) as usize;
    // Every pair costs at least as much as with two groups for each attribute.
    let coarse = 1.0 / pair_cost(COARSE);
    let pairs = job.workload.pairs().len();
    let fine = cells(widest)
        .saturating_mul(PARTS)
        .min(paid(FINE_PROBE_SCALE, dense).saturating_mul(PARTS))
        .saturating_add(pairs.min(paid(FINE_PROBE_SCALE, coarse)))
        .min(PROBE_CELLS);
    fine.max(paid(LARGEST_PROBE_SCALE, coarse).min(pairs))
}

/// Returns the largest total cost of pairs, in units of [`pair_cost`], with which the probe has at
/// most this scale, as a share of the records. The scale is the root of the cost over twice the
/// budget.
fn most_cost(job: &MechanismJob, options: &StagedOptions, scale: f64) -> f64 {
    let scale = scale * job.record_bound as f64 / job.holders.inflation();
    2.0 * options.probe_share_of(job.workload.pairs().len())
        * job.rho.to_f64()
        * scale
        * scale
        * (1.0 + ROUNDING)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_domain::Domain;
    use fhaim_dp::Rho;

    fn job(columns: usize, records: u64) -> MechanismJob {
        let rho = Rho::from_f64_down(0.01).unwrap();
        MechanismJob::new(Domain::new(vec![4; columns]), rho, records)
    }

    #[test]
    fn probe_cells_grow_with_the_record_bound_up_to_the_limit() {
        let options = StagedOptions::default();
        let cells = |columns, records| most_cells(&job(columns, records), &options);
        // 15 pairs of 16 cells, requested twice, and of two groups for each attribute once.
        assert_eq!(cells(6, 100_000), 495);
        // The probe of only one pair has a scale of 11 records, an eighth of more records than
        // there are.
        assert_eq!(cells(600, 50), 0);
        let (few, more) = (cells(600, 10_000), cells(600, 20_000));
        assert!(0 < few && few < more && more < 179_700, "{few} and {more}");
        assert_eq!(cells(600, 10_000_000), PROBE_CELLS);
    }

    #[test]
    fn stage_cells_grow_with_pairs_up_to_what_the_budget_is_worth() {
        let cells = |columns, records| stage_cells(&job(columns, records));
        // 91 pairs, 435, and 4,950.
        assert_eq!(cells(14, 1_000_000), 1 << 13);
        assert_eq!(cells(30, 1_000_000), 27_840);
        assert_eq!(cells(100, 1_000_000), 1 << 16);
        // sqrt(2 * 0.01 * 4,950) = 9.95 for each record.
        assert_eq!(cells(100, 1_000), 9_949);
        assert_eq!(cells(100, 100), 1 << 13);
    }

    #[test]
    fn model_cells_are_limited_by_the_job_and_by_a_constant() {
        let cells = |megabytes: usize| {
            let mut job = job(6, 1_000);
            job.model_bytes = megabytes << 20;
            model_cells(&job)
        };
        assert_eq!([1, 16, 64].map(cells), [1 << 17, 1 << 21, 1 << 21]);
    }

    #[test]
    fn most_groups_fit_within_the_limit() {
        let pairs = [[8, 8], [3, 2]];
        assert_eq!(most_groups(&pairs), Some(8));
        // Both parts of 64 + 3 cells, of 49 + 3, and of 9 + 3, and a coarse look of one cell for
        // each pair.
        for (limit, most) in [
            (136, Some(8)),
            (135, Some(7)),
            (106, Some(7)),
            (26, Some(3)),
            (25, None),
        ] {
            assert_eq!(most_groups_within(limit, &pairs), most, "{limit}");
        }
    }
}

//! How large a probe and a stage may be: by public numbers before a run, and a probe by merges in it.

use super::options::StagedOptions;
use super::pair::COARSE;
use crate::mechanisms::block::{MAX_CENTRED, functions, pair_cost};
use fhaim_release::Job;

/// What rounding may add to a bound.
const ROUNDING: f64 = 1e-9;

/// What [`StagedOptions::pair_cells`] comes to at most: eight pages of a ladder a stage.
const MAX_CELLS_OF_PAIRS: usize = 1 << 16;

/// The most integers that one stage's blocks release.
///
/// P pairs of c integers each that share rho have noise of c sqrt(P / (2 rho)) each, but for constants: more than N
/// records' worth of it is no use to anybody, which is reached with P c = N sqrt(2 rho P).
pub(super) fn stage_cells(job: &Job, options: &StagedOptions) -> usize {
    let pairs = job.workload.pairs().len();
    let useful = job.record_bound as f64 * (2.0 * job.rho.to_f64() * pairs as f64).sqrt();
    let of_pairs = pairs.saturating_mul(options.pair_cells);
    let of_pairs = of_pairs.min(MAX_CELLS_OF_PAIRS).min(useful as usize);
    options.block_cells.max(of_pairs)
}

/// The most cells of the model's junction tree.
pub(super) fn model_cells(job: &Job, options: &StagedOptions) -> usize {
    match options.model_cells {
        0 => job.model_cells(),
        most => most.min(job.model_cells()),
    }
}

/// A finer probe is asked for in so many parts.
fn parts(options: &StagedOptions) -> usize {
    1 + usize::from(options.first_look > 0.0)
}

/// Integers of a coarse look at so many pairs.
fn look_cells(options: &StagedOptions, pairs: usize) -> usize {
    if options.coarse_look > 0.0 { pairs } else { 0 }
}

/// Integers of all pairs in so many groups an attribute.
fn cells(pairs: impl Iterator<Item = [usize; 2]>) -> usize {
    let cells = pairs.map(|pair| {
        let [a, b] = pair.map(functions);
        a.saturating_mul(b)
    });
    cells.fold(0, usize::saturating_add)
}

/// The most groups of an attribute with which a finer probe of pairs that want so many groups stays within
/// [`StagedOptions::probe_cells`]; none where it does not with three.
pub(super) fn most_groups(options: &StagedOptions, wanted: &[[usize; 2]]) -> Option<usize> {
    let fits = |&most: &usize| {
        let pairs = wanted.iter().map(|pair| pair.map(|k| k.min(most)));
        let look = look_cells(options, wanted.len());
        cells(pairs)
            .saturating_mul(parts(options))
            .saturating_add(look)
            <= options.probe_cells
    };
    match options.probe_cells {
        0 => Some(MAX_CENTRED),
        _ => (3..=MAX_CENTRED).rev().find(fits),
    }
}

/// The records that a probe is planned for, of so many released ones: under a limit no more than there can be.
pub(super) fn records(job: &Job, options: &StagedOptions, released: f64) -> f64 {
    match options.probe_cells {
        0 => released,
        _ => released.min(job.record_bound as f64),
    }
}

/// The most integers that a probe releases, both parts together, whatever the data.
pub(super) fn most_cells(job: &Job, options: &StagedOptions) -> usize {
    let sizes = job.domain.sizes();
    let pairs = job.workload.pairs().iter();
    let widest = pairs.map(|pair| pair.attributes.map(|a| sizes[a].min(MAX_CENTRED)));
    let fine = cells(widest.clone()).saturating_mul(parts(options));
    let look = look_cells(options, job.workload.pairs().len());
    if options.probe_cells == 0 {
        return fine.saturating_add(look);
    }
    // Of pairs that cost as much together, those with most groups have the most integers.
    let dense = widest
        .clone()
        .filter(|pair| pair.iter().all(|&k| k > 1))
        .map(|pair| cells([pair].into_iter()) as f64 / pair_cost(pair))
        .fold(0.0, f64::max);
    let paid = |scale, dense| (most_cost(job, options, scale) * dense) as usize;
    // Every pair costs at least what two groups an attribute do.
    let coarse = 1.0 / pair_cost(COARSE);
    let fine = fine
        .min(paid(options.fine_probe_scale, dense).saturating_mul(parts(options)))
        .saturating_add(look.min(paid(options.fine_probe_scale, coarse)))
        .min(options.probe_cells);
    let coarse = paid(options.largest_probe_scale, coarse);
    fine.max(coarse.min(job.workload.pairs().len()))
}

/// The most that pairs cost together, as [`pair_cost`] has it, whose probe has at most this scale, as a share of
/// the records: the scale is the root of their cost over twice the budget.
fn most_cost(job: &Job, options: &StagedOptions, scale: f64) -> f64 {
    let scale = scale * job.record_bound as f64 / job.holders.inflation();
    2.0 * options.probe_share(job.workload.pairs().len())
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

    fn job(columns: usize, records: u64) -> Job {
        let rho = Rho::from_f64_down(0.01).unwrap();
        Job::new(Domain::new(vec![4; columns]), rho, records)
    }

    #[test]
    fn noise_for_a_probe_grows_with_the_records_and_ends_at_the_limit() {
        let options = StagedOptions::recommended();
        let cells = |columns, records| most_cells(&job(columns, records), &options);
        // 15 pairs of 16 cells, asked for twice, and of two groups an attribute once.
        assert_eq!(cells(6, 100_000), 495);
        // A pair's probe alone has a scale of 11 records, an eighth of more than there are.
        assert_eq!(cells(600, 50), 0);
        let (few, more) = (cells(600, 10_000), cells(600, 20_000));
        assert!(0 < few && few < more && more < 179_700, "{few} and {more}");
        assert_eq!(cells(600, 10_000_000), options.probe_cells);
    }

    #[test]
    fn without_a_limit_there_is_noise_for_a_probe_of_any_table() {
        let options = StagedOptions::default();
        for records in [100, 1_000_000] {
            assert_eq!(most_cells(&job(600, records), &options), 179_700 * 16);
            assert_eq!(super::records(&job(6, records), &options, 2e6), 2e6);
        }
    }

    #[test]
    fn a_stage_has_more_integers_where_there_are_more_pairs_and_the_budget_is_worth_it() {
        let recommended = StagedOptions::recommended();
        let cells = |columns, records| stage_cells(&job(columns, records), &recommended);
        assert_eq!(
            stage_cells(&job(100, 1_000_000), &StagedOptions::default()),
            1 << 13
        );
        // 91 pairs, 435, and 4,950.
        assert_eq!(cells(14, 1_000_000), 1 << 13);
        assert_eq!(cells(30, 1_000_000), 27_840);
        assert_eq!(cells(100, 1_000_000), 1 << 16);
        // sqrt(2 * 0.01 * 4,950) = 9.95 for each record.
        assert_eq!(cells(100, 1_000), 9_949);
        assert_eq!(cells(100, 100), 1 << 13);
    }

    #[test]
    fn a_model_is_within_the_jobs_cap_and_the_options() {
        let cells = |megabytes: usize, options: &StagedOptions| {
            let mut job = job(6, 1_000);
            job.model_bytes = megabytes << 20;
            model_cells(&job, options)
        };
        let (landed, recommended) = (StagedOptions::default(), StagedOptions::recommended());
        assert_eq!([1, 64].map(|mb| cells(mb, &landed)), [1 << 17, 1 << 23]);
        assert_eq!(
            [1, 64].map(|mb| cells(mb, &recommended)),
            [1 << 17, 1 << 21]
        );
    }

    #[test]
    fn groups_are_as_many_as_the_limit_has_room_for() {
        let options = |probe_cells| StagedOptions {
            probe_cells,
            ..StagedOptions::recommended()
        };
        let groups = |probe_cells| most_groups(&options(probe_cells), &[[8, 8], [3, 2]]);
        assert_eq!(groups(0), Some(8));
        // Both parts of 64 + 3 cells, of 49 + 3, and of 9 + 3, and a coarse look of one cell each.
        for (limit, most) in [
            (136, Some(8)),
            (135, Some(7)),
            (106, Some(7)),
            (26, Some(3)),
            (25, None),
        ] {
            assert_eq!(groups(limit), most, "{limit}");
        }
    }
}

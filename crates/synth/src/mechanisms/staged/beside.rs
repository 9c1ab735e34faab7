//! Estimates the tables of extra pairs, for which the model has no room, from the model's counts
//! and the pair's measurements (docs/MECHANISM.md, C, step 5).

use libm::{exp2, log, pow};

use crate::mechanisms::block::pair_cost;
use crate::mechanisms::columns::Measured;

/// Candidate exponents of a cell's variance around the model's count: the variance is proportional
/// to the count to one of these powers. 0 means equally large errors everywhere, 1 errors like
/// those of a sample, 2 errors proportional to the count.
const POWERS: [f64; 7] = [0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0];

/// Candidate exponents of the mean variance of a group: it is the noise's variance times 2 to one
/// of these powers.
const DOUBLINGS: std::ops::RangeInclusive<i32> = -8..=14;

/// Smallest count from which powers are computed; smaller counts of the model are raised to it.
const LEAST_COUNT: f64 = 1e-3;

/// Least share of the model's count that a cell keeps, so that rows and columns can be scaled to
/// their sums.
const LEAST_KEPT: f64 = 0.01;

/// Largest number of rounds of scaling rows and columns to their sums, and the relative difference
/// at which it ends.
const ROUNDS: usize = 100;
const NEAR: f64 = 1e-9;

/// The difference of a pair's measured block from the model.
struct Seen {
    /// Measured values minus the model's, over the block's groups.
    residual: Vec<f64>,
    /// Variance of the noise in each value.
    noise: f64,
    /// The group of each of the pair's cells.
    group: Vec<usize>,
}

impl Seen {
    fn new(measured: &Measured, counts: &[f64], columns: usize) -> Self {
        let block = &measured.block;
        let expected = block.project(counts);
        let values = measured.table().iter().zip(&expected);
        let shape = block.shape();
        let [across, along] = [block.groups(0), block.groups(1)];
        let group = (0..counts.len()).map(|cell| {
            across[cell / columns] as usize * shape[1] + along[cell % columns] as usize
        });
        Self {
            residual: values.map(|(value, expected)| value - expected).collect(),
            noise: measured.scale() * measured.scale() * pair_cost([shape[0], shape[1]]),
            group: group.collect(),
        }
    }

    /// Returns the sums of the cells of each group.
    fn over_groups(&self, cells: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; self.residual.len()];
        for (&group, cell) in self.group.iter().zip(cells) {
            sums[group] += cell;
        }
        sums
    }

    /// Returns the log-likelihood of the residual, up to a constant, if groups have these variances
    /// in addition to the noise's.
    fn log_likelihood(&self, variances: impl Iterator<Item = f64>) -> f64 {
        let cells = self.residual.iter().zip(variances);
        let logs = cells.map(|(residual, variance)| {
            let variance = variance + self.noise;
            -0.5 * (log(variance) + residual * residual / variance)
        });
        logs.sum()
    }

    /// Returns the variances of cells that make the residual most likely, and their log-likelihood
    /// ratio to noise without signal. Returns `None` if noise without signal is more likely.
    fn likeliest(&self, counts: &[f64]) -> Option<(f64, Vec<f64>)> {
        let noise = self.log_likelihood(self.residual.iter().map(|_| 0.0));
        let mut most = noise;
        let mut likeliest = None;
        for power in POWERS {
            let count = counts.iter().map(|count| count.max(LEAST_COUNT));
            let shape: Vec<f64> = count.map(|count| pow(count, power)).collect();
            let groups = self.over_groups(&shape);
            let mean = groups.iter().sum::<f64>() / groups.len() as f64;
            for doublings in DOUBLINGS {
                let scale = self.noise * exp2(f64::from(doublings)) / mean;
                let log = self.log_likelihood(groups.iter().map(|group| group * scale));
                if log > most {
                    most = log;
                    let variances = shape.iter().map(|cell| cell * scale).collect();
                    likeliest = Some((log - noise, variances));
                }
            }
        }
        likeliest
    }
}

/// Estimates the counts of a pair from its measured blocks and the model's counts `expected`,
/// row-major over the categories of both attributes. Rows and columns get the model's sums, and all
/// counts add up to `total`. Returns `None` if the blocks tell no more than the model.
///
/// The true count of a cell is assumed to be normal around the model's count, independently of
/// other cells. The variances are estimated from the most informative block (empirical Bayes).
///
/// Blocks are processed from the finest to the coarsest, since groups of coarser blocks are unions
/// of groups of finer ones. Each block moves the cells of a group in proportion to their shares of
/// the group's variance, shrunk by the noise, and then reduces the variances (Kalman 1960).
pub(super) fn estimate(
    blocks: &[Measured],
    (expected, columns): (&[f64], usize),
    total: f64,
) -> Option<Vec<f64>> {
    let mut blocks: Vec<&Measured> = blocks.iter().filter(|block| block.is_measured()).collect();
    blocks.sort_by_key(|block| std::cmp::Reverse(block.table().len()));
    let learnt = blocks.iter().filter_map(|block| {
        let seen = Seen::new(block, expected, columns);
        seen.likeliest(expected)
    });
    let (_, mut variances) = learnt.max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    let mut counts = expected.to_vec();
    for block in blocks {
        let seen = Seen::new(block, &counts, columns);
        let of_groups = seen.over_groups(&variances);
        let cells = counts.iter_mut().zip(&mut variances).zip(&seen.group);
        for ((count, variance), &group) in cells {
            let whole = of_groups[group] + seen.noise;
            *count += *variance / whole * seen.residual[group];
            *variance *= seen.noise / whole;
        }
    }
    for (count, expected) in counts.iter_mut().zip(expected) {
        *count = count.max(LEAST_KEPT * expected);
    }
    rake(&mut counts, expected, columns);
    let factor = total / counts.iter().sum::<f64>();
    counts.iter_mut().for_each(|count| *count *= factor);
    // Without records in the model or with huge noise, some count is not finite: the model's counts
    // stay.
    counts
        .iter()
        .all(|count| count.is_finite())
        .then_some(counts)
}

/// Scales rows and columns in turn until they have the sums of those of `to` (iterative
/// proportional fitting, Deming and Stephan 1940).
fn rake(counts: &mut [f64], to: &[f64], columns: usize) {
    let row_sums: Vec<f64> = to
        .chunks_exact(columns)
        .map(|row| row.iter().sum())
        .collect();
    let column_sums = sums_of_columns(to, columns);
    for _ in 0..ROUNDS {
        let mut farthest: f64 = 0.0;
        for (row, &sum) in counts.chunks_exact_mut(columns).zip(&row_sums) {
            let factor = factor(row.iter().sum(), sum);
            farthest = farthest.max((factor - 1.0).abs());
            row.iter_mut().for_each(|count| *count *= factor);
        }
        let sums = sums_of_columns(counts, columns);
        let factors = sums
            .iter()
            .zip(&column_sums)
            .map(|(&now, &sum)| factor(now, sum));
        let factors: Vec<f64> = factors.collect();
        let distances = factors.iter().map(|factor| (factor - 1.0).abs());
        farthest = distances.fold(farthest, f64::max);
        for row in counts.chunks_exact_mut(columns) {
            let cells = row.iter_mut().zip(&factors);
            cells.for_each(|(count, factor)| *count *= factor);
        }
        if farthest <= NEAR {
            return;
        }
    }
}

/// Returns the factor that scales the sum `now` to `to`. A sum of 0 stays.
fn factor(now: f64, to: f64) -> f64 {
    if now > 0.0 { to / now } else { 1.0 }
}

fn sums_of_columns(counts: &[f64], columns: usize) -> Vec<f64> {
    let mut sums = vec![0.0; columns];
    for row in counts.chunks_exact(columns) {
        let cells = sums.iter_mut().zip(row);
        cells.for_each(|(sum, count)| *sum += count);
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mechanisms::block::{Block, BlockAxis};
    use crate::mechanisms::merge::Merges;
    use fhaim_dp::Rho;
    use fhaim_release::Statistic;
    use rand::{Rng, SeedableRng, rngs::StdRng};

    /// Four by three cells with most of the records on a diagonal.
    const TRUTH: [f64; 12] = [
        400.0, 20.0, 30.0, 10.0, 300.0, 40.0, 0.0, 50.0, 150.0, 0.0, 0.0, 0.0,
    ];

    const RECORDS: f64 = 1000.0;

    fn independent(counts: &[f64]) -> Vec<f64> {
        let total: f64 = counts.iter().sum();
        let rows: Vec<f64> = counts.chunks(3).map(|row| row.iter().sum()).collect();
        let columns = sums_of_columns(counts, 3);
        let row = |row: &f64| columns.iter().map(|c| row * c / total).collect::<Vec<_>>();
        rows.iter().flat_map(row).collect()
    }

    /// Returns a block with `groups` for each axis, measured with noise of at most `noise` in each
    /// of its integers.
    fn measured(groups: [usize; 2], units: u64, noise: i64, rng: &mut StdRng) -> Measured {
        let rows: Vec<f64> = TRUTH.chunks(3).map(|row| row.iter().sum()).collect();
        let merges = [Merges::new(&rows), Merges::new(&sums_of_columns(&TRUTH, 3))];
        let axes = [0, 1].map(|a| BlockAxis::merged(a, &merges[a], groups[a]));
        let [across, along] = axes;
        let block = Block::pair(across, along);
        let statistic = block.statistic();
        let Statistic::Product(across, along) = &statistic else {
            panic!("{statistic:?}");
        };
        let mut values = Vec::new();
        for u in &across.functions {
            for v in &along.functions {
                let cells = (0..12).map(|c| TRUTH[c] as i64 * u[c / 3] * v[c % 3]);
                values.push(cells.sum::<i64>() + rng.random_range(-noise..=noise));
            }
        }
        let mut measured = Measured::new(block);
        measured.learn(&values, units, Rho::ZERO);
        measured
    }

    fn distance(counts: &[f64]) -> f64 {
        counts.iter().zip(&TRUTH).map(|(x, y)| (x - y).abs()).sum()
    }

    #[test]
    fn precise_block_determines_the_counts_and_keeps_row_and_column_sums() {
        let mut rng = StdRng::seed_from_u64(1);
        let expected = independent(&TRUTH);
        let fine = measured([4, 3], 1, 0, &mut rng);
        let counts = estimate(&[fine], (&expected, 3), RECORDS).unwrap();
        assert!(distance(&counts) < 0.05 * distance(&expected), "{counts:?}");
        assert!(counts.iter().all(|&count| count >= 0.0));
        for (row, wanted) in counts.chunks(3).zip(TRUTH.chunks(3)) {
            let [row, wanted] = [row, wanted].map(|row| row.iter().sum::<f64>());
            assert!((row - wanted).abs() < 1e-6);
        }
        for (sum, wanted) in sums_of_columns(&counts, 3)
            .iter()
            .zip(sums_of_columns(&TRUTH, 3))
        {
            assert!((sum - wanted).abs() < 1e-6);
        }
    }

    #[test]
    fn coarse_block_improves_the_counts_and_a_second_block_improves_them_more() {
        let mut rng = StdRng::seed_from_u64(2);
        let expected = independent(&TRUTH);
        let coarse = || measured([2, 2], 1, 0, &mut StdRng::seed_from_u64(3));
        let noisy = measured([4, 3], 4_000, 200, &mut rng);
        let coarse_only = estimate(&[coarse()], (&expected, 3), RECORDS).unwrap();
        assert!(distance(&coarse_only) < 0.9 * distance(&expected));
        let both = estimate(&[coarse(), noisy], (&expected, 3), RECORDS).unwrap();
        assert!(
            distance(&both) < distance(&coarse_only),
            "{both:?} {coarse_only:?}"
        );
    }

    /// A noisy block of two groups for each axis follows a precise one of three by two. The result
    /// must keep the values of the precise block.
    #[test]
    fn noisy_coarse_block_keeps_the_values_of_a_precise_finer_one() {
        let mut rng = StdRng::seed_from_u64(5);
        let expected = independent(&TRUTH);
        let fine = || measured([3, 2], 1, 0, &mut StdRng::seed_from_u64(6));
        let fine_only = estimate(&[fine()], (&expected, 3), RECORDS).unwrap();
        let noisy = measured([2, 2], 1_000_000, 2_000, &mut rng);
        let both = estimate(&[noisy, fine()], (&expected, 3), RECORDS).unwrap();
        let moved: f64 = both
            .iter()
            .zip(&fine_only)
            .map(|(x, y)| (x - y).abs())
            .sum();
        assert!(
            moved < 0.02 * distance(&expected),
            "{moved}: {both:?} {fine_only:?}"
        );
    }

    /// A finer block with too much noise to see anything must not hide what a coarse block sees.
    #[test]
    fn finer_block_of_pure_noise_keeps_the_values_of_a_coarse_one() {
        let mut rng = StdRng::seed_from_u64(7);
        let expected = independent(&TRUTH);
        let coarse = || measured([2, 2], 1, 0, &mut StdRng::seed_from_u64(8));
        let blind = measured([4, 3], 1 << 40, 0, &mut rng);
        let coarse_only = estimate(&[coarse()], (&expected, 3), RECORDS).unwrap();
        let both = estimate(&[coarse(), blind], (&expected, 3), RECORDS).unwrap();
        assert!(
            distance(&both) < 1.01 * distance(&coarse_only),
            "{both:?} {coarse_only:?}"
        );
    }

    #[test]
    fn raking_continues_while_only_the_rows_have_their_sums() {
        let mut counts = [9.0, 1.0, 5.0, 5.0];
        rake(&mut counts, &[5.0; 4], 2);
        for row in counts.chunks(2) {
            assert!((row.iter().sum::<f64>() - 10.0).abs() < 1e-6, "{counts:?}");
        }
        assert!((counts[0] + counts[2] - 10.0).abs() < 1e-6);
    }

    #[test]
    fn blocks_of_pure_noise_and_unmeasured_blocks_give_no_estimate() {
        let mut rng = StdRng::seed_from_u64(4);
        let block = measured([4, 3], 1_000_000, 0, &mut rng);
        assert_eq!(estimate(&[block], (&TRUTH, 3), RECORDS), None);
        let unmeasured = Measured::new(measured([2, 2], 1, 0, &mut rng).block);
        assert_eq!(estimate(&[unmeasured], (&TRUTH, 3), RECORDS), None);
        assert_eq!(estimate(&[], (&TRUTH, 3), RECORDS), None);
    }

    #[test]
    fn raking_keeps_rows_without_records() {
        let mut counts = [0.0, 0.0, 5.0, 5.0];
        rake(&mut counts, &[0.0, 0.0, 2.0, 8.0], 2);
        assert_eq!(counts, [0.0, 0.0, 2.0, 8.0]);
    }
}

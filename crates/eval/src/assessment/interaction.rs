//! Comparison of the dependence between columns in two tables, apart from all differences of fewer columns.
//!
//! The table is a further dimension of the counts. If the columns depend on each other in the same way, the loglinear
//! model without the interaction of all columns with the table fits (Bishop, Fienberg and Holland 1975, chapter 3).
//! Iterative proportional fitting (Deming and Stephan 1940) finds the model's expected counts. For two columns, these
//! have the same odds ratios in both tables and each table's own margins; for three, each table's own pairs.

use std::{collections::HashSet, f64::consts::PI};

use super::statistics::chi_square_tail;

/// Maximum number of passes over the margins.
const MAX_PASSES: usize = 60;

/// The fit stops if no margin changes by more than this factor.
const PRECISION: f64 = 1e-3;

/// Cells with fewer expected records in one of the tables are left out of the test.
const MIN_EXPECTED: f64 = 1.0;

/// Difference of the dependence between columns in two tables.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Interaction {
    /// Sum of both tables' total variation distances from the counts under the same dependence. If the columns have the
    /// same margins in both tables, this is about the tables' distance from each other.
    pub(super) distance: f64,
    /// Mean of the distance for two samples of the same population.
    pub(super) expected: f64,
    /// Standard deviation of the distance for two samples of the same population.
    pub(super) spread: f64,
    /// Probability that two samples of the same population differ as much.
    pub(super) p: f64,
}

/// Compares row-major counts of the same columns, with `shape[i]` values in column i.
///
/// Returns `None` if the counts do not allow a test.
pub(super) fn interaction(counts: &[Vec<f64>; 2], shape: &[usize]) -> Option<Interaction> {
    let fitted = fit(counts, shape);
    let sums = [0, 1].map(|table| counts[table].iter().sum::<f64>());
    if sums.iter().any(|&sum| sum <= 0.0) {
        return None;
    }
    let mut active = Vec::new();
    let (mut distance, mut statistic, mut expected) = (0.0, 0.0, 0.0);
    for cell in 0..counts[0].len() {
        let (one, two) = (fitted[0][cell], fitted[1][cell]);
        let residuals = [counts[0][cell] - one, counts[1][cell] - two];
        distance += residuals[0].abs() / (2.0 * sums[0]) + residuals[1].abs() / (2.0 * sums[1]);
        if one.min(two) < MIN_EXPECTED {
            continue;
        }
        active.push(cell);
        statistic += residuals[0].powi(2) / one + residuals[1].powi(2) / two;
        expected += (2.0 / PI * one * two / (one + two)).sqrt();
    }
    let freedom = freedom(&active, shape);
    if freedom < 1.0 {
        return None;
    }
    let share = (freedom / active.len() as f64).min(1.0).sqrt();
    let expected = expected * share * (1.0 / sums[0] + 1.0 / sums[1]) / 2.0;
    Some(Interaction {
        distance,
        expected,
        spread: expected / (2.0 * freedom).sqrt(),
        p: chi_square_tail(statistic, freedom),
    })
}

/// Returns the place of each cell in the margin over all columns but `without`.
fn margin_of(cells: usize, shape: &[usize], without: usize) -> (Vec<usize>, usize) {
    let inner: usize = shape.iter().skip(without + 1).product();
    let size = shape.get(without).copied().unwrap_or(1);
    let place = |cell: usize| cell / (inner * size) * inner + cell % inner;
    ((0..cells).map(place).collect(), cells / size)
}

/// Returns the expected counts of both tables if the columns depend on each other in the same way.
fn fit(counts: &[Vec<f64>; 2], shape: &[usize]) -> [Vec<f64>; 2] {
    let cells = counts[0].len();
    let margins: Vec<(Vec<usize>, usize)> = (0..shape.len())
        .map(|without| margin_of(cells, shape, without))
        .collect();
    let sum = |of: &[f64], (places, size): &(Vec<usize>, usize)| {
        let mut sums = vec![0.0; *size];
        places
            .iter()
            .zip(of)
            .for_each(|(&place, count)| sums[place] += count);
        sums
    };
    let targets = [0, 1].map(|table| -> Vec<Vec<f64>> {
        margins
            .iter()
            .map(|margin| sum(&counts[table], margin))
            .collect()
    });
    let start = |table: usize| {
        let all: f64 = counts[table].iter().sum();
        vec![all / cells.max(1) as f64; cells]
    };
    let mut fitted = [start(0), start(1)];
    for _ in 0..MAX_PASSES {
        let mut change = 0.0f64;
        for (index, margin) in margins.iter().enumerate() {
            for table in [0, 1] {
                let sums = sum(&fitted[table], margin);
                let factors: Vec<f64> = targets[table][index]
                    .iter()
                    .zip(&sums)
                    .map(factor)
                    .collect();
                change = factors
                    .iter()
                    .zip(&targets[table][index])
                    .fold(change, largest);
                for (place, count) in margin.0.iter().zip(fitted[table].iter_mut()) {
                    *count *= factors[*place];
                }
            }
        }
        for cell in 0..cells {
            let both = fitted[0][cell] + fitted[1][cell];
            let scale = factor((&(counts[0][cell] + counts[1][cell]), &both));
            fitted[0][cell] *= scale;
            fitted[1][cell] *= scale;
        }
        if change < PRECISION {
            break;
        }
    }
    fitted
}

fn factor((target, sum): (&f64, &f64)) -> f64 {
    if *sum > 0.0 { target / sum } else { 0.0 }
}

/// Returns the larger change, without that of margins that have no record.
fn largest(change: f64, (factor, target): (&f64, &f64)) -> f64 {
    if *target > 0.0 {
        change.max((factor - 1.0).abs())
    } else {
        change
    }
}

/// Returns the degrees of freedom that are left by all proper subsets of the columns.
fn freedom(active: &[usize], shape: &[usize]) -> f64 {
    let columns = shape.len();
    let mut freedom = 0.0;
    for subset in 0..1usize << columns {
        let seen: HashSet<usize> = active
            .iter()
            .map(|&cell| project(cell, shape, subset))
            .collect();
        let left_out = columns as u32 - subset.count_ones();
        let sign = if left_out.is_multiple_of(2) {
            1.0
        } else {
            -1.0
        };
        freedom += sign * seen.len() as f64;
    }
    freedom
}

/// Returns the cell of the columns in `subset`, a set of bits.
fn project(cell: usize, shape: &[usize], subset: usize) -> usize {
    let (mut rest, mut place, mut scale) = (cell, 0, 1);
    for (column, &size) in shape.iter().enumerate().rev() {
        if subset & (1 << column) != 0 {
            place += rest % size * scale;
            scale *= size;
        }
        rest /= size;
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_with_the_same_odds_ratio_do_not_differ() {
        // Both odds ratios are 4, with different margins.
        let counts = [
            vec![400.0, 100.0, 100.0, 100.0],
            vec![40.0, 100.0, 10.0, 100.0],
        ];
        let found = interaction(&counts, &[2, 2]).unwrap();
        assert!(found.distance < 1e-3, "{found:?}");
    }

    #[test]
    fn distance_of_lost_dependence_is_that_of_the_tables() {
        let counts = [vec![400.0, 100.0, 100.0, 400.0], vec![250.0; 4]];
        let found = interaction(&counts, &[2, 2]).unwrap();
        assert!((found.distance - 0.3).abs() < 0.02, "{found:?}");
        assert!(found.p < 1e-12, "{found:?}");
    }

    #[test]
    fn exclusive_or_is_an_interaction_of_three_columns() {
        let (even, odd) = (230.0, 20.0);
        let xor = vec![even, odd, odd, even, odd, even, even, odd];
        let found = interaction(&[xor.clone(), vec![125.0; 8]], &[2, 2, 2]).unwrap();
        assert!((found.distance - 0.42).abs() < 0.05, "{found:?}");
        assert!(interaction(&[xor.clone(), xor], &[2, 2, 2]).unwrap().p > 0.99);
    }

    #[test]
    fn degrees_of_freedom_match_the_formula() {
        let all: Vec<usize> = (0..24).collect();
        assert_eq!(freedom(&all, &[2, 3, 4]), 6.0);
        assert_eq!(freedom(&all[..12], &[3, 4]), 6.0);
    }
}

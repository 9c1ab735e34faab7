//! Distances between marginals, and their mean over a workload.
//!
//! The workload error (McKenna et al. 2022, AIM) is the mean, over the workload's attribute sets q, of
//! ||M_q / N - M'_q / N'||_1 for the marginals M, M' and totals N, N' of two tables. It is between 0 and 2. Half of a
//! term is the total variation distance of the two empirical distributions.

use fhaim_domain::{Clique, CodesProblem, Table};

use crate::Error;

/// Maximum number of cells per record for which counting in an array is faster than sorting.
const DENSE_CELLS_PER_RECORD: u64 = 8;

/// Returns the index of each record's cell, row-major in the clique's attributes.
fn cells_of(table: &Table, clique: &Clique) -> Vec<u64> {
    let mut cells = vec![0u64; table.records()];
    for &attribute in clique.attributes() {
        let size = table.domain().size(attribute) as u64;
        for (cell, &code) in cells.iter_mut().zip(table.column(attribute)) {
            *cell = *cell * size + u64::from(code);
        }
    }
    cells
}

/// Returns the number of cells, which must fit 64 bits.
fn cell_count(table: &Table, clique: &Clique) -> Result<u64, CodesProblem> {
    let attributes = table.domain().len();
    clique
        .attributes()
        .iter()
        .try_fold(1u64, |cells, &attribute| {
            if attribute >= attributes {
                return Err(CodesProblem::Attribute {
                    attribute,
                    attributes,
                });
            }
            cells
                .checked_mul(table.domain().size(attribute) as u64)
                .ok_or_else(|| CodesProblem::Cells(clique.attributes().to_vec()))
        })
}

/// Returns ||M / N - M' / N'||_1 for the marginals of two tables of the same schema over `clique`.
///
/// The result is between 0 (the same distribution) and 2 (nothing in common), and exact up to one division.
///
/// # Errors
/// [`Error::Codes`] for an attribute that the tables do not have, or for more than 2^64 cells.
pub fn marginal_l1(one: &Table, two: &Table, clique: &Clique) -> Result<f64, Error> {
    let cells = cell_count(one, clique)?;
    let records = (one.records() + two.records()) as u64;
    let (first, second) = (cells_of(one, clique), cells_of(two, clique));
    let counts = if cells <= DENSE_CELLS_PER_RECORD * records {
        dense_counts(cells as usize, &first, &second)
    } else {
        sparse_counts(&first, &second)
    };
    let (total_one, total_two) = (one.records() as u64, two.records() as u64);
    // At most 2 N N', far below 2^128 even at 2^32 records.
    let difference: u128 = counts
        .into_iter()
        .map(|(in_one, in_two)| {
            let scaled_one = u128::from(in_one) * u128::from(total_two);
            scaled_one.abs_diff(u128::from(in_two) * u128::from(total_one))
        })
        .sum();
    Ok(difference as f64 / (total_one as f64 * total_two as f64))
}

/// Returns the counts in both tables for each cell.
fn dense_counts(cells: usize, one: &[u64], two: &[u64]) -> Vec<(u64, u64)> {
    let mut counts = vec![(0, 0); cells];
    for &cell in one {
        counts[cell as usize].0 += 1;
    }
    for &cell in two {
        counts[cell as usize].1 += 1;
    }
    counts
}

/// Returns the counts in both tables for the cells that occur.
fn sparse_counts(one: &[u64], two: &[u64]) -> Vec<(u64, u64)> {
    let mut tagged: Vec<(u64, bool)> = one.iter().map(|&cell| (cell, false)).collect();
    tagged.extend(two.iter().map(|&cell| (cell, true)));
    tagged.sort_unstable();
    tagged
        .chunk_by(|left, right| left.0 == right.0)
        .map(|run| {
            let in_two = run.iter().filter(|(_, second)| *second).count() as u64;
            (run.len() as u64 - in_two, in_two)
        })
        .collect()
}

/// Returns the mean of [`marginal_l1`] over `workload`; 0 for an empty workload.
///
/// # Errors
/// See [`marginal_l1`].
pub fn workload_error(one: &Table, two: &Table, workload: &[Clique]) -> Result<f64, Error> {
    let mut sum = 0.0;
    for clique in workload {
        sum += marginal_l1(one, two, clique)?;
    }
    Ok(mean(sum, workload.len()))
}

/// Returns the workload error of a model: the mean over `workload` of ||M_q / N - marginal_q / total||_1.
///
/// The marginals are in the workload's order, each row-major in the clique's attributes. `total` is the model's total.
///
/// # Errors
/// [`Error::Workload`] unless there is one marginal for each set; [`Error::Marginal`] for a marginal of the wrong size;
/// [`Error::Total`] for a total that is not positive; [`Error::Codes`] for an attribute that the table does not have.
pub fn model_workload_error(
    real: &Table,
    workload: &[Clique],
    marginals: &[Vec<f64>],
    total: f64,
) -> Result<f64, Error> {
    if marginals.len() != workload.len() {
        return Err(Error::Workload {
            found: marginals.len(),
            expected: workload.len(),
        });
    }
    if !(total > 0.0 && total.is_finite()) {
        return Err(Error::Total(total));
    }
    let mut sum = 0.0;
    for (clique, marginal) in workload.iter().zip(marginals) {
        let counts = real.counts(clique)?;
        if counts.len() != marginal.len() {
            return Err(Error::Marginal {
                attributes: clique.attributes().to_vec(),
                found: marginal.len(),
                expected: counts.len(),
            });
        }
        let share = |count: u64| count as f64 / real.records() as f64;
        sum += counts
            .iter()
            .zip(marginal)
            .map(|(&count, &cell)| (share(count) - cell / total).abs())
            .sum::<f64>();
    }
    Ok(mean(sum, workload.len()))
}

fn mean(sum: f64, count: usize) -> f64 {
    if count == 0 { 0.0 } else { sum / count as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dense_and_sparse_counts_agree() {
        let one = [0, 3, 3, 7, 1];
        let two = [3, 9, 9, 0];
        let mut dense = dense_counts(10, &one, &two);
        dense.retain(|&counts| counts != (0, 0));
        assert_eq!(sparse_counts(&one, &two), dense);
        assert_eq!(dense, [(1, 1), (1, 0), (2, 1), (1, 0), (0, 2)]);
    }
}

//! Measures how strongly columns depend on each other.

use fhaim_domain::Table;

use crate::Error;

/// Returns Cramér's V of two columns (Cramér 1946, chapter 21).
///
/// V is sqrt(chi^2 / (N (min(r, c) - 1))) for the r by c table of the values that occur in N records. It is 0 for
/// independent columns and for a column with a single value, and 1 if one column determines the other.
///
/// `counts` is row-major with `width` columns.
pub fn cramers_v(counts: &[u64], width: usize) -> f64 {
    let width = width.max(1);
    let mut rows = vec![0u64; counts.len().div_ceil(width)];
    let mut columns = vec![0u64; width];
    for (cell, &count) in counts.iter().enumerate() {
        rows[cell / width] += count;
        columns[cell % width] += count;
    }
    let occurring = |sums: &[u64]| sums.iter().filter(|&&sum| sum > 0).count();
    let smaller = occurring(&rows).min(occurring(&columns));
    if smaller < 2 {
        return 0.0;
    }
    // chi^2 / N = sum count^2 / (row * column) - 1.
    let phi_squared: f64 = counts
        .iter()
        .enumerate()
        .filter(|&(_, &count)| count > 0)
        .map(|(cell, &count)| {
            let count = count as f64;
            count / rows[cell / width] as f64 * (count / columns[cell % width] as f64)
        })
        .sum::<f64>()
        - 1.0;
    (phi_squared / (smaller - 1) as f64).clamp(0.0, 1.0).sqrt()
}

/// Returns Cramér's V of all pairs of columns as a symmetric matrix with ones on the diagonal.
///
/// The matrix has the columns in their order, without digits.
///
/// # Errors
/// [`Error::Codes`] for a pair with too many cells to count.
pub fn association_matrix(table: &Table) -> Result<Vec<Vec<f64>>, Error> {
    let attributes = table.domain().coarse_attributes();
    let place = |attribute: usize| attributes.partition_point(|&other| other < attribute);
    let mut matrix = vec![vec![1.0; attributes.len()]; attributes.len()];
    for pair in table.domain().pairs() {
        if let [a, b] = *pair.attributes() {
            let v = cramers_v(&table.counts(&pair)?, table.domain().size(b));
            let (a, b) = (place(a), place(b));
            matrix[a][b] = v;
            matrix[b][a] = v;
        }
    }
    Ok(matrix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cramers_v_of_known_tables_is_correct() {
        assert_eq!(cramers_v(&[10, 0, 0, 20], 2), 1.0);
        assert!(cramers_v(&[10, 20, 20, 40], 2) < 1e-7);
        assert_eq!(cramers_v(&[5, 7, 0, 0], 2), 0.0);
        assert_eq!(cramers_v(&[], 2), 0.0);
        // 2x2: V = |ad - bc| / sqrt(product of the margins) = 300 / sqrt(30 * 30 * 40 * 20).
        let v = cramers_v(&[25, 5, 15, 15], 2);
        assert!((v - 300.0 / 720_000f64.sqrt()).abs() < 1e-12, "{v}");
        // An empty row and an empty column do not change the result.
        assert_eq!(cramers_v(&[25, 0, 5, 0, 0, 0, 15, 0, 15], 3), v);
    }
}

//! Digits: attributes that refine a coarse attribute (docs/MECHANISM.md, C step 1).
//!
//! The table of a digit and its coarse attribute is measured cell by cell with the 1-ways. The
//! coarse 1-way has less noise, so it determines the frequency of each coarse value. The table
//! determines how the records of a coarse value are distributed among its digits, with the help of
//! the prior of 1-ways: neighbouring digits have similar shares, and shares are even where noise
//! hides all differences.

use fhaim_domain::{Digit, Domain};

use super::block::{Block, BlockAxis};
use super::prior::expected_counts;

/// Returns the block of all cells of a digit and its coarse attribute.
pub(super) fn block(domain: &Domain, digit: &Digit) -> Block {
    // A digit comes after its coarse attribute (`Domain::wrong_digit`).
    let [coarse, fine] = [digit.coarse(), digit.fine()];
    Block::pair(
        BlockAxis::cells(coarse, domain.size(coarse)),
        BlockAxis::cells(fine, domain.size(fine)),
    )
}

/// Returns c of a digit's table for a weight of 1: the number of cells that distinguish values.
pub(super) fn cost(digit: &Digit) -> f64 {
    let cells: f64 = digit.parts().iter().map(|&parts| f64::from(parts)).sum();
    cells.max(1.0)
}

/// Returns the expected counts of a digit's table, row-major and at least 0. The rows add up to the
/// `coarse` counts, and cells that the digit cannot have with a coarse value are 0. The noise of
/// `table` has standard deviation `scale`.
pub(super) fn expected_table(table: &[f64], digit: &Digit, coarse: &[f64], scale: f64) -> Vec<f64> {
    let size = table.len() / digit.parts().len().max(1);
    let mut expected = vec![0.0; table.len()];
    let rows = table
        .chunks_exact(size.max(1))
        .zip(expected.chunks_exact_mut(size.max(1)));
    for ((row, out), (&parts, &total)) in rows.zip(digit.parts().iter().zip(coarse)) {
        let parts = (parts as usize).clamp(1, size);
        let shares = expected_row(&row[..parts], total.max(0.0), scale);
        out[..parts].copy_from_slice(&shares);
    }
    expected
}

/// As [`expected_table`], with the row sums of the table itself as coarse counts.
pub(super) fn expected_alone(table: &[f64], digit: &Digit, scale: f64) -> Vec<f64> {
    let size = (table.len() / digit.parts().len().max(1)).max(1);
    let rows = table.chunks_exact(size).zip(digit.parts());
    let coarse = rows.map(|(row, &parts)| row.iter().take(parts as usize).sum());
    expected_table(table, digit, &coarse.collect::<Vec<f64>>(), scale)
}

/// Returns the expected counts of one coarse value's digits.
fn expected_row(row: &[f64], total: f64, scale: f64) -> Vec<f64> {
    let even = total / row.len() as f64;
    if row.len() == 1 || total <= 0.0 {
        return vec![even; row.len()];
    }
    if let Some(expected) = expected_counts(row, total, scale) {
        return expected;
    }
    // There is little noise, or more parts than the prior supports. Shrink the row towards even
    // shares by the part of its variation that noise accounts for (James and Stein 1961).
    let variation: f64 = row
        .iter()
        .map(|count| (count - even) * (count - even))
        .sum();
    let noise = scale * scale * row.len() as f64;
    let kept = if variation > noise {
        1.0 - noise / variation
    } else {
        0.0
    };
    let shrunk: Vec<f64> = row
        .iter()
        .map(|count| even + kept * (count - even))
        .collect();
    nearest_counts(&shrunk, total)
}

/// Returns the nearest nonnegative counts that add up to `total` (Duchi et al. 2008).
fn nearest_counts(row: &[f64], total: f64) -> Vec<f64> {
    let mut sorted = row.to_vec();
    sorted.sort_by(|x, y| y.total_cmp(x));
    let (mut sum, mut level) = (0.0, 0.0);
    for (count, value) in (1..).zip(&sorted) {
        sum += value;
        let candidate = (sum - total) / f64::from(count);
        if value - candidate <= 0.0 {
            break;
        }
        level = candidate;
    }
    row.iter().map(|value| (value - level).max(0.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_counts_are_not_negative_and_sum_to_the_total() {
        let counts = nearest_counts(&[5.0, -3.0, 2.0, 0.5], 6.0);
        assert!((counts.iter().sum::<f64>() - 6.0).abs() < 1e-12);
        assert_eq!(counts[1], 0.0);
        assert!((counts[0] - counts[2] - 3.0).abs() < 1e-12);
    }

    #[test]
    fn clear_table_is_kept_and_impossible_cells_are_empty() {
        let digit = Digit::new(0, 1, vec![1, 4, 2]);
        let table = [
            900.5, 1.0, -2.0, 0.0, 10.0, 300.0, 5.0, 85.0, 30.0, 71.0, 3.0, -1.0,
        ];
        let coarse = [900.0, 400.0, 100.0];
        let expected = expected_table(&table, &digit, &coarse, 0.5);
        for (row, total) in expected.chunks(4).zip(coarse) {
            assert!((row.iter().sum::<f64>() - total).abs() < 1e-6);
        }
        assert_eq!(&expected[1..4], [0.0; 3]);
        assert_eq!(&expected[10..], [0.0; 2]);
        assert!((expected[5] - 300.0).abs() < 1.0, "{expected:?}");
    }

    #[test]
    fn shares_are_nearly_even_where_noise_dominates() {
        let digit = Digit::new(0, 1, vec![4]);
        let noise = [900.0, -700.0, 300.0, -200.0];
        let expected = expected_table(&noise, &digit, &[100.0], 1000.0);
        assert!(
            expected.iter().all(|count| (count - 25.0).abs() < 12.0),
            "{expected:?}"
        );
        // The same with more parts than the prior supports.
        let digit = Digit::new(0, 1, vec![200]);
        let noise: Vec<f64> = (0..200).map(|i| f64::from(i * 37 % 199) - 99.0).collect();
        let expected = expected_table(&noise, &digit, &[100.0], 1000.0);
        assert!(expected.iter().all(|count| (count - 0.5).abs() < 1e-9));
    }
}

//! Checks released integers against a table and its noise ladder.
//!
//! The key service cannot see whether a computation service leaves noise out or counts another
//! column. The party that has the table and the ladder can check this, because every cell of a
//! release is one exact integer.

use fhaim_domain::Counted;
use fhaim_release::{Error as ReleaseError, Statistic};

use crate::plaintext::exact;

/// How an answer differs from the expected one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The number of cells differs from the statistic's.
    Length {
        /// Cells of the statistic.
        expected: usize,
        /// Released cells.
        released: usize,
    },
    /// Some cells have other values.
    Cells {
        /// Number of cells that differ.
        count: usize,
        /// Position of the first cell that differs.
        first: usize,
        /// Expected value of that cell, with noise.
        expected: i64,
        /// Released value of that cell.
        released: i64,
    },
}

/// Returns the integers that a release of `statistic` decrypts to, with one integer of `noise` for
/// each cell. The public part of the statistic, which is added after decryption, is not included.
///
/// # Errors
/// The statistic does not fit the table, the number of noise values differs from the number of
/// cells, or a sum exceeds 64 bits.
pub fn expected(
    table: &dyn Counted,
    statistic: &Statistic,
    noise: &[i64],
) -> Result<Vec<i64>, ReleaseError> {
    let exact = exact(table, statistic)?;
    if noise.len() != exact.len() {
        return Err(ReleaseError::NoiseLength {
            cells: exact.len(),
            noise: noise.len(),
        });
    }
    let mut public = vec![0; exact.len()];
    let added = statistic.add_public_part(&mut public);
    added.ok_or(ReleaseError::Overflow)?;
    let cells = exact.iter().zip(noise).zip(&public);
    let decrypted = |((exact, noise), public): ((&i64, &i64), &i64)| {
        exact.checked_add(*noise)?.checked_sub(*public)
    };
    cells
        .map(decrypted)
        .collect::<Option<_>>()
        .ok_or(ReleaseError::Overflow)
}

/// Compares every integer of an answer with its expected value. Returns `None` if all are equal and
/// their numbers match.
pub fn difference(expected: &[i64], released: &[i64]) -> Option<Difference> {
    if expected.len() != released.len() {
        return Some(Difference::Length {
            expected: expected.len(),
            released: released.len(),
        });
    }
    let cells = expected.iter().zip(released).enumerate();
    let mut unequal = cells.filter(|(_, (expected, released))| expected != released);
    let (first, (&expected, &released)) = unequal.next()?;
    Some(Difference::Cells {
        count: 1 + unequal.count(),
        first,
        expected,
        released,
    })
}

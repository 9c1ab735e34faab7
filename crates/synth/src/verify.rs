//! Whether released integers are what a table and its ladder come to.
//!
//! A computation service that leaves noise out, or counts another column, is not seen by the key
//! service. Whoever has the table and the ladder can tell: every release is one exact integer a cell.

use fhaim_domain::Counted;
use fhaim_release::{Error as ReleaseError, Statistic};

use crate::plaintext::exact;

/// How an answer is not what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// It has another number of cells than its statistic.
    Length {
        /// Cells that the statistic has.
        expected: usize,
        /// Cells that were released.
        released: usize,
    },
    /// Cells have other values.
    Cells {
        /// So many have.
        count: usize,
        /// Position of the first that has.
        first: usize,
        /// Its exact value with its noise.
        expected: i64,
        /// The value that was released.
        released: i64,
    },
}

/// The integers that a release of `statistic` with `noise`, an integer a cell, comes to when it is
/// decrypted: without the part of it that is public, and is added after.
///
/// # Errors
/// A statistic that does not fit the table; noise for another number of cells than it has; sums
/// beyond 64 bits.
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

/// Compares every integer of an answer with what it should be; `None` where all are equal, and there
/// are as many.
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

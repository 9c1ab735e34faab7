//! Whether released integers are what a table and its ladder come to.
//!
//! A computation service that leaves noise out, or counts another column, is not seen by the key
//! service. Whoever has the table and the ladder can tell: every release is one exact integer a cell.

use fhaim_domain::Counted;
use fhaim_dp::{Ladder, Span};
use fhaim_release::{Error as ReleaseError, ReleaseRequest, SourceError};

use crate::plaintext::exact;

/// A release as it was answered.
#[derive(Clone, Debug)]
pub struct Answered {
    /// What was asked.
    pub request: ReleaseRequest,
    /// Where its noise lies on the ladder.
    pub spans: Vec<Span>,
    /// The integers that were released, one a cell.
    pub cells: Vec<i64>,
}

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
    /// A cell has another value: the first of those that differ.
    Cell {
        /// Position of the cell.
        cell: usize,
        /// The exact value with its noise.
        expected: i64,
        /// The value that was released.
        released: i64,
    },
}

/// Compares every integer of an answer with the exact statistic of `table` plus the noise of
/// `ladder`; `None` where all are equal.
///
/// # Errors
/// A statistic that does not fit the table, spans outside the ladder, sums beyond 64 bits.
pub fn difference(
    table: &dyn Counted,
    ladder: &Ladder,
    answered: &Answered,
) -> Result<Option<Difference>, SourceError> {
    let number = answered.request.number;
    let statistic = |error| SourceError::Statistic { number, error };
    let exact = exact(table, &answered.request.statistic).map_err(statistic)?;
    let noise = ladder
        .release_noise(&answered.spans, answered.request.variance_units)
        .map_err(SourceError::backend)?;
    let (expected, released) = (exact.len(), answered.cells.len());
    // Spans that cover fewer cells than the statistic would leave cells uncompared.
    if noise.len() != expected || released != expected {
        return Ok(Some(Difference::Length { expected, released }));
    }
    for (cell, ((exact, noise), &released)) in exact
        .iter()
        .zip(noise.iter())
        .zip(&answered.cells)
        .enumerate()
    {
        let sum = exact.checked_add(*noise);
        let expected = sum.ok_or_else(|| statistic(ReleaseError::Overflow))?;
        if expected != released {
            return Ok(Some(Difference::Cell {
                cell,
                expected,
                released,
            }));
        }
    }
    Ok(None)
}

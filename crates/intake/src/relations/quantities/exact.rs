//! Exact numbers of cells, for rules that a rounding would hide or break.

use fhaim_domain::{
    MAX_DECIMALS,
    form::{ColumnForm, KindForm},
};

use crate::numbers::{ScannedNumber, scan_number};
use crate::profile::Profile;

/// Maximum number of digits of an exact number.
const MAX_DIGITS: usize = 24;

/// One, in units of the ninth decimal.
pub(super) const ONE: i128 = 10i128.pow(MAX_DECIMALS);

/// How to read the numbers of a column, and their decimals.
#[derive(Debug)]
pub(super) struct NumberColumn {
    /// Index among the drafted columns.
    pub(super) column: usize,
    /// Whether the decimal mark is a comma.
    pub(super) comma: bool,
    /// Most decimals of a number that was read.
    pub(super) decimals: u32,
}

/// The number in a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cell {
    /// The cell has no number.
    Empty,
    /// A number, in units of the ninth decimal.
    Number(i128),
    /// A number whose exact value is not known: it has an exponent, or too many digits.
    Inexact,
}

impl NumberColumn {
    /// Begins a column with the decimal mark that most of its numbers so far have.
    pub(super) fn of(column: usize, profile: &Profile) -> Self {
        let mut numbers = crate::profile::Numbers::new();
        for (text, seen) in profile.texts.in_order() {
            numbers.add(text, seen.count, true);
        }
        Self {
            column,
            comma: numbers.marks.decide().comma,
            decimals: 0,
        }
    }

    /// Returns the least and the largest number so far, if all numbers are whole.
    pub(super) fn whole_range(&mut self, profile: &Profile) -> Option<(i64, i64)> {
        let mut range: Option<(i64, i64)> = None;
        for (text, _) in profile.texts.in_order() {
            let number = match self.read(text) {
                Cell::Empty => continue,
                Cell::Number(number) if number % ONE == 0 => i64::try_from(number / ONE).ok()?,
                Cell::Number(_) | Cell::Inexact => return None,
            };
            let (least, most) = range.unwrap_or((number, number));
            range = Some((least.min(number), most.max(number)));
        }
        range
    }

    /// Reads a cell, which is no text for a missing value.
    pub(super) fn read(&mut self, text: &str) -> Cell {
        let Some(scanned) = scan_number(text).filter(|scanned| scanned.limit.is_none()) else {
            return Cell::Empty;
        };
        match exact(&scanned, self.comma) {
            Some((number, decimals)) => {
                self.decimals = self.decimals.max(decimals);
                Cell::Number(number)
            }
            None => Cell::Inexact,
        }
    }
}

/// Returns a number in units of the ninth decimal, and the decimals it is written with.
fn exact(scanned: &ScannedNumber<'_>, comma: bool) -> Option<(i128, u32)> {
    let reading = scanned.readings.iter().find(|reading| {
        let either = reading.mark.is_none() && !matches!(reading.thousands, Some(',' | '.'));
        either || reading.style().comma == comma
    })?;
    if scanned.has_exponent || reading.decimals > MAX_DECIMALS {
        return None;
    }
    let digits: String = scanned
        .number
        .chars()
        .filter(char::is_ascii_digit)
        .collect();
    if digits.len() > MAX_DIGITS {
        return None;
    }
    let number: i128 = digits.parse().ok()?;
    let number = number.checked_mul(10i128.pow(MAX_DECIMALS - reading.decimals))?;
    let is_negative = scanned.sign.is_negative();
    Some((if is_negative { -number } else { number }, reading.decimals))
}

/// Returns the decimals and the step of a column of numbers, the step in units of the last decimal.
pub(super) fn number_steps(form: &ColumnForm) -> Option<(u32, i64)> {
    if form.kind != KindForm::Number {
        return None;
    }
    let decimals = match form.integer {
        Some(true) => 0,
        _ => u32::try_from(form.decimals.unwrap_or(0)).ok()?,
    };
    let step = form.step.unwrap_or(0.0) * 10f64.powi(i32::try_from(decimals).ok()?);
    Some((decimals, (step.round() as i64).max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, comma: bool) -> Cell {
        let mut column = NumberColumn {
            column: 0,
            comma,
            decimals: 0,
        };
        column.read(text)
    }

    #[test]
    fn numbers_are_read_exactly_in_every_style() {
        for (text, comma, cents) in [
            ("0.29", false, 29),
            ("$1,200.50", false, 120_050),
            ("1.200,50 €", true, 120_050),
            ("1,200", false, 120_000),
            ("1.200", true, 120_000),
            ("(12.5)", false, -1_250),
            ("12-", false, -1_200),
        ] {
            assert_eq!(read(text, comma), Cell::Number(cents * ONE / 100), "{text}");
        }
    }

    #[test]
    fn cells_without_an_exact_number_are_distinguished() {
        assert_eq!(read("NA", false), Cell::Empty);
        assert_eq!(read("<0.5", false), Cell::Empty);
        assert_eq!(read("1e-3", false), Cell::Inexact);
        assert_eq!(read(&"9".repeat(30), false), Cell::Inexact);
    }
}

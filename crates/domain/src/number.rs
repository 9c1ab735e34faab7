//! Fields of numbers: how they are written, and the numbers and words that they may have.

use crate::{CellProblem, Decimal, NumberStyle, names::cut, ordered_words::OrderedWithWords};

/// A field of numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NumberField {
    pub(crate) style: NumberStyle,
    pub(crate) values: OrderedWithWords,
    pub(crate) precision: Precision,
}

/// The numbers that a column accepts between its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Precision {
    /// All numbers, which are rounded to the last decimal.
    Rounded,
    /// Whole numbers.
    Whole,
    /// Multiples of the step.
    Multiple,
}

impl NumberField {
    /// Returns the number in a text and its step, which may be outside all groups.
    ///
    /// # Errors
    /// The text has no number in the column's style, or the column does not accept it.
    pub(crate) fn read(&self, text: &str) -> Result<(f64, i64), CellProblem> {
        let value = self.style.parse(text);
        let value = value.ok_or_else(|| self.not_a_number(text))?;
        if self.precision == Precision::Whole && value.fract() != 0.0 {
            return Err(CellProblem::NotAnInteger(cut(text)));
        }
        if let Some(step) = self.step(value) {
            return Ok((value, step));
        }
        // Numbers that are too large have no step. Outside the limits, a number need not be a multiple.
        let nearest = self.style.step(value);
        let nearest = nearest.ok_or_else(|| self.out_of_range(text))?;
        match self.values.encode(nearest) {
            None => Ok((value, nearest)),
            Some(_) => Err(CellProblem::NotAMultiple {
                value: cut(text),
                step: self.style.number(1).value(),
            }),
        }
    }

    /// Returns the step of a number. Returns `None` if it is too large, or no multiple where only those are accepted.
    pub(crate) fn step(&self, value: f64) -> Option<i64> {
        match self.precision {
            Precision::Rounded | Precision::Whole => self.style.step(value),
            Precision::Multiple => self.style.multiple(value),
        }
    }

    /// Returns the group and the part of a text, a word or a number.
    pub(crate) fn place(&self, text: &str) -> Option<(u32, u32)> {
        let word = self.values.encode_word(text.trim());
        word.or_else(|| self.values.encode(self.step(self.style.parse(text)?)?))
    }

    fn not_a_number(&self, text: &str) -> CellProblem {
        if self.style.is_plain() {
            return CellProblem::NotANumber(cut(text));
        }
        CellProblem::NotInStyle {
            value: cut(text),
            example: self.number(self.values.limits().1).to_string(),
        }
    }

    /// Builds the error for a number outside the limits.
    pub(crate) fn out_of_range(&self, text: &str) -> CellProblem {
        let (min, max) = self.values.limits();
        CellProblem::OutOfRange {
            value: cut(text),
            min: self.number(min).value(),
            max: self.number(max).value(),
        }
    }

    fn number(&self, step: i64) -> Decimal<'_> {
        self.style.number(step)
    }
}

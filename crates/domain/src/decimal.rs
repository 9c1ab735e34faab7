//! Numbers as multiples of a step, read and written in their column's style.

mod check;
mod parse;
mod show;

use crate::{MAX_MAGNITUDE, form::Negative, ordered::OrderedProblem};

/// Maximum number of decimals of a number.
pub const MAX_DECIMALS: u32 = 9;

/// How a column's numbers are written.
///
/// ```
/// use fhaim_domain::{NumberStyle, form::Negative};
///
/// let style = NumberStyle {
///     decimals: 2,
///     trailing_zeros: true,
///     thousands: Some(','),
///     before: "$".to_owned(),
///     negative: Negative::Parentheses,
///     ..NumberStyle::default()
/// };
/// assert_eq!(style.parse("($1,200.50)"), Some(-1200.5));
/// assert_eq!(style.number(-120_050).to_string(), "($1,200.50)");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberStyle {
    /// Number of decimals, at most [`MAX_DECIMALS`].
    pub decimals: u32,
    /// Whether trailing zeros are written.
    pub trailing_zeros: bool,
    /// Whether the decimal mark is a comma.
    pub comma: bool,
    /// Distance of neighbouring numbers, in units of the last decimal; at least 1.
    pub step: i64,
    /// Character between groups of three digits. It differs from the decimal mark.
    pub thousands: Option<char>,
    /// Text before each number, such as `$`.
    pub before: String,
    /// Text after each number, such as ` mg`.
    pub after: String,
    /// How negative numbers are written.
    pub negative: Negative,
}

impl Default for NumberStyle {
    /// Whole numbers: no decimals, no separators, no texts around them, and a minus.
    fn default() -> Self {
        Self {
            decimals: 0,
            trailing_zeros: false,
            comma: false,
            step: 1,
            thousands: None,
            before: String::new(),
            after: String::new(),
            negative: Negative::Minus,
        }
    }
}

/// A number of a column, displayed in the column's style.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decimal<'a> {
    step: i64,
    style: &'a NumberStyle,
}

impl Decimal<'_> {
    /// The number as a count of the column's steps.
    pub fn step(&self) -> i64 {
        self.step
    }

    /// The number itself.
    pub fn value(&self) -> f64 {
        // The count is below 2^53 and the power is exact, so the result is rounded once.
        self.units() as f64 / self.style.scale()
    }

    /// The number as a count of the column's last decimal place.
    pub(crate) fn units(&self) -> i64 {
        self.step.saturating_mul(self.style.units_per_step())
    }
}

impl NumberStyle {
    /// 10^decimals.
    fn scale(&self) -> f64 {
        self.units_per_one() as f64
    }

    fn units_per_one(&self) -> u64 {
        10u64.pow(self.decimals.min(MAX_DECIMALS))
    }

    fn units_per_step(&self) -> i64 {
        self.step.max(1)
    }

    /// The decimal mark.
    pub fn mark(&self) -> char {
        if self.comma { ',' } else { '.' }
    }

    /// Returns the nearest count of the last decimal place, or `None` if `value` exceeds
    /// [`MAX_MAGNITUDE`].
    pub(crate) fn units(&self, value: f64) -> Option<i64> {
        let units = (value * self.scale()).round();
        (units.abs() <= MAX_MAGNITUDE).then_some(units as i64)
    }

    /// Returns the step nearest to `value`, or `None` if it exceeds [`MAX_MAGNITUDE`].
    pub fn step(&self, value: f64) -> Option<i64> {
        let (units, step) = (self.units(value)?, self.units_per_step());
        if step == 1 {
            return Some(units);
        }
        let (below, rest) = (units.div_euclid(step), units.rem_euclid(step));
        Some(below + i64::from(rest >= step - rest))
    }

    /// Returns the step that equals `value` as read from a text, or `None` if no step does.
    pub fn multiple(&self, value: f64) -> Option<i64> {
        let (units, step) = (self.units(value)?, self.units_per_step());
        // Both are the double nearest to the same decimal number.
        let is_exact = units as f64 / self.scale() == value;
        (is_exact && units % step == 0).then_some(units / step)
    }

    /// Returns the step that equals `value`, up to the rounding of a calculation.
    ///
    /// # Errors
    /// [`OrderedProblem::Step`] if `value` has too many decimals or is too large,
    /// [`OrderedProblem::Multiple`] if it lies between two steps.
    pub fn exact_step(&self, value: f64) -> Result<i64, OrderedProblem> {
        let units = self.units(value).ok_or(OrderedProblem::Step(value))?;
        let distance = (units as f64 / self.scale() - value).abs();
        if distance > 1e-9 * value.abs().max(1e-6) {
            return Err(OrderedProblem::Step(value));
        }
        let step = self.units_per_step();
        if units % step == 0 {
            return Ok(units / step);
        }
        let below = units.div_euclid(step);
        Err(OrderedProblem::Multiple {
            value,
            step: step as f64 / self.scale(),
            below: self.number(below).value(),
            above: self.number(below + 1).value(),
        })
    }

    /// Returns the number of a step.
    pub fn number(&self, step: i64) -> Decimal<'_> {
        Decimal { step, style: self }
    }

    /// Returns whether numbers are written with digits, a minus and a decimal point only.
    pub fn is_plain(&self) -> bool {
        let no_texts = self.before.is_empty() && self.after.is_empty();
        no_texts && !self.comma && self.thousands.is_none() && self.negative == Negative::Minus
    }
}

/// Parses a finite number, with optional spaces around it. Rejects the words that Rust also parses
/// as numbers, such as `inf`.
pub fn parse_number(text: &str) -> Option<f64> {
    text.trim()
        .parse::<f64>()
        .ok()
        .filter(|value| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn style(decimals: u32, step: i64) -> NumberStyle {
        NumberStyle {
            decimals,
            step,
            ..NumberStyle::default()
        }
    }

    #[test]
    fn values_without_step_are_refused() {
        assert_eq!(style(2, 1).exact_step(0.29), Ok(29));
        assert_eq!(
            style(1, 1).exact_step(0.25),
            Err(OrderedProblem::Step(0.25))
        );
        assert_eq!(style(9, 1).step(1e12), None);
        let error = style(2, 25).exact_step(-0.3).unwrap_err();
        assert_eq!(
            error.to_string(),
            "-0.3 is not a multiple of `step`, 0.25: use -0.5 or -0.25"
        );
    }

    #[test]
    fn steps_count_multiples_of_the_step() {
        let dollars = style(0, 500);
        assert_eq!(dollars.exact_step(57_500.0), Ok(115));
        assert_eq!(dollars.number(115).value(), 57_500.0);
        assert_eq!(dollars.number(-3).to_string(), "-1500");
        assert_eq!(dollars.multiple(57_250.0), None);
        assert_eq!(dollars.step(57_250.0), Some(115));
        assert_eq!(dollars.step(57_249.0), Some(114));
        assert_eq!(dollars.step(-1_251.0), Some(-3));
        let quarters = style(2, 25);
        assert_eq!(quarters.multiple(0.75), Some(3));
        assert_eq!(quarters.multiple(0.751), None);
        assert_eq!(quarters.multiple(0.7500001), None);
    }

    #[test]
    fn multiple_of_a_number_with_decimals_is_exact() {
        // 0.29 * 100 is 28.999999999999996.
        assert_eq!(style(2, 1).multiple(0.29), Some(29));
        assert_eq!(
            style(9, 3).multiple(0.123_456_789 - 0.000_000_003),
            Some(41_152_262)
        );
        assert_eq!(style(9, 3).multiple(f64::NAN), None);
        assert_eq!(style(9, 3).multiple(f64::INFINITY), None);
    }
}

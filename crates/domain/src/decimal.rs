//! Numbers as multiples of a decimal place, read and written in their column's style.

use std::fmt::{self, Display, Formatter};

use crate::{MAX_MAGNITUDE, ordered::OrderedProblem};

/// Maximum number of decimals of a number.
pub const MAX_DECIMALS: u32 = 9;

/// How a column's numbers are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DecimalStyle {
    /// Number of decimals of a step, at most [`MAX_DECIMALS`].
    pub decimals: u32,
    /// Whether trailing zeros are written.
    pub trailing_zeros: bool,
    /// Whether the decimal mark is a comma.
    pub comma: bool,
}

/// A number of a column, displayed in the column's style.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decimal {
    step: i64,
    style: DecimalStyle,
}

impl Decimal {
    /// The number as a count of the column's last decimal place.
    pub fn step(&self) -> i64 {
        self.step
    }

    /// The number itself.
    pub fn value(&self) -> f64 {
        // Steps are below 2^53 and the power is exact, so the result is rounded once.
        self.step as f64 / self.style.scale()
    }
}

impl DecimalStyle {
    /// 10^decimals.
    fn scale(self) -> f64 {
        10u64.pow(self.decimals.min(MAX_DECIMALS)) as f64
    }

    /// Parses the number in `text`.
    pub fn parse(self, text: &str) -> Option<f64> {
        if !self.comma {
            return parse_number(text);
        }
        // A point would separate thousands, or belong to a number in another style.
        if text.contains('.') {
            return None;
        }
        parse_number(&text.replacen(',', ".", 1))
    }

    /// Returns the step nearest to `value`, or `None` if it exceeds [`MAX_MAGNITUDE`].
    pub fn step(self, value: f64) -> Option<i64> {
        let step = (value * self.scale()).round();
        (step.abs() <= MAX_MAGNITUDE).then_some(step as i64)
    }

    /// Returns the step that equals `value`.
    ///
    /// # Errors
    /// [`OrderedProblem::Step`] if no step does.
    pub fn exact_step(self, value: f64) -> Result<i64, OrderedProblem> {
        let step = self.step(value).ok_or(OrderedProblem::Step(value))?;
        let distance = (step as f64 / self.scale() - value).abs();
        if distance > 1e-9 * value.abs().max(1e-6) {
            return Err(OrderedProblem::Step(value));
        }
        Ok(step)
    }

    /// Returns the number of a step.
    pub fn number(self, step: i64) -> Decimal {
        Decimal { step, style: self }
    }
}

impl Display for Decimal {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let scale = 10u64.pow(self.style.decimals.min(MAX_DECIMALS));
        let magnitude = self.step.unsigned_abs();
        let sign = if self.step < 0 { "-" } else { "" };
        write!(out, "{sign}{}", magnitude / scale)?;
        let width = self.style.decimals as usize;
        let decimals = format!("{:0width$}", magnitude % scale);
        let shown = if self.style.trailing_zeros {
            decimals.as_str()
        } else {
            decimals.trim_end_matches('0')
        };
        if width == 0 || shown.is_empty() {
            return Ok(());
        }
        let mark = if self.style.comma { ',' } else { '.' };
        write!(out, "{mark}{shown}")
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
    use proptest::prelude::*;

    fn style(decimals: u32, trailing_zeros: bool, comma: bool) -> DecimalStyle {
        DecimalStyle {
            decimals,
            trailing_zeros,
            comma,
        }
    }

    #[test]
    fn numbers_follow_the_style_of_their_column() {
        let show = |step, style: DecimalStyle| style.number(step).to_string();
        assert_eq!(show(-1250, style(2, false, false)), "-12.5");
        assert_eq!(show(-1250, style(2, true, true)), "-12,50");
        assert_eq!(show(5, style(2, false, false)), "0.05");
        assert_eq!(show(300, style(2, false, false)), "3");
        assert_eq!(show(7, style(0, true, true)), "7");
        assert_eq!(style(1, false, true).parse("3,5"), Some(3.5));
        assert_eq!(style(1, false, true).parse("3.5"), None);
        assert_eq!(style(1, false, true).parse("1,2,3"), None);
        assert!(matches!(
            style(1, false, false).exact_step(0.25),
            Err(OrderedProblem::Step(..))
        ));
        assert_eq!(style(2, false, false).exact_step(0.29), Ok(29));
        assert_eq!(style(9, false, false).step(1e12), None);
    }

    proptest! {
        #[test]
        fn step_round_trips_through_text(step in -1_000_000_000_000i64..1_000_000_000_000,
                                        decimals in 0u32..=9, zeros: bool, comma: bool) {
            let style = style(decimals, zeros, comma);
            let text = style.number(step).to_string();
            let value = style.parse(&text).unwrap();
            prop_assert_eq!(style.step(value), Some(step));
            prop_assert_eq!(style.number(step).value(), value);
        }
    }
}

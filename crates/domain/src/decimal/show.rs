//! Writing of numbers in their column's style.

use std::fmt::{self, Display, Formatter, Write as _};

use super::{Decimal, MAX_DECIMALS, NumberStyle};
use crate::form::Negative;

impl Display for Decimal<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let style = self.style;
        let magnitude = self.units().unsigned_abs();
        let negative = (self.units() < 0).then_some(style.negative);
        match negative {
            Some(Negative::Minus | Negative::PlusMinus) => out.write_char('-')?,
            None if style.negative == Negative::PlusMinus => out.write_char('+')?,
            Some(Negative::MinusSign) => out.write_char('\u{2212}')?,
            Some(Negative::Parentheses) => out.write_char('(')?,
            Some(Negative::Trailing) | None => {}
        }
        out.write_str(&style.before)?;
        write_digits(out, style, magnitude)?;
        if negative == Some(Negative::Trailing) {
            out.write_char('-')?;
        }
        out.write_str(&style.after)?;
        if negative == Some(Negative::Parentheses) {
            out.write_char(')')?;
        }
        Ok(())
    }
}

/// Writes a count of the last decimal place.
fn write_digits(out: &mut Formatter<'_>, style: &NumberStyle, units: u64) -> fmt::Result {
    let scale = style.units_per_one();
    match style.thousands {
        Some(separator) => write_groups(out, units / scale, separator)?,
        None => write!(out, "{}", units / scale)?,
    }
    let mut decimals = units % scale;
    let mut width = style.decimals.min(MAX_DECIMALS) as usize;
    while !style.trailing_zeros && width > 0 && decimals.is_multiple_of(10) {
        decimals /= 10;
        width -= 1;
    }
    if width == 0 {
        return Ok(());
    }
    write!(out, "{}{decimals:0width$}", style.mark())
}

/// Writes a whole number in groups of three digits.
fn write_groups(out: &mut Formatter<'_>, whole: u64, separator: char) -> fmt::Result {
    if whole < 1000 {
        return write!(out, "{whole}");
    }
    write_groups(out, whole / 1000, separator)?;
    write!(out, "{separator}{:03}", whole % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn style(decimals: u32, trailing_zeros: bool, comma: bool) -> NumberStyle {
        NumberStyle {
            decimals,
            trailing_zeros,
            comma,
            ..NumberStyle::default()
        }
    }

    fn show(step: i64, style: &NumberStyle) -> String {
        style.number(step).to_string()
    }

    #[test]
    fn decimals_follow_the_style() {
        assert_eq!(show(-1250, &style(2, false, false)), "-12.5");
        assert_eq!(show(-1250, &style(2, true, true)), "-12,50");
        assert_eq!(show(5, &style(2, false, false)), "0.05");
        assert_eq!(show(300, &style(2, false, false)), "3");
        assert_eq!(show(0, &style(2, false, false)), "0");
        assert_eq!(show(7, &style(0, true, true)), "7");
        let ages = NumberStyle {
            step: 10,
            ..style(1, true, false)
        };
        assert_eq!(show(17, &ages), "17.0");
    }

    #[test]
    fn groups_have_three_digits() {
        let grouped = |thousands, comma| NumberStyle {
            thousands: Some(thousands),
            ..style(2, true, comma)
        };
        assert_eq!(show(123_456, &grouped('.', true)), "1.234,56");
        assert_eq!(show(99_999, &grouped('.', true)), "999,99");
        assert_eq!(show(-100_000_005, &grouped(',', false)), "-1,000,000.05");
        assert_eq!(show(100_000, &grouped('\u{202f}', true)), "1\u{202f}000,00");
    }

    #[test]
    fn signs_and_texts_stand_where_the_style_has_them() {
        let dollars = |negative| NumberStyle {
            before: "$".to_owned(),
            after: " net".to_owned(),
            negative,
            ..style(2, true, false)
        };
        assert_eq!(show(-500, &dollars(Negative::Minus)), "-$5.00 net");
        assert_eq!(show(-500, &dollars(Negative::Parentheses)), "($5.00 net)");
        assert_eq!(show(-500, &dollars(Negative::Trailing)), "$5.00- net");
        assert_eq!(show(500, &dollars(Negative::Parentheses)), "$5.00 net");
        assert_eq!(show(500, &dollars(Negative::PlusMinus)), "+$5.00 net");
        assert_eq!(show(-500, &dollars(Negative::PlusMinus)), "-$5.00 net");
    }

    #[test]
    fn extreme_steps_are_written() {
        let quarters = NumberStyle {
            step: 25,
            ..style(2, false, false)
        };
        assert!(show(i64::MIN, &quarters).starts_with("-92233720368547758"));
        assert!(show(i64::MAX, &quarters).starts_with("92233720368547758"));
    }
}

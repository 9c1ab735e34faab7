//! Numbers as text.

/// Formats a number for people, with an exponent if it would otherwise have many digits.
pub fn number(value: f64) -> String {
    match value.abs() {
        1e-5..1e16 => value.to_string(),
        size if size == 0.0 || !size.is_finite() => value.to_string(),
        _ => format!("{value:e}"),
    }
}

/// Rounds a positive number up to two significant digits. Returns other numbers unchanged.
pub fn rounded_up(value: f64) -> f64 {
    let unit = 10f64.powf(value.log10().floor() - 1.0);
    // Multiples of a unit are not exact, but their two digits are.
    let digits = format!("{:.1e}", (value / unit).ceil() * unit);
    digits
        .parse()
        .ok()
        .filter(|up: &f64| up.is_finite())
        .unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_with_few_digits() {
        let shown = [
            0.0,
            1.0,
            0.1,
            1e-5,
            4_294_967_295.0,
            1e-300,
            1.1e299,
            f64::INFINITY,
        ]
        .map(number);
        let expected = [
            "0",
            "1",
            "0.1",
            "0.00001",
            "4294967295",
            "1e-300",
            "1.1e299",
            "inf",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn numbers_are_rounded_up_to_two_digits() {
        for (value, expected) in [
            (0.045_01, 0.046),
            (0.9951, 1.0),
            (123.4, 130.0),
            (7.3e-8, 7.3e-8),
            (2.000_1e-9, 2.1e-9),
        ] {
            assert_eq!(rounded_up(value), expected);
        }
        assert!(rounded_up(f64::NAN).is_nan() && rounded_up(f64::INFINITY).is_infinite());
    }
}

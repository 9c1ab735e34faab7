//! Numbers as the card writes them. Statements about privacy are rounded to the safe side.

/// A larger factor says little more than that there is hardly any protection.
const LARGEST_FACTOR: f64 = 1_000.0;

/// Formats an integer with commas between thousands.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a positive number rounded up to `digits` significant digits.
pub(crate) fn rounded_up(value: f64, digits: i32) -> String {
    if !value.is_finite() || value <= 0.0 {
        return value.to_string();
    }
    let place = digits - 1 - value.log10().floor() as i32;
    let scale = 10f64.powi(place);
    // A product that is an integer may be computed slightly above it.
    let scaled = value * scale;
    let whole = if (scaled - scaled.round()).abs() < 1e-9 * scaled {
        scaled.round()
    } else {
        scaled.ceil()
    };
    let decimals = usize::try_from(place).unwrap_or(0);
    let text = format!("{:.decimals$}", whole / scale);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => grouped(text.parse().unwrap_or(u64::MAX)),
    }
}

/// Formats e to the power of epsilon, rounded up, or returns `None` if it is above 1,000 and limits hardly anything.
pub(crate) fn odds_factor(epsilon: f64) -> Option<String> {
    let factor = epsilon.exp();
    (factor <= LARGEST_FACTOR).then(|| rounded_up(factor, 3))
}

/// Returns the largest percentage of right answers about whether one given record was used, for a fair coin as the
/// starting point: (e^epsilon + delta) / (1 + e^epsilon), rounded up.
pub(crate) fn right_answers(epsilon: f64, delta: f64) -> u64 {
    let no = 1.0 / (1.0 + epsilon.exp());
    let share = (1.0 - no + delta * no).min(1.0);
    ((100.0 * share - 1e-9).ceil() as u64).clamp(50, 100)
}

/// Formats a probability as "1 in 1,000,000,000".
pub(crate) fn chance(probability: f64) -> String {
    let times = (1.0 / probability * (1.0 + 1e-12)).floor();
    format!("1 in {}", grouped(times as u64))
}

/// Formats twice a standard deviation, rounded up to two digits: about 95 of 100 normal draws are within it.
pub(crate) fn plus_minus(deviation: f64) -> String {
    format!("\u{b1} {}", rounded_up(2.0 * deviation, 2))
}

/// Formats epsilon of a total, rounded up.
pub(crate) fn total_epsilon(epsilon: f64) -> String {
    match epsilon.is_finite() {
        true => rounded_up(epsilon, 4),
        false => "without bound".to_owned(),
    }
}

/// Formats a small probability with up to two digits, rounded up, such as `2e-9`.
pub(crate) fn small(probability: f64) -> String {
    rounded_up(probability, 2).parse().map_or_else(
        |_| probability.to_string(),
        |value: f64| format!("{value:e}"),
    )
}

/// Formats bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_up_to_significant_digits() {
        let of = |value, digits| rounded_up(value, digits);
        assert_eq!(of(2.712, 3), "2.72");
        assert_eq!(of(1.0, 3), "1");
        assert_eq!(of(119.2, 2), "120");
        assert_eq!(of(12_345.0, 2), "13,000");
        assert_eq!(of(0.012_31, 2), "0.013");
        assert_eq!(of(60.0, 2), "60");
        assert_eq!(of(99.5, 2), "100");
    }

    #[test]
    fn factor_of_large_epsilons_is_left_out() {
        assert_eq!(odds_factor(1.0).as_deref(), Some("2.72"));
        assert_eq!(odds_factor(7.0), None);
    }

    /// e / (1 + e) is 73.1%.
    #[test]
    fn right_answers_are_a_share_rounded_up() {
        assert_eq!(right_answers(1.0, 1e-9), 74);
        assert_eq!(right_answers(0.0, 0.0), 50);
        assert_eq!(right_answers(50.0, 1e-9), 100);
    }

    #[test]
    fn chances_are_one_in_a_number() {
        assert_eq!(chance(1e-9), "1 in 1,000,000,000");
        assert_eq!(chance(3e-6), "1 in 333,333");
    }

    #[test]
    fn small_probabilities_are_rounded_up() {
        assert_eq!(small(2e-9), "2e-9");
        assert_eq!(small(1.011e-10), "1.1e-10");
    }

    #[test]
    fn noise_is_two_standard_deviations() {
        assert_eq!(plus_minus(29.8), "\u{b1} 60");
    }
}

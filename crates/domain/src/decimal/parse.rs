//! Reading of numbers in their column's style.

use super::NumberStyle;
use crate::form::Negative;

/// The minus of mathematical texts, which is read like a hyphen.
const MINUS: char = '\u{2212}';

/// Every double with at most this magnitude is exact, if it is whole.
const MAX_EXACT: u64 = 1 << 53;

/// The powers of ten that doubles represent exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

impl NumberStyle {
    /// Parses a number that is written in this style.
    ///
    /// The texts before and after it must be there. Blanks may stand around the number and next to
    /// these texts. Thousands separators may be missing altogether. A plus and a plain minus are
    /// accepted in every style, in front of the text before the number or behind it. Exponents are
    /// accepted, such as `1.5e-3`. Decimals may be more or fewer than the style has.
    pub fn parse(&self, text: &str) -> Option<f64> {
        let text = text.trim();
        let (is_negative, digits) = match self.in_parentheses(text) {
            Some(digits) => (true, digits),
            None => self.signed(text)?,
        };
        let value = self.digits(digits)?;
        Some(if is_negative { -value } else { value })
    }

    /// Returns the digits of a number in parentheses, which include its texts or not: `($5)`, `$(5)`.
    fn in_parentheses<'t>(&self, text: &'t str) -> Option<&'t str> {
        if self.negative != Negative::Parentheses {
            return None;
        }
        let (before, after) = (self.before.trim(), self.after.trim());
        let rest = match text.strip_prefix('(') {
            Some(inner) => without_prefix(inner.trim_start(), before)?,
            None => without_prefix(text, before)?
                .trim_start()
                .strip_prefix('(')?,
        };
        let closed_last = rest.strip_suffix(')').map(str::trim_end);
        let digits = match closed_last.and_then(|inner| without_suffix(inner, after)) {
            Some(digits) => digits,
            None => without_suffix(rest, after)?.trim_end().strip_suffix(')')?,
        };
        Some(digits.trim())
    }

    /// Removes the sign and the texts. Returns whether the number is negative, and its digits.
    fn signed<'t>(&self, text: &'t str) -> Option<(bool, &'t str)> {
        let outer = leading_sign(text);
        let rest = outer.map_or(text, |(_, rest)| rest);
        let rest = without_prefix(rest, self.before.trim())?.trim_start();
        let inner = leading_sign(rest);
        let rest = inner.map_or(rest, |(_, rest)| rest);
        let after = self.after.trim();
        let is_negative = match (outer, inner) {
            (Some(_), Some(_)) => return None,
            (Some((is_negative, _)), None) | (None, Some((is_negative, _))) => is_negative,
            (None, None) if self.negative == Negative::Trailing => {
                return trailing_sign(rest, after);
            }
            (None, None) => false,
        };
        Some((is_negative, without_suffix(rest, after)?.trim_end()))
    }

    /// Parses digits without sign and texts.
    fn digits(&self, text: &str) -> Option<f64> {
        let digits = Digits::split(text, self.mark(), self.thousands)?;
        let value = digits.quick_value();
        value.or_else(|| digits.slow_value())
    }
}

// The next two functions do not compare an empty text, which takes most of the time of a number: the address of an empty
// `String` is not mapped, and some processors load it slowly.

fn without_prefix<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    match prefix.is_empty() {
        true => Some(text),
        false => text.strip_prefix(prefix),
    }
}

fn without_suffix<'t>(text: &'t str, suffix: &str) -> Option<&'t str> {
    match suffix.is_empty() {
        true => Some(text),
        false => text.strip_suffix(suffix),
    }
}

/// Returns whether a text begins with a minus, and its rest, or `None` if it begins with no sign.
fn leading_sign(text: &str) -> Option<(bool, &str)> {
    let mut rest = text.chars();
    let is_negative = match rest.next()? {
        '-' | MINUS => true,
        '+' => false,
        _ => return None,
    };
    Some((is_negative, rest.as_str().trim_start()))
}

/// Removes `after` and a minus in front of it or behind it. Returns whether there is a minus, and the digits.
fn trailing_sign<'t>(text: &'t str, after: &str) -> Option<(bool, &'t str)> {
    let without_minus = |text: &'t str| {
        let digits = text.strip_suffix(['-', MINUS]);
        digits.map(str::trim_end)
    };
    if let Some(rest) = without_suffix(text, after) {
        let rest = rest.trim_end();
        return Some(without_minus(rest).map_or((false, rest), |digits| (true, digits)));
    }
    let digits = without_suffix(without_minus(text)?, after)?;
    Some((true, digits.trim_end()))
}

/// Returns whether a separator may stand in place of the style's: blanks of different width, and
/// straight and curved apostrophes, look the same to people.
fn is_alike(one: char, other: char) -> bool {
    let blank = |c| matches!(c, ' ' | '\u{a0}' | '\u{2009}' | '\u{202f}');
    let apostrophe = |c| matches!(c, '\'' | '\u{2019}');
    one == other || (blank(one) && blank(other)) || (apostrophe(one) && apostrophe(other))
}

/// The parts of a number.
struct Digits<'t> {
    /// The digits before the decimal mark, with separators.
    whole: &'t str,
    decimals: &'t str,
    exponent: i32,
}

impl<'t> Digits<'t> {
    /// Splits a number into its parts. There is at least one digit.
    fn split(text: &'t str, mark: char, thousands: Option<char>) -> Option<Self> {
        let (whole, rest) = split_whole(text, thousands)?;
        let (decimals, rest) = match rest.strip_prefix(mark) {
            Some(rest) => split_digits(rest),
            None => ("", rest),
        };
        let exponent = match rest.strip_prefix(['e', 'E']) {
            Some(exponent) => parse_exponent(exponent)?,
            None if rest.is_empty() => 0,
            None => return None,
        };
        let has_digits = !whole.is_empty() || !decimals.is_empty();
        has_digits.then_some(Self {
            whole,
            decimals,
            exponent,
        })
    }

    /// Digits of the number, without separators and mark.
    fn digits(&self) -> impl Iterator<Item = u8> + 't {
        let all = self.whole.bytes().chain(self.decimals.bytes());
        all.filter(u8::is_ascii_digit)
    }

    /// Power of ten that the digits are multiplied by.
    fn power(&self) -> i32 {
        let decimals = i32::try_from(self.decimals.len()).unwrap_or(i32::MAX);
        self.exponent.saturating_sub(decimals)
    }

    /// Computes the number if the result needs only one rounding, as for nearly all numbers.
    fn quick_value(&self) -> Option<f64> {
        let mut mantissa = 0u64;
        for digit in self.digits() {
            mantissa = mantissa * 10 + u64::from(digit - b'0');
            if mantissa > MAX_EXACT {
                return None;
            }
        }
        let power = self.power();
        let factor = POWERS.get(power.unsigned_abs() as usize)?;
        let mantissa = mantissa as f64;
        Some(if power < 0 {
            mantissa / factor
        } else {
            mantissa * factor
        })
    }

    /// Computes any number with the standard library, which needs a text without separators.
    fn slow_value(&self) -> Option<f64> {
        let mut text: String = self.digits().map(char::from).collect();
        text.push_str(&format!("e{}", self.power()));
        text.parse().ok().filter(|value: &f64| value.is_finite())
    }
}

/// Splits a text after its leading digits.
fn split_digits(text: &str) -> (&str, &str) {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit());
    text.split_at(end.unwrap_or(text.len()))
}

/// Splits a text after the whole part of a number: digits without separators, or a group of one to
/// three digits and further groups of three.
fn split_whole(text: &str, thousands: Option<char>) -> Option<(&str, &str)> {
    let (first, mut rest) = split_digits(text);
    let Some(thousands) = thousands else {
        return Some((first, rest));
    };
    let mut has_groups = false;
    while let Some(after) = rest.strip_prefix(|c| is_alike(c, thousands)) {
        let (group, after) = split_digits(after);
        if group.len() != 3 {
            return None;
        }
        rest = after;
        has_groups = true;
    }
    // `0,123` has a decimal mark in another style, and is no thousands.
    if has_groups && (!(1..=3).contains(&first.len()) || first.starts_with('0')) {
        return None;
    }
    Some((&text[..text.len() - rest.len()], rest))
}

/// Parses an exponent: an optional sign and digits. One that no number needs is replaced by the
/// largest.
fn parse_exponent(text: &str) -> Option<i32> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let magnitude = digits.parse::<i32>().unwrap_or(i32::MAX);
    Some(if text.starts_with('-') {
        -magnitude
    } else {
        magnitude
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_number;
    use proptest::prelude::*;

    fn grouped(thousands: char, comma: bool) -> NumberStyle {
        NumberStyle {
            decimals: 2,
            comma,
            thousands: Some(thousands),
            ..NumberStyle::default()
        }
    }

    fn with_texts(before: &str, after: &str, negative: Negative) -> NumberStyle {
        NumberStyle {
            before: before.to_owned(),
            after: after.to_owned(),
            negative,
            ..NumberStyle::default()
        }
    }

    fn is_refused(style: &NumberStyle, texts: &[&str]) {
        for text in texts {
            assert_eq!(style.parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn decimal_mark_is_the_style_s() {
        let comma = NumberStyle {
            comma: true,
            ..NumberStyle::default()
        };
        assert_eq!(comma.parse("3,5"), Some(3.5));
        assert_eq!(comma.parse(",5e1"), Some(5.0));
        is_refused(&comma, &["3.5", "1,2,3", ",", ""]);
        is_refused(&NumberStyle::default(), &["3,5", "1.2.3", ".", "", "-"]);
    }

    #[test]
    fn words_that_rust_reads_as_numbers_are_refused() {
        let words = [
            "inf",
            "-infinity",
            "nan",
            "NaN",
            "+nan",
            "e5",
            "0x10",
            "1_000",
        ];
        is_refused(&NumberStyle::default(), &words);
        is_refused(&NumberStyle::default(), &["1e999", "1e", "1e+", "1e5.0"]);
    }

    #[test]
    fn separators_stand_between_all_groups_or_nowhere() {
        let style = grouped(',', false);
        for (text, value) in [
            ("1,200", 1_200.0),
            ("1200", 1_200.0),
            (" -12,345,678.25 ", -12_345_678.25),
            ("800", 800.0),
            ("0.125", 0.125),
            ("1,200e-2", 12.0),
            ("2E+05", 200_000.0),
        ] {
            assert_eq!(style.parse(text), Some(value), "{text:?}");
        }
        is_refused(
            &style,
            &[
                "1,20",
                "1,2000",
                "1200,000",
                "1,200000",
                ",200",
                "1,200,",
                "1.200,5",
                "1,,200",
                "0,123",
                "1.250,300",
                "1 200",
            ],
        );
        assert_eq!(grouped('.', true).parse("1.234,56"), Some(1_234.56));
        is_refused(&grouped('.', true), &["1,234.56", "1.234.56", "1.23"]);
    }

    #[test]
    fn separators_that_look_alike_are_accepted() {
        for text in ["12 345,5", "12\u{a0}345,5", "12\u{202f}345,5", "12345,5"] {
            assert_eq!(grouped(' ', true).parse(text), Some(12_345.5), "{text:?}");
        }
        assert_eq!(grouped('\'', false).parse("1\u{2019}234.50"), Some(1_234.5));
        is_refused(&grouped('\'', false), &["1 234.50", "1  234"]);
    }

    #[test]
    fn texts_around_the_number_are_required() {
        let dollars = with_texts("$", "", Negative::Minus);
        for text in ["$5", " $ 5 ", "+$5", "$+5"] {
            assert_eq!(dollars.parse(text), Some(5.0), "{text:?}");
        }
        for text in ["-$5", "$-5", "- $ 5", "$ - 5", "\u{2212}$5"] {
            assert_eq!(dollars.parse(text), Some(-5.0), "{text:?}");
        }
        is_refused(&dollars, &["5", "-$-5", "$$5", "5$", "($5)", "$5-", "$"]);
        let grams = with_texts("", " mg", Negative::Minus);
        for text in ["5 mg", "5mg", " 5\u{a0}mg"] {
            assert_eq!(grams.parse(text), Some(5.0), "{text:?}");
        }
        is_refused(&grams, &["5", "5 g", "5 mg mg", "mg"]);
        let prices = with_texts("CHF ", ".-", Negative::Minus);
        assert_eq!(prices.parse("CHF 5.-"), Some(5.0));
    }

    #[test]
    fn negative_numbers_are_read_as_the_style_writes_them() {
        let parentheses = with_texts("$", "%", Negative::Parentheses);
        for text in [
            "($5%)",
            "$(5)%",
            "($5)%",
            "$ ( 5%)",
            "( $ 5 % )",
            "-$5%",
            "$-5 %",
        ] {
            assert_eq!(parentheses.parse(text), Some(-5.0), "{text:?}");
        }
        is_refused(&parentheses, &["(-$5%)", "-($5%)", "($5%", "$5%)", "$5%-"]);
        let trailing = with_texts("", " €", Negative::Trailing);
        for text in ["5- €", "5 - €", "5 €-", "-5 €"] {
            assert_eq!(trailing.parse(text), Some(-5.0), "{text:?}");
        }
        is_refused(&trailing, &["-5- €", "5-- €", "(5 €)", "5-"]);
        let dash = with_texts("", ",-", Negative::Trailing);
        assert_eq!(dash.parse("5,-"), Some(5.0));
        assert_eq!(dash.parse("5-,-"), Some(-5.0));
    }

    #[test]
    fn numbers_with_many_digits_are_rounded_once() {
        let style = grouped(',', false);
        let long = "123,456,789,012,345,678,901.234567890123456789e-3";
        let plain = long.replace(',', "");
        assert_eq!(style.parse(long), plain.parse().ok());
        assert_eq!(style.parse(&"9".repeat(400)), None);
        assert_eq!(
            style.parse(&format!("{}e-500", "9".repeat(400))),
            Some(1e-100)
        );
        assert_eq!(style.parse("0e99999999999"), Some(0.0));
        assert_eq!(style.parse("1e-99999999999"), Some(0.0));
    }

    fn any_style() -> impl Strategy<Value = NumberStyle> {
        let negative = prop_oneof![
            Just(Negative::Minus),
            Just(Negative::Parentheses),
            Just(Negative::Trailing),
            Just(Negative::PlusMinus)
        ];
        let marks = (any::<bool>(), 0..8usize).prop_map(|(comma, place)| {
            let separators = [' ', '\'', '\u{a0}', '\u{202f}', '\u{2009}', '\u{2019}'];
            let other = if comma { '.' } else { ',' };
            (
                comma,
                separators
                    .get(place)
                    .copied()
                    .or((place == 6).then_some(other)),
            )
        });
        let before = prop_oneof![Just(String::new()), "[a-z$€ 0-9.,-][ -~€\u{a0}]{0,4}"];
        let after = prop_oneof![Just(String::new()), "[ -~€\u{a0}]{1,5}"];
        (
            0u32..=9,
            any::<bool>(),
            marks,
            1i64..2_000,
            before,
            after,
            negative,
        )
            .prop_map(
                |(decimals, trailing_zeros, (comma, thousands), step, before, after, negative)| {
                    let style = NumberStyle {
                        decimals,
                        trailing_zeros,
                        comma,
                        step,
                        thousands,
                        before,
                        after,
                        negative,
                    };
                    match style.check() {
                        Ok(()) => style,
                        Err(_) => NumberStyle {
                            before: String::new(),
                            after: String::new(),
                            ..style
                        },
                    }
                },
            )
    }

    proptest! {
        #[test]
        fn step_round_trips_through_text(style in any_style(), step in -500_000_000i64..500_000_000) {
            let text = style.number(step).to_string();
            let value = style.parse(&text);
            prop_assert_eq!(value, Some(style.number(step).value()), "{}", text);
            prop_assert_eq!(style.multiple(value.unwrap()), Some(step));
            prop_assert_eq!(style.step(value.unwrap()), Some(step));
        }

        #[test]
        fn plain_numbers_are_read_as_rust_does(text in "[-+]?[0-9]{0,25}[.]?[0-9]{0,25}([eE][-+]?[0-9]{1,3})?") {
            prop_assert_eq!(NumberStyle::default().parse(&text), parse_number(&text), "{}", text);
        }

        #[test]
        fn any_text_is_read_without_panic(style in any_style(), text in "\\PC{0,30}") {
            style.parse(&text);
        }

        #[test]
        fn likely_text_is_read_without_panic(style in any_style(), text in "[-+() .,'0-9eE$%€\u{a0}]{0,16}") {
            style.parse(&text);
        }
    }
}

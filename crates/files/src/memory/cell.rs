//! The normal form of a cell, which is the same in every file format of a table.
//!
//! Texts that mean the same have the same normal form, as far as one cell shows it without its column:
//! - Blanks around a cell do not count. Words for a missing value, such as `NA`, are an empty text.
//! - `1`, `01`, `1.0`, `1,0` and `1e0` are one number. A number with a fraction has 15 significant digits, as many as a
//!   workbook keeps. A comma is a decimal comma, so `1,234` is not 1234.
//! - `2024-01-31`, `2024/01/31`, `31.01.2024` and `2024-01-31T00:00:00` are one date. Dates with slashes that begin with
//!   day or month are texts, because their order depends on the column.
//! - `07:05`, `7:05:00` and `07:05:00.000` are one time.
//! - `TRUE`, `True` and `true` are one text. Other texts differ if any byte differs.
//!
//! Different values may share a normal form: `01` and `1` can be two codes. Then two records look equal, which matters
//! only if most records of two tables differ in nothing else.

use zeroize::Zeroizing;

/// Significant digits of a number with a fraction.
const DIGITS: usize = 15;

/// An integer with more digits is written with an exponent.
const MAX_INTEGER_DIGITS: i64 = 40;

/// The largest exponent of ten that a text may have.
const MAX_EXPONENT_DIGITS: usize = 4;

/// Length of the longest of the words below.
const MAX_WORD_BYTES: usize = 5;

/// Words for a missing value, in lower case.
const MISSING: [&str; 7] = ["na", "n/a", "nan", "nat", "null", "none", "<na>"];

/// Words for the two values of a flag, in lower case.
const TRUTH: [&str; 2] = ["true", "false"];

/// Appends the normal form of a cell to `out`.
pub(super) fn normalise(cell: &[u8], out: &mut Zeroizing<Vec<u8>>) {
    let cell = cell.trim_ascii();
    let Some(&first) = cell.first() else {
        return;
    };
    let is_changed = match first {
        b'0'..=b'9' | b'-' | b'+' | b'.' | b',' if !is_plain_integer(cell) => {
            number(cell, out) || date(cell, out) || time(cell, out)
        }
        b'n' | b'N' | b'<' => is_word(cell, &MISSING),
        b't' | b'T' | b'f' | b'F' if is_word(cell, &TRUTH) => {
            out.extend(cell.iter().map(u8::to_ascii_lowercase));
            true
        }
        _ => false,
    };
    if !is_changed {
        out.extend_from_slice(cell);
    }
}

fn is_word(cell: &[u8], words: &[&str]) -> bool {
    cell.len() <= MAX_WORD_BYTES
        && (words.iter()).any(|word| cell.eq_ignore_ascii_case(word.as_bytes()))
}

/// Whether a text is an integer in normal form.
fn is_plain_integer(cell: &[u8]) -> bool {
    let has_leading_zero = cell.len() > 1 && cell.first() == Some(&b'0');
    !has_leading_zero
        && cell.len() as i64 <= MAX_INTEGER_DIGITS
        && cell.iter().all(u8::is_ascii_digit)
}

/// Splits a text behind its first digits.
fn digits(text: &[u8]) -> (&[u8], &[u8]) {
    let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    text.split_at(length)
}

/// Splits a text behind one of two bytes that it begins with.
fn after(text: &[u8], one: u8, other: u8) -> Option<&[u8]> {
    let (&first, rest) = text.split_first()?;
    (first == one || first == other).then_some(rest)
}

/// Appends a number in normal form: digits for an integer, and otherwise `12e-1` for 1.2. Returns false if the text is
/// no number.
fn number(text: &[u8], out: &mut Zeroizing<Vec<u8>>) -> bool {
    let is_negative = text.first() == Some(&b'-');
    let (whole, rest) = digits(after(text, b'-', b'+').unwrap_or(text));
    let (fraction, rest) = match after(rest, b'.', b',') {
        Some(rest) => digits(rest),
        None => (&[][..], rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return false;
    }
    let Some(shift) = exponent(rest) else {
        return false;
    };
    let is_exact = fraction.is_empty() && rest.is_empty();
    let start = out.len();
    if is_negative {
        out.push(b'-');
    }
    let first = out.len();
    let all = whole
        .iter()
        .chain(fraction)
        .skip_while(|byte| **byte == b'0');
    out.extend(all);
    let mut exponent = shift - fraction.len() as i64;
    let written = out.len() - first;
    if !is_exact && written > DIGITS {
        exponent += round(out, first) as i64;
    }
    exponent += trim_zeros(out, first) as i64;
    let written = (out.len() - first) as i64;
    if written == 0 {
        // There is one zero, without a sign.
        out.truncate(start);
        out.push(b'0');
    } else if exponent >= 0 && written + exponent <= MAX_INTEGER_DIGITS {
        out.extend((0..exponent).map(|_| b'0'));
    } else {
        out.push(b'e');
        out.extend_from_slice(exponent.to_string().as_bytes());
    }
    true
}

/// Returns the exponent of ten that ends a number: 0 for an empty text, `None` for any other text.
fn exponent(text: &[u8]) -> Option<i64> {
    if text.is_empty() {
        return Some(0);
    }
    let rest = after(text, b'e', b'E')?;
    let (shift, rest) = digits(after(rest, b'-', b'+').unwrap_or(rest));
    if shift.is_empty() || shift.len() > MAX_EXPONENT_DIGITS || !rest.is_empty() {
        return None;
    }
    let value = (shift.iter()).fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
    Some(if text.get(1) == Some(&b'-') {
        -value
    } else {
        value
    })
}

/// Rounds the digits behind `first` to [`DIGITS`], the half away from zero. Returns the number of digits that it cut.
fn round(out: &mut Vec<u8>, first: usize) -> usize {
    let end = first + DIGITS;
    let cut = out.len().saturating_sub(end);
    let rounds_up = out.get(end).is_some_and(|digit| *digit >= b'5');
    out.truncate(end);
    if !rounds_up {
        return cut;
    }
    for digit in out.iter_mut().skip(first).rev() {
        if *digit < b'9' {
            *digit += 1;
            return cut;
        }
        *digit = b'0';
    }
    // All digits were nines: 10^15 is a one with zeros.
    out.insert(first, b'1');
    cut
}

/// Removes zeros at the end of the digits behind `first`. Returns their number.
fn trim_zeros(out: &mut Vec<u8>, first: usize) -> usize {
    let written = out.get(first..).unwrap_or_default();
    let zeros = written.iter().rev().take_while(|byte| **byte == b'0');
    let zeros = zeros.count();
    out.truncate(out.len() - zeros);
    zeros
}

/// Appends a date with or without a time of day: `2024-01-31`, or `2024-01-31 7:05`. Returns false if the text is no
/// date.
fn date(text: &[u8], out: &mut Zeroizing<Vec<u8>>) -> bool {
    let Some((date, rest)) = year_first(text).or_else(|| day_first(text)) else {
        return false;
    };
    let start = out.len();
    out.extend_from_slice(&date);
    let Some(rest) = after(rest, b' ', b'T') else {
        if !rest.is_empty() {
            out.truncate(start);
        }
        return rest.is_empty();
    };
    let midnight = out.len();
    out.push(b' ');
    if !time(rest, out) {
        out.truncate(start);
        return false;
    }
    if out.get(midnight..) == Some(b" 0:00") {
        out.truncate(midnight);
    }
    true
}

/// Reads `2024-01-31` or `2024/01/31`. Returns the date as `2024-01-31`, and the text behind it.
fn year_first(text: &[u8]) -> Option<([u8; 10], &[u8])> {
    let (year, rest) = digits(text);
    let mark = *rest.first()?;
    let (month, rest) = digits(after(rest, b'-', b'/')?);
    let (day, rest) = digits(after(rest, mark, mark)?);
    Some((iso(year, month, day)?, rest))
}

/// Reads `31.01.2024` as [`year_first`] does.
fn day_first(text: &[u8]) -> Option<([u8; 10], &[u8])> {
    let (day, rest) = digits(text);
    let (month, rest) = digits(after(rest, b'.', b'.')?);
    let (year, rest) = digits(after(rest, b'.', b'.')?);
    Some((iso(year, month, day)?, rest))
}

/// Returns a date as `2024-01-31`. Month and day may have one digit.
fn iso(year: &[u8], month: &[u8], day: &[u8]) -> Option<[u8; 10]> {
    let &[a, b, c, d] = year else {
        return None;
    };
    let two = |part: &[u8]| match *part {
        [ones] => Some((b'0', ones)),
        [tens, ones] => Some((tens, ones)),
        _ => None,
    };
    let ((e, f), (g, h)) = (two(month)?, two(day)?);
    Some([a, b, c, d, b'-', e, f, b'-', g, h])
}

/// Appends a time of day or a duration: `7:05`, `7:05:01.5`, and behind it a zone. Returns false if the text is no time.
fn time(text: &[u8], out: &mut Zeroizing<Vec<u8>>) -> bool {
    let (hours, rest) = digits(text);
    let Some((minutes, rest)) = after(rest, b':', b':').map(digits) else {
        return false;
    };
    let (seconds, rest) = after(rest, b':', b':').map_or((&b"00"[..], rest), digits);
    let (fraction, zone) = after(rest, b'.', b',').map_or((&[][..], rest), digits);
    let is_zone = matches!(zone, [] | [b'Z'] | [b'+' | b'-', _, ..]);
    if hours.is_empty() || minutes.len() != 2 || seconds.len() != 2 || !is_zone {
        return false;
    }
    let zeros = hours.iter().take_while(|byte| **byte == b'0').count();
    let hours = hours.get(zeros.min(hours.len() - 1)..).unwrap_or_default();
    out.extend_from_slice(hours);
    out.push(b':');
    out.extend_from_slice(minutes);
    let zeros = fraction.iter().rev().take_while(|byte| **byte == b'0');
    let fraction = fraction.get(..fraction.len() - zeros.count());
    let fraction = fraction.unwrap_or_default();
    if seconds != b"00" || !fraction.is_empty() {
        out.push(b':');
        out.extend_from_slice(seconds);
    }
    if !fraction.is_empty() {
        out.push(b'.');
        out.extend_from_slice(fraction);
    }
    match zone {
        b"+00:00" => out.push(b'Z'),
        zone => out.extend_from_slice(zone),
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(cell: &str) -> String {
        let mut out = Zeroizing::new(b"before\0".to_vec());
        normalise(cell.as_bytes(), &mut out);
        let out = String::from_utf8(out.to_vec()).unwrap();
        out.strip_prefix("before\0").unwrap().to_owned()
    }

    #[test]
    fn writings_of_a_value_have_one_normal_form() {
        for (expected, writings) in [
            ("", &["", " ", "NA", "nan", "None", "NULL"][..]),
            ("0", &["0", "-0", "0.0", "00", ",0", "0e5"]),
            (
                "12",
                &["12", "012", "12.0", "+12", "12,00", "1.2e1", "1200E-2"],
            ),
            ("-12e-1", &["-1.2", "-1,20", "-12e-1", "-01.2"]),
            ("100", &["100", "1e2", "100.", "0100.00"]),
            (
                "3e-1",
                &["0.3", ".3", "0.30000000000000004", "0.29999999999999999"],
            ),
            (
                "333333333333333e-15",
                &["0.3333333333333333", "0.333333333333333"],
            ),
            ("1", &["0.99999999999999999", "1"]),
            ("1e300", &["1e300", "1E+300", "10e299"]),
            (
                "2024-01-31",
                &["2024-01-31", "31.01.2024", "31.1.2024", "2024/01/31"],
            ),
            (
                "2024-01-31",
                &[
                    "2024-01-31 00:00:00",
                    "2024-01-31T00:00:00.000",
                    "2024-01-31 00:00",
                ],
            ),
            (
                "2024-01-31 7:05",
                &[
                    "2024-01-31 07:05:00",
                    "31.01.2024 7:05",
                    "2024-01-31T07:05:00.000",
                ],
            ),
            (
                "2024-01-31 0:00Z",
                &["2024-01-31T00:00:00Z", "2024-01-31 00:00:00+00:00"],
            ),
            ("7:05:01.5", &["07:05:01.5", "7:05:01.500", "7:05:01,5"]),
            ("0:00", &["00:00", "0:00:00"]),
            ("true", &["true", "True", "TRUE"]),
        ] {
            for writing in writings {
                assert_eq!(normal(writing), expected, "{writing:?}");
            }
        }
    }

    #[test]
    fn other_texts_are_unchanged() {
        let long = "1".repeat(18);
        for text in [
            "Na Nang",
            "1/2/2024",
            "1.234.567",
            "1e",
            "1e99999",
            "--1",
            "-",
            "+",
            ".",
            ",",
            "2024-1-",
            "1:5",
            "T",
            "12 km",
            "10-20",
            "2024-01-31 x",
            "07:05 pm",
            "Zürich",
            "True story",
            &long,
        ] {
            let normal = normal(text);
            assert_eq!(normal, text);
        }
        assert_ne!(normal("123456789012345678"), normal("123456789012345679"));
    }
}

//! Reading of texts in a format.
//!
//! A text is in a format only if its value is written as the same text. The exceptions are blanks
//! around the text, a leading zero of a part without one (`%-d`), and fractions.

use super::{
    date::{DAY, civil_date, days_to},
    format::TimeFormat,
    letters::{Item, Pad, Part},
};
use crate::form::KindForm;

/// Maximum number of digits of the largest part of a duration.
const MAX_OPEN_DIGITS: usize = 9;

/// Digits of the fraction of a reading.
const NANO_DIGITS: u32 = 9;

/// The value of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Whole seconds: since 1970-01-01 00:00, since midnight, or of a duration.
    pub(crate) seconds: i64,
    /// Nanoseconds to add.
    pub(crate) nanos: u32,
    /// Index of the offset among those of the format; 0 if it has none.
    pub(crate) offset: u32,
}

/// The parts of a text, as numbers, while it is read.
struct Parts<'t> {
    values: [i64; Part::COUNT],
    /// The names of the month and of the weekday, as the text has them.
    month: &'t str,
    weekday: &'t str,
    offset: &'t str,
    rest: &'t str,
    /// Whether the text is a negative duration.
    negative: bool,
    /// Length of the text, without a minus.
    length: usize,
}

impl Parts<'_> {
    fn get(&self, part: Part) -> i64 {
        self.values[part as usize]
    }

    fn set(&mut self, part: Part, value: i64) {
        self.values[part as usize] = value;
    }
}

impl TimeFormat {
    /// Reads the value of `text`, with optional blanks around it. Dates and datetimes are seconds
    /// since 1970-01-01 00:00 of the column's clock, times of day are seconds since midnight, and
    /// durations are seconds. Fractions are rounded down. Returns `None` for a text in another
    /// format.
    pub fn read(&self, text: &str) -> Option<i64> {
        self.read_exact(text).map(|reading| reading.seconds)
    }

    /// Reads the value of `text` with its fraction and offset.
    pub(crate) fn read_exact(&self, text: &str) -> Option<Reading> {
        if self.is_iso {
            return self.read_iso(text);
        }
        let parts = self.parts(text)?;
        let offset = match self.options.offsets.as_slice() {
            [] => 0,
            offsets => offsets.iter().position(|offset| offset == parts.offset)?,
        };
        let reading = Reading {
            offset: offset as u32,
            ..self.combine(&parts)?
        };
        match parts.negative {
            true => reading.negative(),
            false => Some(reading),
        }
    }

    /// Returns the offset in a text of this format, whether or not it is one of the column's.
    pub fn offset<'t>(&self, text: &'t str) -> Option<&'t str> {
        let parts = self.parts(text).filter(|_| self.has_offsets())?;
        self.combine(&parts).map(|_| parts.offset)
    }

    /// Returns the month's name in a text of this format.
    pub fn month_name<'t>(&self, text: &'t str) -> Option<&'t str> {
        let parts = self.parts(text)?;
        Some(parts.month).filter(|name| !name.is_empty())
    }

    /// Returns the weekday's name in a text of this format.
    pub fn weekday_name<'t>(&self, text: &'t str) -> Option<&'t str> {
        let parts = self.parts(text)?;
        Some(parts.weekday).filter(|name| !name.is_empty())
    }

    fn parts<'t>(&self, text: &'t str) -> Option<Parts<'t>> {
        let text = text.trim();
        let rest = match self.kind {
            KindForm::Duration => text.strip_prefix('-').unwrap_or(text),
            _ => text,
        };
        let mut parts = Parts {
            values: [0; Part::COUNT],
            month: "",
            weekday: "",
            offset: "",
            rest,
            negative: rest.len() < text.len(),
            length: rest.len(),
        };
        for item in &self.items {
            self.read_item(item, &mut parts)?;
        }
        parts.rest.is_empty().then_some(parts)
    }

    fn read_item(&self, item: &Item, parts: &mut Parts<'_>) -> Option<()> {
        match item {
            Item::Text(text) => parts.rest = parts.rest.strip_prefix(text.as_str())?,
            Item::Number(part, pad) => {
                let length = self.number_length(*part, *pad, parts)?;
                let (digits, rest) = parts.rest.split_at_checked(length)?;
                parts.set(*part, number(digits));
                parts.rest = rest;
            }
            Item::Name(part, names) => {
                let (value, length) = names.find(parts.rest)?;
                let (name, rest) = parts.rest.split_at_checked(length)?;
                parts.set(*part, value as i64 + i64::from(*part == Part::Month));
                parts.rest = rest;
                match part {
                    Part::Month => parts.month = name,
                    Part::Weekday => parts.weekday = name,
                    _ => {}
                }
            }
            Item::Fraction { dot, digits } => read_fraction(*dot, *digits, parts)?,
            Item::Offset(form) => {
                let length = form.length(parts.rest.as_bytes())?;
                (parts.offset, parts.rest) = parts.rest.split_at_checked(length)?;
            }
        }
        Some(())
    }

    /// Returns the length of the number at the beginning of the rest of a text.
    fn number_length(&self, part: Part, pad: Pad, parts: &Parts<'_>) -> Option<usize> {
        let most = match part {
            Part::Year => 4,
            _ if self.open == Some(part) => MAX_OPEN_DIGITS,
            _ => 2,
        };
        let rest = parts.rest.as_bytes();
        let found = rest
            .iter()
            .take(most)
            .take_while(|b| b.is_ascii_digit())
            .count();
        let led_by_zero = rest.first() == Some(&b'0');
        let fits = match pad {
            Pad::Zero if self.open == Some(part) => found == 2 || (found > 2 && !led_by_zero),
            Pad::Zero => found == most,
            Pad::None => found == 1 || found == 2 || (found > 2 && !led_by_zero),
            Pad::Blank => match rest {
                [b' ', digit, ..] => return digit.is_ascii_digit().then_some(2),
                // The blank at the beginning of a text is not part of it.
                _ => (found == 2 && !led_by_zero) || (found == 1 && rest.len() == parts.length),
            },
        };
        fits.then_some(found)
    }

    /// Combines the parts of a text to its value, or returns `None` if they do not exist together.
    fn combine(&self, parts: &Parts<'_>) -> Option<Reading> {
        let days = match self.kind {
            KindForm::Time => 0,
            KindForm::Duration => parts.get(Part::Day),
            _ => self.days(parts)?,
        };
        let time = self.time_of_day(parts)?;
        Some(Reading {
            seconds: days * DAY + time,
            nanos: parts.get(Part::Fraction) as u32,
            offset: 0,
        })
    }

    /// Returns the days from 1970-01-01 to the date of a text.
    fn days(&self, parts: &Parts<'_>) -> Option<i64> {
        let mut year = parts.get(Part::Year);
        if let (true, Some(first)) = (self.has_short_years(), self.options.first_year) {
            year = first + (parts.get(Part::ShortYear) - first).rem_euclid(100);
        }
        let day = match self.has(Part::Day) {
            true => parts.get(Part::Day),
            false => 1,
        };
        let date = civil_date(year, parts.get(Part::Month), day)?;
        let weekday = i64::from(date.weekday().to_monday_zero_offset());
        let agrees = !self.has(Part::Weekday) || weekday == parts.get(Part::Weekday);
        agrees.then(|| days_to(date))
    }

    /// Returns the seconds of a text's hours, minutes and seconds.
    fn time_of_day(&self, parts: &Parts<'_>) -> Option<i64> {
        let [mut hour, minute, second] =
            [Part::Hour, Part::Minute, Part::Second].map(|part| parts.get(part));
        if self.has(Part::Hour12) {
            let twelve = parts.get(Part::Hour12);
            hour = twelve % 12 + 12 * parts.get(Part::Half);
            if !(1..=12).contains(&twelve) {
                return None;
            }
        }
        let below = |part, value, limit| value < limit || self.open == Some(part);
        let fits = below(Part::Hour, hour, 24)
            && below(Part::Minute, minute, 60)
            && below(Part::Second, second, 60);
        let whole_hour = minute == 0 && second == 0 && parts.get(Part::Fraction) == 0;
        let midnight = self.options.midnight && whole_hour;
        if midnight && hour == 0 && self.kind == KindForm::Time {
            // The beginning of a day is the end of the day before it.
            hour = 24;
        }
        (fits || (midnight && hour == 24)).then_some(hour * 3_600 + minute * 60 + second)
    }
}

impl Reading {
    /// Returns the negative of a duration. Zero has none.
    pub(super) fn negative(self) -> Option<Self> {
        let has_fraction = self.nanos > 0;
        let second = 10u32.pow(NANO_DIGITS);
        (self.seconds > 0 || has_fraction).then(|| Self {
            seconds: -self.seconds - i64::from(has_fraction),
            nanos: if has_fraction { second - self.nanos } else { 0 },
            offset: self.offset,
        })
    }
}

/// Returns the number that digits stand for, after an optional blank.
fn number(digits: &str) -> i64 {
    let digits = digits.bytes().filter(u8::is_ascii_digit);
    digits.fold(0, |number, digit| 10 * number + i64::from(digit - b'0'))
}

/// Reads digits of a second as nanoseconds.
fn read_fraction(dot: bool, digits: Option<u32>, parts: &mut Parts<'_>) -> Option<()> {
    let after = match dot {
        true => parts.rest.strip_prefix('.'),
        false => Some(parts.rest),
    };
    let most = digits.unwrap_or(NANO_DIGITS) as usize;
    let found = after.map_or(0, |after| {
        let digits = after.bytes().take(most).take_while(u8::is_ascii_digit);
        digits.count()
    });
    if found == 0 && dot && digits.is_none() {
        return Some(());
    }
    if found == 0 || digits.is_some_and(|digits| found < digits as usize) {
        return None;
    }
    let (fraction, rest) = after?.split_at_checked(found)?;
    let scale = 10i64.pow(NANO_DIGITS.saturating_sub(found as u32));
    parts.set(Part::Fraction, number(fraction) * scale);
    parts.rest = rest;
    Some(())
}

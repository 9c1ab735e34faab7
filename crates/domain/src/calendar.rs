//! Dates and times of day, read and written in a column's format.
//!
//! Moments are seconds since 1970-01-01 in the proleptic Gregorian calendar, without time zones or
//! leap seconds: a column's times are those of its own clock. Conversions between days and dates
//! follow Hinnant 2013, `chrono`-Compatible Low-Level Date Algorithms.

use std::fmt::{self, Display, Formatter};

/// Seconds of a day.
pub const DAY: i64 = 86_400;

/// Maximum number of characters of a format.
const MAX_FORMAT: usize = 64;

/// Years that a date may have: four digits.
const YEARS: std::ops::RangeInclusive<i64> = 1..=9999;

/// Why a format is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatProblem {
    /// A letter after `%` that has no meaning.
    #[error(
        "`format` has {0:?}: use %Y %m %d %H %M %S, or %-m %-d %-H without a leading zero; other \
         characters stand for themselves"
    )]
    Letter(String),
    /// A part that is repeated or missing.
    #[error("`format` must have each of {0} once, and no other part")]
    Parts(&'static str),
    /// Too long or not printable.
    #[error("`format` must have from 1 to {MAX_FORMAT} printable characters")]
    Length,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DatePart {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    Literal(char),
    /// A part, and whether it has a leading zero.
    Part(DatePart, bool),
}

/// The format of moments, such as `%d.%m.%Y %H:%M`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeFormat {
    items: Vec<Item>,
}

/// Returns the days from 1970-01-01 to a date, or `None` for a date that does not exist.
pub fn days_from_date(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let longest = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !YEARS.contains(&year) || !(1..=longest).contains(&day) {
        return None;
    }
    // Years begin in March, so that a leap day is the last of its year.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468)
}

/// Returns the year, month and day of a number of days since 1970-01-01.
pub fn date_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

impl TimeFormat {
    /// Parses a format. With `clock`, it must have hours, and may have minutes, then seconds.
    /// Without, it must have only a date.
    ///
    /// # Errors
    /// See [`FormatProblem`].
    pub fn parse(format: &str, clock: bool) -> Result<Self, FormatProblem> {
        let length = format.chars().count();
        if !(1..=MAX_FORMAT).contains(&length) || format.chars().any(char::is_control) {
            return Err(FormatProblem::Length);
        }
        let mut items = Vec::with_capacity(length);
        let mut letters = format.chars();
        while let Some(letter) = letters.next() {
            if letter != '%' {
                items.push(Item::Literal(letter));
                continue;
            }
            let mut after = letters.next();
            let padded = after != Some('-');
            if !padded {
                after = letters.next();
            }
            items.push(Item::Part(part(after, padded)?, padded));
        }
        let format = Self { items };
        format.check(clock)?;
        Ok(format)
    }

    fn check(&self, clock: bool) -> Result<(), FormatProblem> {
        let count = |part| {
            let is = |item: &&Item| matches!(item, Item::Part(found, _) if *found == part);
            self.items.iter().filter(is).count()
        };
        let date = [DatePart::Year, DatePart::Month, DatePart::Day];
        let times = [DatePart::Hour, DatePart::Minute, DatePart::Second].map(count);
        let times_fit = if clock {
            matches!(times, [1, 0, 0] | [1, 1, 0] | [1, 1, 1])
        } else {
            times == [0, 0, 0]
        };
        if date.into_iter().any(|part| count(part) != 1) || !times_fit {
            let parts = if clock {
                "%Y, %m, %d and %H (then %M, then %S)"
            } else {
                "%Y, %m and %d"
            };
            return Err(FormatProblem::Parts(parts));
        }
        Ok(())
    }

    /// Seconds in the smallest unit of the format. Its moments are multiples of it.
    pub fn grain(&self) -> i64 {
        let has = |part| {
            let is = |item: &Item| matches!(item, Item::Part(found, _) if *found == part);
            self.items.iter().any(is)
        };
        match (
            has(DatePart::Hour),
            has(DatePart::Minute),
            has(DatePart::Second),
        ) {
            (_, _, true) => 1,
            (_, true, _) => 60,
            (true, _, _) => 3_600,
            _ => DAY,
        }
    }

    /// Reads the moment in `text`, with optional spaces around it, as seconds since 1970-01-01
    /// 00:00. Returns `None` for a text in another format.
    pub fn read(&self, text: &str) -> Option<i64> {
        let mut rest = text.trim();
        let (mut year, mut month, mut day) = (0, 0, 0);
        let (mut hour, mut minute, mut second) = (0, 0, 0);
        for item in &self.items {
            match *item {
                Item::Literal(letter) => rest = rest.strip_prefix(letter)?,
                Item::Part(part, padded) => {
                    let (value, after) = digits(rest, part, padded)?;
                    rest = after;
                    match part {
                        DatePart::Year => year = value,
                        DatePart::Month => month = value,
                        DatePart::Day => day = value,
                        DatePart::Hour => hour = value,
                        DatePart::Minute => minute = value,
                        DatePart::Second => second = value,
                    }
                }
            }
        }
        let clock = hour < 24 && minute < 60 && second < 60 && rest.is_empty();
        let days = days_from_date(year, month, day)?;
        clock.then_some(days * DAY + hour * 3_600 + minute * 60 + second)
    }

    /// Returns a moment that displays in this format.
    pub fn show(&self, seconds: i64) -> Moment<'_> {
        Moment {
            format: self,
            seconds,
        }
    }
}

fn part(letter: Option<char>, padded: bool) -> Result<DatePart, FormatProblem> {
    let part = match letter {
        Some('Y') if padded => DatePart::Year,
        Some('m') => DatePart::Month,
        Some('d') => DatePart::Day,
        Some('H') => DatePart::Hour,
        Some('M') if padded => DatePart::Minute,
        Some('S') if padded => DatePart::Second,
        other => {
            let letter = other.map_or_else(String::new, String::from);
            let dash = if padded { "" } else { "-" };
            return Err(FormatProblem::Letter(format!("%{dash}{letter}")));
        }
    };
    Ok(part)
}

/// Returns the number at the beginning of `text`, and the rest of the text.
fn digits(text: &str, part: DatePart, padded: bool) -> Option<(i64, &str)> {
    let width = if part == DatePart::Year { 4 } else { 2 };
    let found = text
        .bytes()
        .take(width)
        .take_while(u8::is_ascii_digit)
        .count();
    if found == 0 || (padded && found < width) {
        return None;
    }
    let (number, rest) = text.split_at(found);
    Some((number.parse().ok()?, rest))
}

/// A moment in a column's format.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moment<'a> {
    format: &'a TimeFormat,
    seconds: i64,
}

impl Moment<'_> {
    /// Seconds since 1970-01-01 by the column's own clock.
    pub fn seconds(&self) -> i64 {
        self.seconds
    }
}

impl Display for Moment<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let (year, month, day) = date_from_days(self.seconds.div_euclid(DAY));
        let clock = self.seconds.rem_euclid(DAY);
        for item in &self.format.items {
            let (part, padded) = match *item {
                Item::Literal(letter) => {
                    write!(out, "{letter}")?;
                    continue;
                }
                Item::Part(part, padded) => (part, padded),
            };
            let value = match part {
                DatePart::Year => year,
                DatePart::Month => month,
                DatePart::Day => day,
                DatePart::Hour => clock / 3_600,
                DatePart::Minute => clock / 60 % 60,
                DatePart::Second => clock % 60,
            };
            match (part, padded) {
                (DatePart::Year, _) => write!(out, "{value:04}")?,
                (_, true) => write!(out, "{value:02}")?,
                (_, false) => write!(out, "{value}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn days_are_counted_from_1970() {
        assert_eq!(days_from_date(1970, 1, 1), Some(0));
        assert_eq!(days_from_date(2000, 3, 1), Some(11_017));
        assert_eq!(days_from_date(1969, 12, 31), Some(-1));
        assert_eq!(days_from_date(2023, 2, 29), None);
        assert_eq!(days_from_date(1900, 2, 29), None);
        assert_eq!(days_from_date(2000, 2, 30), None);
        assert_eq!(days_from_date(2024, 13, 1), None);
        let mut days = days_from_date(1, 1, 1).unwrap();
        let last = days_from_date(9999, 12, 31).unwrap();
        while days <= last {
            let (year, month, day) = date_from_days(days);
            assert_eq!(days_from_date(year, month, day), Some(days));
            days += 97;
        }
    }

    #[test]
    fn moments_are_read_strictly() {
        let german = TimeFormat::parse("%d.%m.%Y %H:%M", true).unwrap();
        let seconds = german.read("29.02.2024 07:05").unwrap();
        assert_eq!(german.show(seconds).to_string(), "29.02.2024 07:05");
        assert_eq!(german.grain(), 60);
        for wrong in [
            "29.02.2023 07:05",
            "29.2.2024 07:05",
            "29.02.2024 24:00",
            "29.02.2024 07:05x",
            "",
        ] {
            assert_eq!(german.read(wrong), None, "{wrong}");
        }
        let short = TimeFormat::parse("%-d.%-m.%Y", false).unwrap();
        assert_eq!(short.read("1.2.2024"), short.read("01.02.2024"));
        assert_eq!(short.show(0).to_string(), "1.1.1970");
    }

    #[test]
    fn formats_have_each_part_once() {
        assert!(TimeFormat::parse("%Y-%m-%dT%H:%M:00Z", true).is_ok());
        let refused = |format, clock| TimeFormat::parse(format, clock).unwrap_err();
        assert!(matches!(refused("%Y-%m", false), FormatProblem::Parts(_)));
        assert!(matches!(refused("%Y-%m-%d", true), FormatProblem::Parts(_)));
        assert!(matches!(
            refused("%Y-%m-%d %H", false),
            FormatProblem::Parts(_)
        ));
        assert!(matches!(
            refused("%Y-%m-%d %S", true),
            FormatProblem::Parts(_)
        ));
        assert_eq!(refused("%b", false), FormatProblem::Letter("%b".to_owned()));
        assert_eq!(
            refused("%-Y", false),
            FormatProblem::Letter("%-Y".to_owned())
        );
        assert_eq!(refused("%", false), FormatProblem::Letter("%".to_owned()));
        assert_eq!(refused("", false), FormatProblem::Length);
    }

    proptest! {
        #[test]
        fn moment_round_trips_through_text(seconds in -62_135_596_800i64..253_402_300_800) {
            let format = TimeFormat::parse("%H-%M-%S %-d/%-m/%Y", true).unwrap();
            prop_assert_eq!(format.read(&format.show(seconds).to_string()), Some(seconds));
        }

        #[test]
        fn arbitrary_text_does_not_panic(text: String) {
            let _ = TimeFormat::parse(&text, true).map(|format| format.read(&text));
            let _ = TimeFormat::parse("%Y-%m-%d", false).unwrap().read(&text);
        }
    }
}

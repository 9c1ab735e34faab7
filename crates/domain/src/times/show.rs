//! Writing of values in a format.

use std::fmt::{self, Display, Formatter, Write as _};

use super::{
    date::{DAY, date_of},
    format::TimeFormat,
    letters::{Item, Pad, Part},
    read::Reading,
};
use crate::form::KindForm;

/// A date, datetime, time of day or duration in a column's format.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moment<'a> {
    pub(super) format: &'a TimeFormat,
    pub(super) reading: Reading,
}

impl TimeFormat {
    /// Returns a value of this format that displays in it: seconds since 1970-01-01 00:00, since
    /// midnight, or of a duration. They are rounded down to a multiple of [`TimeFormat::grain`]. A
    /// moment that the format cannot write, such as one in the year 10000, is replaced by the
    /// nearest that it can.
    pub fn show(&self, seconds: i64) -> Moment<'_> {
        self.show_exact(Reading {
            seconds,
            ..Reading::default()
        })
    }

    /// The same with fraction and offset.
    pub(crate) fn show_exact(&self, reading: Reading) -> Moment<'_> {
        let (first, last) = match self.kind {
            KindForm::Duration => (i64::MIN / 2, i64::MAX / 2),
            KindForm::Time => {
                let first = self.day_start();
                (first, first + DAY - self.grain())
            }
            _ => self.range(),
        };
        let seconds = reading.seconds.clamp(first, last);
        Moment {
            format: self,
            reading: Reading {
                seconds: seconds - seconds.rem_euclid(self.grain()),
                ..reading
            },
        }
    }
}

impl TimeFormat {
    /// Returns the nanoseconds that are written after a number of seconds. A day has no moments after 24:00.
    pub(crate) fn nanos(&self, seconds: i64, nanos: u32) -> u32 {
        let is_midnight = self.has_midnight() && seconds.rem_euclid(DAY) == 0;
        if is_midnight { 0 } else { nanos }
    }
}

/// A value's parts as numbers.
struct Parts {
    date: jiff::civil::Date,
    days: i64,
    hour: i64,
    minute: i64,
    second: i64,
    nanos: u32,
}

impl Moment<'_> {
    /// Seconds since 1970-01-01 by the column's own clock, since midnight, or of a duration.
    pub fn seconds(&self) -> i64 {
        self.reading.seconds
    }

    /// Nanoseconds to add to [`Moment::seconds`].
    pub fn nanos(&self) -> u32 {
        self.reading.nanos
    }

    /// The moment with its fraction and offset, as it is written.
    pub(crate) fn reading(&self) -> Reading {
        let Reading { seconds, nanos, .. } = self.reading;
        Reading {
            nanos: self.format.nanos(seconds, nanos),
            ..self.reading
        }
    }

    fn parts(&self) -> Parts {
        let Reading { seconds, nanos, .. } = self.reading;
        let format = self.format;
        if format.kind == KindForm::Duration {
            return self.duration();
        }
        let day = match format.kind {
            KindForm::Time => 0,
            _ => format.day(seconds),
        };
        let clock = seconds - day * DAY;
        Parts {
            date: date_of(day).unwrap_or_default(),
            days: 0,
            hour: clock / 3_600,
            minute: clock / 60 % 60,
            second: clock % 60,
            nanos: format.nanos(seconds, nanos),
        }
    }

    /// The parts of the magnitude of a duration.
    fn duration(&self) -> Parts {
        let Reading { seconds, nanos, .. } = self.reading;
        let (seconds, nanos) = match (seconds < 0, nanos) {
            (true, 1..) => (-(seconds + 1), 1_000_000_000 - nanos),
            (_, nanos) => (seconds.abs(), nanos),
        };
        let [mut days, mut hour, mut minute] = [0; 3];
        let mut second = seconds;
        match self.format.open {
            Some(Part::Second) => {}
            Some(Part::Minute) => (minute, second) = (seconds / 60, seconds % 60),
            _ => {
                (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
            }
        }
        if self.format.open == Some(Part::Day) {
            (days, hour) = (hour / 24, hour % 24);
        }
        Parts {
            date: jiff::civil::Date::default(),
            days,
            hour,
            minute,
            second,
            nanos,
        }
    }

    /// Returns the value of a part that is written as a number or a name.
    fn value(&self, part: Part, parts: &Parts) -> i64 {
        let date = parts.date;
        match part {
            Part::Year => date.year().into(),
            Part::ShortYear => i64::from(date.year()) % 100,
            Part::Month => date.month().into(),
            Part::Day if self.format.kind == KindForm::Duration => parts.days,
            Part::Day => date.day().into(),
            Part::Weekday => date.weekday().to_monday_zero_offset().into(),
            Part::Hour => parts.hour,
            Part::Hour12 => (parts.hour + 11) % 12 + 1,
            Part::Half => parts.hour / 12 % 2,
            Part::Minute => parts.minute,
            Part::Second => parts.second,
            Part::Fraction | Part::Offset => 0,
        }
    }
}

impl Display for Moment<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let parts = self.parts();
        if self.format.kind == KindForm::Duration && self.reading.seconds < 0 {
            out.write_char('-')?;
        }
        if self.format.is_iso {
            let value = |part| self.value(part, &parts);
            return self
                .format
                .write_iso(out, value, parts.nanos, |out, item| match item {
                    Item::Fraction { dot, digits } => fraction(out, *dot, *digits, parts.nanos),
                    _ => Ok(()),
                });
        }
        for item in &self.format.items {
            match item {
                Item::Text(text) => out.write_str(text)?,
                Item::Number(part, pad) => {
                    let value = self.value(*part, &parts);
                    match (part, pad) {
                        (Part::Year, _) => write!(out, "{value:04}")?,
                        (_, Pad::Zero) => write!(out, "{value:02}")?,
                        (_, Pad::Blank) => write!(out, "{value:2}")?,
                        (_, Pad::None) => write!(out, "{value}")?,
                    }
                }
                Item::Name(part, names) => {
                    let value = self.value(*part, &parts) - i64::from(*part == Part::Month);
                    out.write_str(names.written(value))?;
                }
                Item::Fraction { dot, digits } => fraction(out, *dot, *digits, parts.nanos)?,
                Item::Offset(_) => {
                    let offset = self.format.offsets().get(self.reading.offset as usize);
                    out.write_str(offset.map_or("Z", String::as_str))?;
                }
            }
        }
        Ok(())
    }
}

/// Writes digits of a second. Without a number of digits, zeros at the end are left out.
fn fraction(out: &mut Formatter<'_>, dot: bool, digits: Option<u32>, nanos: u32) -> fmt::Result {
    let all = format!("{nanos:09}");
    let digits = match digits {
        Some(digits) => all.get(..digits as usize).unwrap_or(&all),
        None => match all.trim_end_matches('0') {
            "" if dot => return Ok(()),
            "" => "0",
            digits => digits,
        },
    };
    let dot = if dot { "." } else { "" };
    write!(out, "{dot}{digits}")
}

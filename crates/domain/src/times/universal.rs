//! Universal time: the moments that datetimes with UTC offsets stand for.

use super::{format::TimeFormat, letters::Item, show::Moment};

/// Endings of formats whose datetimes are all in universal time.
const UNIVERSAL: [&str; 6] = ["Z", "UTC", "GMT", "+00:00", "+0000", "+00"];

/// The clock that a column's datetimes are read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeScale {
    /// The column's own clock.
    Own,
    /// Universal time, from which each value has a known offset.
    Universal,
    /// Zones whose offsets are not known, such as `CET`.
    Unknown,
}

impl TimeFormat {
    /// Returns the clock of the format's datetimes.
    pub(crate) fn scale(&self) -> TimeScale {
        let is_known = |offset: &String| seconds_east(offset).is_some();
        match (self.has_offsets(), self.items.last()) {
            (true, _) if self.offsets().iter().all(is_known) => TimeScale::Universal,
            (true, _) => TimeScale::Unknown,
            (false, Some(Item::Text(text))) if is_universal(text) => TimeScale::Universal,
            (false, _) => TimeScale::Own,
        }
    }
}

impl TimeFormat {
    /// Reads a text as seconds since 1970-01-01 00:00 in universal time; `None` if the text has no known offset.
    pub fn read_universal(&self, text: &str) -> Option<i64> {
        let seconds = self.read(text)?;
        match (self.offset(text), self.items.last()) {
            (Some(offset), _) => Some(seconds.saturating_sub(seconds_east(offset)?)),
            (None, Some(Item::Text(end))) if is_universal(end) => Some(seconds),
            (None, _) => None,
        }
    }

    /// Returns the seconds by which the column's clock is ahead of universal time with the offset of an index; 0 if
    /// the format has no offsets or the offset is the name of a zone.
    pub(crate) fn seconds_east(&self, offset: u32) -> i64 {
        let offset = self.offsets().get(offset as usize);
        offset.and_then(|offset| seconds_east(offset)).unwrap_or(0)
    }
}

impl Moment<'_> {
    /// Seconds since 1970-01-01 00:00 in universal time, or by the column's own clock if its format has no offsets.
    pub(crate) fn universal_seconds(&self) -> i64 {
        let east = self.format.seconds_east(self.reading.offset);
        self.reading.seconds.saturating_sub(east)
    }
}

/// Whether a text after a datetime says that it is in universal time.
fn is_universal(text: &str) -> bool {
    let mut before = UNIVERSAL.iter().filter_map(|end| text.strip_suffix(end));
    before.any(|before| !before.ends_with(char::is_alphabetic))
}

/// Returns the seconds of an offset such as `+01:00`, `+0100`, `+01` or `Z`, or `None` for the name of another zone.
fn seconds_east(offset: &str) -> Option<i64> {
    if UNIVERSAL.contains(&offset) {
        return Some(0);
    }
    let sign = match offset.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits = offset.get(1..)?.replace(':', "");
    let number = |from, to| digits.get(from..to)?.parse::<u32>().ok();
    let (hours, minutes) = match digits.len() {
        2 => (number(0, 2)?, 0),
        4 => (number(0, 2)?, number(2, 4)?),
        _ => return None,
    };
    Some(sign * i64::from(hours * 3_600 + minutes * 60))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TimeOptions, form::KindForm};

    fn format(format: &str, offsets: &[&str]) -> TimeFormat {
        let options = TimeOptions {
            offsets: offsets.iter().map(|&offset| offset.to_owned()).collect(),
            ..TimeOptions::default()
        };
        TimeFormat::with_options(format, KindForm::Datetime, options).unwrap()
    }

    #[test]
    fn clock_follows_from_the_end_of_the_format_and_from_the_offsets() {
        for (end, offsets, scale) in [
            ("", &[][..], TimeScale::Own),
            (" Uhr", &[], TimeScale::Own),
            ("Z", &[], TimeScale::Universal),
            (" UTC", &[], TimeScale::Universal),
            ("+00:00", &[], TimeScale::Universal),
            ("%:z", &["+01:00", "+02:00"], TimeScale::Universal),
            ("%z", &["+0000"], TimeScale::Universal),
            (" %Z", &["UTC"], TimeScale::Universal),
            (" %Z", &["CET", "CEST"], TimeScale::Unknown),
        ] {
            let format = format(&format!("%Y-%m-%d %H:%M{end}"), offsets);
            assert_eq!(format.scale(), scale, "{end}");
        }
    }

    #[test]
    fn offsets_are_subtracted() {
        let format = format("%Y-%m-%d %H:%M%:z", &["+01:00", "-03:30"]);
        for (text, seconds) in [
            ("1970-01-01 01:00+01:00", 0),
            ("1970-01-01 01:00-03:30", 16_200),
        ] {
            let reading = format.read_exact(text).unwrap();
            assert_eq!(format.show_exact(reading).universal_seconds(), seconds);
            assert_eq!(format.read_universal(text), Some(seconds));
        }
        let own = TimeFormat::parse("%Y-%m-%d %H:%M", KindForm::Datetime).unwrap();
        assert_eq!(own.read_universal("1970-01-01 01:00"), None);
    }
}

//! Time zones of columns, from the database that is built into the program.

use jiff::{Timestamp, tz::TimeZone};

use super::put;

/// The zone that a column's moments are shown in.
#[derive(Clone, Debug)]
pub enum Zone {
    /// Universal time.
    Utc,
    /// Seconds east of universal time.
    Fixed(i64),
    /// A zone of the database.
    Named(TimeZone),
}

impl Zone {
    /// Returns the zone of a name such as `Europe/Berlin`, `UTC` or `+02:00`, or `None` if it is unknown.
    pub fn of(name: &str) -> Option<Self> {
        const UNIVERSAL: [&str; 6] = ["UTC", "Etc/UTC", "Z", "Zulu", "Etc/Zulu", "UCT"];
        if UNIVERSAL
            .iter()
            .any(|known| known.eq_ignore_ascii_case(name))
        {
            return Some(Self::Utc);
        }
        match fixed(name) {
            Some(0) => Some(Self::Utc),
            Some(offset) => Some(Self::Fixed(offset)),
            None => TimeZone::get(name).ok().map(Self::Named),
        }
    }

    /// Returns the seconds east of universal time at a moment; `None` in universal time.
    pub(super) fn offset(&self, seconds: i64) -> Option<i64> {
        match self {
            Self::Utc => None,
            Self::Fixed(offset) => Some(*offset),
            // Years above 9999 have no offsets in the database.
            Self::Named(zone) => Some(
                Timestamp::from_second(seconds)
                    .map_or(0, |moment| zone.to_offset(moment).seconds().into()),
            ),
        }
    }
}

/// Parses an offset: `+02:00`, `+0200` or `+02`.
fn fixed(name: &str) -> Option<i64> {
    let sign = match name.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits = name.get(1..)?.replacen(':', "", 1);
    let number: i64 = digits.parse().ok().filter(|number| *number >= 0)?;
    let (hours, minutes) = match digits.len() {
        2 => (number, 0),
        4 => (number / 100, number % 100),
        _ => return None,
    };
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3_600 + minutes * 60))
}

/// Writes an offset as `+02:00`, with seconds only if it has any.
pub(super) fn write_offset(offset: i64, out: &mut Vec<u8>) {
    let sign = if offset < 0 { '-' } else { '+' };
    let offset = offset.abs();
    let (hours, minutes, seconds) = (offset / 3_600, offset / 60 % 60, offset % 60);
    put(out, format_args!("{sign}{hours:02}:{minutes:02}"));
    if seconds > 0 {
        put(out, format_args!(":{seconds:02}"));
    }
}

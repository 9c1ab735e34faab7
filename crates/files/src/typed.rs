//! Text of the values of typed tables (Parquet and Arrow), as a CSV table has it.
//!
//! Numbers are exact, and a floating-point number without a fraction is written as an integer: pandas stores integers
//! with missing values as floats. Dates are `2024-01-31`, times of day `07:05:00`, and durations `36:05:00` in hours.
//! All values of a column have the same number of decimals of a second: 0, 3, 6 or 9.

mod decimal;
mod half;
#[cfg(test)]
mod tests;
mod zone;

use std::io::Write as _;

use fhaim_domain::date_from_days;

pub use zone::Zone;

const DAY: i64 = 86_400;
const NANOS: i64 = 1_000_000_000;

/// A value of a typed table.
#[derive(Clone, Copy, Debug)]
pub enum TypedCell<'a> {
    /// No value.
    Missing,
    /// A boolean.
    Flag(bool),
    /// An integer, or a count of the column's units.
    Integer(i128),
    /// A floating-point number of 32 bits.
    Single(f32),
    /// A floating-point number of 64 bits.
    Double(f64),
    /// A text, or a value in bytes.
    Bytes(&'a [u8]),
}

/// How the values of a column are written.
#[derive(Clone, Debug)]
pub enum ValueForm {
    /// Booleans, numbers and texts.
    Plain,
    /// Floating-point numbers of 16 bits, in little-endian bytes.
    Half,
    /// Unscaled integers, or their big-endian bytes, with this number of decimals.
    Decimal(u32),
    /// UUIDs in bytes.
    Uuid,
    /// Days since 1970-01-01.
    Date,
    /// Units since midnight.
    TimeOfDay(Clock),
    /// Units.
    Duration(Clock),
    /// Units since 1970-01-01 00:00, by the column's own clock or, with a zone, in UTC.
    Moment(Clock, Option<Zone>),
}

/// Units of time, and how their values are written.
#[derive(Clone, Debug)]
pub struct Clock {
    per_second: i64,
    /// Decimals of a second that the values need: 0, 3, 6 or 9.
    decimals: usize,
    /// Whether every value is a multiple of a day.
    is_midnight: bool,
}

impl Clock {
    /// Creates a clock with `per_second` units in a second: 1, or up to 10^9.
    pub fn new(per_second: i64) -> Self {
        Self {
            per_second: per_second.clamp(1, NANOS),
            decimals: 0,
            is_midnight: true,
        }
    }

    /// Returns the seconds and nanoseconds of a count of units.
    fn split(&self, units: i128) -> (i64, i64) {
        let per_second = i128::from(self.per_second);
        // Larger counts occur only in damaged files.
        let most = i128::from(i64::MAX / 16);
        let seconds = units.div_euclid(per_second).clamp(-most, most);
        let rest = units.rem_euclid(per_second) * i128::from(NANOS / self.per_second);
        (seconds as i64, rest as i64)
    }

    fn look(&mut self, units: i128) {
        let (seconds, nanos) = self.split(units);
        self.is_midnight &= nanos == 0 && seconds.rem_euclid(DAY) == 0;
        let decimals = match nanos {
            0 => 0,
            _ if nanos % 1_000_000 == 0 => 3,
            _ if nanos % 1_000 == 0 => 6,
            _ => 9,
        };
        self.decimals = self.decimals.max(decimals);
    }

    /// Writes hours, minutes and seconds; hours have at least `width` digits.
    fn write(&self, seconds: i64, nanos: i64, width: usize, out: &mut Vec<u8>) {
        let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
        put(
            out,
            format_args!("{hours:0width$}:{minutes:02}:{:02}", seconds % 60),
        );
        let decimals = self.decimals;
        if decimals > 0 {
            let fraction = nanos / 10i64.pow(9 - decimals as u32);
            put(out, format_args!(".{fraction:0decimals$}"));
        }
    }
}

impl ValueForm {
    /// Whether [`ValueForm::look`] must see all values of a column before any of them is written.
    pub fn needs_look(&self) -> bool {
        self.clock().is_some()
    }

    /// Takes note of the decimals of a second that a value needs.
    pub fn look(&mut self, cell: TypedCell<'_>) {
        let (Self::TimeOfDay(clock) | Self::Duration(clock) | Self::Moment(clock, _)) = self else {
            return;
        };
        if let TypedCell::Integer(units) = cell {
            clock.look(units);
        }
    }

    /// Whether no further value changes how the column is written.
    pub fn is_settled(&self) -> bool {
        let settled = |clock: &Clock| clock.decimals == 9 && !clock.is_midnight;
        self.clock().is_none_or(settled)
    }

    fn clock(&self) -> Option<&Clock> {
        match self {
            Self::TimeOfDay(clock) | Self::Duration(clock) | Self::Moment(clock, _) => Some(clock),
            _ => None,
        }
    }

    /// Appends a value's text to `out`; nothing for a missing value, and for NaN.
    pub fn write(&self, cell: TypedCell<'_>, out: &mut Vec<u8>) {
        match (self, cell) {
            (_, TypedCell::Missing) => {}
            (Self::Decimal(scale), TypedCell::Integer(unscaled)) => {
                decimal::write_integer(unscaled, *scale, out);
            }
            (Self::Decimal(scale), TypedCell::Bytes(bytes)) => {
                decimal::write_bytes(bytes, *scale, out);
            }
            (Self::Half, TypedCell::Bytes(bytes)) => half::write(bytes, out),
            (Self::Uuid, TypedCell::Bytes(bytes)) => {
                if let Ok(uuid) = uuid::Uuid::from_slice(bytes) {
                    put(out, uuid.hyphenated());
                }
            }
            (Self::Date, TypedCell::Integer(days)) => write_date(clamped(days), out),
            (Self::TimeOfDay(clock), TypedCell::Integer(units)) => {
                let (seconds, nanos) = clock.split(units.max(0));
                clock.write(seconds, nanos, 2, out);
            }
            (Self::Duration(clock), TypedCell::Integer(units)) => {
                if units < 0 {
                    out.push(b'-');
                }
                let (seconds, nanos) = clock.split(units.saturating_abs());
                clock.write(seconds, nanos, 1, out);
            }
            (Self::Moment(clock, zone), TypedCell::Integer(units)) => {
                write_moment(clock, zone.as_ref(), units, out);
            }
            (_, TypedCell::Flag(flag)) => put(out, flag),
            (_, TypedCell::Integer(number)) => put(out, number),
            (_, TypedCell::Single(0.0)) => out.push(b'0'),
            (_, TypedCell::Double(0.0)) => out.push(b'0'),
            (_, TypedCell::Single(number)) if !number.is_nan() => put(out, number),
            (_, TypedCell::Double(number)) if !number.is_nan() => put(out, number),
            (_, TypedCell::Single(_) | TypedCell::Double(_)) => {}
            (_, TypedCell::Bytes(bytes)) => out.extend_from_slice(bytes),
        }
    }
}

/// Writes a value that displays as text.
fn put(out: &mut Vec<u8>, value: impl std::fmt::Display) {
    // Writing to memory does not fail.
    let _ = write!(out, "{value}");
}

/// Limits days to those whose year has at most ten digits. Others occur only in damaged files.
fn clamped(days: i128) -> i64 {
    days.clamp(i128::from(i32::MIN), i128::from(i32::MAX)) as i64
}

/// Writes a date. Days outside the years from 1 to 9999 follow `day `, so that they are not read as a date.
fn write_date(days: i64, out: &mut Vec<u8>) {
    match date_from_days(days) {
        Some((year, month, day)) => put(out, format_args!("{year:04}-{month:02}-{day:02}")),
        None => put(out, format_args!("day {days}")),
    }
}

/// Writes a moment: `2024-01-31` in a column without times of day, `2024-01-31 07:05:00` by the column's own clock, and
/// `2024-01-31T07:05:00Z` or `2024-01-31T07:05:00+02:00` with a zone (RFC 3339).
fn write_moment(clock: &Clock, zone: Option<&Zone>, units: i128, out: &mut Vec<u8>) {
    let (seconds, nanos) = clock.split(units);
    let offset = zone.map(|zone| zone.offset(seconds));
    let local = seconds + offset.flatten().unwrap_or(0);
    write_date(clamped(i128::from(local.div_euclid(DAY))), out);
    if zone.is_none() && clock.is_midnight {
        return;
    }
    out.push(if zone.is_some() { b'T' } else { b' ' });
    clock.write(local.rem_euclid(DAY), nanos, 2, out);
    match offset {
        None => {}
        Some(None) => out.push(b'Z'),
        Some(Some(offset)) => zone::write_offset(offset, out),
    }
}

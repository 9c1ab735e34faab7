//! Durations as ISO 8601 writes them: `P1DT2H5M`, without the parts that are zero.

use std::fmt::{self, Formatter};

use super::{
    date::DAY,
    format::TimeFormat,
    iso::{CLOCK, DAYS},
    letters::{Item, Part},
    read::Reading,
};

/// Maximum number of digits of a number.
const MAX_DIGITS: usize = 9;

impl TimeFormat {
    /// Reads a duration, which may have any amount of each part: `PT90M` is `PT1H30M`.
    pub(super) fn read_iso(&self, text: &str) -> Option<Reading> {
        let text = text.trim();
        let positive = text.strip_prefix('-');
        let reading = amounts(positive.unwrap_or(text))?;
        let digits = self.items.iter().find_map(|item| match item {
            Item::Fraction { digits, .. } => Some(digits.unwrap_or(9)),
            _ => None,
        });
        let step = 10u32.pow(9u32.saturating_sub(digits.unwrap_or(0)));
        let fits = reading.seconds % self.grain() == 0 && reading.nanos.is_multiple_of(step);
        match positive {
            _ if !fits => None,
            Some(_) => reading.negative(),
            None => Some(reading),
        }
    }

    /// Writes the parts of a duration that are not zero, or a zero of the smallest part. `value` returns the amount
    /// of a part, and `decimals` writes the fraction of a second.
    pub(super) fn write_iso(
        &self,
        out: &mut Formatter<'_>,
        value: impl Fn(Part) -> i64,
        nanos: u32,
        decimals: impl Fn(&mut Formatter<'_>, &Item) -> fmt::Result,
    ) -> fmt::Result {
        out.write_str("P")?;
        let parts = || {
            self.items
                .iter()
                .filter_map(Item::part)
                .filter(|part| *part != Part::Fraction)
        };
        let fraction = self
            .items
            .iter()
            .find(|item| item.part() == Some(Part::Fraction));
        let is_zero = |part: Part| {
            value(part) == 0 && !(part == Part::Second && fraction.is_some() && nanos > 0)
        };
        let last = parts().next_back().filter(|_| parts().all(is_zero));
        let mut in_clock = false;
        for (part, _, unit) in std::iter::once(DAYS).chain(CLOCK) {
            if !self.has(part) || (is_zero(part) && last != Some(part)) {
                continue;
            }
            if part != Part::Day && !std::mem::replace(&mut in_clock, true) {
                out.write_str("T")?;
            }
            write!(out, "{}", value(part))?;
            if let (Part::Second, Some(item)) = (part, fraction) {
                decimals(out, item)?;
            }
            out.write_str(unit)?;
        }
        Ok(())
    }
}

/// Reads the magnitude of a duration.
fn amounts(text: &str) -> Option<Reading> {
    let parts = text.strip_prefix('P')?;
    let (days, mut clock) = match parts.split_once('T') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None if parts.is_empty() => return None,
        None => (parts, ""),
    };
    let mut seconds = match days {
        "" => 0,
        days => amount(days.strip_suffix('D')?)? * DAY,
    };
    for (letter, unit) in [('H', 3_600), ('M', 60)] {
        if let Some((number, rest)) = clock.split_once(letter) {
            seconds += amount(number)? * unit;
            clock = rest;
        }
    }
    let mut nanos = 0;
    if !clock.is_empty() {
        let number = clock.strip_suffix('S')?;
        let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
        seconds += amount(whole)?;
        nanos = amount(decimals)? * 10i64.pow(9u32.checked_sub(decimals.len() as u32)?);
    }
    Some(Reading {
        seconds,
        nanos: nanos as u32,
        offset: 0,
    })
}

fn amount(digits: &str) -> Option<i64> {
    let valid = (1..=MAX_DIGITS).contains(&digits.len())
        && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| valid)
}

//! Dates that count from another date, within the calendar.
//!
//! A date cannot be written if it counts from 9999-12-31 and is later. It would be moved to the last day of the calendar,
//! where it has other codes, so that a rule about its codes breaks.

use super::rule::RuleSet;
use crate::{
    Field,
    field::Meaning,
    times::{Lapse, special_day},
};

/// Whether a record with these codes has dates that can be written, where they count from a field with a single day.
pub(super) fn fits(set: RuleSet<'_>, code: &dyn Fn(usize) -> u32) -> bool {
    let fits = |field: &Field| {
        let (Meaning::Lapse(lapse), Some((group, part))) = (&field.meaning, codes(field, code))
        else {
            return true;
        };
        let column = field
            .parts
            .first()
            .and_then(|part| set.columns.get(part.coarse));
        let is_missing = column.is_some_and(|column| column.null_code() == Some(group));
        if is_missing || !lapse.counts_from_base(group) {
            return true;
        }
        let base = set.fields.get(lapse.base);
        let day = base.and_then(|base| only_day(base, code));
        day.is_none_or(|day| lapse.can_write(day, lapse.units.span(group, part)))
    };
    set.fields.iter().all(fits)
}

/// Returns the codes of a field's first part.
fn codes(field: &Field, code: &dyn Fn(usize) -> u32) -> Option<(u32, Option<u32>)> {
    let part = field.parts.first()?;
    Some((code(part.coarse), part.fine.map(code)))
}

/// Returns the day of a field of dates, if its codes leave one only.
fn only_day(field: &Field, code: &dyn Fn(usize) -> u32) -> Option<i64> {
    let (group, part) = codes(field, code)?;
    let (dated, days) = match &field.meaning {
        Meaning::Time(time) => (&time.dated, &time.days),
        Meaning::Lapse(Lapse { dated, units, .. }) => (dated, units),
        _ => return None,
    };
    let (first, last) = days.span(group, part);
    if first != last {
        return None;
    }
    if let Some(word) = dated.words.at(first) {
        let reading = dated.words.reading(word)?;
        return Some(dated.format.day(reading.seconds));
    }
    let step = match &field.meaning {
        Meaning::Lapse(_) => special_day(first)?,
        _ => first,
    };
    dated.format.grid().first_day(step)
}

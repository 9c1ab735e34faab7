//! Date and time columns: whole years that contain nearly all values.

use fhaim_domain::{TimeFormat};
use fhaim_intake::{TextCounts};
use rand_core::RngCore;
use serde_json::json;

use crate::{
    Common, DraftBudget, Drafted, Error,
    numbers::{Ranked, fields, range},
};

/// Years that bounds are chosen from.
const YEARS: std::ops::RangeInclusive<i64> = 1_900..=2_100;

/// Seconds in a day.
const DAY: i64 = 86_400;

/// Largest number of digits of a bin; a digit is a day or more.
const MAX_DAYS: i64 = 100;

/// Returns the Gregorian year of a day counted from 1970-01-01.
fn year(day: i64) -> i64 {
    // 146,097 days are 400 years, so the estimate is off by at most one.
    let mut year = 1_970 + day.saturating_mul(400).div_euclid(146_097);
    while first_day(year) > day {
        year -= 1;
    }
    while first_day(year + 1) <= day {
        year += 1;
    }
    year
}

/// Returns the first day of a year, counted from 1970-01-01.
fn first_day(year: i64) -> i64 {
    let before = year - 1;
    let leap = before.div_euclid(4) - before.div_euclid(100) + before.div_euclid(400);
    365 * (year - 1_970) + leap - 477
}

/// Drafts a date or datetime column of the chosen format.
pub(crate) fn form(
    column: &TextCounts,
    (text, clock, format): (&str, bool, &TimeFormat),
    common: &Common<'_>,
    draft_budget: &mut DraftBudget,
    rng: &mut (impl RngCore + ?Sized),
) -> Result<Drafted, Error> {
    let years: Vec<(i64, u64)> = (column.texts.iter())
        .filter_map(|(text, &records)| Some((year(format.read(text)?.div_euclid(DAY)), records)))
        .collect();
    // The earliest last year and the latest first year that lose few records.
    let upper: Vec<Ranked> = YEARS.zip(0..).collect();
    let (first, last) = range(&years, &upper, common, draft_budget, rng)?;
    let span = first_day(last + 1) - first_day(first);
    let bins = i64::from(common.options.bins.max(1));
    let digits = ((span - 1) / bins + 1).min(MAX_DAYS);
    let kind = if clock { "datetime" } else { "date" };
    let mut form = fields(&json!({
        "kind": kind, "format": text, "min": format!("{first:04}-01-01"),
        "max": format!("{last:04}-12-31"), "bins": bins, "digits": digits,
    }));
    if clock {
        form.insert("unit".to_owned(), "hour".into());
    }
    Ok((
        form,
        format!("nearly all of its values are in the years {first} to {last}"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn year_contains_its_first_to_last_day() {
        assert_eq!(first_day(1_970), 0);
        assert_eq!(first_day(2_000), 10_957);
        assert_eq!(first_day(2_001) - first_day(2_000), 366);
        assert_eq!(first_day(1_901) - first_day(1_900), 365);
        for day in -40_000..60_000 {
            let year = year(day);
            assert!(first_day(year) <= day && day < first_day(year + 1), "{day}");
        }
    }
}

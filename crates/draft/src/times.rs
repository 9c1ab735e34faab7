//! Date and time columns: whole years that contain nearly all values.

use fhaim_domain::{DAY, date_from_days, days_from_date, form::KindForm};
use fhaim_intake::TextCounts;
use rand_core::RngCore;
use serde_json::json;

use crate::{
    Common, DraftBudget, Drafted, Error,
    kinds::ChosenFormat,
    numbers::{Ranked, fields, range},
};

/// Years that bounds are chosen from.
const YEARS: std::ops::RangeInclusive<i64> = 1_900..=2_100;

/// Largest number of digits of a bin; a digit is a day or more.
const MAX_DAYS: i64 = 100;

/// Returns the Gregorian year of a day counted from 1970-01-01.
fn year(day: i64) -> Option<i64> {
    date_from_days(day).map(|(year, _, _)| year)
}

/// Returns the first day of a year, counted from 1970-01-01.
fn first_day(year: i64) -> i64 {
    days_from_date(year, 1, 1).unwrap_or(0)
}

/// Drafts a date or datetime column of the chosen format.
pub(crate) fn form(
    column: &TextCounts,
    chosen: &ChosenFormat,
    common: &Common<'_>,
    draft_budget: &mut DraftBudget,
    rng: &mut (impl RngCore + ?Sized),
) -> Result<Drafted, Error> {
    let ChosenFormat { text, kind, format } = chosen;
    let years: Vec<(i64, u64)> = (column.texts.iter())
        .filter_map(|(text, &records)| Some((year(format.read(text)?.div_euclid(DAY))?, records)))
        .collect();
    // The earliest last year and the latest first year that lose few records.
    let upper: Vec<Ranked> = YEARS.zip(0..).collect();
    let (first, last) = range(&years, &upper, common, draft_budget, rng)?;
    let span = first_day(last + 1) - first_day(first);
    let bins = i64::from(common.options.bins.max(1));
    let digits = ((span - 1) / bins + 1).min(MAX_DAYS);
    let mut form = fields(&json!({
        "kind": kind.word(), "format": text, "min": format!("{first:04}-01-01"),
        "max": format!("{last:04}-12-31"), "bins": bins, "digits": digits,
    }));
    if *kind == KindForm::Datetime {
        form.insert("unit".to_owned(), "hour".into());
    }
    Ok((
        form,
        format!("nearly all of its values are in the years {first} to {last}"),
    ))
}

//! Chooses how to read a column's texts, among public candidates.

use fhaim_domain::{TimeFormat, form::KindForm};
use fhaim_intake::{TextCounts, time_formats};
use rand_core::RngCore;

use crate::{Common, DraftBudget, Error, budget, count, numbers::Style};

/// The largest number of decimals that is tried.
const MAX_TRIED_DECIMALS: u32 = 6;

/// Rank of reading a column as text. Every value can be read as text, so text is preferred last.
const TEXT_RANK: i64 = 9;

/// A way to read the texts of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum TextReading {
    /// Numbers.
    Number(Style),
    /// Dates, or dates with times of day.
    Time(ChosenFormat),
    /// Categories.
    Text,
}

/// A format of dates or datetimes.
#[derive(Clone, Debug, PartialEq)]
pub struct ChosenFormat {
    /// The format, written as in a schema.
    pub text: String,
    /// Whether it is of dates or of datetimes.
    pub kind: KindForm,
    /// The parsed format.
    pub format: TimeFormat,
}

impl TextReading {
    /// Checks whether `text` can be read this way.
    pub fn reads(&self, text: &str) -> bool {
        match self {
            Self::Number(style) => style.step(text).is_some(),
            Self::Time(chosen) => chosen.format.read(text).is_some(),
            Self::Text => true,
        }
    }
}

/// Returns all readings, each with its rank: the number of places by which it stands behind the
/// first choice.
pub fn readings() -> Vec<(TextReading, i64)> {
    let mut all = Vec::new();
    for decimals in 0..=MAX_TRIED_DECIMALS {
        for comma in [false, true] {
            let style = Style { decimals, comma };
            // Without decimals there is no decimal mark.
            if decimals > 0 || !comma {
                // Fewer decimals are preferred: two places for each of the first two, then one.
                all.push((
                    TextReading::Number(style),
                    i64::from(decimals.min(2) + decimals),
                ));
            }
        }
    }
    for (text, kind, format) in time_formats() {
        let rank = format_rank(&text);
        all.push((TextReading::Time(ChosenFormat { text, kind, format }), rank));
    }
    all.push((TextReading::Text, TEXT_RANK));
    all
}

/// Returns the rank of a time format. A format ranks behind those that accept fewer texts: without
/// padding, with minutes and seconds, and with the month first.
fn format_rank(format: &str) -> i64 {
    let month_first = format.find('m') < format.find('d') && format.contains('/');
    let wider = ["%-", "%M", "%S"].map(|part| format.contains(part));
    let wider = wider.into_iter().chain([month_first]);
    2 * wider.map(i64::from).sum::<i64>()
}

/// Scores each reading: the number of records that it reads, less `preference` times its rank. One
/// record changes each score by at most 1.
pub fn scores(column: &TextCounts, readings: &[(TextReading, i64)], preference: i64) -> Vec<i64> {
    let read = |reading: &TextReading| {
        let texts = column.texts.iter();
        let of_it = texts.filter(|(text, _)| reading.reads(text));
        count(of_it.map(|(_, records)| records).sum())
    };
    readings
        .iter()
        .map(|(reading, rank)| read(reading).saturating_sub(rank.saturating_mul(preference)))
        .collect()
}

/// Chooses the reading of a column, for a quarter of the column's share.
pub(crate) fn choose(
    column: &TextCounts,
    common: &Common<'_>,
    draft_budget: &mut DraftBudget,
    rng: &mut (impl RngCore + ?Sized),
) -> Result<TextReading, Error> {
    let selection = budget::selection(common.share.share(4))?;
    draft_budget.pay(selection.rho()?)?;
    let readings = readings();
    let places = readings.iter().map(|&(_, rank)| rank).max().unwrap_or(0);
    let preference = budget::preference(&selection, places, common.records);
    let scores = scores(column, &readings, preference);
    let chosen = selection.choose(&scores, rng);
    let reading = chosen.and_then(|index| readings.into_iter().nth(index));
    Ok(reading.map_or(TextReading::Text, |(reading, _)| reading))
}

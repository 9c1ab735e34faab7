//! What a column's texts are read as: a choice among public candidates.

use fhaim_domain::{TextCounts, TimeFormat, time_formats};
use rand_core::RngCore;

use crate::{Common, DraftBudget, Error, budget, count, numbers::Style};

/// Decimals that are tried.
const MAX_TRIED_DECIMALS: u32 = 6;

/// Text, which reads everything, has to be better than a number by so many preferences.
const TEXT_RANK: i64 = 9;

/// A way to read texts.
#[derive(Clone, Debug, PartialEq)]
pub enum TextReading {
    /// Numbers.
    Number(Style),
    /// Dates, or dates with times of day.
    Time {
        /// The format as a schema has it.
        text: String,
        /// Whether it has a time of day.
        clock: bool,
        /// The same, to read with.
        format: TimeFormat,
    },
    /// Categories.
    Text,
}

impl TextReading {
    /// Whether a text can be read so.
    pub fn reads(&self, text: &str) -> bool {
        match self {
            Self::Number(style) => style.step(text).is_some(),
            Self::Time { format, .. } => format.read(text).is_some(),
            Self::Text => true,
        }
    }
}

/// All ways, each with how far behind the first choice it stands.
pub fn readings() -> Vec<(TextReading, i64)> {
    let mut all = Vec::new();
    for decimals in 0..=MAX_TRIED_DECIMALS {
        for comma in [false, true] {
            let style = Style { decimals, comma };
            // Without decimals there is no mark.
            if decimals > 0 || !comma {
                // Fewer decimals first: two places each, one from the third on.
                all.push((
                    TextReading::Number(style),
                    i64::from(decimals.min(2) + decimals),
                ));
            }
        }
    }
    for (text, clock, format) in time_formats() {
        let rank = format_rank(&text);
        all.push((
            TextReading::Time {
                text,
                clock,
                format,
            },
            rank,
        ));
    }
    all.push((TextReading::Text, TEXT_RANK));
    all
}

/// How far a format stands behind those that read fewer texts: without padding, with minutes and
/// seconds, with the month first.
fn format_rank(format: &str) -> i64 {
    let month_first = format.find('m') < format.find('d') && format.contains('/');
    let wider = ["%-", "%M", "%S"].map(|part| format.contains(part));
    let wider = wider.into_iter().chain([month_first]);
    2 * wider.map(i64::from).sum::<i64>()
}

/// By how many records each way reads the column, less `preference` for each place that it stands
/// behind. One record moves each by at most one.
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

/// Chooses a way to read a column, for a quarter of its share.
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

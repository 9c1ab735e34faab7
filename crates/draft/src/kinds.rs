//! What a column's texts are read as: a choice among public candidates.

use fhaim_domain::{TextCounts, TimeFormat, time_formats};
use rand_core::RngCore;

use crate::{Common, Error, Purse, count, numbers::Style, purse};

/// Decimals that are tried.
const MAX_TRIED_DECIMALS: u32 = 6;

/// Text, which reads everything, has to be better than a number by so many preferences.
const TEXT_RANK: i64 = 9;

/// A way to read texts.
#[derive(Clone, Debug, PartialEq)]
pub enum Reading {
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

impl Reading {
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
pub fn readings() -> Vec<(Reading, i64)> {
    let mut all = Vec::new();
    for decimals in 0..=MAX_TRIED_DECIMALS {
        for comma in [false, true] {
            let style = Style { decimals, comma };
            // Without decimals there is no mark.
            if decimals > 0 || !comma {
                // Fewer decimals first: two places each, one from the third on.
                all.push((
                    Reading::Number(style),
                    i64::from(decimals.min(2) + decimals),
                ));
            }
        }
    }
    for (text, clock, format) in time_formats() {
        let rank = format_rank(&text);
        all.push((
            Reading::Time {
                text,
                clock,
                format,
            },
            rank,
        ));
    }
    all.push((Reading::Text, TEXT_RANK));
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
pub fn scores(column: &TextCounts, readings: &[(Reading, i64)], preference: i64) -> Vec<i64> {
    let read = |reading: &Reading| {
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
    purse: &mut Purse,
    rng: &mut (impl RngCore + ?Sized),
) -> Result<Reading, Error> {
    let selection = purse::selection(common.share.share(4))?;
    purse.pay(selection.rho()?)?;
    let readings = readings();
    let places = readings.iter().map(|&(_, rank)| rank).max().unwrap_or(0);
    let preference = purse::preference(&selection, places, common.records);
    let scores = scores(column, &readings, preference);
    let chosen = selection.choose(&scores, rng);
    let reading = chosen.and_then(|index| readings.into_iter().nth(index));
    Ok(reading.map_or(Reading::Text, |(reading, _)| reading))
}

//! Text columns: publishes the texts that occur in enough records to hide any single record.

use fhaim_domain::MAX_NAME_BYTES;
use fhaim_intake::TextCounts;
use rand_core::RngCore;
use serde_json::{Map, json};

use crate::{Common, CountNoise, DraftBudget, Drafted, Error, count, numbers::fields};

/// A text column is left out if its publishable texts cover a smaller percentage of the records.
const MIN_TOLD_PERCENT: i64 = 50;

/// Returns the least noisy count at which a text is published. A text that only one record has
/// reaches it with probability at most `delta`.
///
/// P(noise >= m) is at most that of the continuous Gaussian at m - 1 (CKS20, Proposition 25), which
/// is at most exp(-(m - 1)^2 / (2 scale^2)) / 2. Here m is the threshold less one.
pub fn threshold(scale: u64, delta: f64) -> i64 {
    let log = (0.5 / delta).ln().max(0.0);
    let root = (2.0 * log).sqrt() * scale as f64;
    // One more than the rounded-up root, because doubles lose far less than one.
    root.ceil() as i64 + 3
}

/// Returns the texts above the threshold with their noisy counts, for a quarter of a share and the
/// column's delta. One record changes the count of one text, by 1.
pub(crate) fn above_threshold(
    column: &TextCounts,
    common: &Common<'_>,
    draft_budget: &mut DraftBudget,
    rng: &mut (impl RngCore + ?Sized),
) -> Result<Vec<(String, i64)>, Error> {
    let noise = CountNoise::of(common.share.share(4))?;
    draft_budget.pay(noise.rho()?)?;
    let least = threshold(noise.scale(), common.delta);
    let mut told = Vec::new();
    for (text, &records) in &column.texts {
        let noisy = count(records).saturating_add(noise.sample(rng));
        if noisy >= least {
            told.push((text.clone(), noisy));
        }
    }
    Ok(told)
}

/// Drafts a text column: its publishable categories, and one for all other texts.
pub(crate) fn form(
    column: &TextCounts,
    common: &Common<'_>,
    draft_budget: &mut DraftBudget,
    rng: &mut (impl RngCore + ?Sized),
) -> Result<Drafted, Error> {
    let mut told = above_threshold(column, common, draft_budget, rng)?;
    let is_name = |text: &str| text.len() <= MAX_NAME_BYTES && !text.chars().any(char::is_control);
    told.retain(|(text, _)| is_name(text));
    told.sort_by_key(|(_, records)| std::cmp::Reverse(*records));
    told.truncate(common.options.max_categories.max(1));
    let records: i64 = told.iter().map(|(_, records)| *records).sum();
    if told.is_empty() || records.saturating_mul(100) < common.records * MIN_TOLD_PERCENT {
        let reason = "most of its values occur in too few records to be published";
        let form = fields(&json!({"kind": "left-out", "reason": reason}));
        return Ok((form, format!("left out: {reason}")));
    }
    let mut categories: Vec<String> = told.into_iter().map(|(text, _)| text).collect();
    categories.sort_unstable();
    let mut other = "other".to_owned();
    while categories.contains(&other) {
        other.push('_');
    }
    categories.push(other.clone());
    let told = categories.len() - 1;
    let mut form = Map::new();
    form.insert("kind".to_owned(), "categorical".into());
    form.insert("categories".to_owned(), categories.into());
    form.insert("other".to_owned(), other.clone().into());
    let told = fhaim_domain::counted(told, "category");
    Ok((
        form,
        format!("{told} found in many records each; all others are read as {other:?}"),
    ))
}

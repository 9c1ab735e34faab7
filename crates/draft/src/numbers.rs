//! Number columns: round bounds, special values, and edges from a noisy histogram.

use fhaim_intake::TextCounts;
use rand_core::RngCore;
use serde_json::{Map, Number, Value, json};

use crate::{Common, CountNoise, DraftBudget, Drafted, Error, budget, count, texts};

/// Bounds are 1, 2 or 5 times a power of ten of steps, up to this power.
const MAX_POWER: u32 = 11;

/// Percentage of the records from which on a value is special and gets its own code.
const SPECIAL_PERCENT: i64 = 5;

/// Largest number of special values.
const MAX_SPECIAL: usize = 8;

/// The grid has this many even cells, and further finer ones towards the lower end of the range.
const EVEN_CELLS: i64 = 32;
const FINER_CELLS: u32 = 24;

/// Up to this width, a bin has a digit for each of its values; wider bins have [`EVEN_DIGITS`]
/// digits.
const MAX_RESOLVED: i64 = 64;
const EVEN_DIGITS: i64 = 16;

/// How a column's numbers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Digits after the decimal mark. One step is one unit of the last digit.
    pub decimals: u32,
    /// Whether the decimal mark is a comma.
    pub comma: bool,
}

impl Style {
    /// Returns the exact number of steps that `text` stands for: a sign, digits, and no more
    /// decimals than the style has.
    ///
    /// Returns `None` if the text is not such a number, is past the largest bound, or is padded
    /// with zeros, as postal codes are.
    pub fn step(self, text: &str) -> Option<i64> {
        let text = text.trim();
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let mark = if self.comma { ',' } else { '.' };
        let (whole, decimals) = digits.split_once(mark).unwrap_or((digits, ""));
        let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let padded = whole.len() > 1 && whole.starts_with('0');
        let width = self.decimals as usize;
        if whole.is_empty() || padded || !all_digits(whole) || !all_digits(decimals) {
            return None;
        }
        if decimals.len() > width || (digits.contains(mark) && decimals.is_empty()) {
            return None;
        }
        let step: i64 = format!("{whole}{decimals:0<width$}").parse().ok()?;
        let largest = 5 * 10i64.pow(MAX_POWER);
        (step <= largest).then_some(if negative { -step } else { step })
    }

    /// Converts a number of steps to a value of the schema.
    fn value(self, step: i64) -> Value {
        if self.decimals == 0 {
            return step.into();
        }
        // The text is exact; JSON gets the nearest double.
        let scale = 10i64.pow(self.decimals);
        let sign = if step < 0 { "-" } else { "" };
        let (whole, rest) = (step.abs() / scale, step.abs() % scale);
        let width = self.decimals as usize;
        let text = format!("{sign}{whole}.{rest:0width$}");
        let number = text.parse().ok().and_then(Number::from_f64);
        number.map_or_else(|| step.into(), Value::Number)
    }
}

/// Returns the candidate bounds, which are round numbers, in ascending order.
pub fn bounds() -> Vec<i64> {
    let positive = (0..=MAX_POWER).flat_map(|power| [1, 2, 5].map(|m| m * 10i64.pow(power)));
    let positive: Vec<i64> = positive.collect();
    let negative = positive.iter().rev().map(|bound| -bound);
    negative
        .chain([0])
        .chain(positive.iter().copied())
        .collect()
}

/// A candidate bound and its rank: the number of places by which it stands behind the bound
/// preferred among equals.
pub type Ranked = (i64, i64);

/// Ranks bounds by their distance from zero, nearest first, because a column may have either sign
/// and nothing is known about its range.
pub fn by_magnitude(bounds: &[i64]) -> Vec<Ranked> {
    let mut magnitudes: Vec<u64> = bounds.iter().map(|bound| bound.unsigned_abs()).collect();
    magnitudes.sort_unstable();
    magnitudes.dedup();
    let rank = |bound: i64| magnitudes.partition_point(|&m| m < bound.unsigned_abs()) as i64;
    bounds.iter().map(|&bound| (bound, rank(bound))).collect()
}

/// Steps with their numbers of records.
type Steps = [(i64, u64)];

fn records(steps: &Steps, of: impl Fn(i64) -> bool) -> i64 {
    let kept = steps.iter().filter(|&&(step, _)| of(step));
    count(kept.map(|&(_, records)| records).sum())
}

/// Scores each upper bound: the records above it count as a loss, and so does `preference` times
/// its rank.
///
/// Among bounds that lose few records, the preferred bound scores best. One record changes each
/// score by at most 1.
pub fn upper_scores(steps: &Steps, bounds: &[Ranked], preference: i64) -> Vec<i64> {
    let loss = |bound: i64| records(steps, |step| step > bound);
    let scores = bounds.iter();
    scores
        .map(|&(bound, rank)| -loss(bound) - rank * preference)
        .collect()
}

/// Scores each lower bound like [`upper_scores`], with the records below it as the loss.
pub fn lower_scores(steps: &Steps, bounds: &[Ranked], preference: i64) -> Vec<i64> {
    let loss = |bound: i64| records(steps, |step| step < bound);
    let scores = bounds.iter();
    scores
        .map(|&(bound, rank)| -loss(bound) - rank * preference)
        .collect()
}

/// Chooses a range that contains nearly all steps, for a quarter of a share.
///
/// The upper bound is chosen first, by the given ranks. Among the bounds up to it, the lower bound
/// prefers the nearest one that loses few records.
pub(crate) fn range(
    steps: &Steps,
    upper: &[Ranked],
    common: &Common<'_>,
    draft_budget: &mut DraftBudget,
    rng: &mut (impl RngCore + ?Sized),
) -> Result<(i64, i64), Error> {
    let selection = budget::selection(common.share.share(8))?;
    let mut chosen = |candidates: &[Ranked], scores: fn(&Steps, &[Ranked], i64) -> Vec<i64>| {
        draft_budget.pay(selection.rho()?)?;
        let places = candidates.iter().map(|&(_, rank)| rank).max().unwrap_or(0);
        let preference = budget::preference(&selection, places, common.records);
        let index = selection.choose(&scores(steps, candidates, preference), rng);
        let bound = index.and_then(|index| candidates.get(index));
        Ok::<i64, Error>(bound.map_or(0, |&(bound, _)| bound))
    };
    let last = chosen(upper, upper_scores)?;
    let mut below: Vec<i64> = upper.iter().map(|&(bound, _)| bound).collect();
    below.retain(|&bound| bound <= last);
    below.sort_unstable();
    let lower: Vec<Ranked> = below.into_iter().rev().zip(0..).collect();
    Ok((chosen(&lower, lower_scores)?, last))
}

/// Returns the starts of a histogram's cells, followed by one past the last step. Even cells are
/// complemented by finer ones towards the lower end, where skewed values lie.
pub fn grid(first: i64, last: i64) -> Vec<i64> {
    let width = last - first + 1;
    let even = (0..=EVEN_CELLS)
        .map(|cell| (i128::from(width) * i128::from(cell) / i128::from(EVEN_CELLS)) as i64);
    let finer = (1..FINER_CELLS).flat_map(|power| [width >> power, (width >> power) / 2 * 3]);
    let mut starts: Vec<i64> = even.chain(finer).map(|offset| first + offset).collect();
    starts.retain(|start| (first..=last + 1).contains(start));
    starts.sort_unstable();
    starts.dedup();
    starts
}

/// Counts records by cell, without special values. One record changes one cell, by 1.
pub fn cells(steps: &Steps, grid: &[i64], special: &[i64]) -> Vec<i64> {
    let mut cells = vec![0i64; grid.len().saturating_sub(1)];
    for &(step, records) in steps {
        let cell = grid.partition_point(|&start| start <= step);
        let place = cell.checked_sub(1).and_then(|cell| cells.get_mut(cell));
        if let Some(place) = place.filter(|_| !special.contains(&step)) {
            *place = place.saturating_add(count(records));
        }
    }
    cells
}

/// Places edges so that the bins between them have about equal numbers of records, according to the
/// noisy `cells`. Uses released values only.
pub(crate) fn edges(cells: &[i64], grid: &[i64], bins: i64) -> Vec<i64> {
    let total: i64 = cells.iter().map(|&cell| cell.max(0)).sum();
    let (Some(&first), Some(&end)) = (grid.first(), grid.last()) else {
        return Vec::new();
    };
    let mut edges = vec![first];
    let mut seen = 0i64;
    for (&cell, &start) in cells.iter().zip(grid) {
        let wanted = i128::from(total) * edges.len() as i128;
        if i128::from(seen) * i128::from(bins) >= wanted && start > first && total > 0 {
            edges.push(start);
        }
        seen += cell.max(0);
    }
    edges.push(end - 1);
    edges.dedup();
    if edges.len() < 2 {
        edges.push(end);
    }
    edges
}

/// Drafts a number column with special values, edges and digits.
pub(crate) fn form(
    column: &TextCounts,
    style: &Style,
    common: &Common<'_>,
    draft_budget: &mut DraftBudget,
    rng: &mut (impl RngCore + ?Sized),
) -> Result<Drafted, Error> {
    let steps: Vec<(i64, u64)> = (column.texts.iter())
        .filter_map(|(text, &records)| Some((style.step(text)?, records)))
        .collect();
    let (first, last) = range(&steps, &by_magnitude(&bounds()), common, draft_budget, rng)?;
    let known = texts::above_threshold(column, common, draft_budget, rng)?;
    let special = special(&known, style, (first, last), common);
    let mut form = Map::new();
    form.insert("kind".to_owned(), "number".into());
    if style.decimals == 0 {
        form.insert("integer".to_owned(), true.into());
    } else {
        form.insert("decimals".to_owned(), style.decimals.into());
    }
    if style.comma {
        form.insert("decimal_comma".to_owned(), true.into());
    }
    let bins = i64::from(common.options.bins.max(1));
    if last - first < bins {
        // Every value has its own bin, so none needs to be special.
        let (min, max) = (style.value(first), style.value(last));
        form.extend(fields(
            &json!({"min": min, "max": max, "bins": last - first + 1}),
        ));
    } else {
        let noise = CountNoise::of(common.share.share(4))?;
        draft_budget.pay(noise.rho()?)?;
        let grid = grid(first, last);
        let mut cells = cells(&steps, &grid, &special);
        for cell in &mut cells {
            *cell = cell.saturating_add(noise.sample(rng));
        }
        let edges = with_plain_values(edges(&cells, &grid, bins), &special);
        put_edges(&mut form, *style, &edges, &special);
    }
    let (low, high) = (style.value(first), style.value(last));
    Ok((
        form,
        format!("numbers, nearly all of them from {low} to {high}"),
    ))
}

pub(crate) fn fields(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

/// Returns the most frequent values, among the publishable ones within the bounds.
fn special(
    known: &[(String, i64)],
    style: &Style,
    (first, last): (i64, i64),
    common: &Common<'_>,
) -> Vec<i64> {
    let many = |&&(_, records): &&(String, i64)| {
        records.saturating_mul(100) >= common.records.saturating_mul(SPECIAL_PERCENT)
    };
    let mut heavy: Vec<(i64, i64)> = (known.iter().filter(many))
        .filter_map(|(text, records)| Some((style.step(text)?, *records)))
        .filter(|&(step, _)| (first..=last).contains(&step))
        .collect();
    heavy.sort_by_key(|&(step, records)| (std::cmp::Reverse(records), step));
    // Two texts may be the same number, such as 1 and 1.0.
    let mut special: Vec<i64> = Vec::new();
    for (step, _) in heavy {
        if special.len() < MAX_SPECIAL && !special.contains(&step) {
            special.push(step);
        }
    }
    special.sort_unstable();
    special
}

/// Removes edges that would leave a bin with nothing but special values.
fn with_plain_values(edges: Vec<i64>, special: &[i64]) -> Vec<i64> {
    let mut kept: Vec<i64> = Vec::with_capacity(edges.len());
    let last = edges.last().copied();
    for edge in edges {
        let begin = kept.last().copied();
        let is_last = Some(edge) == last;
        let plain = |begin: i64| {
            let end = if is_last { edge + 1 } else { edge };
            (begin..end).any(|step| !special.contains(&step))
        };
        match begin {
            // A bin without plain values joins the bin after it; the last bin joins the one before it.
            Some(begin) if !plain(begin) && is_last && kept.len() > 1 => {
                kept.pop();
                kept.push(edge);
            }
            Some(begin) if !plain(begin) && !is_last => {}
            _ => kept.push(edge),
        }
    }
    kept
}

fn put_edges(form: &mut Map<String, Value>, style: Style, edges: &[i64], special: &[i64]) {
    let widths = edges
        .windows(2)
        .filter_map(|pair| Some(pair.get(1)? - pair.first()?));
    let widest = widths.max().unwrap_or(1) + 1;
    let digits = if widest <= MAX_RESOLVED + 1 {
        widest
    } else {
        EVEN_DIGITS
    };
    if digits > 1 {
        form.insert("digits".to_owned(), digits.into());
    }
    let values = |steps: &[i64]| Value::Array(steps.iter().map(|&s| style.value(s)).collect());
    if !special.is_empty() {
        form.insert("special".to_owned(), values(special));
    }
    form.insert("edges".to_owned(), values(edges));
}

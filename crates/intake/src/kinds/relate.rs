//! Columns of dates relative to earlier columns.

use fhaim_domain::{
    DAY,
    form::{Bound, ColumnForm, KindForm, TimeUnit},
};

use super::{Decided, bins};
use crate::draft::RecordUse;
use crate::options::InferOptions;
use crate::relations::order::{MONTH, Order, Pair};

/// A later column is relative to an earlier one if their distance spans at most this share of the earlier column's range.
const MAX_LAPSE_SHARE: f64 = 0.34;

/// Lapses shorter than this are counted in minutes.
const MINUTES_BELOW: i64 = 6 * 3_600;

/// Makes columns of dates relative to earlier columns whose dates they never precede, or never follow, and to which they
/// stay close.
pub(crate) fn relate(order: &Order, columns: &mut [Decided], options: &InferOptions) {
    let mut relative: Vec<usize> = Vec::new();
    let mut bases: Vec<(usize, usize, ColumnForm)> = Vec::new();
    for later in 0..columns.len() {
        let base = (0..later)
            .filter(|base| !relative.contains(base))
            .find_map(|base| {
                let pair = pair(order, columns, base, later)?;
                follows(pair, columns.get(base)?, columns.get(later)?).then_some((base, pair))
            });
        let Some((base, pair)) = base else {
            continue;
        };
        let Some(name) = columns.get(base).map(|column| column.form.name.clone()) else {
            continue;
        };
        let is_date = |column: usize| {
            columns
                .get(column)
                .is_some_and(|column| column.form.kind == KindForm::Date)
        };
        // A time of day after a date counts from the date's beginning, and has lost its time in the whole days.
        if is_date(base) && !is_date(later) {
            continue;
        }
        let is_month = |column: usize| {
            let format = columns
                .get(column)
                .and_then(|column| column.form.format.as_ref());
            format.is_some_and(|format| !super::has_day(format))
        };
        // Days count from the beginning of a month, and the order of months says nothing about them.
        if is_month(base) && !is_month(later) {
            continue;
        }
        let unit = match (is_month(later), is_date(later)) {
            (true, _) => Unit::Months,
            (false, true) => Unit::Days,
            (false, false) => Unit::Clock,
        };
        if let Some(column) = columns.get_mut(later) {
            let before = column.form.clone();
            lapse(column, &name, pair, unit, options);
            relative.push(later);
            bases.push((later, base, before));
        }
    }
    undo_refused(columns, bases);
}

/// What a lapse is counted in.
#[derive(Clone, Copy)]
enum Unit {
    Months,
    Days,
    /// Hours or minutes.
    Clock,
}

/// Undoes what a schema refuses.
fn undo_refused(columns: &mut [Decided], bases: Vec<(usize, usize, ColumnForm)>) {
    for (later, base, before) in bases {
        let base = columns.get(base).map(|column| column.form.clone());
        if let Some(column) = columns.get_mut(later)
            && super::problem(&column.form, base.as_ref()).is_some()
        {
            column.form = before;
            column.proposals.pop();
        }
    }
}

fn pair<'o>(order: &'o Order, columns: &[Decided], base: usize, later: usize) -> Option<&'o Pair> {
    let place = |column: usize| {
        let dated = columns.get(column)?.dated.as_ref()?;
        order.place(column, &dated.format, dated.first_year)
    };
    order.pair(place(base)?, place(later)?)
}

/// Whether the later column never precedes or never follows the base, stays close to it, and is missing wherever the base
/// is.
fn follows(pair: &Pair, base: &Decided, later: &Decided) -> bool {
    let span = base.dated.as_ref().map_or(0, |dated| dated.span) * DAY;
    let ordered = pair.before == 0 || pair.after == 0;
    let near = (pair.most - pair.least) as f64 <= MAX_LAPSE_SHARE * span as f64
        && pair.most.abs().max(pair.least.abs()) <= span;
    let missing = later.form.nullable || !base.form.nullable;
    pair.both > 0 && pair.alone == 0 && ordered && near && missing
}

/// Drafts a column as a lapse after, or before, another.
fn lapse(column: &mut Decided, name: &str, pair: &Pair, unit: Unit, options: &InferOptions) {
    let longest = pair.most.abs().max(pair.least.abs());
    let (unit, seconds) = match unit {
        Unit::Months => (TimeUnit::Day, MONTH),
        Unit::Days => (TimeUnit::Day, DAY),
        Unit::Clock => {
            let unit = match longest < MINUTES_BELOW {
                true => TimeUnit::Minute,
                false => TimeUnit::Hour,
            };
            (unit, unit.seconds())
        }
    };
    let steps = pair.units(seconds);
    let form = &mut column.form;
    let special = form.special.take().unwrap_or_default();
    // Next to a lapse, a special day has no time: its texts are listed instead.
    let moments = column.dated.as_ref().map(|dated| &dated.moments);
    let texts = |value: &Bound| match value {
        Bound::Text(text) => moments.and_then(|moments| moments.get(text)),
        Bound::Number(_) => None,
    };
    let special = special.iter().flat_map(|value| match texts(value) {
        Some(texts) => texts.iter().cloned().map(Bound::Text).collect(),
        None => vec![value.clone()],
    });
    let special: Vec<Bound> = special.collect();
    form.relative_to = Some(name.to_owned());
    form.unit = (form.kind == KindForm::Datetime).then_some(unit);
    (form.min, form.max, form.bins, form.digits) = (None, None, None, None);
    let bound = |step: i64| Bound::Number(step as f64);
    let binning = bins::Binning {
        bins: options.bins,
        // A lapse has no special number of units.
        shared_by: u64::MAX,
        bound: &bound,
    };
    bins::fill(form, &steps, &binning);
    let kept = special
        .into_iter()
        .filter(|value| !matches!(value, Bound::Text(text) if text.starts_with('*')));
    form.special = Some(kept.collect::<Vec<Bound>>()).filter(|special| !special.is_empty());
    column.taken = RecordUse::Range;
    let direction = if pair.before == 0 { "before" } else { "after" };
    column.proposals.push(format!(
        "never {direction} {name:?} in the same record, so it is drafted relative to that column"
    ));
}

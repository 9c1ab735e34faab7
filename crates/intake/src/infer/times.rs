//! Drafts of columns of dates and times, and of their order.

use std::collections::BTreeMap;

use super::{
    InferOptions, Note, numbers,
    profile::{Candidate, Profile},
};
use fhaim_domain::{
    DAY, NumberStyle, date_from_days,
    form::{Bound, ColumnForm, KindForm, Unit},
};

/// A later column is relative to an earlier one if their distance spans at most this share of the
/// earlier column's range.
const MAX_LAPSE_SHARE: f64 = 0.34;

/// Maximum number of digits of a day within a bin.
const MAX_DAYS: i64 = 100;

/// Minutes are kept if a column has at most this many different ones.
const MAX_MINUTES: usize = 12;

/// Lapses shorter than this are counted in minutes.
const MINUTES_BELOW: i64 = 6 * 3_600;

/// Drafts a column whose texts are all dates or times.
pub(super) fn form(
    name: &str,
    profile: &Profile,
    options: &InferOptions,
) -> Option<(ColumnForm, Option<String>)> {
    let candidate = profile.formats.first()?;
    let moments = profile
        .texts
        .iter()
        .filter_map(|text| candidate.format.read(text));
    let days = moments.clone().map(|moment| moment.div_euclid(DAY));
    let (first, last) = (days.clone().min()?, days.max()?);
    let kind = if candidate.clock {
        KindForm::Datetime
    } else {
        KindForm::Date
    };
    let mut form = ColumnForm::empty(name.to_owned(), kind, profile.missing);
    form.format = Some(candidate.text.clone());
    let span = last - first + 1;
    let bins = i64::from(options.bins.max(1)).min(span);
    form.min = Some(day(first));
    form.max = Some(day(last));
    form.bins = Some(bins as u64);
    form.digits = Some(((span - 1) / bins + 1).min(MAX_DAYS) as u64).filter(|&digits| digits > 1);
    if candidate.clock {
        let minutes: std::collections::BTreeSet<i64> = moments
            .map(|moment| moment.rem_euclid(3_600) / 60)
            .collect();
        let few = minutes.len() <= MAX_MINUTES && candidate.format.grain() <= 60;
        form.unit = Some(if few { Unit::Minute } else { Unit::Hour });
    }
    let others = profile
        .formats
        .iter()
        .skip(1)
        .map(|other| other.text.as_str());
    let swapped = others
        .into_iter()
        .find(|other| is_swapped(&candidate.text, other));
    let mut note =
        "its range was read from the records: replace it with publicly known limits".to_owned();
    if let Some(other) = swapped {
        note = format!(
            "read as {}, but could also be {other}; {note}",
            candidate.text
        );
    }
    Some((form, Some(note)))
}

/// Returns whether two formats read the same texts with day and month swapped.
fn is_swapped(one: &str, other: &str) -> bool {
    let place = |format: &str, letter| format.find(letter).unwrap_or(0);
    let day_first = |format| place(format, 'd') < place(format, 'm');
    day_first(one) != day_first(other)
}

fn day(days: i64) -> Bound {
    let (year, month, day) = date_from_days(days);
    Bound::Text(format!("{year:04}-{month:02}-{day:02}"))
}

/// A column of dates or times in the draft.
struct Dated<'a> {
    index: usize,
    candidate: &'a Candidate,
    moments: Vec<Option<i64>>,
    nullable: bool,
}

impl Dated<'_> {
    fn span(&self) -> i64 {
        let present = || self.moments.iter().flatten().copied();
        present().max().unwrap_or(0) - present().min().unwrap_or(0)
    }
}

/// Makes columns of dates relative to earlier columns that they never precede and stay close to.
pub(super) fn relate(
    columns: &[(&str, &Profile)],
    forms: &mut [ColumnForm],
    notes: &mut Vec<Note>,
) {
    let dated: Vec<Dated<'_>> = (columns.iter().zip(forms.iter()).enumerate())
        .filter(|(_, (_, form))| matches!(form.kind, KindForm::Date | KindForm::Datetime))
        .filter_map(|(index, ((_, profile), _))| {
            let candidate = profile.formats.first()?;
            Some(Dated {
                index,
                candidate,
                moments: profile.moments(&candidate.format),
                nullable: profile.missing,
            })
        })
        .collect();
    let mut relative: Vec<usize> = Vec::new();
    for (place, later) in dated.iter().enumerate() {
        let base = dated.iter().enumerate().find(|&(other, base)| {
            other < place && !relative.contains(&other) && follows(base, later)
        });
        let Some((_, base)) = base else {
            continue;
        };
        relative.push(place);
        let name = columns[base.index].0;
        lapse(&mut forms[later.index], name, base, later);
        let column = columns[later.index].0.to_owned();
        notes.retain(|note| note.column != column);
        let text = format!(
            "never before {name:?}, so it is drafted relative to that column: the range of the \
             difference was read from the records"
        );
        notes.push(Note { column, text });
    }
}

/// Returns whether `later` never precedes `base`, stays close to it, and is missing wherever `base`
/// is.
fn follows(base: &Dated<'_>, later: &Dated<'_>) -> bool {
    let both = base.moments.iter().zip(&later.moments);
    let lost = both
        .clone()
        .any(|(base, later)| base.is_none() && later.is_some());
    let distances = both.filter_map(|(base, later)| Some((*later)? - (*base)?));
    let (Some(least), Some(most)) = (distances.clone().min(), distances.max()) else {
        return false;
    };
    let clocks = later.candidate.clock == base.candidate.clock;
    let near = (most as f64) <= MAX_LAPSE_SHARE * base.span() as f64;
    clocks && !lost && least >= 0 && near && (later.nullable || !base.nullable)
}

/// Drafts `later` as a lapse after `base`.
fn lapse(form: &mut ColumnForm, name: &str, base: &Dated<'_>, later: &Dated<'_>) {
    let both = base.moments.iter().zip(&later.moments);
    let distances = both.filter_map(|(base, later)| Some((*later)? - (*base)?));
    let longest = distances.clone().max().unwrap_or(0);
    let unit = match (later.candidate.clock, longest < MINUTES_BELOW) {
        (false, _) => Unit::Day,
        (true, true) if later.candidate.format.grain() <= 60 => Unit::Minute,
        (true, _) => Unit::Hour,
    };
    let mut steps: BTreeMap<i64, u64> = BTreeMap::new();
    for distance in distances {
        *steps
            .entry(distance.div_euclid(unit.seconds()))
            .or_default() += 1;
    }
    let options = InferOptions::new("", "");
    form.relative_to = Some(name.to_owned());
    form.unit = Some(unit).filter(|_| later.candidate.clock);
    (form.min, form.max, form.bins, form.digits) = (None, None, None, None);
    numbers::fill(form, &NumberStyle::default(), &steps, &options);
    // A lapse has no special values, so its bins contain all values.
    if form.special.take().is_some() {
        let first = steps.keys().next().copied().unwrap_or(0);
        let last = steps.keys().next_back().copied().unwrap_or(0);
        (form.edges, form.min, form.max) = (
            None,
            Some(Bound::Number(first as f64)),
            Some(Bound::Number(last as f64)),
        );
        let span = (last - first + 1) as u64;
        form.bins = Some(span.min(10));
        form.digits = Some(span.div_ceil(10).clamp(1, 64)).filter(|&digits| digits > 1);
    }
}

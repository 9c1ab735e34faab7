//! Builds columns of dates, datetimes, times of day and durations.

use std::collections::HashSet;

use super::{bins, digits, needed};
use crate::{
    ColumnProblem, Field,
    field::Meaning,
    form::{Bound, ColumnForm, KindForm, TimeUnit},
    limits::MAX_OFFSETS,
    names::cut,
    ordered::{Ordered, OrderedProblem, Span, even_bins},
    times::{
        Count, DAY, Dated, Days, Grid, Lapse, Special, Steps, Time, TimeFormat, TimeNames,
        TimeOptions, can_write,
    },
};

/// Largest magnitude of a limit of a lapse, in any unit.
const MAX_UNITS: f64 = 1e15;

/// Builds a column of dates or datetimes. `fields` are the columns before it.
pub(super) fn dated(form: &ColumnForm, fields: &[Field]) -> Result<Meaning, ColumnProblem> {
    let format = format(form)?;
    let unit = unit(form, &format)?;
    match &form.relative_to {
        None => time(form, format, unit).map(Meaning::Time),
        Some(base) => lapse(form, format, unit, base, fields).map(Meaning::Lapse),
    }
}

/// Parses the format with the settings that its letters depend on.
fn format(form: &ColumnForm) -> Result<TimeFormat, ColumnProblem> {
    let text = needed(form, "format", &form.format)?;
    if let Some(midnight) = form.midnight.as_ref().filter(|text| *text != "24:00") {
        return Err(ColumnProblem::Midnight(cut(midnight)));
    }
    let options = TimeOptions {
        first_year: form.first_year,
        midnight: form.midnight.is_some(),
        offsets: form.offsets.clone().unwrap_or_default(),
        months: form.months.clone().map(TimeNames::months).transpose()?,
        weekdays: form.weekdays.clone().map(TimeNames::weekdays).transpose()?,
    };
    let format = TimeFormat::with_options(text, form.kind, options)?;
    let no_effect = |field, letters| Err(ColumnProblem::NoEffect { field, letters });
    if form.first_year.is_some() && !format.has_short_years() {
        return no_effect("first_year", "%y");
    }
    if form.midnight.is_some() && !format.has_midnight() {
        return no_effect("midnight", "%H");
    }
    if form.offsets.is_some() && !format.has_offsets() {
        return no_effect("offsets", "%z, %:z or %Z");
    }
    if form.months.is_some() && !format.has_month_names() {
        return no_effect("months", "%b or %B");
    }
    if form.weekdays.is_some() && !format.has_weekday_names() {
        return no_effect("weekdays", "%a or %A");
    }
    check_offsets(&format)?;
    Ok(format)
}

fn check_offsets(format: &TimeFormat) -> Result<(), ColumnProblem> {
    let offsets = format.offsets();
    if format.has_offsets() && offsets.is_empty() {
        return Err(ColumnProblem::Offset(String::new()));
    }
    if offsets.len() > MAX_OFFSETS {
        return Err(ColumnProblem::Offsets(offsets.len()));
    }
    let mut seen = HashSet::new();
    for offset in offsets {
        if !format.is_offset(offset) || !seen.insert(offset) {
            return Err(ColumnProblem::Offset(cut(offset)));
        }
    }
    Ok(())
}

/// Returns the unit of the column.
fn unit(form: &ColumnForm, format: &TimeFormat) -> Result<TimeUnit, ColumnProblem> {
    let unit = match (form.kind, form.unit) {
        (KindForm::Date, None | Some(TimeUnit::Day)) => TimeUnit::Day,
        (KindForm::Date, _) => return Err(ColumnProblem::TimeUnit("`day` in a column of dates")),
        (_, unit) => unit.unwrap_or(TimeUnit::Minute),
    };
    if format.grain() > unit.seconds() {
        return Err(ColumnProblem::TimeUnit(
            "no finer than the smallest unit of `format`",
        ));
    }
    Ok(unit)
}

fn time(form: &ColumnForm, format: TimeFormat, unit: TimeUnit) -> Result<Time, ColumnProblem> {
    if form.clock.is_some() {
        return Err(ColumnProblem::Clock);
    }
    let grid = format.grid();
    let step = |field, bound: &Bound| date_of(field, bound, grid);
    let bins = bins(form, step, step)?;
    let writable = |step| {
        grid.first_day(step)
            .is_some_and(|day| can_write(&format, day))
    };
    let mut limits = bins.iter().flat_map(|&(first, last)| [first, last]);
    if let Some(step) = limits.find(|&step| !writable(step)) {
        return Err(ColumnProblem::Unwritable(grid.show(step)));
    }
    let special = special_dates(form, &format, Days::Bins(&bins))?;
    Ok(Time {
        days: Ordered::with_sets(&special.sets, &bins, digits(form)?)?,
        dated: Dated {
            clock: clock(unit, &special)?,
            format,
            words: special.words,
        },
    })
}

fn lapse(
    form: &ColumnForm,
    format: TimeFormat,
    unit: TimeUnit,
    base: &str,
    fields: &[Field],
) -> Result<Lapse, ColumnProblem> {
    let known = |field: &(&Field, usize)| field.0.name == *base;
    let found = fields.iter().zip(0..).find(known);
    let found = found.and_then(|(field, index)| Some((dated_of(field)?, field, index)));
    let Some((other, field, index)) = found else {
        return Err(ColumnProblem::Base(cut(base)));
    };
    if (field.nullable || other.words.lack_moment()) && !form.nullable {
        return Err(ColumnProblem::MissingBase(cut(base)));
    }
    let count = match (form.kind, form.clock, format.grid()) {
        (KindForm::Date, _, Grid::Month) => Count::Months,
        (KindForm::Date, ..) | (_, Some(_), _) => Count::Days,
        (_, None, _) => Count::Seconds(unit.seconds()),
    };
    let clock_unit = match form.clock {
        None => TimeUnit::Day,
        Some(clock) if unit == TimeUnit::Day && clock != TimeUnit::Day => clock,
        Some(_) => return Err(ColumnProblem::Clock),
    };
    if form.clock.is_some() && format.grain() > clock_unit.seconds() {
        return Err(ColumnProblem::Clock);
    }
    let special = special_dates(form, &format, Days::Apart)?;
    let bins = bins(form, whole_number, whole_number)?;
    Ok(Lapse {
        base: index,
        base_start: other.format.day_start(),
        count,
        units: Ordered::with_sets(&special.sets, &bins, digits(form)?)?,
        dated: Dated {
            clock: clock(clock_unit, &special)?,
            format,
            words: special.words,
        },
    })
}

fn dated_of(field: &Field) -> Option<&Dated> {
    match &field.meaning {
        Meaning::Time(time) => Some(&time.dated),
        Meaning::Lapse(lapse) => Some(&lapse.dated),
        _ => None,
    }
}

fn special_dates(
    form: &ColumnForm,
    format: &TimeFormat,
    days: Days<'_>,
) -> Result<Special, ColumnProblem> {
    Special::of_dates(form.special.as_deref().unwrap_or_default(), format, days)
}

/// Returns the times of day of a unit, or `None` for whole days.
fn clock(unit: TimeUnit, special: &Special) -> Result<Option<Ordered>, ColumnProblem> {
    let digits = match unit {
        TimeUnit::Day => return Ok(None),
        TimeUnit::Hour => 1,
        TimeUnit::Minute => 60,
    };
    let hours = even_bins((0, DAY / 60 - 1), 24)?;
    let sets = Dated::clock_sets(&special.words);
    Ok(Some(Ordered::with_sets(&sets, &hours, digits)?))
}

fn date_of(field: &'static str, bound: &Bound, grid: Grid) -> Result<i64, ColumnProblem> {
    let date = match bound {
        Bound::Text(text) => grid.parse(text),
        Bound::Number(_) => None,
    };
    date.ok_or(ColumnProblem::Bound {
        field,
        expected: match grid {
            Grid::Day => "a date such as \"2024-01-31\"",
            Grid::Month => "a month such as \"2024-01\"",
        },
    })
}

fn whole_number(field: &'static str, bound: &Bound) -> Result<i64, ColumnProblem> {
    match bound {
        Bound::Number(value) if value.fract() == 0.0 && value.abs() <= MAX_UNITS => {
            Ok(*value as i64)
        }
        Bound::Number(value) => Err(OrderedProblem::Step(*value).into()),
        Bound::Text(_) => Err(ColumnProblem::Bound {
            field,
            expected: "a number",
        }),
    }
}

/// Builds a column of times of day or durations.
pub(super) fn steps(form: &ColumnForm) -> Result<Steps, ColumnProblem> {
    let format = format(form)?;
    let bound = |field, bound: &Bound, whole: bool| {
        let step = match bound {
            Bound::Text(text) => format.step_of_text(text, whole),
            Bound::Number(_) => None,
        };
        step.ok_or(ColumnProblem::Bound {
            field,
            expected: "a time such as \"23:30\" or \"23:30:59\", no finer than `format`",
        })
    };
    let bins = bins(
        form,
        |field, text| bound(field, text, false),
        |field, text| bound(field, text, true),
    )?;
    let values = form.special.as_deref().unwrap_or_default();
    let special = Special::of_times(values, |text| format.step_of_text(text, false))?;
    let steps = Ordered::with_sets(&special.sets, &bins, digits(form)?)?;
    let steps = Steps {
        format,
        words: special.words,
        steps,
    };
    let ends = bins.iter().flat_map(|&(first, last): &Span| [first, last]);
    let times = special.sets.iter().flatten().copied();
    let mut all = ends.chain(times);
    match all.find(|&step| !steps.can_write(step)) {
        Some(step) => Err(ColumnProblem::Unwritable(steps.format.clock_text_of(step))),
        None => Ok(steps),
    }
}

//! Checks of dates by calendar: days of the week and of the month, months, and hours.

use fhaim_domain::{TimeFormat, date_from_days};

use super::{
    columns::{Column, Numbers, most_changed},
    evidence::Examined,
    statistics::Sizes,
};

const WEEKDAYS: [&str; 7] = [
    "a Monday",
    "a Tuesday",
    "a Wednesday",
    "a Thursday",
    "a Friday",
    "a Saturday",
    "a Sunday",
];

const MONTHS: [&str; 12] = [
    "in January",
    "in February",
    "in March",
    "in April",
    "in May",
    "in June",
    "in July",
    "in August",
    "in September",
    "in October",
    "in November",
    "in December",
];

/// Monday is day 0 of a week. 1970-01-01 is a Thursday.
const FIRST_WEEKDAY: i64 = 3;

const HOUR: i64 = 3_600;

/// Largest number of values of a part of the calendar, with those that do not occur.
const MAX_VALUES: usize = 32;

/// A part of the calendar: its value in a moment, and the name of a value.
struct Part {
    of: fn(&TimeFormat, i64) -> Option<usize>,
    name: fn(usize) -> String,
}

const PARTS: [Part; 4] = [
    Part {
        of: weekday,
        name: |day| WEEKDAYS[day].to_owned(),
    },
    Part {
        of: day_of_month,
        name: |day| format!("on day {day} of a month"),
    },
    Part {
        of: month,
        name: |month| MONTHS[month].to_owned(),
    },
    Part {
        of: hour,
        name: |hour| format!("in hour {hour} of a day"),
    },
];

/// Compares the shares of the values of each part of the calendar. A distribution over years hides them.
pub(super) fn calendar_checks(
    column: &Column,
    numbers: &Numbers,
    format: &TimeFormat,
) -> Vec<Examined> {
    if !format.has_days() {
        return Vec::new();
    }
    let sizes = Sizes::of(numbers.real.len(), numbers.synthetic.len());
    let checks = PARTS.iter().filter_map(|part| {
        let real = counts(part, format, &numbers.real)?;
        let synthetic = counts(part, format, &numbers.synthetic)?;
        let values = (0..MAX_VALUES).filter(|&value| real[value] + synthetic[value] > 0.0);
        let values = values.map(|value| ((part.name)(value), real[value], synthetic[value]));
        most_changed(column, values.collect(), sizes)
    });
    checks.collect()
}

/// Counts the values of a part. Returns `None` if the format does not have the part.
fn counts(part: &Part, format: &TimeFormat, moments: &[f64]) -> Option<[f64; MAX_VALUES]> {
    let mut counts = [0.0; MAX_VALUES];
    for &moment in moments {
        *counts.get_mut((part.of)(format, moment as i64)?)? += 1.0;
    }
    Some(counts)
}

fn weekday(format: &TimeFormat, seconds: i64) -> Option<usize> {
    let day = (format.day(seconds) + FIRST_WEEKDAY).rem_euclid(7);
    usize::try_from(day).ok()
}

fn day_of_month(format: &TimeFormat, seconds: i64) -> Option<usize> {
    let (_, _, day) = date_from_days(format.day(seconds))?;
    usize::try_from(day).ok()
}

fn month(format: &TimeFormat, seconds: i64) -> Option<usize> {
    let (_, month, _) = date_from_days(format.day(seconds))?;
    usize::try_from(month - 1).ok()
}

fn hour(format: &TimeFormat, seconds: i64) -> Option<usize> {
    let has_hours = format.grain() <= HOUR;
    let hour = seconds.div_euclid(HOUR).rem_euclid(24);
    usize::try_from(hour).ok().filter(|_| has_hours)
}

//! Random columns of dates, datetimes, times of day and durations.

use std::collections::HashMap;

use fhaim_domain::form::KindForm;
use rand::Rng;
use serde_json::Value as Json;

use super::{Generated, Generator};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Days of the months of a year.
fn month_days(year: i64) -> [i64; 12] {
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    [
        31,
        if leap { 29 } else { 28 },
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
        31,
    ]
}

type Date = (i64, i64, i64);

/// Writes a date in one of the forms.
fn write_date(form: usize, (year, month, day): Date) -> String {
    let name = MONTHS[month as usize - 1];
    match form {
        0 => format!("{year:04}-{month:02}-{day:02}"),
        1 => format!("{day:02}.{month:02}.{year:04}"),
        2 => format!("{month:02}/{day:02}/{year:04}"),
        3 => format!("{year:04}{month:02}{day:02}"),
        4 => format!("{day:02}-{}-{year:04}", &name[..3]),
        5 => format!("{name} {day}, {year:04}"),
        6 => format!("{year:04}/{month:02}/{day:02}"),
        7 => format!("{day}.{month}.{year:04}"),
        8 => format!("{day:02}/{month:02}/{:02}", year % 100),
        9 => format!("{year:04}-{month:02}"),
        10 => format!("{} {year:04}", &name[..3]),
        _ => format!("{day} {name} {year:04}"),
    }
}

const DATE_FORMS: usize = 12;

/// A date as a number that grows with it.
fn rank((year, month, day): Date) -> f64 {
    (year * 10_000 + month * 100 + day) as f64
}

/// Returns all dates of the years, by their texts; for a month, its first day.
fn dates_by_text(form: usize, years: std::ops::RangeInclusive<i64>) -> HashMap<String, f64> {
    let mut dates = HashMap::new();
    for year in years {
        for (month, days) in (1..).zip(month_days(year)) {
            for day in 1..=days {
                let date = (year, month, day);
                dates.entry(write_date(form, date)).or_insert(rank(date));
            }
        }
    }
    dates
}

/// The rank of a date or month in a schema.
fn iso_rank(limit: &Json) -> Option<f64> {
    let text = limit.as_str()?;
    let date = text.get(..10).unwrap_or(text);
    let mut parts = date.split('-').map(|part| part.parse::<i64>().ok());
    let (year, month) = (parts.next()??, parts.next()??);
    Some(rank((year, month, parts.next().flatten().unwrap_or(1))))
}

/// Writes seconds of a day in one of the forms of [`CLOCK_GRAINS`].
fn write_clock(form: usize, seconds: i64) -> String {
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let half = if hour < 12 { "AM" } else { "PM" };
    let twelve = (hour + 11) % 12 + 1;
    match form {
        0 => format!("{hour:02}:{minute:02}"),
        1 => format!("{hour:02}:{minute:02}:{second:02}"),
        2 => format!("{twelve:02}:{minute:02} {half}"),
        _ => format!("{twelve}:{minute:02}:{second:02} {half}"),
    }
}

/// Seconds that each form of a time of day can write.
const CLOCK_GRAINS: [i64; 4] = [60, 1, 60, 1];

fn clocks_by_text(form: usize) -> HashMap<String, f64> {
    let steps = (0..86_400).step_by(CLOCK_GRAINS[form] as usize);
    steps
        .map(|seconds| (write_clock(form, seconds), seconds as f64))
        .collect()
}

/// Seconds of a clock in a schema.
fn clock_seconds(limit: &Json) -> Option<f64> {
    let mut parts = limit
        .as_str()?
        .split(':')
        .map(|part| part.parse::<f64>().ok());
    let (hours, minutes) = (parts.next()??, parts.next()??);
    let seconds = parts.next().flatten().unwrap_or(0.0);
    Some(hours * 3_600.0 + minutes * 60.0 + seconds)
}

/// Writes a duration in one of the forms.
fn write_duration(form: usize, seconds: i64) -> String {
    let (hours, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    match form {
        0 => format!("{hours}:{minute:02}:{second:02}"),
        1 => format!(
            "{} days {:02}:{minute:02}:{second:02}",
            hours / 24,
            hours % 24
        ),
        2 => format!("PT{hours}H{minute}M{second}S"),
        _ => format!("{hours:02}:{minute:02}:{second:02}"),
    }
}

/// Reads a duration that one of the forms writes.
fn read_duration(form: usize, text: &str) -> Option<f64> {
    let numbers: Vec<i64> = text
        .split(|letter: char| !letter.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect();
    let seconds = match numbers[..] {
        [days, hours, minutes, seconds] => ((days * 24 + hours) * 60 + minutes) * 60 + seconds,
        [hours, minutes, seconds] => (hours * 60 + minutes) * 60 + seconds,
        _ => return None,
    };
    (write_duration(form, seconds) == text).then_some(seconds as f64)
}

impl Generator {
    fn date(&mut self, first: i64, last: i64) -> Date {
        let year = self.rng.random_range(first..=last);
        let month = self.rng.random_range(1..=12);
        let days = month_days(year)[month as usize - 1];
        (year, month, self.rng.random_range(1..=days))
    }

    /// First and last year of a column.
    fn years(&mut self) -> (i64, i64) {
        self.pick(&[(2019, 2023), (1975, 2019), (2022, 2022)])
    }

    pub(super) fn dates(&mut self) -> Generated {
        let form = self.rng.random_range(0..DATE_FORMS);
        let (first, last) = self.years();
        let mut cells: Vec<String> = (0..self.records)
            .map(|_| write_date(form, self.date(first, last)))
            .collect();
        self.disturb(&mut cells);
        let known = dates_by_text(form, 1960..=2039);
        Generated {
            kind: KindForm::Date,
            chosen: None,
            cells,
            value: Box::new(move |text| known.get(text).copied()),
            limit: iso_rank,
        }
    }

    pub(super) fn datetimes(&mut self) -> Generated {
        let form = self.pick(&[0, 1, 2, 4, 6]);
        let clock = self.rng.random_range(0..CLOCK_GRAINS.len());
        let between = if form == 0 && clock < 2 {
            self.pick(&[" ", "T"])
        } else {
            " "
        };
        let after = match (form, clock) {
            (0, 0) => self.pick(&["", "Z", "+01:00"]),
            (0, 1) => self.pick(&["", "Z", ".000", "+01:00"]),
            _ => "",
        };
        let (first, last) = self.years();
        let mut cells = Vec::new();
        for _ in 0..self.records {
            let date = write_date(form, self.date(first, last));
            let seconds =
                self.rng.random_range(0..86_400) / CLOCK_GRAINS[clock] * CLOCK_GRAINS[clock];
            cells.push(format!(
                "{date}{between}{}{after}",
                write_clock(clock, seconds)
            ));
        }
        self.disturb(&mut cells);
        let (dates, clocks) = (dates_by_text(form, 1960..=2039), clocks_by_text(clock));
        let value = move |text: &str| {
            let (date, time) = text.strip_suffix(after)?.split_once(between)?;
            clocks.get(time)?;
            dates.get(date).copied()
        };
        Generated {
            kind: KindForm::Datetime,
            chosen: None,
            cells,
            value: Box::new(value),
            limit: iso_rank,
        }
    }

    pub(super) fn times(&mut self) -> Generated {
        let form = self.rng.random_range(0..CLOCK_GRAINS.len());
        let grain = CLOCK_GRAINS[form];
        let seconds = |generator: &mut Self| generator.rng.random_range(0..86_400) / grain * grain;
        let mut cells: Vec<String> = (0..self.records)
            .map(|_| write_clock(form, seconds(self)))
            .collect();
        self.disturb(&mut cells);
        let known = clocks_by_text(form);
        Generated {
            kind: KindForm::Time,
            chosen: None,
            cells,
            value: Box::new(move |text| known.get(text).copied()),
            limit: clock_seconds,
        }
    }

    pub(super) fn durations(&mut self) -> Generated {
        let form = self.rng.random_range(0..4);
        let longest = self.pick(&[4 * 3_600, 60 * 3_600, 400 * 3_600]);
        let mut cells: Vec<String> = (0..self.records)
            .map(|_| write_duration(form, self.rng.random_range(0..longest)))
            .collect();
        self.disturb(&mut cells);
        Generated {
            kind: KindForm::Duration,
            // Up to a day, a duration looks like a time of day.
            chosen: (longest < 86_400).then_some(KindForm::Duration),
            cells,
            value: Box::new(move |text| read_duration(form, text)),
            limit: clock_seconds,
        }
    }
}

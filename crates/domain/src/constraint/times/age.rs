//! Ages in whole years, between dates of which the day or the month may not be known.
//!
//! A date is 512 times its year plus 32 times its month plus its day. All years have the same dates here, so that a
//! birthday is a multiple of 512 after the date of birth. That of 29 February lies between 28 February and 1 March in
//! common years: it counts on 1 March.

use crate::{
    DAY, Field, date_from_days, days_from_date,
    ordered::Span,
    times::{Grid, TimeFormat},
};

const MONTH: i64 = 32;
const YEAR: i64 = 512;

/// The last month of all years and the last day of all months, at least.
const LAST: (i64, i64) = (12, 31);

/// The part of dates that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Precision {
    Day,
    Month,
    Year,
    /// The year. Its last day counts: the age is the difference of the years.
    YearEnd,
}

/// How the values of a field stand for dates.
#[derive(Clone, Copy, Debug)]
pub(super) struct Calendar<'a> {
    /// The format of values that are seconds; other values are years.
    format: Option<&'a TimeFormat>,
    known: Precision,
}

/// Returns the least and the largest age of a person who was born within one range of dates, at a date of another.
pub(super) fn ages(born: Span, at: Span) -> Span {
    let years = |born: i64, at: i64| at.saturating_sub(born).div_euclid(YEAR);
    (years(born.1, at.0), years(born.0, at.1))
}

/// Returns a date some years later.
pub(super) fn later(date: i64, years: i64) -> i64 {
    date.saturating_add(years.saturating_mul(YEAR))
}

fn date_of(day: i64) -> i64 {
    match date_from_days(day) {
        Some((year, month, day)) => year * YEAR + month * MONTH + day,
        None if day > 0 => i64::MAX,
        None => i64::MIN,
    }
}

/// Returns the first day with a date that is at least `date`, in days since 1970-01-01.
fn day_at_least(date: i64) -> i64 {
    let (year, rest) = (date.div_euclid(YEAR), date.rem_euclid(YEAR));
    let (month, day) = (rest / MONTH, rest % MONTH);
    let found = match (month, day) {
        (0, _) => days_from_date(year, 1, 1),
        (13.., _) => days_from_date(year.saturating_add(1), 1, 1),
        (_, day) => days_from_date(year, month, day.max(1)).or_else(|| match month {
            12 => days_from_date(year.saturating_add(1), 1, 1),
            _ => days_from_date(year, month + 1, 1),
        }),
    };
    let beyond = if year <= 0 { i64::MIN } else { i64::MAX };
    found.unwrap_or(beyond)
}

/// Returns the last day with a date that is at most `date`.
fn day_at_most(date: i64) -> i64 {
    match day_at_least(date.saturating_add(1)) {
        i64::MAX => i64::MAX,
        day => day.saturating_sub(1),
    }
}

/// Returns the first and the last date of a year.
fn year(year: i64) -> Span {
    let start = year.saturating_mul(YEAR);
    let last = LAST.0 * MONTH + LAST.1;
    (start.saturating_add(MONTH + 1), start.saturating_add(last))
}

/// Returns the first day of a year, in days since 1970-01-01; beyond the calendar, the least or the largest number.
fn first_day(year: i64) -> i64 {
    let beyond = if year <= 0 { i64::MIN } else { i64::MAX };
    days_from_date(year, 1, 1).unwrap_or(beyond)
}

impl<'a> Calendar<'a> {
    /// Values are years.
    pub(super) const YEARS: Self = Self {
        format: None,
        known: Precision::Year,
    };

    /// Values are dates or datetimes of a format.
    pub(super) fn with_format(format: &'a TimeFormat) -> Self {
        Self {
            format: Some(format),
            known: match format.grid() {
                Grid::Day => Precision::Day,
                Grid::Month => Precision::Month,
            },
        }
    }

    /// Returns the calendar of a field of dates, datetimes or years.
    pub(super) fn of(field: &'a Field) -> Option<Self> {
        let format = || field.dated().map(|dated| Self::with_format(&dated.format));
        field.number().map(|_| Self::YEARS).or_else(format)
    }

    /// Returns the two calendars with the part of dates that is known in both, or with the ends of years.
    pub(super) fn common(self, other: Self, is_year_end: bool) -> (Self, Self) {
        let known = match is_year_end {
            true => Precision::YearEnd,
            false => self.known.max(other.known),
        };
        (Self { known, ..self }, Self { known, ..other })
    }

    /// Returns the first and the last date that a value stands for.
    pub(super) fn dates(self, value: i64) -> Span {
        let of_year = |number: i64| match self.known {
            Precision::YearEnd => (year(number).1, year(number).1),
            _ => year(number),
        };
        let Some(format) = self.format else {
            return of_year(value);
        };
        let day = format.day(value);
        let date = date_of(day);
        match self.known {
            Precision::Day => (date, date),
            Precision::Month => {
                let next = Grid::Month.first_day(Grid::Month.step(day).saturating_add(1));
                let last = next.map_or(date | (MONTH - 1), |next| date_of(next - 1));
                (last - last.rem_euclid(MONTH) + 1, last)
            }
            Precision::Year | Precision::YearEnd => of_year(date.div_euclid(YEAR)),
        }
    }

    /// Returns the least value whose last date is at least `date`.
    pub(super) fn at_least(self, date: i64) -> i64 {
        let last = LAST.0 * MONTH + LAST.1;
        let rest = date.saturating_sub(last).saturating_add(YEAR - 1);
        let year = rest.div_euclid(YEAR);
        let Some(format) = self.format else {
            return year;
        };
        let day = match self.known {
            Precision::Day => day_at_least(date),
            Precision::Month => {
                let day = day_at_least(date);
                Grid::Month.first_day(Grid::Month.step(day)).unwrap_or(day)
            }
            Precision::Year | Precision::YearEnd => first_day(year),
        };
        day.saturating_mul(DAY).saturating_add(format.day_start())
    }

    /// Returns the largest value whose first date is at most `date`.
    pub(super) fn at_most(self, date: i64) -> i64 {
        let first = match self.known {
            Precision::YearEnd => LAST.0 * MONTH + LAST.1,
            _ => MONTH + 1,
        };
        let year = date.saturating_sub(first).div_euclid(YEAR);
        let Some(format) = self.format else {
            return year;
        };
        let next = match self.known {
            Precision::Day => day_at_most(date).saturating_add(1),
            Precision::Month => {
                let day = day_at_most(date);
                let next = Grid::Month.step(day).saturating_add(1);
                Grid::Month.first_day(next).unwrap_or(day.saturating_add(1))
            }
            Precision::Year | Precision::YearEnd => first_day(year.saturating_add(1)),
        };
        let end = next.saturating_mul(DAY).saturating_add(format.day_start());
        end.saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::KindForm;

    fn format(format: &str) -> TimeFormat {
        TimeFormat::parse(format, KindForm::Date).unwrap()
    }

    fn age(born: &str, at: &str) -> Span {
        let (days, months) = (format("%Y-%m-%d"), format("%Y-%m"));
        let read = |text: &str| match text.len() {
            4 => (Calendar::YEARS, text.parse().unwrap()),
            7 => (Calendar::with_format(&months), months.read(text).unwrap()),
            _ => (Calendar::with_format(&days), days.read(text).unwrap()),
        };
        let ((born, birth), (at, time)) = (read(born), read(at));
        let (born, at) = born.common(at, false);
        ages(born.dates(birth), at.dates(time))
    }

    #[test]
    fn age_is_the_number_of_birthdays() {
        for (born, at, years) in [
            ("1980-06-15", "2020-06-14", 39),
            ("1980-06-15", "2020-06-15", 40),
            ("1980-06-15", "1980-06-15", 0),
            ("1980-06-15", "1980-06-14", -1),
            ("1980-12-31", "1981-01-01", 0),
            ("2000-02-29", "2024-02-28", 23),
            ("2000-02-29", "2024-02-29", 24),
        ] {
            assert_eq!(age(born, at), (years, years), "{born} {at}");
        }
    }

    #[test]
    fn birthday_on_29_february_counts_on_1_march_of_common_years() {
        assert_eq!(age("2000-02-29", "2023-02-28"), (22, 22));
        assert_eq!(age("2000-02-29", "2023-03-01"), (23, 23));
    }

    #[test]
    fn unknown_day_leaves_two_ages_where_it_matters() {
        for (born, at, ages) in [
            ("1980", "2020", (39, 40)),
            ("1980", "2020-01-01", (39, 40)),
            ("1980-01-01", "2020", (39, 40)),
            ("1980-12-31", "2020", (39, 40)),
            ("1980-06", "2020-06", (39, 40)),
            ("1980-06", "2020-05", (39, 39)),
            ("1980-06", "2020-06-30", (39, 40)),
            ("1980-06-15", "2020-07", (40, 40)),
        ] {
            assert_eq!(age(born, at), ages, "{born} {at}");
        }
    }

    #[test]
    fn age_at_the_end_of_a_year_is_the_difference_of_the_years() {
        let days = format("%Y-%m-%d");
        let dates = Calendar::with_format(&days);
        let value = |text: &str| match text.len() {
            4 => (Calendar::YEARS, text.parse().unwrap()),
            _ => (dates, days.read(text).unwrap()),
        };
        for born in ["1980", "1980-01-01", "1980-12-31"] {
            for at in ["2020", "2020-01-01", "2020-12-31"] {
                let ((of_born, birth), (of_at, time)) = (value(born), value(at));
                let (of_born, of_at) = of_born.common(of_at, true);
                let years = ages(of_born.dates(birth), of_at.dates(time));
                assert_eq!(years, (40, 40), "{born} {at}");
            }
        }
    }

    #[test]
    fn bounds_of_dates_are_exact() {
        let (days, months) = (format("%Y-%m-%d"), format("%Y-%m"));
        let (day, month) = (Calendar::with_format(&days), Calendar::with_format(&months));
        let (years, _) = day.common(Calendar::YEARS, false);
        let (ends, ends_of_years) = day.common(Calendar::YEARS, true);
        let months = day.common(month, false).0;
        let calendars = [
            day,
            month,
            months,
            years,
            Calendar::YEARS,
            ends,
            ends_of_years,
        ];
        for calendar in calendars {
            let values: Vec<i64> = match calendar.format {
                None => (1995..2006).collect(),
                Some(format) => {
                    let range = 10_000..12_000;
                    let shown = range.map(|day| format.show(day * DAY).to_string());
                    shown.map(|text| format.read(&text).unwrap()).collect()
                }
            };
            for date in 1998 * YEAR..2001 * YEAR {
                let above = values
                    .iter()
                    .find(|&&value| calendar.dates(value).1 >= date);
                assert_eq!(above, Some(&calendar.at_least(date)), "{calendar:?} {date}");
                let mut below = values.iter().rev();
                let below = below.find(|&&value| calendar.dates(value).0 <= date);
                let most = calendar.at_most(date);
                let most = match calendar.format {
                    None => most,
                    Some(format) => {
                        assert!(calendar.dates(most + 1).0 > date, "{calendar:?} {date}");
                        format.read(&format.show(most).to_string()).unwrap()
                    }
                };
                assert_eq!(below, Some(&most), "{calendar:?} {date}");
            }
        }
    }

    #[test]
    fn dates_beyond_the_calendar_have_no_bounds() {
        let days = format("%Y-%m-%d");
        let calendar = Calendar::with_format(&days);
        assert_eq!(calendar.at_least(12_000 * YEAR), i64::MAX);
        assert_eq!(calendar.at_most(12_000 * YEAR), i64::MAX - 1);
        assert_eq!(calendar.at_least(-5 * YEAR), i64::MIN);
        assert_eq!(calendar.at_most(i64::MAX), i64::MAX - 1);
        assert_eq!(calendar.at_least(i64::MIN), i64::MIN);
    }
}

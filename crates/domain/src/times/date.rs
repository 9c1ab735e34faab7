//! Days and months of the Gregorian calendar, counted.

use jiff::{
    SignedDuration,
    civil::{Date, date},
};

/// Seconds of a day.
pub const DAY: i64 = 86_400;

const EPOCH: Date = date(1970, 1, 1);

/// Years that a date may have: four digits.
pub(crate) const YEARS: std::ops::RangeInclusive<i64> = 1..=9999;

/// Returns the date of a year, month and day, or `None` for a date that does not exist.
pub(super) fn civil_date(year: i64, month: i64, day: i64) -> Option<Date> {
    if !YEARS.contains(&year) {
        return None;
    }
    let (month, day) = (i8::try_from(month).ok()?, i8::try_from(day).ok()?);
    Date::new(year as i16, month, day).ok()
}

/// Returns the days from 1970-01-01 to a date.
pub(super) fn days_to(date: Date) -> i64 {
    date.duration_since(EPOCH).as_secs() / DAY
}

/// Returns the days from 1970-01-01 to a date, or `None` for a date that does not exist or whose
/// year is not from 1 to 9999.
pub fn days_from_date(year: i64, month: i64, day: i64) -> Option<i64> {
    civil_date(year, month, day).map(days_to)
}

/// Returns the date of a number of days since 1970-01-01, or `None` if its year is not from 1 to
/// 9999.
pub(super) fn date_of(days: i64) -> Option<Date> {
    let passed = SignedDuration::from_secs(days.checked_mul(DAY)?);
    let date = EPOCH.checked_add(passed).ok()?;
    YEARS.contains(&i64::from(date.year())).then_some(date)
}

/// Returns the year, month and day of a number of days since 1970-01-01, or `None` if the year is
/// not from 1 to 9999.
pub fn date_from_days(days: i64) -> Option<(i64, i64, i64)> {
    let date = date_of(days)?;
    Some((date.year().into(), date.month().into(), date.day().into()))
}

/// The unit in which a column counts its dates. Steps of a column are numbers of this unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grid {
    /// Days since 1970-01-01.
    Day,
    /// Months since January of the year 0.
    Month,
}

impl Grid {
    /// Returns the step that a day belongs to.
    pub(crate) fn step(self, days: i64) -> i64 {
        match (self, date_from_days(days)) {
            (Self::Month, Some((year, month, _))) => 12 * year + month - 1,
            (Self::Month, None) if days > 0 => 12 * *YEARS.end() + 12,
            (Self::Month, None) => 12 * *YEARS.start() - 1,
            (Self::Day, _) => days,
        }
    }

    /// Returns the first day of a step, or `None` if its year is not from 1 to 9999.
    pub(crate) fn first_day(self, step: i64) -> Option<i64> {
        match self {
            Self::Day => date_of(step).map(|_| step),
            Self::Month => days_from_date(step.div_euclid(12), step.rem_euclid(12) + 1, 1),
        }
    }

    /// Returns a step as schemas write it: `2024-01-31`, or `2024-01` for a month.
    pub(crate) fn show(self, step: i64) -> String {
        let date = self.first_day(step).and_then(date_from_days);
        let (year, month, day) = date.unwrap_or_default();
        match self {
            Self::Day => format!("{year:04}-{month:02}-{day:02}"),
            Self::Month => format!("{year:04}-{month:02}"),
        }
    }

    /// Reads a step as schemas write it. A month may also be written as one of its days.
    pub(crate) fn parse(self, text: &str) -> Option<i64> {
        let part = |part: &str, width| {
            let digits = part.len() == width && part.bytes().all(|byte| byte.is_ascii_digit());
            part.parse::<i64>().ok().filter(|_| digits)
        };
        let mut parts = text.split('-');
        let year = part(parts.next()?, 4)?;
        let month = part(parts.next()?, 2)?;
        let day = match (parts.next(), self) {
            (Some(day), _) => part(day, 2)?,
            (None, Self::Month) => 1,
            (None, Self::Day) => return None,
        };
        let days = days_from_date(year, month, day)?;
        parts.next().is_none().then(|| self.step(days))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_from_1970() {
        assert_eq!(days_from_date(1970, 1, 1), Some(0));
        assert_eq!(days_from_date(2000, 3, 1), Some(11_017));
        assert_eq!(days_from_date(1969, 12, 31), Some(-1));
        assert_eq!(days_from_date(2023, 2, 29), None);
        assert_eq!(days_from_date(1900, 2, 29), None);
        assert_eq!(days_from_date(2000, 2, 30), None);
        assert_eq!(days_from_date(2024, 13, 1), None);
        assert_eq!(days_from_date(2024, 1, 257), None);
        assert_eq!(days_from_date(0, 1, 1), None);
        assert_eq!(days_from_date(10_000, 1, 1), None);
        let first = days_from_date(1, 1, 1).unwrap();
        let last = days_from_date(9999, 12, 31).unwrap();
        for days in (first..=last).step_by(97) {
            let (year, month, day) = date_from_days(days).unwrap();
            assert_eq!(days_from_date(year, month, day), Some(days));
        }
        for outside in [first - 1, last + 1, i64::MIN, i64::MAX] {
            assert_eq!(date_from_days(outside), None);
        }
    }

    #[test]
    fn months_are_read_and_written_without_their_day() {
        let step = Grid::Month.parse("2024-05").unwrap();
        assert_eq!(Grid::Month.parse("2024-05-31"), Some(step));
        assert_eq!(Grid::Month.parse("2024-04"), Some(step - 1));
        assert_eq!(Grid::Month.show(step), "2024-05");
        assert_eq!(Grid::Month.first_day(step), days_from_date(2024, 5, 1));
        assert_eq!(
            Grid::Month.step(i64::MAX),
            Grid::Month.parse("9999-12").unwrap() + 1
        );
        assert_eq!(Grid::Day.parse("2024-05"), None);
        for wrong in ["2024-13", "2024-5-01", "+024-05-01", "2024-05-01-", "x", ""] {
            assert_eq!(Grid::Day.parse(wrong), None, "{wrong}");
        }
    }
}

//! Types of the values that synthetic tables have, for formats with types such as Parquet and Arrow.

use crate::{
    Column, DAY, Field, Kind, Moment, NumberStyle, TimeFormat, Value,
    decimal::parse_number,
    field::{Derived, Meaning},
    number::NumberField,
    times::{Grid, Lapse, Steps, Time, TimeScale},
};

/// Type of a field's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Texts, such as identifiers, or values of different types.
    Text,
    /// Texts from a list.
    Category,
    /// Booleans.
    Flag,
    /// Whole numbers.
    Integer,
    /// Numbers that are written with this number of decimals.
    Decimal(u32),
    /// Numbers.
    Number,
    /// Days.
    Date,
    /// Times of day.
    TimeOfDay(TickUnit),
    /// Durations, for which Parquet has no type.
    Duration(TickUnit),
    /// Days with a time of day.
    Timestamp {
        /// The largest unit that keeps every value.
        unit: TickUnit,
        /// Whether the values are in universal time, and not in that of the table's own clock.
        is_utc: bool,
    },
}

/// TimeUnit of times and timestamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TickUnit {
    /// 1/1,000 of a second.
    Millisecond,
    /// 1/1,000,000 of a second.
    Microsecond,
    /// 1/1,000,000,000 of a second.
    Nanosecond,
}

/// A value of a type other than text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// A boolean.
    Flag(bool),
    /// A whole number, a count of the last decimal place, days since 1970-01-01, or units since then or since midnight.
    Integer(i64),
    /// A number.
    Number(f64),
}

/// Spellings of booleans: false, then true.
const FLAGS: [[&str; 2]; 3] = [["false", "true"], ["False", "True"], ["FALSE", "TRUE"]];

/// Seconds from 1970-01-01 within which nanoseconds fit into 64 bits.
const NANOSECONDS: std::ops::RangeInclusive<i64> = -9_223_372_036..=9_223_372_035;

impl TickUnit {
    /// Returns the largest unit that has these decimals of a second.
    fn with_decimals(decimals: u32) -> Self {
        match decimals {
            0..=3 => Self::Millisecond,
            4..=6 => Self::Microsecond,
            _ => Self::Nanosecond,
        }
    }

    fn per_second(self) -> i64 {
        match self {
            Self::Millisecond => 1_000,
            Self::Microsecond => 1_000_000,
            Self::Nanosecond => 1_000_000_000,
        }
    }

    /// Returns the units of a time, or `None` if there are too many.
    fn ticks(self, seconds: i64, nanos: u32) -> Option<i64> {
        let rest = i64::from(nanos) / (1_000_000_000 / self.per_second());
        seconds.checked_mul(self.per_second())?.checked_add(rest)
    }
}

impl Field {
    /// Returns the type of the field's values. `columns` are the schema's.
    ///
    /// A field with values that are words, such as `<0.5` among numbers, has texts. A derived field that repeats another
    /// one has the type of [`crate::Schema::value_field`].
    pub fn output(&self, columns: &[Column]) -> Output {
        match &self.meaning {
            Meaning::Plain => columns
                .get(self.attributes.start)
                .map_or(Output::Text, |column| of_kind(column.kind())),
            Meaning::Number(number) if number.values.has_words() => Output::Text,
            Meaning::Number(number) => of_style(&number.style),
            Meaning::Time(time) if !time.dated.words.lack_moment() => {
                let has_special = self
                    .form
                    .as_ref()
                    .is_some_and(|form| form.special.is_some());
                let (first, last) = time.limits();
                let fits = NANOSECONDS.contains(&first) && NANOSECONDS.contains(&last);
                of_format(&time.dated.format, fits && !has_special)
            }
            Meaning::Lapse(lapse) if !lapse.dated.words.lack_moment() => {
                of_format(&lapse.dated.format, false)
            }
            Meaning::Steps(steps) if steps.words.is_empty() => of_clock(&steps.format),
            Meaning::Code(_) => Output::Category,
            Meaning::Derived(Derived {
                values: Some(values),
                ..
            }) => match are_flags(values.values().filter(|text| !text.is_empty())) {
                true => Output::Flag,
                false => Output::Category,
            },
            _ => Output::Text,
        }
    }

    /// Converts a value of the field to the type `output`. Returns `None` for a missing value, and for one of another
    /// type.
    pub fn scalar(&self, output: Output, value: &Value<'_>) -> Option<Scalar> {
        match value {
            Value::Category(text) => self.scalar_of_text(output, text),
            Value::Decimal(decimal) if matches!(output, Output::Decimal(_)) => {
                Some(Scalar::Integer(decimal.units()))
            }
            Value::Moment(moment) => output.ticks(moment),
            value => number_scalar(output, value.number()?),
        }
    }

    /// Like [`Field::scalar`], for a text that a table has for a value of the field.
    pub fn scalar_of_text(&self, output: Output, text: &str) -> Option<Scalar> {
        match &self.meaning {
            Meaning::Plain => match output {
                Output::Flag => flag(text),
                _ => number_scalar(output, parse_number(text)?),
            },
            Meaning::Number(NumberField { style, .. }) => match output {
                Output::Decimal(_) => style.units(style.parse(text)?).map(Scalar::Integer),
                _ => number_scalar(output, style.parse(text)?),
            },
            Meaning::Time(Time { dated, .. }) | Meaning::Lapse(Lapse { dated, .. }) => {
                output.ticks(&moment(&dated.format, text)?)
            }
            Meaning::Steps(Steps { format, .. }) => output.ticks(&moment(format, text)?),
            Meaning::Derived(_) if output == Output::Flag => flag(text),
            _ => None,
        }
    }
}

impl Output {
    fn ticks(self, moment: &Moment<'_>) -> Option<Scalar> {
        let ticks = match self {
            Self::Date => moment.seconds().div_euclid(DAY),
            Self::TimeOfDay(unit) | Self::Duration(unit) => {
                unit.ticks(moment.seconds(), moment.nanos())?
            }
            Self::Timestamp { unit, .. } => {
                unit.ticks(moment.universal_seconds(), moment.nanos())?
            }
            _ => return None,
        };
        Some(Scalar::Integer(ticks))
    }
}

fn number_scalar(output: Output, number: f64) -> Option<Scalar> {
    match output {
        Output::Number => Some(Scalar::Number(number)),
        // Whole numbers of a column are exact.
        Output::Integer if number.fract() == 0.0 => Some(Scalar::Integer(number as i64)),
        _ => None,
    }
}

fn moment<'a>(format: &'a TimeFormat, text: &str) -> Option<Moment<'a>> {
    Some(format.show_exact(format.read_exact(text)?))
}

fn of_kind(kind: &Kind) -> Output {
    match kind {
        Kind::Categorical { categories, .. } if are_flags(categories.iter()) => Output::Flag,
        Kind::Categorical { .. } => Output::Category,
        Kind::Numeric(binning) if binning.integer() => Output::Integer,
        Kind::Numeric(_) => Output::Number,
        Kind::Part { .. } => Output::Text,
    }
}

/// Returns the type of numbers. Programs that print floating-point numbers add no zeros after the first decimal, so
/// a column with two or more fixed decimals has amounts of money or other fixed-point numbers. All others are
/// floating-point numbers, which every program can compute with: pandas has decimals only as Python objects.
fn of_style(style: &NumberStyle) -> Output {
    match style.decimals {
        0 => Output::Integer,
        decimals if decimals > 1 && style.trailing_zeros => Output::Decimal(decimals),
        _ => Output::Number,
    }
}

/// Returns the type of dates and datetimes. `fit_nanoseconds` is whether all of them are within the range of timestamps
/// in nanoseconds.
fn of_format(format: &TimeFormat, fit_nanoseconds: bool) -> Output {
    let unit = TickUnit::with_decimals(format.decimals());
    match (format.grid(), format.scale()) {
        (Grid::Month, _) | (_, TimeScale::Unknown) => Output::Text,
        _ if format.grain() == DAY => Output::Date,
        _ if unit == TickUnit::Nanosecond && !fit_nanoseconds => Output::Text,
        (_, scale) => Output::Timestamp {
            unit,
            is_utc: scale == TimeScale::Universal,
        },
    }
}

/// Returns the type of times of day and durations. No type of a time of day has 24:00.
fn of_clock(format: &TimeFormat) -> Output {
    let unit = TickUnit::with_decimals(format.decimals());
    match format.is_of_durations() {
        true => Output::Duration(unit),
        false if format.day_start() > 0 => Output::Text,
        false => Output::TimeOfDay(unit),
    }
}

fn are_flags<'a>(texts: impl Iterator<Item = &'a String>) -> bool {
    let texts: Vec<&String> = texts.collect();
    let is_spelled = |flags: &[&str; 2]| texts.iter().all(|text| flags.contains(&text.as_str()));
    !texts.is_empty() && FLAGS.iter().any(is_spelled)
}

fn flag(text: &str) -> Option<Scalar> {
    let mut spellings = FLAGS.iter();
    spellings.find_map(|[no, yes]| match text {
        _ if text == *no => Some(Scalar::Flag(false)),
        _ if text == *yes => Some(Scalar::Flag(true)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Schema;

    /// Returns the type of a column, and the value of a text in it.
    fn typed(column: &str, text: &str) -> (Output, Option<Scalar>) {
        let other = r#"{"name": "y", "kind": "categorical", "categories": ["a", "b"]}"#;
        let json =
            format!("{{\"name\": \"t\", \"columns\": [{{\"name\": \"x\", {column}}}, {other}]}}");
        let schema = Schema::from_json("t.json", json.as_bytes()).unwrap();
        let field = &schema.fields()[0];
        let output = field.output(schema.columns());
        (output, field.scalar_of_text(output, text))
    }

    #[test]
    fn categories_that_are_booleans_become_booleans() {
        let of = |categories: &str, text| {
            typed(
                &format!(r#""kind": "categorical", "categories": [{categories}]"#),
                text,
            )
        };
        let yes = Some(Scalar::Flag(true));
        assert_eq!(of(r#""true", "false""#, "true"), (Output::Flag, yes));
        assert_eq!(of(r#""False", "True""#, "True"), (Output::Flag, yes));
        assert_eq!(of(r#""TRUE""#, "TRUE"), (Output::Flag, yes));
        for categories in [
            r#""true", "False""#,
            r#""true", "false", "unknown""#,
            r#""0", "1""#,
        ] {
            assert_eq!(of(categories, "true"), (Output::Category, None));
        }
    }

    #[test]
    fn numbers_have_the_type_that_programs_expect() {
        let of = |keys: &str, text| {
            let limits = r#""min": 0, "max": 90, "bins": 2"#;
            typed(&format!(r#""kind": "number", {limits}, {keys}"#), text)
        };
        assert_eq!(
            of(r#""integer": true"#, "17"),
            (Output::Integer, Some(Scalar::Integer(17)))
        );
        assert_eq!(of(r#""integer": true"#, "17.5").1, None);
        assert_eq!(
            of(r#""decimals": 2"#, "17.5"),
            (Output::Number, Some(Scalar::Number(17.5)))
        );
        assert_eq!(
            of(
                r#""decimals": 2, "trailing_zeros": true, "decimal_comma": true"#,
                "17,50"
            ),
            (Output::Decimal(2), Some(Scalar::Integer(1_750)))
        );
        let money = r#""decimals": 2, "trailing_zeros": true, "step": 0.5, "thousands": ",", "before": "$""#;
        assert_eq!(
            of(money, "$17.50"),
            (Output::Decimal(2), Some(Scalar::Integer(1_750)))
        );
        assert_eq!(
            of(r#""integer": true, "after": " mg""#, "17 mg"),
            (Output::Integer, Some(Scalar::Integer(17)))
        );
        // Words make a column of texts.
        assert_eq!(
            of(r#""decimals": 2, "special": [0, "<0.5"]"#, "17.5").0,
            Output::Text
        );
        // A floating-point number has one decimal when it is whole.
        assert_eq!(
            of(r#""decimals": 1, "trailing_zeros": true"#, "17.0"),
            (Output::Number, Some(Scalar::Number(17.0)))
        );
        let numeric = r#""kind": "numeric", "min": 0, "max": 90, "bins": 2, "integer": true"#;
        assert_eq!(
            typed(numeric, "17"),
            (Output::Integer, Some(Scalar::Integer(17)))
        );
    }

    #[test]
    fn dates_and_datetimes_are_days_and_milliseconds() {
        let of = |kind: &str, format: &str, text| {
            let limits = r#""min": "2024-01-01", "max": "2024-12-31", "bins": 2"#;
            typed(
                &format!(r#""kind": "{kind}", "format": "{format}", {limits}"#),
                text,
            )
        };
        assert_eq!(
            of("date", "%d.%m.%Y", "02.01.1970"),
            (Output::Date, Some(Scalar::Integer(1)))
        );
        let millis = TickUnit::Millisecond;
        for (format, text, unit, is_utc, ticks) in [
            ("%Y-%m-%d %H:%M", "1970-01-01 00:01", millis, false, 60_000),
            (
                "%Y-%m-%dT%H:%M:%S%.3fZ",
                "1970-01-01T00:01:00.250Z",
                millis,
                true,
                60_250,
            ),
            (
                "%Y-%m-%dT%H:%M:%S%.6f+00:00",
                "1970-01-01T00:00:00.000001+00:00",
                TickUnit::Microsecond,
                true,
                1,
            ),
            (
                "%Y-%m-%d %H:%M:%S%.9f",
                "1970-01-01 00:00:00.000000001",
                TickUnit::Nanosecond,
                false,
                1,
            ),
        ] {
            let expected = Output::Timestamp { unit, is_utc };
            assert_eq!(
                of("datetime", format, text),
                (expected, Some(Scalar::Integer(ticks)))
            );
        }
        // Months are no days.
        assert_eq!(of("date", "%Y-%m", "1970-01"), (Output::Text, None));
    }

    #[test]
    fn datetimes_with_offsets_are_in_universal_time() {
        let of = |keys: &str, text| {
            let limits = r#""min": "2024-01-01", "max": "2024-12-31", "bins": 2"#;
            typed(&format!(r#""kind": "datetime", {limits}, {keys}"#), text)
        };
        let berlin = r#""format": "%Y-%m-%d %H:%M%:z", "offsets": ["+01:00", "+02:00"]"#;
        let expected = Output::Timestamp {
            unit: TickUnit::Millisecond,
            is_utc: true,
        };
        assert_eq!(
            of(berlin, "1970-01-01 02:01+02:00"),
            (expected, Some(Scalar::Integer(60_000)))
        );
        let named = r#""format": "%Y-%m-%d %H:%M %Z", "offsets": ["CET", "CEST"]"#;
        assert_eq!(of(named, "1970-01-01 02:01 CET").0, Output::Text);
    }

    #[test]
    fn nanoseconds_beyond_the_range_of_timestamps_are_texts() {
        for keys in [
            r#""min": "2024-01-01", "max": "2300-12-31", "bins": 2"#,
            r#""min": "2024-01-01", "max": "2024-12-31", "bins": 2, "special": ["9999-12-31"]"#,
        ] {
            let column =
                format!(r#""kind": "datetime", "format": "%Y-%m-%d %H:%M:%S%.9f", {keys}"#);
            assert_eq!(typed(&column, "").0, Output::Text);
        }
    }

    #[test]
    fn special_dates_are_dates_and_words_are_not() {
        let of = |special: &str| {
            let limits = r#""min": "2024-01-01", "max": "2024-12-31", "bins": 2"#;
            let format = r#""kind": "date", "format": "%Y-%m-%d""#;
            typed(
                &format!(r#"{format}, {limits}, "special": [{special}]"#),
                "",
            )
            .0
        };
        assert_eq!(of(r#""9999-12-31", "*-01-01""#), Output::Date);
        assert_eq!(of(r#""unknown""#), Output::Text);
        let column = r#""kind": "datetime", "format": "%Y-%m-%d %H:%M", "min": "2024-01-01", "max": "2024-12-31",
            "bins": 2, "special": ["9999-12-31 23:59"]"#;
        let (output, value) = typed(column, "9999-12-31 23:59");
        assert!(matches!(output, Output::Timestamp { .. }));
        assert_eq!(value, Some(Scalar::Integer(253_402_300_740_000)));
    }

    #[test]
    fn times_of_day_and_durations_are_milliseconds() {
        let of = |kind: &str, format: &str, text| {
            let limits = r#""min": "00:00", "max": "23:00", "bins": 23"#;
            typed(
                &format!(r#""kind": "{kind}", "format": "{format}", {limits}"#),
                text,
            )
        };
        assert_eq!(
            of("time", "%H:%M", "07:05"),
            (
                Output::TimeOfDay(TickUnit::Millisecond),
                Some(Scalar::Integer(25_500_000))
            )
        );
        assert_eq!(
            of("duration", "%H:%M", "-36:05"),
            (
                Output::Duration(TickUnit::Millisecond),
                Some(Scalar::Integer(-129_900_000))
            )
        );
    }

    #[test]
    fn other_columns_are_texts() {
        let (identifier, value) = typed(r#""kind": "identifier", "pattern": "sequence""#, "1");
        assert_eq!((identifier, value), (Output::Text, None));
        let code = r#""kind": "code", "codes": ["A00", "A01"], "prefix": 1"#;
        assert_eq!(typed(code, "A00"), (Output::Category, None));
    }
}

//! Reads the synthetic tables that fhaim wrote.
//!
//! A Parquet table has numbers and dates where the schema describes texts, such as `1,5` and `31.01.2024`. Its values get
//! the form of the schema before they are read.

use std::{io::Read, path::Path};

use fhaim_domain::{
    BrokenConstraint, DAY, NumberStyle, ReadOptions, Schema, TableReading, TimeFormat,
    days_from_date, parse_number, read_csv,
};
use fhaim_files::{FormatArguments, OutputFormat, StrictnessArguments, data, read_options};
use fhaim_intake::{TextCounts, count_texts};
use serde_json::Value;

use crate::{
    error::Error,
    input::{self, Data},
};

/// A synthetic table as a comparison needs it.
pub struct MadeTable {
    /// Its records. Those that break a constraint are counted.
    pub reading: TableReading,
    /// Its texts.
    pub texts: Vec<TextCounts>,
}

impl MadeTable {
    /// Reads a table. `format` describes it, as [`FormatArguments::of_output`] makes it.
    pub fn read(
        data: &Data,
        schema: &Schema,
        format: &FormatArguments,
        strictness: &StrictnessArguments,
    ) -> Result<Self, Error> {
        let is_parquet = |path: &Path| matches!(OutputFormat::of(path), Ok(OutputFormat::Parquet));
        if !data.file().is_some_and(is_parquet) {
            return Ok(Self {
                reading: input::looking(data, schema.clone(), format, strictness)?,
                texts: input::texts(data, format, strictness)?,
            });
        }
        let (text, dialect) = data::dialect_text(data, format)?;
        let text = as_text(text, schema).map_err(|problem| Error::Content {
            path: data.name().into(),
            problem,
        })?;
        let options = ReadOptions {
            dialect,
            keep_values: true,
            broken: BrokenConstraint::Count,
            ..read_options(data.name(), format, strictness)
        };
        let texts = count_texts(
            &text[..],
            &options.file,
            &options.dialect,
            &options.missing,
            &[],
        )?;
        Ok(Self {
            reading: read_csv(schema.clone(), &text[..], &options)?,
            texts,
        })
    }
}

/// How the values of a column are written.
enum ColumnText {
    Number(NumberStyle),
    Time(TimeFormat),
    Plain,
}

/// Writes all values of a table, given as CSV, in the form of the schema.
fn as_text(table: Box<dyn Read>, schema: &Schema) -> Result<Vec<u8>, String> {
    let failed = |error: csv::Error| error.to_string();
    let mut reader = csv::Reader::from_reader(table);
    let mut writer = csv::Writer::from_writer(Vec::new());
    let header = reader.headers().map_err(failed)?.clone();
    let forms: Vec<ColumnText> = header.iter().map(|name| form(schema, name)).collect();
    writer.write_record(&header).map_err(failed)?;
    for record in reader.records() {
        let record = record.map_err(failed)?;
        let cells = record.iter().zip(&forms);
        let cells = cells.map(|(cell, form)| form.text(cell).unwrap_or_else(|| cell.to_owned()));
        writer.write_record(cells).map_err(failed)?;
    }
    writer.into_inner().map_err(|error| error.to_string())
}

fn form(schema: &Schema, name: &str) -> ColumnText {
    let field = schema.fields().iter().find(|field| field.name() == name);
    if let Some(format) = field.and_then(|field| field.time_format()) {
        return ColumnText::Time(format.clone());
    }
    number_style(schema, name).map_or(ColumnText::Plain, ColumnText::Number)
}

/// Returns the style of a column of numbers, unless that is the one of typed numbers.
fn number_style(schema: &Schema, name: &str) -> Option<NumberStyle> {
    let form: Value = serde_json::from_str(&schema.to_json()).ok()?;
    let mut columns = form.get("columns")?.as_array()?.iter();
    let column = columns.find(|column| column["name"] == name)?;
    let is = |key: &str| column[key].as_bool() == Some(true);
    let text = |key: &str| column[key].as_str().unwrap_or_default().to_owned();
    let style = NumberStyle {
        decimals: u32::try_from(column["decimals"].as_u64().unwrap_or(0)).ok()?,
        trailing_zeros: is("trailing_zeros"),
        comma: is("decimal_comma"),
        thousands: text("thousands").chars().next(),
        before: text("before"),
        after: text("after"),
        ..NumberStyle::default()
    };
    let is_other = style.comma || style.thousands.is_some() || !style.is_plain();
    (column["kind"] == "number" && is_other).then_some(style)
}

impl ColumnText {
    /// Writes a typed value in the form of its column. Returns `None` for a text that needs no other form.
    fn text(&self, cell: &str) -> Option<String> {
        match self {
            Self::Plain => None,
            Self::Number(style) => {
                let step = style.step(parse_number(cell)?)?;
                Some(style.number(step).to_string())
            }
            Self::Time(format) => match format.read(cell) {
                Some(_) => None,
                None => Some(format.show(seconds(cell)?).to_string()),
            },
        }
    }
}

/// Reads a date (`2024-01-31`), a time of day (`07:05:00`) or both.
fn seconds(text: &str) -> Option<i64> {
    let (date, time) = match text.split_once([' ', 'T']) {
        Some((date, time)) => (Some(date), Some(time)),
        None if text.contains(':') => (None, Some(text)),
        None => (Some(text), None),
    };
    let numbers = |text: &str, mark: char| -> Option<Vec<i64>> {
        text.split(mark).map(|part| part.parse().ok()).collect()
    };
    let days = match date {
        None => 0,
        Some(date) => match numbers(date, '-')?[..] {
            [year, month, day] => days_from_date(year, month, day)?,
            _ => return None,
        },
    };
    let of_day = match time {
        None => 0,
        Some(time) => match numbers(time, ':')?[..] {
            [hour, minute, second] => 3_600 * hour + 60 * minute + second,
            _ => return None,
        },
    };
    Some(days * DAY + of_day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_values_get_the_form_of_the_schema() {
        let schema = r#"{"name": "t", "columns": [
            {"name": "price", "kind": "number", "decimals": 2, "trailing_zeros": true, "decimal_comma": true,
             "thousands": ".", "min": 0, "max": 9000, "bins": 9},
            {"name": "day", "kind": "date", "format": "%d.%m.%Y", "min": "2024-01-01", "max": "2024-12-31", "bins": 12},
            {"name": "kind", "kind": "categorical", "categories": ["a,b", "c"]}]}"#;
        let schema = Schema::from_json("t.json", schema.as_bytes()).unwrap();
        let typed = "price,day,kind\n1234.5,2024-01-31,\"a,b\"\n,2024-02-01,c\n";
        let text = as_text(Box::new(typed.as_bytes()), &schema).unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "price,day,kind\n\"1.234,50\",31.01.2024,\"a,b\"\n,01.02.2024,c\n"
        );
    }

    #[test]
    fn seconds_of_dates_and_times_are_read() {
        assert_eq!(seconds("1970-01-02"), Some(DAY));
        assert_eq!(seconds("1970-01-02 00:01:01"), Some(DAY + 61));
        assert_eq!(seconds("00:01:01"), Some(61));
        assert_eq!(seconds("unknown"), None);
    }
}

//! CSV into codes, strictly.

use std::{collections::HashMap, io::Read, sync::Arc};

use crate::{
    Error, HeaderProblem, RawColumn, Schema, Table,
    encode::{Encoder, Moments},
    field::Meaning,
    records::Records,
    schema::cut,
};

/// What to do with a category that the schema does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownCategory {
    /// Refuse the table.
    #[default]
    Refuse,
    /// Take it for the category that the schema declares as `other`; refuse the table if it
    /// declares none.
    Other,
}

/// What to do with a number outside the schema's limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutOfRange {
    /// Refuse the table.
    #[default]
    Refuse,
    /// Take it for the nearest limit.
    Clamp,
}

/// What to do with a column that the schema does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnlistedColumn {
    /// Refuse the table.
    #[default]
    Refuse,
    /// Leave it out.
    LeaveOut,
}

/// How to read a table. The default is the strictest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// Name of the file, for errors.
    pub file: String,
    /// Byte between fields.
    pub delimiter: u8,
    /// Fields that stand for a missing value, unless they are one of the column's categories.
    pub missing: Vec<String>,
    /// What to do with unknown categories.
    pub unknown: UnknownCategory,
    /// What to do with numbers out of range.
    pub out_of_range: OutOfRange,
    /// What to do with unlisted columns.
    pub unlisted: UnlistedColumn,
    /// Most records.
    pub max_records: usize,
    /// Whether to keep the values as they are beside their codes, for a report.
    pub keep_values: bool,
}

impl ReadOptions {
    /// Commas; only an empty field is missing; whatever the schema does not have is refused; at
    /// most 2^22 records. `file` is named in errors.
    pub fn new(file: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            delimiter: b',',
            missing: vec![String::new()],
            unknown: UnknownCategory::default(),
            out_of_range: OutOfRange::default(),
            unlisted: UnlistedColumn::default(),
            max_records: 1 << 22,
            keep_values: false,
        }
    }
}

/// What was changed in a column while it was read, at the holder's wish. Private: counts of
/// records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Adjusted {
    /// Numbers taken for the nearest limit.
    pub clamped: u64,
    /// Categories taken for `other`.
    pub other: u64,
    /// Missing values, as they are.
    pub missing: u64,
    /// Numbers with a fraction, as they are.
    pub fractions: u64,
}

/// A table and what reading it changed or noticed.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The table.
    pub table: Table,
    /// By attribute, what was changed or noticed: for a field of several, at the first.
    pub adjusted: Vec<Adjusted>,
    /// Columns of the file that were left out.
    pub left_out: Vec<String>,
    /// By field, its values as they are, where [`ReadOptions::keep_values`] asked for them.
    /// Private: the table itself.
    pub values: Vec<RawColumn>,
}

/// Reads a CSV table with a header, record by record. Columns may stand in any order. In each
/// field a category is matched as it stands; numbers may have spaces around them.
///
/// # Errors
/// A header that does not fit the schema, a ragged record, a cell that the schema does not
/// have, no records or too many: with file, row (counted from 1, the header left out), line and
/// column. Whatever reading `input` gives.
pub fn read_csv(
    schema: impl Into<Arc<Schema>>,
    input: impl Read,
    options: &ReadOptions,
) -> Result<Reading, Error> {
    let schema = schema.into();
    let mut records = Records::open(&options.file, options.delimiter, input)?;
    let places = match_header(&schema, &records, options)?;
    let left_out = unlisted(&schema, records.header());
    let mut encoders: Vec<Encoder<'_>> = (schema.fields().iter().zip(places))
        .filter_map(|(field, place)| Encoder::new(&schema, field, place?, options))
        .collect();
    let mut columns = vec![Vec::new(); schema.columns().len()];
    let mut adjusted = vec![Adjusted::default(); columns.len()];
    let mut moments = Moments::default();
    while records.advance()? {
        if records.row() > options.max_records as u64 {
            return Err(Error::Records {
                file: options.file.clone(),
                limit: options.max_records,
            });
        }
        moments.clear();
        for encoder in &mut encoders {
            let place = encoder.place;
            encoder
                .encode(
                    records.bytes(place),
                    &mut moments,
                    &mut columns,
                    &mut adjusted,
                )
                .map_err(|problem| records.refuse(place, problem))?;
        }
    }
    if records.row() == 0 {
        return Err(Error::Empty {
            file: options.file.clone(),
        });
    }
    let values = encoders
        .into_iter()
        .filter_map(Encoder::into_values)
        .collect();
    Ok(Reading {
        table: Table::new(schema, columns)?,
        adjusted,
        left_out,
        values,
    })
}

/// For each field of the schema, its place in the file; `None` for one that is not read.
fn match_header<R: Read>(
    schema: &Schema,
    records: &Records<R>,
    options: &ReadOptions,
) -> Result<Vec<Option<usize>>, Error> {
    let header = records.header();
    let position: HashMap<&str, usize> = (header.iter().map(String::as_str)).zip(0..).collect();
    let mut places = Vec::with_capacity(schema.fields().len());
    for field in schema.fields() {
        // A synthetic table lacks what is left out, and may lack identifiers.
        let read = !matches!(field.meaning, Meaning::LeftOut | Meaning::Identifier(_));
        match position.get(field.name()) {
            Some(&place) => places.push(read.then_some(place)),
            None if !read => places.push(None),
            None => {
                let problem = HeaderProblem::Missing(cut(field.name()));
                return Err(records.refuse_header(problem));
            }
        }
    }
    if options.unlisted == UnlistedColumn::Refuse
        && let Some(name) = unlisted(schema, header).first()
    {
        return Err(records.refuse_header(HeaderProblem::Unlisted(cut(name))));
    }
    Ok(places)
}

fn unlisted(schema: &Schema, header: &[String]) -> Vec<String> {
    let known = |name: &str| schema.fields().iter().any(|field| field.name() == name);
    header.iter().filter(|name| !known(name)).cloned().collect()
}

/// Whether `text` is one of the texts that stand for a missing value.
pub(crate) fn is_missing(text: &str, missing: &[String]) -> bool {
    missing.iter().any(|token| token == text)
}

/// A finite number, spaces around it allowed; not the words that Rust also takes for numbers.
pub(crate) fn parse_number(text: &str) -> Option<f64> {
    text.trim()
        .parse::<f64>()
        .ok()
        .filter(|value| value.is_finite())
}

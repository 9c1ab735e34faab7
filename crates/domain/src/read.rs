//! CSV into codes, strictly.

use std::{collections::HashMap, io::Read, sync::Arc};

use crate::{
    Binning, CellProblem, Column, Error, HeaderProblem, Kind, Schema, Table, records::Records,
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
    /// By attribute, what was changed or noticed.
    pub adjusted: Vec<Adjusted>,
    /// Columns of the file that were left out.
    pub left_out: Vec<String>,
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
    let fields = match_header(&schema, &records, options)?;
    let left_out = unlisted(&schema, records.header());
    let encoders: Vec<Encoder<'_>> = schema
        .columns()
        .iter()
        .map(|column| Encoder::new(column, options))
        .collect();
    let mut columns = vec![Vec::new(); encoders.len()];
    let mut adjusted = vec![Adjusted::default(); encoders.len()];
    while records.advance()? {
        if records.row() > options.max_records as u64 {
            return Err(Error::Records {
                file: options.file.clone(),
                limit: options.max_records,
            });
        }
        for (attribute, encoder) in encoders.iter().enumerate() {
            let code = encoder
                .code(records.bytes(fields[attribute]), &mut adjusted[attribute])
                .map_err(|problem| records.refuse(fields[attribute], problem))?;
            columns[attribute].push(code);
        }
    }
    if records.row() == 0 {
        return Err(Error::Empty {
            file: options.file.clone(),
        });
    }
    drop(encoders);
    Ok(Reading {
        table: Table::new(schema, columns)?,
        adjusted,
        left_out,
    })
}

/// For each column of the schema, its field in the file.
fn match_header<R: Read>(
    schema: &Schema,
    records: &Records<R>,
    options: &ReadOptions,
) -> Result<Vec<usize>, Error> {
    let header = records.header();
    let position: HashMap<&str, usize> = header
        .iter()
        .enumerate()
        .map(|(field, name)| (name.as_str(), field))
        .collect();
    let mut fields = Vec::with_capacity(schema.columns().len());
    for column in schema.columns() {
        match position.get(column.name()) {
            Some(&field) => fields.push(field),
            None => {
                let problem = HeaderProblem::Missing(cut(column.name()));
                return Err(records.refuse_header(problem));
            }
        }
    }
    if options.unlisted == UnlistedColumn::Refuse
        && let Some(name) = unlisted(schema, header).first()
    {
        return Err(records.refuse_header(HeaderProblem::Unlisted(cut(name))));
    }
    Ok(fields)
}

fn unlisted(schema: &Schema, header: &[String]) -> Vec<String> {
    header
        .iter()
        .filter(|name| schema.position(name).is_none())
        .cloned()
        .collect()
}

/// What turns the fields of one column into codes.
struct Encoder<'a> {
    column: &'a Column,
    options: &'a ReadOptions,
    /// Codes of categories by their bytes; empty for a numeric column.
    codes: HashMap<&'a [u8], u32>,
}

impl<'a> Encoder<'a> {
    fn new(column: &'a Column, options: &'a ReadOptions) -> Self {
        let codes = match column.kind() {
            Kind::Numeric(_) => HashMap::new(),
            Kind::Categorical { categories, .. } => {
                categories.iter().map(String::as_bytes).zip(0..).collect()
            }
        };
        Self {
            column,
            options,
            codes,
        }
    }

    fn code(&self, field: &[u8], adjusted: &mut Adjusted) -> Result<u32, CellProblem> {
        if let Some(&code) = self.codes.get(field) {
            return Ok(code);
        }
        let text = std::str::from_utf8(field).map_err(|_| CellProblem::NotUtf8)?;
        if is_missing(text, &self.options.missing) {
            adjusted.missing += 1;
            return self.column.null_code().ok_or(CellProblem::Missing);
        }
        match self.column.kind() {
            Kind::Numeric(binning) => self.bin(binning, text, adjusted),
            Kind::Categorical { other, .. } => self.other(*other, text, adjusted),
        }
    }

    fn bin(
        &self,
        binning: &Binning,
        text: &str,
        adjusted: &mut Adjusted,
    ) -> Result<u32, CellProblem> {
        let value = parse_number(text).ok_or_else(|| CellProblem::NotANumber(cut(text)))?;
        if binning.integer() && value.fract() != 0.0 {
            return Err(CellProblem::NotAnInteger(cut(text)));
        }
        adjusted.fractions += u64::from(value.fract() != 0.0);
        if let Some(bin) = binning.bin(value) {
            return Ok(bin);
        }
        let nearest = binning.clamp(value).and_then(|value| binning.bin(value));
        match (self.options.out_of_range, nearest) {
            (OutOfRange::Clamp, Some(bin)) => {
                adjusted.clamped += 1;
                Ok(bin)
            }
            _ => Err(CellProblem::OutOfRange {
                value: cut(text),
                min: binning.min(),
                max: binning.max(),
            }),
        }
    }

    fn other(
        &self,
        other: Option<u32>,
        text: &str,
        adjusted: &mut Adjusted,
    ) -> Result<u32, CellProblem> {
        if self.options.unknown == UnknownCategory::Refuse {
            return Err(CellProblem::UnknownCategory(cut(text)));
        }
        let code = other.ok_or_else(|| CellProblem::NoOther(cut(text)))?;
        adjusted.other += 1;
        Ok(code)
    }
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

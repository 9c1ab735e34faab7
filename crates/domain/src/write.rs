//! Writing of codes as CSV.

use std::io::Write;

use rand::Rng;

use crate::{Error, Field, Schema, Table, Value};

/// How to write a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteOptions {
    /// Name of the file, for errors.
    pub file: String,
    /// Byte between fields.
    pub delimiter: u8,
    /// Text for a missing value in columns whose schema names none.
    pub missing: String,
    /// Number of records of the table that were written before. Identifiers continue from there.
    pub before: u64,
    /// Whether to write the names of the columns first.
    pub header: bool,
}

impl WriteOptions {
    /// Returns commas as delimiters and an empty field for a missing value. Errors name `file`.
    pub fn new(file: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            delimiter: b',',
            missing: String::new(),
            before: 0,
            header: true,
        }
    }
}

/// Writes a table as CSV. Numbers are drawn from their bins with `rng` (see
/// [`crate::Binning::sample`]). A missing value is written as the first text that its column's schema
/// names, or as [`WriteOptions::missing`]. Reading the output with the same schema, delimiter and text
/// for missing values returns the same codes.
///
/// # Errors
/// The text for missing values is a value of a nullable column, or writing to `output` fails.
pub fn write_csv(
    table: &Table,
    output: impl Write,
    rng: &mut (impl Rng + ?Sized),
    options: &WriteOptions,
) -> Result<(), Error> {
    let schema = table.schema();
    let fields = || schema.fields().iter().filter(|field| field.is_written());
    let missing = fields().map(|field| missing_text(schema, field, &options.missing));
    let missing = missing.collect::<Result<Vec<&str>, Error>>()?;
    let failed = |error: csv::Error| Error::Io {
        file: options.file.clone(),
        source: error.into(),
    };
    let mut writer = csv::WriterBuilder::new()
        .delimiter(options.delimiter)
        .from_writer(output);
    if options.header {
        let names = writer.write_record(fields().map(Field::name));
        names.map_err(failed)?;
    }
    let mut values = Vec::with_capacity(schema.fields().len());
    for row in 0..table.records() {
        let code = |attribute: usize| table.column(attribute)[row];
        schema.values(&code, options.before + row as u64, rng, &mut values);
        for (value, missing) in values.iter().zip(&missing) {
            match value {
                Value::Null => writer.write_field(missing),
                Value::Category(category) => writer.write_field(category),
                other => writer.write_field(other.to_string()),
            }
            .map_err(failed)?;
        }
        writer.write_record(None::<&[u8]>).map_err(failed)?;
    }
    writer.flush().map_err(|source| Error::Io {
        file: options.file.clone(),
        source,
    })
}

/// Returns the text for a missing value of a field. `token` is for fields whose schema names none.
///
/// # Errors
/// `token` would be read back as a value.
fn missing_text<'a>(schema: &Schema, field: &'a Field, token: &'a str) -> Result<&'a str, Error> {
    match field.missing_text() {
        Some(text) => Ok(text),
        None if field.nullable() && schema.has_value(field, token) => Err(Error::MissingToken {
            column: field.name().to_owned(),
            token: token.to_owned(),
        }),
        None => Ok(token),
    }
}

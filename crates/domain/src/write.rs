//! Writing of codes as CSV.

use std::io::Write;

use rand::Rng;

use crate::{Error, Field, Kind, Schema, Table, Value, decimal::parse_number, field::Meaning};

/// How to write a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteOptions {
    /// Name of the file, for errors.
    pub file: String,
    /// Byte between fields.
    pub delimiter: u8,
    /// Text for a missing value.
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
/// [`crate::Binning::sample`]). Reading the output with the same schema, delimiter and text for
/// missing values returns the same codes.
///
/// # Errors
/// The text for missing values is a value of a nullable column, a column has fewer identifiers than
/// the table has records, or writing to `output` fails.
pub fn write_csv(
    table: &Table,
    output: impl Write,
    rng: &mut (impl Rng + ?Sized),
    options: &WriteOptions,
) -> Result<(), Error> {
    let schema = table.schema();
    check_identifiers(
        schema,
        options.before.saturating_add(table.records() as u64),
    )?;
    let fields = || schema.fields().iter().filter(|field| field.is_written());
    for field in fields() {
        check_missing_text(schema, field, &options.missing)?;
    }
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
        for value in &values {
            match value {
                Value::Null => writer.write_field(&options.missing),
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

/// Rejects a table with more records than a column has identifiers.
fn check_identifiers(schema: &Schema, records: u64) -> Result<(), Error> {
    for field in schema.fields() {
        if let Some(capacity) = field.capacity().filter(|&capacity| capacity < records) {
            return Err(Error::Identifiers {
                column: field.name().to_owned(),
                capacity,
                records,
            });
        }
    }
    Ok(())
}

/// Rejects a text for missing values that would be read back as a value.
fn check_missing_text(schema: &Schema, field: &Field, token: &str) -> Result<(), Error> {
    let kind = schema
        .columns()
        .get(field.attributes().start)
        .map(|column| column.kind());
    let is_value = match (&field.meaning, kind) {
        (Meaning::Plain, Some(Kind::Categorical { categories, .. })) => {
            categories.iter().any(|name| name == token)
        }
        (Meaning::Plain, _) => parse_number(token).is_some(),
        (Meaning::Number(number), _) => number.is_value(token),
        (Meaning::Time(time), _) => time.dated.read(token).is_some(),
        (Meaning::Lapse(lapse), _) => lapse.dated.read(token).is_some(),
        (Meaning::Steps(steps), _) => steps.step(token).is_some(),
        (Meaning::Code(book), _) => book.place(token).is_some(),
        (Meaning::Identifier(_) | Meaning::LeftOut, _) => false,
    };
    if field.nullable() && is_value {
        let column = field.name().to_owned();
        return Err(Error::MissingToken {
            column,
            token: token.to_owned(),
        });
    }
    Ok(())
}

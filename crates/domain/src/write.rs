//! Codes into CSV.

use std::io::Write;

use rand::Rng;

use crate::{Column, Error, Kind, Table, Value, read::parse_number};

/// How to write a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteOptions {
    /// Name of the file, for errors.
    pub file: String,
    /// Byte between fields.
    pub delimiter: u8,
    /// What stands for a missing value.
    pub missing: String,
}

impl WriteOptions {
    /// Commas, and nothing between them for a missing value. `file` is named in errors.
    pub fn new(file: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            delimiter: b',',
            missing: String::new(),
        }
    }
}

/// Writes a table as CSV with a header; numbers are drawn from their bins with `rng` (see
/// [`crate::Binning::sample`]). Read back with the same schema and delimiter and the same text
/// for missing values, it gives the same codes.
///
/// # Errors
/// The text for missing values is a value of a nullable column; whatever writing to `output`
/// gives.
pub fn write_csv(
    table: &Table,
    output: impl Write,
    rng: &mut (impl Rng + ?Sized),
    options: &WriteOptions,
) -> Result<(), Error> {
    let columns = table.schema().columns();
    for column in columns {
        check_missing_text(column, &options.missing)?;
    }
    let failed = |error: csv::Error| Error::Io {
        file: options.file.clone(),
        source: error.into(),
    };
    let mut writer = csv::WriterBuilder::new()
        .delimiter(options.delimiter)
        .from_writer(output);
    writer
        .write_record(columns.iter().map(Column::name))
        .map_err(failed)?;
    for row in 0..table.records() {
        for (attribute, column) in columns.iter().enumerate() {
            // A table's codes are within its schema: there is always a value.
            let value = column
                .decode(table.column(attribute)[row], rng)
                .unwrap_or(Value::Null);
            match value {
                Value::Null => writer.write_field(&options.missing),
                Value::Category(category) => writer.write_field(category),
                Value::Number(number) => writer.write_field(number.to_string()),
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

/// Refuses a text for missing values that would be read back as a value.
fn check_missing_text(column: &Column, token: &str) -> Result<(), Error> {
    let is_value = match column.kind() {
        Kind::Categorical { categories, .. } => categories.iter().any(|name| name == token),
        Kind::Numeric(_) => parse_number(token).is_some(),
    };
    if column.nullable() && is_value {
        let column = column.name().to_owned();
        return Err(Error::MissingToken {
            column,
            token: token.to_owned(),
        });
    }
    Ok(())
}

//! What a command reads: schemas and tables.

use fhaim_files::{FormatArguments, StrictnessArguments};
use std::{fs, io::Read, path::Path, sync::Arc};

use fhaim_domain::{
    Adjusted, Binning, BrokenConstraint, Kind, ReadOptions, Schema, Streaming, Table, TableReading,
    read_csv, stream_csv,
};
pub use fhaim_files::data::{Data, delimiter, text};
use fhaim_files::{data, note, read_options, remarks};
use fhaim_synth::{FittedModel, load_model};

use crate::{
    error::Error,
    size::{self, MAX_RECORDS},
};

/// A table, and how to read it.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The table as it comes.
    pub data: &'a Data,
    /// What its columns are.
    pub schema: &'a Schema,
    /// How it is written.
    pub format: &'a FormatArguments,
    /// What of it is refused.
    pub strictness: &'a StrictnessArguments,
}

/// Reads a schema.
pub fn schema(path: &Path) -> Result<Schema, Error> {
    let json = fs::read(path).map_err(|source| Error::Read {
        path: path.to_owned(),
        source,
    })?;
    Ok(Schema::from_json(&path.to_string_lossy(), &json)?)
}

/// Reads a model of tables with a schema.
pub fn model(path: &Path, most_mb: usize, schema: &Schema) -> Result<Arc<dyn FittedModel>, Error> {
    let bytes = fs::read(path).map_err(|source| Error::Read {
        path: path.to_owned(),
        source,
    })?;
    let content = |problem: String| Error::Content {
        path: path.to_owned(),
        problem,
    };
    let model = load_model(&bytes, most_mb.saturating_mul(1_000_000))
        .map_err(|error| content(error.to_string()))?;
    // A saved model knows no digits: to it they are attributes like all others.
    if model.domain().sizes() != schema.domain().sizes() {
        let problem = "the model is not over the schema's columns";
        return Err(content(problem.to_owned()));
    }
    Ok(model)
}

/// Reads a table, and tells its holder on standard error what the reading changed.
pub fn table(
    data: impl Into<Data>,
    schema: Schema,
    format: &FormatArguments,
    strictness: &StrictnessArguments,
) -> Result<Table, Error> {
    let data = data.into();
    let options = read_options(data.name(), format, strictness);
    Ok(read(&data, schema, format, options)?.table)
}

/// As [`table`], with what was noticed, and its values as they are.
pub fn reading(
    data: impl Into<Data>,
    schema: Schema,
    format: &FormatArguments,
    strictness: &StrictnessArguments,
) -> Result<TableReading, Error> {
    let data = data.into();
    let options = ReadOptions {
        keep_values: true,
        ..read_options(data.name(), format, strictness)
    };
    read(&data, schema, format, options)
}

/// As [`reading`], of a table that is only looked at: what breaks a constraint is counted.
pub fn looking(
    data: impl Into<Data>,
    schema: Schema,
    format: &FormatArguments,
    strictness: &StrictnessArguments,
) -> Result<TableReading, Error> {
    let data = data.into();
    let options = ReadOptions {
        keep_values: true,
        broken: BrokenConstraint::Count,
        ..read_options(data.name(), format, strictness)
    };
    read(&data, schema, format, options)
}

fn read(
    data: &Data,
    schema: Schema,
    format: &FormatArguments,
    mut options: ReadOptions,
) -> Result<TableReading, Error> {
    let (text, delimiter) = text(data, format)?;
    options.delimiter = delimiter;
    options.max_records = size::most_records(schema.columns().len());
    let reading = read_csv(schema, text, &options)?;
    remark(reading.table.schema(), &reading.left_out, &reading.adjusted);
    Ok(reading)
}

/// Reads a table a few records at a time, whose codes `take` is given, and tells its holder on standard
/// error what the reading changed.
pub fn stream(
    source: Source<'_>,
    take: impl FnMut(&[Vec<u32>]) -> Result<(), Error>,
) -> Result<Streaming, Error> {
    let (text, delimiter) = text(source.data, source.format)?;
    let streaming = stream_text(source, text, delimiter, take)?;
    remark(source.schema, &streaming.left_out, &streaming.adjusted);
    Ok(streaming)
}

/// As [`stream`], of a table that is read again, and told of then.
pub fn stream_quietly(
    source: Source<'_>,
    take: impl FnMut(&[Vec<u32>]) -> Result<(), Error>,
) -> Result<Streaming, Error> {
    let (text, dialect) = data::dialect_text(source.data, source.format)?;
    stream_text(source, text, dialect.delimiter, take)
}

fn stream_text(
    source: Source<'_>,
    text: impl Read,
    delimiter: u8,
    take: impl FnMut(&[Vec<u32>]) -> Result<(), Error>,
) -> Result<Streaming, Error> {
    let options = ReadOptions {
        delimiter,
        // A few at a time are in memory.
        max_records: MAX_RECORDS,
        ..read_options(source.data.name(), source.format, source.strictness)
    };
    stream_csv(source.schema, text, &options, take)
}

fn remark(schema: &Schema, left_out: &[String], adjusted: &[Adjusted]) {
    remarks(schema, left_out, adjusted).iter().for_each(note);
}

/// A model is told of that gives less of its mass to what a schema's constraints allow.
const LITTLE_MASS: f64 = 0.5;

/// Tells of a model that had to be asked often for records that a schema's constraints allow.
pub fn remark_on_constraints(schema: &Schema, allowed: f64) {
    if !schema.constraints().is_empty() && allowed < LITTLE_MASS {
        note(format_args!(
            "the schema's constraints allow {:.1}% of what the model draws, and only that was kept: it has \
             learnt little of what they say",
            100.0 * allowed
        ));
    }
}

/// Tells the holder of numeric columns that hold integers alone and are not said to.
pub fn remark_on_integers(reading: &TableReading) {
    let columns = reading.table.schema().columns();
    for (column, adjusted) in columns.iter().zip(&reading.adjusted) {
        if adjusted.fractions == 0 && may_hold_integers(column.kind()) {
            note(format_args!(
                "column {:?}: every number is whole; synthetic ones are only where its schema says \
                 \"integer\": true",
                column.name()
            ));
        }
    }
}

/// Whether a column that is not said to hold integers could be.
fn may_hold_integers(kind: &Kind) -> bool {
    match kind {
        Kind::Numeric(binning) => {
            let (min, max) = (binning.min(), binning.max());
            !binning.integer() && Binning::new(min, max, binning.bins().into(), true).is_ok()
        }
        Kind::Categorical { .. } | Kind::Part { .. } => false,
    }
}

//! Input of a command: schemas, models and tables.

use fhaim_files::{FormatArguments, StrictnessArguments};
use std::{fs, io::Read, path::Path, sync::Arc};

use fhaim_domain::{
    Adjusted, Binning, BrokenConstraint, Dialect, Kind, NearUnique, ReadOptions, Schema, Streaming,
    Table, TableReading, TableRecords, counted, read_csv_watched, stream_csv_watched,
};
pub use fhaim_files::data::{Data, delimiter, text};
use fhaim_files::{data, memory::RecordWatch, named, note, read_options, refuse_left_out, remarks};
use fhaim_intake::{TextCounts, count_texts};
use fhaim_synth::{FittedModel, load_model};

use crate::{
    error::Error,
    size::{self, MAX_RECORDS},
};

/// A table with its schema and the options for reading it.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The table.
    pub data: &'a Data,
    /// The table's schema.
    pub schema: &'a Schema,
    /// Text format of the table.
    pub format: &'a FormatArguments,
    /// Handling of values and columns that are not in the schema.
    pub strictness: &'a StrictnessArguments,
    /// Handling of lists whose values hardly two records share.
    pub near_unique: NearUnique,
}

/// Reads a schema.
pub fn schema(path: &Path) -> Result<Schema, Error> {
    let json = fs::read(path).map_err(|source| Error::Read {
        path: path.to_owned(),
        source,
    })?;
    Ok(Schema::from_json(&path.to_string_lossy(), &json)?)
}

/// Reads a model, which must be of tables with this schema.
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
    // A saved model does not distinguish digits from other attributes, so only sizes are compared.
    if model.domain().sizes() != schema.domain().sizes() {
        let problem = "the model has other columns than the schema: name the schema of its run";
        return Err(content(problem.to_owned()));
    }
    Ok(model)
}

/// Reads a table whose schema will be published, and reports changes made while reading on standard error.
pub fn table(
    data: impl Into<Data>,
    schema: Schema,
    format: &FormatArguments,
    strictness: &StrictnessArguments,
) -> Result<Table, Error> {
    table_with(data, schema, format, strictness, NearUnique::Refuse)
}

/// Like [`table`], with a choice for lists whose values hardly two records share.
pub fn table_with(
    data: impl Into<Data>,
    schema: Schema,
    format: &FormatArguments,
    strictness: &StrictnessArguments,
    near_unique: NearUnique,
) -> Result<Table, Error> {
    let data = data.into();
    let options = ReadOptions {
        near_unique,
        ..read_options(data.name(), format, strictness)
    };
    Ok(read_watched(&data, schema, format, options)?.table)
}

/// Like [`table`], but returns the whole reading, without the values.
pub fn checked(
    data: &Data,
    schema: Schema,
    format: &FormatArguments,
    strictness: &StrictnessArguments,
) -> Result<TableReading, Error> {
    let options = ReadOptions {
        near_unique: NearUnique::Refuse,
        ..read_options(data.name(), format, strictness)
    };
    read(data, schema, format, options, |_| ())
}

/// Like [`table`], but returns the whole reading, including the values without binning.
pub fn reading(
    data: impl Into<Data>,
    schema: Schema,
    format: &FormatArguments,
    strictness: &StrictnessArguments,
) -> Result<TableReading, Error> {
    let data = data.into();
    let options = ReadOptions {
        keep_values: true,
        near_unique: NearUnique::Refuse,
        ..read_options(data.name(), format, strictness)
    };
    read_watched(&data, schema, format, options)
}

/// Like [`reading`], for a comparison: records that break a constraint are counted, and the schema is not checked for
/// lists whose values hardly two records share.
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
    read(&data, schema, format, options, |_| ())
}

/// Reads a table whose records may be used, and makes their sketch for the usage history.
fn read_watched(
    data: &Data,
    schema: Schema,
    format: &FormatArguments,
    options: ReadOptions,
) -> Result<TableReading, Error> {
    let mut watch = RecordWatch::new(data);
    let reading = read(data, schema, format, options, |records| watch.see(records))?;
    watch.finish();
    Ok(reading)
}

/// Counts the texts of all columns, before a schema reads them.
pub fn texts(
    data: &Data,
    format: &FormatArguments,
    strictness: &StrictnessArguments,
) -> Result<Vec<TextCounts>, Error> {
    let (text, dialect) = data::dialect_text(data, format)?;
    let missing = read_options(data.name(), format, strictness).missing;
    Ok(count_texts(text, &data.name(), &dialect, &missing, &[])?)
}

/// Counts the records of a table.
pub fn count_records(data: &Data, format: &FormatArguments) -> Result<usize, Error> {
    let (text, dialect) = data::dialect_text(data, format)?;
    let mut records = TableRecords::open(&data.name(), &dialect, text)?;
    let mut count = 0;
    while records.advance()? {
        count += 1;
    }
    Ok(count)
}

fn read(
    data: &Data,
    schema: Schema,
    format: &FormatArguments,
    mut options: ReadOptions,
    watch: impl FnMut(&TableRecords<Box<dyn Read>>),
) -> Result<TableReading, Error> {
    let (text, dialect) = text(data, format)?;
    refuse_left_out(data, &schema)?;
    options.dialect = dialect;
    options.max_records = size::most_records(schema.columns().len());
    let reading = read_csv_watched(schema, text, &options, watch)?;
    remark(reading.table.schema(), &reading.left_out, &reading.adjusted);
    Ok(reading)
}

/// Reads a table a few records at a time, and passes their codes to `take`.
///
/// Reports changes made while reading on standard error.
pub fn stream(
    source: Source<'_>,
    take: impl FnMut(&[Vec<u32>]) -> Result<(), Error>,
) -> Result<Streaming, Error> {
    let (text, dialect) = text(source.data, source.format)?;
    let streaming = stream_text(source, text, dialect, take)?;
    remark(source.schema, &streaming.left_out, &streaming.adjusted);
    Ok(streaming)
}

/// Like [`stream`], without reports, for a table that is read again later.
pub fn stream_quietly(
    source: Source<'_>,
    take: impl FnMut(&[Vec<u32>]) -> Result<(), Error>,
) -> Result<Streaming, Error> {
    let (text, dialect) = data::dialect_text(source.data, source.format)?;
    stream_text(source, text, dialect, take)
}

fn stream_text(
    source: Source<'_>,
    text: impl Read,
    dialect: Dialect,
    take: impl FnMut(&[Vec<u32>]) -> Result<(), Error>,
) -> Result<Streaming, Error> {
    refuse_left_out(source.data, source.schema)?;
    let options = ReadOptions {
        dialect,
        // Memory does not limit the number of records, because only a few are in memory at a time.
        max_records: MAX_RECORDS,
        near_unique: source.near_unique,
        ..read_options(source.data.name(), source.format, source.strictness)
    };
    let mut watch = RecordWatch::new(source.data);
    let see = |records: &TableRecords<_>| watch.see(records);
    let streaming = stream_csv_watched(source.schema, text, &options, see, take)?;
    watch.finish();
    Ok(streaming)
}

fn remark(schema: &Schema, left_out: &[String], adjusted: &[Adjusted]) {
    remarks(schema, left_out, adjusted).iter().for_each(note);
}

/// Share of drawn records that must satisfy the schema's constraints, below which a model is reported.
const LITTLE_MASS: f64 = 0.5;

/// Reports a model that draws many records which break the schema's constraints. `allowed` is the share that satisfy
/// them.
pub fn remark_on_constraints(schema: &Schema, allowed: f64) {
    if !schema.constraints().is_empty() && allowed < LITTLE_MASS {
        note(format_args!(
            "only {:.1}% of the records that the model draws satisfy the schema's constraints; the others \
             were discarded. The model has learned little about the constraints",
            100.0 * allowed
        ));
    }
}

/// Reports numeric columns that contain only integers, but are not declared as such.
pub fn remark_on_integers(reading: &TableReading) {
    let columns = reading.table.schema().columns().iter();
    let integers = columns.zip(&reading.adjusted);
    let integers = integers
        .filter(|(column, adjusted)| adjusted.fractions == 0 && may_hold_integers(column.kind()));
    let names: Vec<&str> = integers.map(|(column, _)| column.name()).collect();
    if !names.is_empty() {
        note(format_args!(
            "{}: all numbers are integers; to get synthetic integers, set \"integer\": true in the schema",
            named(&names)
        ));
    }
}

/// Reports identifiers with fewer values than the table has records.
pub fn remark_on_identifiers(schema: &Schema, records: usize) {
    for field in schema.fields() {
        if let Some(capacity) = field.capacity().filter(|&most| most < records as u64) {
            note(format_args!(
                "column {:?}: the pattern has {} for {}. In synthetic tables, later ones are longer; to \
                 avoid this, use a longer pattern",
                field.name(),
                counted(capacity, "identifier"),
                counted(records, "record")
            ));
        }
    }
}

/// Whether a column is not declared as integers, but could be.
fn may_hold_integers(kind: &Kind) -> bool {
    match kind {
        Kind::Numeric(binning) => {
            let (min, max) = (binning.min(), binning.max());
            !binning.integer() && Binning::new(min, max, binning.bins().into(), true).is_ok()
        }
        Kind::Categorical { .. } | Kind::Part { .. } => false,
    }
}

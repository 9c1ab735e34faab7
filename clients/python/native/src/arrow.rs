//! Arrow tables as CSV in UTF-8, in the form that the command gives Parquet tables.

use arrow_array::{
    Array, ArrayRef, RecordBatch, RecordBatchReader,
    cast::AsArray,
    types::{Float16Type, Float32Type, Float64Type, Int64Type, UInt64Type},
};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType, Field, TimeUnit};
use fhaim_cli::in_process::{
    LeftOut, is_unnamed_index,
    typed::{Clock, TypedCell, ValueForm, Zone},
};

/// Key of pandas' description of a table in a schema's metadata.
const PANDAS: &str = "pandas";

/// Key of the name of a type that Arrow itself does not have, in a field's metadata.
const EXTENSION: &str = "ARROW:extension:name";

/// A column that is read.
struct Column {
    place: usize,
    name: String,
    form: ValueForm,
    /// The type that its values are converted to first.
    kind: DataType,
}

/// Converts records to CSV. A missing value becomes an empty field. Returns also the columns that were left out.
///
/// # Errors
/// An error of the reader, or a table without a column of a supported type.
pub fn csv(reader: impl RecordBatchReader) -> Result<(Vec<u8>, Vec<LeftOut>), ArrowError> {
    let schema = reader.schema();
    let (mut columns, left_out) = columns(
        schema.fields().iter().map(AsRef::as_ref),
        schema.metadata().get(PANDAS).map(String::as_str),
    );
    if columns.is_empty() {
        let problem =
            "the table has no column of numbers, texts, booleans, dates, times or durations";
        return Err(ArrowError::SchemaError(problem.to_owned()));
    }
    let batches = reader.collect::<Result<Vec<_>, _>>()?;
    let converted = batches
        .iter()
        .map(|batch| convert(batch, &columns))
        .collect::<Result<Vec<_>, _>>()?;
    drop(batches);
    for arrays in &converted {
        for (column, array) in columns.iter_mut().zip(arrays) {
            look(&mut column.form, array);
        }
    }
    let failed = |error: csv::Error| ArrowError::CsvError(error.to_string());
    let mut writer = csv::Writer::from_writer(Vec::new());
    let names = columns.iter().map(|column| column.name.as_str());
    writer.write_record(names).map_err(failed)?;
    let mut text = Vec::new();
    for arrays in &converted {
        let rows = arrays.first().map_or(0, |array| array.len());
        for row in 0..rows {
            for (column, array) in columns.iter().zip(arrays) {
                text.clear();
                with_cell(array, row, |cell| column.form.write(cell, &mut text));
                writer.write_field(&text).map_err(failed)?;
            }
            writer.write_record(None::<&[u8]>).map_err(failed)?;
        }
    }
    let text = writer
        .into_inner()
        .map_err(|error| ArrowError::CsvError(error.to_string()))?;
    Ok((text, left_out))
}

/// Returns the columns that are read, and those that are left out.
fn columns<'a>(
    fields: impl Iterator<Item = &'a Field>,
    pandas: Option<&str>,
) -> (Vec<Column>, Vec<LeftOut>) {
    let (mut columns, mut left_out) = (Vec::new(), Vec::new());
    for (place, field) in fields.enumerate() {
        let name = field.name();
        if is_unnamed_index(name, pandas) {
            left_out.push(LeftOut::index(name));
            continue;
        }
        let is_uuid = field
            .metadata()
            .get(EXTENSION)
            .is_some_and(|name| name == "arrow.uuid");
        let read = match field.data_type() {
            kind @ DataType::FixedSizeBinary(16) if is_uuid => Ok((ValueForm::Uuid, kind.clone())),
            kind => form(kind),
        };
        match read {
            Ok((form, kind)) => columns.push(Column {
                place,
                name: name.clone(),
                form,
                kind,
            }),
            Err(holds) => left_out.push(LeftOut::new(name, holds)),
        }
    }
    (columns, left_out)
}

/// Returns how values of a type are written, and the type that they are converted to first.
///
/// # Errors
/// A description of the values if their type is not supported.
fn form(kind: &DataType) -> Result<(ValueForm, DataType), &'static str> {
    use DataType as D;
    let plain = |kind| Ok((ValueForm::Plain, kind));
    let counts = |form| Ok((form, D::Int64));
    match kind {
        D::Dictionary(_, values) => form(values),
        D::RunEndEncoded(_, values) => form(values.data_type()),
        D::Boolean => plain(D::Boolean),
        D::Int8 | D::Int16 | D::Int32 | D::Int64 => plain(D::Int64),
        D::UInt8 | D::UInt16 | D::UInt32 | D::UInt64 => plain(D::UInt64),
        D::Float16 => Ok((ValueForm::Half, D::Float16)),
        D::Float32 => plain(D::Float32),
        D::Float64 => plain(D::Float64),
        // As text, decimal numbers have all decimals of their scale.
        D::Utf8
        | D::LargeUtf8
        | D::Utf8View
        | D::Null
        | D::Decimal32(..)
        | D::Decimal64(..)
        | D::Decimal128(..)
        | D::Decimal256(..) => plain(D::LargeUtf8),
        D::Date32 => counts(ValueForm::Date),
        D::Date64 => counts(ValueForm::Moment(Clock::new(1_000), None)),
        D::Time32(unit) | D::Time64(unit) => counts(ValueForm::TimeOfDay(clock(*unit))),
        D::Duration(unit) => counts(ValueForm::Duration(clock(*unit))),
        D::Timestamp(unit, zone) => {
            let zone = zone.as_ref();
            let zone = zone.map(|zone| Zone::of(zone).unwrap_or(Zone::Utc));
            counts(ValueForm::Moment(clock(*unit), zone))
        }
        D::Interval(_) => Err("intervals"),
        D::Struct(_) => Err("records"),
        D::Map(..) => Err("maps"),
        D::Union(..) => Err("values of any type"),
        D::Binary | D::FixedSizeBinary(_) | D::LargeBinary | D::BinaryView => Err("bytes"),
        D::List(_)
        | D::ListView(_)
        | D::FixedSizeList(..)
        | D::LargeList(_)
        | D::LargeListView(_) => Err("lists"),
    }
}

fn clock(unit: TimeUnit) -> Clock {
    Clock::new(match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    })
}

fn convert(batch: &RecordBatch, columns: &[Column]) -> Result<Vec<ArrayRef>, ArrowError> {
    let arrays = columns
        .iter()
        .map(|column| cast(batch.column(column.place), &column.kind));
    arrays.collect()
}

fn look(form: &mut ValueForm, array: &dyn Array) {
    if form.needs_look() {
        (0..array.len()).for_each(|row| with_cell(array, row, |cell| form.look(cell)));
    }
}

/// Calls `take` with a value of an array of one of the types that [`form`] returns.
fn with_cell(array: &dyn Array, row: usize, take: impl FnOnce(TypedCell<'_>)) {
    if array.is_null(row) {
        return take(TypedCell::Missing);
    }
    match array.data_type() {
        DataType::Boolean => take(TypedCell::Flag(array.as_boolean().value(row))),
        DataType::Int64 => {
            let number = array.as_primitive::<Int64Type>().value(row);
            take(TypedCell::Integer(number.into()));
        }
        DataType::UInt64 => {
            let number = array.as_primitive::<UInt64Type>().value(row);
            take(TypedCell::Integer(number.into()));
        }
        DataType::Float16 => {
            let number = array.as_primitive::<Float16Type>().value(row);
            take(TypedCell::Bytes(&number.to_le_bytes()));
        }
        DataType::Float32 => take(TypedCell::Single(
            array.as_primitive::<Float32Type>().value(row),
        )),
        DataType::Float64 => take(TypedCell::Double(
            array.as_primitive::<Float64Type>().value(row),
        )),
        DataType::LargeUtf8 => take(TypedCell::Bytes(
            array.as_string::<i64>().value(row).as_bytes(),
        )),
        DataType::FixedSizeBinary(_) => {
            take(TypedCell::Bytes(array.as_fixed_size_binary().value(row)));
        }
        _ => take(TypedCell::Missing),
    }
}

//! Tables between Python and the command, by the Arrow PyCapsule interface or as files.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, RecordBatchReader,
    StringArray,
    cast::AsArray,
    ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader},
    types::{
        TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
        TimestampSecondType,
    },
};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{ArrowError, DataType, Field, Schema as ArrowSchema, TimeUnit};
use fhaim_cli::in_process::Data;
use fhaim_domain::{Output, Schema};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyBytes, PyCapsule, PyCapsuleMethods},
};

const STREAM: &std::ffi::CStr = c"arrow_array_stream";

/// pandas' name for an index without a name, which is not a column.
const UNNAMED_INDEX: &str = "__index_level_";

/// A table argument of a function: an object with `__arrow_c_stream__`, or a file's path.
pub struct Input(pub Data);

impl FromPyObject<'_, '_> for Input {
    type Error = PyErr;

    fn extract(table: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if let Ok(path) = table.extract::<std::path::PathBuf>() {
            return Ok(Self(path.into()));
        }
        if !table.hasattr("__arrow_c_stream__")? {
            let kind = table.get_type().name()?.to_string();
            return Err(PyTypeError::new_err(format!(
                "{kind} is not a table: pass one of pandas, polars, pyarrow or DuckDB, or a CSV file's path"
            )));
        }
        let capsule = table.call_method0("__arrow_c_stream__")?;
        let pointer = capsule.cast::<PyCapsule>()?.pointer_checked(Some(STREAM))?;
        // SAFETY: a capsule of this name holds such a stream, which is moved out of it here. The capsule lives until
        // the end of this function.
        let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.as_ptr().cast()) };
        let text = table.py().detach(|| {
            let reader = RecordBatchStreamReader::try_new(stream)?;
            text(reader)
        });
        let text = text.map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Self(Data::in_memory("the table", text)))
    }
}

/// Converts records to CSV in UTF-8. A missing value becomes an empty field.
fn text(reader: RecordBatchStreamReader) -> Result<Vec<u8>, ArrowError> {
    let schema = reader.schema();
    let kept: Vec<_> = (0..schema.fields().len())
        .filter(|&column| !schema.field(column).name().starts_with(UNNAMED_INDEX))
        .collect();
    let batches = reader
        .map(|batch| batch?.project(&kept))
        .collect::<Result<Vec<_>, _>>()?;
    let schema = schema.project(&kept)?;
    let mut writer = csv::Writer::from_writer(Vec::new());
    let failed = |error: csv::Error| ArrowError::CsvError(error.to_string());
    writer
        .write_record(schema.fields().iter().map(|field| field.name()))
        .map_err(failed)?;
    let options: Vec<_> = (0..schema.fields().len())
        .map(|column| format(&batches, column))
        .collect();
    for batch in &batches {
        let columns = batch.columns().iter().zip(&options);
        let columns = columns
            .map(|(column, options)| ArrayFormatter::try_new(column.as_ref(), options))
            .collect::<Result<Vec<_>, _>>()?;
        for row in 0..batch.num_rows() {
            for (column, values) in batch.columns().iter().zip(&columns) {
                let value = cell(column.as_ref(), row, values)?;
                writer.write_field(value).map_err(failed)?;
            }
            writer.write_record(None::<&[u8]>).map_err(failed)?;
        }
    }
    writer
        .into_inner()
        .map_err(|error| ArrowError::CsvError(error.to_string()))
}

/// Converts a value to text. Whole numbers among floating-point ones are written without a fraction, because pandas
/// makes such columns of integers with gaps.
fn cell(column: &dyn Array, row: usize, values: &ArrayFormatter<'_>) -> Result<String, ArrowError> {
    if column.is_null(row) {
        return Ok(String::new());
    }
    let number = match column.data_type() {
        DataType::Float64 => column
            .as_primitive::<arrow_array::types::Float64Type>()
            .value(row),
        // By its text: the nearest f64 has digits that the value was not written with.
        DataType::Float32 => return Ok(plain(&values.value(row).try_to_string()?)),
        _ => return values.value(row).try_to_string(),
    };
    Ok(if number.is_nan() {
        String::new()
    } else {
        number.to_string()
    })
}

/// Returns a floating-point number without an empty fraction. NaN is missing.
fn plain(text: &str) -> String {
    match text.strip_suffix(".0") {
        Some(whole) => whole.to_owned(),
        None if text == "NaN" => String::new(),
        None => text.to_owned(),
    }
}

/// Returns how the values of a column are written. Times of day are left out if all are midnight.
fn format(batches: &[RecordBatch], column: usize) -> FormatOptions<'static> {
    let format = FormatOptions::new()
        .with_date_format(Some("%Y-%m-%d"))
        .with_time_format(Some("%H:%M:%S"));
    let midnight = batches
        .iter()
        .all(|batch| is_midnight(batch.column(column).as_ref()));
    let moment = if midnight {
        "%Y-%m-%d"
    } else {
        "%Y-%m-%d %H:%M:%S"
    };
    format
        .with_datetime_format(Some(moment))
        .with_timestamp_format(Some(moment))
        .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S"))
}

fn is_midnight(column: &dyn Array) -> bool {
    const DAY: i64 = 86_400;
    let whole = |values: &mut dyn Iterator<Item = Option<i64>>, day: i64| {
        values.flatten().all(|value| value % day == 0)
    };
    match column.data_type() {
        DataType::Timestamp(TimeUnit::Second, None) => whole(
            &mut column.as_primitive::<TimestampSecondType>().iter(),
            DAY,
        ),
        DataType::Timestamp(TimeUnit::Millisecond, None) => {
            let values = column.as_primitive::<TimestampMillisecondType>();
            whole(&mut values.iter(), DAY * 1_000)
        }
        DataType::Timestamp(TimeUnit::Microsecond, None) => {
            let values = column.as_primitive::<TimestampMicrosecondType>();
            whole(&mut values.iter(), DAY * 1_000_000)
        }
        DataType::Timestamp(TimeUnit::Nanosecond, None) => {
            let values = column.as_primitive::<TimestampNanosecondType>();
            whole(&mut values.iter(), DAY * 1_000_000_000)
        }
        DataType::Date64 => false,
        _ => true,
    }
}

/// A synthetic table, which pandas, polars, pyarrow and DuckDB accept directly.
#[pyclass(frozen, module = "fhaim._native")]
pub struct Table {
    batch: RecordBatch,
    text: Vec<u8>,
}

impl Table {
    /// Builds a table from CSV, with the types that its schema gives its columns.
    pub fn new(text: Vec<u8>, schema: &Schema) -> PyResult<Self> {
        let wrong = |error: &dyn std::fmt::Display| PyValueError::new_err(error.to_string());
        let mut reader = csv::Reader::from_reader(text.as_slice());
        let names = reader.headers().map_err(|error| wrong(&error))?.clone();
        let field = |name| schema.fields().iter().find(|field| field.name() == name);
        let known: Vec<_> = names.iter().map(field).collect();
        let mut columns = vec![Vec::new(); names.len()];
        for record in reader.into_records() {
            let record = record.map_err(|error| wrong(&error))?;
            for ((column, field), value) in columns.iter_mut().zip(&known).zip(&record) {
                let missing = field.map_or(value.is_empty(), |field| field.is_missing(value));
                column.push((!missing).then(|| value.to_owned()));
            }
        }
        let arrays: Vec<ArrayRef> = known
            .iter()
            .zip(columns)
            .map(|(field, values)| {
                array(&values, field.map(|field| field.output(schema.columns())))
            })
            .collect();
        let fields = names.iter().zip(&arrays);
        let fields: Vec<_> = fields
            .map(|(name, array)| Field::new(name, array.data_type().clone(), true))
            .collect();
        let batch = RecordBatch::try_new(Arc::new(ArrowSchema::new(fields)), arrays)
            .map_err(|error| wrong(&error))?;
        Ok(Self { batch, text })
    }
}

/// Returns the values of a column. They are texts if they do not have the schema's type, as numbers with a decimal
/// comma, thousands separators or a currency.
fn array(values: &[Option<String>], output: Option<Output>) -> ArrayRef {
    match output {
        Some(Output::Integer) => {
            parsed::<i64>(values).map(|all| Arc::new(Int64Array::from(all)) as ArrayRef)
        }
        Some(Output::Number) => {
            parsed::<f64>(values).map(|all| Arc::new(Float64Array::from(all)) as ArrayRef)
        }
        Some(Output::Text) | None => None,
    }
    .unwrap_or_else(|| Arc::new(StringArray::from(values.to_vec())))
}

fn parsed<T: std::str::FromStr>(values: &[Option<String>]) -> Option<Vec<Option<T>>> {
    let parse = |value: &Option<String>| match value {
        Some(text) => text.parse().ok().map(Some),
        None => Some(None),
    };
    values.iter().map(parse).collect()
}

#[pymethods]
impl Table {
    /// Returns the table as CSV in UTF-8, with a header.
    fn csv<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.text)
    }

    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        let schema = self.batch.schema();
        let names = schema.fields().iter().map(|field| field.name().clone());
        names.collect()
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A consumer may request types, but need not get them.
        let _ = requested_schema;
        let batches = std::iter::once(Ok(self.batch.clone()));
        let reader = RecordBatchIterator::new(batches, self.batch.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, STREAM)
    }
}

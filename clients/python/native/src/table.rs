//! Tables between Python and the command, by the Arrow PyCapsule interface or as files.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, DurationMicrosecondArray,
    DurationMillisecondArray, DurationNanosecondArray, Float64Array, Int64Array, RecordBatch,
    RecordBatchIterator, StringArray, Time32MillisecondArray, Time64MicrosecondArray,
    Time64NanosecondArray, TimestampMicrosecondArray, TimestampMillisecondArray,
    TimestampNanosecondArray,
    ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader},
};
use arrow_schema::{Field, Schema as ArrowSchema};
use fhaim_cli::in_process::Data;
use fhaim_domain::{Field as SchemaField, Output, Scalar, Schema, TickUnit};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyBytes, PyCapsule, PyCapsuleMethods, PyDict},
};

use crate::arrow;

const STREAM: &std::ffi::CStr = c"arrow_array_stream";

/// Digits of decimal numbers, which Arrow states for a column as Parquet does.
const PRECISION: u8 = 18;

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
        let table = with_named_index(&table)?;
        let capsule = table.call_method0("__arrow_c_stream__")?;
        let pointer = capsule.cast::<PyCapsule>()?.pointer_checked(Some(STREAM))?;
        // SAFETY: a capsule of this name holds such a stream, which is moved out of it here. The capsule lives until
        // the end of this function.
        let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.as_ptr().cast()) };
        let read = table.py().detach(|| {
            let reader = RecordBatchStreamReader::try_new(stream)?;
            arrow::csv(reader)
        });
        let (text, left_out) = read.map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Self(Data::in_memory("the table", text, left_out)))
    }
}

/// Returns a table of pandas with the named levels of its index as columns, which its Arrow stream may lack. Returns any
/// other table unchanged.
fn with_named_index<'py>(table: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if !table.hasattr("reset_index")? || !table.hasattr("index")? {
        return Ok(table.clone());
    }
    let mut named = Vec::new();
    for (level, name) in (0..).zip(table.getattr("index")?.getattr("names")?.try_iter()?) {
        if !name?.is_none() {
            let level: usize = level;
            named.push(level);
        }
    }
    if named.is_empty() {
        return Ok(table.clone());
    }
    let levels = PyDict::new(table.py());
    levels.set_item("level", named)?;
    // pandas refuses if a column has the same name.
    let with_columns = table.call_method("reset_index", (), Some(&levels));
    Ok(with_columns.unwrap_or_else(|_| table.clone()))
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
                let typed = field.and_then(|field| {
                    let field = schema.value_field(field);
                    let output = field.output(schema.columns());
                    array(field, output, &values)
                });
                typed.unwrap_or_else(|| Arc::new(StringArray::from(values)))
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

/// Returns the values of a column, or `None` if they are texts.
fn array(field: &SchemaField, output: Output, values: &[Option<String>]) -> Option<ArrayRef> {
    let scalar = |value: &Option<String>| match value {
        None => Some(None),
        Some(text) => field.scalar_of_text(output, text).map(Some),
    };
    let scalars: Vec<Option<Scalar>> = values.iter().map(scalar).collect::<Option<_>>()?;
    let integers = || {
        scalars.iter().map(|scalar| match scalar {
            Some(Scalar::Integer(integer)) => Some(*integer),
            _ => None,
        })
    };
    let zone = |is_utc: bool| is_utc.then_some("UTC");
    Some(match output {
        Output::Text | Output::Category => return None,
        Output::Flag => {
            let flags = scalars.iter().map(|scalar| match scalar {
                Some(Scalar::Flag(flag)) => Some(*flag),
                _ => None,
            });
            Arc::new(flags.collect::<BooleanArray>())
        }
        Output::Integer => Arc::new(integers().collect::<Int64Array>()),
        Output::Decimal(decimals) => {
            let unscaled = integers().map(|integer| integer.map(i128::from));
            let array = unscaled.collect::<Decimal128Array>();
            let scale = i8::try_from(decimals).ok()?;
            Arc::new(array.with_precision_and_scale(PRECISION, scale).ok()?)
        }
        Output::Number => {
            let numbers = scalars.iter().map(|scalar| match scalar {
                Some(Scalar::Number(number)) => Some(*number),
                _ => None,
            });
            Arc::new(numbers.collect::<Float64Array>())
        }
        Output::Date => Arc::new(small(integers()).collect::<Date32Array>()),
        Output::TimeOfDay(unit) => match unit {
            TickUnit::Millisecond => {
                Arc::new(small(integers()).collect::<Time32MillisecondArray>())
            }
            TickUnit::Microsecond => Arc::new(integers().collect::<Time64MicrosecondArray>()),
            TickUnit::Nanosecond => Arc::new(integers().collect::<Time64NanosecondArray>()),
        },
        Output::Duration(unit) => match unit {
            TickUnit::Millisecond => Arc::new(integers().collect::<DurationMillisecondArray>()),
            TickUnit::Microsecond => Arc::new(integers().collect::<DurationMicrosecondArray>()),
            TickUnit::Nanosecond => Arc::new(integers().collect::<DurationNanosecondArray>()),
        },
        Output::Timestamp { unit, is_utc } => match unit {
            TickUnit::Millisecond => {
                let array = integers().collect::<TimestampMillisecondArray>();
                Arc::new(array.with_timezone_opt(zone(is_utc)))
            }
            TickUnit::Microsecond => {
                let array = integers().collect::<TimestampMicrosecondArray>();
                Arc::new(array.with_timezone_opt(zone(is_utc)))
            }
            TickUnit::Nanosecond => {
                let array = integers().collect::<TimestampNanosecondArray>();
                Arc::new(array.with_timezone_opt(zone(is_utc)))
            }
        },
    })
}

/// Days of years with four digits, and milliseconds of a day.
fn small(integers: impl Iterator<Item = Option<i64>>) -> impl Iterator<Item = Option<i32>> {
    integers.map(|integer| integer.and_then(|integer| i32::try_from(integer).ok()))
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

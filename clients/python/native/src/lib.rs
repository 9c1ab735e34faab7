//! The command `fhaim` as a Python module, `fhaim._native`: tables are drafted, modelled, encrypted and uploaded in the
//! process that has them, with the interpreter's lock released.
//!
//! Every function calls `tell(phase, done, total)` if it is given, stops at Ctrl-C, and returns its remarks last.
//! Randomness comes only from the operating system: no function takes a seed.

mod arrow;
mod table;
mod work;

use std::path::PathBuf;

use fhaim_cli::in_process::{
    self, Done, Endpoints, Evaluate, Fit, RecordBound, Sample, SchemaDraftRequest, Secret,
    UploadRequest,
};
use fhaim_domain::Schema;
use pyo3::{prelude::*, types::PyBytes};

use crate::{
    table::{Input, Table},
    work::{Refused, follow, refused},
};

/// How tables are read.
#[pyclass(frozen, module = "fhaim._native")]
struct Reading(in_process::ReadingOptions);

#[pymethods]
impl Reading {
    #[new]
    #[pyo3(signature = (*, missing=Vec::new(), clamp=false, ignore_columns=false))]
    fn new(missing: Vec<String>, clamp: bool, ignore_columns: bool) -> Self {
        Self(in_process::ReadingOptions {
            missing,
            clamp,
            ignore_columns,
        })
    }
}

/// A schema as JSON, notes on its columns, proposed rules as JSON, and remarks.
type Drafted = (String, Vec<String>, String, Vec<String>);

/// Drafts a schema.
#[pyfunction]
#[pyo3(signature = (table, *, name, target, leave_out, missing, epsilon, delta, yes, tell))]
#[expect(clippy::too_many_arguments, reason = "they have names in Python")]
fn draft(
    py: Python<'_>,
    table: Input,
    name: Option<String>,
    target: Option<String>,
    leave_out: Vec<String>,
    missing: Vec<String>,
    epsilon: Option<f64>,
    delta: f64,
    yes: bool,
    tell: Option<&Bound<'_, PyAny>>,
) -> PyResult<Drafted> {
    let work = SchemaDraftRequest {
        table: table.0,
        name,
        target,
        leave_out,
        missing,
        epsilon,
        delta,
        yes,
    };
    let done = follow(py, tell, |listener| work.run(listener))?;
    let in_process::Drafted {
        schema,
        notes,
        rules,
    } = done.result;
    Ok((schema, notes, rules, done.remarks))
}

/// Returns a schema with accepted rules, as JSON. The schema and the rules are JSON as `draft` returns them.
#[pyfunction]
fn accept(schema: &str, rules: &str) -> PyResult<String> {
    in_process::accept_rules(schema, rules).map_err(refused)
}

/// A model's bytes, its ledger and a summary as JSON, and remarks.
type Fitted<'py> = (Bound<'py, PyBytes>, String, String, Vec<String>);

/// Returns a model's bytes, its ledger and a summary as JSON, and remarks.
#[pyfunction]
#[pyo3(signature = (table, schema, *, epsilon, delta, mechanism, encrypted, record_bound, model_mb,
    target_weight, memory_mb, yes, reading, tell))]
#[expect(clippy::too_many_arguments, reason = "they have names in Python")]
fn fit<'py>(
    py: Python<'py>,
    table: Input,
    schema: String,
    epsilon: f64,
    delta: f64,
    mechanism: String,
    encrypted: bool,
    record_bound: Option<u64>,
    model_mb: usize,
    target_weight: u32,
    memory_mb: Option<u64>,
    yes: bool,
    reading: &Reading,
    tell: Option<&Bound<'_, PyAny>>,
) -> PyResult<Fitted<'py>> {
    let work = Fit {
        table: table.0,
        schema,
        epsilon,
        delta,
        mechanism,
        encrypted,
        record_bound,
        model_mb,
        target_weight,
        memory_mb,
        yes,
        reading: reading.0.clone(),
        program: "fhaim for Python".to_owned(),
    };
    let Done { result, remarks } = follow(py, tell, |listener| work.run(listener))?;
    let model = PyBytes::new(py, &result.model);
    Ok((model, result.ledger, result.summary, remarks))
}

/// Returns records drawn from a model, and remarks.
#[pyfunction]
#[pyo3(signature = (model, schema, *, records, conditions, model_mb, tell))]
fn sample(
    py: Python<'_>,
    model: Vec<u8>,
    schema: String,
    records: Option<usize>,
    conditions: Option<String>,
    model_mb: usize,
    tell: Option<&Bound<'_, PyAny>>,
) -> PyResult<(Table, Vec<String>)> {
    let columns = read_schema(&schema)?;
    let work = Sample {
        model,
        schema,
        records,
        conditions,
        model_mb,
    };
    let done = follow(py, tell, |listener| work.run(listener))?;
    Ok((Table::new(done.result, &columns)?, done.remarks))
}

/// Returns a synthetic table from CSV that a service drew, with the types of its schema.
#[pyfunction]
#[pyo3(name = "table")]
fn typed(text: Vec<u8>, schema: &str) -> PyResult<Table> {
    Table::new(text, &read_schema(schema)?)
}

/// Returns a report as JSON, the same report as a page, and remarks.
#[pyfunction]
#[pyo3(signature = (real, synthetic, schema, *, held_out, reading, tell))]
fn evaluate(
    py: Python<'_>,
    real: Input,
    synthetic: Input,
    schema: String,
    held_out: Option<Input>,
    reading: &Reading,
    tell: Option<&Bound<'_, PyAny>>,
) -> PyResult<(String, String, Vec<String>)> {
    let work = Evaluate {
        real: real.0,
        synthetic: synthetic.0,
        held_out: held_out.map(|table| table.0),
        schema,
        reading: reading.0.clone(),
    };
    let done = follow(py, tell, |listener| work.run(listener))?;
    Ok((done.result.report, done.result.page, done.remarks))
}

/// Returns the most records of any table whose upload looks the same as this one's, and remarks.
#[pyfunction]
#[pyo3(signature = (table, schema, *, reading, tell))]
fn record_bound(
    py: Python<'_>,
    table: Input,
    schema: String,
    reading: &Reading,
    tell: Option<&Bound<'_, PyAny>>,
) -> PyResult<(u64, Vec<String>)> {
    let work = RecordBound {
        table: table.0,
        schema,
        reading: reading.0.clone(),
    };
    let done = follow(py, tell, |listener| work.run(listener))?;
    Ok((done.result, done.remarks))
}

/// Encrypts a table in this process and uploads it, or its missing objects. Returns remarks.
#[pyfunction]
#[pyo3(signature = (table, *, dataset, generation, computation, crypto, witness, api_key, folder, yes, reading, tell))]
#[expect(clippy::too_many_arguments, reason = "they have names in Python")]
fn upload(
    py: Python<'_>,
    table: Input,
    dataset: String,
    generation: String,
    computation: String,
    crypto: String,
    witness: Option<String>,
    api_key: String,
    folder: PathBuf,
    yes: bool,
    reading: &Reading,
    tell: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<String>> {
    let work = UploadRequest {
        table: table.0,
        dataset,
        endpoints: Endpoints {
            generation,
            computation,
            crypto,
            witness,
        },
        api_key: Secret(api_key),
        folder,
        yes,
        reading: reading.0.clone(),
    };
    let done = follow(py, tell, |listener| work.run(listener))?;
    Ok(done.remarks)
}

/// Removes a dataset that released nothing, and cannot, from the usage history. Returns remarks.
#[pyfunction]
fn forget_dataset(dataset: &str) -> PyResult<Vec<String>> {
    in_process::forget_dataset(dataset).map_err(refused)
}

fn read_schema(json: &str) -> PyResult<Schema> {
    Schema::from_json("the schema", json.as_bytes())
        .map_err(|error| refused(fhaim_cli::Error::from(error).into()))
}

/// The command `fhaim` in this process.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::{
        Reading, Refused, Table, accept, draft, evaluate, fit, forget_dataset, record_bound,
        sample, typed, upload,
    };
}

//! The public functions of this crate, as the checks use them.

use std::{fs::File, path::Path};

use fhaim_domain::{Error, ReadOptions, Schema, Table, read_csv};
use fhaim_intake::{Given, InferOptions, TableText, infer_schema, open_text, way_out};

use crate::check::drafted::{Drafted, Intake};

/// Drafts and reads CSV tables without options.
pub struct Csv;

/// Opens a table. The errors and remarks name the flags that help, as the command's do.
fn open(path: &Path) -> Result<TableText<'static>, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    open_text(file, &Given::default(), |_| ()).map_err(|error| error.to_string())
}

/// Returns an error with its ways out, as the command shows them.
fn told(error: &Error) -> String {
    let ways: Vec<&str> = match error {
        Error::Problems(problems) => problems.errors().filter_map(way_out).collect(),
        one => way_out(one).into_iter().collect(),
    };
    format!("{error} ({})", ways.join("; "))
}

impl Intake for Csv {
    fn draft(&self, path: &Path) -> Result<Drafted, String> {
        let table = open(path)?;
        let options = InferOptions {
            dialect: table.dialect,
            ..InferOptions::new(path.display().to_string(), "table")
        };
        let draft = infer_schema(table.text, &options).map_err(|error| told(&error))?;
        let notes = draft.notes().iter().map(ToString::to_string).collect();
        let said = |remark: fhaim_intake::Remark| match remark.flag {
            Some(flag) => format!("{}; use {flag} to set it", remark.text),
            None => remark.text,
        };
        let mut remarks: Vec<String> = table.remarks.into_iter().map(said).collect();
        remarks.extend(draft.remarks);
        Ok(Drafted::new(draft.schema.to_json(), notes, remarks))
    }

    fn read(&self, schema_json: &str, path: &Path) -> Result<Table, String> {
        let table = open(path)?;
        let schema = Schema::from_json("draft.json", schema_json.as_bytes());
        let schema = schema.map_err(|error| error.to_string())?;
        let options = ReadOptions {
            dialect: table.dialect,
            ..ReadOptions::new(path.display().to_string())
        };
        let reading = read_csv(schema, table.text, &options).map_err(|error| told(&error))?;
        Ok(reading.table)
    }
}

//! The public functions of this crate, as the checks use them.

use std::{fs, path::Path};

use fhaim_domain::{ReadOptions, Schema, Table, read_csv};
use fhaim_intake::{Dialect, Encoding, InferOptions, Transcoder, infer_schema};

use crate::check::drafted::{Drafted, Intake};

/// Drafts and reads CSV tables without options.
pub struct Csv;

impl Intake for Csv {
    fn draft(&self, path: &Path) -> Result<Drafted, String> {
        let bytes = fs::read(path).map_err(|error| error.to_string())?;
        let dialect = Dialect::detect(&bytes);
        let options = InferOptions {
            delimiter: dialect.delimiter,
            ..InferOptions::new(path.display().to_string(), "table")
        };
        let text = Transcoder::new(&bytes[..], dialect.encoding);
        let draft = infer_schema(text, &options).map_err(|error| error.to_string())?;
        let notes = draft.notes().iter().map(ToString::to_string).collect();
        let mut remarks = remarks(dialect);
        remarks.extend(draft.remarks);
        Ok(Drafted::new(draft.schema.to_json(), notes, remarks))
    }

    fn read(&self, schema_json: &str, path: &Path) -> Result<Table, String> {
        let bytes = fs::read(path).map_err(|error| error.to_string())?;
        let dialect = Dialect::detect(&bytes);
        let schema = Schema::from_json("draft.json", schema_json.as_bytes());
        let schema = schema.map_err(|error| error.to_string())?;
        let options = ReadOptions {
            delimiter: dialect.delimiter,
            ..ReadOptions::new(path.display().to_string())
        };
        let text = Transcoder::new(&bytes[..], dialect.encoding);
        let reading = read_csv(schema, text, &options).map_err(|error| error.to_string())?;
        Ok(reading.table)
    }
}

/// The remarks that the command prints about a dialect.
fn remarks(dialect: Dialect) -> Vec<String> {
    let mut remarks = Vec::new();
    if dialect.delimiter != b',' {
        let shown = char::from(dialect.delimiter).escape_default();
        remarks.push(format!(
            "detected the field delimiter '{shown}'; use --delimiter to set another"
        ));
    }
    if dialect.encoding != Encoding::Utf8 {
        remarks.push(format!("read as {}", dialect.encoding));
    }
    remarks
}

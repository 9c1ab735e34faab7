//! Files of any encoding and dialect, read as UTF-8.

use std::io::Read;

use fhaim_intake::{Encoding, Family, TableText, TextError, open_text};
use serde::Serialize;

use crate::Error;
use crate::request::Format;

/// How a file is written, and its first records.
#[derive(Debug, Serialize)]
pub(crate) struct Found {
    /// Character between fields.
    delimiter: char,
    /// Name of the encoding in the WHATWG's Encoding Standard.
    encoding: &'static str,
    /// Unusual properties that were detected, as sentences.
    remarks: Vec<String>,
    /// The names of the columns; none if the header is broken.
    header: Vec<String>,
    /// The first records.
    samples: Vec<Vec<String>>,
}

impl Found {
    /// Detects what `format` leaves open.
    ///
    /// # Errors
    /// The stream cannot be read, or is no text.
    pub(crate) fn read(input: impl Read, format: &Format) -> Result<Self, Error> {
        let table = opened(input, format)?;
        let remarks = table.remarks.into_iter().map(|remark| remark.text);
        Ok(Self {
            delimiter: char::from(table.dialect.delimiter),
            encoding: table.encoding.unwrap_or(Encoding::UTF_8).name(),
            remarks: remarks.collect(),
            header: table.header,
            samples: table.samples,
        })
    }
}

/// Opens a stream as the text of a table.
///
/// # Errors
/// The stream cannot be read, or is no text.
pub(crate) fn opened<'a>(input: impl Read + 'a, format: &Format) -> Result<TableText<'a>, Error> {
    open_text(input, &format.given()?, |_| ()).map_err(|error| match error {
        TextError::Io(source) => Error::Read(source),
        TextError::Type(found) => Error::Type {
            file: format.file.clone(),
            hint: match found.family {
                Family::Other | Family::Gzip => "",
                Family::Workbook | Family::Parquet | Family::Zstd => {
                    ", or use the command line, which reads such files"
                }
            },
            problem: found.to_string(),
        },
        other => Error::Type {
            file: format.file.clone(),
            problem: other.to_string(),
            hint: "",
        },
    })
}

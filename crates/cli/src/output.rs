//! What a command writes: files, and standard output.

use std::io::{self, Write};

pub use fhaim_files::{Staged, check_distinct, commit_all};
use serde::Serialize;

use crate::error::Error;

/// Prints a text to standard output.
pub fn print(text: &str) -> Result<(), Error> {
    let mut output = io::stdout().lock();
    let written = output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush());
    written.map_err(|source| Error::Write {
        path: "standard output".into(),
        source,
    })
}

/// Prints a value to standard output as indented JSON.
pub fn print_json(value: &impl Serialize) -> Result<(), Error> {
    print(&to_json(value)?)
}

/// Prints a value to standard output as one line of JSON.
pub fn print_json_line(value: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_string(value).map_err(|error| Error::Write {
        path: "JSON".into(),
        source: error.into(),
    })?;
    print(&format!("{text}\n"))
}

/// A value as indented JSON with a newline at the end.
pub fn to_json(value: &impl Serialize) -> Result<String, Error> {
    let mut text = serde_json::to_string_pretty(value).map_err(|error| Error::Write {
        path: "JSON".into(),
        source: error.into(),
    })?;
    text.push('\n');
    Ok(text)
}

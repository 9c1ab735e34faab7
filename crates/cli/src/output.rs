//! Output of a command: files and standard output.

pub use fhaim_files::{Existing, OverwriteArguments, StagedFile, check_distinct, commit_all};
use serde::Serialize;

use crate::error::Error;

/// Prints a text to standard output, or to standard error if a result goes to standard output.
pub fn print(text: &str) -> Result<(), Error> {
    Ok(fhaim_files::print(text)?)
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

/// Formats a value as indented JSON with a newline at the end.
pub fn to_json(value: &impl Serialize) -> Result<String, Error> {
    let mut text = serde_json::to_string_pretty(value).map_err(|error| Error::Write {
        path: "JSON".into(),
        source: error.into(),
    })?;
    text.push('\n');
    Ok(text)
}

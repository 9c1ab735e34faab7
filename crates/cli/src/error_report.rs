//! Errors as JSON, for programs that run the command with `--json`.

use clap::error::{ContextKind, ContextValue};
use fhaim_domain::{Error as TableError, HeaderProblem};
use serde::Serialize;

use crate::error::Error;

/// An error as one JSON object. `docs/reference/errors.md` describes it.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct ErrorReport {
    /// The kind of the error. Programs should use it, not the message.
    pub kind: String,
    /// The message, as people see it.
    pub message: String,
    /// The place of the error, as far as it is known.
    #[serde(skip_serializing_if = "Place::is_unknown")]
    pub place: Place,
    /// What the user can do, unless the message says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub way_out: Option<String>,
    /// The problems of a table that has several, one for each column and kind.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<TableProblem>,
    /// The exit code of the command.
    pub exit_code: u8,
}

/// One of several problems of a table.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct TableProblem {
    /// The message.
    pub message: String,
    /// The place of its first occurrence.
    pub place: Place,
    /// What the user can do, unless the message says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub way_out: Option<&'static str>,
}

/// A place in the input of a command.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Name of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Record, counted from 1 without the header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<u64>,
    /// Line of the file, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// Name of the column.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// Flag or argument of the command line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flag: Option<String>,
    /// Address of a service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

impl Place {
    fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

impl From<&Error> for ErrorReport {
    fn from(error: &Error) -> Self {
        let problems = match error {
            Error::Table(TableError::Problems(problems)) => {
                problems.errors().map(table_problem).collect()
            }
            _ => Vec::new(),
        };
        Self {
            kind: error.kind(),
            message: error.to_string(),
            place: place(error),
            way_out: error.way_out().map(Into::into),
            problems,
            exit_code: error.exit_code(),
        }
    }
}

impl ErrorReport {
    /// Describes an error of the arguments.
    pub fn of_usage(error: &clap::Error, message: String, way_out: &str) -> Self {
        let flag = match error.get(ContextKind::InvalidArg) {
            // Without the names of values, such as `--epsilon <E>`.
            Some(ContextValue::String(flag)) => flag.split_whitespace().next().map(str::to_owned),
            Some(ContextValue::Strings(flags)) => flags
                .first()
                .and_then(|flag| flag.split_whitespace().next())
                .map(str::to_owned),
            _ => None,
        };
        let flag = flag.filter(|flag| flag.starts_with('-') || flag.starts_with('<'));
        Self {
            kind: "usage".to_owned(),
            message,
            place: Place {
                flag,
                ..Place::default()
            },
            way_out: Some(way_out.to_owned()),
            problems: Vec::new(),
            exit_code: 2,
        }
    }

    /// Returns the report as one line of JSON.
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|_| format!("{self:?}"))
    }
}

fn table_problem(error: &TableError) -> TableProblem {
    TableProblem {
        message: error.to_string(),
        place: table_place(error),
        way_out: crate::error::table_way_out(error),
    }
}

fn place(error: &Error) -> Place {
    let of_file = |path: &std::path::Path| Place {
        file: Some(path.to_string_lossy().into_owned()),
        ..Place::default()
    };
    match error {
        Error::Table(error) | Error::Files(fhaim_files::Error::Table(error)) => table_place(error),
        Error::Read { path, .. } | Error::Content { path, .. } | Error::Write { path, .. } => {
            of_file(path)
        }
        Error::Unfitted { releases, .. } => of_file(releases),
        Error::Files(error) => error.path().map_or_else(Place::default, of_file),
        #[cfg(feature = "server")]
        Error::Remote(
            fhaim_sdk::Error::Unreachable { address, .. }
            | fhaim_sdk::Error::Answer { address, .. },
        ) => Place {
            address: Some(address.clone()),
            ..Place::default()
        },
        _ => Place::default(),
    }
}

/// Returns the place of an error of a table or schema.
fn table_place(error: &TableError) -> Place {
    let (mut place, file) = (Place::default(), table_file(error));
    place.file = file.map(str::to_owned);
    match error {
        TableError::Ragged { row, line, .. }
        | TableError::Total { row, line, .. }
        | TableError::Constraint { row, line, .. }
        | TableError::Blank { row, line, .. } => {
            (place.row, place.line) = (Some(*row), Some(*line));
        }
        TableError::Cell {
            row, line, column, ..
        } => {
            (place.row, place.line) = (Some(*row), Some(*line));
            place.column = Some(column.clone());
        }
        TableError::Header { problem, .. } => place.column = header_column(problem),
        TableError::MissingToken { column, .. } | TableError::NearUnique { column, .. } => {
            place.column = Some(column.clone());
        }
        TableError::NoSuchColumns { columns, .. } => place.column = columns.first().cloned(),
        TableError::Problems(problems) => {
            return problems
                .errors()
                .next()
                .map(table_place)
                .unwrap_or_default();
        }
        _ => {}
    }
    place
}

fn table_file(error: &TableError) -> Option<&str> {
    match error {
        TableError::Schema { file, .. }
        | TableError::Header { file, .. }
        | TableError::Ragged { file, .. }
        | TableError::Total { file, .. }
        | TableError::Cell { file, .. }
        | TableError::Constraint { file, .. }
        | TableError::Empty { file }
        | TableError::Records { file, .. }
        | TableError::Length { file, .. }
        | TableError::Blank { file, .. }
        | TableError::NearUnique { file, .. }
        | TableError::NoSuchColumns { file, .. }
        | TableError::Io { file, .. } => Some(file),
        _ => None,
    }
}

fn header_column(problem: &HeaderProblem) -> Option<String> {
    match problem {
        HeaderProblem::Repeated(name)
        | HeaderProblem::Missing(name)
        | HeaderProblem::Unlisted(name) => Some(name.clone()),
        _ => None,
    }
}

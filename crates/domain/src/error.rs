//! What can go wrong between a file and a coded table.

use std::io;

use crate::SchemaProblem;

/// An error of this crate. Errors about cells quote the cell: they are for the holder of the
/// table alone, and must not be logged or sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A schema is refused.
    #[error("{file}: {problem}")]
    Schema {
        /// Name of the schema's file.
        file: String,
        /// What is wrong.
        #[source]
        problem: SchemaProblem,
    },
    /// A coded table does not fit its schema.
    #[error(transparent)]
    Codes(#[from] CodesProblem),
    /// Reading or writing failed.
    #[error("{file}: {source}")]
    Io {
        /// Name of the file.
        file: String,
        /// What the system says.
        source: io::Error,
    },
}

/// Why codes do not make a table of a schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodesProblem {
    /// Not one list of codes per column.
    #[error("{found} columns of codes for a schema of {expected} columns")]
    Columns {
        /// Lists given.
        found: usize,
        /// Columns of the schema.
        expected: usize,
    },
    /// Columns of different lengths.
    #[error("column {column:?} has {found} records where the first has {expected}")]
    Length {
        /// The column's name.
        column: String,
        /// Its records.
        found: usize,
        /// Records of the first column.
        expected: usize,
    },
    /// A code outside the column's domain.
    #[error("row {row}, column {column:?}: code {code} of a domain of {size} values")]
    Code {
        /// Record, counted from 1.
        row: usize,
        /// The column's name.
        column: String,
        /// The code.
        code: u32,
        /// Values of the column.
        size: usize,
    },
    /// A table without records.
    #[error("the table has no records")]
    Empty,
    /// An attribute that the table does not have.
    #[error("there is no attribute {attribute} in a table of {attributes}")]
    Attribute {
        /// The index asked for.
        attribute: usize,
        /// Attributes of the table.
        attributes: usize,
    },
    /// A marginal whose cells cannot be counted in memory.
    #[error("a marginal over attributes {0:?} has too many cells")]
    Cells(Vec<usize>),
    /// A row that the table does not have.
    #[error("there is no row {row} in a table of {records}")]
    Row {
        /// The record asked for, counted from 0.
        row: usize,
        /// Records of the table.
        records: usize,
    },
}

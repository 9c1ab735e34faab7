//! What can go wrong between a file and a coded table.

use std::io;

use crate::{SchemaProblem, counted};

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
    /// The header of a table is refused.
    #[error("{file}: {problem}")]
    Header {
        /// Name of the table's file.
        file: String,
        /// What is wrong.
        #[source]
        problem: HeaderProblem,
    },
    /// A record has more or fewer fields than the header.
    #[error(
        "{file}: row {row} (line {line}): {} where the header has {expected}",
        counted(*.found, "field")
    )]
    Ragged {
        /// Name of the table's file.
        file: String,
        /// Record, counted from 1, the header left out.
        row: u64,
        /// Line of the file where the record begins, counted from 1.
        line: u64,
        /// Fields of the record.
        found: usize,
        /// Fields of the header.
        expected: usize,
    },
    /// A cell is refused.
    #[error("{file}: row {row} (line {line}), column {column:?}: {problem}")]
    Cell {
        /// Name of the table's file.
        file: String,
        /// Record, counted from 1, the header left out.
        row: u64,
        /// Line of the file where the record begins, counted from 1.
        line: u64,
        /// Name of the column.
        column: String,
        /// What is wrong.
        #[source]
        problem: CellProblem,
    },
    /// A record breaks a constraint of the schema.
    #[error("{file}: row {row} (line {line}) breaks a constraint of the schema: {constraint}")]
    Constraint {
        /// Name of the table's file.
        file: String,
        /// Record, counted from 1, the header left out.
        row: u64,
        /// Line of the file where the record begins, counted from 1.
        line: u64,
        /// The constraint, in words.
        constraint: String,
    },
    /// The table has a header and nothing else.
    #[error("{file}: the table has no records")]
    Empty {
        /// Name of the table's file.
        file: String,
    },
    /// More records than the reader may take.
    #[error("{file}: the table has more than {limit} records")]
    Records {
        /// Name of the table's file.
        file: String,
        /// The bound.
        limit: usize,
    },
    /// A record longer than the reader may hold.
    #[error("{file}: the record after row {row} is longer than {limit} bytes (a quote left open?)")]
    Length {
        /// Name of the table's file.
        file: String,
        /// Records read before.
        row: u64,
        /// The bound in bytes.
        limit: usize,
    },
    /// A blank line in a table of one column: a missing value or nothing, who can tell.
    #[error("{file}: a blank line before row {row} (line {line}): write a missing value as \"\"")]
    Blank {
        /// Name of the table's file.
        file: String,
        /// Record, counted from 1, the header left out.
        row: u64,
        /// Line of the file where the record begins, counted from 1.
        line: u64,
    },
    /// The text for missing values would be read back as a value.
    #[error("column {column:?}: {token:?} cannot stand for missing values: it is a value")]
    MissingToken {
        /// Name of the column.
        column: String,
        /// The text.
        token: String,
    },
    /// More records than there are different identifiers.
    #[error(
        "column {column:?}: its pattern has {capacity} identifiers for {records} records: write \
         longer ones"
    )]
    Identifiers {
        /// Name of the column.
        column: String,
        /// Different identifiers.
        capacity: u64,
        /// Records to write.
        records: u64,
    },
    /// Columns that were named do not exist.
    #[error("{file}: there is no column {}", quoted(.columns))]
    NoSuchColumns {
        /// Name of the table's file.
        file: String,
        /// The names.
        columns: Vec<String>,
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

fn quoted(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    names.join(", ")
}

impl Error {
    /// An error that names the columns that a table lacks, if there are any.
    pub(crate) fn no_such_columns<'a>(
        file: &str,
        columns: impl Iterator<Item = &'a String>,
    ) -> Result<(), Self> {
        let columns: Vec<String> = columns.cloned().collect();
        match columns.is_empty() {
            true => Ok(()),
            false => Err(Self::NoSuchColumns {
                file: file.to_owned(),
                columns,
            }),
        }
    }
}

/// Why the header of a table is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderProblem {
    /// There is nothing to read.
    #[error("the file is empty: it has no header")]
    Absent,
    /// A column's name is not UTF-8.
    #[error("the name of column {0} is not UTF-8")]
    NotUtf8(usize),
    /// Two columns of the same name.
    #[error("column {0:?} appears twice in the header")]
    Repeated(String),
    /// A column of the schema is not there.
    #[error("the schema's column {0:?} is missing from the header")]
    Missing(String),
    /// A column that the schema does not have.
    #[error("column {0:?} is not in the schema")]
    Unlisted(String),
    /// More columns than a schema may have.
    #[error("the header has {found} columns (at most {limit})")]
    Columns {
        /// Columns of the header.
        found: usize,
        /// The bound.
        limit: usize,
    },
}

/// Why a cell is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CellProblem {
    /// The bytes are not text.
    #[error("not UTF-8")]
    NotUtf8,
    /// A value is missing in a column that is not nullable.
    #[error("the value is missing, and the schema does not say that the column is nullable")]
    Missing,
    /// Not a finite number.
    #[error("{0:?} is not a number")]
    NotANumber(String),
    /// A fraction in a column of integers.
    #[error("{0:?} is not an integer, and the schema says that the column holds integers")]
    NotAnInteger(String),
    /// A number outside the schema's limits.
    #[error("{value:?} is outside the schema's range from {min} to {max}")]
    OutOfRange {
        /// The cell.
        value: String,
        /// The lower limit.
        min: f64,
        /// The upper limit.
        max: f64,
    },
    /// Not a date or time of the column's format.
    #[error("{value:?} is not a date or time written as {example:?} is")]
    NotAMoment {
        /// The cell.
        value: String,
        /// A moment in the column's format.
        example: String,
    },
    /// A date outside the schema's limits.
    #[error("{value:?} is outside the schema's range {range}")]
    OutOfTime {
        /// The cell.
        value: String,
        /// From the first moment of the first day to that of the last, in words.
        range: String,
    },
    /// A moment too early or too late after the one that it is relative to.
    #[error(
        "{value:?} is {units} units after the column that it is relative to, and the schema has \
         {min} to {max}"
    )]
    OutOfLapse {
        /// The cell.
        value: String,
        /// Units between the two.
        units: i64,
        /// The fewest.
        min: i64,
        /// The most.
        max: i64,
    },
    /// A category that the schema does not have.
    #[error("{0:?} is not one of the schema's categories")]
    UnknownCategory(String),
    /// A category that the schema does not have, and no category to put it into.
    #[error(
        "{0:?} is not one of the schema's categories, and the schema declares no `other` category"
    )]
    NoOther(String),
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
    /// One-hot columns that do not have exactly one 1 per record and attribute.
    #[error("row {row}, column {column:?}: the one-hot values are not a single 1 among 0s")]
    OneHot {
        /// Record, counted from 1.
        row: usize,
        /// The column's name.
        column: String,
    },
}

//! Errors of reading, coding and writing tables.

use std::{
    error::Error as StdError,
    fmt::{self, Display, Formatter},
    io,
};

use crate::{SchemaProblem, counted, limits::FEW_RECORDS, scan::FieldProblem};

/// An error of this crate. Errors about cells quote the cell: they are for the holder of the table
/// only, and must not be logged or sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A schema is rejected.
    #[error("{file}: {problem}")]
    Schema {
        /// Name of the schema's file.
        file: String,
        /// The problem with the schema.
        #[source]
        problem: SchemaProblem,
    },
    /// The header of a table is rejected.
    #[error("{file}: {problem}")]
    Header {
        /// Name of the table's file.
        file: String,
        /// The problem with the header.
        #[source]
        problem: HeaderProblem,
    },
    /// A record has more or fewer fields than the header.
    #[error(
        "{file}: row {row} (line {line}): {} where the header has {expected}{}",
        counted(*.found, "field"),
        footer_words(*.footer)
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
        /// Fields of the header, and one more if rows end with a delimiter.
        expected: usize,
        /// Number of rows from this one to the end of the table, if all of them have a wrong number of fields. They
        /// may be a footer, or the file may be cut off.
        footer: Option<u64>,
    },
    /// The last row is a total of the rows above.
    #[error(
        "{file}: row {row} (line {line}), the last one, begins with {word:?}: it looks like a total of \
         the rows above, which is not a record"
    )]
    Total {
        /// Name of the table's file.
        file: String,
        /// Record, counted from 1, the header left out.
        row: u64,
        /// Line of the file where the record begins, counted from 1.
        line: u64,
        /// The word, in lower case.
        word: &'static str,
    },
    /// A cell is rejected.
    #[error("{file}: row {row} (line {line}), column {column:?}: {problem}")]
    Cell {
        /// Name of the table's file.
        file: String,
        /// Record, counted from 1, the header left out.
        row: u64,
        /// Line of the file where the record begins, counted from 1. For a problem of quotes, the line of the quote.
        line: u64,
        /// Name of the column.
        column: String,
        /// The problem with the cell.
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
    /// The table has a header but no records.
    #[error("{file}: the table has no records")]
    Empty {
        /// Name of the table's file.
        file: String,
    },
    /// The table has more records than the reader accepts.
    #[error("{file}: the table has more than {limit} records")]
    Records {
        /// Name of the table's file.
        file: String,
        /// The limit.
        limit: usize,
    },
    /// A record is longer than the reader accepts.
    #[error("{file}: the record after row {row} is longer than {limit} bytes")]
    Length {
        /// Name of the table's file.
        file: String,
        /// Number of records read before it.
        row: u64,
        /// The limit in bytes.
        limit: usize,
    },
    /// A blank line in a table of one column, which may be a missing value or nothing.
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
    /// The schema, which is public, lists values that hardly two records share.
    #[error(
        "{file}: column {column:?}: the schema lists {values} values that occur in the table, and most \
         of them occur in fewer than {few} records each. A schema is public: make the column an \
         `identifier`, leave it out with `left-out`, or list a complete public code book",
        few = FEW_RECORDS
    )]
    NearUnique {
        /// Name of the table's file.
        file: String,
        /// Name of the column.
        column: String,
        /// Number of listed values that occur in the table.
        values: usize,
    },
    /// The table has several problems.
    #[error(transparent)]
    Problems(Box<TableProblems>),
    /// The table lacks columns that the caller named.
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
        /// The system's error.
        source: io::Error,
    },
}

fn footer_words(rows: Option<u64>) -> String {
    match rows {
        None => String::new(),
        Some(1) => ", in the last row: it is a footer, or the file was cut off".to_owned(),
        Some(rows) => format!(
            "; the last {rows} rows all have a wrong number: they are a footer, or the file was cut off"
        ),
    }
}

fn quoted(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    names.join(", ")
}

impl Error {
    /// Returns an error that names `columns`, unless they are empty.
    pub fn no_such_columns<'a>(
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

/// Number of places that are named for each kind of problem.
pub(crate) const MAX_PLACES: usize = 3;

/// Number of kinds of problems that are displayed.
const MAX_LINES: usize = 20;

/// Several problems of one table, by column and kind. Displayed in at most 22 lines: for each kind, the first cell, up
/// to three places and the number of occurrences. Like [`Error`], it quotes cells, and is for the holder of the table
/// only.
#[derive(Debug)]
pub struct TableProblems {
    pub(crate) file: String,
    pub(crate) kinds: Vec<ProblemKind>,
}

/// A kind of problem in one column.
#[derive(Debug)]
pub(crate) struct ProblemKind {
    pub(crate) first: Error,
    /// Rows and lines of the next occurrences.
    pub(crate) again: Vec<(u64, u64)>,
    pub(crate) count: u64,
}

impl TableProblems {
    /// The first error of each kind, in the order of the file.
    pub fn errors(&self) -> impl Iterator<Item = &Error> {
        self.kinds.iter().map(|kind| &kind.first)
    }
}

impl StdError for TableProblems {}

impl Display for TableProblems {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        if let [kind] = self.kinds.as_slice() {
            return kind.fmt(out);
        }
        let kinds = counted(self.kinds.len(), "kind");
        write!(out, "{}: the table has {kinds} of problems:", self.file)?;
        let file = format!("{}: ", self.file);
        for kind in self.kinds.iter().take(MAX_LINES) {
            let text = kind.to_string();
            let text = text.strip_prefix(&file).unwrap_or(&text);
            write!(out, "\n  {text}")?;
        }
        match self.kinds.len().saturating_sub(MAX_LINES) {
            0 => Ok(()),
            more => write!(out, "\n  and {} of problems", counted(more, "more kind")),
        }
    }
}

impl Display for ProblemKind {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        self.first.fmt(out)?;
        let places = self.again.iter();
        let places: Vec<String> = places
            .map(|(row, line)| format!("row {row} (line {line})"))
            .collect();
        if places.is_empty() {
            return Ok(());
        }
        write!(out, "; again in {}", places.join(" and "))?;
        if self.count > MAX_PLACES as u64 {
            write!(out, ", {} times in all", self.count)?;
        }
        Ok(())
    }
}

/// Why the header of a table is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderProblem {
    /// The file is empty.
    #[error("the file is empty: it has no header")]
    Absent,
    /// A column's name is not UTF-8.
    #[error("the name of column {0} is not UTF-8")]
    NotUtf8(usize),
    /// The header cannot be split into names.
    #[error("the name of column {column} (line {line}): {problem}")]
    Syntax {
        /// Number of the column, counted from 1.
        column: usize,
        /// Line of the problem, counted from 1.
        line: u64,
        /// The problem with the name.
        #[source]
        problem: FieldProblem,
    },
    /// A name is too long.
    #[error("the name of column {column} has {bytes} bytes (at most {limit})")]
    LongName {
        /// Number of the column, counted from 1.
        column: usize,
        /// Length of the name.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A name with a line break or another control character.
    #[error(
        "line 1, column {column}: the name {name:?} has a line break or another control character: remove it from the header"
    )]
    LineBreak {
        /// Place of the column, counted from 1.
        column: usize,
        /// The name, shortened if it is long.
        name: String,
    },
    /// Two columns have the same name.
    #[error("column {0:?} appears twice in the header")]
    Repeated(String),
    /// A column of the schema is missing from the header.
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
        /// The limit.
        limit: usize,
    },
}

/// Why a cell is rejected.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CellProblem {
    /// The bytes are not text.
    #[error("not UTF-8")]
    NotUtf8,
    /// The quotes of a cell are wrong, or it has a character that no text has.
    #[error("{0}")]
    Syntax(#[source] FieldProblem),
    /// A value is missing in a column that is not nullable.
    #[error("the value is missing, but the schema does not declare the column `nullable`")]
    Missing,
    /// Not a finite number.
    #[error("{0:?} is not a number")]
    NotANumber(String),
    /// A fraction in a column of integers.
    #[error("{0:?} is not an integer, but the schema allows only integers in this column")]
    NotAnInteger(String),
    /// A number that is not written as the schema says.
    #[error("{value:?} is not a number written as {example:?}")]
    NotInStyle {
        /// The cell.
        value: String,
        /// A number in the column's style.
        example: String,
    },
    /// A number that is not a multiple of the column's step.
    #[error(
        "{value:?} is not a multiple of {step}, the schema's `step` of this column: correct it, or set a finer `step`"
    )]
    NotAMultiple {
        /// The cell.
        value: String,
        /// The step.
        step: f64,
    },
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
    #[error("{value:?} is not a date or time in the format of {example:?}")]
    NotAMoment {
        /// The cell.
        value: String,
        /// A moment in the column's format.
        example: String,
    },
    /// A UTC offset that the schema does not have.
    #[error("{value:?} has the offset {offset:?}, which is not one of the column's `offsets`")]
    UnknownOffset {
        /// The cell.
        value: String,
        /// Its offset.
        offset: String,
    },
    /// A date or time outside the schema's limits.
    #[error("{value:?} is outside the schema's range {range}")]
    OutOfTime {
        /// The cell.
        value: String,
        /// The allowed range, from the first value to the last, in words.
        range: String,
    },
    /// A moment that is too early or too late after the moment that it is relative to.
    #[error(
        "{value:?} is {distance} after the column that it is relative to, but the schema allows \
         {range}"
    )]
    OutOfLapse {
        /// The cell.
        value: Box<str>,
        /// Time between the two, with its unit.
        distance: Box<str>,
        /// The allowed numbers of units, from the minimum to the maximum.
        range: Box<str>,
    },
    /// A category that the schema does not have, in a column without an `other` category.
    #[error(
        "{0:?} is not one of the schema's categories, and the schema declares no `other` category"
    )]
    UnknownCategory(String),
}

impl CellProblem {
    /// Returns whether the cell has no value of the column's kind at all, so that the schema may have it read as
    /// missing.
    pub(crate) fn is_invalid(&self) -> bool {
        match self {
            Self::NotUtf8
            | Self::NotANumber(_)
            | Self::NotInStyle { .. }
            | Self::UnknownOffset { .. }
            | Self::NotAMoment { .. }
            | Self::UnknownCategory(_) => true,
            Self::Syntax(_)
            | Self::Missing
            | Self::NotAnInteger(_)
            | Self::NotAMultiple { .. }
            | Self::OutOfRange { .. }
            | Self::OutOfTime { .. }
            | Self::OutOfLapse { .. } => false,
        }
    }
}

/// Why codes do not form a table of a schema.
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
    #[error("row {row}, column {column:?}: code {code} is outside the domain of {size} values")]
    Code {
        /// Record, counted from 1.
        row: usize,
        /// The column's name.
        column: String,
        /// The rejected code.
        code: u32,
        /// Number of values of the column.
        size: usize,
    },
    /// A table without records.
    #[error("the table has no records")]
    Empty,
    /// An attribute that the table does not have.
    #[error("there is no attribute {attribute} in a table of {attributes} attributes")]
    Attribute {
        /// The requested index.
        attribute: usize,
        /// Number of attributes of the table.
        attributes: usize,
    },
    /// A marginal whose cells cannot be counted in memory.
    #[error("a marginal over attributes {0:?} has too many cells")]
    Cells(Vec<usize>),
    /// A row that the table does not have.
    #[error("there is no row {row} in a table of {records} records")]
    Row {
        /// The requested record, counted from 0.
        row: usize,
        /// Number of records of the table.
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

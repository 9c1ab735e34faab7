//! Why a schema or one of its columns is refused.

use crate::{
    BinningProblem, FormatProblem, OrderedProblem, PatternProblem,
    limits::{MAX_CATEGORIES, MAX_COLUMNS, MAX_NAME_BYTES, MAX_ONE_HOT, MAX_SCHEMA_BYTES},
};

/// Why a schema is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaProblem {
    /// Not JSON of the schema's form: syntax, an unknown or repeated or missing field, a wrong
    /// type.
    #[error("not a schema: {0}")]
    Json(#[source] serde_json::Error),
    /// The file is larger than [`MAX_SCHEMA_BYTES`].
    #[error("a schema of {0} bytes is too large (at most {MAX_SCHEMA_BYTES})")]
    Bytes(usize),
    /// A format that this program does not know.
    #[error("`format` is {0}, and this program reads format 1")]
    Format(u64),
    /// The former key for the format.
    #[error("remove the key `version`: schemas have one format, and need no key for it")]
    Version,
    /// The cost of a draft is out of range.
    #[error("`claim` needs a positive `epsilon` and a `delta` between 0 and 1")]
    Claim,
    /// Every column is an identifier or left out.
    #[error("no column is kept: every one is an identifier or left out")]
    Nothing,
    /// No columns, or more than [`MAX_COLUMNS`].
    #[error("a schema must have from 1 to {MAX_COLUMNS} columns, not {0}")]
    Columns(usize),
    /// A name that is empty, too long, or has control characters.
    #[error("{what} {name:?} must have from 1 to {MAX_NAME_BYTES} bytes and no control characters")]
    Name {
        /// What is named: the schema, a column.
        what: &'static str,
        /// The name refused, cut where it is long.
        name: String,
    },
    /// Two columns of the same name.
    #[error("column {0:?} appears twice")]
    RepeatedColumn(String),
    /// The target is not a column.
    #[error("the target {0:?} is not a column")]
    Target(String),
    /// Something is wrong in one column.
    #[error("column {column:?}: {problem}")]
    Column {
        /// The column's name.
        column: String,
        /// What is wrong.
        problem: ColumnProblem,
    },
    /// More constraints than [`crate::MAX_CONSTRAINTS`].
    #[error("a schema may have {most} constraints, not {0}", most = crate::MAX_CONSTRAINTS)]
    Constraints(usize),
    /// A constraint that makes no sense in the schema.
    #[error("constraint {constraint}: {problem}")]
    Constraint {
        /// The constraint, in words.
        constraint: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// More one-hot columns than [`MAX_ONE_HOT`].
    #[error(
        "the columns have {total} values together (at most {MAX_ONE_HOT}); column {widest:?} has \
         the most: give it fewer bins or categories"
    )]
    OneHot {
        /// The sum of all sizes.
        total: usize,
        /// The column with the most values.
        widest: String,
    },
}

/// Why a column is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ColumnProblem {
    /// A field that this kind of column needs is absent.
    #[error("a {kind} column needs `{field}`")]
    Missing {
        /// The kind of the column.
        kind: &'static str,
        /// The absent field.
        field: &'static str,
    },
    /// A field that this kind of column does not have.
    #[error("a {kind} column has no `{field}`")]
    Surplus {
        /// The kind of the column.
        kind: &'static str,
        /// The surplus field.
        field: &'static str,
    },
    /// A category that is empty, too long, or has control characters.
    #[error(
        "category {0:?} must have from 1 to {MAX_NAME_BYTES} bytes and no control characters (a \
         missing value is not a category: say `nullable`)"
    )]
    Category(String),
    /// The same category twice.
    #[error("category {0:?} appears twice")]
    RepeatedCategory(String),
    /// `other` is not one of the categories.
    #[error("`other` is {0:?}, which is not one of the categories")]
    Other(String),
    /// No categories, or more than [`MAX_CATEGORIES`].
    #[error("a categorical column must have from 1 to {MAX_CATEGORIES} categories, not {0}")]
    Categories(usize),
    /// Limits and bins that do not fit each other.
    #[error(transparent)]
    Binning(#[from] BinningProblem),
    /// Bins, digits or special values that do not fit each other.
    #[error(transparent)]
    Ordered(#[from] OrderedProblem),
    /// A format of dates that is not understood.
    #[error(transparent)]
    Format(#[from] FormatProblem),
    /// A pattern of identifiers that is not understood.
    #[error(transparent)]
    Pattern(#[from] PatternProblem),
    /// A number where a date should be, or the other way round.
    #[error("`{field}` must be {expected}")]
    Bound {
        /// The field.
        field: &'static str,
        /// What it should be.
        expected: &'static str,
    },
    /// More decimals than a number may have.
    #[error("`decimals` must be at most {max}, not {0}", max = crate::MAX_DECIMALS)]
    Decimals(u64),
    /// A unit finer than the format, or too coarse for a date.
    #[error("`unit` must be {0}")]
    Unit(&'static str),
    /// The column that another is relative to.
    #[error(
        "`relative_to` is {0:?}: it must be a date or datetime column that stands before this one \
         and is not relative itself"
    )]
    Base(String),
    /// A column that may not be missing, relative to one that may.
    #[error("it is relative to {0:?}, which may be missing: it must be `nullable` as well")]
    MissingBase(String),
    /// `prefix` of no use, or beside `chapters`.
    #[error("a code column needs either `codes` and `prefix` (from 1 to 64), or `chapters`")]
    Chapters,
    /// Too few or too many codes.
    #[error(
        "a code column must have from 1 to {MAX_CATEGORIES} chapters of 1 to {max} codes each, not \
         {0}",
        max = crate::MAX_DIGITS
    )]
    Codes(usize),
}

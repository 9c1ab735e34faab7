//! Why a schema or one of its columns is refused.

use crate::{
    BinningProblem, FormatProblem, OrderedProblem, PatternProblem,
    limits::{
        MAX_CATEGORIES, MAX_COLUMNS, MAX_MISSING, MAX_NAME_BYTES, MAX_OFFSETS, MAX_ONE_HOT,
        MAX_SCHEMA_BYTES,
    },
};

/// Why a schema is rejected.
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
    /// A format that this program does not read.
    #[error("`format` is {0}, but this program reads only format 1")]
    Format(u64),
    /// The former key for the format.
    #[error("remove the key `version`: schemas have one format, and need no key for it")]
    Version,
    /// The cost of a draft is out of range.
    #[error("`claim` needs a positive `epsilon` and a `delta` between 0 and 1")]
    Claim,
    /// Every column is an identifier, derived or left out.
    #[error("no column is kept: every column is an identifier, derived from one, or left out")]
    Nothing,
    /// No columns, or more than [`MAX_COLUMNS`].
    #[error("a schema must have from 1 to {MAX_COLUMNS} columns, not {0}")]
    Columns(usize),
    /// A name that is empty, too long, or has control characters.
    #[error("{what} {name:?} must have from 1 to {MAX_NAME_BYTES} bytes and no control characters")]
    Name {
        /// Whose name it is: the schema's or a column's.
        what: &'static str,
        /// The rejected name, shortened if it is long.
        name: String,
    },
    /// Two columns of the same name.
    #[error("column {0:?} appears twice")]
    RepeatedColumn(String),
    /// The target is not a column.
    #[error("the target {0:?} is not a column")]
    Target(String),
    /// The target is a derived column.
    #[error("the target {target:?} is derived from {from:?}: name that column as the target")]
    DerivedTarget {
        /// Name of the target.
        target: String,
        /// Name of the column that it follows from.
        from: String,
    },
    /// Something is wrong in one column.
    #[error("column {column:?}: {problem}")]
    Column {
        /// The column's name.
        column: String,
        /// The problem with the column.
        problem: ColumnProblem,
    },
    /// More constraints than [`crate::MAX_CONSTRAINTS`].
    #[error("a schema may have {most} constraints, not {0}", most = crate::MAX_CONSTRAINTS)]
    Constraints(usize),
    /// A constraint that does not fit the schema's columns.
    #[error("constraint {constraint}: {problem}")]
    Constraint {
        /// The constraint, in words.
        constraint: String,
        /// The problem with the constraint.
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

/// Why a column is rejected.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ColumnProblem {
    /// A field that this kind of column needs is missing.
    #[error("a {kind} column needs `{field}`")]
    Missing {
        /// The kind of the column.
        kind: &'static str,
        /// The missing field.
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
         missing value is not a category: set `nullable`)"
    )]
    Category(String),
    /// The same category twice.
    #[error("category {0:?} appears twice")]
    RepeatedCategory(String),
    /// `other` is not one of the categories.
    #[error("`other` is {0:?}, which is not one of the categories")]
    Other(String),
    /// A text for missing values that is too long or has control characters.
    #[error("`missing` {0:?} must have at most {MAX_NAME_BYTES} bytes and no control characters")]
    MissingText(String),
    /// The same text for missing values twice.
    #[error("{0:?} appears twice in `missing`")]
    RepeatedMissing(String),
    /// Too many texts for missing values.
    #[error("`missing` may have {MAX_MISSING} texts, not {0}")]
    MissingTexts(usize),
    /// A text for missing values that is a value of the column.
    #[error("`missing` has {0:?}, which is a value of the column: remove it from one of the two")]
    MissingIsValue(String),
    /// Invalid cells cannot become missing in a column that is not nullable.
    #[error("`invalid` reads cells as missing, so the column also needs `\"nullable\": true`")]
    InvalidNotNullable,
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
    /// A number in place of a date, or a date in place of a number.
    #[error("`{field}` must be {expected}")]
    Bound {
        /// The field of the form.
        field: &'static str,
        /// The expected value.
        expected: &'static str,
    },
    /// More decimals than a number may have.
    #[error("`decimals` must be at most {max}, not {0}", max = crate::MAX_DECIMALS)]
    Decimals(u64),
    /// A `step` that is not a positive multiple of the last decimal place.
    #[error("`step` must be a positive multiple of the last decimal place, {0}")]
    Step(f64),
    /// A character that cannot stand between groups of digits.
    #[error(
        "`thousands` is {0:?}, but it must be a comma, a point, an apostrophe or a blank (also \
         U+2019, U+00A0, U+2009, U+202F)"
    )]
    Thousands(char),
    /// The same character between groups of digits and before the decimals.
    #[error("`thousands` is {0:?}, which is the decimal mark: set or remove `decimal_comma`")]
    SameMark(char),
    /// A text around the numbers that could not be told from them.
    #[error(
        "`{field}` is {text:?}, but it may have at most 64 bytes, no control characters, and not \
         only blanks; and `before` must not begin with a sign or a parenthesis"
    )]
    TextAround {
        /// `before` or `after`.
        field: &'static str,
        /// The text.
        text: String,
    },
    /// A special text that is empty, too long, or has control characters or blanks at its ends.
    #[error(
        "special value {0:?} must have from 1 to {MAX_NAME_BYTES} bytes, no control characters, \
         and no blanks at its ends"
    )]
    Word(String),
    /// A number among the special texts.
    #[error("special value {0:?} is a number of this column: write it without quotes")]
    NumberAsWord(String),
    /// The same special text twice.
    #[error("special value {0:?} appears twice")]
    RepeatedWord(String),
    /// A unit finer than the format, or too coarse for a date.
    #[error("`unit` must be {0}")]
    TimeUnit(&'static str),
    /// `relative_to` does not name a suitable column.
    #[error("`relative_to` is {0:?}, but it must name an earlier date or datetime column")]
    Base(String),
    /// A column that is not nullable, relative to one that may have no date.
    #[error(
        "it is relative to {0:?}, which is `nullable` or has words in `special`: make it `nullable` \
         too"
    )]
    MissingBase(String),
    /// `from` does not name a suitable column.
    #[error(
        "`from` is {0:?}, but it must name another column, of any kind except `derived` and `left-out`"
    )]
    From(String),
    /// `values` for a column that has no list.
    #[error(
        "`values` is for a `categorical` or `code` column, and {0:?} is neither: without `values`, the \
         column repeats its texts"
    )]
    ValuesOf(String),
    /// A value of the other column without a text.
    #[error("`values` has no text for {value:?}, which is a value of {from:?}")]
    NoDerivedValue {
        /// The value.
        value: String,
        /// Name of the other column.
        from: String,
    },
    /// A text for a value that the other column does not have.
    #[error("`values` has a text for {value:?}, which is not a value of {from:?}")]
    ValuesKey {
        /// The value; empty for a missing one.
        value: String,
        /// Name of the other column.
        from: String,
    },
    /// A derived text that is too long or has control characters.
    #[error("`values` {0:?} must have at most {MAX_NAME_BYTES} bytes and no control characters")]
    DerivedText(String),
    /// A derived column that is not nullable, but whose values may be missing.
    #[error(
        "it may have no value, because {0:?} is `nullable` or `values` has an empty text: make it \
         `nullable`"
    )]
    DerivedMissing(String),
    /// A special value that the column cannot have.
    #[error(
        "special value {0:?} is neither a date that the column's `format` can write, as 2024-12-31, \
         nor a text without control characters and blanks around it"
    )]
    Special(String),
    /// A special moment of a special day.
    #[error(
        "special value {0:?} is a moment of a day that `special` lists, too: list the whole texts instead of the day"
    )]
    SpecialMoment(String),
    /// A day of every year in a column whose values count from another column.
    #[error("special value {0:?} stands for a day of every year, which `relative_to` rules out")]
    EveryYear(String),
    /// A field that has no effect with the column's format.
    #[error("`{field}` has no effect: `format` has no {letters}")]
    NoEffect {
        /// The field.
        field: &'static str,
        /// The letters that it is about.
        letters: &'static str,
    },
    /// A limit or special value that the column's format cannot write.
    #[error("`format` cannot write {0}, which is a limit or a special value")]
    Unwritable(String),
    /// A value of `midnight` without a meaning.
    #[error("`midnight` is {0:?}, but the only value that it may have is \"24:00\"")]
    Midnight(String),
    /// Offsets that are missing, repeated, or not written as the format says.
    #[error("`offsets` must list every offset once, as `format` writes them; {0:?} is not valid")]
    Offset(String),
    /// More offsets than [`MAX_OFFSETS`].
    #[error("a column may have {MAX_OFFSETS} `offsets`, not {0}")]
    Offsets(usize),
    /// `clock` in a column that does not count whole days from another column.
    #[error(
        "`clock` is for columns with `relative_to` and `\"unit\": \"day\"`, and must be \"hour\" or \
         \"minute\", no finer than the smallest unit of `format`"
    )]
    Clock,
    /// `codes` without a valid `prefix`, or together with `chapters`.
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

//! How to read a table.

use crate::Dialect;

/// What to do with a number outside the schema's limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutOfRange {
    /// Refuse the table.
    #[default]
    Refuse,
    /// Use the nearest limit.
    Clamp,
}

/// What to do with a column that the schema does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnlistedColumn {
    /// Refuse the table.
    #[default]
    Refuse,
    /// Leave it out.
    LeaveOut,
}

/// What to do with a record that breaks a constraint of the schema, or in which a derived column does not follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BrokenConstraint {
    /// Refuse the table.
    #[default]
    Refuse,
    /// Count it.
    Count,
}

/// What to do with a schema whose lists are of values of single records (see [`crate::NearUniqueList`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NearUnique {
    /// Report the lists with the table.
    #[default]
    Report,
    /// Refuse the table.
    Refuse,
}

/// How to read a table. The default is the strictest, except that near-unique lists are only reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// Name of the file, for errors.
    pub file: String,
    /// How the table is written.
    pub dialect: Dialect,
    /// Texts that stand for a missing value in every column, except in a column that has the text as a category or
    /// word. The schema may name more for each column.
    pub missing: Vec<String>,
    /// What to do with numbers out of range.
    pub out_of_range: OutOfRange,
    /// What to do with unlisted columns.
    pub unlisted: UnlistedColumn,
    /// What to do with records that break a rule of the schema.
    pub broken: BrokenConstraint,
    /// What to do with near-unique lists.
    pub near_unique: NearUnique,
    /// Maximum number of records.
    pub max_records: usize,
    /// Whether to keep the original values next to their codes, for a report.
    pub keep_values: bool,
}

impl ReadOptions {
    /// Returns the strictest options: plain CSV, only an empty field is missing, everything that the schema
    /// does not have is refused, at most 2^22 records. Errors name `file`.
    pub fn new(file: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            dialect: Dialect::default(),
            missing: vec![String::new()],
            out_of_range: OutOfRange::default(),
            unlisted: UnlistedColumn::default(),
            broken: BrokenConstraint::default(),
            near_unique: NearUnique::default(),
            max_records: 1 << 22,
            keep_values: false,
        }
    }
}

/// Changes that reading made to a column. Private: these are counts of records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Adjusted {
    /// Numbers replaced by the nearest limit.
    pub clamped: u64,
    /// Values outside the list that were read as `other`.
    pub other: u64,
    /// Missing values, which stay missing.
    pub missing: u64,
    /// Cells without a valid value that were read as missing. `missing` does not include them.
    pub invalid: u64,
    /// Numbers with a fraction, which are not changed.
    pub fractions: u64,
}

/// Returns whether `text` is one of the texts that stand for a missing value.
pub fn is_missing(text: &str, missing: &[String]) -> bool {
    missing.iter().any(|token| token == text)
}

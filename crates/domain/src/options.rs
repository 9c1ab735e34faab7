//! How to read a table.

/// What to do with a category that the schema does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownCategory {
    /// Refuse the table.
    #[default]
    Refuse,
    /// Use the category that the schema declares as `other`. Refuse the table if the schema declares none.
    Other,
}

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

/// What to do with a record that breaks a constraint of the schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BrokenConstraint {
    /// Refuse the table.
    #[default]
    Refuse,
    /// Count it.
    Count,
}

/// How to read a table. The default is the strictest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// Name of the file, for errors.
    pub file: String,
    /// Byte between fields.
    pub delimiter: u8,
    /// Texts that stand for a missing value, except in a column that has the text as a category.
    pub missing: Vec<String>,
    /// What to do with unknown categories.
    pub unknown: UnknownCategory,
    /// What to do with numbers out of range.
    pub out_of_range: OutOfRange,
    /// What to do with unlisted columns.
    pub unlisted: UnlistedColumn,
    /// What to do with records that break a constraint.
    pub broken: BrokenConstraint,
    /// Maximum number of records.
    pub max_records: usize,
    /// Whether to keep the original values next to their codes, for a report.
    pub keep_values: bool,
}

impl ReadOptions {
    /// Returns the strictest options: commas as delimiters, only an empty field is missing, everything that the schema
    /// does not have is refused, at most 2^22 records. Errors name `file`.
    pub fn new(file: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            delimiter: b',',
            missing: vec![String::new()],
            unknown: UnknownCategory::default(),
            out_of_range: OutOfRange::default(),
            unlisted: UnlistedColumn::default(),
            broken: BrokenConstraint::default(),
            max_records: 1 << 22,
            keep_values: false,
        }
    }
}

/// Changes that reading made to a column at the holder's request. Private: these are counts of records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Adjusted {
    /// Numbers replaced by the nearest limit.
    pub clamped: u64,
    /// Categories replaced by `other`.
    pub other: u64,
    /// Missing values, which stay missing.
    pub missing: u64,
    /// Numbers with a fraction, which are not changed.
    pub fractions: u64,
}

/// Returns whether `text` is one of the texts that stand for a missing value.
pub fn is_missing(text: &str, missing: &[String]) -> bool {
    missing.iter().any(|token| token == text)
}

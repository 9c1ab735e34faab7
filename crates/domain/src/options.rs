//! How to read a table.

/// What to do with a category that the schema does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownCategory {
    /// Refuse the table.
    #[default]
    Refuse,
    /// Take it for the category that the schema declares as `other`; refuse the table if it
    /// declares none.
    Other,
}

/// What to do with a number outside the schema's limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutOfRange {
    /// Refuse the table.
    #[default]
    Refuse,
    /// Take it for the nearest limit.
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
    /// Fields that stand for a missing value, unless they are one of the column's categories.
    pub missing: Vec<String>,
    /// What to do with unknown categories.
    pub unknown: UnknownCategory,
    /// What to do with numbers out of range.
    pub out_of_range: OutOfRange,
    /// What to do with unlisted columns.
    pub unlisted: UnlistedColumn,
    /// What to do with records that break a constraint.
    pub broken: BrokenConstraint,
    /// Most records.
    pub max_records: usize,
    /// Whether to keep the values as they are beside their codes, for a report.
    pub keep_values: bool,
}

impl ReadOptions {
    /// Commas; only an empty field is missing; everything that the schema does not have is refused; at
    /// most 2^22 records. `file` is named in errors.
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

/// Changes that reading made to a column, at the holder's request. Private: counts of
/// records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Adjusted {
    /// Numbers taken for the nearest limit.
    pub clamped: u64,
    /// Categories taken for `other`.
    pub other: u64,
    /// Missing values, as they are.
    pub missing: u64,
    /// Numbers with a fraction, as they are.
    pub fractions: u64,
}

/// Whether `text` is one of the texts that stand for a missing value.
pub(crate) fn is_missing(text: &str, missing: &[String]) -> bool {
    missing.iter().any(|token| token == text)
}

//! Limits of a schema.

/// Maximum size of a schema file, in bytes.
pub const MAX_SCHEMA_BYTES: usize = 16 << 20;

/// Maximum number of columns of a table.
pub const MAX_COLUMNS: usize = 1_000;

/// Maximum number of categories of a column.
pub const MAX_CATEGORIES: usize = 10_000;

/// Maximum number of values of all columns together: the width of the one-hot table.
pub const MAX_ONE_HOT: usize = 100_000;

/// Maximum number of UTC offsets of a column.
pub const MAX_OFFSETS: usize = 100;

/// Maximum length of the name of a column or a category, in bytes.
pub const MAX_NAME_BYTES: usize = 1_024;

/// Maximum number of texts that stand for a missing value in a column.
pub const MAX_MISSING: usize = 100;

/// Maximum number of constraints of a schema.
pub const MAX_CONSTRAINTS: usize = 1_000;

/// A value that occurs in fewer records than this is rare.
pub(crate) const FEW_RECORDS: u64 = 5;

//! Limits of a schema.

/// A schema's file may have so many bytes.
pub const MAX_SCHEMA_BYTES: usize = 16 << 20;

/// A table may have so many columns.
pub const MAX_COLUMNS: usize = 1_000;

/// A column may have so many categories.
pub const MAX_CATEGORIES: usize = 10_000;

/// All columns may have so many values together: the width of the one-hot table.
pub const MAX_ONE_HOT: usize = 100_000;

/// The name of a column or a category may have so many bytes.
pub const MAX_NAME_BYTES: usize = 1_024;

/// A schema may have so many.
pub const MAX_CONSTRAINTS: usize = 1_000;

//! Limits of a schema.

/// Most bytes of a schema's file.
pub const MAX_SCHEMA_BYTES: usize = 16 << 20;

/// Most columns of a table.
pub const MAX_COLUMNS: usize = 1_000;

/// Most categories of a column.
pub const MAX_CATEGORIES: usize = 10_000;

/// Most values of all columns together: the width of the one-hot table.
pub const MAX_ONE_HOT: usize = 100_000;

/// Most bytes of the name of a column or a category.
pub const MAX_NAME_BYTES: usize = 1_024;

/// Most constraints of a schema.
pub const MAX_CONSTRAINTS: usize = 1_000;

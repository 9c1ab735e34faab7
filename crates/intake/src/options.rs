//! How to draft a schema.

use std::collections::BTreeMap;

use fhaim_domain::{Dialect, form::KindForm};

/// Smallest number of records that must share a value before a draft lists it.
pub const SHARED_BY: u64 = 20;

/// How to draft a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InferOptions {
    /// Name of the table's file, for errors.
    pub file: String,
    /// Name of the schema.
    pub name: String,
    /// Name of the target column, if there is one.
    pub target: Option<String>,
    /// How the table is written.
    pub dialect: Dialect,
    /// Texts that stand for a missing value in every column.
    pub missing: Vec<String>,
    /// Columns to leave out.
    pub leave_out: Vec<String>,
    /// Kinds that the holder has chosen, by column.
    pub kinds: BTreeMap<String, KindForm>,
    /// Public code books, by column: all codes, in order.
    pub code_books: BTreeMap<String, Vec<String>>,
    /// A value is listed only if at least this many records share it.
    pub shared_by: u64,
    /// Maximum number of categories of a column of texts.
    pub max_categories: usize,
    /// Maximum number of different numbers in a column that is drafted as categorical.
    pub max_number_categories: usize,
    /// Number of bins of a column of numbers or dates (fewer if it has fewer values).
    pub bins: u32,
}

impl InferOptions {
    /// Returns the defaults: plain CSV, only an empty field is missing, lists of values that [`SHARED_BY`] records share,
    /// up to 100 categories, up to 10 different numbers as categories, and 10 bins. Errors name `file`.
    pub fn new(file: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            name: name.into(),
            target: None,
            dialect: Dialect::default(),
            missing: vec![String::new()],
            leave_out: Vec::new(),
            kinds: BTreeMap::new(),
            code_books: BTreeMap::new(),
            shared_by: SHARED_BY,
            max_categories: 100,
            max_number_categories: 10,
            bins: 10,
        }
    }
}

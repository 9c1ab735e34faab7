//! Schemas, tables, binning, one-hot columns, cliques and workloads.
//!
//! A [`Schema`] is public and says which values each column may take; a [`Table`] holds records
//! as codes into it. Nothing here touches files, threads or the clock: readers and writers are
//! the caller's, so that the crate also builds for the browser.

mod check;
mod clique;
mod counted;
mod error;
mod infer;
mod numeric;
mod one_hot;
mod read;
mod records;
mod schema;
mod table;
mod write;

pub use check::{Coarsening, ColumnCost, PairCost, SchemaCost, check_schema, pair_cells};
pub use clique::{Clique, Domain, Subsets};
pub use counted::counted;
pub use error::{CellProblem, CodesProblem, Error, HeaderProblem};
pub use infer::{DRAFT_STATEMENT, Draft, InferOptions, InferProblem, Note, infer_schema};
pub use numeric::{Binning, BinningProblem, MAX_BINS, MAX_MAGNITUDE};
pub use read::{
    Adjusted, OutOfRange, ReadOptions, Reading, UnknownCategory, UnlistedColumn, read_csv,
};
pub use records::MAX_RECORD_BYTES;
pub use schema::{
    Column, ColumnProblem, Kind, MAX_CATEGORIES, MAX_COLUMNS, MAX_NAME_BYTES, MAX_ONE_HOT,
    MAX_SCHEMA_BYTES, Schema, SchemaProblem, Value,
};
pub use table::{MAX_COUNTED_CELLS, Table};
pub use write::{WriteOptions, write_csv};

/// The examples of the README, which are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

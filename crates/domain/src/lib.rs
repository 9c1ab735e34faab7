//! Schemas, tables, binning, one-hot columns, cliques and workloads.
//!
//! A [`Schema`] is public and says which values each column may take; a [`Table`] holds records
//! as codes into it. Nothing here touches files, threads or the clock: readers and writers are
//! the caller's, so that the crate also builds for the browser.

mod clique;
mod error;
mod numeric;
mod schema;
mod table;

pub use clique::{Clique, Domain};
pub use error::{CodesProblem, Error};
pub use numeric::{Binning, BinningProblem, MAX_BINS, MAX_MAGNITUDE};
pub use schema::{
    Column, ColumnProblem, Kind, MAX_CATEGORIES, MAX_COLUMNS, MAX_NAME_BYTES, MAX_ONE_HOT,
    MAX_SCHEMA_BYTES, Schema, SchemaProblem, Value,
};
pub use table::{MAX_COUNTED_CELLS, Table};

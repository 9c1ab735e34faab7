#![doc = include_str!("../README.md")]
//!
//! # Overview
//!
//! A [`Schema`] is the public description of a table: its columns and the values that each may
//! take. A [`Table`] holds records as codes for these values. The crate uses no files, threads or
//! clock: callers pass in readers and writers, so that it also builds for the browser.

mod attributes;
mod build;
mod check;
mod clique;
mod codes;
mod column;
mod conditions;
mod constraint;
mod counted;
mod decimal;
mod derived;
mod derived_values;
mod dialect;
mod encode;
mod error;
mod field;
pub mod form;
mod identifier;
mod limits;
mod names;
mod near_unique;
mod number;
mod numeric;
mod one_hot;
mod options;
mod ordered;
mod ordered_words;
mod output;
mod own_codes;
mod problem;
mod raw;
mod read;
mod records;
#[cfg(test)]
mod reference;
mod scan;
mod schema;
mod schema_form;
mod table;
mod table_problems;
mod times;
mod totals;
mod value;
mod version;
mod write;

pub use check::{Coarsening, ColumnCost, PairCost, SchemaCost, check_schema, pair_cells};
pub use clique::{Clique, Digit, Domain, Subsets};
pub use column::{Column, Kind};
pub use conditions::{ConditionError, parse_conditions};
pub use constraint::{Age, AgeAt, Constraint, Implies, Sum, YearOf};
pub use counted::counted;
pub use decimal::{Decimal, MAX_DECIMALS, NumberStyle, parse_number};
pub use derived_values::SchemaRule;
pub use dialect::Dialect;
pub use error::{CellProblem, CodesProblem, Error, HeaderProblem, TableProblems};
pub use field::Field;
pub use form::Claim;
pub use identifier::{Identifier, PatternProblem};
pub use limits::{
    MAX_CATEGORIES, MAX_COLUMNS, MAX_CONSTRAINTS, MAX_MISSING, MAX_NAME_BYTES, MAX_OFFSETS,
    MAX_ONE_HOT, MAX_SCHEMA_BYTES,
};
pub use names::is_name;
pub use near_unique::{NearUniqueList, near_unique_lists};
pub use numeric::{Binning, BinningProblem, MAX_BINS, MAX_MAGNITUDE};
pub use options::{
    Adjusted, BrokenConstraint, NearUnique, OutOfRange, ReadOptions, UnlistedColumn, is_missing,
};
pub use ordered::{MAX_DIGITS, MAX_PARTS, OrderedProblem};
pub use output::{Output, Scalar, TickUnit};
pub use problem::{ColumnProblem, SchemaProblem};
pub use raw::{RawColumn, RawValues};
pub use read::{
    STREAMED_RECORDS, Streaming, TableReading, read_csv, read_csv_watched, stream_csv,
    stream_csv_watched,
};
pub use records::TableRecords;
pub use scan::{FieldProblem, MAX_RECORD_BYTES, ScanError, Scanner};
pub use schema::Schema;
pub use schema_form::SchemaForm;
pub use table::{Counted, MAX_COUNTED_CELLS, Table};
pub use table_problems::Problems;
pub use times::{
    DAY, FormatProblem, Moment, TimeFormat, TimeNames, TimeOptions, date_from_days, days_from_date,
};
pub use value::Value;
pub use version::Version;
pub use write::{WriteOptions, write_csv};

//! Schemas, tables, binning, one-hot columns, cliques and workloads.

mod clique;

pub use clique::{Clique, Domain};

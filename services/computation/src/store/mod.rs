//! SQL statements of this service, grouped by subject.
//!
//! Rows are converted to domain types here. Callers decide what a missing or unexpected row means.

pub mod batches;
pub mod runs;
pub mod uploads;

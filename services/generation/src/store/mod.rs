//! SQL statements of this service, grouped by subject.
//!
//! Rows are converted to domain types here. Callers decide what a missing or unexpected row means.

pub mod accounts;
pub mod api_keys;
pub mod batches;
pub mod datasets;
pub mod events;
pub mod jobs;
pub mod limits;
pub mod links;
pub mod lists;
pub mod sessions;

//! All statements that this service makes, by what they are about.
//!
//! Rows come out as the types they stand for. What a missing or an unexpected row means is for
//! others to say.

pub mod accounts;
pub mod api_keys;
pub mod batches;
pub mod datasets;
pub mod events;
pub mod jobs;
pub mod limits;
pub mod links;
pub mod sessions;

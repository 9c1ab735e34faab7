//! All statements that this service makes, by what they are about.
//!
//! Rows come out as the types they stand for. What a missing or an unexpected row means is for
//! others to say.

pub mod batches;
pub mod runs;
pub mod uploads;

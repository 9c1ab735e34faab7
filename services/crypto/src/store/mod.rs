//! All statements that this service makes, by what they are about.
//!
//! Rows come out as the types they stand for. What a missing or an unexpected row means is for
//! others to say.

pub mod audit;
pub mod chain;
pub mod keys;
pub mod shares;
pub mod witnessed;

//! Zero-concentrated differential privacy: accounting, exact samplers, the noise ladder.
//!
//! Nothing here reads or writes anything, and nothing between a count and its release is in
//! floating point: noise is integers drawn by comparing integers, costs are exact fixed-point
//! numbers rounded against the spender.

pub mod accounting;
mod error;
mod gap;
mod gaussian;
mod ladder;
mod ledger;
mod rho;

pub use error::Error;
pub use gap::{gap_rho, log_ratio_bound};
pub use gaussian::DiscreteGaussian;
pub use ladder::{
    Allocator, BASE_SCALE, BASE_VARIANCE, DIGIT_SAMPLES, Digits, Ladder, LadderPlan, MAX_LEVELS,
    MAX_POSITIONS, PAGE, Span,
};
pub use ledger::{Debit, Entry, Ledger, Outcome, least_variance_units, release_rho};
pub use rho::Rho;

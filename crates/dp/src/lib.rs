#![doc = include_str!("../README.md")]
//!
//! # Overview
//!
//! The crate does no I/O, except that it reads keys from the operating system's generator. Nothing
//! between a count and its release uses floating point: noise is drawn as integers by comparing
//! integers, and costs are exact fixed-point numbers, rounded up.
#![deny(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

pub mod accounting;
mod allocator;
mod choice;
mod error;
mod gap;
mod gaussian;
mod generator;
mod key;
mod ladder;
mod ledger;
mod number;
mod price;
mod rho;
mod shares;

pub use allocator::{Allocator, Span};
pub use choice::{MAX_SELECTION_EPSILON, Selection};
pub use error::Error;
pub use gap::{gap_rho, log_ratio_bound};
pub use gaussian::{DiscreteGaussian, uniform_below};
pub use generator::{fork, generator};
pub use key::{KeyedLadder, LadderKey};
pub use ladder::{
    BASE_SCALE, BASE_VARIANCE, DIGIT_SAMPLES, Digits, LEVEL_VECTORS, Ladder, LadderPlan,
    MAX_LEVELS, MAX_POSITIONS, PAGE, most_pages, vectors_of_digit,
};
pub use ledger::{Debit, DebitOutcome, Entry, Ledger, decimal, hex_digest};
pub use number::{number, rounded_up};
pub use price::{Leak, Price, least_variance_units};
pub use rho::Rho;
pub use shares::NoiseShares;

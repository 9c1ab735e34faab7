//! Mixes: means of a few records of one class, with noise.
//!
//! | module | for |
//! |---|---|
//! | [`Points`] | records as integer vectors of a bounded norm, from tables and images |
//! | [`idx`] | images and labels as IDX files |
//! | [`Cda`] | DP-CDA (Saha, Tonoy and Imtiaz 2025), central and among parties, with mended accounting |
//! | [`Groups`] | the exact variant: public groups, each record in a fixed number of them |
//! | [`encrypted`] | that variant under encryption: the same integers |
//!
//! What is released is the *sum* of a mix's integer vectors with discrete Gaussian noise; the mean is worked out
//! from it afterwards. Nothing between a record's integers and a release is a floating-point number.
//! docs/FEDERATED.md says where the paper's accounting differs, and why.

#![warn(missing_debug_implementations)]

mod cda;
pub mod encrypted;
mod error;
mod groups;
pub mod idx;
mod mixes;
mod points;

pub use cda::{Cda, CdaCost, CdaNoise, MAX_VALUES, correlated_rho};
pub use error::Error;
pub use groups::{Groups, MAX_PLACES, Placed, Priced};
pub use mixes::Mixes;
pub use points::{MAX_CLASSES, MAX_WIDTH, Points, Standard, TABLE_UNIT, UNIT};

/// Compiles and runs what the README shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

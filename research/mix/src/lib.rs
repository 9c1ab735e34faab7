#![doc = include_str!("../README.md")]
//!
//! # Overview
//!
//! | module | for |
//! |---|---|
//! | [`Points`] | records as integer vectors of a bounded norm, from tables and images |
//! | [`idx`] | images and labels as IDX files |
//! | [`Cda`] | DP-CDA (Saha, Tonoy and Imtiaz 2025), central and among parties, with corrected accounting |
//! | [`Correlated`] | noise that cancels in the sum of all parties (CAPE), and its cost |
//! | [`Groups`] | the exact variant: public groups, with each record in a fixed number of them |
//! | [`encrypted`] | the exact variant under encryption, which gives the same integers |
//!
//! A release is the *sum* of a mix's integer vectors with discrete Gaussian noise; the mean is computed from it
//! afterwards. No floating-point number is involved between a record's integers and a release.
//!
//! docs/research/cape.md explains the differences from the paper's accounting.

#![warn(missing_debug_implementations)]

mod cda;
mod correlated;
pub mod encrypted;
mod error;
mod groups;
pub mod idx;
mod mixes;
mod points;

pub use cda::{CapeClaims, Cda, CdaCost, CdaNoise, MAX_VALUES};
pub use correlated::{Correlated, correlated_rho};
pub use error::Error;
pub use groups::{Groups, MAX_PLACES, Placed, Priced};
pub use mixes::Mixes;
pub use points::{MAX_CLASSES, MAX_WIDTH, Points, Standard, TABLE_UNIT, UNIT};

//! Number-theoretic transforms, and arithmetic modulo a word-sized prime.

#![warn(missing_debug_implementations)]
#![cfg_attr(
    not(test),
    deny(
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::unwrap_used
    )
)]

/// Compiles and runs the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(target_arch = "x86_64")]
mod ifma;
mod kernels;
mod modular;
mod transform;

pub use kernels::{Permutation, ResultMode, prefetch};
pub use modular::Modulus;
pub use transform::{Transform, bit_reverse};

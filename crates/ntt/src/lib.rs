#![doc = include_str!("../README.md")]
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

#[cfg(target_arch = "x86_64")]
mod ifma;
mod kernels;
mod modular;
mod transform;

pub use kernels::{Permutation, ResultMode, prefetch};
pub use modular::Modulus;
pub use transform::{Transform, bit_reverse};

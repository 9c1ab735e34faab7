//! The computation service's work spread over machines: a [`fhaim_he::Backend`] on Apache Ballista.
//!
//! | module | for |
//! |---|---|
//! | [`order`] | one task as a row: what to compute, and where its inputs are kept |
//! | [`site`] | what an executor has: the blob store, the keys it read last |
//! | [`nodes`] | the two operators of a plan, and what they refuse |
//! | [`codec`] | plans as bytes: these operators, and nothing else |
//! | [`driver`] | submits a batch, and takes over what becomes of its tiles |
//! | [`choice`] | which batches are submitted at all |
//! | [`tls`] | who may connect to whom |
//! | [`config`] | configuration files of the programs |
//!
//! Executors and scheduler see ciphertexts and public keys only, and belong to the computation service.

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

pub mod choice;
pub mod codec;
pub mod config;
pub mod driver;
pub mod nodes;
pub mod order;
pub mod program;
pub mod service;
pub mod site;
pub mod tls;

pub use driver::{Ballista, Settings};

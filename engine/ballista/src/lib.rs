//! Distributes the computation service's work over several machines: a [`fhaim_he::Backend`] on Apache Ballista.
//!
//! | module | contents |
//! |---|---|
//! | [`order`] | one task as a row: the computation and the places of its inputs |
//! | [`site`] | shared state of an executor: the blob store and the most recently used keys |
//! | [`nodes`] | the two operators of a plan and their checks |
//! | [`codec`] | encoding of plans, which allows only these operators |
//! | [`driver`] | submits a batch and collects the results of its tiles |
//! | [`choice`] | chooses the batches to submit |
//! | [`tls`] | mutual authentication of the programs |
//! | [`config`] | configuration files of the programs |
//! | [`program`] | command line, log and runtime of the programs |
//! | [`service`] | the computation service that uses this backend |
//!
//! Executors and scheduler see only ciphertexts and public keys, and belong to the computation service's operator.

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

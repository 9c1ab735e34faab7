#![doc = include_str!("../README.md")]
//!
//! # Overview
//!
//! | entity | module | holds | sends |
//! |---|---|---|---|
//! | data entity | [`holder`], [`upload`] | the table, the noise it draws | ciphertexts, to computation |
//! | computation entity | [`computation`] | ciphertexts, public and evaluation keys | sealed pages, to crypto |
//! | crypto-service entity | [`crypto`] | the secret key, the ledger | keys; released integers |
//! | generation entity | [`generation`] | released integers | requests, to computation |
//!
//! In one process the entities are values that call each other ([`local`]). Services put HTTP and a
//! database around the same values. Both sides of a release place it on the noise ladder with the
//! same code, [`window`]. The entities exchange only the objects of an [`upload`], keys, and
//! decryption [`request`]s with their answers.
#![deny(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

pub mod align;
#[expect(clippy::indexing_slicing, reason = "a benchmark may panic")]
pub mod bench;
mod cells;
mod codec;
pub mod committee;
pub mod computation;
pub mod counts;
pub mod crypto;
pub mod encryption;
mod error;
pub mod generation;
pub mod holder;
pub mod joint;
mod leak;
pub mod local;
pub mod noise;
mod object;
pub mod part;
pub mod request;
pub mod roster;
pub mod sealing;
pub mod shares;
mod signing;
mod squares;
pub mod terms;
pub mod upload;
#[cfg(not(target_arch = "wasm32"))]
pub mod upload_key;
pub mod window;

pub use error::Error;

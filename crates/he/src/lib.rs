#![doc = include_str!("../README.md")]
//!
//! # Overview
//!
//! | module | for |
//! |---|---|
//! | `scheme` | rings, parameter sets, keys, ciphertexts and their noise |
//! | `table` | encrypted columns of a table, and where records and cells are in polynomials |
//! | `evaluate` | computation of a batch of statistics: plan, tasks, tiles, packed pages |
//! | `release` | sealing a page before it leaves the computation service |
//! | [`key_sharing`] | secret keys that are the sum of several services' shares |
//! | `wire` | encodings of all objects |

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

mod error;
mod evaluate;
pub mod key_sharing;
mod release;
mod scheme;
mod table;
mod wire;

pub use error::{Error, Result};
pub use evaluate::Evaluator;
pub use evaluate::assembly::Assembly;
pub use evaluate::backend::{Backend, Threads, WORKING_BYTES};
pub use evaluate::context::EvaluationContext;
pub use evaluate::counts::{CountsLayout, EncryptedCounts, Weights};
pub use evaluate::division::spread;
pub use evaluate::operands::Operands;
pub use evaluate::parallel::map;
pub use evaluate::partial::{Partial, TileRoot, TileSums};
pub use evaluate::plan::{Cell, PagePlan};
pub use evaluate::square::{ScoreParts, SquaredScore};
pub use evaluate::task::{TileId, TileTask};
pub use evaluate::work::EvaluationWork;
pub use release::page::PackedPage;
pub use release::seal::seal;
pub use scheme::choice::Demand;
pub use scheme::ciphertext::Ciphertext;
pub use scheme::evaluation_keys::EvaluationKeys;
pub use scheme::noise::LEAK_BITS;
pub use scheme::params::{COMPACT, MAX_SHARES, ParameterSet, Parameters, STANDARD, WIDE};
pub use scheme::public_key::PublicKey;
pub use scheme::ring::DEGREE;
pub use scheme::secret_key::SecretKey;
pub use scheme::upload::{
    ProductKey, RosterKeys, RosterShape, SeededCiphertext, UploadCiphertext, UploadKey,
    UploadKeyId, UploadSwitchKeys,
};
pub use table::joint::{JointTable, Rectangle};
pub use table::layout::{Layout, PAGE, coefficient};
pub use table::{BlobPlace, Chunks, Columns, Combination, EncryptedTable, Factors, Section};
pub use wire::parameter_set;

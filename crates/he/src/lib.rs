//! Exact encrypted statistics: parameters, keys, tensor, packing, release.

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

/// Compiles and runs what the README shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod assembly;
mod backend;
mod ciphertext;
mod codec;
mod context;
mod counts;
mod division;
mod encryption;
mod error;
mod evaluate;
mod factoring;
mod holder;
mod keys;
mod keyswitch;
mod layout;
mod mosaic;
mod noise;
mod operands;
mod packing;
mod page;
mod parallel;
mod params;
mod partial;
mod plan;
mod release;
mod residues;
mod ring;
mod root;
pub mod shares;
mod square;
mod table;
mod task;
mod tensor;
mod tile;
mod wire;
mod work;

pub use assembly::Assembly;
pub use backend::{Backend, Threads, WORKING_BYTES};
pub use ciphertext::Ciphertext;
pub use context::EvaluationContext;
pub use counts::{CountsLayout, EncryptedCounts, LEAVES_A_THREAD, Weights};
pub use division::spread;
pub use error::{Error, Result};
pub use evaluate::Evaluator;
pub use holder::{
    HolderCiphertext, HolderKey, HolderKeyId, HolderKeys, RosterKeys, RosterShape, SeededCiphertext,
};
pub use keys::{EvaluationKeys, PublicKey, SecretKey};
pub use layout::{Layout, PAGE, coefficient};
pub use mosaic::{Mosaic, Rectangle};
pub use noise::LEAK_BITS;
pub use operands::Operands;
pub use page::Page;
pub use params::{COMPACT, DEGREE, Demand, MAX_SHARES, ParameterSet, Parameters, STANDARD, WIDE};
pub use partial::{Partial, TileRoot, TileSums};
pub use plan::{Cell, Plan};
pub use release::seal;
pub use square::{ScoreParts, SquaredScore};
pub use table::{
    Chunks, Columns, Combination, EncryptedTable, Factors, Place, ProductKey, Section,
};
pub use task::{TileId, TileTask};
pub use wire::parameter_set;
pub use work::Work;

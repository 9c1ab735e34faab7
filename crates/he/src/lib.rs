//! Exact encrypted statistics: parameters, keys, tensor, packing, release.

#![warn(missing_debug_implementations)]

mod ciphertext;
mod codec;
mod error;
mod evaluate;
mod keys;
mod keyswitch;
mod layout;
mod modular;
mod noise;
mod operands;
mod packing;
mod params;
mod release;
mod ring;
mod square;
mod table;
mod tensor;

pub use ciphertext::Ciphertext;
pub use codec::parameter_set;
pub use error::{Error, Result};
pub use evaluate::{Cell, Evaluator, Page, WORKING_BYTES, Work};
pub use keys::{EvaluationKeys, PublicKey, SecretKey};
pub use layout::{Layout, PAGE, coefficient};
pub use noise::LEAK_BITS;
pub use params::{DEGREE, P1, P1_LARGE, P2, ParameterSet, Parameters};
pub use release::seal;
pub use ring::transform_seconds;
pub use square::{ScoreParts, SquaredScore};
pub use table::{Chunks, Columns, Combination, EncryptedTable, Factors};
pub use tensor::multiply_accumulate_rate;

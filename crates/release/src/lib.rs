#![doc = include_str!("../README.md")]
//!
//! # Overview
//!
//! A [`ReleaseRequest`] is a [`Statistic`] with noise of a given variance. Its [`fhaim_dp::Price`]
//! is the same for every party that computes it. A [`MechanismJob`] is the input of a run, and
//! [`LadderNeed`] the noise that the run needs. A [`MechanismRun`] plays the run from batch to
//! batch, and a [`ReleaseSource`] answers the batches. All of it is public, and the crate knows no
//! mechanisms, models or ciphertexts.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod codec;
mod error;
mod holders;
mod job;
mod machine;
mod need;
mod phase;
mod replacement;
mod request;
mod run;
mod source;
mod statistic;
mod tariff;

pub use error::Error;
pub use holders::{Holders, MAX_HOLDERS};
pub use job::{
    CELL_BYTES, DEFAULT_MODEL_BYTES, MechanismJob, WeightedPair, WeightedTriple, Workload,
};
pub use machine::{Machine, Next, RunProgress};
pub use need::{Catalogue, Choice, Generator, LadderNeed, Need, Options, Refusal};
pub use phase::Phase;
pub use request::{ReleaseRequest, UNIT_VARIANCE};
pub use run::{Action, MechanismRun, ReleaseBatch, RunError, StoredBatch};
pub use source::{ReleaseSource, SourceError};
pub use statistic::{Axis, MAX_CENTRED, SquaredTerm, Statistic};
pub use tariff::Tariff;

//! What may be released of a table, and what it costs.
//!
//! A [`ReleaseRequest`] is a [`Statistic`] with noise of a variance; it has one [`fhaim_dp::Price`],
//! the same for its users, its judge and its readers. A [`MechanismJob`] is what a run is about, [`LadderNeed`]
//! the noise that it takes, [`MechanismRun`] its course from batch to batch, [`ReleaseSource`] whatever answers. All of it is public, and none of it knows
//! a mechanism, a model or a ciphertext.
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

/// The examples of the README, which are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

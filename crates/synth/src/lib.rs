//! Select, measure, generate: one engine over plaintext and encrypted sources.
//!
//! A [`Mechanism`] is a state machine that asks for releases batch by batch; a [`Source`]
//! answers them, in the clear ([`PlaintextSource`]) or by computing on ciphertexts; [`run`] plays
//! one against the other. Mechanisms ([`MechanismName`]): [`Staged`], the default; [`FhaimL2`],
//! the rule of the FHAIM paper; [`OneWaysOnly`], a baseline; and [`run_aim`], the reference that
//! needs exact marginals.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod aim;
mod anneal;
pub mod bench;
pub mod block;
mod candidates;
mod desk;
mod engine;
mod error;
mod fhaim_l2;
mod job;
mod mechanism;
pub mod merge;
mod one_ways;
mod plaintext;
pub mod plan;
mod prior;
pub mod score;
pub mod source;
mod staged;

pub use aim::{AimOptions, Score, run_aim};
pub use desk::Release;
pub use engine::{Mechanism, Next, Outcome, Phase, Progress, Timing, run};
pub use error::Error;
pub use fhaim_l2::{FhaimL2, FhaimL2Options};
pub use job::{CELL_BYTES, DEFAULT_MODEL_BYTES, Job, WeightedPair, Workload};
pub use mechanism::{LadderNeed, MechanismName};
pub use one_ways::OneWaysOnly;
pub use plaintext::{PlaintextSource, exact};
pub use source::{
    Axis, ReleaseRequest, Source, SourceError, SquaredTerm, Statistic, StatisticError,
    UNIT_VARIANCE,
};
pub use staged::{Staged, StagedOptions};

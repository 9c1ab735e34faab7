#![doc = include_str!("../README.md")]
//!
//! A [`Mechanism`] starts a [`fhaim_release::Machine`], which requests releases batch by batch. A
//! [`fhaim_release::ReleaseSource`] answers them, in the clear ([`PlaintextSource`]) or by
//! computing on ciphertexts. [`drive`] connects the two and returns a [`FittedModel`].
//!
//! A [`MechanismName`] selects one of the mechanisms:
//!
//! * [`Staged`], the default;
//! * [`FhaimL2`], the rule of the FHAIM paper;
//! * [`OneWaysOnly`], a baseline;
//! * [`Aim`], the reference, and [`Mst`], both only where exact marginals are available.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod account;
mod allowed;
mod blocks;
mod engine;
mod error;
mod expected;
pub mod forecast;
mod graphical;
mod mechanism;
mod mechanisms;
mod model;
mod need;
mod plaintext;
mod saved;
pub mod verify;

pub use account::{Offer, Release, ReleaseAccount};
pub use allowed::{Sampled, sample_allowed};
pub use blocks::{Block, Blocks, drawing_threads};
pub use engine::{AnyMachine, MechanismStep, RunOutcome, Timing, drive};
pub use error::{Error, Unfitted};
pub use expected::{Expected, ExpectedBatch, ExpectedFit};
pub use forecast::{BudgetPlan, Forecast, PairPlan, RoundPlan, WeightedPlan, forecast};
pub use mechanism::{Mechanism, check_start, parse_options, write_options};
pub use mechanisms::MechanismName;
pub use mechanisms::aim::{Aim, AimOptions, FixedRounds, Score};
pub use mechanisms::candidates::{Candidate, candidates, eligible};
pub use mechanisms::fhaim_l2::{FhaimL2, FhaimL2Options};
pub use mechanisms::fitting::{FINAL_STEPS, FIT_STEPS};
pub use mechanisms::mst::Mst;
pub use mechanisms::one_ways::OneWaysOnly;
pub use mechanisms::score::MEAN_ABS;
pub use mechanisms::staged::{Ablations, Staged, StagedOptions};
pub use model::{Conditions, Density, FittedModel, Marginals, ModelError};
pub use need::{Mechanisms, need};
pub use plaintext::{PlaintextSource, exact};
pub use saved::load_model;

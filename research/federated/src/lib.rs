#![doc = include_str!("../README.md")]
//!
//! - [`partition`] splits a table among parties as the papers do; [`heterogeneity()`] measures how much they differ.
//! - [`FederatedSetting`] is the public setting of a run, and [`Plan`] the noise that follows from it.
//! - A [`Client`] holds records and a [`PartyLedger`]; a [`Server`] asks clients in rounds and fits the model.
//!   [`play()`] runs both in one process.
//! - [`PooledRun`] is AIM over the sums of the parties (DistAIM).
//! - [`FederatedSource`] answers any mechanism of `fhaim-synth` from the sums of the parties.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod client;
mod error;
mod fitting;
mod heterogeneity;
mod ledger;
mod masks;
mod message;
mod participation;
pub mod partition;
mod plan;
mod play;
mod pooled;
mod schedule;
mod score;
mod server;
mod setting;
mod source;

pub use client::Client;
pub use error::Error;
pub use heterogeneity::heterogeneity;
pub use ledger::{PartyEntry, PartyLedger, Spending};
pub use masks::{MODULUS, PairKeys, lift};
pub use message::{Call, Group, Reply, Request};
pub use participation::Participation;
pub use plan::{Parts, Plan};
pub use play::{Run, play, play_with};
pub use pooled::PooledRun;
pub use server::{Outcome, Server};
pub use setting::{Accounting, FederatedSetting, Method, least_rounds, random_triples};
pub use source::FederatedSource;

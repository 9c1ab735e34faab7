//! The data entity: encrypts a table on its holder's machine, and talks to the services.
//!
//! A [`Client`] signs in and keeps its session fresh. [`Client::prepare`] makes a dataset known to
//! all three services; [`Client::upload`] encrypts and sends it, and goes on where it stopped;
//! then jobs run without the holder. Plaintext and noise never leave this crate.

mod account;
mod client;
mod dataset;
mod endpoints;
mod error;
mod holders;
mod job;
mod journal;
mod ladder;
mod link;
mod receipts;
mod upload;
mod verify;

pub use client::{Client, Keeper, Login};
pub use endpoints::Endpoints;
pub use error::Error;
pub use holders::{Withdrawal, WithdrawnPart};
pub use job::Events;
pub use journal::Journal;
pub use ladder::KeptLadder;
pub use link::LinkAddress;
pub use receipts::ReceiptStore;
pub use upload::{NoiseSource, Records, UploadProgress, UploadSource};
pub use verify::{Fault, Share, Verification, VerifyFinding};

/// The examples of the README, which are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

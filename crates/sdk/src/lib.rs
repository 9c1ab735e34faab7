#![doc = include_str!("../README.md")]
//!
//! # Overview
//!
//! A [`Client`] signs in and renews its session. [`Client::prepare`] registers a dataset with all
//! three services. [`Client::upload`] encrypts and sends the table, and resumes an interrupted
//! upload. Jobs then run without the holder. Plaintext and noise never leave this crate.

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

pub use client::{Client, Keeper, List, Login, Waiting};
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

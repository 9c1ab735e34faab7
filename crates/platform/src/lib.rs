#![doc = include_str!("../README.md")]
//!
//! # Overview
//!
//! | module | for |
//! |---|---|
//! | [`base`] | database, blobs and keys, which a service opens before it answers |
//! | [`config`] | a TOML file, overridden by the environment |
//! | [`token`] | signing keys and their rotation, tokens, callers |
//! | [`store`], [`rows`] | SQLite and Postgres behind the same statements, columns as types |
//! | [`blobs`] | large objects in a folder or an S3 bucket |
//! | [`seal`] | secrets at rest |
//! | [`lease`], [`runner`] | long work that continues if its worker is killed |
//! | [`housekeeping`], [`memory`] | interrupted deletions, blobs without a row, freed memory |
//! | [`threads`] | long work outside the threads that answer requests |
//! | [`failure`], [`extract`], [`leftover`] | problem documents for all errors, and their delivery |
//! | [`peer`] | calls from service to service |
//! | [`peers`] | checks that the other services answer and that the clocks agree |
//! | [`program`], [`server`], [`connections`] | a service as a program, and the layers around its routes |
//! | [`telemetry`], [`security`], [`shutdown`] | logs, metrics, stopping |

pub mod base;
pub mod blobs;
pub mod clock;
pub mod config;
pub mod connections;
pub mod extract;
pub mod failure;
pub mod housekeeping;
pub mod lease;
pub mod leftover;
pub mod memory;
pub mod peer;
pub mod peers;
pub mod program;
mod receiving;
pub mod rows;
pub mod runner;
pub mod seal;
pub mod security;
mod sending;
pub mod server;
pub mod shutdown;
pub mod store;
pub mod telemetry;
pub mod threads;
pub mod token;

pub use failure::Failure;

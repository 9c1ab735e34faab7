//! What the three services share.
//!
//! | module | for |
//! |---|---|
//! | [`base`] | what a service opens before it answers |
//! | [`config`] | a TOML file, overridden by the environment |
//! | [`token`] | signing keys and their rotation, tokens, who is asking |
//! | [`store`], [`rows`] | SQLite and Postgres behind the same statements, columns as types |
//! | [`blobs`] | a folder or an S3 bucket |
//! | [`seal`] | secrets at rest |
//! | [`lease`], [`runner`] | long work that survives its worker, and how it is run |
//! | [`housekeeping`] | what is deleted stays deleted |
//! | [`threads`] | long work off the threads that answer |
//! | [`failure`], [`extract`], [`leftover`] | problem documents for everything that goes wrong, and that they arrive |
//! | [`peer`] | calls from service to service |
//! | [`peers`] | whether the others answer, and whether the clocks agree |
//! | [`program`], [`server`] | a service as a program, and what is around its routes |
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

/// The examples of the README, which are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

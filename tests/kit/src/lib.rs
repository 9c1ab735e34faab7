//! Shared support for the tests of several crates: services as processes and the command to use
//! them, the servers that the environment names, configurations, tables, and recording proxies.
//!
//! All functions panic on errors, so that a test ends at the first failure.
//!
//! # Example
//!
//! ```no_run
//! use fhaim_kit::{Backing, Services};
//!
//! let services = Services::start("target/debug/fhaim", &Backing::Local);
//! services.sign_up("ana");
//! ```

#![allow(clippy::unwrap_used)]

mod backing;
mod capture;
pub mod command;
pub mod config;
pub mod files;
pub mod hospital;
pub mod pieces;
mod port;
mod services;
mod storage;
pub mod tables;
mod wait;

pub use backing::{Backing, postgres_server};
pub use capture::{Capture, Message};
pub use port::Port;
pub use services::{
    Between, HOLDER, KEYSHARE, NAMES, PASSWORD, ServiceOptions, Services, WITNESS, name_of,
};
pub use storage::DataCopy;
pub use wait::until;

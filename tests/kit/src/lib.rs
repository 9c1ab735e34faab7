//! What tests of several crates share: three services as processes and the command against them,
//! the servers that the environment names, configurations, tables, and proxies that remember what
//! passes.
//!
//! A test ends at the first thing that is not as it must be: what is here panics where it cannot do
//! what it says.

#![allow(clippy::unwrap_used)]

mod backing;
mod capture;
pub mod command;
pub mod config;
pub mod files;
pub mod hospital;
mod port;
mod services;
pub mod tables;
mod wait;

pub use backing::{Backing, postgres_server};
pub use capture::{Capture, Message};
pub use port::Port;
pub use services::{Between, HOLDER, KEYSHARE, NAMES, PASSWORD, ServiceOptions, Services, WITNESS};
pub use wait::until;

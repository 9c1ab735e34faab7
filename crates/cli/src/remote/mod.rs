//! Commands that talk to the services.

pub mod account;
pub mod args;
pub mod dataset;
mod forecast;
mod holders;
pub mod job;
pub mod link;
pub mod login;
pub mod verify;

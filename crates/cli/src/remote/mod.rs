//! Commands that work with a server.

pub mod account;
pub mod args;
mod card;
pub mod dataset;
mod forecast;
mod holders;
pub mod job;
pub mod ledger;
pub mod link;
pub mod login;
pub mod verify;

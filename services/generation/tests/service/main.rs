//! The service over HTTP, with a real database on a loopback port.
#![allow(clippy::unwrap_used)]

#[macro_use]
mod common;

mod accounts;
mod document;
mod holders;
mod jobs;
mod limits;
mod links;
mod synthetic;
mod tenants;

//! Tests of the service over HTTP on a loopback port, with a real database.
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

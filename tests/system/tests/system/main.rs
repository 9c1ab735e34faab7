//! End-to-end tests of the platform with real processes, HTTP and databases.
//!
//! The program is `fhaim` with an additional flag for a test seed, so that releases can be compared.
//! Tests that need servers, data or several minutes are ignored; `.ci/tests` runs those whose needs are met.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

mod accounts;
mod agreement;
mod crashes;
mod damage;
mod deletion;
mod drill;
mod fits;
mod flow;
mod forgotten;
mod frozen;
mod history;
mod links;
mod lost;
mod metrics;
mod names;
mod operators;
mod outages;
mod parties;
mod program;
mod prompts;
mod restores;
mod schedules;
mod secret_leaks;
mod shares;
mod stopping;
mod tenants;
mod uploads;
mod verify;
mod views;
mod watch;
mod witness;

/// Path of the tested program.
const PROGRAM: &str = env!("CARGO_BIN_EXE_fhaim_insecure_test_seed");

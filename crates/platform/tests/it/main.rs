//! Integration tests, in one program because each program takes seconds to link.

mod common;
mod full_disk;
mod leases;
mod migrations;
mod runner;
mod statements;
mod stopping;
mod tokens;
mod transactions;

//! Integration tests, in one program because each program takes seconds to link.

mod common;
mod debits;
mod destruction;
mod holders;
mod ledger;
mod limits;

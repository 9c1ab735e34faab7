//! Every stored or sent format, read from golden bytes.
//!
//! Each test reads its files, checks the values in them, writes the values again and compares the
//! bytes. Damaged bytes have to be refused by a typed error. `README.md` says which file is of
//! which format.
#![allow(clippy::unwrap_used)]

mod counts;
mod encryption;
mod files;
mod history;
mod ledger;
mod links;
mod model;
mod parties;
mod request;
mod secrets;
mod shares;
mod terms;
mod upload;
mod upload_key;
mod versions;
mod wire;

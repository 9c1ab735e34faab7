//! Tests that read every stored or sent format from golden bytes.
//!
//! Each test reads its files, checks their values, writes the values again and compares the bytes. Damaged bytes must
//! be rejected with a typed error. `README.md` lists the format of each file.
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

//! The holder's side in the browser: drafts and checks schemas, reads tables, and encrypts.
//!
//! The crate runs the same domain, accounting and encryption code as the other programs, behind one function.
//! [`TableSession::answer`] takes a request as JSON ([`request::Request`]) and its bytes as a stream, so that a large
//! file is never in memory as a whole. In WebAssembly, the module `abi` connects it to the page's worker without
//! generated glue: three imports, two exports.
//!
//! A session keeps one table and the keys that it is encrypted under. This crate does not send anything.

#[cfg(target_family = "wasm")]
mod abi;
mod error;
mod plan;
pub mod request;
mod schema;
mod session;
mod table;
mod text;

pub use error::{Error, Told};
pub use session::{Reply, TableSession};

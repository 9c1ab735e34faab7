//! The holder's side in the browser: drafts and checks schemas, reads tables, encrypts.
//!
//! The same domain, accounting and encryption code as everywhere, behind one function:
//! [`TableSession::answer`] takes a request as JSON ([`request::Request`]) and the bytes that belong to
//! it as a stream, so that a large file is never held as a whole. In WebAssembly the module `abi`
//! connects it to the page's worker, without generated glue: three imports, two exports.
//!
//! A session keeps one table and what it is encrypted under. Nothing here sends anything.

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

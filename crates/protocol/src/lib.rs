//! The four entities' protocol as state machines without I/O (docs/DESIGN.md sections 1, 4, 6).
//!
//! | entity | module | holds | sends |
//! |---|---|---|---|
//! | data entity | [`holder`], [`upload`] | the table, the noise it draws | ciphertexts, to computation |
//! | computation entity | [`computation`] | ciphertexts, public and evaluation keys | sealed pages, to crypto |
//! | crypto-service entity | [`crypto`] | the secret key, the ledger | keys; released integers |
//! | generation entity | [`generation`] | released integers | requests, to computation |
//!
//! In one process the entities are values that call each other; services put HTTP and a database
//! around the same values. Nothing passes between them but [`upload`]'s objects, keys, and the
//! [`request`]s for decryption with their answers.

pub mod bench;
mod codec;
pub mod computation;
pub mod crypto;
mod error;
pub mod generation;
pub mod holder;
pub mod request;
pub mod terms;
pub mod upload;

pub use error::Error;

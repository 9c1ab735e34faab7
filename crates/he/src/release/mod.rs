//! Results of a computation: packed pages, and sealing them for decryption.

pub(crate) mod page;
pub(crate) mod seal;

//! What the three services share.
//!
//! | module | for |
//! |---|---|
//! | [`base`] | what a service opens before it answers |
//! | [`config`] | a TOML file, overridden by the environment |
//! | [`token`] | signing keys and their rotation, tokens, who is asking |
//! | [`store`] | SQLite and Postgres behind the same statements |
//! | [`blobs`] | a folder or an S3 bucket |
//! | [`seal`] | secrets at rest |
//! | [`lease`] | long work that survives its worker |
//! | [`failure`], [`extract`] | problem documents for everything that goes wrong |
//! | [`peer`] | calls from service to service |
//! | [`program`], [`server`] | a service as a program, and what is around its routes |
//! | [`telemetry`], [`shutdown`] | logs, metrics, stopping |

pub mod base;
pub mod blobs;
pub mod clock;
pub mod config;
pub mod extract;
pub mod failure;
pub mod lease;
pub mod peer;
pub mod program;
pub mod seal;
pub mod server;
pub mod shutdown;
pub mod store;
pub mod telemetry;
pub mod token;

pub use failure::Failure;

//! Signing keys, tokens, and callers.
//!
//! Every service has its own Ed25519 signing keys, sealed in its database, rotated, and published at
//! `/.well-known/jwks.json`. The generation service issues users' tokens, and services sign their own tokens. A
//! verifier fetches an issuer's keys when it meets an unknown key id. A new key therefore works at once, and an old
//! one as long as tokens under it live. If the keys cannot be fetched, the token cannot be judged: that is an outage,
//! not a refusal. The generation service also publishes which users' tokens ended before their expiry, and the others
//! ask it every few seconds.

mod caller;
mod eddsa;
mod signer;
mod verifier;

pub use caller::{Caller, Peer, SessionUser, User};
pub use eddsa::install as install_ed25519;
pub use signer::{Signer, TokenSession};
pub use verifier::Verifier;
pub(crate) use verifier::{FETCH_EVERY, MAX_SKEW};

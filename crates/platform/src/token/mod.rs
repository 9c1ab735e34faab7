//! Signing keys, tokens, and who is asking.
//!
//! Every service has Ed25519 signing keys of its own, sealed in its database, rotated, and
//! published at `/.well-known/jwks.json`. Users' tokens are issued by the generation service;
//! services sign their own. A verifier fetches an issuer's keys when it meets a key id it does
//! not know, so a new key works at once and an old one as long as tokens under it live. Where they
//! cannot be had, nobody can say whether the token is good: that is an outage, not a refusal.

mod caller;
mod signer;
mod verifier;

pub use caller::{Caller, Peer, User};
pub use signer::Signer;
pub use verifier::Verifier;
pub(crate) use verifier::{FETCH_EVERY, MAX_SKEW};

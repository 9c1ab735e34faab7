//! The confirmations of all key services of a committee for the keys that they made.
//!
//! A holder that encrypts under a split key must not trust a single service, which could hand out a
//! key of its own choice. So a committee's key comes with a confirmation by every service, and all
//! of them must agree.

use super::KeyCommittee;
use super::keygen::step_digest;
use super::message::{Message, Step};
use crate::Error;

/// Checks the confirmations of all services against the SHA-256 of a public key and of evaluation
/// keys. Returns the digest of all messages of the key generation, which identifies the key.
///
/// # Errors
/// [`Error::Committee`] for bytes that are not a confirmation of this committee, and for a missing
/// one; [`Error::Deviation`] with the sender of a confirmation of other keys.
pub fn check(
    committee: &KeyCommittee,
    public_key: &[u8; 32],
    evaluation_keys: &[u8; 32],
    messages: &[Vec<u8>],
) -> Result<[u8; 32], Error> {
    let mut digests = vec![None; committee.services().len()];
    let mut seen = None;
    for bytes in messages {
        let message = Message::read(committee, bytes)?;
        if message.step != Step::Confirmation {
            return Err(Error::Committee("a message belongs to another step"));
        }
        if message.fixed::<64>()? != [*public_key, *evaluation_keys].as_flattened() {
            return Err(committee.deviation(message.sender, "confirmed other keys"));
        }
        if *seen.get_or_insert(message.seen) != message.seen {
            let what = "has other messages of the earlier steps";
            return Err(committee.deviation(message.sender, what));
        }
        // The sender's number is below that of the committee's services.
        if let Some(place) = digests.get_mut(message.sender) {
            *place = Some(message.digest);
        }
    }
    let digests: Option<Vec<_>> = digests.into_iter().collect();
    let (Some(digests), Some(seen)) = (digests, seen) else {
        return Err(Error::Committee("not every service has confirmed the keys"));
    };
    Ok(step_digest(&seen, &digests))
}

//! What all key services of a committee say of the keys that they made.
//!
//! Whoever encrypts under a split key must not take one service's word for it: that one could give out a
//! key of its own. A key of the committee comes with a confirmation by every service, and all of them say the same.

use super::KeyCommittee;
use super::keygen::step_digest;
use super::message::{Message, Step};
use crate::Error;

/// Holds the confirmations of all services against the SHA-256 of a public key and of evaluation keys:
/// the digest of all messages of the key generation, which says which key it is.
///
/// # Errors
/// [`Error::Committee`] for bytes that are no confirmation of this committee, and where one is missing;
/// [`Error::Deviation`], with its sender, for one of other keys.
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
            return Err(Error::Committee("a message of another step"));
        }
        if message.fixed::<64>()? != [*public_key, *evaluation_keys].as_flattened() {
            return Err(committee.deviation(message.sender, "confirmed other keys"));
        }
        if *seen.get_or_insert(message.seen) != message.seen {
            let what = "has other messages of the steps before";
            return Err(committee.deviation(message.sender, what));
        }
        // The sender is one of the committee's.
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

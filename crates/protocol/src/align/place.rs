//! A party's place in an alignment, its messages, and its result.

use curve25519_dalek::Scalar;

use super::error::AlignError;
use super::group::{GroupElement, hash_to_scalar};
use super::wire::{Content, Message};

/// A message to be delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The parties that receive it.
    pub to: Vec<usize>,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// The result of an alignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aligned {
    /// The party's own row of each common record, in the common order.
    pub rows: Vec<usize>,
    /// Number of rows of every party.
    pub sizes: Vec<usize>,
}

/// The alignment of a party, and the party's number in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) session: [u8; 32],
    pub(super) parties: usize,
    pub(super) me: usize,
}

impl Place {
    pub(super) fn message(self, to: Vec<usize>, content: Content) -> Outgoing {
        let message = Message {
            session: self.session,
            sender: self.me,
            content,
        };
        Outgoing {
            to,
            bytes: message.to_bytes(),
        }
    }
}

pub(super) const UNEXPECTED: AlignError = AlignError::Message("not for this party");

/// Returns the point and the mask of a key's entry in the table of a party, given F of the key.
pub(super) fn entry_of(place: Place, f: &GroupElement) -> [Scalar; 2] {
    let labels = ["fhaim align point", "fhaim align mask"];
    labels.map(|label| hash_to_scalar(label, [&place.session, f]))
}

//! Row alignment: holders of columns find the records that all of them have, and agree on an order
//! of these records, without showing each other the rest.
//!
//! Private set intersection of two or three parties, from a Diffie-Hellman oblivious pseudorandom
//! function on ristretto255 and tables that do not reveal their keys (`align::table`). It follows the
//! conditional zero sharing of Kolesnikov, Matania, Pinkas, Rosulek and Trieu (2017), Section 4.
//!
//! 1. Each party hashes its join keys to the group, bound to the dataset and the session. The first
//!    party raises its hashes to a secret exponent, and sends the list to all others.
//! 2. Each other party i raises the list to its own exponent, and returns it. So the first party
//!    learns F_i of each of its keys, and of no others; party i learns nothing. Every exponent is new
//!    for each alignment.
//! 3. With the list, party i returns a table that has, for each key x of party i, the value s_i(x) +
//!    h(F_i(x)). Only a party that has F_i(x) can read s_i(x). The shares s_i(x) of all other parties
//!    add up to zero. With three parties they are +f(x) and -f(x), and the secret of f comes from a
//!    Diffie-Hellman exchange of the second and the third party.
//! 4. The first party reads all tables at its keys. The keys with a sum of zero are common to all. It
//!    sends the F_i of the common keys to party i, which recognises its rows. The common order is the
//!    order of the first party's list.
//!
//! A table gives a random value at a key that it does not have. So if a key of the first party is not
//! common to all, each value that it reads is uniform and independent of the other one, whether one
//! of the others has the key or neither.
//!
//! **Knowledge of each party**: which of its rows are common to all, and the number of rows of each
//! party. Nothing else is learned under the decisional Diffie-Hellman assumption, with SHA-512 as a
//! random oracle, if all parties follow the protocol and the first party pools its data with nobody.
//! This is true even if the parties read all messages between the others (docs/THREAT-MODEL.md,
//! "Alignment of rows"). A party that deviates can put keys of its choice into its list, and so test
//! whether all others have them. The first party can name wrong rows as common.
//!
//! [`Party`] does no I/O: it takes messages and returns messages. A repeated message gets the same
//! answer. The program that carries the messages must know the sender of each.

mod error;
mod first;
mod group;
mod other;
mod place;
mod table;
mod wire;

use crate::request::DatasetId;
use fhaim_he::map;
use first::First;
use group::hash_to_group;
use other::Other;
use place::Place;
use rand::{CryptoRng, RngCore};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use zeroize::Zeroizing;

/// A coefficient of [`Content::Answers`].
pub use curve25519_dalek::Scalar;
pub use error::{AlignError, MAX_KEYS, MAX_PARTIES, MIN_PARTIES};
pub use group::GroupElement;
pub use place::{Aligned, Outgoing};
pub use wire::{Content, Message, MessageKind};

/// One party of an alignment.
pub struct Party {
    place: Place,
    role: Role,
    /// Digest of the accepted message of each sender and kind.
    seen: BTreeMap<(usize, MessageKind), [u8; 32]>,
}

enum Role {
    First(First),
    Other(Box<Other>),
}

impl fmt::Debug for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Party");
        shown.field("me", &self.place.me).finish_non_exhaustive()
    }
}

/// Returns a join key in the form that parties compare: the values of the join columns in lower
/// case, without space at their ends, with each inner run of space as a single one, and each
/// preceded by its length.
pub fn normalised(values: &[&str]) -> Zeroizing<Vec<u8>> {
    let mut key = Zeroizing::new(Vec::new());
    let mut some = false;
    for value in values {
        let words: Vec<&str> = value.split_whitespace().collect();
        let value = Zeroizing::new(words.join(" ").to_lowercase());
        some |= !value.is_empty();
        key.extend_from_slice(&(value.len() as u64).to_le_bytes());
        key.extend_from_slice(value.as_bytes());
    }
    if !some {
        key.clear();
    }
    key
}

impl Party {
    /// Creates party `me` of `parties` from the keys of its rows ([`normalised`]), and returns its
    /// first message, if it has one. `session` is a number that all parties agree on, new for every
    /// alignment.
    ///
    /// # Errors
    /// [`AlignError::Parties`], [`AlignError::Rows`], [`AlignError::EmptyKey`],
    /// [`AlignError::RepeatedKey`].
    pub fn new<R: RngCore + CryptoRng>(
        dataset: DatasetId,
        session: [u8; 32],
        [parties, me]: [usize; 2],
        keys: &[Zeroizing<Vec<u8>>],
        rng: &mut R,
    ) -> Result<(Self, Option<Outgoing>), AlignError> {
        if !(MIN_PARTIES..=MAX_PARTIES).contains(&parties) || me >= parties {
            return Err(AlignError::Parties);
        }
        check_keys(keys)?;
        let hashed = map(keys.iter().collect(), |key: &Zeroizing<Vec<u8>>| {
            hash_to_group(dataset, session, key)
        });
        let place = Place {
            session,
            parties,
            me,
        };
        let (role, first) = match me {
            0 => {
                let (first, message) = First::new(place, &hashed, rng)?;
                (Role::First(first), Some(message))
            }
            _ => {
                let (other, message) = Other::new(place, hashed, rng)?;
                (Role::Other(Box::new(other)), message)
            }
        };
        let party = Self {
            place,
            role,
            seen: BTreeMap::new(),
        };
        Ok((party, first))
    }

    /// Accepts a message from another party, and returns the messages to send.
    ///
    /// # Errors
    /// [`AlignError::Message`] for bytes that are not a message of this alignment, that have the
    /// wrong sender, or that differ from an earlier message. The party is then unchanged.
    /// [`AlignError::Chance`].
    pub fn receive(&mut self, from: usize, bytes: &[u8]) -> Result<Vec<Outgoing>, AlignError> {
        let message = Message::from_bytes(bytes)?;
        let kind = message.kind();
        if message.session != self.place.session {
            return Err(AlignError::Message("it belongs to another alignment"));
        }
        if message.sender != from || from >= self.place.parties || from == self.place.me {
            return Err(AlignError::Message("from the wrong sender"));
        }
        let digest: [u8; 32] = Sha256::digest(bytes).into();
        if self
            .seen
            .get(&(from, kind))
            .is_some_and(|known| *known != digest)
        {
            return Err(AlignError::Message("differs from an earlier one"));
        }
        let sent = match &mut self.role {
            Role::First(first) => first.receive(self.place, from, message.content),
            Role::Other(other) => other.receive(self.place, from, message.content),
        }?;
        self.seen.insert((from, kind), digest);
        Ok(sent)
    }

    /// Returns the common rows once they are known and this party has no work left for the others.
    pub fn aligned(&self) -> Option<Aligned> {
        match &self.role {
            Role::First(first) => first.aligned(self.place),
            Role::Other(other) => other.aligned(),
        }
    }
}

fn check_keys(keys: &[Zeroizing<Vec<u8>>]) -> Result<(), AlignError> {
    if keys.is_empty() || keys.len() > MAX_KEYS {
        return Err(AlignError::Rows(keys.len()));
    }
    let mut rows: HashMap<&[u8], usize> = HashMap::with_capacity(keys.len());
    for (second, key) in keys.iter().enumerate() {
        if key.is_empty() {
            return Err(AlignError::EmptyKey(second));
        }
        if let Some(first) = rows.insert(key, second) {
            return Err(AlignError::RepeatedKey { first, second });
        }
    }
    Ok(())
}

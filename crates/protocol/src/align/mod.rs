//! Row alignment: holders of columns find the records that all of them have, and agree on an order
//! of these records, without showing each other the rest.
//!
//! Diffie-Hellman private set intersection on ristretto255, for two or three parties.
//!
//! 1. Each party hashes its join keys to the group, bound to the dataset. It raises them to a
//!    secret exponent that is new for every alignment, and sends the list to the next party. Each
//!    other party raises the list to its own exponent and sends it on. The last one sends the list,
//!    now under all exponents, to all parties. Equal keys have become equal values, so every party
//!    sees the values that all lists have. Their ascending order is the common order.
//! 2. For each party the others remove their exponents from the common values, one after the other.
//!    The party receives the values under only its own exponent, in the common order, and
//!    recognises its rows.
//!
//! Lists are sent in ascending order of their values. So a list does not reveal its earlier order,
//! and no party can tell which of its rows a value under several exponents is.
//!
//! **Knowledge of each party**: which of its rows are common to all, the number of rows of each
//! party, and with three parties how many rows each two have in common ([`Aligned`]), but not
//! which. Nothing else is learned under the decisional Diffie-Hellman assumption, with SHA-512 as a
//! random oracle, if all parties follow the protocol and no two pool their data. A party that
//! deviates can put keys of its choice into its list, and so test whether others have them.
//!
//! [`Party`] does no I/O: it takes messages and returns messages. A repeated message gets the same
//! answer. The program that carries the messages must know the sender of each, and must not show
//! them to others.

mod wire;

use crate::request::DatasetId;
use curve25519_dalek::{RistrettoPoint, Scalar, ristretto::CompressedRistretto};
use fhaim_he::map;
use rand::{CryptoRng, RngCore};
use sha2::{Digest, Sha256, Sha512};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use zeroize::{Zeroize, Zeroizing};

pub use wire::{GroupElement, MAX_KEYS, Message, Stage};

/// Smallest and largest number of parties of an alignment.
pub const MIN_PARTIES: usize = 2;
/// See [`MIN_PARTIES`].
pub const MAX_PARTIES: usize = 3;

/// Reasons for which an alignment fails. No variant carries a key. Rows are the party's own,
/// counted from 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AlignError {
    /// The number of parties, or the party's own number, is out of range.
    #[error(
        "an alignment needs {MIN_PARTIES} or {MAX_PARTIES} parties, and this party's number must be one of them"
    )]
    Parties,
    /// The table has no rows, or too many.
    #[error("a table to align must have 1 to {MAX_KEYS} rows, and this one has {0}")]
    Rows(usize),
    /// A join key is empty. Rows without a key cannot be matched.
    #[error("row {0} has no join key: remove rows without a join key")]
    EmptyKey(usize),
    /// Two rows have the same join key.
    #[error(
        "rows {first} and {second} have the same join key: remove one, or align by more columns"
    )]
    RepeatedKey {
        /// The earlier row.
        first: usize,
        /// The later row.
        second: usize,
    },
    /// The bytes are not a message of this alignment from their sender.
    #[error("message: {0}")]
    Message(&'static str),
}

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
    /// Number of rows that each two parties have in common, in lexicographic order of the pairs.
    pub overlaps: Vec<([usize; 2], usize)>,
}

/// One party of an alignment.
pub struct Party {
    session: [u8; 32],
    parties: usize,
    me: usize,
    exponent: Zeroizing<Exponent>,
    /// The own row of each value in the list that was sent.
    rows: HashMap<GroupElement, usize>,
    /// Digest of the accepted message for each list and stage.
    seen: BTreeMap<(usize, Stage), [u8; 32]>,
    /// Every party's list under all exponents.
    whole: BTreeMap<usize, BTreeSet<GroupElement>>,
    /// The own row of each common value, in the common order, once the others have removed their
    /// exponents.
    common: Option<Vec<usize>>,
}

/// A scalar that is wiped from memory when it is dropped.
#[derive(Clone, Copy, Default)]
struct Exponent(Scalar);

impl Zeroize for Exponent {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Party");
        shown.field("me", &self.me).finish_non_exhaustive()
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
    /// first message. `session` is a number that all parties agree on, new for every alignment.
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
    ) -> Result<(Self, Outgoing), AlignError> {
        if !(MIN_PARTIES..=MAX_PARTIES).contains(&parties) || me >= parties {
            return Err(AlignError::Parties);
        }
        check_keys(keys)?;
        let exponent = Zeroizing::new(Exponent(draw(rng)));
        let list = map(keys.iter().collect(), |key| {
            let point = hash_to_group(dataset, session, key) * exponent.0;
            point.compress().0
        });
        let party = Self {
            session,
            parties,
            me,
            exponent,
            rows: list.iter().copied().zip(0..).collect(),
            seen: BTreeMap::new(),
            whole: BTreeMap::new(),
            common: None,
        };
        let first = party.list(me, 1, list);
        Ok((party, first))
    }

    /// Accepts a message from another party, which may be the party's own list coming back, and
    /// returns the messages to send.
    ///
    /// # Errors
    /// [`AlignError::Message`] for bytes that are not a message of this alignment, that have the
    /// wrong sender, or that differ from an earlier message. The party is then unchanged.
    pub fn receive(&mut self, from: usize, bytes: &[u8]) -> Result<Vec<Outgoing>, AlignError> {
        let message = Message::from_bytes(bytes)?;
        self.check(from, &message)?;
        let digest: [u8; 32] = Sha256::digest(bytes).into();
        let place = (message.owner, message.stage);
        match self.seen.get(&place) {
            Some(known) if *known != digest => {
                return Err(AlignError::Message("differs from an earlier one"));
            }
            _ => {}
        }
        let Message {
            owner,
            stage,
            values,
            ..
        } = message;
        let mut sent = Vec::new();
        match stage {
            Stage::Round(exponents) => {
                let list = self.raise(&values, &self.exponent.0)?;
                sent.push(self.list(owner, exponents + 1, list.clone()));
                if usize::from(exponents) + 1 == self.parties {
                    self.whole.insert(owner, list.into_iter().collect());
                }
            }
            Stage::Whole => {
                self.whole.insert(owner, values.into_iter().collect());
            }
            Stage::Common(_) if owner == self.me => {
                let rows = values.iter().map(|value| self.rows.get(value).copied());
                let rows: Option<Vec<usize>> = rows.collect();
                let none = AlignError::Message("a common value that this party does not have");
                self.common = Some(rows.ok_or(none)?);
            }
            Stage::Common(without) => {
                let rest = self.raise(&values, &self.exponent.0.invert())?;
                sent.push(self.message(owner, Stage::Common(without + 1), rest));
            }
        }
        if !matches!(stage, Stage::Common(_)) && self.whole.len() == self.parties {
            let common: Vec<GroupElement> = self.common_values().copied().collect();
            let rest = self.raise(&common, &self.exponent.0.invert())?;
            let owner = (self.me + self.parties - 1) % self.parties;
            sent.push(self.message(owner, Stage::Common(1), rest));
        }
        self.seen.insert(place, digest);
        Ok(sent)
    }

    /// Returns the values that all lists have, in ascending order.
    fn common_values(&self) -> impl Iterator<Item = &GroupElement> {
        let first = self.whole.values().next().into_iter().flatten();
        first.filter(|value| self.whole.values().all(|list| list.contains(*value)))
    }

    /// Returns the common rows once every party's list is here and this party has no work left for
    /// the others.
    pub fn aligned(&self) -> Option<Aligned> {
        // This party removes its exponent first for one party, second for another, and so on. The
        // last message is its own.
        let mut of_others = (1..self.parties as u8 - 1).map(Stage::Common);
        let done = |stage| self.seen.keys().any(|(_, seen)| *seen == stage);
        if self.whole.len() < self.parties || !of_others.all(done) {
            return None;
        }
        let rows = self.common.clone()?;
        if rows.len() != self.common_values().count() {
            return None;
        }
        let lists: Vec<&BTreeSet<GroupElement>> = self.whole.values().collect();
        let mut overlaps = Vec::new();
        for (a, one) in lists.iter().enumerate() {
            for (b, two) in lists.iter().enumerate().skip(a + 1) {
                overlaps.push(([a, b], one.intersection(two).count()));
            }
        }
        Some(Aligned {
            rows,
            sizes: lists.iter().map(|list| list.len()).collect(),
            overlaps,
        })
    }

    /// Rejects messages that the protocol does not send to this party.
    fn check(&self, from: usize, message: &Message) -> Result<(), AlignError> {
        let refuse = |what| Err(AlignError::Message(what));
        if message.session != self.session {
            return refuse("it belongs to another alignment");
        }
        let parties = self.parties;
        if message.owner >= parties || from >= parties {
            return refuse("for an unknown party");
        }
        // Number of parties that the list has passed on its way from its owner to the sender.
        let passed = (from + parties - message.owner) % parties;
        let to_me = (from + 1) % parties == self.me;
        let fits = from != self.me
            && match message.stage {
                Stage::Round(exponents) => {
                    to_me && usize::from(exponents) == passed + 1 && passed + 1 < parties
                }
                Stage::Whole => passed + 1 == parties,
                Stage::Common(without) => to_me && usize::from(without) == passed && passed > 0,
            };
        if !fits {
            return refuse("from the wrong sender, or not for this party");
        }
        let own = message.owner == self.me;
        if own && message.stage == Stage::Whole && message.values.len() != self.rows.len() {
            return refuse("the list came back with another number of rows");
        }
        let whole = self.whole.len() == parties;
        if matches!(message.stage, Stage::Common(_))
            && whole
            && message.values.len() != self.common_values().count()
        {
            return refuse("its number of rows differs from the number of common rows");
        }
        Ok(())
    }

    /// Multiplies values by an exponent or by the inverse of one, in their order.
    fn raise(
        &self,
        values: &[GroupElement],
        exponent: &Scalar,
    ) -> Result<Vec<GroupElement>, AlignError> {
        let raised = map(values.iter().collect(), |value| {
            // The decoder checked that every value is in the group.
            let point = CompressedRistretto(*value).decompress()?;
            Some((point * exponent).compress().0)
        });
        let raised: Option<Vec<GroupElement>> = raised.into_iter().collect();
        raised.ok_or(AlignError::Message("a value outside of the group"))
    }

    /// Makes the message of a list under the given number of exponents, in ascending order: for the
    /// next party, or for all others once it is complete.
    fn list(&self, owner: usize, exponents: u8, mut values: Vec<GroupElement>) -> Outgoing {
        values.sort_unstable();
        let stage = match usize::from(exponents) == self.parties {
            true => Stage::Whole,
            false => Stage::Round(exponents),
        };
        self.message(owner, stage, values)
    }

    fn message(&self, owner: usize, stage: Stage, values: Vec<GroupElement>) -> Outgoing {
        let to = match stage {
            Stage::Whole => (0..self.parties)
                .filter(|&party| party != self.me)
                .collect(),
            Stage::Round(_) | Stage::Common(_) => vec![(self.me + 1) % self.parties],
        };
        let message = Message {
            session: self.session,
            owner,
            stage,
            values,
        };
        Outgoing {
            to,
            bytes: message.to_bytes(),
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

/// Draws a secret exponent other than zero.
fn draw<R: RngCore + CryptoRng>(rng: &mut R) -> Scalar {
    loop {
        let mut wide = Zeroizing::new([0; 64]);
        rng.fill_bytes(wide.as_mut());
        let exponent = Scalar::from_bytes_mod_order_wide(&wide);
        if exponent != Scalar::ZERO {
            return exponent;
        }
    }
}

/// Hashes a key to a group element whose logarithm nobody knows.
fn hash_to_group(dataset: DatasetId, session: [u8; 32], key: &[u8]) -> RistrettoPoint {
    let mut hash = Sha512::new();
    hash.update(b"fhaim align 1");
    hash.update(dataset.0);
    hash.update(session);
    hash.update(key);
    RistrettoPoint::from_uniform_bytes(&hash.finalize().into())
}

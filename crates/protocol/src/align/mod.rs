//! Aligning rows: holders of columns agree on the records that all of them have, and on an order of
//! these, without showing each other the rest.
//!
//! Diffie-Hellman private set intersection on ristretto255, for two or three parties.
//!
//! 1. Everyone hashes its join keys to the group, bound to the dataset, raises them to a secret exponent that is new
//!    for every alignment, and sends the list round. Each other party raises it to its own exponent. The last one
//!    sends the list, now under all exponents, to everybody. Equal keys have become equal values, so everyone sees
//!    the values that all lists have. Their ascending order is the common order.
//! 2. For each party the others take their exponents off the common values, one after the other. The party gets them
//!    under only its own exponent, in the common order, and recognises its rows.
//!
//! Lists are sent in ascending order of their values. So a list tells nothing of the order that it had before, and no
//! party can tell which of its rows a value under several exponents is.
//!
//! **What each party learns**: which of its rows are common to all, the number of everyone's rows, and with three
//! parties how many rows each two have in common ([`Aligned`]), but not which. Under the decisional Diffie-Hellman
//! assumption, with SHA-512 as a random oracle, and while all follow the protocol and no two pool their data,
//! nothing else. A party that deviates can put keys of its choice into its list, and so ask whether others have them.
//!
//! [`Party`] does no I/O: it takes messages and gives messages. The same message again gives the
//! same answer. Whoever carries them must know from whom each is; they must not be shown to others.

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

/// The fewest and the most parties of an alignment.
pub const MIN_PARTIES: usize = 2;
/// See [`MIN_PARTIES`].
pub const MAX_PARTIES: usize = 3;

/// Why an alignment does not go on. No variant carries a key; rows are the party's own, counted
/// from 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AlignError {
    /// Not two or three parties, or no such one.
    #[error("an alignment is between {MIN_PARTIES} or {MAX_PARTIES} parties, of which this is one")]
    Parties,
    /// No keys, or too many.
    #[error("a table to align has 1 to {MAX_KEYS} rows, and this one has {0}")]
    Rows(usize),
    /// A key that is empty: rows without one cannot be matched.
    #[error("row {0} has no join key: leave rows without one out")]
    EmptyKey(usize),
    /// A key that two rows have.
    #[error(
        "rows {first} and {second} have the same join key: leave one out, or align by more columns"
    )]
    RepeatedKey {
        /// The earlier row.
        first: usize,
        /// The later row.
        second: usize,
    },
    /// Bytes that are no message of this alignment, from whom they came.
    #[error("message: {0}")]
    Message(&'static str),
}

/// A message to be delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The parties that it is for.
    pub to: Vec<usize>,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// What came of an alignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aligned {
    /// The party's own row of each record that all have, in the common order.
    pub rows: Vec<usize>,
    /// Rows of every party.
    pub sizes: Vec<usize>,
    /// How many each two parties have in common, in lexicographic order.
    pub overlaps: Vec<([usize; 2], usize)>,
}

/// One party of an alignment.
pub struct Party {
    session: [u8; 32],
    parties: usize,
    me: usize,
    exponent: Zeroizing<Exponent>,
    /// The own row of each value of the list that was sent.
    rows: HashMap<GroupElement, usize>,
    /// What was taken in of each list at each stage, by its digest.
    seen: BTreeMap<(usize, Stage), [u8; 32]>,
    /// Every party's list under all exponents.
    whole: BTreeMap<usize, BTreeSet<GroupElement>>,
    /// The own row of each common value, in the common order, once the others have taken their exponents off.
    common: Option<Vec<usize>>,
}

/// A scalar that is wiped.
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

/// A join key in the form in which two parties' are compared: the values of the join columns without
/// space at their ends, inner runs of it as one, and in lower case, each behind its length.
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
    /// Party `me` of `parties`, with its rows' keys ([`normalised`]), and what it sends first.
    /// `session` is a number that all parties agree on, new for every alignment.
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

    /// Takes a message of another party in, or of its own that came back to it, and says what is to be sent.
    ///
    /// # Errors
    /// [`AlignError::Message`] for bytes that are no message of this alignment, that do not come
    /// from whom they should, or differ from what came before. The party is unchanged then.
    pub fn receive(&mut self, from: usize, bytes: &[u8]) -> Result<Vec<Outgoing>, AlignError> {
        let message = Message::from_bytes(bytes)?;
        self.check(from, &message)?;
        let digest: [u8; 32] = Sha256::digest(bytes).into();
        let place = (message.owner, message.stage);
        match self.seen.get(&place) {
            Some(known) if *known != digest => {
                return Err(AlignError::Message("differs from before"));
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

    /// The values that all lists have, in ascending order.
    fn common_values(&self) -> impl Iterator<Item = &GroupElement> {
        let first = self.whole.values().next().into_iter().flatten();
        first.filter(|value| self.whole.values().all(|list| list.contains(*value)))
    }

    /// The common rows, once every party's list is there and this party has nothing more to do for the others.
    pub fn aligned(&self) -> Option<Aligned> {
        // For one party each it takes an exponent off first, second and so on; the last message is its own.
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

    /// Refuses what the protocol does not have at this party.
    fn check(&self, from: usize, message: &Message) -> Result<(), AlignError> {
        let refuse = |what| Err(AlignError::Message(what));
        if message.session != self.session {
            return refuse("of another alignment");
        }
        let parties = self.parties;
        if message.owner >= parties || from >= parties {
            return refuse("of no party");
        }
        // How many parties a list has passed on its way from its owner to the sender.
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
            return refuse("not from whom it should be, or not for this party");
        }
        let own = message.owner == self.me;
        if own && message.stage == Stage::Whole && message.values.len() != self.rows.len() {
            return refuse("another number of rows came back than were sent");
        }
        let whole = self.whole.len() == parties;
        if matches!(message.stage, Stage::Common(_))
            && whole
            && message.values.len() != self.common_values().count()
        {
            return refuse("another number of rows than are common");
        }
        Ok(())
    }

    /// Values under one exponent more, or less, in their order.
    fn raise(
        &self,
        values: &[GroupElement],
        exponent: &Scalar,
    ) -> Result<Vec<GroupElement>, AlignError> {
        let raised = map(values.iter().collect(), |value| {
            // The decoder held every value against the group.
            let point = CompressedRistretto(*value).decompress()?;
            Some((point * exponent).compress().0)
        });
        let raised: Option<Vec<GroupElement>> = raised.into_iter().collect();
        raised.ok_or(AlignError::Message("a value outside of the group"))
    }

    /// A list under the given number of exponents, in ascending order: to the next party, or to all others.
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

/// A secret exponent that is not zero.
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

/// A key as an element of the group, of which nobody knows a logarithm.
fn hash_to_group(dataset: DatasetId, session: [u8; 32], key: &[u8]) -> RistrettoPoint {
    let mut hash = Sha512::new();
    hash.update(b"fhaim align 1");
    hash.update(dataset.0);
    hash.update(session);
    hash.update(key);
    RistrettoPoint::from_uniform_bytes(&hash.finalize().into())
}

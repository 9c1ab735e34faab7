//! Aligning rows: holders of columns agree on the records that all of them have, and on an order of
//! these, without showing each other the rest.
//!
//! Diffie-Hellman private set intersection on ristretto255, for two or three parties. Everyone
//! hashes its join keys to the group, bound to the dataset, shuffles them once, raises them to a secret
//! exponent that is new for every alignment, and sends them round. Each other party raises them to
//! its own and keeps their order. The last one sends them, now under all exponents, to everybody.
//! Equal keys have become equal values, so all see which are common; the owner of a list knows which
//! row is at which place of it. The common order is that of the values.
//!
//! **What each party learns**: the common records, the number of everyone's, and with three
//! parties how many each two have in common ([`Aligned`]). Under the decisional Diffie-Hellman
//! assumption, with SHA-512 as a random oracle, and while all follow the protocol, nothing else: one that
//! does not can put keys of its choice into its list, and so ask whether others have them.
//!
//! [`Party`] does no I/O: it takes messages and gives messages. The same message again gives the
//! same answer. Whoever carries them must know from whom each is; they must not be shown to others.

mod wire;

use crate::holder::map;
use crate::request::DatasetId;
use curve25519_dalek::{RistrettoPoint, Scalar, ristretto::CompressedRistretto};
use rand::{CryptoRng, RngCore, seq::SliceRandom};
use sha2::{Digest, Sha256, Sha512};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use zeroize::{Zeroize, Zeroizing};

pub use wire::{MAX_KEYS, Message, Stage, Value};

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
    /// The party's own row of each common record, in the common order.
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
    /// The own row at each place of the list that was sent.
    rows: Vec<usize>,
    /// What was taken in of each list at each stage, by its digest.
    seen: BTreeMap<(usize, u8), [u8; 32]>,
    /// Every party's list under all exponents.
    whole: BTreeMap<usize, Vec<Value>>,
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
        let mut rows: Vec<usize> = (0..keys.len()).collect();
        rows.shuffle(rng);
        let exponent = Zeroizing::new(Exponent(draw(rng)));
        let list = map(&rows, |&row| {
            let key = keys.get(row).map_or(&[][..], |key| key);
            (hash_to_group(dataset, session, key) * exponent.0)
                .compress()
                .0
        });
        let party = Self {
            session,
            parties,
            me,
            exponent,
            rows,
            seen: BTreeMap::new(),
            whole: BTreeMap::new(),
        };
        let first = party.outgoing(me, 1, list);
        Ok((party, first))
    }

    /// Takes a message of another party in, or of its own that came back to it, and says what is to be sent.
    ///
    /// # Errors
    /// [`AlignError::Message`] for bytes that are no message of this alignment, that do not come
    /// from whom they should, or differ from what came before. The party is unchanged then.
    pub fn receive(&mut self, from: usize, bytes: &[u8]) -> Result<Vec<Outgoing>, AlignError> {
        let message = Message::from_bytes(bytes)?;
        let hops = self.check(from, &message)?;
        let digest: [u8; 32] = Sha256::digest(bytes).into();
        let place = (message.owner, hops);
        match self.seen.get(&place) {
            Some(known) if *known != digest => {
                return Err(AlignError::Message("differs from before"));
            }
            _ => {}
        }
        let sent = match message.stage {
            Stage::Round(_) => {
                let list = self.raise(&message.values)?;
                let sent = self.outgoing(message.owner, hops + 1, list.clone());
                if usize::from(hops) + 1 == self.parties {
                    self.whole.insert(message.owner, list);
                }
                vec![sent]
            }
            Stage::Whole => {
                self.whole.insert(message.owner, message.values);
                Vec::new()
            }
        };
        self.seen.insert(place, digest);
        Ok(sent)
    }

    /// The common rows, once every party's list is there.
    pub fn aligned(&self) -> Option<Aligned> {
        if self.whole.len() < self.parties {
            return None;
        }
        let lists: Vec<BTreeSet<&Value>> = (0..self.parties)
            .map(|p| self.whole.get(&p).into_iter().flatten().collect())
            .collect();
        let own = self.whole.get(&self.me)?;
        let places: HashMap<&Value, usize> = own.iter().zip(self.rows.iter().copied()).collect();
        let (first, others) = lists.split_first()?;
        let common = first
            .iter()
            .filter(|value| others.iter().all(|list| list.contains(*value)));
        let rows = common.map(|value| places.get(*value).copied());
        let mut overlaps = Vec::new();
        for (a, one) in lists.iter().enumerate() {
            for (b, two) in lists.iter().enumerate().skip(a + 1) {
                overlaps.push(([a, b], one.intersection(two).count()));
            }
        }
        Some(Aligned {
            rows: rows.collect::<Option<_>>()?,
            sizes: lists.iter().map(BTreeSet::len).collect(),
            overlaps,
        })
    }

    /// Refuses what the protocol does not have at this party. Under how many exponents the values are.
    fn check(&self, from: usize, message: &Message) -> Result<u8, AlignError> {
        let refuse = |what| Err(AlignError::Message(what));
        if message.session != self.session {
            return refuse("of another alignment");
        }
        if message.owner >= self.parties || from >= self.parties {
            return refuse("of no party");
        }
        // Under so many exponents when it leaves a party: its own is the first.
        let at_sender = (from + self.parties - message.owner) % self.parties + 1;
        let hops = match message.stage {
            Stage::Round(hops) => hops,
            Stage::Whole => self.parties as u8,
        };
        if usize::from(hops) != at_sender || from == self.me {
            return refuse("not from whom it should be");
        }
        if let Stage::Round(_) = message.stage {
            let to_me = (from + 1) % self.parties == self.me;
            if !to_me || usize::from(hops) >= self.parties {
                return refuse("not for this party");
            }
        }
        if message.owner == self.me && message.values.len() != self.rows.len() {
            return refuse("another number of rows came back than were sent");
        }
        Ok(hops)
    }

    /// Values under one exponent more, in their order.
    fn raise(&self, values: &[Value]) -> Result<Vec<Value>, AlignError> {
        let raised = map(values, |value| {
            // The decoder held every value against the group.
            let point = CompressedRistretto(*value).decompress()?;
            Some((point * self.exponent.0).compress().0)
        });
        let raised: Option<Vec<Value>> = raised.into_iter().collect();
        raised.ok_or(AlignError::Message("a value outside of the group"))
    }

    /// A list under so many exponents: to the next party, or to all others.
    fn outgoing(&self, owner: usize, hops: u8, values: Vec<Value>) -> Outgoing {
        let whole = usize::from(hops) == self.parties;
        let message = Message {
            session: self.session,
            owner,
            stage: if whole {
                Stage::Whole
            } else {
                Stage::Round(hops)
            },
            values,
        };
        let to = if whole {
            (0..self.parties)
                .filter(|&party| party != self.me)
                .collect()
        } else {
            vec![(self.me + 1) % self.parties]
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

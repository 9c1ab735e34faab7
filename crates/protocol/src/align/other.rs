//! The second and the third party of an alignment.

use curve25519_dalek::Scalar;
use fhaim_he::map;
use rand::{CryptoRng, RngCore};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use zeroize::Zeroizing;

use super::error::AlignError;
use super::group::{Exponent, GroupElement, hash_to_scalar};
use super::place::{Aligned, Outgoing, Place, UNEXPECTED, entry_of};
use super::table;
use super::table::Entry;
use super::wire::Content;

/// The state of a party other than the first one.
pub(super) struct Other {
    exponent: Zeroizing<Exponent>,
    /// Half of the exchange of the secret with the third party, if there is one.
    half: Zeroizing<Exponent>,
    /// Seed of the table's random coefficients.
    seed: Zeroizing<[u8; 32]>,
    /// The hash of each row's key, and F of the key.
    hashed: Vec<GroupElement>,
    own: Vec<GroupElement>,
    /// The first party's list.
    list: Option<Vec<GroupElement>>,
    secret: Secret,
    aligned: Option<Aligned>,
}

/// The secret of the shares.
enum Secret {
    /// Of two parties, the second one has all shares. They are zero.
    None,
    Awaited,
    Known(Zeroizing<[u8; 32]>),
}

impl Other {
    pub(super) fn new<R: RngCore + CryptoRng>(
        place: Place,
        hashed: Vec<GroupElement>,
        rng: &mut R,
    ) -> Result<(Self, Option<Outgoing>), AlignError> {
        let exponent = Exponent::draw(rng);
        let half = Exponent::draw(rng);
        let mut seed = Zeroizing::new([0; 32]);
        rng.fill_bytes(seed.as_mut());
        let own = exponent.raise(&hashed).ok_or(UNEXPECTED)?;
        let (secret, message) = match partner(place) {
            Some(partner) => {
                let half = Content::Half(half.of_generator());
                (Secret::Awaited, Some(place.message(vec![partner], half)))
            }
            None => (Secret::None, None),
        };
        let other = Self {
            exponent,
            half,
            seed,
            hashed,
            own,
            list: None,
            secret,
            aligned: None,
        };
        Ok((other, message))
    }

    pub(super) fn receive(
        &mut self,
        place: Place,
        from: usize,
        content: Content,
    ) -> Result<Vec<Outgoing>, AlignError> {
        match content {
            Content::List(values) if from == 0 => self.list = Some(values),
            Content::Half(value) if partner(place) == Some(from) => {
                self.secret = Secret::Known(self.exchanged(place, &value)?);
            }
            Content::Common { sizes, values } if from == 0 => {
                self.aligned = Some(self.recognised(place, sizes, &values)?);
                return Ok(Vec::new());
            }
            _ => return Err(UNEXPECTED),
        }
        self.answers(place)
    }

    /// Returns the secret of the second and the third party.
    fn exchanged(
        &self,
        place: Place,
        theirs: &GroupElement,
    ) -> Result<Zeroizing<[u8; 32]>, AlignError> {
        let outside = AlignError::Message("a value outside of the group");
        let raised = self
            .half
            .raise(std::slice::from_ref(theirs))
            .ok_or(outside)?;
        let raised = Zeroizing::new(raised);
        let mut hash = Sha256::new();
        hash.update(b"fhaim align secret");
        hash.update(place.session);
        raised.iter().for_each(|point| hash.update(point));
        Ok(Zeroizing::new(hash.finalize().into()))
    }

    /// Returns the answers to the first party's list, once the list and the secret are here.
    fn answers(&self, place: Place) -> Result<Vec<Outgoing>, AlignError> {
        let (Some(list), false) = (&self.list, matches!(self.secret, Secret::Awaited)) else {
            return Ok(Vec::new());
        };
        let outside = AlignError::Message("a value outside of the group");
        let values = self.exponent.raise(list).ok_or(outside)?;
        let rows = self.hashed.iter().zip(&self.own).collect();
        let entries = map(rows, |(hashed, f): (&GroupElement, &GroupElement)| {
            let [point, mask] = entry_of(place, f);
            let value = self.share(place, hashed) + mask;
            Entry { point, value }
        });
        let content = Content::Answers {
            rows: self.own.len(),
            values,
            table: table::make(&entries, &self.seed).ok_or(AlignError::Chance)?,
        };
        Ok(vec![place.message(vec![0], content)])
    }

    /// Returns this party's share of zero at a key.
    fn share(&self, place: Place, hashed: &GroupElement) -> Scalar {
        let Secret::Known(secret) = &self.secret else {
            return Scalar::ZERO;
        };
        let share = hash_to_scalar("fhaim align share", [secret, hashed]);
        match place.me {
            1 => share,
            _ => -share,
        }
    }

    fn recognised(
        &self,
        place: Place,
        sizes: Vec<usize>,
        values: &[GroupElement],
    ) -> Result<Aligned, AlignError> {
        let list = self.list.as_ref().map(Vec::len);
        let fits = sizes.len() == place.parties
            && sizes.first().copied() == list
            && sizes.get(place.me) == Some(&self.own.len());
        if !fits {
            return Err(AlignError::Message("the numbers of rows are wrong"));
        }
        let places: HashMap<&GroupElement, usize> = self.own.iter().zip(0..).collect();
        let rows = values.iter().map(|value| places.get(value).copied());
        let none = AlignError::Message("a common value that this party does not have");
        Ok(Aligned {
            rows: rows.collect::<Option<_>>().ok_or(none)?,
            sizes,
        })
    }

    pub(super) fn aligned(&self) -> Option<Aligned> {
        self.aligned.clone()
    }
}

/// Returns the party that shares a secret with this one.
fn partner(place: Place) -> Option<usize> {
    match (place.parties, place.me) {
        (3, 1) => Some(2),
        (3, 2) => Some(1),
        _ => None,
    }
}

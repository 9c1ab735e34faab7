//! Secret keys that no single service holds: s is the sum of two or three shares, each at a separate service.
//!
//! | module | for |
//! |---|---|
//! | this | a service's [`KeyShare`], and the [`CommonRandomness`] that all services expand |
//! | `keygen` | public and evaluation keys: a [`FirstRound`] and a [`SecondRound`] of each service |
//! | `decryption` | a [`DecryptionShare`] of each service, and their sum |
//! | `codec` | encodings |
//!
//! The protocols follow Mouchet, Troncoso-Pastoriza, Bossuat and Hubaux 2021 (Multiparty homomorphic encryption
//! from ring-learning-with-errors), with n of n shares required. They are secure against services that follow the
//! protocol. Against one service that does not, they are secure **only if every message of a round was committed
//! to, by name, before any message of that round was revealed**. Otherwise the last sender chooses the sum. This
//! module only computes messages; the caller that exchanges them must enforce the commitments.
//!
//! `fhaim_protocol::committee` exchanges the messages and enforces the commitments; `services/crypto/src/shares` runs
//! it with a database.
//!
//! A service draws everything from 32 bytes that it stores. They are a key for HKDF, whose context names the drawn
//! object and all messages of others that it depends on. A service that was killed makes the same messages again.
//! A service that was reset to a copy from the middle of a key generation must start a new key generation: its
//! peers know messages of the old one that they may only see after they have committed.

mod codec;
mod decryption;
mod keygen;
#[cfg(test)]
mod tests;

pub use decryption::{DecryptionShare, Opening, combine};
pub use keygen::{FirstRound, RoundSums, SecondRound};

use crate::error::{Error, Result};
use crate::scheme::params::Parameters;
use crate::scheme::ring::Ring;
use crate::scheme::root::{Root, digest};
use crate::scheme::switch_key::{full_transform, permuted, small};
use crate::scheme::upload::{
    RosterSecrets, RosterShape, SwitchKind, packing_switches, upload_seed,
};
use rand::{CryptoRng, RngCore};
use zeroize::Zeroizing;

/// One service's share of a split secret key. Wiped on drop.
pub struct KeyShare {
    params: Parameters,
    root: Root,
    /// The transform of s_i over all primes.
    secret: Zeroizing<Vec<u64>>,
}

impl std::fmt::Debug for KeyShare {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyShare")
            .field("params", self.params.set())
            .field("shares", &self.params.shares())
            .finish_non_exhaustive()
    }
}

impl KeyShare {
    /// Draws a share of a key with as many shares as `params` has.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for parameters of a whole key.
    pub fn random<R: RngCore + CryptoRng>(params: &Parameters, rng: &mut R) -> Result<Self> {
        Self::from_root(params, Root::random(rng))
    }

    fn from_root(params: &Parameters, root: Root) -> Result<Self> {
        if params.shares() < 2 {
            return Err(Error::Mismatch("a whole key has no shares"));
        }
        let drawn = small(&mut root.generator(b"secret", &[&[params.set().id]]))?;
        Ok(Self {
            secret: full_transform(params.ring(), &drawn),
            params: params.clone(),
            root,
        })
    }

    /// Returns the parameter set's tables, and the number of shares.
    pub fn params(&self) -> &Parameters {
        &self.params
    }

    /// Returns this service's seed of a holder's upload key, by the holder's number. Only that holder may see it, and
    /// only after the key generation that made the switching keys is complete.
    pub fn upload_seed(&self, holder: usize) -> Zeroizing<[u8; 32]> {
        upload_seed(&self.root, holder)
    }

    fn secrets(&self, shape: Option<RosterShape>) -> Result<Secrets<'_>> {
        Ok(Secrets {
            dataset: &self.secret,
            roster: match shape {
                Some(shape) => RosterSecrets::of(&self.params, &self.root, shape)?,
                None => RosterSecrets::default(),
            },
        })
    }

    /// Returns this service's contribution to the seed of all common polynomials. The service commits to it, and
    /// reveals it when all services have committed.
    pub fn contribution(&self) -> [u8; 32] {
        *self.root.bytes_for(b"contribution", &[])
    }

    /// Returns the share's coefficients, for tests that add them up.
    #[cfg(test)]
    pub(crate) fn coefficients(&self) -> Zeroizing<Vec<i64>> {
        small(&mut self.root.generator(b"secret", &[&[self.params.set().id]])).unwrap()
    }
}

/// The seed of the uniform halves of all keys: a hash of the contributions of all services.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommonRandomness {
    seed: [u8; 32],
    /// The shape of the roster whose upload keys are made with the dataset's keys.
    shape: Option<RosterShape>,
}

impl CommonRandomness {
    /// Hashes the contributions of all services, in the order of their names in the terms. `context` is a digest of
    /// dataset, terms and names, which binds the seed to the key's purpose. `shape` is that of the dataset's roster,
    /// if it has one.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if the number of contributions is not the number of shares.
    pub fn new(
        params: &Parameters,
        context: &[u8; 32],
        shape: Option<RosterShape>,
        contributions: &[[u8; 32]],
    ) -> Result<Self> {
        if contributions.len() != params.shares() || contributions.len() < 2 {
            return Err(Error::Mismatch(
                "expected one contribution of every service",
            ));
        }
        let id = [params.set().id];
        let parts: [&[u8]; 2] = [&id, context];
        let contributions = contributions.iter().map(<[u8; 32]>::as_slice);
        let parts: Vec<&[u8]> = parts.into_iter().chain(contributions).collect();
        Ok(Self {
            seed: digest(b"fhaim common polynomials 1", &parts),
            shape,
        })
    }

    /// Returns the seed of the uniform half of the public key.
    fn public_seed(&self) -> [u8; 32] {
        digest(b"fhaim uniform half 1", &[&self.seed, b"public key"])
    }

    /// Returns the seed of the uniform half of a switching key. Two keys never share a seed: b = e - a s + P s' and
    /// b' = e' - a s + P s'' with the same a would show s' - s'' to anyone.
    fn seed(&self, switch: Switch) -> [u8; 32] {
        digest(b"fhaim uniform half 1", &[&self.seed, &switch.label()])
    }
}

/// The key that a switching key's source is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// The dataset's key s.
    Dataset,
    /// The upload key of the holder with this number.
    Upload(usize),
    /// The joint key of holders of columns.
    Joint,
}

/// One of a dataset's switching keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Switch {
    owner: Owner,
    kind: SwitchKind,
}

impl Switch {
    fn label(self) -> Vec<u8> {
        let (tag, number) = match self.owner {
            Owner::Dataset => (0u8, 0),
            Owner::Upload(holder) => (1, holder),
            Owner::Joint => (2, 0),
        };
        let mut label = vec![tag, self.kind.squared.into(), self.kind.to_products.into()];
        label.extend_from_slice(&(number as u64).to_le_bytes());
        label.extend_from_slice(&(self.kind.automorphism as u64).to_le_bytes());
        label
    }

    /// Returns all switching keys of a dataset, in the order in which they are made and sent.
    fn all(shape: Option<RosterShape>) -> impl Iterator<Item = Self> {
        let of = |owner: Owner| move |kind: SwitchKind| Self { owner, kind };
        let dataset = packing_switches().map(of(Owner::Dataset));
        let holders = 0..shape.map_or(0, RosterShape::holders);
        let uploads = holders
            .zip(std::iter::repeat(shape))
            .flat_map(move |(holder, shape)| {
                let kinds = shape
                    .into_iter()
                    .flat_map(|shape| shape.of_holder().switches());
                kinds.map(of(Owner::Upload(holder)))
            });
        let joint = shape.and_then(RosterShape::joint).into_iter();
        let joint = joint
            .flat_map(|kinds| kinds.switches())
            .map(of(Owner::Joint));
        dataset.chain(uploads).chain(joint)
    }
}

/// One service's shares of a dataset's key and of the upload keys of its roster, as transforms over all primes.
struct Secrets<'a> {
    dataset: &'a [u64],
    roster: RosterSecrets,
}

impl Secrets<'_> {
    fn key(&self, owner: Owner) -> Result<&[u64]> {
        let upload = match owner {
            Owner::Dataset => return Ok(self.dataset),
            Owner::Upload(holder) => self.roster.uploads.get(holder),
            Owner::Joint => self.roster.joint.as_ref(),
        };
        let upload = upload.ok_or(Error::OutOfRange("holder number"))?;
        Ok(upload.transform())
    }

    /// Returns the target of a switching key.
    fn target(&self, switch: Switch) -> Result<&[u64]> {
        match (switch.kind.to_products, &self.roster.joint) {
            (false, _) => Ok(self.dataset),
            (true, Some(joint)) => Ok(joint.transform()),
            (true, None) => self.key(switch.owner),
        }
    }

    /// Returns the image of the key that the switching key's source is made of.
    fn image(&self, ring: &Ring, switch: Switch) -> Result<Zeroizing<Vec<u64>>> {
        let automorphism = ring.automorphism(switch.kind.automorphism);
        Ok(permuted(self.key(switch.owner)?, &automorphism))
    }
}

//! Secret keys that nobody holds: s is the sum of two or three shares, each at a service of its own.
//!
//! | module | for |
//! |---|---|
//! | this | a service's [`KeyShare`], and the polynomials that all have in [`Common`] |
//! | `generation` | public and evaluation keys: a [`FirstRound`] and a [`SecondRound`] of each service |
//! | `decryption` | a [`DecryptionShare`] of each service, and what they add up to |
//! | `codec` | their bytes |
//!
//! After Mouchet, Troncoso-Pastoriza, Bossuat and Hubaux 2021 (Multiparty homomorphic encryption
//! from ring-learning-with-errors), with all n of n shares needed. What is n-of-n here holds against
//! services that follow the protocol, and against one that does not **only if every message of a
//! round was committed to, by name, before any of that round was revealed**: otherwise the last to
//! send chooses the sum. This module computes messages; whoever passes them on sees to that.
//!
//! All that a service draws is a function of 32 bytes that it keeps: a key for HKDF, whose context
//! names what is drawn and all that it depends on from others. A service that was killed makes the same
//! messages again. One that was set back to a copy from within a key generation must begin another
//! one: its peers know messages of the old one that they should commit before they see.

mod codec;
mod decryption;
mod generation;
#[cfg(test)]
mod tests;

pub use decryption::{DecryptionShare, Opening, combine};
pub use generation::{FirstRound, RoundSums, SecondRound};

use crate::error::{Error, Result};
use crate::keys::{FIRST_LEVELS, LEVELS, expand, full_transform, permuted, small};
use crate::params::{DEGREE, Parameters};
use crate::ring::Ring;
use crate::root::{Root, digest};
use rand::{CryptoRng, RngCore};
use zeroize::Zeroizing;

/// What one service holds of a split secret key. Wiped on drop.
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
    /// Draws a share of a key that has as many as `params` says.
    ///
    /// # Errors
    /// [`Error::Mismatch`] where that is a whole key.
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

    /// The parameter set's tables, and the number of shares.
    pub fn params(&self) -> &Parameters {
        &self.params
    }

    /// What this service puts into the seed of all common polynomials: to be committed to, and
    /// revealed when all have.
    pub fn contribution(&self) -> [u8; 32] {
        *self.root.bytes_for(b"contribution", &[])
    }

    /// The share's coefficients: for tests, which add them up.
    #[cfg(test)]
    pub(crate) fn coefficients(&self) -> Zeroizing<Vec<i64>> {
        small(&mut self.root.generator(b"secret", &[&[self.params.set().id]])).unwrap()
    }
}

/// What the uniform halves of all keys are expanded from: a hash of what every service contributed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Common {
    seed: [u8; 32],
}

impl Common {
    /// From the contributions of all services, in the order of their names in the terms. `context` is
    /// what the key is for: a digest of dataset, terms and names.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for another number of contributions than shares.
    pub fn new(
        params: &Parameters,
        context: &[u8; 32],
        contributions: &[[u8; 32]],
    ) -> Result<Self> {
        if contributions.len() != params.shares() || contributions.len() < 2 {
            return Err(Error::Mismatch("a contribution of every service"));
        }
        let id = [params.set().id];
        let parts: [&[u8]; 2] = [&id, context];
        let contributions = contributions.iter().map(<[u8; 32]>::as_slice);
        let parts: Vec<&[u8]> = parts.into_iter().chain(contributions).collect();
        Ok(Self {
            seed: digest(b"fhaim common polynomials 1", &parts),
        })
    }

    /// The seed of the uniform half of one key. No two keys have one: from b = e - a s + P s' and
    /// b' = e' - a s + P s'' with the same a, anyone has s' - s''.
    fn seed(&self, key: KeyLabel) -> [u8; 32] {
        let [kind, level] = match key {
            KeyLabel::Public => [0, 0],
            KeyLabel::Linear(level) => [1, level as u8],
            KeyLabel::Square(level) => [2, level as u8],
        };
        digest(b"fhaim uniform half 1", &[&self.seed, &[kind, level]])
    }

    fn uniform(&self, ring: &Ring, key: KeyLabel) -> Vec<Vec<u64>> {
        expand(ring, self.seed(key))
    }
}

/// One of a dataset's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyLabel {
    /// The public key.
    Public,
    /// Inversion (0), and packing at levels 1 to [`LEVELS`]: sources are linear in s.
    Linear(usize),
    /// Relinearisation (0), and the images of s^2 at levels 1 to [`FIRST_LEVELS`].
    Square(usize),
}

impl KeyLabel {
    /// Keys of which an image of s is the source.
    fn linear() -> impl Iterator<Item = Self> {
        (0..=LEVELS).map(Self::Linear)
    }

    /// Keys of which s^2 or an image of it is the source.
    fn squares() -> impl Iterator<Item = Self> {
        (0..=FIRST_LEVELS).map(Self::Square)
    }

    /// The exponent g of the automorphism X -> X^g that the key's source is an image under.
    fn automorphism(self) -> usize {
        match self {
            Self::Public | Self::Square(0) => 1,
            Self::Linear(0) => 2 * DEGREE - 1,
            Self::Linear(level) | Self::Square(level) => (1 << level) + 1,
        }
    }

    /// The image of a polynomial over all primes.
    fn image(self, ring: &Ring, p: &[u64]) -> Zeroizing<Vec<u64>> {
        permuted(p, &ring.automorphism(self.automorphism()))
    }
}

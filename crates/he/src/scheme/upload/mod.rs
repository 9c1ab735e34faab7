//! Encryption under an upload key of the holder, from which the evaluator switches to the service's key.
//!
//! A holder of all columns draws a secret h, and uploads (c0, a) with
//!
//! ```text
//! c0 = e - a h + (q + 1) / t m
//! ```
//!
//! Only c0 and a seed of a are sent. Compared with encryption under the public key this is half the bytes, has an
//! error of deviation 3.2 instead of 83, and takes no division by the special prime. t divides q + 1, so the noise
//! is e for every m. With [`UploadSwitchKeys`] the evaluator makes right forms under h, multiplies under
//! (1, h, h^2), and switches to s in the first merge of the packing tree, which switches anyway (see `packing`).
//!
//! **Keys.** h(X^-1) -> h is made with h. The keys from h, h^2 and their images to s are made with the service's
//! public key. Their errors have variance 2 n v^2 + v, where a drawn error has variance v, which is small compared
//! with products. s is never encrypted under h, so there is no cycle. A party that has s has h too, as it could
//! read all columns in any case.
//!
//! **Seeds.** Two messages under the same a reveal their difference to anyone, without a key. So a new random seed
//! is drawn for each ciphertext and never derived from anything. A resumed upload sends the bytes that it has, or
//! encrypts again with a new seed.
//!
//! | module | for |
//! |---|---|
//! | this | [`UploadKey`] |
//! | `ciphertext` | [`SeededCiphertext`] for sending, and [`UploadCiphertext`] for computing |
//! | `switch_keys` | [`UploadSwitchKeys`], the keys that the evaluator needs |
//! | `codec` | encodings |

mod ciphertext;
mod codec;
mod roster;
mod switch_keys;
#[cfg(test)]
mod tests;

pub use ciphertext::{SeededCiphertext, UploadCiphertext};
pub(crate) use roster::{KeyKinds, RosterSecrets, SwitchKind, packing_switches, upload_seed};
pub use roster::{RosterKeys, RosterShape};
pub use switch_keys::UploadSwitchKeys;
pub(crate) use switch_keys::{MergeKeys, Origin};

use crate::error::{Error, Result};
use crate::scheme::params::{MAX_SHARES, Parameters};
use crate::scheme::ring::DEGREE;
use crate::scheme::root::digest;
use crate::scheme::switch_key::{full_transform, small};
use fhaim_dp::uniform_below;
use rand::{CryptoRng, RngCore, SeedableRng};
use rand_chacha::ChaCha20Rng;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// The key of products of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProductKey {
    /// The upload key of the columns' holder.
    Upload(UploadKeyId),
    /// The joint key of several holders of columns.
    Joint,
}

/// Public identifier of an upload key: 16 bytes of a digest of its seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct UploadKeyId(pub [u8; 16]);

impl UploadKeyId {
    /// Computes the identifier from the commitments to a key's seeds, in order.
    pub(crate) fn of(commitments: &[[u8; 32]]) -> Self {
        let parts: Vec<&[u8]> = commitments.iter().map(<[u8; 32]>::as_slice).collect();
        let digest = digest(b"fhaim upload key 1", &parts);
        // A digest has 32 bytes, so the first 16 exist.
        Self(digest.first_chunk().copied().unwrap_or_default())
    }
}

/// Returns the commitment that a key service shows before it shows the seed.
pub(crate) fn commitment(seed: &[u8; 32]) -> [u8; 32] {
    digest(b"fhaim upload key seed 1", &[seed])
}

/// Returns the sum of the polynomials of several seeds.
fn expand_seeds(params: &Parameters, seeds: &[Zeroizing<[u8; 32]>]) -> Result<Zeroizing<Vec<i64>>> {
    let mut coefficients = Zeroizing::new(vec![0; DEGREE]);
    for seed in seeds {
        let summand = expand_seed(params, seed)?;
        for (sum, &more) in coefficients.iter_mut().zip(summand.iter()) {
            *sum += more;
        }
    }
    Ok(coefficients)
}

/// Expands a seed to a polynomial.
fn expand_seed(params: &Parameters, seed: &[u8; 32]) -> Result<Zeroizing<Vec<i64>>> {
    let expanded = digest(b"fhaim upload key expansion 1", &[&[params.set().id], seed]);
    let rng = &mut ChaCha20Rng::from_seed(expanded);
    if params.set().upload_key_is_ternary() {
        let mut ternary = || uniform_below(3, rng) as i64 - 1;
        Ok(Zeroizing::new((0..DEGREE).map(|_| ternary()).collect()))
    } else {
        small(rng)
    }
}

/// A secret key h that one holder encrypts its upload under. It decrypts every column that was encrypted with it, and
/// is wiped on drop.
///
/// h is the sum of one polynomial for each seed. The polynomials are ternary where the guidelines allow that. A sole
/// holder draws one seed itself. A holder of a roster has one seed from each key service.
pub struct UploadKey {
    params: Parameters,
    id: UploadKeyId,
    seeds: Vec<Zeroizing<[u8; 32]>>,
    /// The transform over all primes.
    transform: Zeroizing<Vec<u64>>,
}

impl std::fmt::Debug for UploadKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UploadKey")
            .field("params", self.params.set())
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl UploadKey {
    /// Draws a random key.
    ///
    /// # Errors
    /// An error of the random draw, which does not occur with valid parameters.
    pub fn random<R: RngCore + CryptoRng>(params: &Parameters, rng: &mut R) -> Result<Self> {
        let mut seed = Zeroizing::new([0; 32]);
        rng.fill_bytes(seed.as_mut());
        Self::from_seeds(params, vec![seed])
    }

    /// Expands seeds to a key. They are the seeds of all key services, in the order of the terms, or a sole holder's
    /// own.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for no seed, and for more seeds than there can be key services.
    pub fn from_seeds(params: &Parameters, seeds: Vec<Zeroizing<[u8; 32]>>) -> Result<Self> {
        if !(1..=MAX_SHARES).contains(&seeds.len()) {
            return Err(Error::OutOfRange("number of seeds of an upload key"));
        }
        let commitments = seeds.iter().map(|seed| commitment(seed));
        Ok(Self {
            transform: full_transform(params.ring(), &expand_seeds(params, &seeds)?),
            params: params.clone(),
            id: UploadKeyId::of(&commitments.collect::<Vec<_>>()),
            seeds,
        })
    }

    /// Returns the coefficients, for tests.
    #[cfg(test)]
    pub(crate) fn coefficients(&self) -> Zeroizing<Vec<i64>> {
        expand_seeds(&self.params, &self.seeds).unwrap()
    }

    /// Returns the parameter set's tables.
    pub fn params(&self) -> &Parameters {
        &self.params
    }

    /// Returns the transform over all primes.
    pub(crate) fn transform(&self) -> &[u64] {
        &self.transform
    }

    /// Returns the key's public identifier.
    pub fn id(&self) -> UploadKeyId {
        self.id
    }

    /// Encrypts a polynomial with signed coefficients, once under each plaintext modulus, each time with a new seed.
    ///
    /// `rng` must be the system's generator or keyed from it, and must never start again from a state that has been
    /// used: two messages under the same seed reveal their difference.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if there are more coefficients than the ring's degree.
    pub fn encrypt<R: RngCore + CryptoRng>(
        &self,
        coefficients: &[i64],
        rng: &mut R,
    ) -> Result<Vec<SeededCiphertext>> {
        if coefficients.len() > DEGREE {
            return Err(Error::OutOfRange("more coefficients than the ring has"));
        }
        (0..self.params.residues())
            .map(|residue| self.encrypt_residue(residue, coefficients, rng))
            .collect()
    }
}

/// Encrypts a polynomial and expands the ciphertexts, as the computation service has them, for tests.
#[cfg(test)]
pub(crate) fn uploaded<R: RngCore + CryptoRng>(
    key: &UploadKey,
    coefficients: &[i64],
    rng: &mut R,
) -> Vec<UploadCiphertext> {
    let seeded = key.encrypt(coefficients, rng).unwrap().into_iter();
    seeded.map(|c| c.expand(&key.params).unwrap()).collect()
}

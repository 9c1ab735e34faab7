//! Columns under a key of their holder's own, from which the evaluator comes back to the service's.
//!
//! A holder who has all columns draws a secret h, and uploads (c0, a) with
//!
//! ```text
//! c0 = e - a h + (q + 1) / t m
//! ```
//!
//! of which c0 and a seed of a are sent: half the bytes of a ciphertext under the public key, an error of
//! deviation 3.2 instead of 83, and no division by the special prime. t divides q + 1, so the noise is e, whatever
//! m is. With [`UploadSwitchKeys`] the evaluator makes right forms under h, multiplies under (1, h, h^2), and
//! switches to s in the first merge of the packing tree, which switches anyhow (see `packing`).
//!
//! **Keys.** h(X^-1) -> h is made with h. Those of h, h^2 and their images to s are made with the service's
//! public key, and have errors of variance 2 n v^2 + v at one of v: small beside products. s is never
//! encrypted under h, so that there is no cycle. Whoever has s has h, as it had all columns before.
//!
//! **Seeds.** Two messages under one a are told apart by their difference, without a key. So a seed is
//! drawn for each ciphertext, is never derived from anything, and an upload that goes on sends the
//! bytes that it has, or encrypts anew.
//!
//! | module | for |
//! |---|---|
//! | this | [`UploadKey`] |
//! | `ciphertext` | [`SeededCiphertext`], as it is sent, and [`UploadCiphertext`], as it is computed on |
//! | `switch_keys` | [`UploadSwitchKeys`], what the evaluator needs |
//! | `codec` | their bytes |

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

/// The key that products of columns are under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProductKey {
    /// The upload key of the columns' holder.
    Upload(UploadKeyId),
    /// The joint key of several holders of columns.
    Joint,
}

/// Names an upload key: 16 bytes of a digest of its seeds. Public.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct UploadKeyId(pub [u8; 16]);

impl UploadKeyId {
    /// From the commitments to a key's seeds, in order.
    pub(crate) fn of(commitments: &[[u8; 32]]) -> Self {
        let parts: Vec<&[u8]> = commitments.iter().map(<[u8; 32]>::as_slice).collect();
        let digest = digest(b"fhaim upload key 1", &parts);
        // 32 bytes begin with 16.
        Self(digest.first_chunk().copied().unwrap_or_default())
    }
}

/// What a key service shows of a seed before it shows the seed.
pub(crate) fn commitment(seed: &[u8; 32]) -> [u8; 32] {
    digest(b"fhaim upload key seed 1", &[seed])
}

/// The sum of the polynomials of seeds.
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

/// The polynomial of a seed.
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

/// A secret key h that one holder encrypts its upload under. Wiped on drop; it reads every column that was encrypted
/// with it.
///
/// h is the sum of one polynomial for each seed, ternary where the guidelines allow that. A sole holder draws one seed
/// itself. A holder of a roster has one seed from each key service.
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
    /// Draws a key.
    ///
    /// # Errors
    /// What drawing refuses: never, under sound parameters.
    pub fn random<R: RngCore + CryptoRng>(params: &Parameters, rng: &mut R) -> Result<Self> {
        let mut seed = Zeroizing::new([0; 32]);
        rng.fill_bytes(seed.as_mut());
        Self::from_seeds(params, vec![seed])
    }

    /// The key that seeds expand to: those of all key services, in the order of the terms, or a sole holder's own.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for no seed and for more than there can be key services.
    pub fn from_seeds(params: &Parameters, seeds: Vec<Zeroizing<[u8; 32]>>) -> Result<Self> {
        if !(1..=MAX_SHARES).contains(&seeds.len()) {
            return Err(Error::OutOfRange("seeds of an upload key"));
        }
        let commitments = seeds.iter().map(|seed| commitment(seed));
        Ok(Self {
            transform: full_transform(params.ring(), &expand_seeds(params, &seeds)?),
            params: params.clone(),
            id: UploadKeyId::of(&commitments.collect::<Vec<_>>()),
            seeds,
        })
    }

    /// The coefficients, for tests.
    #[cfg(test)]
    pub(crate) fn coefficients(&self) -> Zeroizing<Vec<i64>> {
        expand_seeds(&self.params, &self.seeds).unwrap()
    }

    /// The parameter set's tables.
    pub fn params(&self) -> &Parameters {
        &self.params
    }

    /// The transform over all primes.
    pub(crate) fn transform(&self) -> &[u64] {
        &self.transform
    }

    /// What names the key.
    pub fn id(&self) -> UploadKeyId {
        self.id
    }

    /// Encrypts a polynomial with signed coefficients, once under each plaintext modulus, each with a
    /// seed of its own. `rng` is the system's generator or keyed from it, and never begins again at
    /// a state that has been used: a seed that meets a second message shows the messages' difference.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] where there are more coefficients than the ring's degree.
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

/// Encrypts a polynomial as the computation service has it, for tests.
#[cfg(test)]
pub(crate) fn uploaded<R: RngCore + CryptoRng>(
    key: &UploadKey,
    coefficients: &[i64],
    rng: &mut R,
) -> Vec<UploadCiphertext> {
    let seeded = key.encrypt(coefficients, rng).unwrap().into_iter();
    seeded.map(|c| c.expand(&key.params).unwrap()).collect()
}

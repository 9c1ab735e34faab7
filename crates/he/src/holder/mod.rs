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
//! m is. With [`HolderKeys`] the evaluator makes right forms under h, multiplies under (1, h, h^2), and
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
//! | this | [`HolderKey`] |
//! | `ciphertext` | [`SeededCiphertext`], as it is sent, and [`HolderCiphertext`], as it is computed on |
//! | `keys` | [`HolderKeys`], what the evaluator needs |
//! | `codec` | their bytes |

mod ciphertext;
mod codec;
mod keys;
#[cfg(test)]
mod tests;

pub use ciphertext::{HolderCiphertext, SeededCiphertext};
pub use keys::HolderKeys;
pub(crate) use keys::ProductKeys;

use crate::error::{Error, Result};
use crate::keys::{ERROR_VARIANCE, full_transform, small};
use crate::params::{DEGREE, Parameters};
use fhaim_dp::uniform_below;
use rand::{CryptoRng, RngCore};
use zeroize::Zeroizing;

/// Which holder's key something is under: 16 bytes, drawn with the key. Public.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HolderKeyId(pub [u8; 16]);

/// A holder's secret key h, ternary where the guidelines allow that. Wiped on drop; it reads every
/// column that was encrypted with it.
pub struct HolderKey {
    params: Parameters,
    id: HolderKeyId,
    coefficients: Zeroizing<Vec<i64>>,
    /// The transform over all primes.
    transform: Zeroizing<Vec<u64>>,
}

impl std::fmt::Debug for HolderKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HolderKey")
            .field("params", self.params.set())
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl HolderKey {
    /// Draws a key.
    ///
    /// # Errors
    /// What drawing refuses: never, under sound parameters.
    pub fn random<R: RngCore + CryptoRng>(params: &Parameters, rng: &mut R) -> Result<Self> {
        let mut id = [0; 16];
        rng.fill_bytes(&mut id);
        let coefficients = if params.set().holder_key_is_ternary() {
            let mut ternary = || uniform_below(3, rng) as i64 - 1;
            Zeroizing::new((0..DEGREE).map(|_| ternary()).collect())
        } else {
            small(rng)?
        };
        Self::from_coefficients(params, HolderKeyId(id), coefficients)
    }

    fn from_coefficients(
        params: &Parameters,
        id: HolderKeyId,
        coefficients: Zeroizing<Vec<i64>>,
    ) -> Result<Self> {
        let bound = match params.set().holder_key_is_ternary() {
            true => 1,
            false => 2 * ERROR_VARIANCE as u64,
        };
        if coefficients.len() != DEGREE || coefficients.iter().any(|c| c.unsigned_abs() > bound) {
            return Err(Error::Malformed {
                what: "holder's key",
                reason: "coefficients outside the distribution's support",
            });
        }
        Ok(Self {
            transform: full_transform(params.ring(), &coefficients),
            params: params.clone(),
            id,
            coefficients,
        })
    }

    /// The parameter set's tables.
    pub fn params(&self) -> &Parameters {
        &self.params
    }

    /// What names the key.
    pub fn id(&self) -> HolderKeyId {
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

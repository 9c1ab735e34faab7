//! Ciphertexts under a holder's upload key.

use super::{UploadKey, UploadKeyId};
use crate::error::{Error, Result};
use crate::scheme::ciphertext::Ciphertext;
use crate::scheme::params::Parameters;
use crate::scheme::ring::DEGREE;
use crate::scheme::ring::Poly;
use crate::scheme::switch_key::small;
use fhaim_dp::uniform_below;
use rand::{CryptoRng, RngCore, SeedableRng};
use rand_chacha::ChaCha20Rng;
use zeroize::Zeroizing;

/// A ciphertext under an upload key, in the form in which it is sent and stored: its first polynomial, a transform
/// over the ciphertext primes, and the seed of the second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeededCiphertext {
    pub(super) key: UploadKeyId,
    pub(super) residue: usize,
    pub(super) seed: [u8; 32],
    pub(super) c0: Poly,
}

impl SeededCiphertext {
    /// Returns the number of the set's plaintext modulus that this ciphertext belongs to.
    pub fn residue(&self) -> usize {
        self.residue
    }

    /// Returns the identifier of the ciphertext's key.
    pub fn key_id(&self) -> UploadKeyId {
        self.key
    }

    /// Expands the seed, which gives both polynomials.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for a ciphertext of other parameters.
    pub fn expand(self, params: &Parameters) -> Result<UploadCiphertext> {
        let Self {
            key,
            residue,
            seed,
            c0,
        } = self;
        let ciphertext = Ciphertext {
            residue,
            c: [c0, expand(params, seed)],
        };
        ciphertext.check(params)?;
        Ok(UploadCiphertext { key, ciphertext })
    }
}

/// A ciphertext under an upload key. It can only be added to others under the same key.
/// [`super::UploadSwitchKeys::switch`] turns it into one under the service's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadCiphertext {
    pub(super) key: UploadKeyId,
    pub(super) ciphertext: Ciphertext,
}

impl UploadCiphertext {
    /// Returns the number of the set's plaintext modulus that this ciphertext belongs to.
    pub fn residue(&self) -> usize {
        self.ciphertext.residue
    }

    /// Returns the identifier of the ciphertext's key.
    pub fn key_id(&self) -> UploadKeyId {
        self.key
    }

    /// Passes every residue, little-endian, to `update`, as [`Ciphertext::digest_into`] does.
    pub fn digest_into(&self, update: impl FnMut(&[u8])) {
        self.ciphertext.digest_into(update);
    }

    /// Returns the ciphertext that the evaluator multiplies, with the identifier of its key.
    pub(crate) fn into_parts(self) -> (UploadKeyId, Ciphertext) {
        (self.key, self.ciphertext)
    }

    /// Adds up one or more ciphertexts. The result encrypts the sum of their messages.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for no ciphertext, and for ciphertexts under different parameters, plaintext moduli or
    /// keys.
    pub fn sum<'a>(params: &Parameters, terms: impl IntoIterator<Item = &'a Self>) -> Result<Self> {
        let mut terms = terms.into_iter().peekable();
        let first = terms
            .peek()
            .ok_or(Error::Mismatch("cannot add up zero ciphertexts"))?;
        let key = first.key;
        let mut same = true;
        let terms = terms.inspect(|term| same &= term.key == key);
        let ciphertext = Ciphertext::sum(params, terms.map(|term| &term.ciphertext))?;
        if !same {
            return Err(Error::Mismatch(
                "the ciphertexts are under different holders' keys",
            ));
        }
        Ok(Self { key, ciphertext })
    }
}

impl UploadKey {
    /// Encrypts signed coefficients, at most as many as the ring's degree, under one plaintext modulus.
    pub(super) fn encrypt_residue<R: RngCore + CryptoRng>(
        &self,
        residue: usize,
        coefficients: &[i64],
        rng: &mut R,
    ) -> Result<SeededCiphertext> {
        let ring = self.params.ring();
        let t = self.params.plaintext_modulus(residue);
        let mut seed = [0; 32];
        rng.fill_bytes(&mut seed);
        let error = small(rng)?;
        let mut c0 = expand(&self.params, seed);
        let secret = self.transform.chunks_exact(DEGREE);
        let mut covered = Zeroizing::new(vec![0; DEGREE]);
        for (j, (limb, secret)) in ring.ciphertext_limbs().iter().zip(secret).enumerate() {
            let m = limb.modulus;
            // (q + 1) / t is t^-1 modulo each prime of q.
            let scale = u128::from(m.mont(m.inv(t % m.value())));
            for (covered, &e) in covered.iter_mut().zip(error.iter()) {
                *covered = m.small(e);
            }
            for (covered, &c) in covered.iter_mut().zip(coefficients) {
                let message = i128::from(c).rem_euclid(i128::from(t)) as u128;
                *covered = m.add(*covered, m.redc(message * scale));
            }
            limb.forward(&mut covered);
            let pairs = covered.iter().zip(secret);
            for (a, (&covered, &secret)) in c0.limb_mut(j).iter_mut().zip(pairs) {
                *a = m.sub(covered, m.mul(*a, secret));
            }
        }
        Ok(SeededCiphertext {
            key: self.id,
            residue,
            seed,
            c0,
        })
    }
}

/// Expands a seed to a uniform polynomial over the ciphertext primes. Its transform is as uniform as its
/// coefficients.
fn expand(params: &Parameters, seed: [u8; 32]) -> Poly {
    let mut rng = ChaCha20Rng::from_seed(seed);
    let moduli = params.set().ciphertext_moduli;
    let mut residues = Vec::with_capacity(moduli.len() * DEGREE);
    for &q in moduli {
        residues.extend((0..DEGREE).map(|_| uniform_below(q, &mut rng)));
    }
    Poly::from_residues(DEGREE, residues)
}

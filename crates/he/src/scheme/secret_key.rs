//! The secret key of a dataset.
//!
//! The scheme's library decrypts with it. This crate makes public and key-switching keys itself, for two reasons:
//! holders encrypt their own key-switching keys modulo all primes, of which the library would leave some out, and
//! packing needs automorphisms that the library does not offer (X -> X^(2^l + 1)).

use crate::error::Result;
use crate::scheme::params::Parameters;
use crate::scheme::public_key::PublicKey;
use crate::scheme::root::Root;
use crate::scheme::switch_key::{cover, expand, full_transform, plain, small};
use fhe::bfv::SecretKey as SchemeSecretKey;
use fhe::proto::bfv::SecretKey as SecretKeyProto;
use fhe_traits::DeserializeParametrized;
use prost::Message;
use rand::{CryptoRng, RngCore};
use zeroize::{Zeroize, Zeroizing};

/// The dataset's secret key. Only the crypto service holds it. It is wiped on drop.
pub struct SecretKey {
    params: Parameters,
    root: Root,
    coefficients: Zeroizing<Vec<i64>>,
    schemes: Vec<SchemeSecretKey>,
}

impl std::fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SecretKey")
            .field("params", self.params.set())
            .finish_non_exhaustive()
    }
}

impl SecretKey {
    /// Draws a random key.
    pub fn random<R: RngCore + CryptoRng>(params: &Parameters, rng: &mut R) -> Result<Self> {
        Self::from_root(params, Root::random(rng))
    }

    pub(crate) fn from_root(params: &Parameters, root: Root) -> Result<Self> {
        let coefficients = small(&mut root.generator(b"secret", &[&[params.set().id]]))?;
        Self::from_parts(params, root, coefficients)
    }

    fn from_parts(
        params: &Parameters,
        root: Root,
        coefficients: Zeroizing<Vec<i64>>,
    ) -> Result<Self> {
        let mut proto = SecretKeyProto {
            coeffs: coefficients.to_vec(),
        };
        let bytes = Zeroizing::new(proto.encode_to_vec());
        proto.coeffs.zeroize();
        let scheme = |k| SchemeSecretKey::from_bytes(&bytes, params.scheme(k));
        let schemes = (0..params.residues())
            .map(scheme)
            .collect::<fhe::Result<_>>()?;
        Ok(Self {
            params: params.clone(),
            root,
            coefficients,
            schemes,
        })
    }

    /// Makes a key with these coefficients, for tests that treat another key as a secret key.
    #[cfg(test)]
    pub(crate) fn from_coefficients(
        params: &Parameters,
        coefficients: Zeroizing<Vec<i64>>,
    ) -> Result<Self> {
        Self::from_parts(params, Root::from_bytes([0; 32]), coefficients)
    }

    pub(crate) fn root(&self) -> &Root {
        &self.root
    }

    /// Returns the parameter set's tables.
    pub fn params(&self) -> &Parameters {
        &self.params
    }

    /// Returns the coefficients of s. They are secret.
    pub fn coefficients(&self) -> &[i64] {
        &self.coefficients
    }

    /// Returns the key under plaintext modulus number `residue`, which must be one of the set's.
    #[expect(
        clippy::indexing_slicing,
        reason = "there is one scheme for each of the set's moduli"
    )]
    pub(crate) fn scheme(&self, residue: usize) -> &SchemeSecretKey {
        &self.schemes[residue]
    }

    /// Generates the public key to encrypt under.
    pub fn public_key<R: RngCore + CryptoRng>(&self, rng: &mut R) -> Result<PublicKey> {
        let ring = self.params.ring();
        let mut seed = [0; 32];
        rng.fill_bytes(&mut seed);
        // The first polynomial that a seed expands to is uniform, in Montgomery form and out of it.
        let uniform: Vec<Vec<u64>> = expand(ring, seed).into_iter().take(1).collect();
        let secret = full_transform(ring, &self.coefficients);
        let covered = cover(ring, &uniform, &secret, None, rng)?;
        let [covered, uniform] = [covered, uniform].map(|digits| plain(ring, digits));
        PublicKey::from_polynomials(&self.params, [covered, uniform])
    }
}

//! The public key of a dataset.

#![expect(
    clippy::indexing_slicing,
    reason = "a limb's number is below the number of limbs"
)]

use crate::error::{Error, Result};
use crate::scheme::params::Parameters;
use crate::scheme::ring::{DEGREE, Ring};
use std::sync::Arc;

/// The dataset's public key.
#[derive(Clone, Debug)]
pub struct PublicKey {
    params: Parameters,
    /// Residues of the two polynomials, transforms over all primes. They encrypt zero, so they serve every
    /// plaintext modulus.
    polynomials: Arc<[Vec<u64>; 2]>,
    /// The same polynomials in the form that encryption uses.
    prepared: Arc<Prepared>,
}

impl PublicKey {
    /// Makes a key from the residues of two polynomials over all primes, each below its prime.
    pub(crate) fn from_polynomials(params: &Parameters, polys: [Vec<u64>; 2]) -> Result<Self> {
        Ok(Self {
            params: params.clone(),
            prepared: Arc::new(Prepared::new(params.ring(), &polys)?),
            polynomials: Arc::new(polys),
        })
    }

    /// Returns the parameter set's tables.
    pub fn params(&self) -> &Parameters {
        &self.params
    }

    /// Returns the residues that the key was made from.
    pub(crate) fn polynomials(&self) -> &[Vec<u64>; 2] {
        &self.polynomials
    }

    pub(crate) fn prepared(&self) -> &Prepared {
        &self.prepared
    }
}

/// A public key's two polynomials over all primes, in Montgomery form. At the ciphertext primes they are
/// divided by the first special prime.
#[derive(Debug)]
pub(crate) struct Prepared(pub(crate) [Vec<u64>; 2]);

impl Prepared {
    /// Prepares a key from residues.
    ///
    /// # Errors
    /// [`Error::Mismatch`] unless both polynomials have a limb for every prime.
    pub(crate) fn new(ring: &Ring, polynomials: &[Vec<u64>; 2]) -> Result<Self> {
        if polynomials
            .iter()
            .any(|p| p.len() != ring.limbs().len() * DEGREE)
        {
            return Err(Error::Mismatch(
                "a public key must have a limb for every prime",
            ));
        }
        let prepare = |polynomial: &Vec<u64>| {
            let mut prepared = polynomial.clone();
            let limbs = prepared.chunks_exact_mut(DEGREE).zip(ring.limbs());
            for (j, (values, limb)) in limbs.enumerate() {
                let m = limb.modulus;
                let factor = u128::from(m.mont(m.mont(divisor(ring, j))));
                values
                    .iter_mut()
                    .for_each(|x| *x = m.redc(u128::from(*x) * factor));
            }
            prepared
        };
        Ok(Self(polynomials.each_ref().map(prepare)))
    }
}

/// Returns P^-1 modulo ciphertext prime number j, and 1 for the special prime itself.
pub(crate) fn divisor(ring: &Ring, j: usize) -> u64 {
    let m = ring.limbs()[j].modulus;
    match ring.special().modulus.value() % m.value() {
        0 => 1,
        p => m.inv(p),
    }
}

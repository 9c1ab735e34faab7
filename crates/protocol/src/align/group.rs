//! The group of an alignment, and what its elements are hashed to.

use crate::request::DatasetId;
use curve25519_dalek::{RistrettoPoint, Scalar, ristretto::CompressedRistretto};
use fhaim_he::map;
use rand::{CryptoRng, RngCore};
use sha2::{Digest, Sha512};
use zeroize::{Zeroize, Zeroizing};

/// An encoded element of the group.
pub type GroupElement = [u8; 32];

/// A scalar that is wiped from memory when it is dropped.
#[derive(Clone, Copy, Default)]
pub(super) struct Exponent(Scalar);

impl Zeroize for Exponent {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

impl Exponent {
    /// Draws a secret exponent other than zero.
    pub(super) fn draw<R: RngCore + CryptoRng>(rng: &mut R) -> Zeroizing<Self> {
        loop {
            let exponent = random_scalar(rng);
            if exponent != Scalar::ZERO {
                return Zeroizing::new(Self(exponent));
            }
        }
    }

    /// Returns the exponent that undoes this one.
    pub(super) fn inverse(&self) -> Zeroizing<Self> {
        Zeroizing::new(Self(self.0.invert()))
    }

    /// Raises the group's generator to this exponent.
    pub(super) fn of_generator(&self) -> GroupElement {
        RistrettoPoint::mul_base(&self.0).compress().0
    }

    /// Raises elements to this exponent, in their order. Returns `None` if one is not in the group.
    pub(super) fn raise(&self, elements: &[GroupElement]) -> Option<Vec<GroupElement>> {
        let raised = map(elements.iter().collect(), |element: &GroupElement| {
            let point = CompressedRistretto(*element).decompress()?;
            Some((point * self.0).compress().0)
        });
        raised.into_iter().collect()
    }
}

/// Draws a uniform scalar.
pub(super) fn random_scalar<R: RngCore + CryptoRng>(rng: &mut R) -> Scalar {
    let mut wide = Zeroizing::new([0; 64]);
    rng.fill_bytes(wide.as_mut());
    Scalar::from_bytes_mod_order_wide(&wide)
}

/// Hashes a join key to a group element whose logarithm nobody knows.
pub(super) fn hash_to_group(dataset: DatasetId, session: [u8; 32], key: &[u8]) -> GroupElement {
    let mut hash = Sha512::new();
    hash.update(b"fhaim align 1");
    hash.update(dataset.0);
    hash.update(session);
    hash.update(key);
    let point = RistrettoPoint::from_uniform_bytes(&hash.finalize().into());
    point.compress().0
}

/// Hashes byte strings of fixed lengths to a uniform scalar. Each use has a separate label.
pub(super) fn hash_to_scalar(label: &str, parts: [&[u8; 32]; 2]) -> Scalar {
    let mut hash = Sha512::new();
    hash.update(label.as_bytes());
    parts.iter().for_each(|part| hash.update(part));
    Scalar::from_bytes_mod_order_wide(&hash.finalize().into())
}

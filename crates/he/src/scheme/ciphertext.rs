//! Ciphertexts under the dataset's key.

use crate::error::{Error, Result};
use crate::scheme::params::Parameters;
use crate::scheme::ring::DEGREE;
use crate::scheme::ring::{Pair, Poly};
use fhe::bfv::Ciphertext as SchemeCiphertext;
use fhe_math::rq::{Poly as SchemePoly, Representation, traits::TryConvertFrom};
use ndarray::Array2;

/// Level of every stored ciphertext: the special prime is switched away after encryption.
pub(crate) const LEVEL: usize = 1;

/// A pair (c0, c1) of transforms over the ciphertext primes. It encrypts one polynomial modulo plaintext
/// modulus number `residue`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ciphertext {
    pub(crate) residue: usize,
    pub(crate) c: Pair,
}

impl Ciphertext {
    /// Returns the number of the set's plaintext modulus that this ciphertext belongs to.
    pub fn residue(&self) -> usize {
        self.residue
    }

    /// Adds up one or more ciphertexts. The result encrypts the sum of their messages.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for no ciphertext, and for ciphertexts under different parameters or plaintext moduli.
    pub fn sum<'a>(params: &Parameters, terms: impl IntoIterator<Item = &'a Self>) -> Result<Self> {
        let mut terms = terms.into_iter();
        let first = terms
            .next()
            .ok_or(Error::Mismatch("cannot add up zero ciphertexts"))?;
        let mut sum = first.clone();
        let other = Error::Mismatch("the ciphertexts have different parameters");
        if !first.is_of(params) {
            return Err(other);
        }
        for term in terms {
            if term.residue != sum.residue || !term.is_of(params) {
                return Err(other);
            }
            sum.add_assign(term, params);
        }
        Ok(sum)
    }

    /// Checks that there are as many limbs as the set has primes, and that each residue is below its prime.
    fn is_of(&self, params: &Parameters) -> bool {
        let moduli = params.set().ciphertext_moduli;
        let in_range = |p: &Poly| {
            let limbs = p.residues().chunks_exact(DEGREE).zip(moduli);
            p.residues().len() == moduli.len() * DEGREE
                && limbs
                    .into_iter()
                    .all(|(limb, q)| limb.iter().all(|x| x < q))
        };
        self.residue < params.residues() && self.c.iter().all(in_range)
    }

    /// Rejects a ciphertext of other parameters.
    pub(crate) fn check(&self, params: &Parameters) -> Result<()> {
        if self.is_of(params) {
            Ok(())
        } else {
            Err(Error::Mismatch(
                "the ciphertext belongs to another parameter set",
            ))
        }
    }

    /// Passes every residue, little-endian, to `update`, which computes a digest.
    pub fn digest_into(&self, mut update: impl FnMut(&[u8])) {
        update(&[self.residue as u8]);
        for residue in self.c.iter().flat_map(Poly::residues) {
            update(&residue.to_le_bytes());
        }
    }

    pub(crate) fn add_assign(&mut self, other: &Self, params: &Parameters) {
        debug_assert_eq!(self.residue, other.residue);
        for (a, b) in self.c.iter_mut().zip(&other.c) {
            a.add_assign(b, params.ring());
        }
    }

    #[cfg(test)]
    pub(crate) fn from_scheme(
        params: &Parameters,
        residue: usize,
        c: &SchemeCiphertext,
    ) -> Result<Self> {
        let poly = |p: &SchemePoly| -> Result<Poly> {
            if p.representation() != &Representation::Ntt {
                return Err(Error::Mismatch(
                    "a scheme ciphertext must be in transform form",
                ));
            }
            let residues: Vec<u64> = p.coefficients().iter().copied().collect();
            if residues.len() != params.set().ciphertext_moduli.len() * DEGREE {
                return Err(Error::Mismatch("a scheme ciphertext has the wrong level"));
            }
            Ok(Poly::from_residues(DEGREE, residues))
        };
        match &c[..] {
            [c0, c1] => Ok(Self {
                residue,
                c: [poly(c0)?, poly(c1)?],
            }),
            _ => Err(Error::Mismatch(
                "a scheme ciphertext must have two polynomials",
            )),
        }
    }

    pub(crate) fn to_scheme(&self, params: &Parameters) -> Result<SchemeCiphertext> {
        let scheme = params.scheme(self.residue);
        let context = scheme.context_at_level(LEVEL)?;
        let poly = |p: &Poly| {
            let shape = (params.set().ciphertext_moduli.len(), DEGREE);
            let residues = Array2::from_shape_vec(shape, p.residues().to_vec())
                .map_err(|_| Error::Mismatch("a polynomial has the wrong number of limbs"))?;
            Ok(SchemePoly::try_convert_from(
                residues,
                context,
                true,
                Representation::Ntt,
            )?)
        };
        let polys = self.c.iter().map(poly).collect::<Result<Vec<_>>>()?;
        Ok(SchemeCiphertext::new(polys, scheme)?)
    }
}

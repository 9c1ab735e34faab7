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

/// A pair (c0, c1) of transforms over the ciphertext primes, encrypting one polynomial modulo
/// plaintext modulus number `residue`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ciphertext {
    pub(crate) residue: usize,
    pub(crate) c: Pair,
}

impl Ciphertext {
    /// Which of the set's plaintext moduli this ciphertext belongs to.
    pub fn residue(&self) -> usize {
        self.residue
    }

    /// A ciphertext of the sum of what several encrypt, of which there must be one.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for none, and for those under other parameters or plaintext moduli.
    pub fn sum<'a>(params: &Parameters, terms: impl IntoIterator<Item = &'a Self>) -> Result<Self> {
        let mut terms = terms.into_iter();
        let first = terms.next().ok_or(Error::Mismatch("a sum of nothing"))?;
        let mut sum = first.clone();
        let other = Error::Mismatch("ciphertexts of other parameters");
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

    /// Whether the residues are as many as the set has limbs, each below its prime.
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

    /// Refuses a ciphertext that is not of these parameters.
    pub(crate) fn check(&self, params: &Parameters) -> Result<()> {
        if self.is_of(params) {
            Ok(())
        } else {
            Err(Error::Mismatch("a ciphertext of another parameter set"))
        }
    }

    /// Feeds every residue, little-endian, to `update`: for digests.
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
                return Err(Error::Mismatch("a scheme ciphertext has another level"));
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
                .map_err(|_| Error::Mismatch("a polynomial has another number of limbs"))?;
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

//! Ciphertexts, encryption and decryption.

use crate::error::{Error, Result};
use crate::keys::{PublicKey, SecretKey};
use crate::noise;
use crate::params::{DEGREE, ParameterSet, Parameters};
use crate::release::flood;
use crate::ring::{Pair, Poly};
use crate::root::{Root, digest};
use fhe::bfv::{Ciphertext as SchemeCiphertext, Encoding};
use fhe_math::rq::{Poly as SchemePoly, Representation, traits::TryConvertFrom};
use fhe_traits::{FheDecoder, FheDecrypter};
use ndarray::Array2;
use rand::{CryptoRng, RngCore};
use rand_chacha::ChaCha20Rng;
use zeroize::Zeroizing;

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

impl PublicKey {
    /// Encrypts a polynomial with signed coefficients, once under each plaintext modulus.
    ///
    /// Encryption takes place at level 0 and drops the special prime, which leaves rounding
    /// noise alone: a few hundred where encryption at level 1 leaves a few thousand.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] where there are more coefficients than the ring's degree.
    pub fn encrypt<R: RngCore + CryptoRng>(
        &self,
        coefficients: &[i64],
        rng: &mut R,
    ) -> Result<Vec<Ciphertext>> {
        if coefficients.len() > DEGREE {
            return Err(Error::OutOfRange("more coefficients than the ring has"));
        }
        let encrypt = |(residue, &t): (usize, &u64)| {
            let reduce = |&c: &i64| i128::from(c).rem_euclid(i128::from(t)) as u64;
            let values = Zeroizing::new(coefficients.iter().map(reduce).collect::<Vec<u64>>());
            self.encrypt_residues(residue, &values, rng)
        };
        self.params()
            .set()
            .plaintext_moduli
            .iter()
            .enumerate()
            .map(encrypt)
            .collect()
    }
}

impl SecretKey {
    /// The centred coefficients of one polynomial, from its ciphertext under each plaintext
    /// modulus by Chinese remaindering, and the noise in bits.
    ///
    /// # Errors
    /// [`Error::NoiseBudget`] where the noise is larger than a released ciphertext's can be, a
    /// bound that is well below the size at which decryption errs; [`Error::Mismatch`] for
    /// ciphertexts that are not one polynomial's.
    pub fn decrypt(&self, ciphertexts: &[Ciphertext]) -> Result<(Zeroizing<Vec<i128>>, f64)> {
        self.check_polynomial(ciphertexts)?;
        let mut noise = 0f64;
        let mut residues = Vec::with_capacity(ciphertexts.len());
        for c in ciphertexts {
            let (values, bits) = self.decrypt_residues(c)?;
            noise = noise.max(bits);
            residues.push(values);
        }
        Ok((recombine(self.params().set(), DEGREE, &residues), noise))
    }

    /// The same for a sealed page: `number` is its place in the request with digest `request`.
    ///
    /// A flood of this key's own is added first. Whether a page is too noisy, and how its values are rounded, then
    /// says nothing about the noise below that flood to those who know the page's flood. The flood is a function of the
    /// key, the request, the number and the second halves, so a repetition gives the same values.
    ///
    /// # Errors
    /// As [`SecretKey::decrypt`].
    pub fn decrypt_sealed(
        &self,
        ciphertexts: &[Ciphertext],
        request: &[u8; 32],
        number: u32,
    ) -> Result<(Zeroizing<Vec<i128>>, f64)> {
        self.check_polynomial(ciphertexts)?;
        let params = self.params();
        let flooded = ciphertexts.iter().map(|sealed| {
            let mut rng = flood_generator(self.root(), sealed, request, number);
            let flood = Zeroizing::new(flood(params.set().flood_bits, &mut rng)?);
            let mut flooded = sealed.clone();
            let flood = params.ring().transform_signed(&flood);
            flooded.c[0].add_assign(&flood, params.ring());
            Ok(flooded)
        });
        self.decrypt(&flooded.collect::<Result<Vec<_>>>()?)
    }

    fn check_polynomial(&self, ciphertexts: &[Ciphertext]) -> Result<()> {
        let set = self.params().set();
        for c in ciphertexts {
            c.check(self.params())?;
        }
        if ciphertexts.len() != set.plaintext_moduli.len()
            || ciphertexts.iter().enumerate().any(|(k, c)| c.residue != k)
        {
            return Err(Error::Mismatch(
                "one ciphertext per plaintext modulus, in order",
            ));
        }
        Ok(())
    }

    /// Coefficients modulo the ciphertext's plaintext modulus, and the noise in bits.
    pub(crate) fn decrypt_residues(
        &self,
        ciphertext: &Ciphertext,
    ) -> Result<(Zeroizing<Vec<u64>>, f64)> {
        let params = self.params();
        let scheme = ciphertext.to_scheme(params)?;
        let key = self.scheme(ciphertext.residue);
        // Safety: variable time in the noise alone, which is flooded and stays with the key.
        let noise = unsafe { key.measure_noise(&scheme)? } as f64;
        if noise > noise::joint_released_bits(params) {
            return Err(Error::NoiseBudget);
        }
        let plain = key.try_decrypt(&scheme)?;
        let values = Vec::<u64>::try_decode(&plain, Encoding::poly_at_level(LEVEL))?;
        Ok((Zeroizing::new(values), noise))
    }
}

/// The generator of the flood that a key service adds to a sealed ciphertext: of its key's root, the request, the
/// page's number in it and the second half. No two second halves meet one flood.
pub(crate) fn flood_generator(
    root: &Root,
    sealed: &Ciphertext,
    request: &[u8; 32],
    number: u32,
) -> ChaCha20Rng {
    let words = sealed.c[1].residues().iter();
    let bytes: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
    let seen = digest(b"fhaim second half 1", &[&bytes]);
    let (number, residue) = (number.to_le_bytes(), [sealed.residue as u8]);
    root.generator(b"flood", &[request, &number, &residue, &seen])
}

/// The centred integers whose residues under each plaintext modulus, in order, are given.
pub(crate) fn recombine(
    set: &ParameterSet,
    places: usize,
    residues: &[Zeroizing<Vec<u64>>],
) -> Zeroizing<Vec<i128>> {
    let mut values = Zeroizing::new(vec![0i128; places]);
    let mut product = 1i128;
    for (residues, &t) in residues.iter().zip(set.plaintext_moduli) {
        let t = i128::from(t);
        let inverse = inverse_modulo(product % t, t);
        for (v, &r) in values.iter_mut().zip(residues.iter()) {
            let step = (i128::from(r) - *v).rem_euclid(t) * inverse % t;
            *v += step * product;
        }
        product *= t;
    }
    for v in values.iter_mut() {
        if *v > product / 2 {
            *v -= product;
        }
    }
    values
}

/// a^-1 mod m for coprime a, m (extended Euclid).
pub(crate) fn inverse_modulo(a: i128, m: i128) -> i128 {
    let (mut r, mut next_r, mut x, mut next_x) = (m, a.rem_euclid(m), 0, 1);
    while next_r != 0 {
        let quotient = r / next_r;
        (r, next_r) = (next_r, r - quotient * next_r);
        (x, next_x) = (next_x, x - quotient * next_x);
    }
    x.rem_euclid(m)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::SETS;
    use rand::SeedableRng;

    #[test]
    fn round_trip_is_exact_under_every_set() {
        let mut rng = ChaCha20Rng::seed_from_u64(7);
        for set in SETS {
            let params = Parameters::new(set).unwrap();
            let secret = SecretKey::random(&params, &mut rng).unwrap();
            let public = secret.public_key(&mut rng).unwrap();
            let half = (set.range() / 2) as i64;
            let message = [0, 1, -1, half, -half, 12_345];
            let ciphertexts = public.encrypt(&message, &mut rng).unwrap();
            let (values, noise) = secret.decrypt(&ciphertexts).unwrap();
            let expected: Vec<i128> = message.iter().map(|&m| i128::from(m)).collect();
            assert_eq!(values[..6], expected);
            assert!(values[6..].iter().all(|&v| v == 0));
            assert!(noise <= 10.0, "fresh noise of {noise} bits");
        }
    }
}

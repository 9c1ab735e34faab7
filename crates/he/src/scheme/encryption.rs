//! Encryption under a public key.
//!
//! A public key (b, a) over all primes encrypts zero. The ciphertext of a message m is (b u + e1 +
//! floor(Q / t) m, a u + e2), divided by the first special prime P. u and the errors are small random
//! polynomials, and Q is the product of P and the ciphertext primes (Fan and Vercauteren 2012). The message
//! enters as -t^-1 (Q m mod t), the nearest value below, which takes only an exact division.
//!
//! fhe.rs transforms every summand, and transforms back for the division: 25 transforms at two ciphertext
//! primes. Here errors and message are added while the division has coefficients anyway, and the rest is
//! transformed once: 9 transforms. Both give the same ciphertext for the same random draws.
#![expect(
    clippy::indexing_slicing,
    reason = "`Prepared::new` checked that every limb exists, so a limb's range is within bounds"
)]

use crate::error::{Error, Result};
use crate::scheme::ciphertext::Ciphertext;
use crate::scheme::public_key::{PublicKey, divisor};
use crate::scheme::ring::DEGREE;
use crate::scheme::ring::{Limb, Poly, Ring};
use crate::scheme::switch_key::{full_transform, small};
use rand::{CryptoRng, RngCore};
use zeroize::Zeroizing;

/// The summands of u times a polynomial of the key: an error, and for the first half a message.
struct Added {
    error: Zeroizing<Vec<i64>>,
    /// Q m mod t for each coefficient of the message m, and t.
    message: Option<(Zeroizing<Vec<u64>>, u64)>,
}

impl Added {
    /// Returns the residues modulo one prime.
    fn residues(&self, limb: &Limb) -> Zeroizing<Vec<u64>> {
        let m = limb.modulus;
        let residues = self.error.iter().map(|&e| m.small(e));
        let mut residues = Zeroizing::new(residues.collect::<Vec<u64>>());
        if let Some((message, t)) = &self.message {
            let scale = u128::from(m.mont(m.inv(m.sub(0, t % m.value()))));
            for (residue, &x) in residues.iter_mut().zip(message.iter()) {
                *residue = m.add(*residue, m.redc(u128::from(x) * scale));
            }
        }
        residues
    }
}

impl PublicKey {
    /// Encrypts a polynomial with signed coefficients, once under each plaintext modulus.
    ///
    /// Encryption takes place at level 0 and drops the special prime. Only rounding noise of a few hundred
    /// remains, instead of the few thousand of encryption at level 1.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if there are more coefficients than the ring's degree.
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

    /// Encrypts coefficients that are already reduced modulo plaintext modulus number `residue`. Missing
    /// coefficients are zero.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if there are more coefficients than the ring's degree.
    pub(crate) fn encrypt_residues<R: RngCore + CryptoRng>(
        &self,
        residue: usize,
        values: &[u64],
        rng: &mut R,
    ) -> Result<Ciphertext> {
        if values.len() > DEGREE {
            return Err(Error::OutOfRange("more coefficients than the ring has"));
        }
        let ring = self.params().ring();
        let u = full_transform(ring, &small(rng)?);
        let errors = [small(rng)?, small(rng)?];
        let t = self.params().plaintext_modulus(residue);
        let limbs = ring.encryption_limbs().iter();
        let moduli = limbs.map(|limb| limb.modulus.value() % t);
        // Plaintext moduli are below 2^31, so a product of residues fits a word.
        let q = moduli.fold(1, |product, q| product * q % t);
        let message = Zeroizing::new(values.iter().map(|x| x * q % t).collect::<Vec<u64>>());
        let [first, second] = errors;
        let first = Added {
            error: first,
            message: Some((message, t)),
        };
        let second = Added {
            error: second,
            message: None,
        };
        let [b, a] = &self.prepared().0;
        Ok(Ciphertext {
            residue,
            c: [half(ring, b, &u, &first), half(ring, a, &u, &second)],
        })
    }
}

/// Returns u times a polynomial of the key plus the summands, divided by the first special prime.
fn half(ring: &Ring, key: &[u64], u: &[u64], added: &Added) -> Poly {
    let special = ring.ciphertext_limbs().len();
    let range = |j: usize| j * DEGREE..(j + 1) * DEGREE;
    let m = ring.special().modulus;
    let mut remainder = added.residues(ring.special());
    let mut product = Zeroizing::new(vec![0; DEGREE]);
    let pairs = key[range(special)].iter().zip(&u[range(special)]);
    for (out, (&k, &u)) in product.iter_mut().zip(pairs) {
        *out = m.redc(u128::from(k) * u128::from(u));
    }
    ring.special().inverse(&mut product);
    for (r, &x) in remainder.iter_mut().zip(product.iter()) {
        *r = m.add(*r, x);
    }
    let mut out = ring.zero();
    for (j, limb) in ring.ciphertext_limbs().iter().enumerate() {
        let m = limb.modulus;
        let mut rest = added.residues(limb);
        m.centre(ring.special().modulus, &remainder, &mut product);
        for (rest, &r) in rest.iter_mut().zip(product.iter()) {
            *rest = m.sub(*rest, r);
        }
        limb.forward(&mut rest);
        let divide = u128::from(m.mont(divisor(ring, j)));
        let pairs = key[range(j)].iter().zip(&u[range(j)]);
        for ((out, &rest), (&k, &u)) in out.limb_mut(j).iter_mut().zip(rest.iter()).zip(pairs) {
            *out = m.redc(u128::from(k) * u128::from(u) + u128::from(rest) * divide);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheme::params::{Parameters, SETS};
    use crate::scheme::secret_key::SecretKey;
    use fhe::bfv::{
        Ciphertext as SchemeCiphertext, Encoding, Plaintext, PublicKey as SchemePublicKey,
    };
    use fhe::proto::bfv::{Ciphertext as CiphertextProto, PublicKey as PublicKeyProto};
    use fhe_math::rq::{Poly as SchemePoly, Representation, traits::TryConvertFrom};
    use fhe_traits::{DeserializeParametrized, FheEncoder, FheEncrypter, Serialize};
    use ndarray::Array2;
    use prost::Message;
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    /// Converts our public key to the library's.
    fn scheme_key(public: &PublicKey, residue: usize) -> SchemePublicKey {
        let scheme = public.params().scheme(residue);
        let context = scheme.context_at_level(0).unwrap();
        let limbs = public.params().ring().encryption_limbs().len();
        let poly = |residues: &Vec<u64>| {
            let residues = residues[..limbs * DEGREE].to_vec();
            let residues = Array2::from_shape_vec((limbs, DEGREE), residues).unwrap();
            SchemePoly::try_convert_from(residues, context, false, Representation::Ntt).unwrap()
        };
        let pair = public.polynomials().iter().map(poly).collect();
        let pair = SchemeCiphertext::new(pair, scheme).unwrap().to_bytes();
        let key = PublicKeyProto {
            c: Some(CiphertextProto::decode(pair.as_slice()).unwrap()),
        };
        SchemePublicKey::from_bytes(&key.encode_to_vec(), scheme).unwrap()
    }

    /// Encrypts and switches with the library.
    fn by_the_library(
        public: &PublicKey,
        residue: usize,
        values: &[u64],
        rng: &mut ChaCha20Rng,
    ) -> Ciphertext {
        let scheme = public.params().scheme(residue);
        let plain = Plaintext::try_encode(values, Encoding::poly(), scheme).unwrap();
        let key = scheme_key(public, residue);
        let mut c = key.try_encrypt(&plain, rng).unwrap();
        c.switch_to_level(crate::scheme::ciphertext::LEVEL).unwrap();
        Ciphertext::from_scheme(public.params(), residue, &c).unwrap()
    }

    #[test]
    fn same_draws_give_the_ciphertext_of_the_library() {
        let mut rng = ChaCha20Rng::seed_from_u64(11);
        for set in SETS {
            let params = Parameters::new(set).unwrap();
            let secret = SecretKey::random(&params, &mut rng).unwrap();
            let public = secret.public_key(&mut rng).unwrap();
            for (residue, &t) in set.plaintext_moduli.iter().enumerate() {
                let ascending: Vec<u64> = (0..DEGREE as u64).map(|i| i * i % t).collect();
                for values in [vec![1, 0, t - 1, t / 2], vec![t - 1; DEGREE], ascending] {
                    let mut again = rng.clone();
                    let wanted = by_the_library(&public, residue, &values, &mut again);
                    let got = public.encrypt_residues(residue, &values, &mut rng);
                    assert_eq!(got.unwrap(), wanted);
                    assert_eq!(rng, again, "number of draws");
                }
            }
            let too_many = vec![0; DEGREE + 1];
            assert!(matches!(
                public.encrypt_residues(0, &too_many, &mut rng),
                Err(Error::OutOfRange(..))
            ));
        }
    }
}

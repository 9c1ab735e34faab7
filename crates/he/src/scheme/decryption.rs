//! Decryption of ciphertexts and of sealed pages.

use crate::error::{Error, Result};
use crate::release::seal::flood;
use crate::scheme::ciphertext::{Ciphertext, LEVEL};
use crate::scheme::noise;
use crate::scheme::params::ParameterSet;
use crate::scheme::ring::DEGREE;
use crate::scheme::root::{Root, digest};
use crate::scheme::secret_key::SecretKey;
use fhe::bfv::Encoding;
use fhe_traits::{FheDecoder, FheDecrypter};
use rand_chacha::ChaCha20Rng;
use zeroize::Zeroizing;

impl SecretKey {
    /// Decrypts one polynomial from its ciphertexts, one under each plaintext modulus. Returns its centred
    /// coefficients (Chinese remaindering), and the noise in bits.
    ///
    /// # Errors
    /// [`Error::NoiseBudget`] if the noise is larger than that of a released ciphertext can be, a bound
    /// well below the size at which decryption errs. [`Error::Mismatch`] if the ciphertexts do not belong
    /// to one polynomial.
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

    /// Decrypts a sealed page, which is number `number` of the request with digest `request`.
    ///
    /// First adds a flood of this key. A party that knows the page's own flood then learns nothing about the noise
    /// below the key's flood from two observations: whether the page is refused as too noisy, and how its values are
    /// rounded. The flood is a function of the key, the request, the number and the second halves, so a repetition
    /// gives the same values.
    ///
    /// # Errors
    /// The same as for [`SecretKey::decrypt`].
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
                "expected one ciphertext per plaintext modulus, in order",
            ));
        }
        Ok(())
    }

    /// Decrypts one ciphertext: coefficients modulo its plaintext modulus, and the noise in bits.
    pub(crate) fn decrypt_residues(
        &self,
        ciphertext: &Ciphertext,
    ) -> Result<(Zeroizing<Vec<u64>>, f64)> {
        let params = self.params();
        let scheme = ciphertext.to_scheme(params)?;
        let key = self.scheme(ciphertext.residue);
        // Safety: only the noise affects the timing. It is flooded and stays with the key.
        let noise = unsafe { key.measure_noise(&scheme)? } as f64;
        if noise > noise::joint_released_bits(params) {
            return Err(Error::NoiseBudget);
        }
        let plain = key.try_decrypt(&scheme)?;
        let values = Vec::<u64>::try_decode(&plain, Encoding::poly_at_level(LEVEL))?;
        Ok((Zeroizing::new(values), noise))
    }
}

/// Returns the generator of the flood that a key service adds to a sealed ciphertext. It depends on the root of the
/// key, the request, the page's number in it and the second half. Two second halves never get the same flood.
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

/// Returns the centred integers with the given residues under each plaintext modulus, in order.
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

/// Returns a^-1 mod m for coprime a and m (extended Euclid).
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
    use crate::scheme::params::{Parameters, SETS};
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

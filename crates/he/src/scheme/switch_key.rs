//! Key-switching keys, and the polynomials that all keys consist of.

use crate::error::{Error, Result};
use crate::scheme::ring::{DEGREE, Ring};
use fhaim_dp::uniform_below;
use fhaim_ntt::Permutation;
use rand::{CryptoRng, RngCore, SeedableRng};
use rand_chacha::ChaCha20Rng;
use zeroize::Zeroizing;

/// Variance of errors and of the secret's coefficients (centred binomial distribution, as in the library).
pub(crate) const ERROR_VARIANCE: usize = 10;

/// Returns the transform of a small polynomial over all limbs, including the special ones.
pub(crate) fn full_transform(ring: &Ring, coefficients: &[i64]) -> Zeroizing<Vec<u64>> {
    let n = ring.degree();
    let mut out = Zeroizing::new(vec![0; n * ring.limbs().len()]);
    for (limb, values) in ring.limbs().iter().zip(out.chunks_exact_mut(n)) {
        for (value, &c) in values.iter_mut().zip(coefficients) {
            *value = limb.modulus.small(c);
        }
        limb.forward(values);
    }
    out
}

/// Returns the image under an automorphism of a polynomial over all limbs.
pub(crate) fn permuted(p: &[u64], automorphism: &Permutation) -> Zeroizing<Vec<u64>> {
    let mut image = Zeroizing::new(vec![0; p.len()]);
    let limbs = image.chunks_exact_mut(DEGREE).zip(p.chunks_exact(DEGREE));
    limbs.for_each(|(out, limb)| automorphism.apply(limb, out));
    image
}

/// Returns the square of a polynomial, as transforms over all limbs.
pub(crate) fn squared(ring: &Ring, p: &[u64]) -> Zeroizing<Vec<u64>> {
    let mut square = Zeroizing::new(p.to_vec());
    for (limb, values) in ring.limbs().iter().zip(square.chunks_exact_mut(DEGREE)) {
        values
            .iter_mut()
            .for_each(|x| *x = limb.modulus.mul(*x, *x));
    }
    square
}

/// A key from some secret polynomial s' to s, with the ring's number of digits (see `keyswitch`).
///
/// Digit i is (b, a) with b = e - a s + P s' on its own limbs and b = e - a s on the others, where P is the
/// product of the special primes. P s' appears with the residues of g_i P s', where g_i is 1 modulo the digit's
/// own primes and 0 modulo the other ciphertext primes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeySwitchKey {
    /// Expands to every `a`, so that only the seed is sent. Keys that were made in two rounds have none.
    pub(crate) seed: Option<[u8; 32]>,
    /// For each digit and limb, transforms of b in Montgomery form.
    pub(crate) b: Vec<Vec<u64>>,
    /// For each digit and limb, transforms of a in Montgomery form.
    pub(crate) a: Vec<Vec<u64>>,
}

impl KeySwitchKey {
    /// Generates a key. `secret` and `source` are transforms over all limbs.
    pub(crate) fn generate<R: RngCore + CryptoRng>(
        ring: &Ring,
        secret: &[u64],
        source: &[u64],
        rng: &mut R,
    ) -> Result<Self> {
        let mut seed = [0; 32];
        rng.fill_bytes(&mut seed);
        let a = expand(ring, seed);
        let b = cover(ring, &a, secret, Some(source), rng)?;
        let seed = Some(seed);
        Ok(Self { seed, b, a })
    }
}

/// Computes for each digit a of `uniform`: e - a s + P s' on the digit's own limbs and e - a s elsewhere, with a
/// freshly drawn error e. Input and output digits are transforms over all limbs in Montgomery form; s and s' are
/// plain transforms.
#[expect(
    clippy::indexing_slicing,
    reason = "secret, source and digits hold as many values as the ring's degree for each limb"
)]
pub(crate) fn cover<R: RngCore + CryptoRng>(
    ring: &Ring,
    uniform: &[Vec<u64>],
    secret: &[u64],
    source: Option<&[u64]>,
    rng: &mut R,
) -> Result<Vec<Vec<u64>>> {
    let n = ring.degree();
    let together = ring.limbs_of_digit();
    let digit = |(i, a): (usize, &Vec<u64>)| {
        let mut b = full_transform(ring, &small(rng)?);
        for (j, limb) in ring.limbs().iter().enumerate() {
            let m = limb.modulus;
            let p = m.mont(ring.special_product(limb));
            let source = source.filter(|_| i == j / together);
            for k in j * n..(j + 1) * n {
                let masked = m.redc(u128::from(a[k]) * u128::from(secret[k]));
                let mut value = m.sub(b[k], masked);
                if let Some(source) = source {
                    value = m.add(value, m.redc(u128::from(p) * u128::from(source[k])));
                }
                b[k] = m.mont(value);
            }
        }
        Ok(std::mem::take(&mut *b))
    };
    uniform.iter().enumerate().map(digit).collect()
}

/// Returns the first of several polynomials over all limbs, converted from Montgomery form, or an empty one if there
/// is none.
pub(crate) fn plain(ring: &Ring, digits: Vec<Vec<u64>>) -> Vec<u64> {
    let mut polynomial = digits.into_iter().next().unwrap_or_default();
    let limbs = polynomial.chunks_exact_mut(DEGREE).zip(ring.limbs());
    limbs.for_each(|(values, limb)| limb.modulus.scale(values, 1));
    polynomial
}

/// Returns the uniform halves of a key-switching key, in Montgomery form (they are uniform in either form).
pub(crate) fn expand(ring: &Ring, seed: [u8; 32]) -> Vec<Vec<u64>> {
    let mut rng = ChaCha20Rng::from_seed(seed);
    let mut digit = || {
        let limbs = ring.limbs().iter();
        limbs
            .flat_map(|l| (0..ring.degree()).map(|_| l.modulus.value()))
            .map(|q| uniform_below(q, &mut rng))
            .collect()
    };
    (0..ring.digits()).map(|_| digit()).collect()
}

/// Draws a polynomial from the error distribution.
pub(crate) fn small<R: RngCore + CryptoRng>(rng: &mut R) -> Result<Zeroizing<Vec<i64>>> {
    let drawn = fhe_util::sample_vec_cbd(DEGREE, ERROR_VARIANCE, rng);
    Ok(Zeroizing::new(
        drawn.map_err(|reason| Error::Scheme(reason.to_owned()))?,
    ))
}

//! Key switching: from a polynomial under some secret s' to a pair under s.
//!
//! Residue decomposition with one special prime P: digit i of d is its residue modulo q_i, centred,
//! and sum_i digit_i * key_i, over all primes, is P d s' + noise under s; dividing by P shrinks
//! the noise. Transforms are what it costs, and two things save some:
//! - polynomials under several secrets are summed over all primes and divided once;
//! - the first half of a pair, which only additions and automorphisms follow, stays multiplied by
//!   P until the end ([`Lifted`]).
//!
//! With L ciphertext primes and k polynomials a switch takes k (L + L^2) + 1 + L transforms, and
//! the last division 1 + L: at L = 2, 9 for one polynomial, 21 for three, 27 for four, and 3 at the end.
#![expect(
    clippy::indexing_slicing,
    reason = "an inner loop: it counts limbs of one ring, digits of at most four polynomials, and \
              places of buffers and key halves that all have the ring's degree"
)]

use crate::keys::KeySwitchKey;
use crate::ring::{Pair, Poly, Ring};
use fhaim_ntt::Modulus;

/// A pair (c0, c1) under s, c0 held as P c0 over all primes.
#[derive(Clone, Debug)]
pub(crate) struct Lifted {
    pub(crate) c0: Poly,
    pub(crate) c1: Poly,
}

/// The evaluator's key-switching interface: this module alone knows how digits are made.
#[derive(Debug)]
pub(crate) struct KeySwitcher<'a> {
    ring: &'a Ring,
    /// P modulo each ciphertext prime, in Montgomery form.
    special: Vec<u64>,
    /// P^-1 modulo each ciphertext prime, in Montgomery form.
    special_inverse: Vec<u64>,
}

/// One key switch adds up at most so many polynomials.
const MAX_TERMS: usize = 4;

/// Working memory of one thread, and what it has done.
#[derive(Debug)]
pub(crate) struct Scratch {
    /// Coefficients of each term's digits.
    digits: Vec<Vec<u64>>,
    /// Their transforms modulo one prime.
    transforms: Vec<Vec<u64>>,
    /// The second half of the sum of digits times keys, modulo one prime.
    product: Vec<u64>,
    /// Coefficients modulo P of what is divided by P.
    remainder: Vec<u64>,
    /// Polynomials switched.
    switches: u64,
    /// Transforms made, of one limb each.
    transforms_made: u64,
}

impl Scratch {
    pub(crate) fn new(ring: &Ring) -> Self {
        let limb = || vec![0; ring.degree()];
        let digits = MAX_TERMS * ring.ciphertext_limbs().len();
        Self {
            digits: (0..digits).map(|_| limb()).collect(),
            transforms: (0..digits).map(|_| limb()).collect(),
            product: limb(),
            remainder: limb(),
            switches: 0,
            transforms_made: 0,
        }
    }

    /// Polynomials switched and transforms made since this was last asked.
    pub(crate) fn take_counts(&mut self) -> (u64, u64) {
        let switches = std::mem::take(&mut self.switches);
        (switches, std::mem::take(&mut self.transforms_made))
    }
}

impl<'a> KeySwitcher<'a> {
    pub(crate) fn new(ring: &'a Ring) -> Self {
        let p = ring.special().modulus.value();
        let limbs = ring.ciphertext_limbs().iter().map(|limb| limb.modulus);
        Self {
            ring,
            special: limbs.clone().map(|m| m.mont(p % m.value())).collect(),
            special_inverse: limbs.map(|m| m.mont(m.inv(p % m.value()))).collect(),
        }
    }

    /// Multiplies the first half by P.
    pub(crate) fn lift(&self, [mut c0, c1]: Pair) -> Lifted {
        for (j, limb) in self.ring.ciphertext_limbs().iter().enumerate() {
            let p = u128::from(self.special[j]);
            for x in c0.limb_mut(j) {
                *x = limb.modulus.redc(u128::from(*x) * p);
            }
        }
        c0.extend();
        Lifted { c0, c1 }
    }

    /// Divides the first half by P.
    pub(crate) fn lower(&self, lifted: Lifted, scratch: &mut Scratch) -> Pair {
        let Lifted { mut c0, c1 } = lifted;
        let special = self.ring.ciphertext_limbs().len();
        scratch.remainder.copy_from_slice(c0.limb(special));
        self.ring.special().inverse(&mut scratch.remainder);
        scratch.transforms_made += 1;
        c0.truncate();
        for j in 0..special {
            self.transform_remainder(j, scratch);
            let divided = self.divided(j);
            for (x, &r) in c0.limb_mut(j).iter_mut().zip(&scratch.transforms[0]) {
                *x = divided(*x, r);
            }
        }
        [c0, c1]
    }

    /// `into` += the pair under s that encrypts the sum of the terms' polynomials, each under its
    /// key's source. Polynomials are transforms; there are at most four.
    pub(crate) fn add(
        &self,
        terms: &[(&KeySwitchKey, &Poly)],
        into: &mut Lifted,
        scratch: &mut Scratch,
    ) {
        let limbs = self.ring.limbs();
        let special = limbs.len() - 1;
        let digits = scratch.digits.chunks_mut(special);
        for (digits, (_, d)) in digits.zip(terms) {
            for (i, digit) in digits.iter_mut().enumerate() {
                digit.copy_from_slice(d.limb(i));
                limbs[i].inverse(digit);
            }
        }
        // The special prime first: its result is what the other limbs divide away.
        self.multiply(terms, special, into.c0.limb_mut(special), scratch);
        std::mem::swap(&mut scratch.remainder, &mut scratch.product);
        limbs[special].inverse(&mut scratch.remainder);
        for (j, limb) in self.ring.ciphertext_limbs().iter().enumerate() {
            self.multiply(terms, j, into.c0.limb_mut(j), scratch);
            self.transform_remainder(j, scratch);
            let divided = self.divided(j);
            let pairs = scratch.product.iter().zip(&scratch.transforms[0]);
            for (sum, (&x, &r)) in into.c1.limb_mut(j).iter_mut().zip(pairs) {
                *sum = limb.modulus.add(*sum, divided(x, r));
            }
        }
        scratch.switches += terms.len() as u64;
        scratch.transforms_made += (terms.len() * special + 1) as u64;
    }

    /// Limb j of the sum of digits times keys: its first half is added to `first`, its second is
    /// left in `scratch.product`.
    fn multiply(
        &self,
        terms: &[(&KeySwitchKey, &Poly)],
        j: usize,
        first: &mut [u64],
        scratch: &mut Scratch,
    ) {
        let primes = self.ring.ciphertext_limbs().len();
        let limb = &self.ring.limbs()[j];
        let m = limb.modulus;
        let used = terms.len() * primes;
        for (k, transform) in scratch.transforms[..used].iter_mut().enumerate() {
            if k % primes != j {
                let prime = self.ring.limbs()[k % primes].modulus;
                centre(prime, &scratch.digits[k], m, transform);
                limb.forward(transform);
                scratch.transforms_made += 1;
            }
        }
        // Digit j needs no transform: it comes from one.
        let transform = |k: usize| {
            if k % primes == j {
                terms[k / primes].1.limb(j)
            } else {
                &scratch.transforms[k]
            }
        };
        let digits: Vec<&[u64]> = (0..used).map(transform).collect();
        let n = self.ring.degree();
        let range = j * n..(j + 1) * n;
        let keys = terms.iter().flat_map(|(key, _)| &key.b);
        let keys: Vec<&[u64]> = keys.map(|half| &half[range.clone()]).collect();
        inner_product(m, &digits, &keys, first, |sum, x| *sum = m.add(*sum, x));
        let keys = terms.iter().flat_map(|(key, _)| &key.a);
        let keys: Vec<&[u64]> = keys.map(|half| &half[range.clone()]).collect();
        inner_product(m, &digits, &keys, &mut scratch.product, |out, x| *out = x);
    }

    /// The transform modulo prime j of what is divided by P, \[`scratch.remainder`\] as centred
    /// residues modulo P, in place of the first digit's, which is used up.
    fn transform_remainder(&self, j: usize, scratch: &mut Scratch) {
        let limb = &self.ring.limbs()[j];
        let buffer = &mut scratch.transforms[0];
        let special = self.ring.special().modulus;
        centre(special, &scratch.remainder, limb.modulus, buffer);
        limb.forward(buffer);
        scratch.transforms_made += 1;
    }

    /// (x - r) / P modulo prime j, from x and r.
    fn divided(&self, j: usize) -> impl Fn(u64, u64) -> u64 {
        let m = self.ring.limbs()[j].modulus;
        let inverse = u128::from(self.special_inverse[j]);
        move |x, r| m.redc(u128::from(m.sub(x, r)) * inverse)
    }
}

/// Residues of one prime, as integers of least absolute value, modulo another: the primes of a set
/// differ by less than a factor of two.
///
/// Digits in 0..q would serve as well, but for their mean, q/2 in every coefficient: times a key's
/// error that is a noise of three times the variance of the rest, most of it at one pair of roots.
pub(crate) fn centre(from: Modulus, residues: &[u64], m: Modulus, to: &mut [u64]) {
    let q = from.value();
    let q_mod_m = q % m.value();
    for (to, &x) in to.iter_mut().zip(residues) {
        // Without a branch, which would be mispredicted every other time.
        let upper_half = u64::from(x > q / 2).wrapping_neg();
        *to = m.sub(m.reduce_once(x), q_mod_m & upper_half);
    }
}

/// Gives `store` each place of `out` with the sum over k of x_k * y_k there, y in Montgomery form.
fn inner_product(
    m: Modulus,
    x: &[&[u64]],
    y: &[&[u64]],
    out: &mut [u64],
    store: impl Fn(&mut u64, u64),
) {
    // One to four polynomials, at two and three ciphertext primes.
    match x.len() {
        2 => products::<2>(m, x, y, out, store),
        3 => products::<3>(m, x, y, out, store),
        4 => products::<4>(m, x, y, out, store),
        6 => products::<6>(m, x, y, out, store),
        8 => products::<8>(m, x, y, out, store),
        9 => products::<9>(m, x, y, out, store),
        12 => products::<12>(m, x, y, out, store),
        _ => {
            for (i, out) in out.iter_mut().enumerate() {
                let products = x.iter().zip(y);
                let product = |(x, y): (&&[u64], &&[u64])| u128::from(x[i]) * u128::from(y[i]);
                store(out, m.redc(products.map(product).sum()));
            }
        }
    }
}

/// The inner product of K pairs, reduced once: K q^2 stays below 2^64 q, as every parameter set
/// is checked for.
fn products<const K: usize>(
    m: Modulus,
    x: &[&[u64]],
    y: &[&[u64]],
    out: &mut [u64],
    store: impl Fn(&mut u64, u64),
) {
    let n = out.len();
    let x: [&[u64]; K] = std::array::from_fn(|k| &x[k][..n]);
    let y: [&[u64]; K] = std::array::from_fn(|k| &y[k][..n]);
    for (i, out) in out.iter_mut().enumerate() {
        let mut sum = 0;
        for k in 0..K {
            sum += u128::from(x[k][i]) * u128::from(y[k][i]);
        }
        store(out, m.redc(sum));
    }
}

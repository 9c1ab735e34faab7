//! Key switching: from a polynomial under some secret s' to a pair under s.
//!
//! Residue decomposition with special primes of product P: digit i of d is d modulo the ciphertext primes
//! of group i, as many as there are special primes, and of least absolute value; sum_i digit_i * key_i,
//! over all primes, is P d s' + noise under s; dividing by P shrinks the noise. Transforms are what it
//! costs, and two things save some:
//! - polynomials under several secrets are summed over all primes and divided once;
//! - the first half of a pair, which only additions and automorphisms follow, stays multiplied by
//!   P until the end ([`Lifted`]).
//!
//! With L ciphertext primes, a special one and k polynomials a switch takes k (L + L^2) + 1 + L
//! transforms, and the last division 1 + L: at L = 2, 9 for one polynomial, 21 for three, 27 for four, and
//! 3 at the end. With two special primes and L = 2 there is one digit: 4 k + 4, and 4 at the end.
#![expect(
    clippy::indexing_slicing,
    reason = "an inner loop: it counts limbs of one ring, digits of at most four polynomials, and \
              places of buffers and key halves that all have the ring's degree"
)]

use crate::keys::KeySwitchKey;
use crate::residues::Group;
use crate::ring::{Pair, Poly, Ring};
use fhaim_ntt::Store;

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
    /// The ciphertext primes of each digit.
    digits: Vec<Group>,
    /// The special primes.
    special: Group,
    /// P modulo each ciphertext prime, in Montgomery form.
    product: Vec<u64>,
    /// P^-1 modulo each ciphertext prime, in Montgomery form.
    product_inverse: Vec<u64>,
}

/// One key switch adds up at most so many polynomials.
const MAX_TERMS: usize = 4;

/// Working memory of one thread, and what it has done.
#[derive(Debug)]
pub(crate) struct Scratch {
    /// Coefficients of each term's digits, a buffer for each ciphertext prime.
    digits: Vec<Vec<u64>>,
    /// Their transforms modulo one prime.
    transforms: Vec<Vec<u64>>,
    /// The second half of the sum of digits times keys, modulo one prime.
    product: Vec<u64>,
    /// Coefficients modulo the special primes of what is divided by P.
    remainder: Vec<Vec<u64>>,
    /// Polynomials switched.
    switches: u64,
    /// Transforms made, of one limb each.
    transforms_made: u64,
}

impl Scratch {
    pub(crate) fn new(ring: &Ring) -> Self {
        let limbs = |count: usize| (0..count).map(|_| vec![0; ring.degree()]).collect();
        Self {
            digits: limbs(MAX_TERMS * ring.ciphertext_limbs().len()),
            transforms: limbs(MAX_TERMS * ring.digits()),
            product: vec![0; ring.degree()],
            remainder: limbs(ring.special_limbs().len()),
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
        let limbs = ring.ciphertext_limbs();
        let products = limbs
            .iter()
            .map(|limb| (limb.modulus, ring.special_product(limb)));
        let group = |limbs| Group::new(limbs, ring.limbs());
        Self {
            ring,
            digits: limbs.chunks(ring.limbs_of_digit()).map(group).collect(),
            special: group(ring.special_limbs()),
            product: products.clone().map(|(m, p)| m.mont(p)).collect(),
            product_inverse: products.map(|(m, p)| m.mont(m.inv(p))).collect(),
        }
    }

    /// Multiplies the first half by P.
    pub(crate) fn lift(&self, [mut c0, c1]: Pair) -> Lifted {
        for (j, limb) in self.ring.ciphertext_limbs().iter().enumerate() {
            limb.modulus.scale(c0.limb_mut(j), self.product[j]);
        }
        c0.resize(self.ring.limbs().len());
        Lifted { c0, c1 }
    }

    /// Divides the first half by P.
    pub(crate) fn lower(&self, lifted: Lifted, scratch: &mut Scratch) -> Pair {
        let Lifted { mut c0, c1 } = lifted;
        let limbs = self.ring.ciphertext_limbs();
        for (k, remainder) in scratch.remainder.iter_mut().enumerate() {
            remainder.copy_from_slice(c0.limb(limbs.len() + k));
        }
        self.take_remainder(scratch);
        c0.resize(limbs.len());
        for (j, limb) in limbs.iter().enumerate() {
            self.transform_remainder(j, scratch);
            let operands = [c0.limb(j), &scratch.transforms[0]];
            let inverse = self.product_inverse[j];
            let divided = &mut scratch.product;
            limb.modulus
                .scaled_difference(operands, inverse, Store::Set, divided);
            c0.limb_mut(j).copy_from_slice(divided);
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
        let limbs = self.ring.ciphertext_limbs();
        for (k, (_, d)) in terms.iter().enumerate() {
            self.cut(d, k * limbs.len(), scratch);
        }
        // The special primes first: their result is what the other limbs divide away.
        for k in 0..scratch.remainder.len() {
            let j = limbs.len() + k;
            self.multiply(terms, j, into.c0.limb_mut(j), scratch);
            std::mem::swap(&mut scratch.remainder[k], &mut scratch.product);
        }
        self.take_remainder(scratch);
        for (j, limb) in limbs.iter().enumerate() {
            self.multiply(terms, j, into.c0.limb_mut(j), scratch);
            self.transform_remainder(j, scratch);
            let operands = [&scratch.product[..], &scratch.transforms[0]];
            let (inverse, sum) = (self.product_inverse[j], into.c1.limb_mut(j));
            limb.modulus
                .scaled_difference(operands, inverse, Store::Add, sum);
        }
        scratch.switches += terms.len() as u64;
    }

    /// The digits of a polynomial, from buffer `first` on.
    fn cut(&self, d: &Poly, first: usize, scratch: &mut Scratch) {
        let limbs = self.ring.ciphertext_limbs();
        let buffers = &mut scratch.digits[first..first + limbs.len()];
        for (j, (limb, buffer)) in limbs.iter().zip(buffers.iter_mut()).enumerate() {
            buffer.copy_from_slice(d.limb(j));
            limb.inverse(buffer);
        }
        scratch.transforms_made += limbs.len() as u64;
        let together = self.ring.limbs_of_digit();
        for (group, residues) in self.digits.iter().zip(buffers.chunks_mut(together)) {
            group.digits(residues, &mut scratch.product);
        }
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
        let limb = &self.ring.limbs()[j];
        let (m, together) = (limb.modulus, self.ring.limbs_of_digit());
        let primes = self.ring.ciphertext_limbs().len();
        let mut transforms = scratch.transforms.iter_mut();
        let mut digits: Vec<&[u64]> = Vec::with_capacity(MAX_TERMS * self.digits.len());
        for ((_, d), residues) in terms.iter().zip(scratch.digits.chunks(primes)) {
            for (i, group) in self.digits.iter().enumerate() {
                if i == j / together {
                    // Modulo its own primes a digit needs no transform: it comes from one.
                    digits.push(d.limb(j));
                } else if let Some(transform) = transforms.next() {
                    group.modulo(&residues[i * together..][..together], j, m, transform);
                    limb.forward(transform);
                    scratch.transforms_made += 1;
                    digits.push(transform);
                }
            }
        }
        let n = self.ring.degree();
        let range = j * n..(j + 1) * n;
        let half = |half: fn(&KeySwitchKey) -> &Vec<Vec<u64>>| -> Vec<&[u64]> {
            let digits = terms.iter().flat_map(|(key, _)| half(key));
            digits.map(|digit| &digit[range.clone()]).collect()
        };
        let keys = [&half(|key| &key.b)[..], &half(|key| &key.a)[..]];
        m.inner_products(&digits, keys, first, &mut scratch.product);
    }

    /// From transforms to digits modulo the special primes, in `scratch.remainder`.
    fn take_remainder(&self, scratch: &mut Scratch) {
        let limbs = self.ring.special_limbs();
        for (limb, remainder) in limbs.iter().zip(&mut scratch.remainder) {
            limb.inverse(remainder);
        }
        scratch.transforms_made += limbs.len() as u64;
        self.special
            .digits(&mut scratch.remainder, &mut scratch.product);
    }

    /// The transform modulo prime j of what is divided by P, `scratch.remainder`, in place of the first
    /// digit's, which is used up.
    fn transform_remainder(&self, j: usize, scratch: &mut Scratch) {
        let limb = &self.ring.limbs()[j];
        let buffer = &mut scratch.transforms[0];
        self.special
            .modulo(&scratch.remainder, j, limb.modulus, buffer);
        limb.forward(buffer);
        scratch.transforms_made += 1;
    }
}

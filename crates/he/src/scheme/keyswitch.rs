//! Key switching: from a polynomial under some secret s' to a pair under s.
//!
//! The method is residue decomposition with special primes, whose product is P. Ciphertext primes form
//! groups, each with as many primes as there are special ones. Digit i of d is d modulo the primes of group i,
//! of least absolute value. Over all primes, sum_i digit_i * key_i is P d s' + noise under s, and dividing by P
//! shrinks the noise. The cost is in the transforms. Two measures save some:
//! - Polynomials under several secrets are summed over all primes and divided once.
//! - A pair stays multiplied by P ([`Lifted`]) through additions and automorphisms, until the end. Only the
//!   input of another switch is divided: when two pairs are merged, that is the difference of their second
//!   halves, instead of each half.
//!
//! With L ciphertext primes, one special prime and k polynomials, a switch takes k (L + L^2) transforms and each
//! division 1 + L. At L = 2 that is 6 for one polynomial, 18 for three and 24 for four, and 3 for each half that
//! is divided. With two special primes and L = 2 there is one digit: a switch takes 4 k, and a division 4.
#![expect(
    clippy::indexing_slicing,
    reason = "an inner loop: it counts limbs of one ring, digits of at most four polynomials, and \
              positions in buffers and key halves that all have the ring's degree"
)]

use crate::scheme::residues::Group;
use crate::scheme::ring::{Pair, Poly, Ring};
use crate::scheme::switch_key::KeySwitchKey;
use fhaim_ntt::{Permutation, ResultMode};

/// A pair (c0, c1) under s, held as P c0 and P c1 over all primes. After [`KeySwitcher::settle`], c1 is held
/// without the factor P, over the ciphertext primes.
#[derive(Clone, Debug)]
pub(crate) struct Lifted {
    pub(crate) c0: Poly,
    pub(crate) c1: Poly,
}

/// The evaluator's interface to key switching. Only this module knows how digits are made.
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

/// Largest number of polynomials that one key switch adds up.
const MAX_TERMS: usize = 4;

/// Working memory of one thread, and counters of its work.
#[derive(Debug)]
pub(crate) struct Scratch {
    /// Coefficients of each term's digits, a buffer for each ciphertext prime.
    digits: Vec<Vec<u64>>,
    /// Transforms of the digits modulo one prime.
    transforms: Vec<Vec<u64>>,
    /// A quotient by P modulo one prime, and spare memory for making digits.
    quotient: Vec<u64>,
    /// Coefficients modulo the special primes of the polynomial that is divided by P.
    remainder: Vec<Vec<u64>>,
    /// Number of polynomials switched.
    switches: u64,
    /// Number of transforms made, of one limb each.
    transforms_made: u64,
}

impl Scratch {
    pub(crate) fn new(ring: &Ring) -> Self {
        let limbs = |count: usize| (0..count).map(|_| vec![0; ring.degree()]).collect();
        Self {
            digits: limbs(MAX_TERMS * ring.ciphertext_limbs().len()),
            transforms: limbs(MAX_TERMS * ring.digits()),
            quotient: vec![0; ring.degree()],
            remainder: limbs(ring.special_limbs().len()),
            switches: 0,
            transforms_made: 0,
        }
    }

    /// Returns the numbers of polynomials switched and transforms made since the last call.
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

    /// Multiplies both halves by P.
    pub(crate) fn lift(&self, [c0, c1]: Pair) -> Lifted {
        Lifted {
            c0: self.multiplied(c0),
            c1: self.multiplied(c1),
        }
    }

    /// Returns P p over all primes. A polynomial over all primes already has the factor and is returned unchanged.
    pub(crate) fn multiplied(&self, mut p: Poly) -> Poly {
        let limbs = self.ring.ciphertext_limbs();
        if p.limbs() == limbs.len() {
            for (j, limb) in limbs.iter().enumerate() {
                limb.modulus.scale(p.limb_mut(j), self.product[j]);
            }
            p.resize(self.ring.limbs().len());
        }
        p
    }

    /// Divides both halves by P.
    pub(crate) fn lower(&self, lifted: Lifted, scratch: &mut Scratch) -> Pair {
        let Lifted { c0, c1 } = self.settle(lifted, scratch);
        let c0 = self.divided(c0, scratch);
        [c0, c1]
    }

    /// Divides the second half by P.
    pub(crate) fn settle(&self, Lifted { c0, c1 }: Lifted, scratch: &mut Scratch) -> Lifted {
        let c1 = self.divided(c1, scratch);
        Lifted { c0, c1 }
    }

    /// Returns p of P p, rounded, over the ciphertext primes. A polynomial over these primes is returned unchanged.
    fn divided(&self, mut p: Poly, scratch: &mut Scratch) -> Poly {
        let limbs = self.ring.ciphertext_limbs().len();
        if p.limbs() > limbs {
            self.take_remainder(&p, scratch);
            for j in 0..limbs {
                let quotient = self.divide(&p, j, scratch);
                p.limb_mut(j).copy_from_slice(quotient);
            }
            p.resize(limbs);
        }
        p
    }

    /// Returns the image of p under an automorphism, rounded, over the ciphertext primes. The argument is P p or p.
    pub(crate) fn image(&self, p: &Poly, sigma: &Permutation, scratch: &mut Scratch) -> Poly {
        let limbs = self.ring.ciphertext_limbs().len();
        if p.limbs() == limbs {
            return p.permuted(sigma);
        }
        self.take_remainder(p, scratch);
        let mut image = self.ring.zero();
        for j in 0..limbs {
            sigma.apply(self.divide(p, j, scratch), image.limb_mut(j));
        }
        image
    }

    /// Returns the pair under s of (c0, 0) plus the sum of the terms' polynomials, as in [`KeySwitcher::add`].
    pub(crate) fn switch(
        &self,
        c0: Poly,
        terms: &[(&KeySwitchKey, &Poly)],
        scratch: &mut Scratch,
    ) -> Lifted {
        let c0 = self.multiplied(c0);
        let c1 = c0.zero_like();
        let mut switched = Lifted { c0, c1 };
        self.put(terms, &mut switched, ResultMode::Set, scratch);
        switched
    }

    /// Adds to `into` the pair under s that encrypts the sum of the terms' polynomials, each under its key's
    /// source. Polynomials are transforms, and there are at most four.
    pub(crate) fn add(
        &self,
        terms: &[(&KeySwitchKey, &Poly)],
        into: &mut Lifted,
        scratch: &mut Scratch,
    ) {
        self.put(terms, into, ResultMode::Add, scratch);
    }

    /// Adds the first half of the switched sum to the pair's, and sets or adds the second.
    fn put(
        &self,
        terms: &[(&KeySwitchKey, &Poly)],
        pair: &mut Lifted,
        into: ResultMode,
        scratch: &mut Scratch,
    ) {
        let limbs = self.ring.ciphertext_limbs().len();
        for (k, (_, d)) in terms.iter().enumerate() {
            self.cut(d, k * limbs, scratch);
        }
        for j in 0..self.ring.limbs().len() {
            self.multiply(terms, j, pair, into, scratch);
        }
        scratch.switches += terms.len() as u64;
    }

    /// Writes the digits of a polynomial to the buffers from number `first`.
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
            group.digits(residues, &mut scratch.quotient);
        }
    }

    /// Computes limb j of the sum of digits times keys. Adds its first half to the pair's, and sets or adds the second.
    fn multiply(
        &self,
        terms: &[(&KeySwitchKey, &Poly)],
        j: usize,
        pair: &mut Lifted,
        into: ResultMode,
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
                    // A digit is the polynomial itself modulo its own primes, whose transform is given.
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
        let (first, second) = (pair.c0.limb_mut(j), pair.c1.limb_mut(j));
        m.inner_products(&digits, keys, first, into, second);
    }

    /// Writes the remainder of a polynomial over all primes, when it is divided by P, to `scratch.remainder`, as
    /// digits modulo the special primes.
    fn take_remainder(&self, p: &Poly, scratch: &mut Scratch) {
        let first = self.ring.ciphertext_limbs().len();
        let limbs = self.ring.special_limbs();
        for (k, (limb, remainder)) in limbs.iter().zip(&mut scratch.remainder).enumerate() {
            remainder.copy_from_slice(p.limb(first + k));
            limb.inverse(remainder);
        }
        scratch.transforms_made += limbs.len() as u64;
        self.special
            .digits(&mut scratch.remainder, &mut scratch.quotient);
    }

    /// Returns limb j of a polynomial over all primes minus its remainder, divided by P. The remainder's transform
    /// overwrites a first digit, which has been used or does not exist yet.
    fn divide<'s>(&self, p: &Poly, j: usize, scratch: &'s mut Scratch) -> &'s [u64] {
        let limb = &self.ring.limbs()[j];
        let buffer = &mut scratch.transforms[0];
        self.special
            .modulo(&scratch.remainder, j, limb.modulus, buffer);
        limb.forward(buffer);
        scratch.transforms_made += 1;
        let (operands, inverse) = ([p.limb(j), buffer], self.product_inverse[j]);
        let quotient = &mut scratch.quotient;
        limb.modulus
            .scaled_difference(operands, inverse, ResultMode::Set, quotient);
        quotient
    }
}

//! Key switching: from a polynomial under some secret s' to a pair under s.
//!
//! Residue decomposition with special primes of product P: digit i of d is d modulo the ciphertext primes
//! of group i, as many as there are special primes, and of least absolute value; sum_i digit_i * key_i,
//! over all primes, is P d s' + noise under s; dividing by P shrinks the noise. Transforms are what it
//! costs, and two things save some:
//! - polynomials under several secrets are summed over all primes and divided once;
//! - a pair stays multiplied by P ([`Lifted`]) through additions and automorphisms, until the end. Only what
//!   is switched again is divided: of two pairs that are merged the difference of the second halves, and not
//!   each of them.
//!
//! With L ciphertext primes, a special one and k polynomials a switch takes k (L + L^2) transforms, and each
//! division 1 + L: at L = 2, 6 for one polynomial, 18 for three, 24 for four, and 3 for a half that is divided.
//! With two special primes and L = 2 there is one digit: 4 k, and 4 a half.
#![expect(
    clippy::indexing_slicing,
    reason = "an inner loop: it counts limbs of one ring, digits of at most four polynomials, and \
              places of buffers and key halves that all have the ring's degree"
)]

use crate::scheme::residues::Group;
use crate::scheme::ring::{Pair, Poly, Ring};
use crate::scheme::switch_key::KeySwitchKey;
use fhaim_ntt::{Permutation, ResultMode};

/// A pair (c0, c1) under s, held as P c0 and P c1 over all primes. c1 may be held as it is, over the
/// ciphertext primes ([`KeySwitcher::settle`]).
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
    /// What was divided by P, modulo one prime, and what changes places with a digit.
    quotient: Vec<u64>,
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
            quotient: vec![0; ring.degree()],
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

    /// Multiplies both halves by P.
    pub(crate) fn lift(&self, [c0, c1]: Pair) -> Lifted {
        Lifted {
            c0: self.multiplied(c0),
            c1: self.multiplied(c1),
        }
    }

    /// P p over all primes; what is over all is that already.
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

    /// p of P p, rounded, over the ciphertext primes; what is over those alone is p.
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

    /// The image under an automorphism of p, rounded, over the ciphertext primes: of P p, or of p itself.
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

    /// The pair under s of (c0, 0) and the sum of the terms' polynomials, as [`KeySwitcher::add`].
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

    /// `into` += the pair under s that encrypts the sum of the terms' polynomials, each under its
    /// key's source. Polynomials are transforms; there are at most four.
    pub(crate) fn add(
        &self,
        terms: &[(&KeySwitchKey, &Poly)],
        into: &mut Lifted,
        scratch: &mut Scratch,
    ) {
        self.put(terms, into, ResultMode::Add, scratch);
    }

    /// Adds the first half of what is switched, and sets or adds the second.
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
            group.digits(residues, &mut scratch.quotient);
        }
    }

    /// Limb j of the sum of digits times keys: its first half is added to the pair's, its second set or added.
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
        let (first, second) = (pair.c0.limb_mut(j), pair.c1.limb_mut(j));
        m.inner_products(&digits, keys, first, into, second);
    }

    /// What is left of a polynomial over all primes when it is divided by P, as digits modulo the special
    /// primes, in `scratch.remainder`.
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

    /// Limb j of a polynomial over all primes without its remainder, divided by P. The transform of the
    /// remainder takes the place of a first digit's, which is used up or not made yet.
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

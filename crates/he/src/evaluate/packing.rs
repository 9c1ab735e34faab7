//! Trace packing: combines many inner products in one ciphertext (CDKS20, section 3).
//!
//! A product carries wanted cells at multiples of the stride s, and sensitive other values between them. Level l
//! of the tree merges u and v into (u + X^k v) + sigma(u - X^k v), with k = n / 2^l and sigma: X -> X^(2^l + 1),
//! which takes one key switch. After levels log2(n / s) + 1 to log2(n), all unwanted coefficients have cancelled
//! and the wanted ones are multiplied by s. The leaves enter times s^-1 modulo q, so the result is the plain
//! value. The message is exact, and the noise of the products is not multiplied; only that of the key switches is.
//!
//! Products are not relinearised separately: the first level switches from x, x^2, sigma(x) and sigma(x^2) at once,
//! where x is the key of the products.
#![expect(
    clippy::indexing_slicing,
    reason = "every level is one of the tree's, and there are keys for all of them"
)]

use crate::scheme::ciphertext::Ciphertext;
use crate::scheme::evaluation_keys::EvaluationKeys;
use crate::scheme::keyswitch::{KeySwitcher, Lifted, Scratch};
use crate::scheme::ring::DEGREE;
use crate::scheme::ring::{Pair, Poly, Ring};
use crate::scheme::upload::MergeKeys;
use crate::table::layout::LEVELS;
use fhaim_ntt::Permutation;

/// Precomputed tables of the packing tree, for one number of slots.
#[derive(Debug)]
pub(crate) struct Packer<'a> {
    ring: &'a Ring,
    keys: &'a EvaluationKeys,
    pub(crate) switcher: KeySwitcher<'a>,
    levels: Vec<Level>,
}

/// One level: the permutation of sigma and the transform of X^k over every prime.
#[derive(Debug)]
struct Level {
    number: usize,
    permutation: Permutation,
    monomial: Vec<Vec<u64>>,
}

impl<'a> Packer<'a> {
    pub(crate) fn new(keys: &'a EvaluationKeys, slots: usize) -> Self {
        let ring = keys.params.ring();
        let first = slots.trailing_zeros() as usize + 1;
        let level = |number: usize| Level {
            number,
            permutation: ring.automorphism((1 << number) + 1),
            monomial: ring
                .limbs()
                .iter()
                .map(|limb| ring.monomial_transform(limb, DEGREE >> number))
                .collect(),
        };
        let levels = (first..=LEVELS).map(level).collect();
        Self {
            ring,
            keys,
            switcher: KeySwitcher::new(ring),
            levels,
        }
    }

    /// Returns the height of the tree. A page has 2^height leaves.
    pub(crate) fn height(&self) -> usize {
        self.levels.len()
    }

    /// Returns the transform of the X^k of the first level, over every prime, in Montgomery form.
    pub(crate) fn first_monomial(&self) -> &[Vec<u64>] {
        &self.levels[0].monomial
    }

    /// Spreads two leaves under (1, s). An absent leaf is zero.
    pub(crate) fn spread_leaves(&self, u: Option<Pair>, v: Option<Pair>) -> Option<[Pair; 2]> {
        let level = &self.levels[0];
        let (u0, u1) = u.map(|[c0, c1]| (c0, c1)).unzip();
        let (v0, v1) = v.map(|[c0, c1]| (c0, c1)).unzip();
        let (sum0, difference0) = self.spread(level, u0, v0)?;
        let (sum1, difference1) = self.spread(level, u1, v1)?;
        Some([[sum0, sum1], [difference0, difference1]])
    }

    /// Merges two leaves under (1, s), given as sum u + X^k v and difference u - X^k v.
    pub(crate) fn merge_leaves(
        &self,
        [sum, difference]: [Pair; 2],
        scratch: &mut Scratch,
    ) -> Lifted {
        let level = &self.levels[0];
        let [mut c0, c1] = sum;
        self.add_image(level, &difference[0], &mut c0);
        let mut merged = self.switcher.lift([c0, c1]);
        let image = difference[1].permuted(&level.permutation);
        let sigma = &self.keys.packing[level.number - 1];
        self.switcher.add(&[(sigma, &image)], &mut merged, scratch);
        merged
    }

    /// Merges leaves under (1, x) or (1, x, x^2), where x is the key of their products. Also switches the second
    /// polynomial of the sum.
    pub(crate) fn merge_uploaded_leaves(
        &self,
        keys: MergeKeys<'_>,
        [sum, difference]: [Pair; 2],
        squares: Option<[Poly; 2]>,
        scratch: &mut Scratch,
    ) -> Lifted {
        let level = &self.levels[0];
        let [mut c0, c1] = sum;
        self.add_image(level, &difference[0], &mut c0);
        let image = difference[1].permuted(&level.permutation);
        let terms = [(keys.linear, &c1), (&keys.images.linear, &image)];
        match squares {
            None => self.switcher.switch(c0, &terms, scratch),
            Some([sum, difference]) => {
                let [linear, image] = terms;
                let squares = (keys.square, &sum);
                let images = difference.permuted(&level.permutation);
                let terms = [linear, image, squares, (&keys.images.square, &images)];
                self.switcher.switch(c0, &terms, scratch)
            }
        }
    }

    /// Merges two subtrees of height `height` (at least 1; leaves have 0). An absent subtree is zero.
    pub(crate) fn merge(
        &self,
        height: usize,
        u: Option<Lifted>,
        v: Option<Lifted>,
        scratch: &mut Scratch,
    ) -> Option<Lifted> {
        let level = &self.levels[height];
        let (u0, u1) = u.map(|u| (u.c0, u.c1)).unzip();
        let (v0, v1) = v.map(|v| (v.c0, v.c1)).unzip();
        let (mut c0, difference) = self.spread(level, u0, v0)?;
        self.add_image(level, &difference, &mut c0);
        let (c1, difference) = self.spread(level, u1, v1)?;
        let image = self
            .switcher
            .image(&difference, &level.permutation, scratch);
        let c1 = self.switcher.multiplied(c1);
        let mut merged = Lifted { c0, c1 };
        let sigma = &self.keys.packing[level.number - 1];
        self.switcher.add(&[(sigma, &image)], &mut merged, scratch);
        Some(merged)
    }

    /// Turns the tree's root into a ciphertext.
    pub(crate) fn finish(&self, residue: usize, root: Lifted, scratch: &mut Scratch) -> Ciphertext {
        let c = self.switcher.lower(root, scratch);
        Ciphertext { residue, c }
    }

    /// Computes (u + X^k v, u - X^k v), over the primes of u and v.
    fn spread(&self, level: &Level, u: Option<Poly>, v: Option<Poly>) -> Option<(Poly, Poly)> {
        let (mut u, mut v) = match (u, v) {
            (None, None) => return None,
            (Some(u), None) => return Some((u.clone(), u)),
            (Some(u), Some(v)) => (u, v),
            (None, Some(v)) => (v.zero_like(), v),
        };
        for (j, limb) in self.ring.limbs()[..u.limbs()].iter().enumerate() {
            let monomial = &level.monomial[j];
            limb.modulus
                .butterfly(u.limb_mut(j), v.limb_mut(j), monomial);
        }
        Some((u, v))
    }

    /// Computes sum += sigma(p).
    fn add_image(&self, level: &Level, p: &Poly, sum: &mut Poly) {
        for (j, limb) in self.ring.limbs()[..p.limbs()].iter().enumerate() {
            level
                .permutation
                .add(limb.modulus, p.limb(j), sum.limb_mut(j));
        }
    }
}

/// Computes the next level of a tree by merging each pair of neighbours.
pub(crate) fn merge_row<T, U>(
    row: Vec<Option<T>>,
    mut merge: impl FnMut(Option<T>, Option<T>) -> Option<U>,
) -> Vec<Option<U>> {
    let mut row = row.into_iter();
    let mut merged = Vec::with_capacity(row.len().div_ceil(2));
    while let Some(u) = row.next() {
        merged.push(merge(u, row.next().flatten()));
    }
    merged
}

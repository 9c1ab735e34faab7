//! Trace packing: many inner products into one ciphertext (CDKS20, section 3).
//!
//! A product carries wanted cells at multiples of the stride s and other, sensitive, values in
//! between. Level l of the tree merges u and v into (u + X^k v) + sigma(u - X^k v), k = n / 2^l,
//! sigma: X -> X^(2^l + 1): one key switch. After levels log2(n / s) + 1 to log2(n) all unwanted
//! coefficients have cancelled and the wanted ones are multiplied by s. The leaves enter times
//! s^-1 modulo q, so that the result is the plain value: the message is then exact, and the
//! noise of the product is not multiplied either, only that of the key switches is.

use crate::ciphertext::Ciphertext;
use crate::keys::{EvaluationKeys, LEVELS};
use crate::keyswitch::{KeySwitcher, Scratch};
use crate::params::DEGREE;
use crate::ring::{Poly, Ring};

/// Precomputed tables of the packing tree for one number of slots.
#[derive(Debug)]
pub(crate) struct Packer<'a> {
    ring: &'a Ring,
    keys: &'a EvaluationKeys,
    pub(crate) switcher: KeySwitcher<'a>,
    levels: Vec<Level>,
}

/// One level: the permutation of sigma and the transform of X^k over each ciphertext prime.
#[derive(Debug)]
struct Level {
    number: usize,
    permutation: Vec<u32>,
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
                .ciphertext_limbs()
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

    /// Height of the tree: 2^height leaves make a page.
    pub(crate) fn height(&self) -> usize {
        self.levels.len()
    }

    /// Merges two subtrees of height `height` (counted from the leaves, 0); an absent one is zero.
    pub(crate) fn merge(
        &self,
        height: usize,
        u: Option<Ciphertext>,
        v: Option<Ciphertext>,
        scratch: &mut Scratch,
    ) -> Option<Ciphertext> {
        let level = &self.levels[height];
        let (mut sum, difference) = match (u, v) {
            (None, None) => return None,
            (Some(u), None) => (u.clone(), u),
            (Some(mut u), Some(mut v)) => {
                self.butterfly(level, &mut u, &mut v);
                (u, v)
            }
            (None, Some(mut v)) => {
                let mut u = Ciphertext {
                    residue: v.residue,
                    c: [self.ring.zero(), self.ring.zero()],
                };
                self.butterfly(level, &mut u, &mut v);
                (u, v)
            }
        };
        let mut image = self.ring.zero();
        self.permute(&level.permutation, &difference.c[0], &mut image);
        sum.c[0].add_assign(&image, self.ring);
        self.permute(&level.permutation, &difference.c[1], &mut image);
        let key = &self.keys.packing[level.number - 1];
        self.switcher.add(key, &image, &mut sum.c, scratch);
        Some(sum)
    }

    /// (u, v) <- (u + X^k v, u - X^k v)
    fn butterfly(&self, level: &Level, u: &mut Ciphertext, v: &mut Ciphertext) {
        for (u, v) in u.c.iter_mut().zip(&mut v.c) {
            for (j, limb) in self.ring.ciphertext_limbs().iter().enumerate() {
                let m = limb.modulus;
                let pairs = u.limb_mut(j).iter_mut().zip(v.limb_mut(j));
                for ((u, v), &x) in pairs.zip(&level.monomial[j]) {
                    let shifted = m.redc(u128::from(*v) * u128::from(x));
                    (*u, *v) = (m.add(*u, shifted), m.sub(*u, shifted));
                }
            }
        }
    }

    fn permute(&self, map: &[u32], from: &Poly, to: &mut Poly) {
        for j in 0..self.ring.ciphertext_limbs().len() {
            let source = from.limb(j);
            for (t, &i) in to.limb_mut(j).iter_mut().zip(map) {
                *t = source[i as usize];
            }
        }
    }
}

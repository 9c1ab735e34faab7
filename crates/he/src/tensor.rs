//! The lazy tensor: sums of ciphertext products with one reduction at the end.
//!
//! A BFV ciphertext times -t is a BGV ciphertext, whose product needs no scaling: so sum over
//! terms of x (tensor) y, times t mod q once, is a BFV ciphertext of the sum of the messages'
//! products (with q = -1 mod t, which every parameter set has). A product of pairs takes four
//! multiply-accumulates a coefficient and residue; they run in 128 bits and are reduced when
//! `2^64 / q` of them have met, or at the end.
//!
//! This is the inner loop of the whole system. It walks a tile of leaves strip by strip, so that
//! right operands' strips stay in cache while all leaves of the tile use them, and sums over
//! products and record chunks a few at a time in registers, all of them in cache.
#![expect(
    clippy::indexing_slicing,
    reason = "the inner loop: it counts within arrays of a strip, limbs and strips of polynomials of \
              one ring, and operands and chunks whose numbers a task was checked for"
)]

use crate::ring::{Poly, Ring};
use crate::table::Operand;
use crate::task::Product;
use fhaim_ntt::Modulus;

/// A tile works on so many coefficients at a time.
const STRIP: usize = 256;

type Strip = [u64; STRIP];

/// The operands, and how leaves are put together. Right operands carry a constant: t times what
/// packing asks for, in Montgomery form.
#[derive(Debug)]
pub(crate) struct Tensor<'a> {
    pub(crate) ring: &'a Ring,
    pub(crate) left: &'a [Operand],
    pub(crate) right: &'a [Operand],
    /// Coefficients between slots.
    pub(crate) stride: usize,
    /// Per ciphertext prime, the transform of the X^k that shifts the second leaf of a pair, in
    /// Montgomery form.
    pub(crate) monomial: &'a [Vec<u64>],
}

/// Two neighbouring leaves u and v under (1, s, s^2), ready to be merged: u + X^k v and
/// u - X^k v.
pub(crate) type Spread = [[Poly; 3]; 2];

/// Two ciphertexts' strips: the left's two polynomials, the right's two.
type Term<'a> = [&'a Strip; 4];

impl Tensor<'_> {
    /// Adds to `out` the tensors of pairs of leaves, each the sum over its products and over the
    /// operands' record chunks, spread while their strips are in cache.
    pub(crate) fn add_tile(&self, pairs: &[[&[Product]; 2]], out: &mut [Spread]) {
        let mut built = Vec::new();
        let mut spread = [[[0; STRIP]; 3]; 2];
        for (j, limb) in self.ring.ciphertext_limbs().iter().enumerate() {
            let monomials = self.monomial[j].as_chunks::<STRIP>().0;
            for (strip, monomial) in monomials.iter().enumerate() {
                for (leaves, [sum, difference]) in pairs.iter().zip(out.iter_mut()) {
                    for (leaf, out) in leaves.iter().zip(&mut spread) {
                        self.build(j, strip, leaf, &mut built);
                        accumulate(limb.modulus, &self.terms(j, strip, leaf, &built), out);
                    }
                    let [u, v] = &spread;
                    for c in 0..3 {
                        let sum = strip_mut(&mut sum[c], j, strip);
                        let difference = strip_mut(&mut difference[c], j, strip);
                        add_butterfly(limb.modulus, [&u[c], &v[c]], monomial, [sum, difference]);
                    }
                }
            }
        }
    }

    /// One strip of the left operands of a leaf's products, chunk after chunk, where they must be
    /// put together: sums over (slot, operand) of X^(slot * stride) * operand. They are the first
    /// of `built`, which only grows.
    fn build(&self, j: usize, strip: usize, leaf: &[Product], built: &mut Vec<[Strip; 2]>) {
        let mut used = 0;
        for product in leaf.iter().filter(|product| single(product).is_none()) {
            for chunk in 0..self.right[product.right].len() {
                if used == built.len() {
                    built.push([[0; STRIP]; 2]);
                }
                self.shifted_sum(j, strip, chunk, &product.left, &mut built[used]);
                used += 1;
            }
        }
    }

    /// A shift by a multiple of the stride is multiplied by the same value at `stride` indices in
    /// a row (see [`Ring::monomial`]).
    fn shifted_sum(
        &self,
        j: usize,
        strip: usize,
        chunk: usize,
        left: &[(usize, usize)],
        out: &mut [Strip; 2],
    ) {
        let limb = &self.ring.ciphertext_limbs()[j];
        let m = limb.modulus;
        let block = self.stride.min(STRIP);
        let mut sums = [[0u128; STRIP]; 2];
        for group in left.chunks(m.lazy_products()) {
            for &(slot, operand) in group {
                let shift = |start| self.ring.monomial(limb, slot * self.stride, start);
                for (sums, p) in sums.iter_mut().zip(&self.left[operand][chunk].c) {
                    let blocks = strip_of(p, j, strip).chunks_exact(block);
                    for (k, (sums, p)) in sums.chunks_exact_mut(block).zip(blocks).enumerate() {
                        add_scaled(sums, p, shift(strip * STRIP + k * block));
                    }
                }
            }
            for sum in sums.iter_mut().flatten() {
                *sum = m.fold(*sum);
            }
        }
        for (out, sum) in out.iter_mut().flatten().zip(sums.iter().flatten()) {
            *out = m.redc(*sum);
        }
    }

    /// A leaf's pairs of strips, over its products and record chunks.
    fn terms<'a>(
        &'a self,
        j: usize,
        strip: usize,
        leaf: &[Product],
        built: &'a [[Strip; 2]],
    ) -> Vec<Term<'a>> {
        let mut built = built.iter();
        let mut terms = Vec::new();
        for product in leaf {
            for (chunk, right) in self.right[product.right].iter().enumerate() {
                let [y0, y1] = [0, 1].map(|half| strip_of(&right.c[half], j, strip));
                let left = match single(product) {
                    Some(left) => {
                        let c = &self.left[left][chunk].c;
                        Some([0, 1].map(|half| strip_of(&c[half], j, strip)))
                    }
                    None => built.next().map(|[x0, x1]| [x0, x1]),
                };
                // `build` made one for every product and chunk without a single operand.
                if let Some([x0, x1]) = left {
                    terms.push([x0, x1, y0, y1]);
                }
            }
        }
        terms
    }
}

/// The operand of a product that needs no shift and no sum.
fn single(product: &Product) -> Option<usize> {
    match product.left[..] {
        [(0, only)] => Some(only),
        _ => None,
    }
}

fn strip_of(p: &Poly, j: usize, strip: usize) -> &Strip {
    &p.limb(j).as_chunks::<STRIP>().0[strip]
}

fn strip_mut(p: &mut Poly, j: usize, strip: usize) -> &mut Strip {
    &mut p.limb_mut(j).as_chunks_mut::<STRIP>().0[strip]
}

/// sums += x * factor
fn add_scaled(sums: &mut [u128], x: &[u64], factor: u64) {
    for (sum, &x) in sums.iter_mut().zip(x) {
        *sum += u128::from(x) * u128::from(factor);
    }
}

/// out = 2^-64 * sum over terms of (x0 y0, x0 y1 + x1 y0, x1 y1).
fn accumulate(m: Modulus, terms: &[Term<'_>], out: &mut [Strip; 3]) {
    match terms {
        [a] => return multiply(m, &[*a], out),
        [a, b] => return multiply(m, &[*a, *b], out),
        _ => (),
    }
    let mut sums = [[0u128; STRIP]; 3];
    let mut room = m.lazy_products() / 2;
    let (threes, rest) = terms.as_chunks::<3>();
    for three in threes {
        make_room(m, 3, &mut room, &mut sums);
        add_products(three, &mut sums);
    }
    for one in rest {
        make_room(m, 1, &mut room, &mut sums);
        add_products(&[*one], &mut sums);
    }
    for (out, sum) in out.iter_mut().flatten().zip(sums.iter().flatten()) {
        *out = m.redc(m.fold(*sum));
    }
}

/// Folds the sums before a number of terms that would not fit.
fn make_room(m: Modulus, terms: usize, room: &mut usize, sums: &mut [[u128; STRIP]; 3]) {
    if *room < terms {
        for sum in sums.iter_mut().flatten() {
            *sum = m.fold(*sum);
        }
        *room = m.lazy_products() / 2;
    }
    *room -= terms;
}

/// As [`accumulate`], of so few terms that their products need no fold.
fn multiply<const K: usize>(m: Modulus, terms: &[Term<'_>; K], out: &mut [Strip; 3]) {
    let [out0, out1, out2] = out;
    for i in 0..STRIP {
        [out0[i], out1[i], out2[i]] = products(terms, i).map(|sum| m.redc(sum));
    }
}

/// Adds the products of a few terms: their sums stay in registers, those of all in cache.
fn add_products<const K: usize>(terms: &[Term<'_>; K], sums: &mut [[u128; STRIP]; 3]) {
    let [sums0, sums1, sums2] = sums;
    for i in 0..STRIP {
        let [a, b, c] = products(terms, i);
        sums0[i] += a;
        sums1[i] += b;
        sums2[i] += c;
    }
}

#[inline(always)]
fn products<const K: usize>(terms: &[Term<'_>; K], i: usize) -> [u128; 3] {
    let mut sums = [0; 3];
    for [x0, x1, y0, y1] in terms {
        let [x0, x1, y0, y1] = [x0[i], x1[i], y0[i], y1[i]].map(u128::from);
        sums[0] += x0 * y0;
        sums[1] += x0 * y1 + x1 * y0;
        sums[2] += x1 * y1;
    }
    sums
}

/// sum += u + x v, difference += u - x v, x in Montgomery form.
fn add_butterfly(m: Modulus, [u, v]: [&Strip; 2], x: &Strip, [sum, difference]: [&mut Strip; 2]) {
    for i in 0..STRIP {
        let shifted = m.redc(u128::from(v[i]) * u128::from(x[i]));
        sum[i] = m.add(sum[i], m.add(u[i], shifted));
        difference[i] = m.add(difference[i], m.sub(u[i], shifted));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_terms_adds_up() {
        for q in [0x0fff_ffff_ffff_c001, 0x003f_ffff_ffe7_c001] {
            let m = Modulus::new(q);
            // As large as residues get.
            let strips: [Strip; 4] =
                std::array::from_fn(|k| std::array::from_fn(|i| q - 1 - (i * (k + 1)) as u64));
            let [x0, x1, y0, y1] = &strips;
            for count in 0..40 {
                let mut out = [[7; STRIP]; 3];
                accumulate(m, &vec![[x0, x1, y0, y1]; count], &mut out);
                for i in 0..STRIP {
                    let product = |x: &Strip, y: &Strip| {
                        m.mul(m.redc(u128::from(x[i]) * u128::from(y[i])), count as u64)
                    };
                    let middle = m.add(product(x0, y1), product(x1, y0));
                    let wanted = [product(x0, y0), middle, product(x1, y1)];
                    assert_eq!([out[0][i], out[1][i], out[2][i]], wanted);
                }
            }
        }
    }
}

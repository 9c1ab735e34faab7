//! The lazy tensor: sums of ciphertext products with one reduction at the end.
//!
//! A BFV ciphertext times -t is a BGV ciphertext, whose product needs no scaling. So the sum over terms of
//! x (tensor) y, multiplied once by t mod q, is a BFV ciphertext of the sum of the messages' products (with
//! q = -1 mod t, which holds for every parameter set). A product of pairs takes four multiply-accumulates for
//! each coefficient and residue. They run in 128 bits, and are reduced after `2^64 / q` of them or at the end.
//!
//! This is the inner loop of the whole system. It walks a tile of leaves strip by strip, so that the strips of
//! right operands stay in cache while all leaves of the tile use them. It sums a few products and record chunks
//! at a time in registers, with all of them in cache.
#![expect(
    clippy::indexing_slicing,
    reason = "the inner loop: it counts within arrays of a strip, limbs and strips of polynomials of \
              one ring, and operands and chunks whose numbers were checked with the task"
)]

use crate::evaluate::task::Product;
use crate::scheme::ring::{Poly, Ring};
use crate::table::Operand;
use fhaim_ntt::{ResultMode, prefetch};
use std::collections::BTreeSet;

/// Number of coefficients that a tile processes per step.
const STRIP: usize = 256;

type Strip = [u64; STRIP];

/// The operands, and the tables for combining them to leaves. Right operands include a constant factor: t times the
/// factor for packing, in Montgomery form.
#[derive(Debug)]
pub(crate) struct Tensor<'a> {
    pub(crate) ring: &'a Ring,
    pub(crate) left: &'a [Operand],
    pub(crate) right: &'a [Operand],
    /// Coefficients between slots.
    pub(crate) stride: usize,
    /// For each ciphertext prime, the transform of the X^k that shifts the second leaf of a pair, in
    /// Montgomery form.
    pub(crate) monomial: &'a [Vec<u64>],
}

/// Two neighbouring leaves u and v under (1, s, s^2), ready to be merged: u + X^k v and u - X^k v.
pub(crate) type Spread = [[Poly; 3]; 2];

/// Strips of two ciphertexts: the two polynomials of the left one, and the two of the right one.
type Term<'a> = [&'a Strip; 4];

impl Tensor<'_> {
    /// Computes the tensors of pairs of leaves. Sets `out`, which then consists of polynomials without limbs, or adds
    /// to it. Each tensor is the sum over its products and over the operands' record chunks, spread while its strips
    /// are in cache.
    pub(crate) fn tile(&self, pairs: &[[&[Product]; 2]], into: ResultMode, out: &mut [Spread]) {
        let mut built = Vec::new();
        let mut spread = [[[0; STRIP]; 3]; 2];
        let factors = self.factors(pairs);
        for (j, limb) in self.ring.ciphertext_limbs().iter().enumerate() {
            let monomials = self.monomial[j].as_chunks::<STRIP>().0;
            for (strip, monomial) in monomials.iter().enumerate() {
                let mut ahead = factors.chunks(factors.len().div_ceil(pairs.len()).max(1));
                for (leaves, [sum, difference]) in pairs.iter().zip(out.iter_mut()) {
                    for p in ahead.next().unwrap_or_default() {
                        prefetch(strip_after(p, j, strip));
                    }
                    for (leaf, out) in leaves.iter().zip(&mut spread) {
                        self.build(j, strip, leaf, &mut built);
                        limb.modulus
                            .tensor(&self.terms(j, strip, leaf, &built), out);
                    }
                    let [u, v] = &mut spread;
                    for c in 0..3 {
                        limb.modulus.butterfly(&mut u[c], &mut v[c], monomial);
                        for (strips, out) in [(&u[c], &mut sum[c]), (&v[c], &mut difference[c])] {
                            match into {
                                ResultMode::Set => out.append(strips),
                                ResultMode::Add => {
                                    limb.modulus.add_assign(strip_mut(out, j, strip), strips);
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    /// Returns the polynomials that pairs of leaves are made of, once each.
    fn factors(&self, pairs: &[[&[Product]; 2]]) -> Vec<&Poly> {
        let products = || pairs.iter().flatten().copied().flatten();
        let left: BTreeSet<usize> = products()
            .flat_map(|product| product.left.iter().map(|&(_, operand)| operand))
            .collect();
        let right: BTreeSet<usize> = products().map(|product| product.right).collect();
        let left = left.into_iter().map(|operand| &self.left[operand]);
        let right = right.into_iter().map(|operand| &self.right[operand]);
        let chunks = left.chain(right).flatten();
        chunks.flat_map(|chunk| &chunk.c).collect()
    }

    /// Builds one strip of the left operands of a leaf's products, chunk after chunk, for products whose left operand
    /// is a sum over (slot, operand) of X^(slot * stride) * operand. The strips are the first elements of `built`,
    /// which only grows.
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

    /// Computes a sum of shifted operands. A shift by a multiple of the stride multiplies `stride` consecutive
    /// indices by the same value (see [`Ring::monomial`]).
    fn shifted_sum(
        &self,
        j: usize,
        strip: usize,
        chunk: usize,
        left: &[(usize, usize)],
        out: &mut [Strip; 2],
    ) {
        let limb = &self.ring.ciphertext_limbs()[j];
        let block = self.stride.min(STRIP);
        let mut terms: Vec<(u64, &[u64])> = Vec::with_capacity(left.len());
        for (half, out) in out.iter_mut().enumerate() {
            for (k, out) in out.chunks_exact_mut(block).enumerate() {
                let start = k * block;
                terms.clear();
                terms.extend(left.iter().map(|&(slot, operand)| {
                    let shift = slot * self.stride;
                    let factor = self.ring.monomial(limb, shift, strip * STRIP + start);
                    let p = &self.left[operand][chunk].c[half];
                    (factor, &strip_of(p, j, strip)[start..start + block])
                }));
                limb.modulus.combine(&terms, out);
            }
        }
    }

    /// Returns a leaf's pairs of strips, over its products and record chunks.
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
                // `build` made one strip for every such product and chunk.
                if let Some([x0, x1]) = left {
                    terms.push([x0, x1, y0, y1]);
                }
            }
        }
        terms
    }
}

/// Returns the operand of a product that needs no shift and no sum.
fn single(product: &Product) -> Option<usize> {
    match product.left[..] {
        [(0, only)] => Some(only),
        _ => None,
    }
}

fn strip_of(p: &Poly, j: usize, strip: usize) -> &Strip {
    &p.limb(j).as_chunks::<STRIP>().0[strip]
}

/// Returns the strip that is needed next. After the last strip, that is the first of the next limb.
fn strip_after(p: &Poly, j: usize, strip: usize) -> &[u64] {
    let strips = p.residues().as_chunks::<STRIP>().0;
    let number = j * p.limb(j).len() / STRIP + strip + 1;
    strips.get(number).map_or(&[], |strip| &strip[..])
}

fn strip_mut(p: &mut Poly, j: usize, strip: usize) -> &mut Strip {
    &mut p.limb_mut(j).as_chunks_mut::<STRIP>().0[strip]
}

//! The lazy tensor: sums of ciphertext products with one reduction at the end.
//!
//! A BFV ciphertext times -t is a BGV ciphertext, whose product needs no scaling: so sum over
//! terms of x (tensor) y, times t mod q once, is a BFV ciphertext of the sum of the messages'
//! products (with q = -1 mod t, which every parameter set has). A product of pairs takes four
//! multiply-accumulates a coefficient and residue; they run in 128 bits and are reduced when
//! `2^64 / q` of them have met, or at the end.
//!
//! This is the inner loop of the whole system. It walks a tile of leaves strip by strip, so that
//! the operands' strips stay in cache while all leaves of the tile use them.

use crate::ciphertext::Ciphertext;
use crate::modular::Modulus;
use crate::ring::{Limb, Poly, Ring};
use std::sync::Arc;

/// Coefficients a tile works on at a time.
const STRIP: usize = 256;

/// A column combination over all record chunks, in left or right form.
pub(crate) type Operand = Vec<Arc<Ciphertext>>;

/// One product of a leaf: the right operand times the sum of left operands shifted to their slots.
#[derive(Clone, Debug)]
pub(crate) struct Product {
    pub(crate) right: usize,
    /// (slot, left operand)
    pub(crate) left: Vec<(usize, usize)>,
}

/// The operands, the stride of slots, and the constant (t times whatever packing asks for) that
/// every product is multiplied by.
#[derive(Debug)]
pub(crate) struct Tensor<'a> {
    pub(crate) ring: &'a Ring,
    pub(crate) left: &'a [Operand],
    pub(crate) right: &'a [Operand],
    pub(crate) stride: usize,
    /// Per ciphertext prime, an ordinary residue.
    pub(crate) scale: Vec<u64>,
}

/// A ciphertext under (1, s, s^2).
pub(crate) type Triple = [Poly; 3];

struct Accumulator {
    sums: [[u128; STRIP]; 3],
    pending: u64,
}

impl Tensor<'_> {
    /// The tensor of each leaf: sum over its products and over record chunks.
    pub(crate) fn tile(&self, leaves: &[&[Product]]) -> Vec<Triple> {
        let zero = || [self.ring.zero(), self.ring.zero(), self.ring.zero()];
        let mut out: Vec<Triple> = leaves.iter().map(|_| zero()).collect();
        for (j, limb) in self.ring.ciphertext_limbs().iter().enumerate() {
            let m = limb.modulus;
            // Two reductions by 2^-64 follow: one from the sum, one from this product.
            let scale = u128::from(m.mont(m.mont(self.scale[j])));
            for start in (0..self.ring.degree()).step_by(STRIP) {
                for (leaf, out) in leaves.iter().zip(&mut out) {
                    let mut sum = self.strip(limb, j, start, leaf);
                    sum.fold(m);
                    for (sums, out) in sum.sums.iter().zip(out.iter_mut()) {
                        let out = &mut out.limb_mut(j)[start..start + STRIP];
                        for (o, &sum) in out.iter_mut().zip(sums) {
                            *o = m.redc(u128::from(m.redc(sum)) * scale);
                        }
                    }
                }
            }
        }
        out
    }

    fn strip(&self, limb: &Limb, j: usize, start: usize, leaf: &[Product]) -> Accumulator {
        let mut sum = Accumulator {
            sums: [[0; STRIP]; 3],
            pending: 0,
        };
        let mut built = [[0; STRIP]; 2];
        for product in leaf {
            for (chunk, right) in self.right[product.right].iter().enumerate() {
                let cut = |p: &'_ Poly| -> [u64; STRIP] {
                    let mut strip = [0; STRIP];
                    strip.copy_from_slice(&p.limb(j)[start..start + STRIP]);
                    strip
                };
                if let [(0, only)] = product.left[..] {
                    built = [0, 1].map(|half| cut(&self.left[only][chunk].c[half]));
                } else {
                    self.build(limb, j, start, chunk, &product.left, &mut built);
                }
                let right = [0, 1].map(|half| cut(&right.c[half]));
                sum.add(limb.modulus, &built, &right);
            }
        }
        sum
    }

    /// The strip of the sum over (slot, operand) of X^(slot * stride) * operand.
    fn build(
        &self,
        limb: &Limb,
        j: usize,
        start: usize,
        chunk: usize,
        left: &[(usize, usize)],
        built: &mut [[u64; STRIP]; 2],
    ) {
        *built = [[0; STRIP]; 2];
        let m = limb.modulus;
        for &(slot, operand) in left {
            let [c0, c1] = &self.left[operand][chunk].c;
            let [b0, b1] = &mut *built;
            let strips = c0.limb(j)[start..].iter().zip(&c1.limb(j)[start..]);
            let built = b0.iter_mut().zip(b1.iter_mut());
            for (i, ((b0, b1), (&x0, &x1))) in built.zip(strips).enumerate() {
                let shift = u128::from(self.ring.monomial(limb, slot * self.stride, start + i));
                *b0 = m.add(*b0, m.redc(u128::from(x0) * shift));
                *b1 = m.add(*b1, m.redc(u128::from(x1) * shift));
            }
        }
    }
}

impl Accumulator {
    /// Brings sums below q * 2^64, where one reduction suffices. Since the last fold they grew
    /// by at most that much: `pending` pairs of products below q^2.
    fn fold(&mut self, m: Modulus) {
        let high = u128::from(m.value()) << 64;
        for sum in self.sums.iter_mut().flatten() {
            *sum = if *sum >= high { *sum - high } else { *sum };
        }
        self.pending = 0;
    }

    /// Adds the tensor of two strips.
    #[inline]
    fn add(&mut self, m: Modulus, left: &[[u64; STRIP]; 2], right: &[[u64; STRIP]; 2]) {
        if self.pending >= (u64::MAX / m.value()) / 2 {
            self.fold(m);
        }
        self.pending += 1;
        let [s0, s1, s2] = &mut self.sums;
        let ([x0, x1], [y0, y1]) = (left, right);
        for i in 0..STRIP {
            let [x0, x1, y0, y1] = [x0[i], x1[i], y0[i], y1[i]].map(u128::from);
            s0[i] += x0 * y0;
            s1[i] += x0 * y1 + x1 * y0;
            s2[i] += x1 * y1;
        }
    }
}

/// Multiply-accumulates a second of one thread on strips that never leave the first-level cache:
/// the limit that the kernel's rate is compared with.
pub fn multiply_accumulate_rate() -> f64 {
    let m = Modulus::new(0x0fff_ffff_ffff_c001);
    let strip = |salt: u64| -> [[u64; STRIP]; 2] {
        [1, 2]
            .map(|half| std::array::from_fn(|i| (i as u64 * 0x9e37_79b9 + salt * half) % m.value()))
    };
    let (left, right) = (strip(3), strip(5));
    let mut sum = Accumulator {
        sums: [[0; STRIP]; 3],
        pending: 0,
    };
    let clock = crate::evaluate::Clock::start();
    let rounds = 20_000;
    for _ in 0..rounds {
        sum.add(m, std::hint::black_box(&left), std::hint::black_box(&right));
    }
    std::hint::black_box(&sum.sums);
    f64::from(rounds) * (4 * STRIP) as f64 / clock.seconds()
}

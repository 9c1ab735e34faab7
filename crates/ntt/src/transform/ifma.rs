//! Transforms with vectors of eight words, modulo primes below 2^51.
//!
//! Three levels of the tree are done in one pass over a block, so that eight vectors are loaded and stored once for
//! twelve butterflies. The last four levels, within sixteen neighbours, are also done in one pass: two vectors
//! exchange lanes between levels, so that the two words of a butterfly are always in the same lane. Blocks are
//! finished one after the other, and blocks of up to 1024 words stay in the first-level cache.

use super::Factor;
use crate::ifma::{Prime, Wide, Words, load, splat, store};
use crate::modular::Modulus;
use std::arch::x86_64::*;

/// Size in words of the blocks that are done in one step.
const LAST: usize = 16;

/// Factors by node, and their 52-bit quotients.
#[derive(Debug)]
struct Factors {
    w: Vec<u64>,
    shoup: Vec<u64>,
}

impl Factors {
    fn new(q: u64, factors: &[Factor]) -> Self {
        Self {
            w: factors.iter().map(|factor| factor.w).collect(),
            shoup: factors.iter().map(|factor| shoup(q, factor.w)).collect(),
        }
    }

    /// Returns a node's factor in every lane.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    fn same(&self, node: usize) -> Wide {
        Wide {
            w: splat(self.w[node]),
            shoup: splat(self.shoup[node]),
        }
    }

    /// Returns the factors of 2, 4 or 8 neighbouring nodes, each in an equal number of lanes. `lanes` has the number
    /// of the node for each lane.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    fn spread<const NODES: usize>(&self, node: usize, lanes: __m512i) -> Wide {
        let spread = |values: &[u64]| {
            let mut words = [0; 8];
            words[..NODES].copy_from_slice(&values[node..node + NODES]);
            _mm512_permutexvar_epi64(lanes, load(&words))
        };
        Wide {
            w: spread(&self.w),
            shoup: spread(&self.shoup),
        }
    }

    /// Returns the factors of eight neighbouring nodes, one in each lane.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    fn eight(&self, node: usize) -> Wide {
        let eight = |values: &[u64]| {
            let mut words = [0; 8];
            words.copy_from_slice(&values[node..node + 8]);
            load(&words)
        };
        Wide {
            w: eight(&self.w),
            shoup: eight(&self.shoup),
        }
    }
}

/// Returns floor(2^52 w / q).
fn shoup(q: u64, w: u64) -> u64 {
    ((u128::from(w) << 52) / u128::from(q)) as u64
}

/// The tables of one prime for vectors.
#[derive(Debug)]
pub(super) struct Tables {
    modulus: Modulus,
    forward: Factors,
    inverse: Factors,
    /// The transform's `scale`, with quotients.
    scale: [[u64; 2]; 2],
}

impl Tables {
    /// Makes the tables. Returns `None` if vectors cannot do the transform: too few words, a prime that is too large,
    /// or a processor without AVX-512 IFMA.
    pub(super) fn new(
        q: u64,
        forward: &[Factor],
        inverse: &[Factor],
        scale: [Factor; 2],
    ) -> Option<Self> {
        if forward.len() < 2 * LAST || !crate::ifma::serves(q) {
            return None;
        }
        Some(Self {
            modulus: Modulus::new(q),
            forward: Factors::new(q, forward),
            inverse: Factors::new(q, inverse),
            scale: scale.map(|factor| [factor.w, shoup(q, factor.w)]),
        })
    }
}

/// Selects lanes of two vectors a and b: numbers below 8 are those of a, and the others those of b.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
fn select(a: __m512i, lanes: Words, b: __m512i) -> __m512i {
    _mm512_permutex2var_epi64(a, load(&lanes), b)
}

/// The even and odd words of 16 words that two vectors hold in order, and the reverse.
const EVEN: Words = [0, 2, 4, 6, 8, 10, 12, 14];
const ODD: Words = [1, 3, 5, 7, 9, 11, 13, 15];
const LOWER: Words = [0, 8, 1, 9, 2, 10, 3, 11];
const UPPER: Words = [4, 12, 5, 13, 6, 14, 7, 15];

/// The first and the second pair of each four words. This selection is its own inverse.
const FIRST_PAIRS: Words = [0, 1, 8, 9, 4, 5, 12, 13];
const SECOND_PAIRS: Words = [2, 3, 10, 11, 6, 7, 14, 15];

/// The node, of two or of four, whose factor a lane has.
const OF_TWO: Words = [0, 0, 0, 0, 1, 1, 1, 1];
const OF_FOUR: Words = [0, 0, 1, 1, 2, 2, 3, 3];

/// Splits a block into its eight eighths, in vectors.
// Inlined because a call for each block of 128 words took as long as two of its vectors.
#[inline(always)]
fn eighths(block: &mut [u64]) -> [&mut [Words]; 8] {
    let mut rest = block.as_chunks_mut().0;
    let length = rest.len() / 8;
    std::array::from_fn(|_| {
        let (eighth, others) = std::mem::take(&mut rest).split_at_mut(length);
        rest = others;
        eighth
    })
}

/// Computes three levels of a block with `step`.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
fn three_levels(block: &mut [u64], step: impl Fn([__m512i; 8]) -> [__m512i; 8]) {
    let [a0, a1, a2, a3, a4, a5, a6, a7] = eighths(block);
    let length = a0.len();
    // Cutting all slices to one length lets the compiler omit bounds checks in the loop.
    let (a1, a2, a3, a4) = (
        &mut a1[..length],
        &mut a2[..length],
        &mut a3[..length],
        &mut a4[..length],
    );
    let (a5, a6, a7) = (&mut a5[..length], &mut a6[..length], &mut a7[..length]);
    for i in 0..length {
        let done = step([
            load(&a0[i]),
            load(&a1[i]),
            load(&a2[i]),
            load(&a3[i]),
            load(&a4[i]),
            load(&a5[i]),
            load(&a6[i]),
            load(&a7[i]),
        ]);
        store(&mut a0[i], done[0]);
        store(&mut a1[i], done[1]);
        store(&mut a2[i], done[2]);
        store(&mut a3[i], done[3]);
        store(&mut a4[i], done[4]);
        store(&mut a5[i], done[5]);
        store(&mut a6[i], done[6]);
        store(&mut a7[i], done[7]);
    }
}

/// Computes one level of a block with `step`.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
fn one_level(block: &mut [u64], step: impl Fn(__m512i, __m512i) -> [__m512i; 2]) {
    let (low, high) = block.split_at_mut(block.len() / 2);
    let (low, high) = (low.as_chunks_mut().0, high.as_chunks_mut().0);
    for (x, y) in low.iter_mut().zip(high) {
        let done = step(load(x), load(y));
        store(x, done[0]);
        store(y, done[1]);
    }
}

/// Returns the factors of a node, of its children and of their children.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
fn descendants(factors: &Factors, node: usize) -> [Wide; 7] {
    [
        factors.same(node),
        factors.same(2 * node),
        factors.same(2 * node + 1),
        factors.same(4 * node),
        factors.same(4 * node + 1),
        factors.same(4 * node + 2),
        factors.same(4 * node + 3),
    ]
}

/// Returns whether a block, longer than [`LAST`], begins with one level instead of three, so that three levels at a
/// time remain before the last four.
fn begins_with_one(length: usize) -> bool {
    !(length / LAST).trailing_zeros().is_multiple_of(3)
}

/// Transforms coefficients to values. Their number must be that of the tables.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn forward(tables: &Tables, values: &mut [u64]) {
    forward_block(Prime::new(tables.modulus), &tables.forward, values, 1);
}

/// Transforms the block of a node, of at least [`LAST`] words.
#[target_feature(enable = "avx512f,avx512ifma")]
fn forward_block(prime: Prime, factors: &Factors, block: &mut [u64], node: usize) {
    let length = block.len();
    if length == LAST {
        return forward_last(prime, factors, block, node);
    }
    let parts = if begins_with_one(length) {
        let factor = factors.same(node);
        one_level(block, |u, v| prime.split(u, v, factor));
        2
    } else {
        let wide = descendants(factors, node);
        three_levels(block, |words| split_three(prime, words, &wide));
        8
    };
    if length / parts == LAST {
        return forward_last(prime, factors, block, parts * node);
    }
    for (i, part) in block.chunks_exact_mut(length / parts).enumerate() {
        forward_block(prime, factors, part, parts * node + i);
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
fn split_three(prime: Prime, a: [__m512i; 8], f: &[Wide; 7]) -> [__m512i; 8] {
    let [a0, a4] = prime.split(a[0], a[4], f[0]);
    let [a1, a5] = prime.split(a[1], a[5], f[0]);
    let [a2, a6] = prime.split(a[2], a[6], f[0]);
    let [a3, a7] = prime.split(a[3], a[7], f[0]);
    let [a0, a2] = prime.split(a0, a2, f[1]);
    let [a1, a3] = prime.split(a1, a3, f[1]);
    let [a4, a6] = prime.split(a4, a6, f[2]);
    let [a5, a7] = prime.split(a5, a7, f[2]);
    let [a0, a1] = prime.split(a0, a1, f[3]);
    let [a2, a3] = prime.split(a2, a3, f[4]);
    let [a4, a5] = prime.split(a4, a5, f[5]);
    let [a6, a7] = prime.split(a6, a7, f[6]);
    [a0, a1, a2, a3, a4, a5, a6, a7]
}

/// Computes the last four levels of neighbouring blocks. The first is that of the node.
#[target_feature(enable = "avx512f,avx512ifma")]
fn forward_last(prime: Prime, factors: &Factors, blocks: &mut [u64], node: usize) {
    let (of_two, of_four) = (load(&OF_TWO), load(&OF_FOUR));
    let vectors = blocks.as_chunks_mut().0;
    for (i, [x, y]) in vectors.as_chunks_mut().0.iter_mut().enumerate() {
        let node = node + i;
        let [a, b] = prime.split(load(x), load(y), factors.same(node));
        let u = _mm512_shuffle_i64x2::<0x44>(a, b);
        let v = _mm512_shuffle_i64x2::<0xee>(a, b);
        let [a, b] = prime.split(u, v, factors.spread::<2>(2 * node, of_two));
        let (u, v) = (select(a, FIRST_PAIRS, b), select(a, SECOND_PAIRS, b));
        let [a, b] = prime.split(u, v, factors.spread::<4>(4 * node, of_four));
        let (u, v) = (_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
        let [a, b] = prime.split(u, v, factors.eight(8 * node));
        let (a, b) = (prime.reduce_once(a), prime.reduce_once(b));
        store(x, select(a, LOWER, b));
        store(y, select(a, UPPER, b));
    }
}

/// Transforms values to coefficients. Their number must be that of the tables.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn inverse(tables: &Tables, values: &mut [u64]) {
    let prime = Prime::new(tables.modulus);
    let factors = &tables.inverse;
    let [scale, root] = tables.scale.map(|[w, shoup]| Wide {
        w: splat(w),
        shoup: splat(shoup),
    });
    inverse_parts(prime, factors, values, 1);
    if begins_with_one(values.len()) {
        one_level(values, |u, v| prime.merge_last(u, v, [scale, root]));
    } else {
        let wide = descendants(factors, 1);
        three_levels(values, |words| {
            let a = merge_two(prime, words, &wide);
            let [a0, a4] = prime.merge_last(a[0], a[4], [scale, root]);
            let [a1, a5] = prime.merge_last(a[1], a[5], [scale, root]);
            let [a2, a6] = prime.merge_last(a[2], a[6], [scale, root]);
            let [a3, a7] = prime.merge_last(a[3], a[7], [scale, root]);
            [a0, a1, a2, a3, a4, a5, a6, a7]
        });
    }
}

/// Transforms the parts of a node's block back. The block is longer than [`LAST`].
#[target_feature(enable = "avx512f,avx512ifma")]
fn inverse_parts(prime: Prime, factors: &Factors, block: &mut [u64], node: usize) {
    let length = block.len();
    let parts = if begins_with_one(length) { 2 } else { 8 };
    if length / parts == LAST {
        return inverse_last(prime, factors, block, parts * node);
    }
    for (i, part) in block.chunks_exact_mut(length / parts).enumerate() {
        inverse_block(prime, factors, part, parts * node + i);
    }
}

/// Transforms the block of a node back. The node is not the root, and the block is longer than [`LAST`].
#[target_feature(enable = "avx512f,avx512ifma")]
fn inverse_block(prime: Prime, factors: &Factors, block: &mut [u64], node: usize) {
    inverse_parts(prime, factors, block, node);
    if begins_with_one(block.len()) {
        let factor = factors.same(node);
        return one_level(block, |u, v| prime.merge(u, v, factor));
    }
    let wide = descendants(factors, node);
    three_levels(block, |words| {
        let a = merge_two(prime, words, &wide);
        let [a0, a4] = prime.merge(a[0], a[4], wide[0]);
        let [a1, a5] = prime.merge(a[1], a[5], wide[0]);
        let [a2, a6] = prime.merge(a[2], a[6], wide[0]);
        let [a3, a7] = prime.merge(a[3], a[7], wide[0]);
        [a0, a1, a2, a3, a4, a5, a6, a7]
    });
}

/// Computes the first two of three levels back.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
fn merge_two(prime: Prime, a: [__m512i; 8], f: &[Wide; 7]) -> [__m512i; 8] {
    let [a0, a1] = prime.merge(a[0], a[1], f[3]);
    let [a2, a3] = prime.merge(a[2], a[3], f[4]);
    let [a4, a5] = prime.merge(a[4], a[5], f[5]);
    let [a6, a7] = prime.merge(a[6], a[7], f[6]);
    let [a0, a2] = prime.merge(a0, a2, f[1]);
    let [a1, a3] = prime.merge(a1, a3, f[1]);
    let [a4, a6] = prime.merge(a4, a6, f[2]);
    let [a5, a7] = prime.merge(a5, a7, f[2]);
    [a0, a1, a2, a3, a4, a5, a6, a7]
}

/// Computes the last four levels back for neighbouring blocks. The first is that of the node.
#[target_feature(enable = "avx512f,avx512ifma")]
fn inverse_last(prime: Prime, factors: &Factors, blocks: &mut [u64], node: usize) {
    let (of_two, of_four) = (load(&OF_TWO), load(&OF_FOUR));
    let vectors = blocks.as_chunks_mut().0;
    for (i, [x, y]) in vectors.as_chunks_mut().0.iter_mut().enumerate() {
        let node = node + i;
        let (a, b) = (load(x), load(y));
        let (u, v) = (select(a, EVEN, b), select(a, ODD, b));
        let [a, b] = prime.merge(u, v, factors.eight(8 * node));
        let (u, v) = (_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
        let [a, b] = prime.merge(u, v, factors.spread::<4>(4 * node, of_four));
        let (u, v) = (select(a, FIRST_PAIRS, b), select(a, SECOND_PAIRS, b));
        let [a, b] = prime.merge(u, v, factors.spread::<2>(2 * node, of_two));
        let u = _mm512_shuffle_i64x2::<0x44>(a, b);
        let v = _mm512_shuffle_i64x2::<0xee>(a, b);
        let [a, b] = prime.merge(u, v, factors.same(node));
        store(x, a);
        store(y, b);
    }
}

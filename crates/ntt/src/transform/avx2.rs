//! Transforms with vectors of four 64-bit words.
//!
//! A product with a factor computes three of four partial products of 32 bits for its quotient, which is then at
//! most 2 too small. Products stay below 4 q, and everything else below 16 q, which fits in a word for q below
//! 2^60. Two levels of the tree are done in one pass over a block, so that a vector is loaded and stored once for
//! both. Blocks that exceed the first-level cache are finished one after the other. The last two levels, within
//! four neighbours, are done on four transposed blocks at a time.

use super::{Factor, Transform};
use std::arch::x86_64::*;

/// Four words.
type Words = [u64; 4];

/// Size in words up to which blocks are done level by level: such blocks and their factors stay in the
/// first-level cache.
const LEVEL_BY_LEVEL: usize = 1024;

/// Size in words of the blocks that are done in one step.
const LAST: usize = 16;

/// Factors of four neighbouring nodes, of their left children and of their right children.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    w: [Words; 3],
    shoup: [Words; 3],
}

/// The factors of the last two levels, in groups for 16 words.
#[derive(Debug)]
pub(super) struct Tables {
    forward: Vec<Group>,
    inverse: Vec<Group>,
}

impl Tables {
    /// Makes the tables. Returns `None` if vectors cannot do the transform: too few words, a prime that is too large,
    /// or a processor without AVX2.
    pub(super) fn new(q: u64, forward: &[Factor], inverse: &[Factor]) -> Option<Self> {
        let available = std::arch::is_x86_feature_detected!("avx2");
        if forward.len() < LAST || q >> 60 != 0 || !available {
            return None;
        }
        Some(Self {
            forward: groups(forward),
            inverse: groups(inverse),
        })
    }
}

/// Returns the factors of nodes n/4 to n/2, and of their children.
fn groups(factors: &[Factor]) -> Vec<Group> {
    let n = factors.len();
    let (quarter, half) = (&factors[n / 4..n / 2], &factors[n / 2..]);
    let group = |(parents, children): (&[Factor], &[Factor])| {
        let mut group = Group::default();
        for lane in 0..4 {
            let nodes = [parents[lane], children[2 * lane], children[2 * lane + 1]];
            for (k, node) in nodes.into_iter().enumerate() {
                group.w[k][lane] = node.w;
                group.shoup[k][lane] = node.shoup;
            }
        }
        group
    };
    let groups = quarter.chunks_exact(4).zip(half.chunks_exact(8));
    groups.map(group).collect()
}

#[target_feature(enable = "avx2")]
#[inline]
fn load(from: &Words) -> __m256i {
    // SAFETY: the reference guarantees that the words can be read, and the instruction needs no alignment.
    unsafe { _mm256_loadu_si256(std::ptr::from_ref(from).cast()) }
}

#[target_feature(enable = "avx2")]
#[inline]
fn store(to: &mut Words, x: __m256i) {
    // SAFETY: the reference guarantees that the words can be written, and the instruction needs no alignment.
    unsafe { _mm256_storeu_si256(std::ptr::from_mut(to).cast(), x) }
}

#[target_feature(enable = "avx2")]
#[inline]
fn splat(x: u64) -> __m256i {
    _mm256_set1_epi64x(x.cast_signed())
}

#[target_feature(enable = "avx2")]
#[inline]
fn high(x: __m256i) -> __m256i {
    _mm256_srli_epi64::<32>(x)
}

/// A factor with the upper halves of its words.
#[derive(Clone, Copy)]
struct Wide {
    w: __m256i,
    w_high: __m256i,
    shoup: __m256i,
    shoup_high: __m256i,
}

impl Wide {
    #[target_feature(enable = "avx2")]
    #[inline]
    fn new(w: __m256i, shoup: __m256i) -> Self {
        Self {
            w,
            w_high: high(w),
            shoup,
            shoup_high: high(shoup),
        }
    }

    /// Puts one factor in every lane.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn same(factor: Factor) -> Self {
        Self::new(splat(factor.w), splat(factor.shoup))
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn of(group: &Group) -> [Self; 3] {
        [
            Self::new(load(&group.w[0]), load(&group.shoup[0])),
            Self::new(load(&group.w[1]), load(&group.shoup[1])),
            Self::new(load(&group.w[2]), load(&group.shoup[2])),
        ]
    }
}

/// Returns the factors of a node and of its two children.
#[target_feature(enable = "avx2")]
#[inline]
fn node_factors(factors: &[Factor], node: usize) -> [Wide; 3] {
    [
        Wide::same(factors[node]),
        Wide::same(factors[2 * node]),
        Wide::same(factors[2 * node + 1]),
    ]
}

/// The prime in all lanes, with its multiples.
#[derive(Clone, Copy)]
struct Prime {
    q: __m256i,
    q_high: __m256i,
    /// q, 2 q, 4 q and 8 q.
    multiples: [__m256i; 4],
}

impl Prime {
    #[target_feature(enable = "avx2")]
    #[inline]
    fn new(q: u64) -> Self {
        Self {
            q: splat(q),
            q_high: splat(q >> 32),
            multiples: [splat(q), splat(2 * q), splat(4 * q), splat(8 * q)],
        }
    }

    /// Returns x w modulo q, below 4 q, for any x.
    ///
    /// The quotient lacks the contributions of the lowest partial product and of two carries, at most 2.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn times(&self, x: __m256i, factor: &Wide) -> __m256i {
        let x_high = high(x);
        let quotient = _mm256_add_epi64(
            _mm256_mul_epu32(x_high, factor.shoup_high),
            _mm256_add_epi64(
                high(_mm256_mul_epu32(x_high, factor.shoup)),
                high(_mm256_mul_epu32(x, factor.shoup_high)),
            ),
        );
        let low = _mm256_sub_epi64(
            _mm256_mul_epu32(x, factor.w),
            _mm256_mul_epu32(quotient, self.q),
        );
        let middle = _mm256_sub_epi64(
            _mm256_add_epi64(
                _mm256_mul_epu32(x_high, factor.w),
                _mm256_mul_epu32(x, factor.w_high),
            ),
            _mm256_add_epi64(
                _mm256_mul_epu32(high(quotient), self.q),
                _mm256_mul_epu32(quotient, self.q_high),
            ),
        );
        _mm256_add_epi64(low, _mm256_slli_epi64::<32>(middle))
    }

    /// Subtracts 2^BITS q from x, below 2^(BITS + 1) q, unless x is below 2^BITS q. Uses the sign of the difference,
    /// as both numbers are below 2^63.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn below<const BITS: usize>(&self, x: __m256i) -> __m256i {
        let less = _mm256_sub_epi64(x, self.multiples[BITS]);
        let (x, less) = (_mm256_castsi256_pd(x), _mm256_castsi256_pd(less));
        _mm256_castpd_si256(_mm256_blendv_pd(less, x, less))
    }

    /// Returns x modulo q, for x below 16 q.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn reduce(&self, x: __m256i) -> __m256i {
        self.below::<0>(self.below::<1>(self.below::<2>(self.below::<3>(x))))
    }

    /// Returns x - y + 2^BITS q, for y below 2^BITS q.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn minus<const BITS: usize>(&self, x: __m256i, y: __m256i) -> __m256i {
        _mm256_add_epi64(x, _mm256_sub_epi64(self.multiples[BITS], y))
    }

    /// Computes two levels, from words below 16 q to words below 16 q.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn split(&self, [a0, a1, a2, a3]: [__m256i; 4], factors: &[Wide; 3]) -> [__m256i; 4] {
        let [first, left, right] = factors;
        let (a0, a1) = (self.below::<3>(a0), self.below::<3>(a1));
        let (t2, t3) = (self.times(a2, first), self.times(a3, first));
        let (b0, b2) = (_mm256_add_epi64(a0, t2), self.minus::<2>(a0, t2));
        let (b1, b3) = (_mm256_add_epi64(a1, t3), self.minus::<2>(a1, t3));
        let (t1, t3) = (self.times(b1, left), self.times(b3, right));
        [
            _mm256_add_epi64(b0, t1),
            self.minus::<2>(b0, t1),
            _mm256_add_epi64(b2, t3),
            self.minus::<2>(b2, t3),
        ]
    }

    /// Computes the inverse of [`Prime::split`], times 4: from words below 4 q to words below 4 q.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn merge(&self, [a0, a1, a2, a3]: [__m256i; 4], factors: &[Wide; 3]) -> [__m256i; 4] {
        let [first, left, right] = factors;
        let (s0, d0) = (_mm256_add_epi64(a0, a1), self.minus::<2>(a0, a1));
        let (s1, d1) = (_mm256_add_epi64(a2, a3), self.minus::<2>(a2, a3));
        let (d0, d1) = (self.times(d0, left), self.times(d1, right));
        [
            self.below::<2>(self.below::<3>(_mm256_add_epi64(s0, s1))),
            self.below::<2>(_mm256_add_epi64(d0, d1)),
            self.times(self.minus::<3>(s0, s1), first),
            self.times(self.minus::<2>(d0, d1), first),
        ]
    }
}

/// Turns rows into columns.
#[target_feature(enable = "avx2")]
#[inline]
fn transpose([a, b, c, d]: [__m256i; 4]) -> [__m256i; 4] {
    let (ab_even, ab_odd) = (_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
    let (cd_even, cd_odd) = (_mm256_unpacklo_epi64(c, d), _mm256_unpackhi_epi64(c, d));
    [
        _mm256_permute2x128_si256::<0x20>(ab_even, cd_even),
        _mm256_permute2x128_si256::<0x20>(ab_odd, cd_odd),
        _mm256_permute2x128_si256::<0x31>(ab_even, cd_even),
        _mm256_permute2x128_si256::<0x31>(ab_odd, cd_odd),
    ]
}

/// Splits a block into its four quarters, in vectors.
fn quarters(block: &mut [u64]) -> [&mut [Words]; 4] {
    let (low, high) = block.split_at_mut(block.len() / 2);
    let halves = [
        low.split_at_mut(low.len() / 2),
        high.split_at_mut(high.len() / 2),
    ];
    let [(a, b), (c, d)] = halves;
    [a, b, c, d].map(|quarter| quarter.as_chunks_mut().0)
}

/// Computes two levels of a block with `step`.
#[target_feature(enable = "avx2")]
#[inline]
fn two_levels(block: &mut [u64], step: impl Fn([__m256i; 4]) -> [__m256i; 4]) {
    let [a, b, c, d] = quarters(block);
    for (((a, b), c), d) in a.iter_mut().zip(b).zip(c).zip(d) {
        let done = step([load(a), load(b), load(c), load(d)]);
        store(a, done[0]);
        store(b, done[1]);
        store(c, done[2]);
        store(d, done[3]);
    }
}

/// Computes one level of a block with `step`.
#[target_feature(enable = "avx2")]
#[inline]
fn one_level(block: &mut [u64], step: impl Fn(__m256i, __m256i) -> [__m256i; 2]) {
    let (low, high) = block.split_at_mut(block.len() / 2);
    let (low, high) = (low.as_chunks_mut().0, high.as_chunks_mut().0);
    for (x, y) in low.iter_mut().zip(high) {
        let done = step(load(x), load(y));
        store(x, done[0]);
        store(y, done[1]);
    }
}

/// Transforms coefficients to values. Their number must be that of the tables.
#[target_feature(enable = "avx2")]
pub(super) fn forward(transform: &Transform, tables: &Tables, values: &mut [u64]) {
    let prime = Prime::new(transform.q);
    let factors = &transform.forward;
    if values.len().trailing_zeros().is_multiple_of(2) {
        return forward_block(prime, factors, &tables.forward, values, 1);
    }
    let root = Wide::same(factors[1]);
    one_level(values, |x, y| {
        let y = prime.times(y, &root);
        [_mm256_add_epi64(x, y), prime.minus::<2>(x, y)]
    });
    let (low, high) = values.split_at_mut(values.len() / 2);
    forward_block(prime, factors, &tables.forward, low, 2);
    forward_block(prime, factors, &tables.forward, high, 3);
}

/// Transforms the block of a node, whose length is a power of 4 words and at least [`LAST`].
#[target_feature(enable = "avx2")]
fn forward_block(
    prime: Prime,
    factors: &[Factor],
    groups: &[Group],
    block: &mut [u64],
    node: usize,
) {
    if block.len() > LEVEL_BY_LEVEL {
        let wide = node_factors(factors, node);
        two_levels(block, |words| prime.split(words, &wide));
        for (i, quarter) in block.chunks_exact_mut(block.len() / 4).enumerate() {
            forward_block(prime, factors, groups, quarter, 4 * node + i);
        }
        return;
    }
    let (mut length, mut first) = (block.len(), node);
    while length > LAST {
        for (i, part) in block.chunks_exact_mut(length).enumerate() {
            let wide = node_factors(factors, first + i);
            two_levels(part, |words| prime.split(words, &wide));
        }
        length /= 4;
        first *= 4;
    }
    // A node of 16 words has number n / 16 or a larger one.
    let groups = &groups[first - factors.len() / LAST..];
    for (i, (part, group)) in block.chunks_exact_mut(LAST).zip(groups).enumerate() {
        let wide = node_factors(factors, first + i);
        let last = Wide::of(group);
        two_levels(part, |words| {
            let split = transpose(prime.split(words, &wide));
            let [a, b, c, d] = prime.split(split, &last);
            transpose([
                prime.reduce(a),
                prime.reduce(b),
                prime.reduce(c),
                prime.reduce(d),
            ])
        });
    }
}

/// Transforms values to coefficients. Their number must be that of the tables.
#[target_feature(enable = "avx2")]
pub(super) fn inverse(transform: &Transform, tables: &Tables, values: &mut [u64]) {
    let prime = Prime::new(transform.q);
    let factors = &transform.inverse;
    let scale = Wide::same(transform.scale[0]);
    if values.len().trailing_zeros().is_multiple_of(2) {
        inverse_block(prime, factors, &tables.inverse, values, 1);
        let scaled = |x| prime.below::<0>(prime.below::<1>(prime.times(x, &scale)));
        return one_level(values, |x, y| [scaled(x), scaled(y)]);
    }
    let (low, high) = values.split_at_mut(values.len() / 2);
    inverse_block(prime, factors, &tables.inverse, low, 2);
    inverse_block(prime, factors, &tables.inverse, high, 3);
    let root = Wide::same(transform.scale[1]);
    one_level(values, |x, y| {
        let sum = prime.times(_mm256_add_epi64(x, y), &scale);
        let difference = prime.times(prime.minus::<2>(x, y), &root);
        [
            prime.below::<0>(prime.below::<1>(sum)),
            prime.below::<0>(prime.below::<1>(difference)),
        ]
    });
}

/// Transforms the block of a node back. Its length is a power of 4 words and at least [`LAST`]. The result is times
/// its length, and below 4 q.
#[target_feature(enable = "avx2")]
fn inverse_block(
    prime: Prime,
    factors: &[Factor],
    groups: &[Group],
    block: &mut [u64],
    node: usize,
) {
    if block.len() > LEVEL_BY_LEVEL {
        for (i, quarter) in block.chunks_exact_mut(block.len() / 4).enumerate() {
            inverse_block(prime, factors, groups, quarter, 4 * node + i);
        }
        let wide = node_factors(factors, node);
        return two_levels(block, |words| prime.merge(words, &wide));
    }
    // The nodes of 16 words below this one.
    let mut first = node * (block.len() / LAST);
    let groups = &groups[first - factors.len() / LAST..];
    for (i, (part, group)) in block.chunks_exact_mut(LAST).zip(groups).enumerate() {
        let last = Wide::of(group);
        let wide = node_factors(factors, first + i);
        two_levels(part, |words| {
            let merged = prime.merge(transpose(words), &last);
            prime.merge(transpose(merged), &wide)
        });
    }
    let mut length = 4 * LAST;
    while length <= block.len() {
        first /= 4;
        for (i, part) in block.chunks_exact_mut(length).enumerate() {
            let wide = node_factors(factors, first + i);
            two_levels(part, |words| prime.merge(words, &wide));
        }
        length *= 4;
    }
}

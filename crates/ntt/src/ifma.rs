//! Vectors of eight words modulo a prime below 2^51, with AVX-512 IFMA.
//!
//! The instructions multiply the lowest 52 bits of each lane, and add the lower or the upper 52 bits
//! of the product to an accumulator. A sum of products is kept as two accumulators, `low` and
//! `high`: low + 2^52 high. Residues are the same as those of the portable loops, bit for bit.

use crate::modular::Modulus;
use std::arch::x86_64::*;

/// Eight words.
pub(crate) type Words = [u64; 8];

/// The lowest 52 bits.
const MASK: u64 = (1 << 52) - 1;

/// Number of products that may be added before `low` overflows its word.
pub(crate) const MAX_PRODUCTS: usize = 1 << 12;

/// Returns whether this processor has the instructions and the prime is small enough: twice the prime
/// must fit in 52 bits.
#[inline]
pub(crate) fn serves(q: u64) -> bool {
    q >> 51 == 0
        && std::arch::is_x86_feature_detected!("avx512f")
        && std::arch::is_x86_feature_detected!("avx512ifma")
}

#[target_feature(enable = "avx512f")]
#[inline]
pub(crate) fn load(from: &Words) -> __m512i {
    // SAFETY: the reference guarantees that the words can be read, and the instruction needs no alignment.
    unsafe { _mm512_loadu_si512(std::ptr::from_ref(from).cast()) }
}

#[target_feature(enable = "avx512f")]
#[inline]
pub(crate) fn store(to: &mut Words, x: __m512i) {
    // SAFETY: the reference guarantees that the words can be written, and the instruction needs no alignment.
    unsafe { _mm512_storeu_si512(std::ptr::from_mut(to).cast(), x) }
}

#[target_feature(enable = "avx512f")]
#[inline]
pub(crate) fn splat(x: u64) -> __m512i {
    _mm512_set1_epi64(x.cast_signed())
}

/// Factors w below q, one in each lane, and floor(2^52 w / q).
#[derive(Clone, Copy)]
pub(crate) struct Wide {
    pub(crate) w: __m512i,
    pub(crate) shoup: __m512i,
}

/// A sum of products: low + 2^52 high.
#[derive(Clone, Copy)]
pub(crate) struct Sum {
    low: __m512i,
    high: __m512i,
}

impl Sum {
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn zero() -> Self {
        let zero = _mm512_setzero_si512();
        Self {
            low: zero,
            high: zero,
        }
    }

    /// Adds x y, both below 2^52. At most [`MAX_PRODUCTS`] products may be added.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn add(&mut self, x: __m512i, y: __m512i) {
        self.low = _mm512_madd52lo_epu64(self.low, x, y);
        self.high = _mm512_madd52hi_epu64(self.high, x, y);
    }
}

/// The prime in all lanes, with constants for reductions.
#[derive(Clone, Copy)]
pub(crate) struct Prime {
    pub(crate) q: __m512i,
    /// 2 q.
    twice: __m512i,
    /// -q modulo 2^52.
    negated: __m512i,
    /// q^-1 modulo 2^52.
    inverse: __m512i,
    /// 2^40 q^-1 modulo 2^52.
    inverse_shifted: __m512i,
    mask: __m512i,
}

impl Prime {
    /// Computes the constants of a prime for which [`serves`] returns true.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn new(m: Modulus) -> Self {
        let (q, inverse) = (m.value(), m.inverse());
        Self {
            q: splat(q),
            twice: splat(2 * q),
            negated: splat(q.wrapping_neg() & MASK),
            inverse: splat(inverse & MASK),
            inverse_shifted: splat(inverse << 40 & MASK),
            mask: splat(MASK),
        }
    }

    /// Returns sum * 2^-64 mod q, for sums below 2^64 q: the same as [`Modulus::redc`].
    ///
    /// There are two Montgomery steps, of 52 and of 12 bits. In each, the subtracted number agrees with the sum in
    /// the bits that are shifted out, so the differences of the upper parts are exact. The first step leaves a signed
    /// word above -q. The second leaves (t - k q) / 2^12 with k below 2^12, which is above -q and below q.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn redc(&self, sum: Sum) -> __m512i {
        let zero = _mm512_setzero_si512();
        let k = _mm512_madd52lo_epu64(zero, sum.low, self.inverse);
        let upper = _mm512_add_epi64(sum.high, _mm512_srli_epi64::<52>(sum.low));
        let t = _mm512_sub_epi64(upper, _mm512_madd52hi_epu64(zero, k, self.q));
        let k = _mm512_madd52lo_epu64(zero, t, self.inverse_shifted);
        let subtract = _mm512_madd52hi_epu64(zero, k, self.q);
        self.correct(_mm512_sub_epi64(_mm512_srai_epi64::<12>(t), subtract))
    }

    /// Returns x y 2^-64 mod q.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn mul(&self, x: __m512i, y: __m512i) -> __m512i {
        let mut sum = Sum::zero();
        sum.add(x, y);
        self.redc(sum)
    }

    /// Adds q to x if it is negative, for x above -q and below q as a signed word. As an unsigned number, a negative
    /// word is larger than its sum with q.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    fn correct(&self, x: __m512i) -> __m512i {
        _mm512_min_epu64(x, _mm512_add_epi64(x, self.q))
    }

    /// Returns x + y of residues.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn add(&self, x: __m512i, y: __m512i) -> __m512i {
        self.reduce_once(_mm512_add_epi64(x, y))
    }

    /// Returns x - y of residues.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn sub(&self, x: __m512i, y: __m512i) -> __m512i {
        self.correct(_mm512_sub_epi64(x, y))
    }

    /// Returns x modulo q, for x below 2 q.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn reduce_once(&self, x: __m512i) -> __m512i {
        _mm512_min_epu64(x, _mm512_sub_epi64(x, self.q))
    }

    /// Returns x w modulo q, below 2 q, for x below 2^52. Shoup's quotient is at most 1 too small.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn times(&self, x: __m512i, factor: Wide) -> __m512i {
        let zero = _mm512_setzero_si512();
        let quotient = _mm512_madd52hi_epu64(zero, x, factor.shoup);
        let product = _mm512_madd52lo_epu64(zero, x, factor.w);
        let rest = _mm512_madd52lo_epu64(product, quotient, self.negated);
        _mm512_and_si512(rest, self.mask)
    }

    /// Computes one step of a transform: u + w v and u - w v, from words below 2 q to words below 2 q.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn split(&self, u: __m512i, v: __m512i, factor: Wide) -> [__m512i; 2] {
        self.sum_and_difference(u, self.times(v, factor))
    }

    /// Computes one step of an inverse transform: u + v and w (u - v), from words below 2 q to words below 2 q.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn merge(&self, u: __m512i, v: __m512i, factor: Wide) -> [__m512i; 2] {
        let [sum, difference] = self.sum_and_difference(u, v);
        [sum, self.times(difference, factor)]
    }

    /// Computes the last step of an inverse transform: each half times a factor, reduced.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn merge_last(&self, u: __m512i, v: __m512i, factors: [Wide; 2]) -> [__m512i; 2] {
        let [sum, difference] = self.sum_and_difference(u, v);
        [
            self.reduce_once(self.times(sum, factors[0])),
            self.reduce_once(self.times(difference, factors[1])),
        ]
    }

    /// Computes u + v and u - v, from words below 2 q to words below 2 q. For each result it has two candidates that
    /// differ by 2 q. The one that is out of range is the larger as an unsigned number.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    fn sum_and_difference(&self, u: __m512i, v: __m512i) -> [__m512i; 2] {
        let sum = _mm512_add_epi64(u, v);
        let difference = _mm512_sub_epi64(u, v);
        [
            _mm512_min_epu64(sum, _mm512_sub_epi64(sum, self.twice)),
            _mm512_min_epu64(difference, _mm512_add_epi64(difference, self.twice)),
        ]
    }
}

//! Exact sampling from the discrete Gaussian, in integers of fixed width.
//!
//! CKS20 (Canonne, Kamath and Steinke, The Discrete Gaussian for Differential Privacy, 2020),
//! Algorithms 1 to 3. They use only uniform integers and comparisons, so the samples follow the
//! distribution exactly if the generator's bits are uniform. Existing implementations of the same
//! algorithms use integers of any size and take 10 to 27 us per sample, and an upload needs 10^5 to
//! 10^7 samples. Integer scales up to 2^27 let every quantity fit into 64 or 128 bits.
//!
//! The time of a sample depends on its value. The record holder draws noise on its own machine
//! while it uploads: a service sees the arrival times of objects with 8192 samples each, with an
//! encryption between them. The computation service draws the flood when it seals. See
//! docs/THREAT-MODEL.md, "Attacks considered".

use rand_core::RngCore;

use crate::Error;

/// The discrete Gaussian over the integers: the probability of `y` is proportional to `exp(-y^2 /
/// (2 scale^2))`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiscreteGaussian {
    scale: u64,
}

impl DiscreteGaussian {
    /// The largest scale.
    pub const MAX_SCALE: u64 = 1 << 27;

    /// Returns the distribution with scale (sigma) `scale`.
    ///
    /// # Errors
    /// [`Error::Scale`] if `scale` is not in `1..=2^27`.
    pub fn new(scale: u64) -> Result<Self, Error> {
        if (1..=Self::MAX_SCALE).contains(&scale) {
            Ok(Self { scale })
        } else {
            Err(Error::Scale(scale))
        }
    }

    /// Draws a sample (CKS20, Algorithm 3, with the Laplace scale t = sigma). The theorem holds for
    /// every integer t >= 1, and with t = sigma all fractions have the denominator 2 sigma^2.
    ///
    /// A draw `y` from the discrete Laplace is kept with probability `exp(-(|y| - sigma^2/t)^2 / (2
    /// sigma^2))`. With |y| < 2^60 (see `discrete_laplace`) the square is below 2^120, and 2
    /// sigma^2 is at most 2^55.
    pub fn sample<R: RngCore + ?Sized>(&self, rng: &mut R) -> i64 {
        let twice_variance = 2 * self.scale * self.scale;
        loop {
            let y = discrete_laplace(self.scale, rng);
            let distance = u128::from(y.unsigned_abs().abs_diff(self.scale));
            if bernoulli_exp(distance * distance, twice_variance, rng) {
                return y;
            }
        }
    }
}

/// Draws from the discrete Laplace with integer scale t, where the probability of `y` is
/// proportional to `exp(-|y| / t)` (CKS20, Algorithm 2 with s = 1).
///
/// |y| = u + t v with u < t <= 2^27 and v a geometric count. For the bounds of [`DiscreteGaussian::sample`] v must stay
/// below 2^32, and a draw that reaches it is repeated. That needs 2^32 successes of probability 1/e
/// in a row: the distribution changes by less than exp(-2^32), and no generator's period is long
/// enough to show it.
fn discrete_laplace<R: RngCore + ?Sized>(t: u64, rng: &mut R) -> i64 {
    loop {
        let u = uniform_below(t, rng);
        if !bernoulli_exp_fraction(u, t, rng) {
            continue;
        }
        let mut v = 0u32;
        while v < u32::MAX && bernoulli_exp_fraction(1, 1, rng) {
            v += 1;
        }
        // Below 2^27 + 2^27 * 2^32 < 2^60, so the conversion to i64 is exact.
        let magnitude = (u + t * u64::from(v)) as i64;
        let negative = rng.next_u32() & 1 == 1;
        if v == u32::MAX || (negative && magnitude == 0) {
            continue;
        }
        return if negative { -magnitude } else { magnitude };
    }
}

/// Draws a coin of bias `exp(-numerator/denominator)` (CKS20, Algorithm 1): one coin of bias 1/e
/// for each whole unit of the exponent, and one for its fraction.
pub(crate) fn bernoulli_exp<R: RngCore + ?Sized>(
    numerator: u128,
    denominator: u64,
    rng: &mut R,
) -> bool {
    let mut units = numerator / u128::from(denominator);
    while units > 0 {
        if !bernoulli_exp_fraction(1, 1, rng) {
            return false;
        }
        units -= 1;
    }
    // A remainder is below its divisor, so it fits into u64.
    let fraction = (numerator % u128::from(denominator)) as u64;
    bernoulli_exp_fraction(fraction, denominator, rng)
}

/// Draws a coin of bias `exp(-gamma)` for `gamma = numerator/denominator` at most 1 (CKS20,
/// Algorithm 1): the parity of the first k at which a coin of bias `gamma/k` fails. That coin
/// consists of two independent ones with biases `gamma` and `1/k`, so no product can overflow.
fn bernoulli_exp_fraction<R: RngCore + ?Sized>(
    numerator: u64,
    denominator: u64,
    rng: &mut R,
) -> bool {
    let mut k = 1u64;
    // k counts successes in a row of probability at most 1/k, so it never comes near 2^64.
    while uniform_below(denominator, rng) < numerator && uniform_below(k, rng) == 0 {
        k += 1;
    }
    k % 2 == 1
}

/// Draws a uniform integer in `0..bound` (`bound >= 1`) from as many random bits as `bound - 1`
/// has. Draws that are not below `bound` are repeated. This is exact, unlike a multiply-and-shift
/// of one or two random words.
pub fn uniform_below<R: RngCore + ?Sized>(bound: u64, rng: &mut R) -> u64 {
    let bits = u64::BITS - (bound - 1).leading_zeros();
    if bits == 0 {
        return 0;
    }
    loop {
        let word = if bits <= u32::BITS {
            u64::from(rng.next_u32())
        } else {
            rng.next_u64()
        };
        let candidate = word & (u64::MAX >> (u64::BITS - bits));
        if candidate < bound {
            return candidate;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A generator that yields `next`, `next` + 1, ... as words.
    struct Counter {
        next: u64,
    }

    impl RngCore for Counter {
        fn next_u32(&mut self) -> u32 {
            self.next_u64() as u32
        }

        fn next_u64(&mut self) -> u64 {
            self.next += 1;
            self.next - 1
        }

        fn fill_bytes(&mut self, bytes: &mut [u8]) {
            rand_core::impls::fill_bytes_via_next(self, bytes);
        }
    }

    /// Each value comes from exactly one pattern of the used bits, and the other patterns are drawn
    /// again. So values are as uniform as the bits are.
    #[test]
    fn every_value_comes_from_one_pattern_of_bits() {
        let wide = [
            (1u64 << 26) - 5,
            (1 << 40) - 3,
            0x0fff_ffff_ffff_c001,
            1 << 63,
        ];
        for bound in (2..700).chain(wide) {
            let patterns = u64::MAX >> (bound - 1).leading_zeros();
            // The edges: the last values, the repeated patterns, and the first values again.
            let edge = 400.min(bound);
            let start = bound - edge;
            let mut rng = Counter { next: start };
            let values: Vec<u64> = (0..2 * edge)
                .map(|_| uniform_below(bound, &mut rng))
                .collect();
            let expected: Vec<u64> = (start..bound).chain(0..edge).collect();
            assert_eq!(values, expected, "bound {bound}");
            assert_eq!(rng.next, patterns.wrapping_add(1).wrapping_add(edge));
        }
    }
}

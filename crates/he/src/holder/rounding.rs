//! What is sent of a ciphertext's first polynomial where its set rounds ([`ParameterSet::rounded`]).
//!
//! Coefficients x modulo q are sent as quotients by 17 and taken for 17 times these and 8: 98 bits of 102. What that
//! adds to the error lies between -8 and 8, evenly and with a mean of 0, which a power of two in place of 17 would not
//! have. It is made of what is sent, without the key, so that it shows nothing.
//!
//! A quotient is kept as two words, of its lowest 51 bits and of the others.

use crate::params::{ParameterSet, Parameters};
use crate::ring::Poly;
use fhaim_ntt::Modulus;

/// Quotients are by this: odd, so that rounding errors have a mean of 0.
const DIVISOR: u64 = 17;

/// Variance of a number that is as likely to be any of -8 to 8.
pub(crate) const VARIANCE: f64 = (DIVISOR * DIVISOR - 1) as f64 / 12.0;

/// Bits of a quotient's lower word, and of a prime.
const LOWER: u32 = 51;

/// Bits of a quotient's upper word.
const UPPER: u32 = 47;

/// Bits of the two words.
pub(super) const WORDS: [u32; 2] = [LOWER, UPPER];

/// Whether quotients of a set's coefficients fit two words.
pub(crate) fn is_for(set: &ParameterSet) -> bool {
    let bits = |&q: &u64| u64::BITS - q.leading_zeros() == LOWER;
    match set.ciphertext_moduli {
        [first, second] => {
            let largest = (u128::from(*first) * u128::from(*second) - 1) / u128::from(DIVISOR);
            set.holder_only && bits(first) && bits(second) && largest >> (LOWER + UPPER) == 0
        }
        _ => false,
    }
}

/// The numbers that quotients are made with, and coefficients from them, modulo one set's primes.
pub(super) struct Rounding {
    primes: [Modulus; 2],
    /// The first prime's inverse modulo the second, in Montgomery form.
    inverse: u64,
    /// The largest quotient.
    largest: u128,
}

impl Rounding {
    /// Of a set that rounds.
    pub(super) fn of(params: &Parameters) -> Option<Self> {
        let set = params.set();
        let &[first, second] = set.ciphertext_moduli else {
            return None;
        };
        let primes = [first, second].map(Modulus::new);
        let [_, m] = primes;
        set.rounded.then(|| Self {
            inverse: m.mont(m.inv(first % second)),
            largest: (u128::from(first) * u128::from(second) - 1) / u128::from(DIVISOR),
            primes,
        })
    }

    /// Of coefficients, given by their residues, the quotients, in their place.
    pub(super) fn round(&self, polynomial: &mut Poly) {
        let [p, m] = self.primes;
        for (first, second) in polynomial.first_two_limbs() {
            // x = first + p times this, the Chinese remainder; first is below twice m.
            let rest = m.sub(*second, m.reduce_once(*first));
            let rest = m.redc(u128::from(rest) * u128::from(self.inverse));
            let x = u128::from(p.value()) * u128::from(rest) + u128::from(*first);
            // Division by parts: the remainder of the upper one comes before the lower one.
            let [lower, upper] = split(x);
            let below = (upper % DIVISOR) << LOWER | lower;
            (*first, *second) = (below / DIVISOR, upper / DIVISOR);
        }
    }

    /// Of quotients the coefficients that they stand for, as residues, in their place.
    pub(super) fn restore(&self, polynomial: &mut Poly) {
        let factors = self.primes.map(|m| {
            let lower = DIVISOR % m.value();
            let upper = m.mul(lower, (1 << LOWER) % m.value());
            [m.mont(lower), m.mont(upper)].map(u128::from)
        });
        let ([p, m], [of_first, of_second]) = (self.primes, factors);
        for (first, second) in polynomial.first_two_limbs() {
            let [lower, upper] = [*first, *second].map(u128::from);
            // Words are below 2^51 and 2^47, factors below 2^51: the sum is far below 2^64 times a prime.
            let residue =
                |m: Modulus, [l, u]: [u128; 2]| m.add(m.redc(lower * l + upper * u), DIVISOR / 2);
            (*first, *second) = (residue(p, of_first), residue(m, of_second));
        }
    }

    /// Whether two words are a coefficient's quotient.
    pub(super) fn is_quotient(&self, lower: u64, upper: u64) -> bool {
        u128::from(upper) << LOWER | u128::from(lower) <= self.largest
    }
}

/// The lowest bits of a number below 2^102, and the others.
fn split(x: u128) -> [u64; 2] {
    // Both are below 2^51.
    [x as u64 & ((1 << LOWER) - 1), (x >> LOWER) as u64]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{DEGREE, P6};
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha20Rng;

    /// Every coefficient comes back within 8, at both ends of the range too, and quotients are those of a plain division.
    #[test]
    fn coefficients_come_back_within_half_a_divisor() {
        let params = Parameters::new(P6).unwrap();
        let rounding = Rounding::of(&params).unwrap();
        let [p, m] = [0, 1].map(|j| u128::from(P6.ciphertext_moduli[j]));
        let q = p * m;
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let mut xs: Vec<u128> = (0..DEGREE as u128 / 2).chain(q - 64..q).collect();
        xs.resize_with(DEGREE, || rng.random_range(0..q));
        let residues = |m: u128| xs.iter().map(move |x| (x % m) as u64);
        let mut polynomial = Poly::from_residues(DEGREE, residues(p).chain(residues(m)).collect());
        rounding.round(&mut polynomial);
        let words = polynomial.limb(0).iter().zip(polynomial.limb(1));
        for (&x, (&lower, &upper)) in xs.iter().zip(words) {
            let quotient = u128::from(upper) << 51 | u128::from(lower);
            assert_eq!(quotient, x / 17);
            assert!(lower >> 51 == 0 && rounding.is_quotient(lower, upper));
        }
        let beyond = (q - 1) / 17 + 1;
        let [lower, upper] = split(beyond);
        assert!(!rounding.is_quotient(lower, upper));
        rounding.restore(&mut polynomial);
        for (j, prime) in [p, m].into_iter().enumerate() {
            for (&x, &residue) in xs.iter().zip(polynomial.limb(j)) {
                let wanted = x / 17 * 17 + 8;
                assert_eq!(u128::from(residue), wanted % prime);
            }
        }
        assert!(xs.iter().all(|x| (x / 17 * 17 + 8).abs_diff(*x) <= 8));
    }
}

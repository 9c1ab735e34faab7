//! Arithmetic modulo one word-sized prime, with Montgomery reduction of 128-bit sums.

/// An odd modulus below 2^62.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modulus {
    q: u64,
    /// q^-1 mod 2^64.
    inverse: u64,
    /// 2^128 mod q: turns a residue into Montgomery form with one reduction.
    r2: u64,
}

impl Modulus {
    /// Makes the modulus q.
    ///
    /// # Panics
    /// Unless q is odd, above 2 and below 2^62.
    pub const fn new(q: u64) -> Self {
        assert!(q & 1 == 1 && q > 2 && q >> 62 == 0);
        // Newton's iteration doubles the number of correct low bits: 3, 6, 12, 24, 48, 96.
        let mut inverse = q;
        let mut round = 0;
        while round < 5 {
            inverse = inverse.wrapping_mul(2u64.wrapping_sub(q.wrapping_mul(inverse)));
            round += 1;
        }
        let r = (1u128 << 64) % q as u128;
        Self {
            q,
            inverse,
            r2: (r * r % q as u128) as u64,
        }
    }

    /// Returns q.
    #[inline]
    pub const fn value(self) -> u64 {
        self.q
    }

    /// Returns q^-1 mod 2^64.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub(crate) const fn inverse(self) -> u64 {
        self.inverse
    }

    /// Adds q to `difference` if it is negative, for a signed integer above -q and below q. A shift turns the sign
    /// into a mask. The compiler would turn a comparison into a branch, which is mispredicted half of the time on
    /// random residues.
    #[inline(always)]
    const fn correct(self, difference: u64) -> u64 {
        difference.wrapping_add(self.q & (difference.cast_signed() >> 63).cast_unsigned())
    }

    /// Returns x * 2^-64 mod q, for x < q * 2^64 (Montgomery 1985).
    #[inline(always)]
    pub const fn redc(self, x: u128) -> u64 {
        let low = (x as u64).wrapping_mul(self.inverse);
        let subtract = ((low as u128 * self.q as u128) >> 64) as u64;
        self.correct(((x >> 64) as u64).wrapping_sub(subtract))
    }

    /// Returns the number of products of residues whose sum stays below 2^64 q. [`Modulus::redc`] reduces such a sum,
    /// and up to this number of products may be added between two [`Modulus::fold`]s.
    #[inline]
    pub const fn lazy_products(self) -> usize {
        (u64::MAX / self.q) as usize
    }

    /// Reduces x, below 2^65 q, to an integer below 2^64 q without changing it modulo q.
    #[inline(always)]
    pub const fn fold(self, x: u128) -> u128 {
        let high = self.reduce_once((x >> 64) as u64);
        (high as u128) << 64 | x as u64 as u128
    }

    /// Returns x * 2^64 mod q, so that `redc(mont(x) * y)` is x * y mod q.
    #[inline]
    pub const fn mont(self, x: u64) -> u64 {
        self.redc(x as u128 * self.r2 as u128)
    }

    /// Returns a + b of two residues.
    #[inline(always)]
    pub const fn add(self, a: u64, b: u64) -> u64 {
        self.correct((a + b).wrapping_sub(self.q))
    }

    /// Returns a - b of two residues.
    #[inline(always)]
    pub const fn sub(self, a: u64, b: u64) -> u64 {
        self.correct(a.wrapping_sub(b))
    }

    /// Returns x modulo q, for x < 2 q.
    #[inline(always)]
    pub const fn reduce_once(self, x: u64) -> u64 {
        self.correct(x.wrapping_sub(self.q))
    }

    /// Returns the product of two residues in ordinary form.
    #[inline]
    pub const fn mul(self, a: u64, b: u64) -> u64 {
        self.redc(self.mont(a) as u128 * b as u128)
    }

    /// Returns a^e mod q.
    pub const fn pow(self, a: u64, mut e: u64) -> u64 {
        let mut base = a % self.q;
        let mut result = 1;
        while e > 0 {
            if e & 1 == 1 {
                result = self.mul(result, base);
            }
            base = self.mul(base, base);
            e >>= 1;
        }
        result
    }

    /// Returns a^-1 mod q, for a prime q and an a that is not a multiple of q.
    pub const fn inv(self, a: u64) -> u64 {
        self.pow(a, self.q - 2)
    }

    /// Returns the residue of an integer above -q and below q, without a branch.
    #[inline(always)]
    pub const fn small(self, x: i64) -> u64 {
        self.correct(x.cast_unsigned())
    }

    /// Returns the residue of a signed integer.
    #[inline]
    pub const fn residue_of(self, x: i128) -> u64 {
        // A 128-bit remainder takes as long as a hundred additions.
        if x > -(self.q as i128) && x < self.q as i128 {
            return self.small(x as i64);
        }
        x.rem_euclid(self.q as i128) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};

    #[test]
    fn modular_arithmetic_equals_wide_remainders() {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
        for q in [
            0x0fff_ffff_ffff_c001,
            0x0fff_ffff_fffe_8001,
            0x003f_ffff_ffe7_c001,
            65537,
        ] {
            let m = Modulus::new(q);
            for _ in 0..2000 {
                let (a, b) = (rng.random_range(0..q), rng.random_range(0..q));
                let wide = |x: u128| (x % u128::from(q)) as u64;
                assert_eq!(m.mul(a, b), wide(u128::from(a) * u128::from(b)));
                assert_eq!(m.add(a, b), wide(u128::from(a) + u128::from(b)));
                assert_eq!(m.sub(a, b), wide(u128::from(a) + u128::from(q - b)));
                let wanted = i128::from(a) - i128::from(b) - i128::from(q);
                let wanted = wanted.rem_euclid(i128::from(q)) as u64;
                assert_eq!(m.residue_of(i128::from(a) - i128::from(b)), wanted);
                assert_eq!(m.small(a as i64), a);
                assert_eq!(m.small(-(a as i64)), m.sub(0, a));
                let x = rng.random_range(0..u128::from(q) << 64);
                let lifted = u128::from(m.redc(x)) * ((1u128 << 64) % u128::from(q));
                assert_eq!(wide(lifted), wide(x));
                let x = rng.random_range(0..u128::from(q) << 65);
                assert!(m.fold(x) < u128::from(q) << 64);
                assert_eq!(wide(m.fold(x)), wide(x));
                if a > 0 {
                    assert_eq!(m.mul(a, m.inv(a)), 1);
                }
            }
        }
    }
}

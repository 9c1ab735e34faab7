//! Integers modulo a product of neighbouring primes, from their residues.
#![expect(
    clippy::indexing_slicing,
    reason = "a group has as many primes as buffers are given for it, and a factor for every limb of \
              its ring"
)]

use crate::scheme::ring::Limb;
use fhaim_ntt::{Modulus, ResultMode};

/// Neighbouring primes, in ascending order. An integer modulo their product is
/// d_0 + q_0 (d_1 + q_1 (d_2 + ...)), each d below its prime and the last of least absolute value.
///
/// The last digit has least absolute value because a digit in 0..q has a mean of q/2 in every coefficient. Times a
/// key's error, this mean would be a noise of three times the variance of the rest, most of it at one pair of roots.
#[derive(Debug)]
pub(crate) struct Group {
    moduli: Vec<Modulus>,
    /// For each prime, the inverses of the primes before it, in Montgomery form.
    inverses: Vec<Vec<u64>>,
    /// For each limb of the ring, the primes modulo the limb's prime, in Montgomery form.
    factors: Vec<Vec<u64>>,
}

impl Group {
    /// Makes a group of some of a ring's limbs.
    pub(crate) fn new(group: &[Limb], limbs: &[Limb]) -> Self {
        let moduli: Vec<Modulus> = group.iter().map(|limb| limb.modulus).collect();
        let inverses = |(k, m): (usize, &Modulus)| {
            let earlier = moduli[..k].iter();
            earlier.map(|q| m.mont(m.inv(q.value()))).collect()
        };
        let factors = |limb: &Limb| {
            let m = limb.modulus;
            moduli
                .iter()
                .map(|q| m.mont(q.value() % m.value()))
                .collect()
        };
        Self {
            inverses: moduli.iter().enumerate().map(inverses).collect(),
            factors: limbs.iter().map(factors).collect(),
            moduli,
        }
    }

    /// Turns residues into digits, in place. Each prime has one polynomial's coefficients.
    pub(crate) fn digits(&self, residues: &mut [Vec<u64>], spare: &mut Vec<u64>) {
        for (k, m) in self.moduli.iter().enumerate() {
            let (lower, rest) = residues.split_at_mut(k);
            for (digit, &inverse) in lower.iter().zip(&self.inverses[k]) {
                // Primes ascend, so an earlier prime's digit is a residue of this prime.
                m.scaled_difference([&rest[0], digit], inverse, ResultMode::Set, spare);
                std::mem::swap(&mut rest[0], spare);
            }
        }
    }

    /// Computes the integers with these digits modulo the prime `m` of the ring's limb number `limb`.
    pub(crate) fn modulo(&self, digits: &[Vec<u64>], limb: usize, m: Modulus, out: &mut [u64]) {
        let last = self.moduli.len() - 1;
        m.centre(self.moduli[last], &digits[last], out);
        for (digit, &factor) in digits.iter().zip(&self.factors[limb]).take(last).rev() {
            m.multiply_add(digit, factor, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheme::params::{COMPACT, ParameterSet, Parameters, STANDARD};
    use crate::scheme::ring::DEGREE;
    use rand::{Rng, SeedableRng};

    /// Covers the edges of the range and random integers between them.
    #[test]
    fn digits_round_trip_modulo_every_prime() {
        for set in [STANDARD, COMPACT] {
            let params = Parameters::new(set).unwrap();
            let limbs = params.ring().limbs();
            let together = params.ring().limbs_of_digit();
            for first in (0..limbs.len()).step_by(together) {
                check(&set, limbs, &limbs[first..first + together]);
            }
        }
    }

    fn check(set: &ParameterSet, limbs: &[Limb], group: &[Limb]) {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(9);
        // The last digit is at most (q - 1) / 2, and the others are at least zero.
        let (last, lower) = group.split_last().unwrap();
        let half = i128::from(last.modulus.value() / 2);
        let half = lower
            .iter()
            .fold(half, |half, limb| half * i128::from(limb.modulus.value()));
        let edges = [0, 1, -1, half, -half];
        let integer = |i: usize| match edges.get(i) {
            Some(&edge) => edge,
            None => rng.random_range(-half..=half),
        };
        let integers: Vec<i128> = (0..DEGREE).map(integer).collect();
        let residues =
            |m: Modulus| -> Vec<u64> { integers.iter().map(|&x| m.residue_of(x)).collect() };
        let mut digits: Vec<Vec<u64>> = group.iter().map(|l| residues(l.modulus)).collect();
        let whole = Group::new(group, limbs);
        whole.digits(&mut digits, &mut vec![0; DEGREE]);
        for (j, limb) in limbs.iter().enumerate() {
            let mut out = vec![0; DEGREE];
            whole.modulo(&digits, j, limb.modulus, &mut out);
            assert!(out == residues(limb.modulus), "set {}: limb {j}", set.id);
        }
    }
}

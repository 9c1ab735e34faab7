//! An estimate of the number of different texts, in bounded memory.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

/// Number of registers, as a power of two. The standard error is 1.04 / sqrt(2^12), 1.6%.
const POWER: u32 = 12;

/// Counts different texts by the HyperLogLog algorithm (Flajolet, Fusy, Gandouet and Meunier 2007) with linear counting
/// for small numbers.
#[derive(Debug)]
pub(crate) struct Distinct {
    registers: Vec<u8>,
    hasher: BuildHasherDefault<DefaultHasher>,
}

impl Distinct {
    pub(crate) fn new() -> Self {
        Self {
            registers: vec![0; 1 << POWER],
            hasher: BuildHasherDefault::default(),
        }
    }

    pub(crate) fn add(&mut self, text: &str) {
        let hash = self.hasher.hash_one(text);
        let place = (hash >> (64 - POWER)) as usize;
        // The lowest bit is set, so that there are at most 64 - POWER leading zeros.
        let zeros = ((hash << POWER) | 1).leading_zeros().min(63) as u8 + 1;
        if let Some(register) = self.registers.get_mut(place) {
            *register = (*register).max(zeros);
        }
    }

    /// Returns the estimate.
    pub(crate) fn estimate(&self) -> u64 {
        let m = self.registers.len() as f64;
        let sum: f64 = self.registers.iter().map(|&r| (-f64::from(r)).exp2()).sum();
        let raw = 0.7213 / (1.0 + 1.079 / m) * m * m / sum;
        let empty = self.registers.iter().filter(|&&r| r == 0).count();
        if raw <= 2.5 * m && empty > 0 {
            return (m * (m / empty as f64).ln()).round() as u64;
        }
        raw.round() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimate_is_within_a_tenth() {
        for n in [1u64, 100, 5_000, 300_000] {
            let mut distinct = Distinct::new();
            for _ in 0..2 {
                (0..n).for_each(|i| distinct.add(&i.to_string()));
            }
            let found = distinct.estimate();
            assert!(found.abs_diff(n) <= n / 10, "{found} of {n}");
        }
    }
}

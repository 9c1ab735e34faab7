//! Secure aggregation: a sum over parties that reveals nothing else about its summands (Bonawitz et al. 2017).
//!
//! Every two parties share a key. For each sum, a party adds, modulo t, the ChaCha20 stream under each key that it
//! shares with a later party, and subtracts the stream under each key that it shares with an earlier one. The masks of
//! all parties add up to zero. To anyone who lacks one of a party's keys, its masked vector is uniform modulo t. A mask
//! is bound to the number of the sum, which is used once.
//!
//! This module does not cover key agreement between two parties, which depends on their connection. If a party drops
//! out after the group is fixed, the sum fails as a whole.

use rand::{CryptoRng, RngCore, SeedableRng};
use rand_chacha::ChaCha20Rng;
use zeroize::Zeroizing;

/// t = 2^48: far above any sum of counts and noise, and a divisor of 2^64.
pub const MODULUS: u64 = 1 << 48;

/// The keys that one party shares with the others.
#[derive(Clone)]
pub struct PairKeys {
    party: usize,
    /// Keys by the other party's number; the party's own entry is unused.
    keys: Vec<Zeroizing<[u8; 32]>>,
}

impl PairKeys {
    /// Generates keys for this number of parties, in place of a key agreement between every two of them.
    pub fn agree<R: CryptoRng + ?Sized>(parties: usize, rng: &mut R) -> Vec<Self> {
        let empty = || vec![Zeroizing::new([0; 32]); parties];
        let mut all: Vec<Self> = (0..parties)
            .map(|party| Self {
                party,
                keys: empty(),
            })
            .collect();
        for one in 0..parties {
            for two in one + 1..parties {
                let mut key = Zeroizing::new([0; 32]);
                rng.fill_bytes(key.as_mut());
                all[one].keys[two] = key.clone();
                all[two].keys[one] = key;
            }
        }
        all
    }

    /// Returns the number of the party that holds these keys.
    pub fn party(&self) -> usize {
        self.party
    }

    /// Returns the number of parties.
    pub fn parties(&self) -> usize {
        self.keys.len()
    }

    /// Returns `values` modulo t, masked for the sum number `message` over `group`. The group must contain this party,
    /// list no party twice, and only have parties with a key.
    pub fn mask(&self, values: &[i64], group: &[usize], message: u64) -> Vec<u64> {
        // The values are in two's complement and t is a power of two, so the low bits are the value modulo t.
        let mut masked: Vec<u64> = values.iter().map(|&v| v as u64 % MODULUS).collect();
        for &other in group.iter().filter(|&&other| other != self.party) {
            let Some(key) = self.keys.get(other) else {
                continue;
            };
            let mut stream = ChaCha20Rng::from_seed(**key);
            stream.set_stream(message);
            for value in &mut masked {
                let mask = stream.next_u64() % MODULUS;
                let signed = if self.party < other {
                    mask
                } else {
                    MODULUS - mask
                };
                *value = (*value + signed) % MODULUS;
            }
        }
        masked
    }
}

impl std::fmt::Debug for PairKeys {
    /// Writes the numbers of parties only, never a key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PairKeys(party {} of {})", self.party, self.keys.len())
    }
}

/// Returns the sum of masked vectors of the same length, as the integers nearest to zero.
pub fn lift(masked: &[Vec<u64>]) -> Vec<i64> {
    let cells = masked.first().map_or(0, Vec::len);
    let mut sums = vec![0u64; cells];
    for vector in masked {
        for (sum, value) in sums.iter_mut().zip(vector) {
            *sum = (*sum + value % MODULUS) % MODULUS;
        }
    }
    let centred = |sum: u64| match sum {
        // The sum is below 2^48.
        low if low < MODULUS / 2 => low as i64,
        high => -((MODULUS - high) as i64),
    };
    sums.into_iter().map(centred).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(parties: usize) -> Vec<PairKeys> {
        PairKeys::agree(parties, &mut ChaCha20Rng::seed_from_u64(7))
    }

    #[test]
    fn masks_cancel_in_the_sum_over_any_group() {
        let keys = keys(7);
        for (message, group) in [
            vec![0, 1, 2, 3, 4, 5, 6],
            vec![1, 4],
            vec![6, 2, 3],
            vec![5],
        ]
        .into_iter()
        .enumerate()
        {
            let values = |party: usize| vec![party as i64 * 100 - 250, -7, 1 << 40];
            let masked: Vec<Vec<u64>> = group
                .iter()
                .map(|&k| keys[k].mask(&values(k), &group, message as u64))
                .collect();
            let expected: Vec<i64> = (0..3)
                .map(|cell| group.iter().map(|&k| values(k)[cell]).sum())
                .collect();
            assert_eq!(lift(&masked), expected);
            let zeros: Vec<Vec<u64>> = group
                .iter()
                .map(|&k| keys[k].mask(&[0; 50], &group, 99))
                .collect();
            assert_eq!(lift(&zeros), [0; 50]);
        }
    }

    /// Each value is uniform modulo t: no bit is biased, although all masked values are equal. No mask is used for two
    /// sums.
    #[test]
    fn masked_vector_is_uniform_and_differs_between_sums() {
        let keys = keys(3);
        let cells = 20_000;
        let masked = keys[1].mask(&vec![12_345; cells], &[0, 1, 2], 3);
        for bit in 0..48 {
            let ones = masked.iter().filter(|&&v| v >> bit & 1 == 1).count() as f64;
            let off = (ones - cells as f64 / 2.0) / (cells as f64 / 4.0).sqrt();
            assert!(off.abs() < 5.0, "bit {bit}: {off}");
        }
        assert!(masked.iter().all(|&v| v < MODULUS));
        let other = keys[1].mask(&vec![12_345; cells], &[0, 1, 2], 4);
        assert!(masked.iter().zip(&other).filter(|(a, b)| a == b).count() < 2);
        let mut written = format!("{:?}", keys[1]);
        written.retain(|c| c.is_ascii_digit());
        assert_eq!(written, "13");
    }
}

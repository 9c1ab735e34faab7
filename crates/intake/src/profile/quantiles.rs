//! A bounded summary of many numbers, from which quantiles can be estimated.
//!
//! The sketch of Manku, Rajagopalan and Lindsay 1998: a full buffer is sorted, every second number is kept, and each
//! kept number stands for twice as many.

/// Numbers that a buffer holds. The rank error after n numbers is about log2(n / BUFFER) / (2 BUFFER).
const BUFFER: usize = 4_096;

/// A summary of numbers in bounded memory.
#[derive(Debug, Default)]
pub(crate) struct Quantiles {
    /// Each number of buffer i stands for 2^i numbers.
    buffers: Vec<Vec<f64>>,
    /// Whether the next halving keeps the odd places. Alternating avoids a bias.
    odd: bool,
    count: u64,
}

impl Quantiles {
    pub(crate) fn add(&mut self, number: f64) {
        if self.buffers.is_empty() {
            self.buffers.push(Vec::new());
        }
        self.count += 1;
        self.buffers[0].push(number);
        let mut level = 0;
        while self.buffers[level].len() >= BUFFER {
            let mut full = std::mem::take(&mut self.buffers[level]);
            full.sort_unstable_by(f64::total_cmp);
            let kept = full.into_iter().skip(usize::from(self.odd)).step_by(2);
            self.odd = !self.odd;
            level += 1;
            match self.buffers.get_mut(level) {
                Some(next) => next.extend(kept),
                None => self.buffers.push(kept.collect()),
            }
        }
    }

    /// Number of numbers that were added.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the kept numbers, each with how many it stands for.
    pub(crate) fn weighted(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        let levels = self.buffers.iter().zip(0u32..);
        levels.flat_map(|(buffer, level)| {
            let weight = 1u64.checked_shl(level).unwrap_or(u64::MAX);
            buffer.iter().map(move |&number| (number, weight))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_a_million_numbers_are_within_a_thousandth() {
        let mut sketch = Quantiles::default();
        let n = 1_000_000i64;
        // A permutation of 0 to n - 1, and no order that the sketch could profit from.
        for i in 0..n {
            sketch.add((i * 387_420_489 % n) as f64);
        }
        let mut kept: Vec<(f64, u64)> = sketch.weighted().collect();
        assert!(kept.len() < 20 * BUFFER);
        assert_eq!(kept.iter().map(|(_, weight)| weight).sum::<u64>(), n as u64);
        kept.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let mut below = 0.0;
        for (number, weight) in kept {
            assert!(
                (below - number).abs() < n as f64 / 1_000.0,
                "{number} has rank {below}"
            );
            below += weight as f64;
        }
    }
}

//! Released mixes: noisy sums, and what is worked out from them.

use crate::Points;

/// Noisy sums of mixes, each of one class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mixes {
    /// Features of a sum.
    pub width: usize,
    /// The sums, one after the other.
    pub sums: Vec<i64>,
    /// The class of each.
    pub labels: Vec<u32>,
    /// The most records that a sum is of.
    pub most: usize,
    /// Whether each sum is of exactly that many.
    pub full: bool,
}

impl Mixes {
    /// Number of mixes.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// A mix's noisy sum; nothing for a number that no mix has.
    pub fn sum(&self, number: usize) -> &[i64] {
        let start = number.saturating_mul(self.width);
        self.sums.get(start..start + self.width).unwrap_or(&[])
    }

    /// How many records a mix is taken to be of: all that it may have, or else what its sum says, within what is
    /// possible.
    pub fn size(&self, number: usize, shape: &Points) -> f64 {
        let most = self.most as f64;
        if self.full {
            return most;
        }
        let estimated = shape.estimated_size(self.sum(number)).unwrap_or(most);
        estimated.clamp(1.0, most.max(1.0))
    }

    /// A mix's mean, in the features' own units, without the features that only count records.
    pub fn mean(&self, number: usize, shape: &Points) -> Vec<f64> {
        let divisor = self.size(number, shape) * shape.unit();
        let own = self.sum(number).iter().take(shape.features());
        own.map(|&sum| sum as f64 / divisor).collect()
    }
}

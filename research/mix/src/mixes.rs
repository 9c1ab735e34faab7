//! Released mixes: noisy sums, and the means computed from them.

use crate::Points;

/// Noisy sums of records, each of one class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mixes {
    /// Number of features of a sum.
    pub width: usize,
    /// The values of all sums, one sum after the other.
    pub sums: Vec<i64>,
    /// The class of each sum.
    pub labels: Vec<u32>,
    /// The largest number of records in a sum.
    pub most: usize,
    /// Whether each sum has exactly `most` records.
    pub full: bool,
}

impl Mixes {
    /// Number of mixes.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are no mixes.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Returns the noisy sum of a mix, or an empty slice if there is no mix of that number.
    pub fn sum(&self, number: usize) -> &[i64] {
        let start = number.saturating_mul(self.width);
        self.sums.get(start..start + self.width).unwrap_or(&[])
    }

    /// Returns the number of records that a mix is assumed to have: exactly `most` if the mixes are full, and otherwise
    /// the estimate from its sum, clamped to the possible range.
    pub fn size(&self, number: usize, shape: &Points) -> f64 {
        let most = self.most as f64;
        if self.full {
            return most;
        }
        let estimated = shape.estimated_size(self.sum(number)).unwrap_or(most);
        estimated.clamp(1.0, most.max(1.0))
    }

    /// Returns the mean of a mix in the features' units, without the feature that only counts records.
    pub fn mean(&self, number: usize, shape: &Points) -> Vec<f64> {
        let divisor = self.size(number, shape) * shape.unit();
        let own = self.sum(number).iter().take(shape.features());
        own.map(|&sum| sum as f64 / divisor).collect()
    }
}

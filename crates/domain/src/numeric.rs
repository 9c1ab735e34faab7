//! Bins of numbers, and sampling of numbers from bins.

use rand::Rng;

/// Maximum number of bins of a numeric column.
pub const MAX_BINS: u32 = 10_000;

/// Maximum magnitude of a limit of a numeric column.
pub const MAX_MAGNITUDE: f64 = 1e15;

/// Minimum width of a bin.
const MIN_WIDTH: f64 = 1e-15;

/// Minimum width of a bin, as a share of the larger limit.
const MIN_RELATIVE_WIDTH: f64 = 1e-9;

/// Why limits and bins do not form a [`Binning`].
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BinningProblem {
    /// `min` or `max` is infinite, not a number, or beyond [`MAX_MAGNITUDE`].
    #[error("`min` and `max` must be finite and at most 1e15 in magnitude")]
    Limit,
    /// `min` is not below `max`.
    #[error("`min` ({min}) must be below `max` ({max})")]
    Order {
        /// The lower limit given.
        min: f64,
        /// The upper limit given.
        max: f64,
    },
    /// There are no bins, or more than [`MAX_BINS`].
    #[error("`bins` must be from 1 to {MAX_BINS}, not {0}")]
    Bins(u64),
    /// Bins are too narrow to tell numbers of this magnitude apart.
    #[error("bins of width {0} are too narrow for limits of this magnitude: use fewer bins")]
    Narrow(f64),
    /// The limits of an integer column are not integers.
    #[error("`min` and `max` of an integer column must be integers")]
    FractionalLimit,
    /// An integer column has a bin that contains no integer.
    #[error("an integer column with {0} integers from `min` to `max` can have at most {0} bins")]
    EmptyBin(u64),
}

/// Equal-width bins over a closed range of numbers.
///
/// A value v falls into bin floor((v - min) / (max - min) * bins); max falls into the last bin.
/// Sampling a bin draws a number uniformly from the multiples of 10^-decimals in it. `decimals`
/// depends only on the limits and bins, which are public. It is 0 for an integer column, otherwise
/// the fewest decimals that leave at least a hundred numbers in a bin.
#[derive(Clone, Debug, PartialEq)]
pub struct Binning {
    min: f64,
    max: f64,
    bins: u32,
    integer: bool,
    decimals: u32,
}

impl Binning {
    /// Creates `bins` equal bins from `min` to `max`, both included. With `integer`, the column
    /// holds only integers.
    ///
    /// # Errors
    /// See [`BinningProblem`].
    pub fn new(min: f64, max: f64, bins: u64, integer: bool) -> Result<Self, BinningProblem> {
        if !(min.abs() <= MAX_MAGNITUDE && max.abs() <= MAX_MAGNITUDE) {
            return Err(BinningProblem::Limit);
        }
        if min >= max {
            return Err(BinningProblem::Order { min, max });
        }
        let count = u32::try_from(bins)
            .ok()
            .filter(|count| (1..=MAX_BINS).contains(count))
            .ok_or(BinningProblem::Bins(bins))?;
        let width = (max - min) / f64::from(count);
        if width < MIN_WIDTH || width < MIN_RELATIVE_WIDTH * min.abs().max(max.abs()) {
            return Err(BinningProblem::Narrow(width));
        }
        let binning = Self {
            // Adding zero turns -0 into 0, so that equal limits have equal bytes.
            min: min + 0.0,
            max: max + 0.0,
            bins: count,
            integer,
            decimals: if integer { 0 } else { decimals_for(width) },
        };
        binning.check_bins_hold_numbers()?;
        Ok(binning)
    }

    /// Checks that every bin contains a number of the grid, so that [`Binning::sample`] never
    /// fails.
    fn check_bins_hold_numbers(&self) -> Result<(), BinningProblem> {
        if self.integer && (self.min.fract() != 0.0 || self.max.fract() != 0.0) {
            return Err(BinningProblem::FractionalLimit);
        }
        let holds_none = |bin| self.first_step(bin) > self.last_step(bin);
        if !(0..self.bins).any(holds_none) {
            return Ok(());
        }
        Err(if self.integer {
            BinningProblem::EmptyBin((self.max - self.min) as u64 + 1)
        } else {
            BinningProblem::Narrow(self.width())
        })
    }

    /// The lower limit, included.
    pub fn min(&self) -> f64 {
        self.min
    }

    /// The upper limit, included.
    pub fn max(&self) -> f64 {
        self.max
    }

    /// Number of bins.
    pub fn bins(&self) -> u32 {
        self.bins
    }

    /// Whether the column holds integers only.
    pub fn integer(&self) -> bool {
        self.integer
    }

    /// Decimals of the numbers that [`Binning::sample`] returns.
    pub fn decimals(&self) -> u32 {
        self.decimals
    }

    /// The width of each bin.
    pub fn width(&self) -> f64 {
        (self.max - self.min) / f64::from(self.bins)
    }

    /// Returns the bin of `value`, or `None` if it is outside the limits or not a number.
    pub fn bin(&self, value: f64) -> Option<u32> {
        (value >= self.min && value <= self.max).then(|| {
            let bin = (value - self.min) / (self.max - self.min) * f64::from(self.bins);
            (bin as u32).min(self.bins - 1)
        })
    }

    /// Returns `value`, moved to the nearest limit if it is outside, or `None` if it is not a
    /// number.
    pub fn clamp(&self, value: f64) -> Option<f64> {
        (!value.is_nan()).then(|| value.clamp(self.min, self.max))
    }

    /// Returns the limits of bin `bin`. The lower one is included, the upper one only in the last
    /// bin.
    pub fn edges(&self, bin: u32) -> (f64, f64) {
        let edge = |index: u32| {
            if index >= self.bins {
                self.max
            } else {
                self.min + (self.max - self.min) * f64::from(index) / f64::from(self.bins)
            }
        };
        (edge(bin), edge(bin.saturating_add(1)))
    }

    /// Returns the smallest and the largest number with [`Binning::decimals`] decimals in bin
    /// `bin`. For an integer column, these are integers. A bin past the last counts as the last.
    pub fn numbers(&self, bin: u32) -> (f64, f64) {
        let bin = bin.min(self.bins - 1);
        let (first, last) = (self.first_step(bin), self.last_step(bin));
        (self.value(first), self.value(last))
    }

    /// Draws a number uniformly from those with [`Binning::decimals`] decimals in bin `bin`.
    /// [`Binning::bin`] returns the same bin for it. A bin past the last counts as the last.
    pub fn sample(&self, bin: u32, rng: &mut (impl Rng + ?Sized)) -> f64 {
        let bin = bin.min(self.bins - 1);
        // The range is not empty: `new` checked every bin.
        self.value(rng.random_range(self.first_step(bin)..=self.last_step(bin)))
    }

    /// Returns the number `step` * 10^-decimals, correctly rounded: both parts are exact doubles.
    fn value(&self, step: i64) -> f64 {
        step as f64 / self.scale()
    }

    /// 10^decimals; `decimals` is at most 17, so the power is exact.
    fn scale(&self) -> f64 {
        10u64.pow(self.decimals) as f64
    }

    /// Returns the smallest step whose number falls into `bin` or above.
    fn first_step(&self, bin: u32) -> i64 {
        let reaches = |step| self.bin(self.value(step)).is_some_and(|found| found >= bin);
        // Edges are rounded differently than bins: begin below the edge, and let `bin` decide.
        let mut step = (self.edges(bin).0 * self.scale()).ceil() as i64 - 2;
        for _ in 0..4 {
            if reaches(step) {
                break;
            }
            step += 1;
        }
        step
    }

    /// Returns the largest step whose number falls into `bin`, for a `bin` below [`Binning::bins`].
    fn last_step(&self, bin: u32) -> i64 {
        if bin + 1 < self.bins {
            return self.first_step(bin + 1) - 1;
        }
        let mut step = (self.max * self.scale()).floor() as i64 + 1;
        for _ in 0..2 {
            if self.value(step) <= self.max {
                break;
            }
            step -= 1;
        }
        step
    }
}

/// Returns the fewest decimals, at least 0, that leave a hundred numbers or more in a bin of
/// `width`.
fn decimals_for(width: f64) -> u32 {
    // Widths are at least 1e-15, so this is at most 17.
    (2.0 - width.log10().floor()).clamp(0.0, 17.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

    #[test]
    fn bins_follow_the_formula_and_the_last_includes_max() {
        let glucose = Binning::new(0.0, 200.0, 10, false).unwrap();
        assert_eq!(glucose.bin(0.0), Some(0));
        assert_eq!(glucose.bin(19.9), Some(0));
        assert_eq!(glucose.bin(20.0), Some(1));
        assert_eq!(glucose.bin(199.9), Some(9));
        assert_eq!(glucose.bin(200.0), Some(9));
        assert_eq!(glucose.bin(200.1), None);
        assert_eq!(glucose.bin(-0.1), None);
        assert_eq!(glucose.bin(f64::NAN), None);
        assert_eq!(glucose.clamp(1e9), Some(200.0));
        assert_eq!(glucose.clamp(f64::NAN), None);
    }

    #[test]
    fn one_bin_per_integer_maps_each_integer_to_its_bin() {
        let binning = Binning::new(-3.0, 4.0, 8, true).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for bin in 0..8 {
            assert_eq!(binning.sample(bin, &mut rng), f64::from(bin) - 3.0);
        }
        assert_eq!(
            Binning::new(-3.0, 4.0, 9, true),
            Err(BinningProblem::EmptyBin(8))
        );
    }

    #[test]
    fn decimals_depend_on_bin_width() {
        assert_eq!(Binning::new(0.0, 70.0, 10, false).unwrap().decimals(), 2);
        assert_eq!(Binning::new(0.0, 2.5, 10, false).unwrap().decimals(), 3);
        assert_eq!(Binning::new(0.0, 2000.0, 10, false).unwrap().decimals(), 0);
        assert_eq!(Binning::new(0.0, 70.0, 10, true).unwrap().decimals(), 0);
    }

    #[test]
    fn integers_of_a_bin_are_sampled_uniformly() {
        let binning = Binning::new(0.0, 18.0, 4, true).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let mut seen = [0u32; 19];
        for _ in 0..10_000 {
            seen[binning.sample(3, &mut rng) as usize] += 1;
        }
        // Bin 3 is [13.5, 18]: the integers 14 to 18; 2000 each, deviation 40.
        assert!(seen[..14].iter().all(|&count| count == 0));
        assert!(seen[14..].iter().all(|&count| count.abs_diff(2000) < 200));
    }

    #[test]
    fn invalid_bins_are_rejected() {
        let refused = |min, max, bins, integer| Binning::new(min, max, bins, integer).unwrap_err();
        assert_eq!(refused(f64::NAN, 1.0, 1, false), BinningProblem::Limit);
        assert_eq!(refused(0.0, f64::INFINITY, 1, false), BinningProblem::Limit);
        assert_eq!(refused(0.0, 1.0, 0, false), BinningProblem::Bins(0));
        assert_eq!(
            refused(0.0, 1.0, 1 << 40, false),
            BinningProblem::Bins(1 << 40)
        );
        assert_eq!(refused(0.5, 9.0, 2, true), BinningProblem::FractionalLimit);
        assert!(matches!(
            refused(1.0, 1.0, 1, false),
            BinningProblem::Order { .. }
        ));
        assert!(matches!(
            refused(1e14, 1e14 + 1.0, 9, false),
            BinningProblem::Narrow(_)
        ));
        assert!(matches!(
            refused(0.0, 1e-300, 1, false),
            BinningProblem::Narrow(_)
        ));
    }

    proptest! {
        #[test]
        fn sampled_number_falls_into_its_bin(
            min in -1e6..1e6f64, width in 1e-3..1e6f64, bins in 1..200u64, seed: u64, integer: bool,
        ) {
            let (min, max) = if integer { (min.floor(), (min + width).ceil()) } else { (min, min + width) };
            if let Ok(binning) = Binning::new(min, max, bins, integer) {
                let mut rng = ChaCha8Rng::seed_from_u64(seed);
                for bin in 0..binning.bins() {
                    let value = binning.sample(bin, &mut rng);
                    prop_assert_eq!(binning.bin(value), Some(bin));
                    prop_assert!(!integer || value.fract() == 0.0);
                }
            }
        }

        #[test]
        fn only_numbers_within_limits_have_a_bin(min: f64, max: f64, bins: u64, integer: bool, value: f64) {
            if let Ok(binning) = Binning::new(min, max, bins % 300, integer) {
                prop_assert_eq!(binning.bin(value).is_some(), value >= min && value <= max);
            }
        }
    }
}

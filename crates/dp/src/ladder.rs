//! The noise ladder: noise that a holder draws and encrypts before its scale is known.
//!
//! At level j the ladder has three discrete Gaussian samples of scale `2 * 2^j` at every position,
//! in two vectors: one sample, and the sum of two others. A release with noise variance `4 m`
//! takes, at each of its positions, `d_j` samples of every level j, where `d_j` are the base-4
//! digits of m. Their variances add up to `4 m`. Vectors consist of *pages* of [`PAGE`] positions,
//! and each vector of a page becomes one ciphertext. Every position serves only one release. A
//! release starts where the previous one ended, and may continue on the next page.

use std::ops::Range;

use rand_chacha::ChaCha20Rng;
use rand_core::{CryptoRng, SeedableRng};
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::{DiscreteGaussian, Error, Span};

/// Positions in a page: the coefficients of one ciphertext.
pub const PAGE: usize = 8192;

/// Scale (sigma) of the samples of level 0.
pub const BASE_SCALE: u64 = 2;

/// Variance of the samples of level 0, which is the unit of variances.
pub const BASE_VARIANCE: u64 = BASE_SCALE * BASE_SCALE;

/// Samples of a position at each level: the largest base-4 digit.
pub const DIGIT_SAMPLES: usize = 3;

/// Vectors of a page at each level.
pub const LEVEL_VECTORS: usize = 2;

/// Returns the number of samples in the sum that each integer of vector `index` of a level is.
fn samples_of(index: usize) -> usize {
    1 + index
}

/// Returns the indices of the vectors of a level that a digit of 1 to 3 uses. Their sum is a sum of
/// `digit` samples.
pub fn vectors_of_digit(digit: usize) -> Range<usize> {
    match digit {
        2 => 1..2,
        _ => 0..digit.div_ceil(2),
    }
}

/// Returns an upper bound on the number of pages in which a release of `cells` cells has positions.
pub fn most_pages(cells: usize) -> usize {
    match cells {
        0 => 0,
        // The first page may have only one of its cells.
        1.. => cells.saturating_add(PAGE - 2) / PAGE + 1,
    }
}

/// Largest number of levels of a ladder. The scale of the last level is 2^27.
pub const MAX_LEVELS: usize = 27;

/// Largest number of positions of a ladder: 2^17 pages, with 11 million ciphertexts at all levels.
pub const MAX_POSITIONS: usize = 1 << 30;

/// The base-4 digits of a variance, least significant first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digits(u64);

impl Digits {
    /// Returns the digits of `variance_units`.
    pub fn of(variance_units: u64) -> Self {
        Self(variance_units)
    }

    /// Returns the number of levels in use: one past the highest nonzero digit.
    pub fn levels(self) -> usize {
        (u64::BITS - self.0.leading_zeros()).div_ceil(2) as usize
    }

    /// Returns the nonzero digits, as (level, digit in `1..=3`).
    pub fn iter(self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.levels())
            .map(move |level| (level, (self.0 >> (2 * level) & 3) as usize))
            .filter(|&(_, digit)| digit > 0)
    }
}

/// The size of a ladder. It is public, and fixed before any record is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RawPlan")]
pub struct LadderPlan {
    positions: usize,
    levels: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPlan {
    positions: usize,
    levels: usize,
}

impl TryFrom<RawPlan> for LadderPlan {
    type Error = Error;

    fn try_from(raw: RawPlan) -> Result<Self, Error> {
        Self::with_levels(raw.positions, raw.levels)
    }
}

impl LadderPlan {
    /// Plans a ladder with `positions` positions for variances up to `largest_variance_units`. It
    /// is enough for releases with this total number of cells in any order, since no release leaves
    /// a position unused.
    ///
    /// # Errors
    /// [`Error::LadderSize`] for more than [`MAX_POSITIONS`] positions or [`MAX_LEVELS`] levels.
    pub fn new(positions: usize, largest_variance_units: u64) -> Result<Self, Error> {
        let levels = Digits::of(largest_variance_units).levels().max(1);
        Self::with_levels(positions, levels)
    }

    /// Plans a ladder with `positions` positions and `levels` levels.
    ///
    /// # Errors
    /// Those of [`LadderPlan::new`].
    pub fn with_levels(positions: usize, levels: usize) -> Result<Self, Error> {
        if (1..=MAX_LEVELS).contains(&levels) && positions <= MAX_POSITIONS {
            Ok(Self { positions, levels })
        } else {
            Err(Error::LadderSize { levels, positions })
        }
    }

    /// Returns the number of positions on all pages. The last page may be used only in part.
    pub fn positions(&self) -> usize {
        self.positions
    }

    /// Returns the number of levels.
    pub fn levels(&self) -> usize {
        self.levels
    }

    /// Returns the number of pages.
    pub fn pages(&self) -> usize {
        self.positions.div_ceil(PAGE)
    }

    /// Returns the number of sample vectors, which is the number of ciphertexts to upload.
    pub fn vectors(&self) -> usize {
        self.pages() * self.levels * LEVEL_VECTORS
    }

    /// Returns the number of a vector in row-major order of (`page`, `level`, `index`), or `None`
    /// outside the ladder.
    pub fn vector(&self, page: usize, level: usize, index: usize) -> Option<usize> {
        let within = page < self.pages() && level < self.levels && index < LEVEL_VECTORS;
        within.then_some((page * self.levels + level) * LEVEL_VECTORS + index)
    }

    /// Returns the number of samples to draw: three at each level of every position.
    pub fn samples(&self) -> usize {
        self.positions * self.levels * DIGIT_SAMPLES
    }

    /// Draws the vector at (`page`, `level`, `index`) separately: [`PAGE`] integers, zero at
    /// positions beyond the plan, or `None` outside the ladder.
    pub fn draw_vector<R: CryptoRng + ?Sized>(
        &self,
        page: usize,
        level: usize,
        index: usize,
        rng: &mut R,
    ) -> Option<Zeroizing<Vec<i64>>> {
        self.vector(page, level, index)?;
        let mut samples = Zeroizing::new(vec![0; PAGE]);
        let used = samples.iter_mut().take(self.used(page));
        draw_samples(level, samples_of(index), rng, used);
        Some(samples)
    }

    /// Returns the noise of variance `4 * variance_units` at the positions of `span`. `add` adds a
    /// vector of the span's page, by level and index, at those positions.
    pub(crate) fn noise(
        &self,
        span: Span,
        variance_units: u64,
        mut add: impl FnMut(usize, usize, &mut [i64]) -> Option<()>,
    ) -> Result<Zeroizing<Vec<i64>>, Error> {
        let outside = Error::OutsideLadder {
            page: span.page,
            end: span.start.saturating_add(span.len),
        };
        if span.start > PAGE || span.len > self.used(span.page).saturating_sub(span.start) {
            return Err(outside);
        }
        let digits = Digits::of(variance_units);
        if digits.levels() > self.levels {
            return Err(Error::VarianceTooLarge {
                units: variance_units,
                levels: self.levels,
            });
        }
        let mut noise = Zeroizing::new(vec![0; span.len]);
        for (level, digit) in digits.iter() {
            for index in vectors_of_digit(digit) {
                add(level, index, &mut noise).ok_or(outside.clone())?;
            }
        }
        Ok(noise)
    }

    /// Returns the number of positions of `page` that carry noise.
    fn used(&self, page: usize) -> usize {
        self.positions
            .saturating_sub(page.saturating_mul(PAGE))
            .min(PAGE)
    }
}

/// The samples of a ladder: a secret of the holder that drew them, wiped from memory when it is
/// dropped.
///
/// Each vector is drawn with its own ChaCha20 generator, with one 32-byte key for the ladder and
/// the vector's index as the stream. So vectors can be drawn in parallel, and a ladder is a
/// function of only the key. The generators' own state is not wiped, since `rand_chacha` cannot do
/// that.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Ladder {
    #[zeroize(skip)]
    plan: LadderPlan,
    /// Vectors of [`PAGE`] samples in row-major order of (page, level, index).
    samples: Vec<i64>,
}

impl std::fmt::Debug for Ladder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ladder")
            .field("plan", &self.plan)
            .finish_non_exhaustive()
    }
}

impl Ladder {
    /// Draws all samples of `plan`, keyed with 32 bytes from `rng`. `rng` must be the operating
    /// system's generator, except in tests.
    pub fn draw<R: CryptoRng + ?Sized>(plan: LadderPlan, rng: &mut R) -> Self {
        let mut key = Zeroizing::new([0u8; 32]);
        rng.fill_bytes(key.as_mut());
        let mut samples = vec![0; plan.vectors() * PAGE];
        fill_vectors(plan, &key, &mut samples);
        Self { plan, samples }
    }

    /// Returns the sum of several holders' ladders of the same size, sample by sample.
    ///
    /// # Errors
    /// [`Error::LadderSum`] if there are no ladders, or ladders of different sizes.
    pub fn sum(ladders: &[Self]) -> Result<Self, Error> {
        let (first, others) = ladders.split_first().ok_or(Error::LadderSum)?;
        let mut sum = Self {
            plan: first.plan,
            samples: first.samples.clone(),
        };
        for other in others {
            if other.plan != sum.plan {
                return Err(Error::LadderSum);
            }
            for (sum, sample) in sum.samples.iter_mut().zip(&other.samples) {
                // Samples are below 2^35, so no number of holders comes near 64 bits.
                *sum = sum.saturating_add(*sample);
            }
        }
        Ok(sum)
    }

    /// Returns the ladder's size.
    pub fn plan(&self) -> LadderPlan {
        self.plan
    }

    /// Returns the vector at (`page`, `level`, `index`): [`PAGE`] integers, zero at positions
    /// beyond the plan, or `None` outside the ladder.
    pub fn vector(&self, page: usize, level: usize, index: usize) -> Option<&[i64]> {
        let vector = self.plan.vector(page, level, index)?;
        self.samples.get(vector * PAGE..(vector + 1) * PAGE)
    }

    /// Returns the noise of variance `4 * variance_units` for a release at `spans`, cell by cell.
    ///
    /// # Errors
    /// Those of [`Ladder::noise`].
    pub fn release_noise(
        &self,
        spans: &[Span],
        variance_units: u64,
    ) -> Result<Zeroizing<Vec<i64>>, Error> {
        let mut cells = Zeroizing::new(Vec::with_capacity(spans.iter().map(|s| s.len).sum()));
        for &span in spans {
            cells.extend_from_slice(&self.noise(span, variance_units)?);
        }
        Ok(cells)
    }

    /// Returns the noise of variance `4 * variance_units` at the positions of `span`.
    ///
    /// # Errors
    /// [`Error::OutsideLadder`] if the span is not within the plan, [`Error::VarianceTooLarge`] if
    /// the variance needs more levels than there are.
    pub fn noise(&self, span: Span, variance_units: u64) -> Result<Zeroizing<Vec<i64>>, Error> {
        self.plan.noise(span, variance_units, |level, index, sums| {
            let samples = self.vector(span.page, level, index)?.get(span.range())?;
            for (sum, sample) in sums.iter_mut().zip(samples) {
                *sum += sample;
            }
            Some(())
        })
    }
}

/// Fills every vector of the ladder with `PAGE` samples.
fn fill_vectors(plan: LadderPlan, key: &[u8; 32], samples: &mut [i64]) {
    let fill = |(vector, samples): (usize, &mut [i64])| fill_vector(plan, key, vector, samples);
    #[cfg(feature = "rayon")]
    {
        use rayon::prelude::*;
        samples.par_chunks_mut(PAGE).enumerate().for_each(fill);
    }
    #[cfg(not(feature = "rayon"))]
    samples.chunks_mut(PAGE).enumerate().for_each(fill);
}

/// Draws vector number `vector` (row-major by page, level, index) with its own stream.
fn fill_vector(plan: LadderPlan, key: &[u8; 32], vector: usize, samples: &mut [i64]) {
    let (page, level) = (
        vector / LEVEL_VECTORS / plan.levels,
        vector / LEVEL_VECTORS % plan.levels,
    );
    let mut rng = ChaCha20Rng::from_seed(*key);
    rng.set_stream(vector as u64);
    let used = samples.iter_mut().take(plan.used(page));
    draw_samples(level, samples_of(vector % LEVEL_VECTORS), &mut rng, used);
}

/// Fills `sums`, each with the sum of `samples` discrete Gaussians of the level's scale.
#[expect(
    clippy::expect_used,
    reason = "a plan has at most MAX_LEVELS = 27 levels, so the scale is at most 2 * 2^26"
)]
fn draw_samples<'a, R: CryptoRng + ?Sized>(
    level: usize,
    samples: usize,
    rng: &mut R,
    sums: impl Iterator<Item = &'a mut i64>,
) {
    let gaussian = DiscreteGaussian::new(BASE_SCALE << level).expect("scale within 2^27");
    for sum in sums {
        // The sum fits: scales are at most 2^27, and there are at most 3 samples.
        *sum = (0..samples).map(|_| gaussian.sample(rng)).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_digit_takes_its_number_of_samples() {
        for digit in 1..=DIGIT_SAMPLES {
            let vectors = vectors_of_digit(digit);
            assert!(vectors.end <= LEVEL_VECTORS);
            assert_eq!(vectors.map(samples_of).sum::<usize>(), digit);
        }
        // Each of a level's samples is in one vector: together the vectors have the samples of the
        // largest digit.
        let all: usize = (0..LEVEL_VECTORS).map(samples_of).sum();
        assert_eq!(all, DIGIT_SAMPLES);
    }

    /// For every place in a page where a release may start.
    #[test]
    fn most_pages_is_a_tight_bound() {
        for cells in [1, 2, 3, PAGE - 1, PAGE, PAGE + 1, PAGE + 2, 3 * PAGE] {
            let pages = |first: usize| (first + cells - 1) / PAGE - first / PAGE + 1;
            let most = (0..PAGE).map(pages).max();
            assert_eq!(most, Some(most_pages(cells)), "{cells}");
        }
        assert_eq!(most_pages(0), 0);
    }
}

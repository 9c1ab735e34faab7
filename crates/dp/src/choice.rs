//! The exponential mechanism, drawn exactly.
//!
//! Scores are integers and the rate is a fraction, so the probability of a candidate is exactly
//! proportional to `exp(rate * score)`. The choice is a draw from the distribution that is paid
//! for, not from an approximation in doubles.

use rand_core::RngCore;

use crate::gaussian::{bernoulli_exp, uniform_below};
use crate::{Error, Rho};

/// Binary digits of epsilon after the point.
const FRACTION_BITS: u32 = 32;

/// Largest epsilon of one selection: 2^25, so that its square divided by 8 is below 2^48.
pub const MAX_SELECTION_EPSILON: f64 = 33_554_432.0;

/// The exponential mechanism with a given epsilon, for integer scores of a given sensitivity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection {
    /// epsilon, as a count of 2^-32.
    epsilon: u64,
    /// Largest change of a score by one record.
    sensitivity: u64,
}

impl Selection {
    /// Creates a selection at `epsilon`, rounded down to a multiple of 2^-32, among scores that one
    /// record changes by at most `sensitivity`.
    ///
    /// # Errors
    /// [`Error::Epsilon`] unless 2^-32 <= epsilon <= [`MAX_SELECTION_EPSILON`];
    /// [`Error::Ratio`] for a sensitivity of zero, or of 2^31 or more.
    pub fn new(epsilon: f64, sensitivity: u64) -> Result<Self, Error> {
        if !(0.0..=MAX_SELECTION_EPSILON).contains(&epsilon) {
            return Err(Error::Epsilon(epsilon));
        }
        let counts = (epsilon * f64::from(2u32).powi(FRACTION_BITS as i32)).floor() as u64;
        if counts == 0 {
            return Err(Error::Epsilon(epsilon));
        }
        if sensitivity == 0 || sensitivity >= 1 << 31 {
            return Err(Error::Ratio(u128::from(counts), u128::from(sensitivity)));
        }
        Ok(Self {
            epsilon: counts,
            sensitivity,
        })
    }

    /// Returns the epsilon after rounding: the actual rate times twice the sensitivity.
    pub fn epsilon(&self) -> f64 {
        self.epsilon as f64 / f64::from(2u32).powi(FRACTION_BITS as i32)
    }

    /// Returns the cost of one selection: `epsilon^2 / 8` (Cesar and Rogers 2021), rounded up.
    ///
    /// # Errors
    /// Never: epsilon is bounded.
    pub fn rho(&self) -> Result<Rho, Error> {
        let square = u128::from(self.epsilon) * u128::from(self.epsilon);
        Rho::ratio_up(square, 8 << (2 * FRACTION_BITS))
    }

    /// Returns the index of one of `scores`, with probability proportional to `exp(epsilon * score
    /// / (2 * sensitivity))`, exactly if the generator's bits are uniform. Returns `None` if there
    /// are no scores.
    ///
    /// A candidate is drawn uniformly and kept with probability `exp(-rate * (best - score))`. The
    /// best one is always kept, so the expected number of tries is at most the number of
    /// candidates.
    pub fn choose<R: RngCore + ?Sized>(&self, scores: &[i64], rng: &mut R) -> Option<usize> {
        let best = scores.iter().copied().max()?;
        let denominator = self.sensitivity << (FRACTION_BITS + 1);
        loop {
            let index = uniform_below(scores.len() as u64, rng) as usize;
            // The index is always below the length.
            let score = scores.get(index).copied().unwrap_or(best);
            let behind = u128::from(best.abs_diff(score));
            // The product of two 64-bit numbers fits into u128.
            if bernoulli_exp(behind * u128::from(self.epsilon), denominator, rng) {
                return Some(index);
            }
        }
    }
}

#[cfg(test)]
#[allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test's own values"
)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

    #[test]
    fn choices_follow_the_exponential_mechanism() {
        let scores = [0i64, 30, -10, 50, 49];
        let (epsilon, sensitivity) = (0.5, 6);
        let selection = Selection::new(epsilon, sensitivity).unwrap();
        let weight = |s: i64| (epsilon * s as f64 / (2.0 * sensitivity as f64)).exp();
        let total: f64 = scores.iter().map(|&s| weight(s)).sum();
        let mut rng = ChaCha20Rng::seed_from_u64(3);
        let draws = 200_000;
        let mut counts = [0u32; 5];
        for _ in 0..draws {
            counts[selection.choose(&scores, &mut rng).unwrap()] += 1;
        }
        for (&count, &score) in counts.iter().zip(&scores) {
            let p = weight(score) / total;
            let deviation = (p * (1.0 - p) * f64::from(draws)).sqrt();
            let off = (f64::from(count) - p * f64::from(draws)) / deviation;
            assert!(off.abs() < 5.0, "score {score}: {off} deviations");
        }
    }

    #[test]
    fn selection_costs_an_eighth_of_the_square_and_extreme_scores_are_safe() {
        let selection = Selection::new(0.25, 3).unwrap();
        assert_eq!(selection.rho(), Rho::ratio_up(1, 128));
        assert_eq!(selection.epsilon(), 0.25);
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let far = [i64::MIN, i64::MAX, i64::MIN];
        assert!((0..50).all(|_| selection.choose(&far, &mut rng) == Some(1)));
        assert_eq!(selection.choose(&[], &mut rng), None);
    }

    #[test]
    fn invalid_epsilon_or_sensitivity_is_rejected() {
        for epsilon in [0.0, -1.0, 1e-13, 1e9, f64::NAN] {
            assert!(
                matches!(Selection::new(epsilon, 1), Err(Error::Epsilon(..))),
                "{epsilon}"
            );
        }
        for sensitivity in [0, 1 << 31, u64::MAX] {
            assert!(matches!(
                Selection::new(1.0, sensitivity),
                Err(Error::Ratio(..))
            ));
        }
    }
}

//! What ciphertext noise to expect, and what flooding hides of it.
//!
//! All figures are standard deviations, or variances, of the coefficient with the largest one,
//! from the variances of the errors that make it up (average-case analysis, as in Iliashenko
//! 2019). `tests/noise.rs` holds them against measured noise at the largest sizes.
//!
//! A sealed ciphertext's noise is the flood, beside which all other noise is small: by
//! [`largest_page_deviation`] its deviation is less than 2^-15 of the flood's. Decryption is
//! exact, and a sealed page accepted, while the noise stays below 28 deviations of the flood
//! ([`released_bits`]; tests hold it below q / 2t). The flood alone passes 14 in one of 8192
//! coefficients with a probability below 8192 * 2 * exp(-14^2 / 2) / (14 sqrt(2 pi)) < 2^-132
//! (Mills' ratio), and 14 are left for the rest: 2^18 of its own deviations.

use crate::error::{Error, Result};
use crate::keys::ERROR_VARIANCE;
use crate::params::{DEGREE, ParameterSet};

/// Deviations within which every coefficient lies, but for a probability below 2^-128.
const TAIL: f64 = 14.0;

/// The noise vector's norm is taken this many times larger than expected.
const NORM_MARGIN: f64 = 2.0;

/// Deviation of the flood in units of its granularity `2^flood_bits`.
pub(crate) const FLOOD_SCALE: u64 = 1 << 26;

/// rho_leak of one release ciphertext and plaintext modulus is at most 2^-LEAK_BITS.
pub const LEAK_BITS: u32 = 30;

const N: f64 = DEGREE as f64;

/// Variance left by dividing a ciphertext by a prime: rounding, times 1 and s.
fn rounding_variance() -> f64 {
    (1.0 + N * ERROR_VARIANCE as f64) / 12.0
}

/// Variance of a fresh ciphertext's noise after the special prime is dropped.
pub(crate) fn fresh_variance() -> f64 {
    rounding_variance()
}

/// Variance that the digits of one switched polynomial add: digits times errors over the special
/// prime.
fn digit_variance(set: &ParameterSet) -> f64 {
    let digits: f64 = set
        .ciphertext_moduli
        .iter()
        .map(|&q| (q as f64 / set.special_modulus as f64).powi(2) / 12.0)
        .sum();
    digits * N * ERROR_VARIANCE as f64
}

/// Variance a key switch of one polynomial adds, both halves divided.
pub(crate) fn switch_variance(set: &ParameterSet) -> f64 {
    digit_variance(set) + rounding_variance()
}

/// Variance that packing trees over `leaves` leaves add to the cells (see `packing`).
///
/// A merge doubles the noise of the coefficients that sigma fixes, and those that every level
/// fixes are the cells: an error of level l, counted from 1 at the leaves, ends up leaves / 2^l
/// times as large. Level 1 switches three polynomials, each other level one.
pub(crate) fn packing_variance(set: &ParameterSet, leaves: usize) -> f64 {
    let (digits, rounding) = (digit_variance(set), rounding_variance());
    let first = (3.0 * digits + rounding) / 4.0;
    // The sum of 4^-l over the levels from 2 on is below 1/12.
    let others = (digits + rounding) / 12.0;
    (leaves as f64).powi(2) * (first + others)
}

/// Variance of a product's noise, t (x e_y) aside: t * e_x * e_y over all coefficients.
pub(crate) fn product_variance(t: u64, left: f64, right: f64) -> f64 {
    (t as f64).powi(2) * N * left * right
}

/// Deviation of the noise after a scale-invariant product of a page and its image, each with
/// noise of expected squared norm `norm_squared`: t (k_x e_y + k_y e_x) over all coefficients, k
/// the multiple of q by which c0 + c1 s exceeds its residue (a rounding error of 1 and s).
pub(crate) fn square_deviation(t: u64, norm_squared: f64) -> f64 {
    t as f64 * (2.0 * rounding_variance() * norm_squared).sqrt()
}

/// Largest deviation of a page's noise for which flooding keeps rho_leak at 2^-LEAK_BITS.
///
/// Neighbouring tables' noises differ by at most twice the norm bound, 2 * margin * sqrt(n) *
/// deviation. The flood is g * X + U, X discrete Gaussian of scale 2^26, U uniform below g =
/// 2^flood_bits: conditioned on U a shift by v moves X by at most |v| / g + 1 in each
/// coefficient, so rho = (norm / g + sqrt(n))^2 / (2 * 2^52).
pub(crate) fn largest_page_deviation(set: &ParameterSet) -> f64 {
    let moves = FLOOD_SCALE as f64 * (2.0 * (-f64::from(LEAK_BITS)).exp2()).sqrt();
    let granularity = f64::from(set.flood_bits).exp2();
    (moves - N.sqrt()) * granularity / (2.0 * NORM_MARGIN * N.sqrt())
}

/// Refuses a page whose noise the flood would not hide.
pub(crate) fn check_page(set: &ParameterSet, deviation: f64) -> Result<()> {
    if deviation <= largest_page_deviation(set) {
        Ok(())
    } else {
        Err(Error::NoiseBudget)
    }
}

/// Bits of noise up to which a released ciphertext is decrypted: the flood's tail.
pub(crate) fn released_bits(set: &ParameterSet) -> f64 {
    f64::from(set.flood_bits) + (FLOOD_SCALE as f64 * TAIL).log2() + 1.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{P1, P1_LARGE, P2};

    #[test]
    fn floods_fit_the_noise_budget() {
        for set in [P1, P1_LARGE, P2] {
            for &t in set.plaintext_moduli {
                let budget = set.ciphertext_bits() - (t as f64).log2() - 1.0;
                assert!(released_bits(&set) < budget, "set {}", set.id);
            }
        }
    }

    #[test]
    fn the_widest_statistics_fit_the_flood() {
        // Both axes merge 100 categories into 8 centred groups: 7 on 12 columns, -1 on 88.
        let energy = 49.0 * 12.0 + 88.0;
        let packing = |set: &ParameterSet| packing_variance(set, DEGREE);
        for set in [P1, P1_LARGE] {
            let chunks = (set.max_records as f64 / N).ceil();
            let left = fresh_variance() * energy;
            let right = left + switch_variance(&set);
            let products = chunks * product_variance(set.plaintext_moduli[0], left, right);
            let page = (products + packing(&set)).sqrt();
            assert!(page < largest_page_deviation(&set), "set {}", set.id);
        }
        let chunks = (P2.max_records as f64 / N).ceil();
        for &t in P2.plaintext_moduli {
            let right = fresh_variance() + switch_variance(&P2);
            let products = chunks * product_variance(t, fresh_variance(), right);
            // A page full of cells, in a clique of weight 1000.
            let norm_squared = N * (products + packing(&P2));
            assert!(1000.0 * square_deviation(t, norm_squared) < largest_page_deviation(&P2));
        }
    }

    #[test]
    fn other_noise_is_small_beside_the_flood() {
        for set in [P1, P1_LARGE, P2] {
            let flood = FLOOD_SCALE as f64 * f64::from(set.flood_bits).exp2();
            assert!(largest_page_deviation(&set) < flood / 32768.0);
            // Of the mask's encryption and all vectors of a ladder.
            let vectors = 1.0 + 3.0 * 27.0;
            assert!((vectors * fresh_variance()).sqrt() < largest_page_deviation(&set));
        }
    }
}

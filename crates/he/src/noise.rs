//! What ciphertext noise to expect, and what flooding hides of it.
//!
//! All figures are standard deviations of one coefficient, from the variances of the errors that
//! make it up (average-case analysis, as in Iliashenko 2019); tests hold them against measured
//! noise. Decryption errs when a coefficient passes q / 2t; at 14 deviations that is less likely
//! than 2^-128 for a whole page.

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

/// Variance a key switch adds: digits times errors over the special prime, then rounding.
pub(crate) fn switch_variance(set: &ParameterSet) -> f64 {
    let digits: f64 = set
        .ciphertext_moduli
        .iter()
        .map(|&q| (q as f64 / set.special_modulus as f64).powi(2) / 12.0)
        .sum();
    digits * N * ERROR_VARIANCE as f64 + rounding_variance()
}

/// Variance of a product's noise, t (x e_y) aside: t * e_x * e_y over all coefficients.
pub(crate) fn product_variance(t: u64, left: f64, right: f64) -> f64 {
    (t as f64).powi(2) * N * left * right
}

/// Deviation of the noise after a scale-invariant product of two pages of deviation `page`.
pub(crate) fn square_deviation(t: u64, page: f64) -> f64 {
    t as f64 * page * (2.0 * N * rounding_variance()).sqrt()
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
        for set in [P1, P1_LARGE] {
            let chunks = (set.max_records as f64 / N).ceil();
            let left = fresh_variance() * energy;
            let right = left + switch_variance(&set);
            let page = (chunks * product_variance(set.plaintext_moduli[0], left, right)).sqrt();
            assert!(page < largest_page_deviation(&set), "set {}", set.id);
        }
        let chunks = (P2.max_records as f64 / N).ceil();
        for &t in P2.plaintext_moduli {
            let right = fresh_variance() + switch_variance(&P2);
            let page = (chunks * product_variance(t, fresh_variance(), right)).sqrt();
            assert!(1000.0 * square_deviation(t, page) < largest_page_deviation(&P2));
        }
    }
}

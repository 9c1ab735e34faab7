//! Conversion between (epsilon, delta)-differential privacy and zCDP's rho.
//!
//! A rho-zCDP mechanism satisfies (epsilon, delta)-DP for every epsilon > 0 with
//!
//! ```text
//! delta = inf over alpha > 1 of
//!         exp((alpha - 1)(alpha rho - epsilon)) / (alpha - 1) * (1 - 1/alpha)^alpha
//! ```
//!
//! (CKS20, Corollary 13: Canonne, Kamath and Steinke, The Discrete Gaussian for Differential
//! Privacy, 2020). Any alpha gives a valid delta, so an inexact minimiser can only overstate it.
//! Rounding in the evaluation could understate it; a margin on each result covers that.

use crate::{Error, Rho};

/// Relative margin by which every result is moved to the safe side: more than 10^3 times the error
/// that evaluating [`log_delta`] in double precision (relative error below 10^-14) can cause.
const MARGIN: f64 = 1e-11;

/// Smallest accepted epsilon. Below it, rho comes near the resolution of [`Rho`].
pub const MIN_EPSILON: f64 = 1e-9;

/// Largest accepted epsilon. Above it there is no privacy.
pub const MAX_EPSILON: f64 = 1e9;

/// Steps of a bisection: enough to reduce any bracket of doubles to neighbours.
const STEPS: usize = 2100;

/// Returns the largest rho, rounded down, for which rho-zCDP implies (epsilon, delta)-DP.
///
/// # Errors
/// [`Error::Epsilon`] if epsilon is not in [`MIN_EPSILON`]..=[`MAX_EPSILON`], [`Error::Delta`]
/// unless 0 < delta < 1.
pub fn rho(epsilon: f64, delta: f64) -> Result<Rho, Error> {
    check_epsilon(epsilon)?;
    check_delta(delta)?;
    // At this end delta(rho, epsilon) is near 1. If the root is beyond it anyway (for a delta near
    // 1), the result is only smaller than the best rho.
    let high = epsilon - delta.ln() + 1.0;
    let root = bisect(0.0, high, |rho| log_delta(rho, epsilon) <= delta.ln());
    Rho::from_f64_down(root * (1.0 - MARGIN))
}

/// Returns the smallest epsilon for which `rho`-zCDP implies (epsilon, delta)-DP.
///
/// # Errors
/// [`Error::Delta`] unless 0 < delta < 1.
pub fn epsilon(rho: Rho, delta: f64) -> Result<f64, Error> {
    check_delta(delta)?;
    let rho = rho.to_f64();
    if rho == 0.0 {
        return Ok(0.0);
    }
    // The simple conversion (CKS20, Remark 15; Bun and Steinke 2016) is an upper bound.
    let high = rho + 2.0 * (rho * -delta.ln()).sqrt();
    let below = bisect(0.0, high, |epsilon| log_delta(rho, epsilon) > delta.ln());
    Ok(below.next_up() * (1.0 + MARGIN))
}

/// Returns the smallest delta for which `rho`-zCDP implies (epsilon, delta)-DP, at most 1.
///
/// # Errors
/// [`Error::Epsilon`] if epsilon is not in [`MIN_EPSILON`]..=[`MAX_EPSILON`].
pub fn delta(rho: Rho, epsilon: f64) -> Result<f64, Error> {
    check_epsilon(epsilon)?;
    let delta = log_delta(rho.to_f64(), epsilon).exp();
    Ok((delta * (1.0 + MARGIN)).min(1.0))
}

pub(crate) fn check_epsilon(epsilon: f64) -> Result<(), Error> {
    if (MIN_EPSILON..=MAX_EPSILON).contains(&epsilon) {
        Ok(())
    } else {
        Err(Error::Epsilon(epsilon))
    }
}

fn check_delta(delta: f64) -> Result<(), Error> {
    if delta > 0.0 && delta < 1.0 {
        Ok(())
    } else {
        Err(Error::Delta(delta))
    }
}

/// Returns ln delta(rho, epsilon), minimised over alpha = 1 + x.
fn log_delta(rho: f64, epsilon: f64) -> f64 {
    if rho == 0.0 {
        return f64::NEG_INFINITY;
    }
    // The derivative of the logarithm in x, (2x + 1) rho - epsilon + ln(1 - 1/alpha), rises from
    // minus infinity at 0. At the upper end it is positive, since ln(1 - 1/alpha) >= -1/x > -1 and
    // (2x + 1) rho > epsilon + 1 there. So it has one root in between.
    let high = (epsilon + 1.0) / (2.0 * rho) + 2.0;
    let x = bisect(0.0, high, |x| {
        (2.0 * x + 1.0) * rho - epsilon + log_shrink(x) <= 0.0
    });
    let x = x.max(f64::MIN_POSITIVE);
    x * ((x + 1.0) * rho - epsilon + log_shrink(x)) - x.ln_1p()
}

/// Returns ln(1 - 1/alpha) at alpha = 1 + x, without cancellation at either end.
fn log_shrink(x: f64) -> f64 {
    -(1.0 / x).ln_1p()
}

/// Returns the largest double found for which `holds` is true. `holds` must be true up to some
/// point of the bracket and false after it.
fn bisect(mut low: f64, mut high: f64, holds: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..STEPS {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            break;
        }
        if holds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CKS20's bound directly from the formula, with alpha found by golden-section search over
    /// ln(alpha - 1). No derivative and no bisection.
    fn log_delta_by_search(rho: f64, epsilon: f64) -> f64 {
        let bound = |t: f64| {
            let alpha = 1.0 + t.exp();
            (alpha - 1.0) * (alpha * rho - epsilon) - t + alpha * (-1.0 / alpha).ln_1p()
        };
        let golden = (5f64.sqrt() - 1.0) / 2.0;
        let (mut low, mut high) = (-12.0, 25.0);
        for _ in 0..200 {
            let (left, right) = (high - golden * (high - low), low + golden * (high - low));
            if bound(left) < bound(right) {
                high = right;
            } else {
                low = left;
            }
        }
        bound(low)
    }

    #[test]
    fn delta_agrees_with_a_direct_search() {
        for rho in [1e-6, 1e-3, 0.0117, 0.3, 2.0, 10.0] {
            for epsilon in [0.01, 0.1, 1.0, 3.0, 10.0, 30.0] {
                let (ours, search) = (log_delta(rho, epsilon), log_delta_by_search(rho, epsilon));
                let error = (ours - search).abs() / search.abs().max(1e-9);
                assert!(
                    error < 1e-6,
                    "rho {rho}, epsilon {epsilon}: {ours} {search}"
                );
            }
        }
    }

    /// Roots found with 40 digits (mpmath, 120 bisections of the formula in rho).
    #[test]
    fn rho_agrees_with_forty_digit_roots() {
        for (epsilon, delta, expected) in [
            (0.1, 1e-9, 0.000_177_138_447_185_020_86),
            (1.0, 1e-9, 0.014_973_057_673_588_526),
            (1.0, 1e-5, 0.030_556_595_197_639_566),
            (3.0, 1e-6, 0.185_069_840_653_401_48),
            (10.0, 1e-9, 1.090_785_704_397_015_6),
        ] {
            let rho = rho(epsilon, delta).unwrap().to_f64();
            assert!(
                rho < expected && rho > expected * (1.0 - 1e-10),
                "{rho} {expected}"
            );
        }
    }

    #[test]
    fn rho_and_epsilon_are_inverse_and_on_the_safe_side() {
        for epsilon_in in [1e-3, 0.1, 1.0, 2.5, 10.0, 100.0] {
            for delta_in in [1e-15, 1e-9, 1e-5, 0.01, 0.4] {
                let rho = rho(epsilon_in, delta_in).unwrap();
                let back = epsilon(rho, delta_in).unwrap();
                assert!((back / epsilon_in - 1.0).abs() < 1e-6);
                assert!(log_delta(rho.to_f64(), epsilon_in) <= delta_in.ln());
                let more = Rho::from_f64_up(rho.to_f64() * (1.0 + 1e-6)).unwrap();
                assert!(
                    delta(more, epsilon_in).unwrap() > delta_in,
                    "rho could be larger"
                );
            }
        }
    }

    #[test]
    fn conversion_is_better_than_the_simple_one() {
        // Bun and Steinke 2016: epsilon = rho + 2 sqrt(rho ln(1/delta)).
        let log = -(1e-9f64).ln();
        let simple = ((log + 1.0).sqrt() - log.sqrt()).powi(2);
        assert!(rho(1.0, 1e-9).unwrap().to_f64() > simple);
    }

    #[test]
    fn invalid_parameters_are_rejected_by_name() {
        let nan = f64::NAN;
        for epsilon in [0.0, -1.0, nan, f64::INFINITY, 1e300, 1e-200] {
            let error = rho(epsilon, 1e-9).unwrap_err();
            assert!(error.to_string().starts_with("epsilon must"), "{error}");
        }
        for delta in [0.0, 1.0, -0.1, 1.5, nan] {
            let error = rho(1.0, delta).unwrap_err();
            assert!(error.to_string().starts_with("delta must"), "{error}");
            assert!(matches!(epsilon(Rho::ZERO, delta), Err(Error::Delta(..))));
        }
        assert_eq!(epsilon(Rho::ZERO, 1e-9), Ok(0.0));
        assert_eq!(delta(Rho::ZERO, 1.0), Ok(0.0));
        assert!(matches!(delta(Rho::ZERO, 0.0), Err(Error::Epsilon(..))));
    }
}

//! Errors for budgets that are too small, with the budget that would be enough.

use fhaim_dp::{
    Rho,
    accounting::{self, MAX_EPSILON, MIN_EPSILON},
    number, rounded_up,
};

use crate::error::Error;

/// Number of bisection steps on a logarithmic scale, which give two significant digits.
const HALVINGS: usize = 32;

/// Returns the error for a budget at which `can` is false. It contains the least epsilon at which `can` is true, if
/// there is one, and otherwise the error `why`.
pub fn too_small(
    (epsilon, delta): (f64, f64),
    why: impl Into<Error>,
    can: impl Fn(Rho) -> bool,
) -> Error {
    let can_at = |epsilon| accounting::rho(epsilon, delta).is_ok_and(&can);
    match least(epsilon.max(MIN_EPSILON), MAX_EPSILON, can_at) {
        Some(least) => Error::Usage(format!(
            "no noise that can be drawn keeps epsilon {} at delta {delta:e}: raise --epsilon to {}",
            number(epsilon),
            number(least)
        )),
        None => why.into(),
    }
}

/// Returns the least number between `low` and `high`, rounded up to two digits, for which `holds` is true. `holds` must
/// be monotonic. Returns `None` if it is false for `high`.
pub fn least(mut low: f64, high: f64, holds: impl Fn(f64) -> bool) -> Option<f64> {
    let mut enough = high;
    if !holds(enough) {
        return None;
    }
    for _ in 0..HALVINGS {
        let middle = (low.ln() / 2.0 + enough.ln() / 2.0).exp();
        match holds(middle) {
            true => enough = middle,
            false => low = middle,
        }
    }
    Some(rounded_up(enough).min(high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_is_enough_and_accurate_to_two_digits() {
        for bound in [2.34e-7, 0.0451, 0.9, 99.9, 3.21e8] {
            let found = least(1e-9, 1e9, |x| x >= bound).unwrap();
            assert!(found >= bound && found <= 1.2 * bound, "{bound}: {found}");
        }
        assert_eq!(least(1e-9, 0.9, |_| false), None);
        assert_eq!(least(1e-300, 0.9, |x| x > 0.85), Some(0.86));
    }
}

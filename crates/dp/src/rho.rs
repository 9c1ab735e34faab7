//! Exact privacy costs: zCDP's rho as a fixed-point number.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Error;

/// A zCDP parameter rho (Bun and Steinke 2016) as an exact integer count of 2^-80.
///
/// Every cost is rounded *up* to the next count, and every budget *down*. Sums are exact, so they
/// bound the true total from above for any denominators. A count takes the same space after a
/// thousand releases as after one. Arithmetic is checked and stays below 2^48.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rho(u128);

impl Rho {
    /// No cost.
    pub const ZERO: Self = Self(0);

    /// The smallest positive cost: one count.
    pub const LEAST: Self = Self(1);

    /// Number of binary digits after the point.
    pub const FRACTION_BITS: u32 = 80;

    /// Returns `numerator / denominator`, rounded up.
    ///
    /// # Errors
    /// [`Error::Ratio`] if the denominator is zero or above 2^127, or the value is 2^48 or more.
    pub fn ratio_up(numerator: u128, denominator: u128) -> Result<Self, Error> {
        let fault = Error::Ratio(numerator, denominator);
        if denominator == 0 || denominator > 1 << 127 {
            return Err(fault);
        }
        // Long division: the remainder stays below the denominator, so doubling it fits into u128.
        let mut quotient = numerator / denominator;
        let mut remainder = numerator % denominator;
        if quotient >= 1 << (128 - Self::FRACTION_BITS) {
            return Err(fault);
        }
        for _ in 0..Self::FRACTION_BITS {
            remainder *= 2;
            let carry = u128::from(remainder >= denominator);
            remainder -= carry * denominator;
            quotient = quotient * 2 + carry;
        }
        let rounded = quotient.checked_add(u128::from(remainder > 0));
        rounded.map(Self).ok_or(fault)
    }

    /// Returns `value` (exactly the number that the double represents), rounded up.
    ///
    /// # Errors
    /// [`Error::Rho`] if `value` is negative, not finite, or 2^48 or more.
    pub fn from_f64_up(value: f64) -> Result<Self, Error> {
        Self::scale(value).map(|scaled| Self(scaled.ceil() as u128))
    }

    /// Returns `value` (exactly the number that the double represents), rounded down.
    ///
    /// # Errors
    /// [`Error::Rho`] if `value` is negative, not finite, or 2^48 or more.
    pub fn from_f64_down(value: f64) -> Result<Self, Error> {
        Self::scale(value).map(|scaled| Self(scaled.floor() as u128))
    }

    /// Returns `value * 2^80`. Only the exponent changes, so there is no rounding.
    fn scale(value: f64) -> Result<f64, Error> {
        if !(0.0..281_474_976_710_656.0).contains(&value) {
            return Err(Error::Rho(value));
        }
        Ok(value * 2f64.powi(Self::FRACTION_BITS as i32))
    }

    /// Returns one of `parts` equal shares, rounded down, or everything if `parts` is 0.
    pub fn share(self, parts: u32) -> Self {
        Self(self.0 / u128::from(parts.max(1)))
    }

    /// Returns the cost with this [`Rho::count`].
    pub fn from_count(count: u128) -> Self {
        Self(count)
    }

    /// Returns the cost times 2^80.
    pub fn count(self) -> u128 {
        self.0
    }

    /// Returns the nearest double, for display and planning.
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / 2f64.powi(Self::FRACTION_BITS as i32)
    }

    /// Returns `self + other`, or `None` if it reaches 2^48.
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    /// Returns `factor` times `self`, or `None` if it reaches 2^48.
    #[must_use]
    pub fn checked_mul(self, factor: u64) -> Option<Self> {
        self.0.checked_mul(u128::from(factor)).map(Self)
    }

    /// Returns `self - other`, or `None` below zero.
    #[must_use]
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).map(Self)
    }

    /// Returns the sum of `costs`, or `None` if it reaches 2^48.
    pub fn checked_sum(costs: impl IntoIterator<Item = Self>) -> Option<Self> {
        costs
            .into_iter()
            .try_fold(Self::ZERO, |sum, cost| sum.checked_add(cost))
    }
}

impl fmt::Display for Rho {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_f64().fmt(f)
    }
}

/// Serializes the decimal count of 2^-80 as a string, since JSON numbers cannot hold 128 bits.
impl Serialize for Rho {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Rho {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let count = text
            .parse()
            .map_err(|_| serde::de::Error::custom(Error::ParseRho))?;
        Ok(Self(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_round_up_by_less_than_one_count() {
        assert_eq!(Rho::ratio_up(1, 8).unwrap().0, 1 << 77);
        assert_eq!(Rho::ratio_up(0, 7).unwrap(), Rho::ZERO);
        for (numerator, denominator) in [(1u128, 3u128), (2, 3), (5, 7), (123_457, 1_000_003)] {
            let Rho(count) = Rho::ratio_up(numerator, denominator).unwrap();
            // count = ceil(2^80 a / b) exactly if b count exceeds 2^80 a by less than b.
            let excess = count * denominator - (numerator << 80);
            assert!(excess < denominator, "{numerator}/{denominator}");
        }
        let huge = 1u128 << 127;
        assert_eq!(Rho::ratio_up(huge - 1, huge).unwrap().0, 1 << 80);
    }

    #[test]
    fn out_of_range_costs_are_rejected() {
        assert!(matches!(Rho::ratio_up(1, 0), Err(Error::Ratio(1, 0))));
        assert!(matches!(Rho::ratio_up(1 << 48, 1), Err(Error::Ratio(..))));
        assert!(Rho::ratio_up((1 << 48) - 1, 1).is_ok());
        assert!(matches!(
            Rho::ratio_up(u128::MAX, (1 << 80) - 1),
            Err(Error::Ratio(..))
        ));
        assert!(matches!(Rho::ratio_up(1, u128::MAX), Err(Error::Ratio(..))));
        for value in [-1.0, f64::NAN, f64::INFINITY, 2f64.powi(48)] {
            assert!(matches!(Rho::from_f64_up(value), Err(Error::Rho(_))));
            assert!(matches!(Rho::from_f64_down(value), Err(Error::Rho(..))));
        }
        let most = Rho(u128::MAX);
        assert_eq!(most.checked_add(Rho(1)), None);
        assert_eq!(Rho(1).checked_sub(Rho(2)), None);
        assert_eq!(Rho::checked_sum([most, Rho(1)]), None);
    }

    #[test]
    fn doubles_are_converted_exactly_or_rounded_by_one_count() {
        assert_eq!(Rho::from_f64_up(0.1), Rho::from_f64_down(0.1));
        let tiny = 2f64.powi(-81);
        assert_eq!(Rho::from_f64_up(tiny).unwrap(), Rho(1));
        assert_eq!(Rho::from_f64_down(tiny).unwrap(), Rho(0));
        assert_eq!(Rho::from_f64_up(0.1).unwrap().to_f64(), 0.1);
    }

    #[test]
    fn rho_is_serialised_as_a_decimal_count() {
        let rho = Rho::ratio_up(1, 3).unwrap();
        let text = serde_json::to_string(&rho).unwrap();
        assert_eq!(text, format!("\"{}\"", rho.0));
        assert_eq!(serde_json::from_str::<Rho>(&text).unwrap(), rho);
        for text in ["\"-1\"", "\"0.5\""] {
            let refused = serde_json::from_str::<Rho>(text).unwrap_err().to_string();
            assert!(
                refused.starts_with(&Error::ParseRho.to_string()),
                "{refused}"
            );
        }
    }
}

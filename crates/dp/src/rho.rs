//! Exact privacy costs: zCDP's rho as a fixed-point number.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Error;

/// A zCDP parameter rho (Bun and Steinke 2016), exact: an integer count of 2^-80.
///
/// Every cost is rounded *up* to the next count when it is made and every budget *down*, so that
/// sums, which are exact, bound the true total from above whatever the denominators. A count
/// needs no more room after a thousand releases than after one; arithmetic is checked and stays
/// below 2^48.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rho(u128);

impl Rho {
    /// No cost.
    pub const ZERO: Self = Self(0);

    /// The least cost above none: one count.
    pub const LEAST: Self = Self(1);

    /// How many binary digits a count has after the point.
    pub const FRACTION_BITS: u32 = 80;

    /// `numerator / denominator`, rounded up.
    ///
    /// # Errors
    /// [`Error::Ratio`] if the denominator is zero or above 2^127, or the value 2^48 or more.
    pub fn ratio_up(numerator: u128, denominator: u128) -> Result<Self, Error> {
        let fault = Error::Ratio(numerator, denominator);
        if denominator == 0 || denominator > 1 << 127 {
            return Err(fault);
        }
        // Long division: the remainder stays below the denominator, so doubling it fits u128.
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

    /// `value` (exactly the number the double stands for), rounded up.
    ///
    /// # Errors
    /// [`Error::Rho`] if `value` is negative, not finite, or 2^48 or more.
    pub fn from_f64_up(value: f64) -> Result<Self, Error> {
        Self::scale(value).map(|scaled| Self(scaled.ceil() as u128))
    }

    /// `value` (exactly the number the double stands for), rounded down.
    ///
    /// # Errors
    /// [`Error::Rho`] if `value` is negative, not finite, or 2^48 or more.
    pub fn from_f64_down(value: f64) -> Result<Self, Error> {
        Self::scale(value).map(|scaled| Self(scaled.floor() as u128))
    }

    /// `value * 2^80`: a change of exponent alone, so without rounding.
    fn scale(value: f64) -> Result<f64, Error> {
        if !(0.0..281_474_976_710_656.0).contains(&value) {
            return Err(Error::Rho(value));
        }
        Ok(value * 2f64.powi(Self::FRACTION_BITS as i32))
    }

    /// One of `parts` equal shares, rounded down; everything where `parts` is 0.
    pub fn share(self, parts: u32) -> Self {
        Self(self.0 / u128::from(parts.max(1)))
    }

    /// The cost of a [`Rho::count`].
    pub fn from_count(count: u128) -> Self {
        Self(count)
    }

    /// The cost times 2^80.
    pub fn count(self) -> u128 {
        self.0
    }

    /// The nearest double, for display and for planning.
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / 2f64.powi(Self::FRACTION_BITS as i32)
    }

    /// `self + other`, or `None` at 2^48.
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    /// `factor` times `self`, or `None` at 2^48.
    #[must_use]
    pub fn checked_mul(self, factor: u64) -> Option<Self> {
        self.0.checked_mul(u128::from(factor)).map(Self)
    }

    /// `self - other`, or `None` below zero.
    #[must_use]
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).map(Self)
    }

    /// The sum of `costs`, or `None` at 2^48.
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

/// As the decimal count of 2^-80 in a string: JSON numbers do not carry 128 bits.
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
            // count = ceil(2^80 a / b) exactly when b count is within b above 2^80 a.
            let excess = count * denominator - (numerator << 80);
            assert!(excess < denominator, "{numerator}/{denominator}");
        }
        let huge = 1u128 << 127;
        assert_eq!(Rho::ratio_up(huge - 1, huge).unwrap().0, 1 << 80);
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
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
    fn doubles_convert_exactly_or_one_count_apart() {
        assert_eq!(Rho::from_f64_up(0.1), Rho::from_f64_down(0.1));
        let tiny = 2f64.powi(-81);
        assert_eq!(Rho::from_f64_up(tiny).unwrap(), Rho(1));
        assert_eq!(Rho::from_f64_down(tiny).unwrap(), Rho(0));
        assert_eq!(Rho::from_f64_up(0.1).unwrap().to_f64(), 0.1);
    }

    #[test]
    fn serialises_as_a_count() {
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

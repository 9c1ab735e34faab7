//! Composes the privacy costs of several uses of the same records.
//!
//! A use consists of an optional rho-zCDP part and an (epsilon, delta)-differentially private part.
//! Costs are composed by three rules, for one unit at a time:
//!
//! 1. The rhos of all uses are added, and the sum is converted to an epsilon at the given delta.
//! 2. That epsilon and delta, and the epsilons and deltas of all uses, are added (basic composition).
//! 3. A use counts twice if one unit equals two units of the use (group privacy of size two): 4 rho (Bun and Steinke
//!    2016, Proposition 27), or 2 epsilon with delta (1 + e^epsilon). A rho whose use also has a delta is converted
//!    first.
//!
//! All sums are rounded up.

use std::fmt;

use fhaim_dp::{
    Rho,
    accounting::{self, MAX_EPSILON},
};
use serde::{Deserialize, Serialize};

/// The difference between two tables that a guarantee hides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// One table has one more record.
    AddedOrRemoved,
    /// One record has other values.
    Replaced,
    /// One table has all records of one more party.
    Party,
}

impl Unit {
    /// All units, in the order in which they are reported.
    pub(super) const ALL: [Self; 3] = [Self::AddedOrRemoved, Self::Replaced, Self::Party];

    /// Returns how many differences of `self` make up one of `other`, or `None` if no number bounds it.
    ///
    /// A replaced record is one removed and one added. A party whose records differ is likewise one party removed and
    /// another added. A guarantee for records bounds nothing for a party, which may have any number of them.
    fn group(self, other: Self) -> Option<Group> {
        match (self, other) {
            (Self::AddedOrRemoved, Self::Replaced)
            | (Self::Party, Self::AddedOrRemoved | Self::Replaced) => Some(Group::Two),
            (Self::AddedOrRemoved | Self::Replaced, Self::Party)
            | (Self::Replaced, Self::AddedOrRemoved) => None,
            (Self::AddedOrRemoved, Self::AddedOrRemoved)
            | (Self::Replaced, Self::Replaced)
            | (Self::Party, Self::Party) => Some(Group::One),
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AddedOrRemoved => "a record added or removed",
            Self::Replaced => "a record replaced",
            Self::Party => "a party",
        })
    }
}

/// Group size for group privacy.
#[derive(Clone, Copy)]
enum Group {
    One,
    Two,
}

/// Privacy cost of one use.
#[derive(Clone, Debug, PartialEq)]
pub struct UseCost {
    pub(super) program: String,
    pub(super) unit: Unit,
    /// Epsilon of the part that rho does not cover.
    pub(super) epsilon: f64,
    /// Delta of the part that rho does not cover.
    pub(super) delta: f64,
    pub(super) rho: Option<Rho>,
}

impl UseCost {
    /// Returns the cost of rho-zCDP for a record added or removed.
    pub fn zcdp(program: &str, rho: Rho) -> Self {
        Self {
            rho: Some(rho),
            ..Self::approximate(program, Unit::AddedOrRemoved, 0.0, 0.0)
        }
    }

    /// Returns the cost of rho-zCDP that holds except for an event of probability `delta` (approximate zCDP).
    pub fn zcdp_but_for(program: &str, rho: Rho, delta: f64) -> Self {
        Self {
            rho: Some(rho),
            ..Self::approximate(program, Unit::AddedOrRemoved, 0.0, delta)
        }
    }

    /// Returns the cost of (epsilon, delta)-differential privacy. NaN or a number out of range stands for no privacy at
    /// all.
    pub fn approximate(program: &str, unit: Unit, epsilon: f64, delta: f64) -> Self {
        let known = |value: f64, most: f64| match value >= 0.0 && value <= most {
            true => value,
            false => most,
        };
        Self {
            program: program.to_owned(),
            unit,
            epsilon: known(epsilon, f64::MAX),
            delta: known(delta, 1.0),
            rho: None,
        }
    }

    /// Returns rho, if the use has one.
    pub fn rho(&self) -> Option<Rho> {
        self.rho
    }

    /// Returns the parts that add up for `unit`: rho, and (epsilon, delta). Returns `None` if the use bounds nothing
    /// for it.
    fn parts(&self, unit: Unit, delta: f64) -> Option<(Option<Rho>, (f64, f64))> {
        let own = (self.epsilon, self.delta);
        match (self.unit.group(unit)?, self.rho) {
            (Group::One, rho) => Some((rho, own)),
            (Group::Two, None) => Some((None, twice(own))),
            (Group::Two, Some(rho)) if own == (0.0, 0.0) => match rho.checked_mul(4) {
                Some(rho) => Some((Some(rho), own)),
                None => Some((None, (f64::INFINITY, 1.0))),
            },
            (Group::Two, Some(rho)) => {
                let of_rho = (epsilon_of(Some(rho), delta), delta);
                let all = (sum_up(own.0, of_rho.0), sum_up(own.1, of_rho.1));
                Some((None, twice(all)))
            }
        }
    }
}

/// Converts rho to epsilon. `None` stands for a sum above any budget and gives infinity.
fn epsilon_of(rho: Option<Rho>, delta: f64) -> f64 {
    let epsilon = rho.and_then(|rho| accounting::epsilon(rho, delta).ok());
    epsilon.unwrap_or(f64::INFINITY)
}

/// Applies group privacy of size two.
fn twice((epsilon, delta): (f64, f64)) -> (f64, f64) {
    if delta == 0.0 {
        return (2.0 * epsilon, 0.0);
    }
    let delta = delta * (1.0 + epsilon.exp()) * (1.0 + MARGIN);
    (2.0 * epsilon, delta.min(1.0))
}

/// Total cost of several uses, for one unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Total {
    pub epsilon: f64,
    pub delta: f64,
    /// Number of uses that bound nothing for the unit.
    pub uncounted: usize,
}

impl Total {
    /// Composes costs for `unit`. Converts rhos at `delta`.
    pub fn of(costs: &[&UseCost], unit: Unit, delta: f64) -> Self {
        let mut total = Self {
            epsilon: 0.0,
            delta: 0.0,
            uncounted: 0,
        };
        let mut rhos = Vec::new();
        for cost in costs {
            match cost.parts(unit, delta) {
                None => total.uncounted += 1,
                Some((rho, rest)) => {
                    rhos.extend(rho);
                    total.add(rest);
                }
            }
        }
        if !rhos.is_empty() {
            total.add((epsilon_of(Rho::checked_sum(rhos), delta), delta));
        }
        total
    }

    fn add(&mut self, (epsilon, delta): (f64, f64)) {
        self.epsilon = sum_up(self.epsilon, epsilon);
        self.delta = sum_up(self.delta, delta);
    }

    /// Whether the total bounds anything: above these numbers nothing is private.
    fn is_bound(&self) -> bool {
        self.epsilon <= MAX_EPSILON && self.delta < 1.0
    }
}

impl fmt::Display for Total {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_bound() {
            return f.write_str("unbounded epsilon");
        }
        let (epsilon, delta) = (decimals_up(self.epsilon, 3), digits_up(self.delta));
        write!(f, "epsilon {epsilon} at delta {delta}")
    }
}

/// Relative increase of an inexact product, far above its rounding error.
const MARGIN: f64 = 1e-11;

/// Returns the sum of two non-negative numbers, rounded up. The rounding error is exact (Knuth's two-sum).
fn sum_up(a: f64, b: f64) -> f64 {
    let sum = a + b;
    let added = sum - a;
    let lost = (a - (sum - added)) + (b - added);
    match lost > 0.0 {
        true => sum.next_up(),
        false => sum,
    }
}

/// Formats a number with `places` decimals, rounded up.
pub(super) fn decimals_up(value: f64, places: u8) -> String {
    let digits = usize::from(places);
    let text = format!("{value:.digits$}");
    match text.parse::<f64>() {
        Ok(shown) if shown < value => {
            let up = shown + 0.1f64.powi(places.into());
            format!("{up:.digits$}")
        }
        _ => text,
    }
}

/// Formats a number with three significant digits, rounded up.
pub(super) fn digits_up(value: f64) -> String {
    let text = format!("{value:.2e}");
    let parts = text.split_once('e');
    let unit = parts.and_then(|(_, exponent)| {
        let exponent: i32 = exponent.parse().ok()?;
        format!("1e{}", exponent - 2).parse::<f64>().ok()
    });
    let shown = match (text.parse::<f64>(), unit) {
        // `shown + unit` is not exact, but its first three digits are.
        (Ok(shown), Some(unit)) if shown < value => format!("{:.2e}", shown + unit),
        _ => text,
    };
    // Removes trailing zeros.
    shown
        .parse()
        .map_or(shown, |value: f64| format!("{value:e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn approximate(unit: Unit, epsilon: f64, delta: f64) -> UseCost {
        UseCost::approximate("p", unit, epsilon, delta)
    }

    fn zcdp(rho: f64) -> UseCost {
        UseCost::zcdp("p", Rho::from_f64_down(rho).unwrap())
    }

    fn of(costs: &[UseCost], unit: Unit, delta: f64) -> Total {
        let costs: Vec<&UseCost> = costs.iter().collect();
        Total::of(&costs, unit, delta)
    }

    /// 1/4 + 1/8 = 3/8 is converted once, which is far below the sum of the two epsilons.
    #[test]
    fn rhos_are_added_before_conversion() {
        let found = of(&[zcdp(0.25), zcdp(0.125)], Unit::AddedOrRemoved, 1e-6);
        let together = Rho::from_f64_down(0.375).unwrap();
        assert_eq!(found.epsilon, accounting::epsilon(together, 1e-6).unwrap());
        assert_eq!((found.delta, found.uncounted), (1e-6, 0));
    }

    /// 0.5 + 0.25 = 0.75, and 2^-20 + 2^-21 = 3 / 2^21.
    #[test]
    fn epsilons_and_deltas_without_rho_are_added() {
        let costs = [
            approximate(Unit::Party, 0.5, 1.0 / f64::from(1 << 20)),
            approximate(Unit::Party, 0.25, 1.0 / f64::from(1 << 21)),
        ];
        let found = of(&costs, Unit::Party, 1e-9);
        assert_eq!(found.epsilon, 0.75);
        assert_eq!(found.delta, 3.0 / f64::from(1 << 21));
    }

    /// The epsilon of rho 1/4 at 2^-20, plus 0.5; and 2^-20 + 2^-20 = 2^-19.
    #[test]
    fn uses_with_and_without_rho_are_added_after_conversion() {
        let small = 1.0 / f64::from(1 << 20);
        let costs = [zcdp(0.25), approximate(Unit::AddedOrRemoved, 0.5, small)];
        let found = of(&costs, Unit::AddedOrRemoved, small);
        let rho = Rho::from_f64_down(0.25).unwrap();
        let expected = accounting::epsilon(rho, small).unwrap() + 0.5;
        assert!(found.epsilon >= expected && found.epsilon < expected + 1e-12);
        assert_eq!(found.delta, 1.0 / f64::from(1 << 19));
    }

    /// A replaced record: 4 * 1/16 = 1/4.
    #[test]
    fn rho_is_quadrupled_for_a_replaced_record() {
        let found = of(&[zcdp(0.0625)], Unit::Replaced, 1e-6);
        let four = Rho::from_f64_down(0.25).unwrap();
        assert_eq!(found.epsilon, accounting::epsilon(four, 1e-6).unwrap());
        assert_eq!(found.delta, 1e-6);
    }

    /// ln 3 twice is ln 9 = 2.197225, and 1e-6 (1 + 3) = 4e-6.
    #[test]
    fn epsilon_is_doubled_for_a_replaced_record() {
        let cost = approximate(Unit::AddedOrRemoved, 3f64.ln(), 1e-6);
        let found = of(std::slice::from_ref(&cost), Unit::Replaced, 1e-9);
        assert!((found.epsilon - 2.197_224_577).abs() < 1e-9);
        assert!(found.delta >= 4e-6 && found.delta < 4.000_001e-6);
        let pure = approximate(Unit::AddedOrRemoved, 2000.0, 0.0);
        assert_eq!(of(&[pure], Unit::Replaced, 1e-9).delta, 0.0);
    }

    /// A party with one more record is one party removed and another added: ln 2 twice is ln 4 = 1.386295, and
    /// 1e-6 (1 + 2) = 3e-6.
    #[test]
    fn party_cost_is_doubled_for_a_record() {
        let cost = approximate(Unit::Party, 2f64.ln(), 1e-6);
        for unit in [Unit::AddedOrRemoved, Unit::Replaced] {
            let found = of(std::slice::from_ref(&cost), unit, 1e-9);
            assert!((found.epsilon - 1.386_294_361).abs() < 1e-9, "{unit}");
            assert!(found.delta >= 3e-6 && found.delta < 3.000_001e-6);
        }
    }

    /// Rho 1/4 at 1e-6 gives an epsilon, and 1e-6 is added to delta. Group privacy gives twice that epsilon and
    /// 2e-6 (1 + e^epsilon).
    #[test]
    fn rho_with_a_delta_is_converted_before_doubling() {
        let rho = Rho::from_f64_down(0.25).unwrap();
        let cost = UseCost::zcdp_but_for("p", rho, 1e-6);
        let once = of(std::slice::from_ref(&cost), Unit::AddedOrRemoved, 1e-6);
        let epsilon = accounting::epsilon(rho, 1e-6).unwrap();
        assert_eq!((once.epsilon, once.delta), (epsilon, 2e-6));
        let twice = of(std::slice::from_ref(&cost), Unit::Replaced, 1e-6);
        assert_eq!(twice.epsilon, 2.0 * epsilon);
        let delta = 2e-6 * (1.0 + epsilon.exp());
        assert!(twice.delta >= delta && twice.delta < delta * 1.000_001);
    }

    #[test]
    fn use_without_a_bound_for_a_unit_is_counted_separately() {
        let costs = [
            approximate(Unit::Replaced, 1.0, 1e-6),
            approximate(Unit::AddedOrRemoved, 2.0, 1e-6),
        ];
        let added = of(&costs, Unit::AddedOrRemoved, 1e-9);
        assert_eq!((added.epsilon, added.uncounted), (2.0, 1));
        let replaced = of(&costs, Unit::Replaced, 1e-9);
        // 1 + 2 * 2.
        assert_eq!((replaced.epsilon, replaced.uncounted), (5.0, 0));
        let party = of(&costs, Unit::Party, 1e-9);
        assert_eq!((party.epsilon, party.uncounted), (0.0, 2));
    }

    #[test]
    fn sums_are_rounded_up() {
        // 1 + 2^-60 lies between 1 and its neighbour.
        let tiny = 1.0 / (1u64 << 60) as f64;
        assert_eq!(sum_up(1.0, tiny), 1.0f64.next_up());
        assert_eq!(sum_up(tiny, 1.0), 1.0f64.next_up());
        assert_eq!(sum_up(1.0, 1.0), 2.0);
        assert_eq!(sum_up(f64::INFINITY, 1.0), f64::INFINITY);
    }

    #[test]
    fn printed_numbers_are_rounded_up() {
        for (value, expected) in [
            (1.0, "1.000"),
            (1.000_000_1, "1.001"),
            (0.9995, "1.000"),
            (0.1, "0.100"),
            (2.4994, "2.500"),
        ] {
            assert_eq!(decimals_up(value, 3), expected);
        }
        for (value, expected) in [
            (1e-9, "1e-9"),
            (1.000_001e-9, "1.01e-9"),
            (1.1e-5, "1.1e-5"),
            (9.991e-7, "1e-6"),
            (0.0, "0e0"),
        ] {
            assert_eq!(digits_up(value), expected);
        }
    }

    #[test]
    fn invalid_and_huge_costs_are_printed_as_unbounded() {
        let unbounded = "unbounded epsilon";
        for (epsilon, delta) in [
            (f64::NAN, 1e-6),
            (f64::INFINITY, 1e-6),
            (-1.0, 1e-6),
            (1.0, f64::NAN),
            (1.0, 1.0),
            (2e9, 0.0),
        ] {
            let cost = approximate(Unit::Party, epsilon, delta);
            assert!(cost.epsilon.is_finite() && cost.delta.is_finite());
            let total = of(&[cost], Unit::Party, 1e-9);
            assert_eq!(total.to_string(), unbounded, "{epsilon} {delta}");
        }
        let large = zcdp(2f64.powi(47));
        let total = of(&[large.clone(), large], Unit::AddedOrRemoved, 1e-9);
        assert_eq!(total.to_string(), unbounded);
    }
}

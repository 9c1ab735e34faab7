//! The FHAIM paper's polynomial approximation of |x|, which can be computed under encryption. Here
//! it runs in the clear.
//!
//! |x| is approximated by B P(x / B) with B = 10,000, where P is the least-squares polynomial of
//! degree 10 on [-1, 1]. The coefficients printed in the paper are illegible, so these were
//! computed again. P(0) is .0555: a cell without any difference counts as 555 records, and a cell
//! with a difference of 100 as 559. The score therefore depends mostly on the number of cells.
//!
//! Values are integers. So is the largest step between neighbouring differences, which is found by
//! comparing all values and not by a derivation. Selections are therefore drawn and paid for
//! exactly.

/// The range B.
const RANGE: u64 = 10_000;

/// Coefficients of the even powers, from the constant up.
const COEFFICIENTS: [f64; 6] = [
    0.055_515_3,
    3.608_493_8,
    -12.028_312_7,
    24.537_757_9,
    -23.786_602_0,
    8.633_655_5,
];

/// Values are multiples of 1 / [`SCALE`].
const SCALE: f64 = 4096.0;

/// The polynomial's values at all possible differences.
#[derive(Clone, Debug)]
pub(super) struct Polynomial {
    values: Vec<i128>,
}

impl Polynomial {
    /// Returns the values at differences up to a public bound, and at most B. Larger differences
    /// count as the last one, which changes no value by more than a step.
    pub(super) fn up_to(bound: u64) -> Self {
        let value = |difference: u64| {
            let square = (difference as f64 / RANGE as f64).powi(2);
            let rest = COEFFICIENTS.iter().rev();
            let value = rest.fold(0.0, |sum, coefficient| sum * square + coefficient);
            (RANGE as f64 * value * SCALE).round() as i128
        };
        Self {
            values: (0..=bound.min(RANGE)).map(value).collect(),
        }
    }

    /// Returns the value at a difference.
    pub(super) fn value(&self, difference: u64) -> i128 {
        let last = self.values.len() - 1;
        // Never empty, because there is a value at 0.
        self.values[usize::try_from(difference).map_or(last, |d| d.min(last))]
    }

    /// Converts a number of records to the unit of values.
    pub(super) fn scaled(&self, records: f64) -> i128 {
        (records * SCALE).round() as i128
    }

    /// Returns the largest change of a value when the difference grows by 1.
    pub(super) fn step(&self) -> u64 {
        let steps = self.values.windows(2).map(|pair| match pair {
            [one, next] => (next - one).unsigned_abs(),
            _ => 0,
        });
        // At most 2^12 times the largest slope, which is below 4.
        steps.max().map_or(1, |step| step.max(1) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn score_equals_the_papers_and_its_steps_its_slopes() {
        let all = Polynomial::up_to(u64::MAX);
        let records = |difference| all.value(difference) as f64 / SCALE;
        assert_eq!(records(0).round(), 555.0);
        assert_eq!(records(100).round(), 559.0);
        assert_eq!(all.value(10_000), all.value(u64::MAX));
        for (bound, slope) in [(285, 0.205), (768, 0.533), (7214, 1.194)] {
            let step = Polynomial::up_to(bound).step() as f64 / SCALE;
            assert!((step - slope).abs() < 1e-3, "{bound}: {step}");
        }
        assert_eq!(Polynomial::up_to(0).step(), 1);
    }

    /// Changing any coefficient increases the squared error over [-1, 1], so the polynomial is the
    /// least-squares one.
    #[test]
    fn coefficients_are_the_least_squares_solution() {
        let error = |coefficients: &[f64; 6]| -> f64 {
            let points = 20_000;
            (0..points)
                .map(|n| {
                    let x = (f64::from(n) + 0.5) / f64::from(points);
                    let powers = coefficients.iter().rev();
                    let value = powers.fold(0.0, |sum, c| sum * x * x + c);
                    (value - x).powi(2) / f64::from(points)
                })
                .sum()
        };
        let least = error(&COEFFICIENTS);
        for (power, by) in (0..6).flat_map(|power| [(power, 1e-3), (power, -1e-3)]) {
            let mut moved = COEFFICIENTS;
            moved[power] += by;
            assert!(error(&moved) > least, "{power} {by}");
        }
    }
}

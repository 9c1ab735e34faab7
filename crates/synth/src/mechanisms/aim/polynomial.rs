//! The FHAIM paper's polynomial for |x|: what it can work out under encryption, here in the clear.
//!
//! |x| is taken as B P(x / B) with B = 10,000 and P the least squares of degree 10 on [-1, 1]. The printed coefficients
//! are illegible; these are worked out anew. P(0) is .0555: a cell without any difference counts as 555 records, and
//! one with a difference of 100 as 559, so what is scored is mostly how many cells there are.
//!
//! Values are integers, and so is the largest step between neighbouring differences, which is looked up and not
//! derived: a selection is drawn and paid for exactly.

/// B.
const RANGE: u64 = 10_000;

/// Coefficients of the even powers, from the constant on.
const COEFFICIENTS: [f64; 6] = [
    0.055_515_3,
    3.608_493_8,
    -12.028_312_7,
    24.537_757_9,
    -23.786_602_0,
    8.633_655_5,
];

/// What values are counted in: 2^-12.
const SCALE: f64 = 4096.0;

/// The polynomial at all differences that there may be.
#[derive(Clone, Debug)]
pub(super) struct Polynomial {
    values: Vec<i128>,
}

impl Polynomial {
    /// At differences up to a public bound, and at most B: larger ones count as that, which moves no value by more
    /// than a step.
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

    /// The value at a difference.
    pub(super) fn value(&self, difference: u64) -> i128 {
        let last = self.values.len() - 1;
        // Never empty: there is a value at 0.
        self.values[usize::try_from(difference).map_or(last, |d| d.min(last))]
    }

    /// A number of records as values are counted.
    pub(super) fn scaled(&self, records: f64) -> i128 {
        (records * SCALE).round() as i128
    }

    /// The most that a difference larger by one moves a value.
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
    fn it_is_the_papers_and_its_steps_are_its_slopes() {
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

    /// It is the least squares: no coefficient can be moved without a larger error over [-1, 1].
    #[test]
    fn its_coefficients_are_the_least_squares() {
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

//! The noise of the released counts of each attribute.

use fhaim_release::{Axis, Statistic};

/// Noise of a run's releases: the number of records, and the counts of each attribute's values.
///
/// It follows from the variances that the run asked for, and from no released number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AttributeNoise {
    /// Standard deviation of the number of records, if it was released.
    pub total: Option<f64>,
    /// Standard deviation of the count of one value of each attribute. `None` for an attribute whose counts were
    /// not released.
    pub counts: Vec<Option<f64>>,
}

/// Sum of the precisions (inverse variances) of independent measurements of the same number.
#[derive(Clone, Copy, Default)]
struct Precision(f64);

impl Precision {
    fn add(&mut self, variance: f64) {
        if variance > 0.0 {
            self.0 += 1.0 / variance;
        }
    }

    fn variance(self) -> Option<f64> {
        (self.0 > 0.0).then(|| 1.0 / self.0)
    }
}

impl AttributeNoise {
    /// Computes the noise for a schema of `attributes` attributes. Each release has a statistic and the variance of
    /// all holders' noise together.
    ///
    /// Several releases of an attribute's counts are combined by their precision. Counts that follow from a pair are
    /// used only for an attribute whose own counts were not released.
    pub fn of<'a>(
        attributes: usize,
        releases: impl IntoIterator<Item = (&'a Statistic, f64)> + Clone,
    ) -> Self {
        let mut total = Precision::default();
        for (statistic, variance) in releases.clone() {
            if *statistic == Statistic::Total {
                total.add(variance);
            }
        }
        let total = total.variance();
        let mut single = vec![Precision::default(); attributes];
        let mut paired = single.clone();
        let add = |to: &mut [Precision], axis: &Axis, variance: f64| {
            let variance = count_variance(axis, variance, total);
            if let (Some(to), Some(variance)) = (to.get_mut(axis.attribute), variance) {
                to.add(variance);
            }
        };
        for (statistic, variance) in releases {
            match statistic {
                Statistic::OneWay(axis) => add(&mut single, axis, variance),
                // The counts of one attribute are sums over the other one's values.
                Statistic::Product(a, b) if is_one_hot(a) && is_one_hot(b) => {
                    add(&mut paired, a, variance * b.len() as f64);
                    add(&mut paired, b, variance * a.len() as f64);
                }
                _ => {}
            }
        }
        let both = single.into_iter().zip(paired);
        let variances = both.map(|(single, paired)| single.variance().or(paired.variance()));
        Self {
            total: total.map(f64::sqrt),
            counts: variances.map(|variance| variance.map(f64::sqrt)).collect(),
        }
    }
}

/// Returns the variance of the count of one value that follows from functions of an attribute with noise of this
/// variance. `total` is the variance of the number of records. Returns `None` for functions that do not determine the
/// counts.
///
/// docs/MECHANISM.md, C, has the functions: indicators times a factor, centred indicators, and the contrast of two
/// values.
fn count_variance(axis: &Axis, variance: f64, total: Option<f64>) -> Option<f64> {
    let functions = axis.functions.as_slice();
    if let [contrast] = functions
        && contrast.as_slice() == [1, -1]
    {
        // count = (total + contrast) / 2
        return Some((total? + variance) / 4.0);
    }
    let (own, other) = diagonal(functions)?;
    // value = (own - other) count + other total
    let total = match other {
        0 => 0.0,
        _ => total? * (other as f64).powi(2),
    };
    Some((variance + total) / ((own - other) as f64).powi(2))
}

/// Returns the value on the diagonal and the value elsewhere of functions that have only these two values.
fn diagonal(functions: &[Vec<i64>]) -> Option<(i64, i64)> {
    let first = functions.first()?;
    let own = *first.first()?;
    let other = first.get(1).copied().unwrap_or(0);
    let is_diagonal = functions.iter().enumerate().all(|(f, function)| {
        let expected = |x: usize| if x == f { own } else { other };
        function.len() == functions.len()
            && function
                .iter()
                .enumerate()
                .all(|(x, &value)| value == expected(x))
    });
    (is_diagonal && own != other).then_some((own, other))
}

fn is_one_hot(axis: &Axis) -> bool {
    matches!(diagonal(&axis.functions), Some((own, 0)) if own > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn centred(size: i64) -> Axis {
        let function = |f| {
            (0..size)
                .map(|x| if x == f { size - 1 } else { -1 })
                .collect()
        };
        Axis {
            attribute: 0,
            functions: (0..size).map(function).collect(),
        }
    }

    fn noise(releases: &[(Statistic, f64)]) -> AttributeNoise {
        AttributeNoise::of(
            2,
            releases
                .iter()
                .map(|(statistic, variance)| (statistic, *variance)),
        )
    }

    #[test]
    fn indicators_have_the_noise_of_the_release() {
        let found = noise(&[(Statistic::OneWay(Axis::identity(0, 3)), 100.0)]);
        assert_eq!(found.counts, [Some(10.0), None]);
        assert_eq!(found.total, None);
    }

    #[test]
    fn indicators_times_a_factor_have_less_noise() {
        let mut axis = Axis::identity(0, 3);
        axis.functions
            .iter_mut()
            .flatten()
            .for_each(|value| *value *= 16);
        let found = noise(&[(Statistic::OneWay(axis), 256.0 * 25.0)]);
        assert_eq!(found.counts[0], Some(5.0));
    }

    /// value = 3 count - total: count has variance (900 + 81) / 9 = 109.
    #[test]
    fn centred_indicators_have_the_noise_of_release_and_total() {
        let releases = [
            (Statistic::OneWay(centred(3)), 900.0),
            (Statistic::Total, 81.0),
        ];
        let found = noise(&releases);
        assert_eq!(found.total, Some(9.0));
        assert!((found.counts[0].unwrap().powi(2) - 109.0).abs() < 1e-9);
        assert_eq!(noise(&releases[..1]).counts[0], None);
    }

    #[test]
    fn contrasts_of_two_values_have_half_of_both_noises() {
        let axis = Axis {
            attribute: 1,
            functions: vec![vec![1, -1]],
        };
        let found = noise(&[(Statistic::Total, 64.0), (Statistic::OneWay(axis), 36.0)]);
        assert_eq!(found.counts, [None, Some(5.0)]);
    }

    #[test]
    fn repeated_releases_are_combined_by_precision() {
        let one = Statistic::OneWay(Axis::identity(0, 2));
        let found = noise(&[(one.clone(), 100.0), (one, 100.0)]);
        assert!((found.counts[0].unwrap().powi(2) - 50.0).abs() < 1e-9);
    }

    /// A count of one attribute is the sum of four cells with variance 25.
    #[test]
    fn pairs_count_only_for_attributes_without_counts() {
        let pair = Statistic::Product(Axis::identity(0, 3), Axis::identity(1, 4));
        let one = Statistic::OneWay(Axis::identity(1, 4));
        let found = noise(&[(pair, 25.0), (one, 9.0)]);
        assert_eq!(found.counts, [Some(10.0), Some(3.0)]);
    }
}

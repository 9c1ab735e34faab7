//! How likely a model deems records that it was not made from.

use serde::Serialize;

/// The negative log-likelihood of held-out records.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Likelihood {
    /// Mean of -ln p(x) over all records, in nats; infinite where a record is impossible.
    pub mean: f64,
    /// Mean of -ln p(x) over the records that are possible; absent where none is.
    pub mean_of_possible: Option<f64>,
    /// Records that the model deems impossible.
    pub impossible: usize,
    /// All records.
    pub records: usize,
}

/// The negative log-likelihood of records from their log densities, ln p(x), one for each.
pub fn likelihood(log_densities: &[f64]) -> Likelihood {
    let records = log_densities.len();
    let possible = log_densities.iter().filter(|density| density.is_finite());
    let (sum, found) = possible.fold((0.0, 0usize), |(sum, n), density| (sum - density, n + 1));
    let mean_of_possible = (found > 0).then(|| sum / found as f64);
    let impossible = records - found;
    Likelihood {
        mean: match mean_of_possible {
            Some(mean) if impossible == 0 => mean,
            _ => f64::INFINITY,
        },
        mean_of_possible,
        impossible,
        records,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_over_all_records_and_impossible_ones_make_it_infinite() {
        let fair = likelihood(&[0.5f64.ln(), 0.25f64.ln()]);
        assert!((fair.mean - 1.5 * 2f64.ln()).abs() < 1e-12);
        assert_eq!((fair.impossible, fair.records), (0, 2));
        let refused = likelihood(&[0.5f64.ln(), f64::NEG_INFINITY]);
        assert_eq!((refused.mean, refused.impossible), (f64::INFINITY, 1));
        assert!((refused.mean_of_possible.unwrap_or(0.0) - 2f64.ln()).abs() < 1e-12);
        assert_eq!(likelihood(&[]).mean_of_possible, None);
    }
}

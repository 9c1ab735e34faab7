//! The likelihood of held-out records under a model.

use serde::Serialize;

/// The negative log-likelihood of held-out records.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Likelihood {
    /// Mean of -ln p(x) over all records, in nats; infinite if the model gives a record probability zero.
    pub mean: f64,
    /// Mean of -ln p(x) over the records of positive probability; `None` without such records.
    pub mean_of_possible: Option<f64>,
    /// Number of records to which the model gives probability zero.
    pub impossible: usize,
    /// Number of all records.
    pub records: usize,
}

/// Returns the negative log-likelihood of records, from the log density ln p(x) of each.
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
    fn mean_is_infinite_when_a_record_is_impossible() {
        let fair = likelihood(&[0.5f64.ln(), 0.25f64.ln()]);
        assert!((fair.mean - 1.5 * 2f64.ln()).abs() < 1e-12);
        assert_eq!((fair.impossible, fair.records), (0, 2));
        let refused = likelihood(&[0.5f64.ln(), f64::NEG_INFINITY]);
        assert_eq!((refused.mean, refused.impossible), (f64::INFINITY, 1));
        assert!((refused.mean_of_possible.unwrap_or(0.0) - 2f64.ln()).abs() < 1e-12);
        assert_eq!(likelihood(&[]).mean_of_possible, None);
    }
}

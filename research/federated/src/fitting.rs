//! Fits of the model, and the conversion of noisy sums to measurements.

use fhaim_domain::Clique;
use fhaim_pgm::{FitOptions, Measurement, Model, Passes, fit_once};
use fhaim_release::UNIT_VARIANCE;

use crate::setting::TOLERANCES;
use crate::{Accounting, Error, FederatedSetting};

/// Bytes that a fit may use for each byte of the model's cap; the same as in `fhaim-synth`.
const FIT_BYTES_PER_MODEL_BYTE: usize = 64;

/// Bytes that a fit or a marginal may use even if the cap is small. The score of three attributes that are far apart in
/// a small model needs a table over all attributes between them, and that table is not part of the model.
const LEAST_BYTES: usize = 1 << 30;

/// The stage of a run at which the model is fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Between = 0,
    Last = 1,
}

/// Fits a model of `total` records.
pub(crate) fn fit_model(
    setting: &FederatedSetting,
    measurements: &[Measurement],
    total: f64,
    stage: Stage,
    warm: Option<&Model>,
) -> Result<Model, Error> {
    let cap = setting.job.model_bytes;
    let options = FitOptions {
        steps: setting.fit_steps[stage as usize],
        tolerance: TOLERANCES[stage as usize],
        // As AIM does: a run with a single party must give the same integers.
        passes: Passes::Contractions,
        total: Some(total),
        max_bytes: cap
            .saturating_mul(FIT_BYTES_PER_MODEL_BYTE)
            .max(LEAST_BYTES),
        ..FitOptions::default()
    };
    // Each round measures other parties, so the measurements differ by more than their noise.
    Ok(fit_once(&setting.job.domain, measurements, &options, warm)?)
}

/// Scales a noisy sum for the fit of a model of `total` records: y N/n for the `records` n behind it. If the method
/// weights measurements by records, the deviation is scaled too, for a weight of (n / sigma)^2; otherwise it is kept.
/// Under [`Accounting::Printed`], values are scaled by the sum of the noisy cells, of either sign and at least 1 in size.
/// So is the deviation, unless the method reads the pooled table: it then knows the exact n (FLAIM, Algorithm 1,
/// line 16).
pub(crate) fn measurement(
    setting: &FederatedSetting,
    clique: &Clique,
    sum: &[i64],
    variance_units: u64,
    (records, total): (f64, f64),
) -> Measurement {
    let summed = match setting.accounting {
        Accounting::Corrected => records,
        Accounting::Printed => match sum.iter().sum::<i64>() {
            0 => 1.0,
            noisy => noisy as f64,
        },
    };
    let weighed = match setting.method.is_private() {
        true => summed,
        false => records,
    };
    let sigma = (UNIT_VARIANCE as f64 * variance_units as f64).sqrt();
    let sigma = match setting.method.weighs_records() {
        true => sigma * (total / weighed).abs(),
        false => sigma,
    };
    let values = sum.iter().map(|&y| y as f64 * (total / summed)).collect();
    Measurement::cells(clique.clone(), values, sigma)
}

/// Returns the L1 distance of two tables.
pub(crate) fn l1(one: &[f64], two: &[f64]) -> f64 {
    one.iter().zip(two).map(|(x, y)| (x - y).abs()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Method;
    use fhaim_domain::Domain;
    use fhaim_release::MechanismJob;

    /// Measures 100 records, whose noisy cells add up to 80, for a model of 1000 records. Returns the first value, and
    /// the deviation in units of the noise's.
    fn measured(method: Method, accounting: Accounting) -> (f64, f64) {
        let rho = fhaim_dp::accounting::rho(1.0, 1e-5).unwrap();
        let job = MechanismJob::new(Domain::new(vec![2]), rho, 1 << 20);
        let setting = FederatedSetting {
            accounting,
            ..FederatedSetting::new(job, method)
        };
        let clique = Clique::new([0]);
        let measured = measurement(&setting, &clique, &[90, -10], 1, (100.0, 1000.0));
        (
            measured.values[0],
            measured.sigma / (UNIT_VARIANCE as f64).sqrt(),
        )
    }

    /// FLAIM, Algorithm 1, line 16: the weight has the exact number of records for AugFLAIM (Oracle), and the sum of the
    /// noisy cells for AugFLAIM (Private).
    #[test]
    fn printed_weight_of_the_oracle_has_the_exact_number_of_records() {
        for (method, accounting, expected) in [
            (Method::Naive, Accounting::Printed, (1125.0, 1.0)),
            (Method::AugOracle, Accounting::Printed, (1125.0, 10.0)),
            (
                Method::AugOracleCombined,
                Accounting::Printed,
                (1125.0, 10.0),
            ),
            (Method::AugPrivate, Accounting::Printed, (1125.0, 12.5)),
            (Method::AugOracle, Accounting::Corrected, (900.0, 10.0)),
            (Method::AugPrivate, Accounting::Corrected, (900.0, 10.0)),
        ] {
            let (value, deviation) = measured(method, accounting);
            assert!((value - expected.0).abs() < 1e-9, "{method}: {value}");
            assert!(
                (deviation - expected.1).abs() < 1e-9,
                "{method}: {deviation}"
            );
        }
    }
}

//! Fits of the model, and what of a noisy sum the fit sees.

use fhaim_domain::Clique;
use fhaim_pgm::{FitOptions, Measurement, Model, Passes, fit_once};
use fhaim_release::UNIT_VARIANCE;

use crate::setting::TOLERANCES;
use crate::{Error, FederatedSetting};

/// Bytes that a fit may take for each byte of the model's cap, as `fhaim-synth` has it.
const FIT_BYTES_PER_MODEL_BYTE: usize = 64;

/// What a fit or a marginal may take however small the cap is: the score of three attributes that are far apart in a small
/// model looks at a table of all that lies between them, which is no part of the model.
const LEAST_BYTES: usize = 1 << 30;

/// Which fit it is.
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
        // As AIM's, which a party alone must be integer for integer.
        passes: Passes::Contractions,
        total: Some(total),
        max_bytes: cap
            .saturating_mul(FIT_BYTES_PER_MODEL_BYTE)
            .max(LEAST_BYTES),
        ..FitOptions::default()
    };
    // Each round measures other parties, so that the measurements differ by more than their noise.
    Ok(fit_once(&setting.job.domain, measurements, &options, warm)?)
}

/// A noisy sum for the fit of a model of `total` records: y N/n for the `records` n behind it. Its deviation is
/// scaled alike where measurements weigh by records (weight (n / sigma)^2), and kept where they do not.
pub(crate) fn measurement(
    clique: &Clique,
    sum: &[i64],
    variance_units: u64,
    (records, total): (f64, f64),
    weighs_records: bool,
) -> Measurement {
    let scale = total / records;
    let sigma = (UNIT_VARIANCE as f64 * variance_units as f64).sqrt();
    let sigma = if weighs_records { sigma * scale } else { sigma };
    let values = sum.iter().map(|&y| y as f64 * scale).collect();
    Measurement::cells(clique.clone(), values, sigma)
}

/// L1 distance of two tables.
pub(crate) fn l1(one: &[f64], two: &[f64]) -> f64 {
    one.iter().zip(two).map(|(x, y)| (x - y).abs()).sum()
}

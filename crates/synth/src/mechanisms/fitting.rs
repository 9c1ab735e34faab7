//! Fits of the graphical model, between releases and at the end: what all mechanisms share.

use fhaim_pgm::{FitOptions, Measurement, Model, fit};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::desk::Desk;
use crate::error::Unfitted;
use fhaim_release::Job;

/// The fit may take so many bytes for each byte of the junction tree: potentials, beliefs,
/// gradients and messages beside it.
const FIT_BYTES_PER_MODEL_BYTE: usize = 64;

/// A mechanism's last fit takes so many steps: with more the loss still falls a little, the workload
/// error does not.
pub const FINAL_STEPS: usize = 200;

/// A mechanism's last fit ends early below this tolerance.
pub(super) const FINAL_TOLERANCE: f64 = 1e-4;

/// A fit combines so many of its past steps where terms name no other number.
pub(super) const FIT_MEMORY: usize = 10;

/// Upper bound on the steps of a fit that options may ask for: a run of public options must end.
const MAX_STEPS: usize = 100_000;

/// What each step of a fit passes over. The last digits of a model depend on it, and with them what a run asks for
/// next: a run that is played again from its answers needs the way that it began with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Passes {
    /// A table for every clique of the junction tree, as in terms that name none.
    #[default]
    Tables,
    /// Products of matrices: several times as fast where cliques are large.
    Contractions,
}

impl Passes {
    /// Terms that mean it do not name it.
    pub(super) fn is_tables(&self) -> bool {
        *self == Self::Tables
    }
}

impl From<Passes> for fhaim_pgm::Passes {
    fn from(passes: Passes) -> Self {
        match passes {
            Passes::Tables => Self::Tables,
            Passes::Contractions => Self::Contractions,
        }
    }
}

/// What a fit may take, and how it takes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effort {
    pub steps: usize,
    pub tolerance: f64,
    pub passes: Passes,
    /// Steps that the search combines.
    pub memory: usize,
}

impl Effort {
    /// A fit by tables.
    pub fn by_tables(steps: usize, tolerance: f64) -> Self {
        Self {
            steps,
            tolerance,
            passes: Passes::Tables,
            memory: FIT_MEMORY,
        }
    }
}

/// Fits a model within a job's cap. The releases of `desk` become part of the error where the model is too far from what
/// was measured.
pub(super) fn fit_job(
    job: &Job,
    desk: &Desk,
    measurements: &[Measurement],
    effort: Effort,
    warm_start: Option<&Model>,
) -> Result<Model, Error> {
    fit_to_total(job, desk, measurements, None, effort, warm_start)
}

/// As [`fit_job`], with the number of records of the model given.
pub(super) fn fit_to_total(
    job: &Job,
    desk: &Desk,
    measurements: &[Measurement],
    total: Option<f64>,
    effort: Effort,
    warm_start: Option<&Model>,
) -> Result<Model, Error> {
    let options = FitOptions {
        steps: effort.steps,
        tolerance: effort.tolerance,
        passes: effort.passes.into(),
        memory: effort.memory,
        total,
        max_bytes: job.model_bytes.saturating_mul(FIT_BYTES_PER_MODEL_BYTE),
    };
    fit(&job.domain, measurements, &options, warm_start).map_err(|error| match error {
        fhaim_pgm::Error::Unexplained {
            loss,
            values,
            attributes,
        } => Error::Unfitted(Box::new(Unfitted {
            loss,
            values,
            attributes,
            releases: desk.settled().to_vec(),
            spent: desk.spent(),
        })),
        other => other.into(),
    })
}

/// Checks the options that every mechanism has for its fits.
pub(super) fn check_fits(steps: usize, tolerance: f64, final_steps: usize) -> Result<(), Error> {
    let steps_fit = |steps: usize| (1..=MAX_STEPS).contains(&steps);
    let range = "from 1 to 100000";
    check("fit_steps", range, steps as f64, steps_fit(steps))?;
    check(
        "final_steps",
        range,
        final_steps as f64,
        steps_fit(final_steps),
    )?;
    let fits = tolerance > 0.0 && tolerance < 1.0;
    check("fit_tolerance", "between 0 and 1", tolerance, fits)
}

/// [`Error::Option`] unless the value `fits` its range.
pub(super) fn check(
    name: &'static str,
    range: &'static str,
    value: f64,
    fits: bool,
) -> Result<(), Error> {
    if fits {
        Ok(())
    } else {
        Err(Error::Option { name, range, value })
    }
}

//! The problem that a fit solves: a loss over the marginals of potentials.

use crate::calibration::Calibration;
use crate::observations::Observations;
use crate::propagation::{Beliefs, Propagation};
use crate::resolution::Folding;

/// The loss of potentials' marginals, with the measurements and the calibration.
pub(crate) struct Problem<'a> {
    pub calibration: Calibration<'a>,
    pub observations: Observations,
    /// Converts between the potentials of the measured cliques and of the tree, if they differ.
    folding: Option<Folding>,
    total: f64,
    /// Number of measured values.
    pub values: usize,
    /// Calibrations so far.
    pub evaluations: usize,
}

/// Potentials with their marginals and loss.
#[derive(Clone)]
pub(crate) struct Point {
    pub potentials: Vec<f64>,
    /// Marginals of the potentials' cliques. There are as many cells as potentials.
    pub marginals: Vec<f64>,
    /// The measured views, before centring.
    pub merged: Vec<f64>,
    /// Differences of the centred views from the measurements, in units of sigma.
    pub residuals: Vec<f64>,
    pub loss: f64,
}

impl<'a> Problem<'a> {
    /// Returns a problem. The potentials of `calibration` must be those of the observations'
    /// cliques, in the same order, or those that `folding` converts them to.
    pub fn new(
        calibration: Calibration<'a>,
        observations: Observations,
        folding: Option<Folding>,
        total: f64,
        values: usize,
    ) -> Self {
        Self {
            calibration,
            observations,
            folding,
            total,
            values,
            evaluations: 0,
        }
    }

    /// Returns the loss that noise accounts for: half of the number of measured values.
    pub fn noise_loss(&self) -> f64 {
        0.5 * self.values as f64
    }

    /// Returns the tables of `potentials`, which must be those of the last evaluation.
    pub fn into_tables(mut self, potentials: &[f64]) -> (Propagation, Beliefs) {
        let folding = self.folding.as_mut();
        (self.calibration).into_tables(folding, potentials, self.total)
    }

    /// Returns an unevaluated point.
    pub fn point(&self, potentials: Vec<f64>) -> Point {
        Point {
            marginals: vec![0.0; potentials.len()],
            merged: vec![0.0; self.observations.values()],
            residuals: vec![0.0; self.observations.values()],
            loss: f64::NAN,
            potentials,
        }
    }

    /// Calibrates a point's potentials, and sets its marginals, residuals and loss.
    pub fn evaluate(&mut self, point: &mut Point) {
        self.evaluations += 1;
        self.calibration.calibrate_folded(
            self.folding.as_mut(),
            &point.potentials,
            self.total,
            &mut point.marginals,
        );
        point.loss =
            self.observations
                .residuals(&point.marginals, &mut point.merged, &mut point.residuals);
    }
}

//! Loss of a logistic regression, and its minimisation.

use argmin::{
    core::{CostFunction, Executor, Gradient, State},
    solver::{linesearch::MoreThuenteLineSearch, quasinewton::LBFGS},
};
use fhaim_domain::Table;

use super::Features;
use crate::Error;

/// Weight of the penalty: the loss is the sum of log losses + PENALTY / 2 ||w||^2, without the intercept.
/// Scikit-learn's and linfa's logistic regressions have the same default.
const PENALTY: f64 = 1.0;

/// Maximum number of L-BFGS steps.
const MAX_STEPS: u64 = 500;
/// Number of vectors that L-BFGS keeps.
const MEMORY: usize = 10;

/// Norm of the gradient, per record, at which the fit stops.
const TOLERANCE_PER_RECORD: f64 = 1e-6;

/// The loss of a binary problem as a function of the weights.
pub(super) struct Loss<'a> {
    pub(super) features: &'a Features,
    pub(super) table: &'a Table,
    pub(super) positive: &'a [bool],
}

impl CostFunction for Loss<'_> {
    type Param = Vec<f64>;
    type Output = f64;

    fn cost(&self, weights: &Vec<f64>) -> Result<f64, argmin::core::Error> {
        let scores = self.features.scores(self.table, weights);
        let log_loss: f64 = scores
            .iter()
            .zip(self.positive)
            .map(|(&score, &positive)| softplus(if positive { -score } else { score }))
            .sum();
        let penalised = &weights[..self.features.weights];
        Ok(log_loss + PENALTY / 2.0 * penalised.iter().map(|w| w * w).sum::<f64>())
    }
}

impl Gradient for Loss<'_> {
    type Param = Vec<f64>;
    type Gradient = Vec<f64>;

    fn gradient(&self, weights: &Vec<f64>) -> Result<Vec<f64>, argmin::core::Error> {
        let mut residuals = self.features.scores(self.table, weights);
        for (residual, &positive) in residuals.iter_mut().zip(self.positive) {
            *residual = sigmoid(*residual) - f64::from(u8::from(positive));
        }
        let mut gradient: Vec<f64> = weights.iter().map(|w| PENALTY * w).collect();
        gradient[self.features.weights] = residuals.iter().sum();
        for &(attribute, offset) in &self.features.columns {
            for (residual, &code) in residuals.iter().zip(self.table.column(attribute)) {
                gradient[offset + code as usize] += residual;
            }
        }
        Ok(gradient)
    }
}

/// Returns log(1 + e^x) without overflow.
fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

pub(super) fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Returns the weights with the least loss, found by L-BFGS (Nocedal and Wright 2006, section 7.2) from `start`.
///
/// # Errors
/// [`Error::Optimiser`] if the optimiser fails.
pub(super) fn minimise(
    table: &Table,
    features: &Features,
    positive: &[bool],
    start: Vec<f64>,
) -> Result<Vec<f64>, Error> {
    let failed = |error: argmin::core::Error| Error::Optimiser(error.to_string());
    let solver = LBFGS::new(MoreThuenteLineSearch::new(), MEMORY)
        .with_tolerance_grad(TOLERANCE_PER_RECORD * positive.len() as f64)
        .map_err(failed)?;
    let loss = Loss {
        features,
        table,
        positive,
    };
    let result = Executor::new(loss, solver)
        .configure(|state| state.param(start).max_iters(MAX_STEPS))
        .run()
        .map_err(failed)?;
    let weights = result.state().get_best_param();
    let weights = weights.ok_or_else(|| Error::Optimiser("it found no weights".to_owned()))?;
    Ok(weights.clone())
}

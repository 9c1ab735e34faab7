//! Mirror descent.

use crate::observations::Observations;
use crate::propagation::{Beliefs, Propagation};
use crate::{FitOptions, FitReport};

/// A loss over the marginals that potentials give.
pub(crate) struct Problem {
    propagation: Propagation,
    observations: Observations,
    beliefs: Beliefs,
    total: f64,
}

/// Marginals of the potentials' cliques, the loss there and its gradient.
struct Evaluation {
    marginals: Vec<f64>,
    gradient: Vec<f64>,
    loss: f64,
}

impl Problem {
    /// The potentials of `propagation` are those of the observations' cliques, in the same order,
    /// and then any others.
    pub fn new(propagation: Propagation, observations: Observations, total: f64) -> Self {
        Self {
            beliefs: propagation.beliefs(),
            propagation,
            observations,
            total,
        }
    }

    /// The beliefs are those of the last evaluation.
    pub fn into_parts(self) -> (Propagation, Beliefs) {
        (self.propagation, self.beliefs)
    }

    fn evaluate(&mut self, potentials: &[f64]) -> Evaluation {
        let mut marginals = vec![0.0; potentials.len()];
        self.propagation
            .calibrate(potentials, self.total, &mut self.beliefs, &mut marginals);
        let mut gradient = vec![0.0; self.observations.len()];
        let loss = self
            .observations
            .loss(&marginals[..gradient.len()], &mut gradient);
        Evaluation {
            marginals,
            gradient,
            loss,
        }
    }
}

/// Minimises the loss by mirror descent with entropy (McKenna et al. 2019, Algorithm 1): a step
/// subtracts a multiple of the gradient from the potentials, halved until the loss falls enough.
pub(crate) fn minimise(
    problem: &mut Problem,
    mut potentials: Vec<f64>,
    options: &FitOptions,
) -> (Vec<f64>, FitReport) {
    let mut here = problem.evaluate(&potentials);
    let mut steps = 1;
    let largest = here.gradient.iter().fold(0.0, |m: f64, g| m.max(g.abs()));
    let mut rate = if largest > 0.0 { 1.0 / largest } else { 0.0 };
    while steps < options.steps && rate > 0.0 {
        let mut next = potentials.clone();
        next.iter_mut()
            .zip(&here.gradient)
            .for_each(|(p, g)| *p -= rate * g);
        let there = problem.evaluate(&next);
        steps += 1;
        let moved: f64 = (here
            .gradient
            .iter()
            .zip(&here.marginals)
            .zip(&there.marginals))
        .map(|((g, a), b)| g * (a - b))
        .sum();
        if here.loss - there.loss >= 0.5 * moved {
            let fall = here.loss - there.loss;
            let done = fall <= options.tolerance * here.loss;
            (potentials, here) = (next, there);
            rate *= 1.5;
            if done {
                break;
            }
        } else {
            rate *= 0.5;
        }
    }
    let here = problem.evaluate(&potentials);
    let report = FitReport {
        loss: here.loss,
        steps: steps + 1,
        seconds: 0.0,
    };
    (potentials, report)
}

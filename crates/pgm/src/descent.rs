//! Mirror descent with entropy, accelerated by the memory of its steps.
//!
//! A mirror step subtracts a multiple of the loss's gradient (taken in the marginals) from the
//! potentials (McKenna et al. 2019, Algorithm 1). Mirror steps without acceleration need thousands
//! of steps.
//!
//! Residuals are affine in the marginals, so past steps show how residuals respond to potentials.
//! Anderson's method (Walker and Ni, "Anderson acceleration for fixed-point iterations", SIAM J.
//! Numer. Anal. 2011, the unconstrained form) first combines past steps so that the predicted
//! residuals are least. It then takes a step down the gradient that is predicted there.
//!
//! A start far from the measurements is first brought close by proximal steps (`proximal`).
//!
//! The search tries three steps, and takes the first that lowers the loss:
//! 1. combined, with each value's share of the gradient divided by its own curvature. This is close
//!    to Newton's method where cells are large compared to their noise. It is tried rarely if it
//!    keeps failing;
//! 2. combined, down the gradient as it is;
//! 3. down the gradient only, shortened until the loss falls by half of the predicted fall.

use std::collections::VecDeque;

use crate::problem::{Point, Problem};
use crate::{Ending, Error, FitOptions, FitReport, kernel, proximal};

/// Relative amount, of the largest diagonal entry, that is added to the diagonal of the
/// least-squares problem.
const RIDGE: f64 = 1e-5;

/// Number of accepted steps over which the fall of the loss decides whether to continue.
const WINDOW: usize = 10;

/// Largest depth of a warm start's potential below the largest potential of its table.
///
/// An earlier fit drives the weight of a cell towards zero if its measurements say that the cell is
/// empty. Far enough down, the weight underflows, and no search brings it back. Smaller depths lose
/// more of the warm start's knowledge.
const WARM_DEPTH: f64 = 20.0;

/// Returns the bytes that minimising takes in addition to calibration, with `cells` cells in the
/// measured marginals: potentials, marginals, views and residuals of two points, the combination,
/// and the `memory` of past steps.
pub(crate) fn bytes(cells: usize, memory: usize) -> Option<usize> {
    let tables = memory.checked_mul(2)?.checked_add(2 * 4 + 3)?;
    cells.checked_mul(tables.checked_mul(size_of::<f64>())?)
}

/// Minimises the loss from `start` on. Returns the point found, which was calibrated last, and a
/// report of the search.
pub(crate) fn minimise(
    problem: &mut Problem<'_>,
    mut start: Vec<f64>,
    options: &FitOptions,
) -> Result<(Point, FitReport), Error> {
    raise(problem, &mut start);
    let mut here = problem.point(start);
    problem.evaluate(&mut here);
    if !here.loss.is_finite() {
        return Err(Error::LossOverflow);
    }
    let enough = problem.noise_loss();
    if here.loss > enough {
        // The search below gets the rest of the steps.
        let limit = options.steps / 2;
        here = proximal::approach(problem, here, enough, options.memory, limit);
    }
    let ending = search(problem, &mut here, options);
    let report = FitReport {
        loss: here.loss,
        values: problem.values,
        ending,
        steps: problem.evaluations,
        work: problem.calibration.work,
        ..FitReport::default()
    };
    Ok((here, report))
}

/// Runs accelerated mirror descent from `here` on. Before and after the search, the last
/// calibration is that of `here`.
fn search(problem: &mut Problem<'_>, here: &mut Point, options: &FitOptions) -> Ending {
    let mut next = here.clone();
    let mut search = Search::new(problem, here, options.memory);
    let mut losses = VecDeque::from([here.loss]);
    // The last evaluation is reserved for the end.
    let limit = options.steps.saturating_sub(1);
    let ending = loop {
        if problem.evaluations >= limit {
            break Ending::OutOfSteps;
        }
        if !search.step(problem, here, &mut next, limit) {
            break match problem.evaluations >= limit {
                true => Ending::OutOfSteps,
                false => Ending::Stuck,
            };
        }
        search.memory.push(here, &next);
        std::mem::swap(here, &mut next);
        losses.push_back(here.loss);
        if losses.len() > WINDOW
            && let Some(before) = losses.pop_front()
            && has_converged(problem, before, here.loss, options.tolerance)
        {
            break Ending::Converged;
        }
    };
    if !search.at_accepted {
        problem.evaluate(here);
    }
    ending
}

/// Checks whether noise accounts for the loss, and the last fall of the loss is small.
fn has_converged(problem: &Problem<'_>, before: f64, loss: f64, tolerance: f64) -> bool {
    let noise = problem.noise_loss();
    loss <= noise && before - loss <= tolerance * noise
}

/// Raises potentials to at most [`WARM_DEPTH`] below the largest of their table.
fn raise(problem: &Problem<'_>, potentials: &mut [f64]) {
    for range in &problem.observations.ranges {
        let table = &mut potentials[range.clone()];
        let lowest = kernel::max(table) - WARM_DEPTH;
        for x in table {
            *x = x.max(lowest);
        }
    }
}

/// The state of the search between steps.
struct Search {
    memory: Memory,
    scaled: ScaledStep,
    /// Length of a mirror step.
    rate: f64,
    /// Whether the last evaluation was that of the last accepted point.
    at_accepted: bool,
    /// Combined potentials, and the residuals predicted there.
    combined: Vec<f64>,
    predicted: Vec<f64>,
    scratch: Vec<f64>,
}

/// The schedule and the length of steps along the scaled gradient.
struct ScaledStep {
    rate: f64,
    /// Number of steps to skip after a failure, doubled by each failure.
    pause: usize,
    left: usize,
}

impl ScaledStep {
    /// Curvature is taken to be at least 1 / (FLOOR sigma).
    const FLOOR: f64 = 0.3;
    const RATES: (f64, f64) = (0.05, 1.0);
    const MAX_PAUSE: usize = 64;

    fn due(&mut self) -> bool {
        let due = self.left == 0;
        self.left = self.left.saturating_sub(1);
        due
    }

    fn judge(&mut self, success: bool) {
        if success {
            self.rate = (self.rate * 1.2).min(Self::RATES.1);
            self.pause = 1;
        } else {
            self.rate = (self.rate * 0.5).max(Self::RATES.0);
            self.left = self.pause;
            self.pause = (self.pause * 2).min(Self::MAX_PAUSE);
        }
    }
}

impl Search {
    fn new(problem: &Problem<'_>, start: &Point, memory: usize) -> Self {
        let (slope, curvature) = problem
            .observations
            .steepest(&start.residuals, &start.merged);
        Self {
            memory: Memory {
                most: memory.max(1),
                ..Memory::default()
            },
            scaled: ScaledStep {
                rate: 0.2,
                pause: 1,
                left: 0,
            },
            // At first, no potential moves by more than about 1.
            rate: 1.0 / slope.max(curvature).max(f64::MIN_POSITIVE),
            at_accepted: true,
            combined: Vec::new(),
            predicted: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Sets `next` to a point with a lower loss. Returns `false` if none was found in `limit`
    /// evaluations.
    fn step(
        &mut self,
        problem: &mut Problem<'_>,
        here: &Point,
        next: &mut Point,
        limit: usize,
    ) -> bool {
        self.memory
            .combine(here, &mut self.combined, &mut self.predicted);
        if self.scaled.due() {
            next.potentials.clone_from(&self.combined);
            problem.observations.descend_scaled(
                &self.predicted,
                &here.merged,
                (self.scaled.rate, ScaledStep::FLOOR),
                &mut next.potentials,
                &mut self.scratch,
            );
            let success = self.try_at(problem, here, next);
            self.scaled.judge(success);
            if success {
                return true;
            }
        }
        if !self.memory.is_empty() && problem.evaluations < limit {
            next.potentials.clone_from(&self.combined);
            let (residuals, rate) = (&self.predicted, self.rate);
            problem
                .observations
                .descend(residuals, rate, &mut next.potentials);
            if self.try_at(problem, here, next) {
                return true;
            }
            self.memory.forget_half();
        }
        self.mirror_step(problem, here, next, limit)
    }

    /// Evaluates `next`. Returns whether its loss is lower.
    fn try_at(&mut self, problem: &mut Problem<'_>, here: &Point, next: &mut Point) -> bool {
        problem.evaluate(next);
        self.at_accepted = next.loss < here.loss;
        self.at_accepted
    }

    /// Takes a plain mirror step, halved until the loss falls by at least half of the linear
    /// prediction.
    fn mirror_step(
        &mut self,
        problem: &mut Problem<'_>,
        here: &Point,
        next: &mut Point,
        limit: usize,
    ) -> bool {
        while problem.evaluations < limit {
            next.potentials.clone_from(&here.potentials);
            problem
                .observations
                .descend(&here.residuals, self.rate, &mut next.potentials);
            let unmoved = next.potentials == here.potentials;
            let lower = self.try_at(problem, here, next);
            // Residuals are affine in marginals, so the prediction is the gradient times the move.
            let predicted = kernel::dot(&here.residuals, &here.residuals)
                - kernel::dot(&here.residuals, &next.residuals);
            if lower && here.loss - next.loss >= 0.5 * predicted {
                self.rate *= 1.3;
                return true;
            }
            self.at_accepted = false;
            if unmoved {
                break;
            }
            self.rate *= 0.5;
        }
        false
    }
}

/// The last steps: the changes of potentials, and the resulting changes of residuals.
#[derive(Default)]
struct Memory {
    /// Largest number of steps that are kept.
    most: usize,
    moves: VecDeque<(Vec<f64>, Vec<f64>)>,
    /// Inner products of the residuals' changes, one row for each change.
    products: VecDeque<VecDeque<f64>>,
    /// Inner products of the residuals' changes with the residuals after the last change.
    slopes: VecDeque<f64>,
}

impl Memory {
    fn is_empty(&self) -> bool {
        self.moves.is_empty()
    }

    /// Stores the step from `here` to `next`, and drops the oldest step if the memory is full.
    fn push(&mut self, here: &Point, next: &Point) {
        let (mut potentials, mut residuals) = match self.moves.len() {
            n if n >= self.most => self.pop().unwrap_or_default(),
            _ => Default::default(),
        };
        difference(&next.potentials, &here.potentials, &mut potentials);
        difference(&next.residuals, &here.residuals, &mut residuals);
        self.moves.push_back((potentials, residuals));
        let Some((_, new)) = self.moves.back() else {
            return;
        };
        let row: VecDeque<f64> = self
            .moves
            .iter()
            .map(|(_, r)| kernel::dot(r, new))
            .collect();
        // The residuals have changed by the new step, and so have their products with older
        // changes.
        self.slopes
            .iter_mut()
            .zip(&row)
            .for_each(|(slope, x)| *slope += x);
        self.slopes.push_back(kernel::dot(&next.residuals, new));
        for (older, &x) in self.products.iter_mut().zip(&row) {
            older.push_back(x);
        }
        self.products.push_back(row);
    }

    fn pop(&mut self) -> Option<(Vec<f64>, Vec<f64>)> {
        self.products.pop_front();
        for row in &mut self.products {
            row.pop_front();
        }
        self.slopes.pop_front();
        self.moves.pop_front()
    }

    /// Drops the older half of the steps, at least one.
    fn forget_half(&mut self) {
        for _ in 0..self.moves.len().div_ceil(2) {
            self.pop();
        }
    }

    /// Adds to `here` the combination of past steps whose predicted residuals are least.
    fn combine(&self, here: &Point, potentials: &mut Vec<f64>, residuals: &mut Vec<f64>) {
        potentials.clone_from(&here.potentials);
        residuals.clone_from(&here.residuals);
        let right = self.slopes.iter().map(|slope| -slope).collect();
        let shares = solve_ridge(&self.products, right);
        let terms = || shares.iter().copied().zip(&self.moves);
        kernel::combine(
            potentials,
            &terms().map(|(share, (moved, _))| (share, &moved[..])),
        );
        kernel::combine(
            residuals,
            &terms().map(|(share, (_, moved))| (share, &moved[..])),
        );
    }
}

fn difference(a: &[f64], b: &[f64], to: &mut Vec<f64>) {
    to.clear();
    to.extend(a.iter().zip(b).map(|(a, b)| a - b));
}

/// Solves (A + ridge I) x = b for a small positive semidefinite A by a Cholesky decomposition.
/// Returns zeros if the decomposition breaks down.
fn solve_ridge(a: &VecDeque<VecDeque<f64>>, mut b: Vec<f64>) -> Vec<f64> {
    let n = b.len();
    let ridge = RIDGE * (0..n).map(|i| a[i][i]).fold(0.0, f64::max);
    let mut lower = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..=i {
            let product: f64 = (0..j).map(|k| lower[i * n + k] * lower[j * n + k]).sum();
            if i == j {
                let pivot = a[i][i] + ridge - product;
                if !(pivot > 0.0 && pivot.is_finite()) {
                    return vec![0.0; n];
                }
                lower[i * n + i] = pivot.sqrt();
            } else {
                lower[i * n + j] = (a[i][j] - product) / lower[j * n + j];
            }
        }
    }
    for i in 0..n {
        let product: f64 = (0..i).map(|k| lower[i * n + k] * b[k]).sum();
        b[i] = (b[i] - product) / lower[i * n + i];
    }
    for i in (0..n).rev() {
        let product: f64 = (i + 1..n).map(|k| lower[k * n + i] * b[k]).sum();
        b[i] = (b[i] - product) / lower[i * n + i];
    }
    b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ridge_solution_satisfies_its_equations() {
        let a: VecDeque<VecDeque<f64>> = [[4.0, 2.0, 0.4], [2.0, 5.0, 1.0], [0.4, 1.0, 3.0]]
            .map(VecDeque::from)
            .into();
        let b = vec![1.0, -2.0, 0.5];
        let x = solve_ridge(&a, b.clone());
        for i in 0..3 {
            let product: f64 = (0..3).map(|j| a[i][j] * x[j]).sum();
            assert!((product + 5.0 * RIDGE * x[i] - b[i]).abs() < 1e-12);
        }
    }

    #[test]
    fn zero_and_nan_systems_give_zeros() {
        let nan: VecDeque<VecDeque<f64>> = [VecDeque::from([f64::NAN])].into();
        assert_eq!(solve_ridge(&nan, vec![1.0]), [0.0]);
        let zero: VecDeque<VecDeque<f64>> = [VecDeque::from([0.0])].into();
        assert_eq!(solve_ridge(&zero, vec![1.0]), [0.0]);
        assert!(solve_ridge(&VecDeque::new(), vec![]).is_empty());
    }
}

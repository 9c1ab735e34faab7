//! Proximal steps with entropy, which bring a start that is far from the measurements close to
//! them.
//!
//! A step from a distribution q of N records approximately minimises loss(p) + N KL(p || q) over p.
//! The next step starts at p (Censor and Zenios, "Proximal minimization algorithm with
//! D-functions", J. Optim. Theory Appl. 1992). The entropy keeps p close to q where the
//! measurements tell little, and no cell of q is out of reach.
//!
//! The dual of a step is smooth and convex, with one variable lambda for each measured value. Let A map marginals to
//! measured values in units of their noise. Then p has the potentials of q minus A' lambda, and the dual's gradient is
//! lambda - r for the residuals r of p. L-BFGS minimises the dual (Nocedal and Wright, "Numerical Optimization", 2006,
//! Algorithm 7.4). Its first matrix is diagonal, as if the measured values were independent counts.

use std::collections::VecDeque;

use crate::kernel;
use crate::problem::{Point, Problem};

/// A step ends once the dual's gradient is at most this share of the residuals, in length.
const GRADIENT_SHARE: f64 = 0.5;

/// The approach ends after a step that keeps more than this share of the loss, because mirror
/// descent is then faster.
const KEPT_LOSS: f64 = 0.9;

/// Largest difference between two changes of potentials of the same table in an iteration. Beyond
/// it, the quadratic model does not hold.
const MAX_SPREAD: f64 = 3.0;

/// An iteration is shortened while the dual's slope at its end is above this share of the slope at its start.
const MAX_RISE: f64 = 0.5;

/// Largest number of lengths that an iteration tries.
const MAX_TRIES: usize = 20;

/// A point of the dual, with its primal point.
struct Dual {
    lambda: Vec<f64>,
    gradient: Vec<f64>,
    point: Point,
}

impl Dual {
    /// Returns the dual at the beginning of a step from `point`.
    fn new(point: Point) -> Self {
        Self {
            lambda: vec![0.0; point.residuals.len()],
            gradient: point.residuals.iter().map(|r| -r).collect(),
            point,
        }
    }

    /// Checks whether the dual is close enough to its minimum to end the step.
    fn is_nearly_minimal(&self) -> bool {
        let residuals = &self.point.residuals;
        let most = GRADIENT_SHARE * GRADIENT_SHARE * kernel::dot(residuals, residuals);
        kernel::dot(&self.gradient, &self.gradient) < most
    }
}

/// A step in progress.
struct Step<'p, 'a> {
    problem: &'p mut Problem<'a>,
    /// Potentials of q.
    base: Vec<f64>,
    history: History,
    /// Number of evaluations of the problem after which the step ends.
    limit: usize,
}

/// Moves `here` until the loss is at most `enough` or falls slowly, or the problem has been
/// evaluated `limit` times. Remembers `memory` iterations. The returned point was evaluated last.
pub(crate) fn approach(
    problem: &mut Problem<'_>,
    mut here: Point,
    enough: f64,
    memory: usize,
    limit: usize,
) -> Point {
    while here.loss > enough && problem.evaluations < limit {
        let before = here.loss;
        let step = Step {
            base: here.potentials.clone(),
            history: History::new(memory),
            limit,
            problem,
        };
        here = step.take(here, enough);
        if here.loss > KEPT_LOSS * before {
            break;
        }
    }
    here
}

/// The error of an iteration for which no length was short enough.
struct Failed;

impl Step<'_, '_> {
    /// Takes the step from `here`. Ends early if the loss is at most `enough`.
    fn take(mut self, here: Point, enough: f64) -> Point {
        let mut here = Dual::new(here);
        while here.point.loss > enough
            && !here.is_nearly_minimal()
            && self.problem.evaluations < self.limit
        {
            let Ok(next) = self.iterate(&here) else {
                // The last evaluation was that of a rejected point.
                self.problem.evaluate(&mut here.point);
                break;
            };
            self.history.push(&here, &next);
            here = next;
        }
        here.point
    }

    fn evaluate(&mut self, lambda: Vec<f64>) -> Dual {
        let mut potentials = self.base.clone();
        (self.problem.observations).descend(&lambda, 1.0, &mut potentials);
        let mut point = self.problem.point(potentials);
        self.problem.evaluate(&mut point);
        let values = point.residuals.iter().zip(&lambda);
        Dual {
            gradient: values.map(|(r, lambda)| lambda - r).collect(),
            lambda,
            point,
        }
    }

    /// Returns the next point along the direction of L-BFGS.
    ///
    /// The dual is convex, so it falls along the way as long as its slope is negative. The search
    /// computes only the slope, because the value of the dual would take another pass.
    fn iterate(&mut self, here: &Dual) -> Result<Dual, Failed> {
        let direction = self.direction(here);
        let slope = kernel::dot(&direction, &here.gradient);
        let mut length = (MAX_SPREAD / self.spread(&direction)).min(1.0);
        for _ in 0..MAX_TRIES {
            let values = here.lambda.iter().zip(&direction);
            let next = self.evaluate(values.map(|(lambda, d)| lambda + length * d).collect());
            let rise = kernel::dot(&direction, &next.gradient);
            if rise <= MAX_RISE * slope.abs() {
                return Ok(next);
            }
            if self.problem.evaluations >= self.limit {
                break;
            }
            // The zero of the line through both slopes.
            let zero = slope.abs() / (slope.abs() + rise);
            length *= zero.clamp(0.1, 0.7);
        }
        Err(Failed)
    }

    /// Returns a direction in which the dual falls.
    fn direction(&mut self, here: &Dual) -> Vec<f64> {
        let observations = &self.problem.observations;
        let precondition = |values: &mut [f64]| {
            observations.precondition(&here.point.merged, values);
        };
        let direction = self.history.direction(&here.gradient, precondition);
        if kernel::dot(&direction, &here.gradient) < 0.0 {
            return direction;
        }
        self.history.clear();
        self.history.direction(&here.gradient, precondition)
    }

    /// Returns the largest difference between two changes of potentials of the same table, along a
    /// whole iteration.
    fn spread(&self, direction: &[f64]) -> f64 {
        let mut change = vec![0.0; self.base.len()];
        (self.problem.observations).descend(direction, 1.0, &mut change);
        let ranges = self.problem.observations.ranges.iter();
        let spread = |table: &[f64]| {
            let (least, most) = (table.iter()).fold((f64::MAX, f64::MIN), |(least, most), &x| {
                (least.min(x), most.max(x))
            });
            most - least
        };
        let spreads = ranges.map(|range| spread(&change[range.clone()]));
        spreads.fold(f64::MIN_POSITIVE, f64::max)
    }
}

/// An iteration of L-BFGS: changes of lambda and of the gradient, and their inner product.
struct Change {
    lambda: Vec<f64>,
    gradient: Vec<f64>,
    product: f64,
}

/// The last iterations of L-BFGS.
struct History {
    changes: VecDeque<Change>,
    most: usize,
}

impl History {
    fn new(most: usize) -> Self {
        Self {
            changes: VecDeque::new(),
            most: most.max(1),
        }
    }

    fn clear(&mut self) {
        self.changes.clear();
    }

    /// Stores an iteration, and drops the oldest one if the memory is full. Iterations without
    /// curvature are skipped.
    fn push(&mut self, here: &Dual, next: &Dual) {
        let difference = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a - b).collect();
        let lambda: Vec<f64> = difference(&next.lambda, &here.lambda);
        let gradient: Vec<f64> = difference(&next.gradient, &here.gradient);
        let product = kernel::dot(&lambda, &gradient);
        if product > f64::EPSILON * kernel::dot(&gradient, &gradient) {
            if self.changes.len() == self.most {
                self.changes.pop_front();
            }
            self.changes.push_back(Change {
                lambda,
                gradient,
                product,
            });
        }
    }

    /// Returns minus the approximate inverse Hessian times `gradient`. `precondition` applies the
    /// first matrix.
    fn direction(&self, gradient: &[f64], precondition: impl Fn(&mut [f64])) -> Vec<f64> {
        let mut direction: Vec<f64> = gradient.iter().map(|g| -g).collect();
        let mut shares = Vec::with_capacity(self.changes.len());
        for change in self.changes.iter().rev() {
            let share = kernel::dot(&change.lambda, &direction) / change.product;
            kernel::combine(
                &mut direction,
                &std::iter::once((-share, &change.gradient[..])),
            );
            shares.push(share);
        }
        precondition(&mut direction);
        for (change, share) in self.changes.iter().zip(shares.iter().rev()) {
            let other = kernel::dot(&change.gradient, &direction) / change.product;
            kernel::combine(
                &mut direction,
                &std::iter::once((share - other, &change.lambda[..])),
            );
        }
        direction
    }
}

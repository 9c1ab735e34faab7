//! Prior covariance of log shares.

use super::state_space::{Factor, Process};
use super::vectors::{add, dot};

/// Covariance of the log shares, apart from the variation of each category by itself.
///
/// It is the sum of a smooth function of the place and a parabola. The exponential of a parabola is
/// a geometric or a normal distribution.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Standard deviation of the smooth function, a Matérn process of order 3/2; 0 for none.
    pub(super) smooth: f64,
    /// Length of the smooth function, as a share of the axis.
    pub(super) length: f64,
    /// Standard deviation of the coefficients of a line and a parabola; 0 for none.
    pub(super) parabola: f64,
}

/// Covariance K = v I + M + T T' of n log shares.
///
/// v is the variance of each category by itself, M the covariance of the smooth function, and the
/// columns of T, the trends, are a line and a parabola.
#[derive(Debug)]
pub(super) struct Covariance {
    variance: f64,
    process: Option<Process>,
    trends: Vec<Vec<f64>>,
}

impl Covariance {
    /// Creates the covariance of `n` log shares; `variation` is the standard deviation of each
    /// category by itself.
    pub(super) fn new(n: usize, variation: f64, shape: &Shape) -> Self {
        let spacing = 1.0 / n as f64;
        let process =
            (shape.smooth > 0.0).then(|| Process::new(shape.smooth, shape.length, spacing));
        let trends = if shape.parabola > 0.0 {
            // Middles of n equal parts of -1..1.
            let places: Vec<f64> = (0..n).map(|i| (2 * i + 1) as f64 * spacing - 1.0).collect();
            let trend = |polynomial: fn(f64) -> f64| {
                let values = places
                    .iter()
                    .map(|&place| shape.parabola * polynomial(place));
                values.collect()
            };
            vec![trend(|x| x), trend(|x| 1.5 * x * x - 0.5)]
        } else {
            Vec::new()
        };
        Self {
            variance: variation * variation,
            process,
            trends,
        }
    }

    /// Returns K x.
    pub(super) fn product(&self, x: &[f64]) -> Vec<f64> {
        let mut sum: Vec<f64> = x.iter().map(|x| self.variance * x).collect();
        if let Some(process) = &self.process {
            process.add_product(x, &mut sum);
        }
        for trend in &self.trends {
            add(&mut sum, dot(trend, x), trend);
        }
        sum
    }
}

/// The matrix N = (K + Q^-1)^-1 for a covariance K and a diagonal Q, factorised.
///
/// N is the precision of observed log shares whose noise has precisions Q. The trends of K are added
/// one by one with the Sherman-Morrison formula.
#[derive(Debug)]
pub(super) struct Marginal {
    factor: Factor,
    trends: Vec<Trend>,
}

/// A column of T, whitened.
#[derive(Debug)]
struct Trend {
    whitened: Whitened,
    /// 1 plus the product of `whitened` with itself.
    pivot: f64,
}

/// A vector that is prepared for products with N: see [`Marginal::whiten`].
#[derive(Debug)]
pub(super) struct Whitened {
    cells: Vec<f64>,
    /// Coefficients of the trends that `cells` does not contain.
    coefficients: Vec<f64>,
}

impl Whitened {
    /// Adds `by` times `other`.
    pub(super) fn add(&mut self, by: f64, other: &Self) {
        add(&mut self.cells, by, &other.cells);
        add(&mut self.coefficients, by, &other.coefficients);
    }
}

impl Marginal {
    /// Factorises N for the entries of Q, `precisions`; `None` if a pivot is not positive and
    /// finite.
    pub(super) fn new(covariance: &Covariance, precisions: &[f64]) -> Option<Self> {
        let mut marginal = Self {
            factor: Factor::new(covariance.process, covariance.variance, precisions)?,
            trends: Vec::new(),
        };
        for trend in &covariance.trends {
            let whitened = marginal.whiten(trend);
            let pivot = 1.0 + marginal.product(&whitened, &whitened);
            if !(pivot > 0.0 && pivot.is_finite()) {
                return None;
            }
            marginal.trends.push(Trend { whitened, pivot });
        }
        Some(marginal)
    }

    /// Prepares `x` for products with N.
    pub(super) fn whiten(&self, x: &[f64]) -> Whitened {
        let mut white = Whitened {
            cells: self.factor.solve_lower(x),
            coefficients: Vec::new(),
        };
        for trend in &self.trends {
            let coefficient = self.product(&trend.whitened, &white) / trend.pivot;
            white.add(-coefficient, &trend.whitened);
            white.coefficients.push(coefficient);
        }
        white
    }

    /// Returns x' N y.
    pub(super) fn product(&self, x: &Whitened, y: &Whitened) -> f64 {
        self.factor.product(&x.cells, &y.cells) + dot(&x.coefficients, &y.coefficients)
    }

    /// Returns N x.
    pub(super) fn apply(&self, x: &Whitened) -> Vec<f64> {
        self.factor.solve_upper(&x.cells)
    }

    /// Returns the logarithm of the determinant of I + K Q.
    pub(super) fn log_determinant(&self) -> f64 {
        let trends = self.trends.iter().map(|trend| trend.pivot.ln());
        self.factor.log_determinant() + trends.sum::<f64>()
    }
}

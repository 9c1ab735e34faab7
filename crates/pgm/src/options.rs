//! Options and reports of fits.

use std::iter::Sum;
use std::ops::Add;

/// The kind of passes of a fit's steps. Both kinds give the same models, except for rounding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Passes {
    /// Passes over the tables of all cliques of the junction tree.
    #[default]
    Tables,
    /// Products of smaller tables, which are many times faster with large cliques.
    Contractions,
}

/// The options of a fit.
#[derive(Clone, Debug, PartialEq)]
pub struct FitOptions {
    /// Largest number of calibrations of the junction tree.
    pub steps: usize,
    /// The fit ends when noise accounts for the loss, and the loss falls by at most this share of
    /// the loss that noise accounts for.
    pub tolerance: f64,
    /// Number of records of the model. `None` estimates it, at least 1, by inverse variance from
    /// the measurements that show it.
    pub total: Option<f64>,
    /// Largest number of bytes that the model may take.
    pub max_bytes: usize,
    /// Kind of passes of each step.
    pub passes: Passes,
    /// Number of past steps that the search combines (at least 1). With more of them, it needs
    /// fewer steps.
    pub memory: usize,
}

impl Default for FitOptions {
    fn default() -> Self {
        Self {
            steps: 1000,
            tolerance: 1e-5,
            total: None,
            max_bytes: 1 << 30,
            passes: Passes::Tables,
            memory: 10,
        }
    }
}

/// The reason why a fit ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// The loss no longer fell by more than the tolerance.
    #[default]
    Converged,
    /// The fit used all its steps.
    OutOfSteps,
    /// No step lowered the loss.
    Stuck,
}

/// The result of a fit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FitReport {
    /// The final loss: 0.5 * sum over measurements of ||P(G(mu)) - y||^2 / sigma^2.
    pub loss: f64,
    /// Number of measured values. Their noise accounts for a loss of about half of it.
    pub values: usize,
    /// The reason why the fit ended.
    pub ending: Ending,
    /// Number of calibrations.
    pub steps: usize,
    /// Wall-clock seconds, including planning.
    pub seconds: f64,
    /// Cells of the junction tree's cliques. Where no measurement distinguishes categories, cells
    /// are over groups.
    pub cells: usize,
    /// The work of all calibrations; zero in a loaded model.
    pub work: FitWork,
    /// Totals of this fit and of all earlier fits in its chain of warm starts.
    pub chain: Chain,
}

impl FitReport {
    /// Checks whether noise can account for the loss, which is then at most the number of measured
    /// values.
    pub fn is_explained(&self) -> bool {
        self.loss <= self.values as f64
    }

    /// Returns the loss that noise accounts for: half of the number of measured values.
    pub fn noise_loss(&self) -> f64 {
        0.5 * self.values as f64
    }

    /// Returns the loss per measured value. It is about a half if noise accounts for the loss.
    pub fn loss_per_value(&self) -> f64 {
        self.loss / self.values.max(1) as f64
    }
}

/// Totals of a chain of fits, each of which started with the model of the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Chain {
    /// Number of fits.
    pub fits: usize,
    /// Number of calibrations.
    pub steps: usize,
    /// Cells of the junction trees' cliques, counted once for each calibration.
    pub cells: u64,
    /// Cells of the junction trees' cliques, counted once for each fit.
    pub tables: u64,
    /// Wall-clock seconds.
    pub seconds: f64,
    /// The work of all calibrations.
    pub work: FitWork,
    /// Number of fits that used all their steps.
    pub out_of_steps: usize,
    /// Number of fits whose loss is above their number of measured values. After each of them,
    /// [`fit`](crate::fit) starts again from nothing, which counts as another fit.
    /// [`fit_once`](crate::fit_once) does not.
    pub unexplained: usize,
    /// The largest loss per measured value of any fit.
    pub worst_loss_per_value: f64,
}

impl Chain {
    /// Returns the totals with one more fit.
    pub(crate) fn and(self, fit: &FitReport) -> Self {
        Self {
            fits: self.fits + 1,
            steps: self.steps + fit.steps,
            cells: self.cells + (fit.cells * fit.steps) as u64,
            tables: self.tables + fit.cells as u64,
            seconds: self.seconds + fit.seconds,
            work: self.work + fit.work,
            out_of_steps: self.out_of_steps + usize::from(fit.ending == Ending::OutOfSteps),
            unexplained: self.unexplained + usize::from(!fit.is_explained()),
            worst_loss_per_value: (self.worst_loss_per_value).max(fit.loss_per_value()),
        }
    }
}

/// The work of calibrations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FitWork {
    /// Cells of tables, counted once for each smaller table that is multiplied into the table,
    /// summed from it, or scaled to.
    pub cells: u64,
    /// Multiplications of two cells in products of matrices.
    pub products: u64,
}

impl Add for FitWork {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            cells: self.cells + other.cells,
            products: self.products + other.products,
        }
    }
}

impl Sum for FitWork {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Self::add)
    }
}

//! How to fit, and how a fit went.

use std::iter::Sum;
use std::ops::Add;

/// What a step of a fit passes over. The models are the same but for rounding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Passes {
    /// The tables of all cliques of the junction tree.
    #[default]
    Tables,
    /// Products of smaller tables, which are many times faster where cliques are large.
    Contractions,
}

/// How to fit.
#[derive(Clone, Debug, PartialEq)]
pub struct FitOptions {
    /// At most this many calibrations of the junction tree.
    pub steps: usize,
    /// The fit ends when noise accounts for the loss, and the loss no longer falls by more than this share of what noise
    /// accounts for.
    pub tolerance: f64,
    /// Number of records of the model; `None` estimates it by inverse variance from the
    /// measurements that see it (at least 1).
    pub total: Option<f64>,
    /// Most bytes that the model may take.
    pub max_bytes: usize,
    /// What each step passes over.
    pub passes: Passes,
    /// The search combines so many of its past steps (at least 1). With more, fewer are needed.
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

/// Why a fit ended.
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

/// How a fit went.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FitReport {
    /// 0.5 * sum over measurements of ||P(G(mu)) - y||^2 / sigma^2 at the end.
    pub loss: f64,
    /// Number of measured values. Their noise accounts for a loss of about half of it.
    pub values: usize,
    /// Why the fit ended.
    pub ending: Ending,
    /// Calibrations made.
    pub steps: usize,
    /// Wall-clock seconds, planning included.
    pub seconds: f64,
    /// Cells of the junction tree's cliques, over groups where categories are not told apart.
    pub cells: usize,
    /// What the calibrations took together; nothing of a model that was read back.
    pub work: FitWork,
    /// The same of this fit and of all those whose models it, and they, began with.
    pub chain: Chain,
}

impl FitReport {
    /// Whether noise can account for the loss: whether it is at most the number of measured values.
    pub fn is_explained(&self) -> bool {
        self.loss <= self.values as f64
    }

    /// The loss that noise accounts for: half of the number of measured values.
    pub fn noise_loss(&self) -> f64 {
        0.5 * self.values as f64
    }

    /// The loss over the number of measured values: about a half where noise accounts for it.
    pub fn loss_per_value(&self) -> f64 {
        self.loss / self.values.max(1) as f64
    }
}

/// What fits took, each of which began with the model of the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Chain {
    /// How many there were.
    pub fits: usize,
    /// Their calibrations.
    pub steps: usize,
    /// Cells of their junction trees' cliques, each as often as it was calibrated,
    pub cells: u64,
    /// and once for each fit.
    pub tables: u64,
    /// Their wall-clock seconds.
    pub seconds: f64,
    /// What their calibrations took.
    pub work: FitWork,
    /// Fits that used all their steps.
    pub out_of_steps: usize,
    /// Fits whose loss is above their number of measured values. Each was followed by a fit from nothing,
    /// which counts as another fit, unless [`fit_once`](crate::fit_once) made it.
    pub unexplained: usize,
    /// The largest loss per measured value of any of the fits.
    pub worst_loss_per_value: f64,
}

impl Chain {
    /// With one more fit.
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

/// What calibrations pass over and multiply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FitWork {
    /// Cells of tables, each counted once for every smaller table that it is multiplied with, summed onto or
    /// scaled to.
    pub cells: u64,
    /// Products of two cells in products of matrices.
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

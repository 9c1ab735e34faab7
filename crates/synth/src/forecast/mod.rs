//! Forecasts what a run can measure, before any budget is spent, from public information only
//! (docs/MECHANISM.md, "Forecast").
//!
//! A forecast is a function of the schema, the number of records, the budget, the mechanism and the
//! holders. It uses the mechanism's own [`BudgetPlan`] for the noise of each column and pair. It
//! knows nothing of the records, so it assumes columns and dependences of a usual size.

mod advice;
mod precision;
mod reference;
mod rounds;

use fhaim_domain::Schema;
use fhaim_release::MechanismJob;
use serde::Serialize;

use crate::Mechanism;
use precision::Precision;

/// Largest expected total variation distance of a column or pair that counts as above its noise.
pub const NOISE_LIMIT: f64 = 0.1;

/// The division of a run's budget.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BudgetPlan {
    /// Columns and pairs get shares of the budget by the cost of their noise.
    Weighted(WeightedPlan),
    /// Each measurement is a whole table of counts. All columns have the same noise, and so have all
    /// measured pairs.
    Rounds(RoundPlan),
}

impl BudgetPlan {
    /// Whether the mechanism measures pairs.
    fn measures_pairs(&self) -> bool {
        match self {
            Self::Weighted(plan) => plan.pairs.is_some(),
            Self::Rounds(plan) => plan.most_pairs > 0,
        }
    }
}

/// The plan of a mechanism that measures one table in each round, as shares of rho.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundPlan {
    /// Share for the first measurement of each column.
    pub column: f64,
    /// Share for the measurements of all pairs together.
    pub pairs: f64,
    /// The fewest pairs that a run measures.
    pub least_pairs: usize,
    /// The most measurements of pairs in a run.
    pub most_pairs: usize,
    /// Standard deviation of the score that a pair is chosen by, if it is the squared distance of the
    /// pair's table from the model's, in records.
    pub squared_score_noise: Option<f64>,
}

/// The plan of a mechanism with weights, as shares of rho.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WeightedPlan {
    /// Share for the first measurement of the number of records and all columns. Without pairs,
    /// columns get the whole budget.
    pub one_ways: f64,
    /// Weight of a digit's noise relative to a pair's.
    pub digit_weight: f64,
    /// The plan for pairs, if the mechanism measures any.
    pub pairs: Option<PairPlan>,
}

/// The part of a budget that finds and measures pairs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairPlan {
    /// Share for the probe of all pairs.
    pub probe: f64,
    /// Largest scale of a probe, as a share of the number of records. With more noise, no pair is
    /// measured.
    pub largest_probe_scale: f64,
    /// Share for the measurement of pairs, and of columns again.
    pub stages: f64,
    /// Weight of columns in the stages, relative to pairs.
    pub one_way_weight: f64,
    /// Shares of variation that the resolutions of a pair resolve.
    pub resolutions: &'static [f64],
}

/// The number of records of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "known", content = "number", rename_all = "kebab-case")]
pub enum RecordCount {
    /// The number of records of the holder's table.
    Exactly(u64),
    /// A public bound on it.
    AtMost(u64),
}

impl RecordCount {
    /// Returns the number, or the bound on it.
    pub fn most(self) -> u64 {
        match self {
            Self::Exactly(records) | Self::AtMost(records) => records,
        }
    }

    /// Returns a text such as `these 3,000 records`.
    pub fn of_these(self) -> String {
        let records = advice::number_of(self.most() as usize, "record");
        match (self, self.most()) {
            (Self::Exactly(_), 1) => format!("this {records}"),
            (Self::Exactly(_), _) => format!("these {records}"),
            (Self::AtMost(_), _) => format!("at most {records}"),
        }
    }
}

/// The expected precision of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Forecast {
    /// Number of records: that of the holder's table, or a public bound.
    pub records: RecordCount,
    /// epsilon of the run.
    pub epsilon: f64,
    /// delta of the run.
    pub delta: f64,
    /// The columns, in the schema's order, without digits of numbers.
    pub columns: Vec<ColumnForecast>,
    /// All pairs together.
    pub pairs: PairForecast,
    /// Changes that would reach the next goal; empty if none does, or if everything is reached.
    pub remedies: Vec<Remedy>,
    /// The whole forecast in one plain sentence.
    pub sentence: String,
}

/// The expected precision of a column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ColumnForecast {
    /// Name of the column.
    pub name: String,
    /// Number of values, including null.
    pub values: usize,
    /// Expected absolute error of the share of one value, as released.
    pub share_error: f64,
    /// Expected total variation distance of the synthetic shares from the real ones, from 0 to 1.
    pub error: f64,
    /// Whether the column is above its noise: `error` is at most [`NOISE_LIMIT`].
    pub above_noise: bool,
}

/// The expected precision of the pairs of columns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PairForecast {
    /// Number of pairs.
    pub count: usize,
    /// Number of pairs that the budget can measure above the noise: their tables have an expected
    /// total variation distance of at most [`NOISE_LIMIT`], apart from errors of their columns.
    pub above_noise: usize,
    /// Mean expected total variation distance of a pair's synthetic table from the real one.
    pub error: f64,
    /// The pairs by the numbers of values of their columns.
    pub sizes: Vec<PairSizeForecast>,
}

/// The expected precision of the pairs whose columns have given numbers of values.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PairSizeForecast {
    /// Numbers of values of the two columns, ascending.
    pub values: [usize; 2],
    /// Number of pairs.
    pub count: usize,
    /// Mean expected total variation distance.
    pub error: f64,
    /// Whether the budget can measure all of these pairs above the noise, in addition to the pairs
    /// that need less of it.
    pub above_noise: bool,
}

/// What a change of the run would reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// All columns are above their noise.
    Columns,
    /// As many pairs are above the noise as it takes to connect all columns: the strongest ones.
    StrongPairs,
    /// All pairs are above the noise.
    AllPairs,
}

/// A change of the run that reaches a goal.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Remedy {
    /// The goal.
    pub goal: Goal,
    /// The change.
    #[serde(flatten)]
    pub change: RunChange,
}

/// A change of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "change", content = "to", rename_all = "kebab-case")]
pub enum RunChange {
    /// The smallest larger epsilon, rounded up to two digits.
    Epsilon(f64),
    /// The largest number of columns, with sizes like those of all columns.
    Columns(usize),
    /// The largest number of values of a column, if wider columns are coarsened.
    Values(usize),
}

/// Computes the forecast of a run over a number of records, or over a public bound on it. `epsilon`
/// and `delta` are the budget of the run's `job.rho`. Returns `None` for a mechanism that does not
/// state its [`BudgetPlan`].
pub fn forecast(
    mechanism: &dyn Mechanism,
    job: &MechanismJob,
    schema: &Schema,
    (epsilon, delta): (f64, f64),
    records: RecordCount,
) -> Option<Forecast> {
    let precision = Precision::new(&mechanism.budget_plan(job)?, job, records.most());
    let column = |attribute: usize| {
        let column = precision.column(attribute);
        let name = schema.columns().get(attribute);
        ColumnForecast {
            name: name.map_or_else(String::new, |column| column.name().to_owned()),
            values: job.domain.size(attribute),
            share_error: column.share_error,
            error: column.error,
            above_noise: column.error <= NOISE_LIMIT,
        }
    };
    let columns = job.domain.coarse_attributes().into_iter().map(column);
    let mut forecast = Forecast {
        records,
        epsilon,
        delta,
        columns: columns.collect(),
        pairs: precision.pairs(),
        remedies: Vec::new(),
        sentence: String::new(),
    };
    forecast.remedies = advice::remedies(mechanism, job, &forecast);
    forecast.sentence = advice::sentence(&forecast);
    Some(forecast)
}

impl Forecast {
    /// Whether no column is above its noise.
    pub fn is_only_noise(&self) -> bool {
        !self.columns.is_empty() && self.columns.iter().all(|column| !column.above_noise)
    }

    /// Returns the columns that are not above their noise.
    pub fn noisy_columns(&self) -> impl Iterator<Item = &ColumnForecast> {
        self.columns.iter().filter(|column| !column.above_noise)
    }

    /// Returns the mean expected total variation distance of a column.
    pub fn column_error(&self) -> f64 {
        let errors = self.columns.iter().map(|column| column.error);
        errors.sum::<f64>() / self.columns.len().max(1) as f64
    }
}

#[cfg(test)]
mod tests;

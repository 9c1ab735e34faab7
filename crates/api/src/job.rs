//! Jobs: a run of a mechanism over a dataset, and what it leaves.

use fhaim_release::RunProgress;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::Cost;
use crate::keys::Receipt;

/// Where a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum JobState {
    /// Waiting for a worker.
    Queued,
    /// A worker has it.
    Running,
    /// Its model is there.
    Done,
    /// It ended with an error; it can be retried, and then goes on where it was.
    Failed,
    /// Its owner stopped it.
    Cancelled,
}

impl JobState {
    /// Whether nothing more happens by itself.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Cancelled)
    }
}

/// What a job is doing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JobProgress {
    /// Description of the current phase, such as `Choosing pairs` or `Fitting the model`.
    pub phase: String,
    /// The current batch, counted from 1; the last fit counts as one.
    pub round: usize,
    /// The most there can be.
    pub rounds: usize,
}

impl From<RunProgress> for JobProgress {
    fn from(progress: RunProgress) -> Self {
        Self {
            phase: progress.phase.to_string(),
            round: progress.round,
            rounds: progress.rounds,
        }
    }
}

/// A new job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewJob {
    /// The newest receipt of the dataset's ledger that the caller has seen.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub receipt: Option<Receipt>,
}

/// Another note on a job.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewNote {
    /// What the dataset's holders want to remember of it; empty: nothing.
    #[schema(max_length = 200)]
    pub note: String,
}

/// A job.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Job {
    /// Its identifier.
    pub id: Uuid,
    /// The dataset it runs over.
    pub dataset: Uuid,
    /// What the dataset's holders want to remember of it.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub note: String,
    /// Where it is.
    pub state: JobState,
    /// What it is doing, once it has begun.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub progress: Option<JobProgress>,
    /// Releases so far.
    pub releases: usize,
    /// What they cost together.
    pub spent: Cost,
    /// Workers that have had it.
    pub attempts: u32,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<String>,
    /// When it was made.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// When its state last changed.
    #[serde(with = "time::serde::rfc3339")]
    pub updated_at: OffsetDateTime,
}

/// One line of a job's event stream. Numbers go up by one; a client that reconnects sends the
/// last it saw as `Last-Event-ID`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct JobEvent {
    /// Its number within the job, from 1.
    pub number: u64,
    /// When it happened.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    /// What happened.
    pub what: Happening,
}

/// How a [`JobEvent`] is sent: a server-sent event.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct JobEventMessage {
    /// The event's number.
    pub id: String,
    /// The [`JobEvent`], as JSON.
    pub data: String,
}

/// What happened to a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Happening {
    /// Its state changed.
    State {
        /// The new state.
        state: JobState,
        /// Why, where it failed.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        error: Option<String>,
    },
    /// The mechanism asked for a batch (or does its last fit).
    Phase {
        /// What it is doing.
        progress: JobProgress,
        /// Releases asked for.
        releases: usize,
    },
    /// The computation service is at work on the current batch.
    Computing {
        /// Seconds it has been at it.
        seconds: f64,
    },
    /// A batch was released.
    Released {
        /// Releases in the batch.
        releases: usize,
        /// Numbers in them.
        cells: usize,
        /// What the job has spent so far.
        spent: Cost,
    },
}

/// One release of a job: what was asked, what came back, what it cost.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ReleasedStatistic {
    /// Its number within the job.
    pub number: u32,
    /// The phase that asked for it.
    pub phase: String,
    /// Names of the attributes it looks at.
    pub attributes: Vec<String>,
    /// What was asked: integer functions of each attribute.
    #[schema(value_type = crate::batch::StatisticDocument)]
    pub statistic: fhaim_release::Statistic,
    /// The requested noise variance, in the units of the noise ladder.
    pub variance_units: u64,
    /// Standard deviation of the noise, of all holders together.
    pub sigma: f64,
    /// The released integers.
    pub values: Vec<i64>,
    /// What it cost.
    pub cost: Cost,
}

/// The model of a finished job.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ModelView {
    /// Its estimate of the number of records.
    pub total: f64,
    /// Names of the attributes.
    pub attributes: Vec<String>,
    /// Pairs with a measurement, by index.
    pub measured_pairs: Vec<[usize; 2]>,
    /// Cliques of the junction tree, by index.
    pub cliques: Vec<Vec<usize>>,
    /// The fitted 1-way marginals, one list an attribute, beside their released values.
    pub one_ways: Vec<OneWayView>,
    /// Bytes of the junction tree.
    pub bytes: usize,
}

/// An attribute's fitted marginal.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct OneWayView {
    /// Its categories' or bins' labels.
    pub labels: Vec<String>,
    /// The model's marginal.
    pub fitted: Vec<f64>,
    /// The measured marginal.
    pub measured: Vec<f64>,
}

/// The form of a synthetic table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TableFormat {
    /// Comma-separated values.
    #[default]
    Csv,
    /// Apache Parquet.
    Parquet,
}

/// How to draw a synthetic table.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Draw {
    /// The form.
    #[serde(default)]
    pub format: TableFormat,
    /// Number of records; the model's total unless given.
    #[param(minimum = 1, maximum = 100_000_000)]
    pub rows: Option<u64>,
    /// The same seed draws the same table; a fresh one unless given.
    pub seed: Option<u64>,
    /// Conditions that every record meets, `column=value`, separated by commas.
    #[param(example = "race=Asian")]
    pub r#where: Option<String>,
}

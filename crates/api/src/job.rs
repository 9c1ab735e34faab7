//! Jobs: runs of a mechanism over a dataset, and their results.

use fhaim_release::RunProgress;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::Cost;
use crate::keys::Receipt;

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum JobState {
    /// Waiting for a worker.
    Queued,
    /// A worker is processing it.
    Running,
    /// Its model is available.
    Done,
    /// It ended with an error. A retry continues where it stopped.
    Failed,
    /// Its owner cancelled it.
    Cancelled,
}

impl JobState {
    /// Whether the state no longer changes by itself.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Cancelled)
    }
}

/// The current activity of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JobProgress {
    /// Description of the current phase, such as `Choosing pairs` or `Fitting the model`.
    pub phase: String,
    /// Number of the current batch, counted from 1. The last fit counts as a batch.
    pub round: usize,
    /// Largest possible number of batches.
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
    /// Newest receipt of the dataset's ledger that the caller has seen.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub receipt: Option<Receipt>,
}

/// A new note on a job.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewNote {
    /// The note of the dataset's holders on the job. Empty to remove it.
    #[schema(max_length = 200)]
    pub note: String,
}

/// A job.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Job {
    /// Identifier of the job.
    pub id: Uuid,
    /// The dataset of the job.
    pub dataset: Uuid,
    /// The note of the dataset's holders on the job.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub note: String,
    /// State of the job.
    pub state: JobState,
    /// Current activity, once the job has started.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub progress: Option<JobProgress>,
    /// Number of releases so far.
    pub releases: usize,
    /// Total cost of these releases.
    pub spent: Cost,
    /// Number of workers that have processed it.
    pub attempts: u32,
    /// Reason of the failure.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<String>,
    /// Time of creation.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// Time of the last change of its state.
    #[serde(with = "time::serde::rfc3339")]
    pub updated_at: OffsetDateTime,
}

/// One event of a job's event stream. Event numbers increase by one. A client that reconnects sends
/// the number of the last event that it saw as `Last-Event-ID`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct JobEvent {
    /// Number of the event within the job, from 1.
    pub number: u64,
    /// Time of the event.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    /// The event itself.
    pub what: Happening,
}

/// A [`JobEvent`] as it is sent: a server-sent event.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct JobEventMessage {
    /// Number of the event.
    pub id: String,
    /// The [`JobEvent`] as JSON.
    pub data: String,
}

/// An event of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Happening {
    /// The state changed.
    State {
        /// The new state.
        state: JobState,
        /// Reason, if the job failed.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        error: Option<String>,
    },
    /// The mechanism requested a batch, or started its last fit.
    Phase {
        /// Current activity.
        progress: JobProgress,
        /// Number of requested releases.
        releases: usize,
    },
    /// The computation service is computing the current batch.
    Computing {
        /// Seconds since it started.
        seconds: f64,
    },
    /// A batch was released.
    Released {
        /// Number of releases in the batch.
        releases: usize,
        /// Number of integers in these releases.
        cells: usize,
        /// Cost of the job so far.
        spent: Cost,
    },
}

/// One release of a job: the requested statistic, the released integers and their cost.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ReleasedStatistic {
    /// Number of the release within the job.
    pub number: u32,
    /// The phase that requested it.
    pub phase: String,
    /// Names of the attributes that the statistic uses.
    pub attributes: Vec<String>,
    /// The requested statistic: integer functions of each attribute.
    #[schema(value_type = crate::batch::StatisticDocument)]
    pub statistic: fhaim_release::Statistic,
    /// Requested noise variance, in the units of the noise ladder.
    pub variance_units: u64,
    /// Standard deviation of the noise of all holders together.
    pub sigma: f64,
    /// The released integers.
    pub values: Vec<i64>,
    /// Cost of the release.
    pub cost: Cost,
}

/// The model of a finished job.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ModelView {
    /// The model's estimate of the number of records.
    pub total: f64,
    /// Names of the attributes.
    pub attributes: Vec<String>,
    /// Pairs with a measurement, by attribute index.
    pub measured_pairs: Vec<[usize; 2]>,
    /// Cliques of the junction tree, by attribute index.
    pub cliques: Vec<Vec<usize>>,
    /// The fitted 1-way marginals, one for each attribute, together with their released values.
    pub one_ways: Vec<OneWayView>,
    /// Bytes of the junction tree.
    pub bytes: usize,
}

/// An attribute's fitted marginal.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct OneWayView {
    /// Labels of its categories or bins.
    pub labels: Vec<String>,
    /// The model's marginal.
    pub fitted: Vec<f64>,
    /// The measured marginal.
    pub measured: Vec<f64>,
}

/// The file format of a synthetic table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TableFormat {
    /// Comma-separated values.
    #[default]
    Csv,
    /// Apache Parquet.
    Parquet,
}

/// Parameters for drawing a synthetic table.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Draw {
    /// The file format.
    #[serde(default)]
    pub format: TableFormat,
    /// Number of records. Default: the model's total.
    #[param(minimum = 1, maximum = 100_000_000)]
    pub rows: Option<u64>,
    /// Seed of the draw. The same seed draws the same table. Default: a random seed.
    pub seed: Option<u64>,
    /// Conditions that every record meets: `column=value`, separated by commas.
    #[param(example = "race=Asian")]
    pub r#where: Option<String>,
}

//! Submits a batch to Ballista, and collects the results of its tiles.

use crate::codec::Codec;
use crate::config::{MESSAGE_BYTES, session};
use crate::nodes::{Kind, Node, ORDERS, binary};
use crate::order::Order;
use crate::tls::Identity;
use ballista_core::execution_plans::execute_physical_plan;
use ballista_core::extension::SessionConfigExt;
use datafusion::arrow::array::{BinaryArray, RecordBatch};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, Partitioning};
use datafusion_proto::protobuf::PhysicalPlanNode;
use fhaim_he::{
    Backend, BlobPlace, Columns, EvaluationContext, EvaluationWork, Parameters, Partial, TileId,
    TileTask, spread,
};
use futures::StreamExt;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// Largest size of a tile's sums in bytes: eight pairs of leaves with six polynomials each.
const TILE_BYTES: usize = 10 << 20;

/// Settings for submitting batches.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Address of the scheduler: `https://host:port`.
    pub scheduler: String,
    /// Certificate and key of this program.
    pub identity: Identity,
    /// Approximate memory of a task on an executor in bytes.
    pub task_bytes: usize,
    /// Least number of tasks that multiply, and of tasks that pack. The number of cores is a good value. If there are
    /// more tasks than tiles, tasks are over bands of record chunks, and executors exchange their sums.
    pub packers: usize,
    /// Largest number of times that a batch is submitted.
    pub attempts: u32,
    /// Pause before a batch is submitted again.
    pub pause: Duration,
}

/// A backend that runs the tasks of one dataset on Ballista's executors.
#[derive(Debug)]
pub struct Ballista {
    settings: Settings,
    keys: BlobPlace,
    runtime: Handle,
}

/// State of a run: the tiles whose results are missing, and the function that takes results.
struct Run<'a> {
    params: &'a Parameters,
    take: &'a (dyn Fn(Partial) -> fhaim_he::Result<()> + Sync),
    missing: BTreeSet<TileId>,
}

/// Reason why an attempt failed.
enum Ended {
    /// A transient error: another attempt may succeed.
    Passing(String),
    /// A permanent error.
    Refused(fhaim_he::Error),
}

impl From<DataFusionError> for Ended {
    fn from(error: DataFusionError) -> Self {
        Self::Passing(error.to_string())
    }
}

impl From<fhaim_he::Error> for Ended {
    fn from(error: fhaim_he::Error) -> Self {
        Self::Refused(error)
    }
}

impl Ballista {
    /// Creates a backend for the dataset whose evaluation keys are at `keys`.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub fn new(settings: Settings, keys: BlobPlace) -> Self {
        let runtime = Handle::current();
        Self {
            settings,
            keys,
            runtime,
        }
    }

    /// Returns the plan for some tasks: it multiplies orders, shuffles the results by tile, and packs them.
    ///
    /// # Errors
    /// [`fhaim_he::Error::Unavailable`] for a table that is only in memory.
    pub fn plan(
        &self,
        table: &dyn Columns,
        tasks: &[TileTask],
    ) -> fhaim_he::Result<Arc<dyn ExecutionPlan>> {
        let memory = self.settings.task_bytes;
        let order = |task| Order::new(table, &self.keys, task, memory)?.to_bytes();
        let orders = tasks
            .iter()
            .map(order)
            .collect::<fhaim_he::Result<Vec<_>>>()?;
        let tiles: BTreeSet<TileId> = tasks.iter().flat_map(TileTask::tiles).collect();
        // Tiles are distributed by hash, so leave room for twice the average.
        let room = (tiles.len() * 2 * TILE_BYTES).div_ceil(memory.max(TILE_BYTES));
        let packers = room.max(self.settings.packers).min(tiles.len()).max(1);
        let built = build(&orders, packers);
        built.map_err(|error| fhaim_he::Error::Unavailable(error.to_string()))
    }

    async fn attempt(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        run: &mut Run<'_>,
    ) -> std::result::Result<(), Ended> {
        let (config, codec) = (session(&self.settings.identity), Codec::default());
        let ballista = config.ballista_config();
        let stream = execute_physical_plan::<PhysicalPlanNode>(
            self.settings.scheduler.clone(),
            &ballista,
            plan,
            &codec,
            uuid::Uuid::new_v4().to_string(),
            config,
        );
        let mut stream = stream.await?;
        while let Some(batch) = stream.next().await {
            let batch = batch?;
            for bytes in binary(&batch, "partial")?.iter().flatten() {
                let partial = Partial::from_bytes(run.params, bytes)?;
                match partial {
                    // The result of an earlier attempt would be the same, residue for residue.
                    Partial::Root(_) if run.missing.remove(&partial.tile()) => (run.take)(partial)?,
                    Partial::Root(_) => {
                        let twice = "a tile was not requested, or was returned twice";
                        return Err(fhaim_he::Error::Mismatch(twice).into());
                    }
                    Partial::Sums(_) => {
                        let sums = "a tile's sums were not packed";
                        return Err(fhaim_he::Error::Mismatch(sums).into());
                    }
                }
            }
        }
        if run.missing.is_empty() {
            Ok(())
        } else {
            Err(fhaim_he::Error::Mismatch("a tile was not computed").into())
        }
    }
}

/// Builds the plan: orders, one per partition, as the input of the two operators.
fn build(orders: &[Vec<u8>], packers: usize) -> Result<Arc<dyn ExecutionPlan>> {
    let partition = |order: &Vec<u8>| {
        let column = Arc::new(BinaryArray::from(vec![order.as_slice()]));
        Ok(vec![RecordBatch::try_new(ORDERS.clone(), vec![column])?])
    };
    let partitions: Vec<Vec<RecordBatch>> = orders.iter().map(partition).collect::<Result<_>>()?;
    let source = MemorySourceConfig::try_new(&partitions, ORDERS.clone(), None)?;
    let orders = DataSourceExec::from_data_source(source);
    let multiplied = Arc::new(Node::new(Kind::Multiply, orders, None)?);
    let schema = multiplied.schema();
    let by_tile = ["page", "tile"].map(|name| {
        let column = Column::new_with_schema(name, &schema)?;
        Ok::<_, DataFusionError>(Arc::new(column) as _)
    });
    let by_tile = by_tile.into_iter().collect::<Result<Vec<_>>>()?;
    let partitioning = Partitioning::Hash(by_tile, packers);
    let shuffled = Arc::new(RepartitionExec::try_new(multiplied, partitioning)?);
    Ok(Arc::new(Node::new(Kind::Pack, shuffled, None)?))
}

impl Backend for Ballista {
    fn task_memory(&self) -> usize {
        self.settings.task_bytes
    }

    fn run(
        &self,
        _: &EvaluationContext<'_>,
        table: &dyn Columns,
        tasks: &[TileTask],
        take: &(dyn Fn(Partial) -> fhaim_he::Result<()> + Sync),
    ) -> fhaim_he::Result<EvaluationWork> {
        let tasks = spread(tasks, self.settings.packers);
        let mut run = Run {
            params: table.params(),
            take,
            missing: tasks.iter().flat_map(TileTask::tiles).collect(),
        };
        let mut reason = String::new();
        for attempt in 0..self.settings.attempts.max(1) {
            if run.missing.is_empty() {
                return Ok(EvaluationWork::default());
            }
            if attempt > 0 {
                tracing::warn!(attempt, "submitting the batch again: {reason}");
                std::thread::sleep(self.settings.pause);
            }
            let left: Vec<TileTask> = tasks
                .iter()
                .filter(|task| task.tiles().any(|tile| run.missing.contains(&tile)))
                .cloned()
                .collect();
            // A repeated task returns all its tiles. Ignore those that an earlier attempt has returned.
            let before: BTreeSet<TileId> = left.iter().flat_map(TileTask::tiles).collect();
            let before: BTreeSet<TileId> = before.difference(&run.missing).copied().collect();
            let plan = self.plan(table, &left)?;
            let mut again = Run {
                take: &|partial: Partial| match before.contains(&partial.tile()) {
                    true => Ok(()),
                    false => take(partial),
                },
                missing: run.missing.union(&before).copied().collect(),
                ..run
            };
            let ended = self.runtime.block_on(self.attempt(plan, &mut again));
            run.missing = again.missing.difference(&before).copied().collect();
            match ended {
                Ok(()) => return Ok(EvaluationWork::default()),
                Err(Ended::Refused(error)) => return Err(error),
                Err(Ended::Passing(why)) => reason = why,
            }
        }
        Err(fhaim_he::Error::Unavailable(format!(
            "{} attempts on Ballista failed; the last error is: {reason}",
            self.settings.attempts
        )))
    }
}

/// Largest size of a plan in bytes: one message to the scheduler.
pub const MOST_PLAN_BYTES: usize = MESSAGE_BYTES as usize;

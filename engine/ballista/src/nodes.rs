//! The two operators of a plan.
//!
//! [`Kind::Multiply`] computes partial results of tiles from orders. [`Kind::Pack`], after a shuffle by tile, adds the
//! sums of each tile and packs them. Sums list the record chunks that they are over, so [`Kind::Pack`] can refuse a
//! total that is not over all chunks exactly once. Without this check, sums could be wrong unnoticed: Ballista splits
//! only leaves that it knows, and another leaf could run every band in every task.

use crate::order::{Order, Packing};
use crate::site::{Site, blocking, failed, passing};
use datafusion::arrow::array::{Array, BinaryArray, RecordBatch, UInt32Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning,
    PlanProperties, ReplaceChildrenOptions, SendableRecordBatchStream,
};
use fhaim_he::{Partial, TileId, TileSums};
use futures::{StreamExt, TryStreamExt, stream};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, LazyLock};

/// Schema of orders: one per row, and one row per partition.
pub static ORDERS: LazyLock<SchemaRef> =
    LazyLock::new(|| Arc::new(Schema::new(vec![field("order", DataType::Binary)])));

/// Schema of partial results, one tile per row: its page and number, its bytes, and the data for packing its sums.
pub static PARTIALS: LazyLock<SchemaRef> = LazyLock::new(|| {
    Arc::new(Schema::new(vec![
        field("page", DataType::UInt32),
        field("tile", DataType::UInt32),
        field("partial", DataType::Binary),
        field("packing", DataType::Binary),
    ]))
});

fn field(name: &str, kind: DataType) -> Field {
    Field::new(name, kind, false)
}

/// The two operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Takes orders, and returns sums and roots.
    Multiply,
    /// Takes sums and roots, and returns roots.
    Pack,
}

/// An operator in a plan.
#[derive(Debug)]
pub struct Node {
    kind: Kind,
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
    /// State that the tasks of an executor share. `None` in programs that only pass plans on.
    site: Option<Arc<Site>>,
}

impl Node {
    /// Creates an operator over an input.
    ///
    /// # Errors
    /// [`DataFusionError::Plan`] if the input has another schema than the operator takes.
    pub fn new(kind: Kind, input: Arc<dyn ExecutionPlan>, site: Option<Arc<Site>>) -> Result<Self> {
        let wanted = match kind {
            Kind::Multiply => &*ORDERS,
            Kind::Pack => &*PARTIALS,
        };
        if input.schema() != *wanted {
            return Err(DataFusionError::Plan(format!(
                "the input of {kind:?} has other columns"
            )));
        }
        let partitions = input.output_partitioning().partition_count();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(PARTIALS.clone()),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(Self {
            kind,
            input,
            properties: Arc::new(properties),
            site,
        })
    }

    /// Returns the kind of the operator.
    pub fn kind(&self) -> Kind {
        self.kind
    }
}

impl DisplayAs for Node {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fhaim {:?}", self.kind)
    }
}

impl ExecutionPlan for Node {
    fn name(&self) -> &'static str {
        match self.kind {
            Kind::Multiply => "FhaimMultiply",
            Kind::Pack => "FhaimPack",
        }
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let [input] = <[_; 1]>::try_from(children)
            .map_err(|_| DataFusionError::Plan("an operator has exactly one input".to_owned()))?;
        Ok(Arc::new(Self::new(self.kind, input, self.site.clone())?))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mode = datafusion::physical_plan::ChildrenPropertiesMode::Recompute;
        self.replace_children(children, ReplaceChildrenOptions::new(mode))
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let site = self.site.clone().ok_or_else(|| {
            DataFusionError::Execution("this operator runs only on an executor".to_owned())
        })?;
        let consumer = MemoryConsumer::new(self.name());
        let memory = consumer.register(context.memory_pool());
        let input = self.input.execute(partition, context)?;
        let kind = self.kind;
        let rows = stream::once(async move {
            let rows = match kind {
                Kind::Multiply => multiply(site, input, memory).await?,
                Kind::Pack => pack(site, input, memory).await?,
            };
            Ok::<_, DataFusionError>(stream::iter(rows.into_iter().map(Row::batch)))
        });
        let schema = PARTIALS.clone();
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            schema,
            rows.try_flatten(),
        )))
    }
}

/// One row of [`PARTIALS`].
struct Row {
    tile: TileId,
    partial: Vec<u8>,
    packing: Vec<u8>,
}

impl Row {
    fn new(partial: &Partial, packing: Vec<u8>) -> Result<Self> {
        Ok(Self {
            tile: partial.tile(),
            partial: partial.to_bytes().map_err(failed)?,
            packing,
        })
    }

    /// Returns a batch with only this row, because several large rows could exceed the size of a frame.
    fn batch(self) -> Result<RecordBatch> {
        let number = |number: usize| {
            let number = u32::try_from(number).map_err(|_| passing("a number exceeds 32 bits"));
            Ok::<_, DataFusionError>(Arc::new(UInt32Array::from(vec![number?])))
        };
        let columns: Vec<Arc<dyn Array>> = vec![
            number(self.tile.page)?,
            number(self.tile.index)?,
            Arc::new(BinaryArray::from(vec![self.partial.as_slice()])),
            Arc::new(BinaryArray::from(vec![self.packing.as_slice()])),
        ];
        Ok(RecordBatch::try_new(PARTIALS.clone(), columns)?)
    }
}

/// Returns the binary values of a column.
pub(crate) fn binary<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a BinaryArray> {
    let column = batch.column_by_name(name);
    let column = column.and_then(|column| column.as_any().downcast_ref::<BinaryArray>());
    let column = column.filter(|column| column.null_count() == 0);
    column.ok_or_else(|| {
        DataFusionError::Execution(format!("a binary column {name} without nulls is missing"))
    })
}

/// Reserves memory from the pool. If there is too little, pauses and returns an error, so that another executor can run
/// the task.
async fn reserve(site: &Site, memory: &MemoryReservation, bytes: usize, what: &str) -> Result<()> {
    match memory.try_grow(bytes) {
        Ok(()) => Ok(()),
        Err(cause) => Err(site.lacks_memory(what, &cause).await),
    }
}

async fn multiply(
    site: Arc<Site>,
    mut input: SendableRecordBatchStream,
    memory: MemoryReservation,
) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    while let Some(batch) = input.next().await {
        let batch = batch?;
        for bytes in binary(&batch, "order")?.iter().flatten() {
            let order = Order::from_bytes(bytes)?.shared();
            reserve(&site, &memory, order.memory, "a task").await?;
            tracing::info!(band = ?order.task.band(), "multiply: begins");
            let at = site.clone();
            let done = blocking(move || {
                let partials = at.multiply(&order).map_err(failed)?;
                let packing = order.packing().to_bytes();
                let row = |partial: &Partial| Row::new(partial, packing.clone());
                partials.iter().map(row).collect::<Result<Vec<_>>>()
            });
            rows.extend(done.await?);
        }
    }
    site.has_memory();
    let out: usize = rows.iter().map(|row| row.partial.len()).sum();
    let read = site.bytes_read();
    tracing::info!(rows = rows.len(), bytes = out, read, "multiply: done");
    Ok(rows)
}

/// Incomplete sums, and the tiles that are done.
#[derive(Default)]
struct Totals {
    sums: BTreeMap<TileId, TileSums>,
    done: BTreeSet<TileId>,
}

impl Totals {
    /// Adds a partial result. Returns a tile's root, or its sums once they are over all record chunks.
    fn add(&mut self, partial: Partial) -> Result<Option<Partial>> {
        let tile = partial.tile();
        if self.done.contains(&tile) {
            let twice = fhaim_he::Error::Mismatch("a tile was computed twice");
            return Err(failed(twice));
        }
        let sums = match partial {
            Partial::Root(root) => {
                self.done.insert(tile);
                return Ok(Some(Partial::Root(root)));
            }
            Partial::Sums(sums) => sums,
        };
        let all = match self.sums.remove(&tile) {
            Some(mut before) => {
                before.add(&sums).map_err(failed)?;
                before
            }
            None => sums,
        };
        if all.is_whole() {
            self.done.insert(tile);
            return Ok(Some(Partial::Sums(all)));
        }
        self.sums.insert(tile, all);
        Ok(None)
    }

    /// Checks that no sums are incomplete.
    fn finish(&self) -> Result<()> {
        match self.sums.first_key_value() {
            None => Ok(()),
            Some(_) => Err(failed(fhaim_he::Error::Mismatch(
                "a tile's sums lack record chunks",
            ))),
        }
    }
}

async fn pack(
    site: Arc<Site>,
    mut input: SendableRecordBatchStream,
    memory: MemoryReservation,
) -> Result<Vec<Row>> {
    let mut totals = Totals::default();
    let mut rows = Vec::new();
    let mut kept = BTreeSet::new();
    tracing::info!("pack: begins");
    while let Some(batch) = input.next().await {
        let batch = batch?;
        let (partials, packings) = (binary(&batch, "partial")?, binary(&batch, "packing")?);
        for (bytes, packing) in partials.iter().flatten().zip(packings.iter().flatten()) {
            let packing = Packing::from_bytes(packing)?;
            let partial = Partial::from_bytes(&packing.params, bytes).map_err(failed)?;
            if kept.insert(partial.tile()) {
                // A residue takes a full word in memory, up to a fifth more than its encoding.
                reserve(&site, &memory, bytes.len() + bytes.len() / 4, "sums").await?;
            }
            let Some(whole) = totals.add(partial)? else {
                continue;
            };
            let at = site.clone();
            let root = blocking(move || {
                let root = match whole {
                    Partial::Sums(sums) => at.pack(&packing, sums).map_err(failed)?,
                    root => root,
                };
                Row::new(&root, Vec::new())
            });
            rows.push(root.await?);
        }
    }
    totals.finish()?;
    site.has_memory();
    let out: usize = rows.iter().map(|row| row.partial.len()).sum();
    tracing::info!(rows = rows.len(), bytes = out, "pack: done");
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::datasource::memory::MemorySourceConfig;
    use fhaim_he::{
        Backend, BlobPlace, COMPACT, Cell, Combination, EncryptedTable, EvaluationContext, Factors,
        Layout, PagePlan, Parameters, SecretKey, Threads, UploadCiphertext, UploadKey,
    };
    use fhaim_platform::{blobs::Blobs, config};
    use rand::SeedableRng;
    use std::sync::Mutex;

    /// Returns the sums of a tile over each of two bands, as rows with the places of the keys.
    fn bands(folder: &std::path::Path) -> Vec<RecordBatch> {
        let mut rng = rand::rngs::StdRng::seed_from_u64(1);
        let params = Parameters::new(COMPACT).unwrap();
        let secret = SecretKey::random(&params, &mut rng).unwrap();
        let public = secret.public_key(&mut rng).unwrap();
        let keys = secret.evaluation_keys(&mut rng).unwrap();
        let layout = Layout::for_records(2 * 8192).unwrap();
        let upload = UploadKey::random(&params, &mut rng).unwrap();
        let own = upload.switch_keys(&public, Some(layout), &mut rng).unwrap();
        let mut chunk = || -> Vec<UploadCiphertext> {
            let sent = upload.encrypt(&[1; 8192], &mut rng).unwrap().into_iter();
            sent.map(|one| one.expand(&params).unwrap()).collect()
        };
        let table = vec![vec![chunk(), chunk()], vec![chunk(), chunk()]];
        let table = EncryptedTable::new(&params, layout, table).unwrap();
        let context = EvaluationContext::new(&keys, layout);
        let context = context.with_switch_keys(&own).unwrap();
        let all: Vec<Combination> = (0..2).map(Combination::column).collect();
        let factors = Factors {
            left: &all,
            right: &all,
        };
        let cells = [vec![(0, Cell::Product { left: 0, right: 1 })]];
        let plan = PagePlan::new(&context, &table, 0, factors, &cells).unwrap();
        let tasks = plan.tasks(0);
        assert_eq!(tasks.len(), 2);
        let put = |name: &str, bytes: &[u8]| {
            std::fs::write(folder.join(name), bytes).unwrap();
            BlobPlace {
                name: name.to_owned(),
                digest: fhaim_api::Digest::of(bytes).0,
            }
        };
        let packing = Packing {
            params: params.clone(),
            layout,
            keys: put("keys", &keys.to_bytes()),
            holder: Some(put("switch-keys", &own.to_bytes())),
        };
        let rows = Mutex::new(Vec::new());
        for task in tasks {
            let take = |partial: Partial| {
                let row = Row::new(&partial, packing.to_bytes()).unwrap();
                rows.lock().unwrap().push(row.batch().unwrap());
                Ok(())
            };
            Threads::default()
                .run(&context, &table, &[task], &take)
                .unwrap();
        }
        rows.into_inner().unwrap()
    }

    async fn packed(site: &Arc<Site>, rows: Vec<RecordBatch>) -> Result<usize> {
        let source = MemorySourceConfig::try_new(&[rows], PARTIALS.clone(), None)?;
        let source = datafusion::datasource::source::DataSourceExec::from_data_source(source);
        let node = Node::new(Kind::Pack, source, Some(site.clone()))?;
        let stream = node.execute(0, Arc::new(TaskContext::default()))?;
        let batches: Vec<RecordBatch> = stream.try_collect().await?;
        Ok(batches.len())
    }

    /// Covers the sums that a leaf would produce if it ran every band in every task.
    #[tokio::test]
    async fn repeated_or_missing_band_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let rows = bands(folder.path());
        let blobs = config::Blobs {
            url: format!("file://{}", folder.path().display()),
            endpoint: None,
            region: None,
        };
        let site = Arc::new(Site::new(Blobs::open(&blobs).unwrap()));
        assert_eq!(packed(&site, rows.clone()).await.unwrap(), 1);
        let again = [rows.clone(), rows.clone()].concat();
        let twice = [rows[0].clone(), rows[0].clone(), rows[1].clone()].to_vec();
        let never = rows[..1].to_vec();
        for (rows, reason) in [
            (again, "a tile was computed twice"),
            (twice, "record chunks would be summed twice"),
            (never, "a tile's sums lack record chunks"),
        ] {
            let refused = packed(&site, rows).await.unwrap_err().to_string();
            assert!(refused.contains(reason), "{refused}");
        }
    }
}

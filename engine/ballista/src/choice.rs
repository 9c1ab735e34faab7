//! Sends only large batches to other machines.
//!
//! A batch on executors waits for their next poll and for the transfer of its data: a second or more, even for a small
//! batch. In the meantime, the threads of this process are idle.

use crate::driver::Ballista;
use fhaim_he::{Backend, Columns, EvaluationContext, EvaluationWork, Partial, Threads, TileTask};

/// Runs batches with few products on the threads of this process, and all others on Ballista.
#[derive(Debug)]
pub struct BySize {
    small: Threads,
    large: Ballista,
    least_products: u64,
}

impl BySize {
    /// Creates a backend that sends batches of at least this number of products ([`TileTask::products`]) to other
    /// machines.
    pub fn new(large: Ballista, least_products: u64) -> Self {
        Self {
            small: Threads::with_memory(large.task_memory()),
            large,
            least_products,
        }
    }
}

impl Backend for BySize {
    fn task_memory(&self) -> usize {
        self.large.task_memory()
    }

    fn run(
        &self,
        context: &EvaluationContext<'_>,
        table: &dyn Columns,
        tasks: &[TileTask],
        take: &(dyn Fn(Partial) -> fhaim_he::Result<()> + Sync),
    ) -> fhaim_he::Result<EvaluationWork> {
        let products: u64 = tasks.iter().map(TileTask::products).sum();
        let elsewhere = products >= self.least_products;
        let backend: &dyn Backend = if elsewhere { &self.large } else { &self.small };
        tracing::info!(products, elsewhere, "running a batch");
        backend.run(context, table, tasks, take)
    }
}

//! Which batches go to other machines: the large ones.
//!
//! A batch on executors waits for their next question and for what is sent there and back, a second or more whatever
//! its size, and leaves the threads of this process idle meanwhile.

use crate::driver::Ballista;
use fhaim_he::{Backend, Columns, EvaluationContext, EvaluationWork, Partial, Threads, TileTask};

/// Runs batches of few products on the threads of this process, and others on Ballista.
#[derive(Debug)]
pub struct BySize {
    small: Threads,
    large: Ballista,
    least_products: u64,
}

impl BySize {
    /// Sends batches of at least so many products ([`TileTask::products`]) to other machines.
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
        tracing::info!(products, elsewhere, "a batch");
        backend.run(context, table, tasks, take)
    }
}

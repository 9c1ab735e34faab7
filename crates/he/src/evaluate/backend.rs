//! Backends that run the tasks of a plan: the threads of this process, or others.

use crate::error::Result;
use crate::evaluate::context::EvaluationContext;
use crate::evaluate::operands::Operands;
use crate::evaluate::parallel::map;
use crate::evaluate::partial::{Partial, TileSums};
use crate::evaluate::task::TileTask;
use crate::evaluate::work::EvaluationWork;
use crate::table::Columns;
use std::fmt;

/// Default number of bytes that a task may take for factors and sums. It is enough for `adult-32` (48,842 records,
/// 247 columns) without dividing records into bands.
pub const WORKING_BYTES: usize = 2 << 30;

/// Runs tasks over a table.
///
/// The result of a tile is the same wherever it is computed, residue for residue. A backend may add up the sums
/// that tasks over several bands compute for one tile ([`TileSums::add`]) and pack them
/// ([`EvaluationContext::pack`]), or return the sums as they are. Nothing is drawn at random, so a backend may run
/// a task several times, provided that it returns one result.
pub trait Backend: fmt::Debug + Send + Sync {
    /// Returns the approximate number of bytes that a task may take for factors and sums.
    fn task_memory(&self) -> usize;

    /// Runs every task once, and passes the results of their tiles to `take`, in any order and from any thread.
    /// Returns the work, as far as the backend knows it.
    ///
    /// # Errors
    /// Errors of reading the table and of `take`. [`crate::Error::Unavailable`] for temporary failures.
    fn run(
        &self,
        context: &EvaluationContext<'_>,
        table: &dyn Columns,
        tasks: &[TileTask],
        take: &(dyn Fn(Partial) -> Result<()> + Sync),
    ) -> Result<EvaluationWork>;
}

/// Runs tasks on the threads of this process: one task after the other, the tiles of each task in parallel.
///
/// Sums stay in memory from one band of record chunks to the next. When the last task of a run of adjacent bands
/// completes a tile's sums, the thread that has them in its cache packs them.
#[derive(Clone, Copy, Debug)]
pub struct Threads {
    memory: usize,
}

impl Default for Threads {
    fn default() -> Self {
        Self::with_memory(WORKING_BYTES)
    }
}

impl Threads {
    /// Returns a backend whose tasks take at most about `bytes` for factors and sums.
    pub fn with_memory(bytes: usize) -> Self {
        Self { memory: bytes }
    }
}

impl Backend for Threads {
    fn task_memory(&self) -> usize {
        self.memory
    }

    fn run(
        &self,
        context: &EvaluationContext<'_>,
        table: &dyn Columns,
        tasks: &[TileTask],
        take: &(dyn Fn(Partial) -> Result<()> + Sync),
    ) -> Result<EvaluationWork> {
        let mut work = EvaluationWork::default();
        for tasks in tasks.chunk_by(TileTask::same_block) {
            run_bands(context, table, tasks, take, &mut work)?;
        }
        Ok(work)
    }
}

/// Runs tasks over the same tiles, band after band, and passes the results of the last one on.
fn run_bands(
    context: &EvaluationContext<'_>,
    table: &dyn Columns,
    tasks: &[TileTask],
    take: &(dyn Fn(Partial) -> Result<()> + Sync),
    work: &mut EvaluationWork,
) -> Result<()> {
    let Some((last, others)) = tasks.split_last() else {
        return Ok(());
    };
    let mut sums: Vec<Option<TileSums>> = last.tiles().map(|_| None).collect();
    for task in others {
        let operands = Operands::read(context, table, task, work)?;
        let tiles = task.block.tiles.iter().zip(&mut sums).collect();
        let done = map(tiles, |(tile, kept): (_, &mut Option<TileSums>)| {
            let empty = || TileSums::empty(context, &operands.table, &task.block, tile);
            context.add_tile(task, &operands, tile, kept.get_or_insert_with(empty))
        });
        *work += done.into_iter().sum::<Result<EvaluationWork>>()?;
    }
    let operands = Operands::read(context, table, last, work)?;
    let tiles = last.block.tiles.iter().zip(sums).collect();
    let done = map(tiles, |(tile, kept): (_, Option<TileSums>)| {
        let empty = || TileSums::empty(context, &operands.table, &last.block, tile);
        let mut sums = kept.unwrap_or_else(empty);
        let mut work = context.add_tile(last, &operands, tile, &mut sums)?;
        if sums.is_whole() {
            let (root, packing) = context.pack(sums)?;
            work += packing;
            take(Partial::Root(root))?;
        } else {
            take(Partial::Sums(sums))?;
        }
        Ok(work)
    });
    *work += done.into_iter().sum::<Result<EvaluationWork>>()?;
    Ok(())
}

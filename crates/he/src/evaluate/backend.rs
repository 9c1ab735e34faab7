//! Who runs the tasks of a plan: the threads of this process, or whatever else runs tasks.

use crate::error::Result;
use crate::evaluate::context::EvaluationContext;
use crate::evaluate::operands::Operands;
use crate::evaluate::parallel::map;
use crate::evaluate::partial::{Partial, TileSums};
use crate::evaluate::task::TileTask;
use crate::evaluate::work::EvaluationWork;
use crate::table::Columns;
use std::fmt;

/// A task may take so many bytes for factors and sums, unless a backend is told otherwise: what
/// `adult-32` (48,842 records, 247 columns) needs without going through bands.
pub const WORKING_BYTES: usize = 2 << 30;

/// Runs tasks over a table.
///
/// What becomes of a tile is the same wherever it is computed, residue for residue. A backend may
/// add up the sums of a tile that tasks over several bands give ([`TileSums::add`]) and pack them
/// ([`EvaluationContext::pack`]), or hand the sums over as they are. It draws nothing at random, so
/// it may run a task again as often as it likes, if it hands over one result.
pub trait Backend: fmt::Debug + Send + Sync {
    /// About how many bytes a task may take for factors and sums.
    fn task_memory(&self) -> usize;

    /// Runs every task once, and gives `take` what becomes of their tiles, in any order and from any
    /// thread. Returns what that took, as far as it is known.
    ///
    /// # Errors
    /// What reading the table or `take` refuses; [`crate::Error::Unavailable`] for what may pass.
    fn run(
        &self,
        context: &EvaluationContext<'_>,
        table: &dyn Columns,
        tasks: &[TileTask],
        take: &(dyn Fn(Partial) -> Result<()> + Sync),
    ) -> Result<EvaluationWork>;
}

/// The threads of this process: one task after the other, the tiles of each side by side.
///
/// Sums stay where they are from one band of record chunks to the next. Behind a tile's last task
/// that follows without a gap they are packed, if they are whole, on the thread that has them in its
/// cache.
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
    /// Threads whose tasks take at most about `bytes` for factors and sums.
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

/// Runs tasks over the same tiles, band after band. The last one hands over.
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

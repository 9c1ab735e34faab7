//! Division of tasks for the machines that run them.
//!
//! A tile's sums take megabytes, many times as much as its columns in one record chunk. Threads keep sums in memory
//! from one band to the next, but machines that each compute one band of a tile must send sums to each other. So
//! tasks that are sent to other machines are divided over tiles before they are divided over record chunks
//! ([`spread`]). The machine that takes a task divides it [into bands](TileTask::bands) that fit its memory.

use crate::evaluate::task::{Block, Leaf, Product, Tile, TileTask};
use crate::scheme::params::Parameters;
use crate::table::Combination;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// Divides tasks into at least `least` tasks with the same work, if possible. Each task covers all record chunks that
/// consecutive given tasks covered together, unless there are fewer tiles than `least`.
pub fn spread(tasks: &[TileTask], least: usize) -> Vec<TileTask> {
    let follows = |a: &TileTask, b: &TileTask| a.same_block(b) && a.band.end == b.band.start;
    let joined: Vec<TileTask> = tasks.chunk_by(follows).filter_map(joined).collect();
    let parts = least.div_ceil(joined.len().max(1)).max(1);
    let tiles: Vec<TileTask> = joined
        .iter()
        .flat_map(|task| task.tiles_in(parts))
        .collect();
    let parts = least.div_ceil(tiles.len().max(1)).max(1);
    tiles
        .iter()
        .flat_map(|task| task.chunks_in(parts))
        .collect()
}

/// Joins tasks over the same tiles, whose bands follow each other, into one.
fn joined(tasks: &[TileTask]) -> Option<TileTask> {
    let (first, last) = (tasks.first()?, tasks.last()?);
    Some(TileTask {
        block: first.block.clone(),
        band: first.band.start..last.band.end,
    })
}

impl TileTask {
    /// Divides the task into bands whose columns, and the factors made of them, take at most `memory` bytes, but at
    /// least one record chunk each. The bands follow each other.
    pub fn bands(&self, params: &Parameters, memory: usize) -> Vec<Self> {
        self.steps(self.block.chunks_within(params, memory))
    }

    fn chunks_in(&self, parts: usize) -> Vec<Self> {
        self.steps(self.band.len().div_ceil(parts))
    }

    /// Divides the task into bands of the given number of record chunks.
    fn steps(&self, chunks: usize) -> Vec<Self> {
        let Range { start, end } = self.band;
        let step = chunks.max(1);
        let band = |from: usize| from..from.saturating_add(step).min(end);
        let task = |from| Self {
            block: self.block.clone(),
            band: band(from),
        };
        (start..end).step_by(step).map(task).collect()
    }

    /// Divides the task into the given number of tasks over some of its tiles each, or fewer if it has fewer tiles.
    fn tiles_in(&self, parts: usize) -> Vec<Self> {
        if parts == 1 {
            return vec![self.clone()];
        }
        let block = &self.block;
        let each = block.tiles.len().div_ceil(parts).max(1);
        let part = |tiles: &[Tile]| Self {
            block: Arc::new(Block::of(
                (block.layout, block.residue),
                [&block.left, &block.right],
                tiles,
            )),
            band: self.band.clone(),
        };
        block.tiles.chunks(each).map(part).collect()
    }
}

impl Block {
    /// Makes a block of some tiles, with only the combinations that they name.
    pub(crate) fn of(
        (layout, residue): (crate::Layout, usize),
        [left, right]: [&[Combination]; 2],
        tiles: &[Tile],
    ) -> Self {
        let leaves = || tiles.iter().flat_map(|tile| &tile.leaves);
        let products = || leaves().flat_map(|leaf| &leaf.products);
        let slots = products().flat_map(|product| &product.left);
        let slots = slots.chain(leaves().flat_map(|leaf| &leaf.sums));
        let left = Renumbered::of(left, slots.map(|&(_, left)| left));
        let right = Renumbered::of(right, products().map(|product| product.right));
        let product = |product: &Product| Product {
            right: right.number(product.right),
            left: left.slots(&product.left),
        };
        let leaf = |leaf: &Leaf| Leaf {
            place: leaf.place,
            products: leaf.products.iter().map(product).collect(),
            sums: left.slots(&leaf.sums),
        };
        let tile = |tile: &Tile| Tile {
            id: tile.id,
            leaves: tile.leaves.iter().map(leaf).collect(),
        };
        let tiles = tiles.iter().map(tile).collect();
        Self {
            layout,
            residue,
            tiles,
            left: left.kept,
            right: right.kept,
        }
    }

    /// Returns the number of record chunks whose columns, and the factors made of them, take at most `memory` bytes,
    /// and at least one.
    pub(crate) fn chunks_within(&self, params: &Parameters, memory: usize) -> usize {
        let made = self.left.iter().filter(|c| c.single().is_none()).count() + self.right.len();
        let ciphertexts = self.columns().len() + made;
        let chunk = ciphertexts.max(1) * params.set().memory_bytes();
        (memory / chunk).max(1)
    }
}

/// Some combinations of a list, with their new numbers.
struct Renumbered {
    kept: Vec<Combination>,
    numbers: BTreeMap<usize, usize>,
}

impl Renumbered {
    fn of(all: &[Combination], needed: impl Iterator<Item = usize>) -> Self {
        let needed: BTreeSet<usize> = needed.collect();
        let kept = needed.iter().filter_map(|&old| all.get(old).cloned());
        Self {
            kept: kept.collect(),
            numbers: needed.into_iter().zip(0..).collect(),
        }
    }

    /// Returns the new number of a needed combination.
    #[expect(
        clippy::indexing_slicing,
        reason = "callers only ask for combinations that they passed to `of`"
    )]
    fn number(&self, old: usize) -> usize {
        self.numbers[&old]
    }

    fn slots(&self, slots: &[(usize, usize)]) -> Vec<(usize, usize)> {
        let renumber = |&(slot, old): &(usize, usize)| (slot, self.number(old));
        slots.iter().map(renumber).collect()
    }
}

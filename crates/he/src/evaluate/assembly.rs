//! Assembly of pages from the results of their tiles: third step of an evaluation.
//!
//! Sums are added until they cover all record chunks, and are then packed. The roots of two neighbours are
//! merged as soon as both exist, so that few roots are held in memory. A page does not depend on the order and
//! the threads in which results arrive.

use crate::error::{Error, Result};
use crate::evaluate::context::EvaluationContext;
use crate::evaluate::partial::{Partial, TileRoot, TileSums};
use crate::evaluate::plan::{PagePlan, PlannedPage};
use crate::evaluate::task::TileId;
use crate::evaluate::work::{Clock, EvaluationWork};
use crate::release::page::PackedPage;
use crate::scheme::ciphertext::Ciphertext;
use crate::scheme::keyswitch::{Lifted, Scratch};
use crate::table::layout::TILE_HEIGHT;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The unfinished pages of a plan. Several threads may add results at the same time.
#[derive(Debug)]
pub struct Assembly<'a> {
    context: &'a EvaluationContext<'a>,
    plan: &'a PagePlan,
    state: Mutex<State>,
}

/// Results that wait for others.
#[derive(Debug, Default)]
struct State {
    /// Sums that lack record chunks.
    sums: BTreeMap<TileId, TileSums>,
    /// Tiles that have been packed, or are being packed.
    packed: BTreeSet<TileId>,
    /// Roots of subtrees that wait for their neighbour.
    nodes: BTreeMap<Node, Lifted>,
    /// Finished pages, by number.
    pages: BTreeMap<usize, Ciphertext>,
    work: EvaluationWork,
}

const TWICE: Error = Error::Mismatch("a tile was computed twice");

impl State {
    /// Records that a tile is complete. Rejects a second call for the same tile.
    fn begin_packing(&mut self, tile: TileId) -> Result<()> {
        if self.sums.contains_key(&tile) || !self.packed.insert(tile) {
            return Err(TWICE);
        }
        Ok(())
    }
}

/// A subtree of a page's tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Node {
    page: usize,
    height: usize,
    /// Number of the subtree among those of the same height, from the left.
    index: usize,
}

impl Node {
    fn neighbour(self) -> Self {
        Self {
            index: self.index ^ 1,
            ..self
        }
    }

    fn parent(self) -> Self {
        Self {
            height: self.height + 1,
            index: self.index / 2,
            ..self
        }
    }

    /// Returns whether the plan has a tile in this subtree.
    fn is_planned(self, page: &PlannedPage) -> bool {
        let tiles = self.height - TILE_HEIGHT;
        page.has_tile_within(self.index << tiles..(self.index + 1) << tiles)
    }
}

impl<'a> Assembly<'a> {
    /// Starts an assembly of a plan's pages.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for a plan with other parameters, another layout or columns under other keys.
    pub fn new(context: &'a EvaluationContext<'a>, plan: &'a PagePlan) -> Result<Self> {
        context.check(plan.params(), plan.layout())?;
        context.check_sections(plan.sections())?;
        Ok(Self {
            context,
            plan,
            state: Mutex::default(),
        })
    }

    /// Adds the result of a tile, and packs all tiles and subtrees that are complete.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for a tile that is not in the plan, and for record chunks or a tile that were added
    /// before.
    pub fn take(&self, partial: Partial) -> Result<()> {
        let page = self.planned(&partial)?;
        let root = match partial {
            Partial::Root(root) => {
                self.state().begin_packing(root.id)?;
                root
            }
            Partial::Sums(sums) => match self.add(sums)? {
                Some(whole) => {
                    let (root, work) = self.context.pack(whole)?;
                    self.state().work += work;
                    root
                }
                None => return Ok(()),
            },
        };
        self.raise(page, root)
    }

    /// Returns the pages with their noise, and the work of assembling them. A page without cells is `None`.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if a tile, or record chunks of a tile, were not added.
    pub fn pages(self) -> Result<(Vec<Option<PackedPage>>, EvaluationWork)> {
        let state = self.state.into_inner();
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        let page = |(number, planned): (usize, &Option<PlannedPage>)| {
            let Some(planned) = planned else {
                return Ok(None);
            };
            let missing = Error::Mismatch("a tile was not computed");
            let ciphertext = state.pages.remove(&number).ok_or(missing)?;
            let noise = planned.noise;
            Ok(Some(PackedPage { ciphertext, noise }))
        };
        let pages = self.plan.pages().iter().enumerate().map(page);
        Ok((pages.collect::<Result<_>>()?, state.work))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the page of a tile that is in the plan.
    fn planned(&self, partial: &Partial) -> Result<&'a PlannedPage> {
        let (TileId { page, index }, residue) = match partial {
            Partial::Sums(sums) => (sums.id, sums.residue),
            Partial::Root(root) => (root.id, root.residue),
        };
        let page = self.plan.pages().get(page).and_then(Option::as_ref);
        let sections = |sums: &TileSums| sums.sections().eq(self.plan.sections());
        let of_table = match partial {
            Partial::Sums(sums) => sections(sums),
            Partial::Root(_) => true,
        };
        page.filter(|page| page.has_tile_within(index..index + 1))
            .filter(|_| residue == self.plan.residue() && of_table)
            .ok_or(Error::Mismatch("the tile is not in the plan"))
    }

    /// Adds a tile's sums to those that were added before. Returns all of them when they are complete.
    fn add(&self, sums: TileSums) -> Result<Option<TileSums>> {
        let mut state = self.state();
        if state.packed.contains(&sums.id) {
            return Err(TWICE);
        }
        let all = match state.sums.remove(&sums.id) {
            Some(mut before) => {
                before.add(&sums)?;
                before
            }
            None => sums,
        };
        if all.is_whole() {
            state.begin_packing(all.id)?;
            return Ok(Some(all));
        }
        state.sums.insert(all.id, all);
        Ok(None)
    }

    /// Merges a tile's root with its neighbour, the result with the next neighbour, and so on, as far as the
    /// neighbours exist. The thread that adds the second of two neighbours merges them.
    fn raise(&self, page: &PlannedPage, tile: TileRoot) -> Result<()> {
        self.context.params().check_same(&tile.params)?;
        let packer = &self.context.packer;
        let mut work = EvaluationWork::default();
        let mut root = tile.root;
        let mut node = Node {
            page: tile.id.page,
            height: TILE_HEIGHT,
            index: tile.id.index,
        };
        while node.height < packer.height() {
            let mut neighbour = None;
            if node.neighbour().is_planned(page) {
                let mut state = self.state();
                neighbour = state.nodes.remove(&node.neighbour());
                if neighbour.is_none() {
                    state.nodes.insert(node, root);
                    state.work += work;
                    return Ok(());
                }
            }
            let (u, v) = match node.index % 2 {
                0 => (Some(root), neighbour),
                _ => (neighbour, Some(root)),
            };
            let started = Clock::start();
            let merge = |scratch: &mut Scratch| packer.merge(node.height, u, v, scratch);
            let merged = self.context.with_scratch(&mut work, merge);
            work.packing += started.seconds();
            root = merged.ok_or(Error::Mismatch("a subtree has no leaves"))?;
            node = node.parent();
        }
        let finish = |scratch: &mut Scratch| packer.finish(self.plan.residue(), root, scratch);
        let ciphertext = self.context.with_scratch(&mut work, finish);
        let mut state = self.state();
        state.pages.insert(node.page, ciphertext);
        state.work += work;
        Ok(())
    }
}

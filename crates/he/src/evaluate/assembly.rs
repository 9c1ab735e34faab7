//! Pages from what becomes of their tiles: third step of an evaluation.
//!
//! Sums are added until they are over all record chunks, and packed; two neighbours' roots are
//! merged as soon as both are there, so that few are held. What arrives in which order, and on which
//! thread, makes no difference to a page.

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

/// The pages of a plan while they are put together. Many threads may hand over to it at once.
#[derive(Debug)]
pub struct Assembly<'a> {
    context: &'a EvaluationContext<'a>,
    plan: &'a PagePlan,
    state: Mutex<State>,
}

/// What was handed over and waits for more.
#[derive(Debug, Default)]
struct State {
    /// Sums that lack record chunks.
    sums: BTreeMap<TileId, TileSums>,
    /// Tiles that are packed, or being packed.
    packed: BTreeSet<TileId>,
    /// Roots of subtrees that wait for their neighbour.
    nodes: BTreeMap<Node, Lifted>,
    /// Pages that are whole, by number.
    pages: BTreeMap<usize, Ciphertext>,
    work: EvaluationWork,
}

const TWICE: Error = Error::Mismatch("a tile was computed twice");

impl State {
    /// Notes that a tile is whole, once.
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
    /// Number of the subtree among those of its height, from the left.
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

    /// Whether the plan has something below it.
    fn is_planned(self, page: &PlannedPage) -> bool {
        let tiles = self.height - TILE_HEIGHT;
        page.has_tile_within(self.index << tiles..(self.index + 1) << tiles)
    }
}

impl<'a> Assembly<'a> {
    /// An assembly of a plan's pages, none of which is there yet.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for a plan of other parameters, another layout or columns under other keys.
    pub fn new(context: &'a EvaluationContext<'a>, plan: &'a PagePlan) -> Result<Self> {
        context.check(plan.params(), plan.layout())?;
        context.check_sections(plan.sections())?;
        Ok(Self {
            context,
            plan,
            state: Mutex::default(),
        })
    }

    /// Takes over what became of a tile, and packs what can be packed.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for what the plan does not ask for, or for record chunks or a tile that
    /// were handed over before.
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

    /// The pages with their noise, `None` for those without cells; and what putting them together
    /// took.
    ///
    /// # Errors
    /// [`Error::Mismatch`] where a tile, or record chunks of it, were not handed over.
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

    /// The page of a tile that the plan has.
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
            .ok_or(Error::Mismatch("a tile that was not asked for"))
    }

    /// Adds a tile's sums to those that are there; all of them once they are whole.
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

    /// Merges a tile's root with its neighbour, the two with theirs, and so on, as far as they are
    /// there. Whoever comes last goes on.
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
            root = merged.ok_or(Error::Mismatch("a subtree without leaves"))?;
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

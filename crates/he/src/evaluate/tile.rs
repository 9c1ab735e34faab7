//! Multiplication and packing of tiles of a packing tree: second step of an evaluation.

use crate::error::{Error, Result};
use crate::evaluate::context::EvaluationContext;
use crate::evaluate::operands::{Operands, SectionOperands};
use crate::evaluate::packing::merge_row;
use crate::evaluate::partial::{PairShape, TileRoot, TileSums};
use crate::evaluate::task::{Leaf, LeafPair, Product, TILE_PAIRS, Tile, TileTask};
use crate::evaluate::tensor::{Spread, Tensor};
use crate::evaluate::work::{Clock, EvaluationWork};
use crate::scheme::keyswitch::{Lifted, Scratch};
use crate::scheme::ring::DEGREE;
use crate::scheme::ring::Pair;
use crate::scheme::upload::MergeKeys;
use crate::table::Operand;
use crate::table::layout::TILE_HEIGHT;

impl EvaluationContext<'_> {
    /// Computes the sums of every tile of a task over its record chunks, one tile after the other.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for operands of another task.
    pub fn multiply<'s>(
        &'s self,
        task: &'s TileTask,
        operands: &'s Operands,
    ) -> impl Iterator<Item = Result<(TileSums, EvaluationWork)>> + 's {
        task.block.tiles.iter().map(|tile| {
            let mut sums = TileSums::empty(self, &operands.table, &task.block, tile);
            let work = self.add_tile(task, operands, tile, &mut sums)?;
            Ok((sums, work))
        })
    }

    /// Adds the products and sums of a tile's leaves over a task's record chunks to `sums`, and merges the leaves of
    /// sections that are then complete.
    pub(crate) fn add_tile(
        &self,
        task: &TileTask,
        operands: &Operands,
        tile: &Tile,
        sums: &mut TileSums,
    ) -> Result<EvaluationWork> {
        if !operands.are_of(task) || !operands.multiply(tile) {
            return Err(Error::Mismatch("the operands belong to another task"));
        }
        let mut work = EvaluationWork::default();
        for section in &operands.sections {
            work += self.add_section(section, tile, sums)?;
            self.merge_whole(sums, &mut work)?;
        }
        Ok(work)
    }

    /// Adds the products and sums of a tile's leaves over the record chunks of one section.
    fn add_section(
        &self,
        operands: &SectionOperands,
        tile: &Tile,
        sums: &mut TileSums,
    ) -> Result<EvaluationWork> {
        let started = Clock::start();
        let ring = self.params().ring();
        let tensor = Tensor {
            ring,
            left: &operands.left,
            right: &operands.right,
            stride: self.layout().stride(),
            monomial: self.packer.first_monomial(),
        };
        let pairs = tile.pairs();
        let products: Vec<[&[Product]; 2]> = pairs.iter().map(LeafPair::products).collect();
        let section = sums.sections.get_mut(operands.section);
        let section = section.ok_or(Error::Mismatch("the operands belong to another table"))?;
        let (into, spreads) = section.cover(ring, pairs.len(), operands.band.clone())?;
        tensor.tile(&products, into, spreads);
        for (pair, out) in pairs.iter().zip(spreads) {
            self.add_sums(&operands.left, pair, out);
        }
        let terms: usize = products.iter().flatten().map(|p| p.len()).sum();
        let limbs = ring.ciphertext_limbs().len();
        Ok(EvaluationWork {
            multiply_accumulates: (4 * terms * operands.band.len() * limbs * DEGREE) as u64,
            tensor: started.seconds(),
            ..EvaluationWork::default()
        })
    }

    /// Adds the sums of the columns of a pair of leaves, spread.
    fn add_sums(&self, left: &[Operand], pair: &LeafPair<'_>, out: &mut Spread) {
        let [u, v] = pair.leaves.map(|leaf| self.column_sums(left, leaf?));
        let [[s0, s1, _], [d0, d1, _]] = out;
        let sums = self.packer.spread_leaves(u, v);
        let sums = sums.iter().flatten().flatten();
        for (out, sum) in [s0, s1, d0, d1].into_iter().zip(sums) {
            out.add_assign(sum, self.params().ring());
        }
    }

    /// Returns the sums of a leaf's columns at their slots, or `None` if it has none.
    fn column_sums(&self, left: &[Operand], leaf: &Leaf) -> Option<Pair> {
        if leaf.sums.is_empty() {
            return None;
        }
        let ring = self.params().ring();
        let stride = self.layout().stride();
        let mut out = [ring.zero(), ring.zero()];
        for (half, out) in out.iter_mut().enumerate() {
            for &(slot, operand) in &leaf.sums {
                for chunk in left.get(operand)? {
                    ring.add_shifted(out, chunk.c.get(half)?, slot * stride);
                }
            }
            for (j, limb) in ring.ciphertext_limbs().iter().enumerate() {
                let m = limb.modulus;
                let unit = u128::from(m.mont(m.inv(stride as u64)));
                for (o, &one) in out.limb_mut(j).iter_mut().zip(self.ones.limb(j)) {
                    let summed = m.redc(u128::from(*o) * u128::from(one));
                    *o = m.redc(u128::from(summed) * unit);
                }
            }
        }
        Some(out)
    }

    /// Merges the leaves of sections whose sums are complete. The results are under s, so they add up over sections.
    fn merge_whole(&self, sums: &mut TileSums, work: &mut EvaluationWork) -> Result<()> {
        let started = Clock::start();
        for number in 0..sums.sections.len() {
            let whole = sums.sections.get_mut(number);
            let whole = whole.and_then(|section| Some((section.key(), section.take_whole()?)));
            let Some((key, spreads)) = whole else {
                continue;
            };
            let keys = self.merge_keys(key)?;
            let pairs = sums.pairs.iter().zip(spreads);
            let merged = self.with_scratch(work, |scratch| {
                let merge = |(pair, spread)| self.merge_leaves(keys, pair, spread, scratch);
                pairs.map(merge).collect()
            });
            sums.add_merged(merged);
        }
        work.switching += started.seconds();
        Ok(())
    }

    /// Packs a tile: merges its leaves, and the nodes of each level above.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for sums under other parameters or another key, and for sums that lack record chunks.
    pub fn pack(&self, mut sums: TileSums) -> Result<(TileRoot, EvaluationWork)> {
        self.params().check_same(sums.params())?;
        if !sums.is_whole() {
            return Err(Error::Mismatch("a tile's sums lack record chunks"));
        }
        let mut work = EvaluationWork::default();
        self.merge_whole(&mut sums, &mut work)?;
        let mut nodes: Vec<Option<Lifted>> = (0..TILE_PAIRS).map(|_| None).collect();
        for (pair, merged) in sums.pairs.iter().zip(sums.merged) {
            if let Some(node) = nodes.get_mut(pair.index) {
                *node = Some(merged);
            }
        }

        let started = Clock::start();
        self.with_scratch(&mut work, |scratch| {
            for height in 1..TILE_HEIGHT {
                let row = std::mem::take(&mut nodes);
                nodes = merge_row(row, |u, v| self.packer.merge(height, u, v, scratch));
            }
        });
        let root = nodes.pop().flatten();
        let root = root.ok_or(Error::Mismatch("a tile has no leaves"))?;
        let settle = |scratch: &mut Scratch| self.packer.switcher.settle(root, scratch);
        let root = self.with_scratch(&mut work, settle);
        work.packing += started.seconds();
        let root = TileRoot {
            id: sums.id,
            residue: sums.residue,
            params: self.params().clone(),
            root,
        };
        Ok((root, work))
    }

    /// Relinearises and merges a pair of leaves.
    fn merge_leaves(
        &self,
        keys: MergeKeys<'_>,
        pair: &PairShape,
        [[s0, s1, s2], [d0, d1, d2]]: Spread,
        scratch: &mut Scratch,
    ) -> Lifted {
        let squares = pair.squares.then_some([s2, d2]);
        let leaves = [[s0, s1], [d0, d1]];
        self.packer
            .merge_uploaded_leaves(keys, leaves, squares, scratch)
    }
}

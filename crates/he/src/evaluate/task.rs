//! Parts of a batch as values: tiles of the packing trees' leaves, and tasks that multiply some tiles over some
//! of the records.
//!
//! A task names its combinations of columns, record chunks and cells. It holds no ciphertext and no key, and
//! nothing in it is secret. The decoder checks a task completely, so every existing task can be run.

use crate::error::Result;
use crate::scheme::params::Parameters;
use crate::table::Combination;
use crate::table::layout::{Layout, PAGE, TILE_HEIGHT};
use crate::wire::{Kind, Reader, frame, put_u32, unframe};
use std::ops::Range;
use std::sync::Arc;

/// Number of leaves of a complete tile.
pub(crate) const TILE_LEAVES: usize = 1 << TILE_HEIGHT;

/// Largest number of pairs of leaves of a tile.
pub(crate) const TILE_PAIRS: usize = TILE_LEAVES / 2;

/// Upper bound on the bytes of an encoded task.
const MAX_BYTES: usize = 1 << 28;

/// Identifies a tile: a subtree of 2^4 leaves of one page's packing tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TileId {
    /// Number of the page in its batch.
    pub page: usize,
    /// Number of the tile in its page, from the left.
    pub index: usize,
}

/// One product of a leaf: the right operand times the sum of left operands, each shifted to its slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Product {
    pub(crate) right: usize,
    /// (slot, left operand)
    pub(crate) left: Vec<(usize, usize)>,
}

/// A leaf of the packing tree: the products and sums that are added up before relinearisation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Leaf {
    /// Position in its tile, from the left.
    pub(crate) place: usize,
    pub(crate) products: Vec<Product>,
    /// (slot, left operand)
    pub(crate) sums: Vec<(usize, usize)>,
}

/// Leaves 2 i and 2 i + 1 of a tile, at least one of which exists.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeafPair<'a> {
    pub(crate) index: usize,
    pub(crate) leaves: [Option<&'a Leaf>; 2],
}

impl<'a> LeafPair<'a> {
    /// Makes a pair of one or two neighbouring leaves. Returns `None` for no leaf.
    fn new(leaves: &'a [Leaf]) -> Option<Self> {
        Some(Self {
            index: leaves.first()?.place / 2,
            leaves: [0, 1].map(|side| leaves.iter().find(|leaf| leaf.place % 2 == side)),
        })
    }

    pub(crate) fn products(&self) -> [&'a [Product]; 2] {
        self.leaves
            .map(|leaf| leaf.map_or(&[][..], |leaf| &leaf.products))
    }
}

/// A tile's leaves in order, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tile {
    pub(crate) id: TileId,
    pub(crate) leaves: Vec<Leaf>,
}

impl Tile {
    /// Returns the pairs that have at least one leaf.
    pub(crate) fn pairs(&self) -> Vec<LeafPair<'_>> {
        let pairs = self.leaves.chunk_by(|a, b| a.place / 2 == b.place / 2);
        pairs.filter_map(LeafPair::new).collect()
    }
}

/// Tiles that are multiplied together, with the operands that they name by index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) layout: Layout,
    /// Number of the plaintext modulus.
    pub(crate) residue: usize,
    pub(crate) left: Vec<Combination>,
    pub(crate) right: Vec<Combination>,
    /// The tiles in order of their identifiers, each once.
    pub(crate) tiles: Vec<Tile>,
}

impl Block {
    /// Returns for each left combination whether it is in a product. The others are only summed.
    pub(crate) fn multiplied(&self) -> Vec<bool> {
        let mut multiplied = vec![false; self.left.len()];
        let leaves = self.tiles.iter().flat_map(|tile| &tile.leaves);
        let products = leaves.flat_map(|leaf| &leaf.products);
        for &(_, left) in products.flat_map(|product| &product.left) {
            if let Some(multiplied) = multiplied.get_mut(left) {
                *multiplied = true;
            }
        }
        multiplied
    }

    /// Returns the columns that the combinations name, once each, in order.
    pub(crate) fn columns(&self) -> Vec<usize> {
        let combinations = self.left.iter().chain(&self.right);
        let named = combinations.flat_map(|c| c.0.iter().map(|&(column, _)| column));
        let mut columns: Vec<usize> = named.collect();
        columns.sort_unstable();
        columns.dedup();
        columns
    }
}

/// One part of a batch's work: the sums of products of some tiles, over a band of record chunks.
///
/// Tasks that differ only in their bands share their block of tiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileTask {
    pub(crate) block: Arc<Block>,
    pub(crate) band: Range<usize>,
}

impl TileTask {
    /// Returns the table's shape.
    pub fn layout(&self) -> Layout {
        self.block.layout
    }

    /// Returns the number of the plaintext modulus.
    pub fn residue(&self) -> usize {
        self.block.residue
    }

    /// Returns the record chunks that the task sums over.
    pub fn band(&self) -> Range<usize> {
        self.band.clone()
    }

    /// Returns the tiles that the task multiplies, in order.
    pub fn tiles(&self) -> impl Iterator<Item = TileId> {
        self.block.tiles.iter().map(|tile| tile.id)
    }

    /// Returns the one-hot columns that the task reads, once each, ascending.
    pub fn columns(&self) -> Vec<usize> {
        self.block.columns()
    }

    /// Returns the number of ciphertext products that the task sums: those of each leaf, in each record chunk.
    pub fn products(&self) -> u64 {
        let leaves = self.block.tiles.iter().flat_map(|tile| &tile.leaves);
        let a_chunk: usize = leaves.map(|leaf| leaf.products.len()).sum();
        a_chunk as u64 * self.band.len() as u64
    }

    /// Returns whether two tasks multiply the same tiles, in the same or different bands.
    pub(crate) fn same_block(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.block, &other.block) || self.block == other.block
    }

    /// Encodes the task.
    ///
    /// # Errors
    /// [`crate::Error::OutOfRange`] for a column or a count that does not fit in 32 bits.
    pub fn to_bytes(&self, params: &Parameters) -> Result<Vec<u8>> {
        let block = &*self.block;
        let mut out = Vec::new();
        for number in [
            block.layout.chunks(),
            block.layout.stride(),
            self.band.start,
            self.band.end,
        ] {
            put_u32(&mut out, number)?;
        }
        for combinations in [&block.left, &block.right] {
            put_u32(&mut out, combinations.len())?;
            for Combination(terms) in combinations {
                put_u32(&mut out, terms.len())?;
                for &(column, coefficient) in terms {
                    put_u32(&mut out, column)?;
                    out.extend_from_slice(&coefficient.to_le_bytes());
                }
            }
        }
        put_u32(&mut out, block.tiles.len())?;
        for tile in &block.tiles {
            for number in [tile.id.page, tile.id.index, tile.leaves.len()] {
                put_u32(&mut out, number)?;
            }
            for leaf in &tile.leaves {
                put_leaf(&mut out, leaf)?;
            }
        }
        Ok(frame(Kind::TileTask, params, block.residue, &out))
    }

    /// Decodes a task of the given parameter set.
    ///
    /// # Errors
    /// [`crate::Error::Malformed`] with the first rule that the bytes break.
    pub fn from_bytes(params: &Parameters, bytes: &[u8]) -> Result<Self> {
        let (residue, mut body) = unframe(Kind::TileTask, params, bytes, 0..=MAX_BYTES)?;
        let layout = take_layout(&mut body)?;
        let start = body.below(layout.chunks())?;
        let end = body.below(layout.chunks() + 1)?;
        if start >= end {
            return Err(body.malformed("a band needs at least one record chunk"));
        }
        let left = take_combinations(&mut body)?;
        let right = take_combinations(&mut body)?;
        let mut tiles: Vec<Tile> = Vec::new();
        for _ in 0..body.count(TILE_BYTES)? {
            let tile = take_tile(&mut body, layout, [left.len(), right.len()])?;
            if tiles.last().is_some_and(|last| last.id >= tile.id) {
                return Err(body.malformed("tiles are repeated or not in order"));
            }
            tiles.push(tile);
        }
        if tiles.is_empty() {
            return Err(body.malformed("a task needs at least one tile"));
        }
        body.end()?;
        let block = Block {
            layout,
            residue,
            left,
            right,
            tiles,
        };
        Ok(Self {
            block: Arc::new(block),
            band: start..end,
        })
    }
}

/// Bytes of a number, of a combination's term, and of a slot with its operand.
const NUMBER_BYTES: usize = 4;
const TERM_BYTES: usize = NUMBER_BYTES + 8;
const SLOT_BYTES: usize = 2 * NUMBER_BYTES;

/// Lower bounds on the bytes of a product (with one slot), a leaf (without products and sums) and a
/// tile (with one leaf). The lengths of lists are checked against them.
const PRODUCT_BYTES: usize = 2 * NUMBER_BYTES + SLOT_BYTES;
const LEAF_BYTES: usize = 3 * NUMBER_BYTES;
const TILE_BYTES: usize = 3 * NUMBER_BYTES + LEAF_BYTES;

fn put_leaf(out: &mut Vec<u8>, leaf: &Leaf) -> Result<()> {
    put_u32(out, leaf.place)?;
    put_u32(out, leaf.products.len())?;
    for product in &leaf.products {
        put_u32(out, product.right)?;
        put_slots(out, &product.left)?;
    }
    put_slots(out, &leaf.sums)
}

fn put_slots(out: &mut Vec<u8>, slots: &[(usize, usize)]) -> Result<()> {
    put_u32(out, slots.len())?;
    for &(slot, operand) in slots {
        put_u32(out, slot)?;
        put_u32(out, operand)?;
    }
    Ok(())
}

fn take_layout(body: &mut Reader<'_>) -> Result<Layout> {
    let (chunks, stride) = (body.below(usize::MAX)?, body.below(usize::MAX)?);
    Layout::of_many(chunks, stride)
}

fn take_combinations(body: &mut Reader<'_>) -> Result<Vec<Combination>> {
    let mut combinations = Vec::new();
    for _ in 0..body.count(NUMBER_BYTES)? {
        let mut terms = Vec::new();
        for _ in 0..body.count(TERM_BYTES)? {
            let column = body.below(usize::MAX)?;
            terms.push((column, i64::from_le_bytes(body.bytes()?)));
        }
        combinations.push(Combination(terms));
    }
    Ok(combinations)
}

/// Reads a tile whose leaves refer to `operands` left and right operands.
fn take_tile(body: &mut Reader<'_>, layout: Layout, operands: [usize; 2]) -> Result<Tile> {
    let page = body.below(usize::MAX)?;
    let index = body.below(PAGE / layout.slots() / TILE_LEAVES)?;
    let mut leaves: Vec<Leaf> = Vec::new();
    for _ in 0..body.count(LEAF_BYTES)? {
        let leaf = take_leaf(body, layout, operands)?;
        if leaves.last().is_some_and(|last| last.place >= leaf.place) {
            return Err(body.malformed("leaves are repeated or not in order"));
        }
        leaves.push(leaf);
    }
    if leaves.is_empty() {
        return Err(body.malformed("a tile needs at least one leaf"));
    }
    let id = TileId { page, index };
    Ok(Tile { id, leaves })
}

fn take_leaf(body: &mut Reader<'_>, layout: Layout, [left, right]: [usize; 2]) -> Result<Leaf> {
    let place = body.below(TILE_LEAVES)?;
    let mut free = vec![true; layout.slots()];
    let mut products = Vec::new();
    for _ in 0..body.count(PRODUCT_BYTES)? {
        let right = body.below(right)?;
        let left = take_slots(body, left, &mut free)?;
        if left.is_empty() {
            return Err(body.malformed("a product needs at least one left operand"));
        }
        products.push(Product { right, left });
    }
    let sums = take_slots(body, left, &mut free)?;
    if products.is_empty() && sums.is_empty() {
        return Err(body.malformed("a leaf needs at least one cell"));
    }
    Ok(Leaf {
        place,
        products,
        sums,
    })
}

/// Reads slots with their operands. A leaf uses each slot once, which `free` tracks.
fn take_slots(
    body: &mut Reader<'_>,
    operands: usize,
    free: &mut [bool],
) -> Result<Vec<(usize, usize)>> {
    let mut slots = Vec::new();
    for _ in 0..body.count(SLOT_BYTES)? {
        let slot = body.below(free.len())?;
        if !free.get_mut(slot).is_some_and(std::mem::take) {
            return Err(body.malformed("two cells share a slot"));
        }
        slots.push((slot, body.below(operands)?));
    }
    Ok(slots)
}

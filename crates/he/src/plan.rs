//! From the cells that are asked for to tasks: first step of an evaluation.
//!
//! A plan needs no key. It lays each page's cells out as leaves of a packing tree, the leaves as
//! tiles, and says what noise to expect. It is then divided for whoever computes it: of a table
//! whose factors fit the memory that a task may take, all is one task; of a larger one a task has as
//! many tiles as there is room for the sums of, over a band of record chunks.

use crate::error::{Error, Result};
use crate::holder::HolderKeyId;
use crate::layout::{Layout, PAGE};
use crate::noise::{self, ColumnNoise, Variance};
use crate::page::PageNoise;
use crate::params::{DEGREE, Parameters};
use crate::table::{Columns, Combination, Factors};
use crate::task::{Block, Leaf, Product, TILE_LEAVES, Tile, TileId, TileTask};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// A statistic of the records, over indices into the lists of left and right combinations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// Sum over records of left(x) * right(x).
    Product {
        /// Index of the left combination.
        left: usize,
        /// Index of the right combination.
        right: usize,
    },
    /// Sum over records of left(x).
    Sum {
        /// Index of the left combination.
        left: usize,
    },
}

/// A batch of pages under one plaintext modulus, laid out.
#[derive(Clone, Debug)]
pub struct Plan {
    params: Parameters,
    layout: Layout,
    /// The holder's key that the columns are under; nothing for the service's.
    holder: Option<HolderKeyId>,
    residue: usize,
    left: Vec<Combination>,
    right: Vec<Combination>,
    /// The tiles of all pages, in order, over all combinations.
    tiles: Vec<Tile>,
    /// Of each page its tiles' numbers and its noise; nothing where it has no cells.
    pages: Vec<Option<PlannedPage>>,
}

/// A page with cells.
#[derive(Clone, Debug)]
pub(crate) struct PlannedPage {
    /// The numbers of its tiles, ascending.
    pub(crate) tiles: Vec<usize>,
    pub(crate) noise: PageNoise,
}

impl PlannedPage {
    /// Whether one of its tiles has a number within `range`.
    pub(crate) fn has_tile_within(&self, range: Range<usize>) -> bool {
        let first = self.tiles.partition_point(|&tile| tile < range.start);
        self.tiles.get(first).is_some_and(|&tile| tile < range.end)
    }
}

impl Plan {
    /// Lays out pages, each with its cells at their positions (distinct, below [`PAGE`]).
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for positions, factors, columns or a plaintext modulus outside their
    /// ranges.
    pub fn new(
        table: &dyn Columns,
        residue: usize,
        factors: Factors<'_>,
        pages: &[Vec<(usize, Cell)>],
    ) -> Result<Self> {
        if residue >= table.params().residues() {
            return Err(Error::OutOfRange("plaintext modulus"));
        }
        let columns = table.count();
        if factors.columns().any(|column| column >= columns) {
            return Err(Error::OutOfRange(
                "a combination names a column the table lacks",
            ));
        }
        let mut plan = Self {
            params: table.params().clone(),
            layout: table.layout(),
            holder: table.holder(),
            residue,
            left: factors.left.to_vec(),
            right: factors.right.to_vec(),
            tiles: Vec::new(),
            pages: Vec::new(),
        };
        let noise = plan.operand_noise();
        for (page, cells) in pages.iter().enumerate() {
            let tiles = plan.lay_out(page, cells)?;
            let planned = (!tiles.is_empty()).then(|| PlannedPage {
                tiles: tiles.iter().map(|tile| tile.id.index).collect(),
                noise: plan.page_noise(&tiles, &noise),
            });
            plan.pages.push(planned);
            plan.tiles.extend(tiles);
        }
        Ok(plan)
    }

    pub(crate) fn params(&self) -> &Parameters {
        &self.params
    }

    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    pub(crate) fn residue(&self) -> usize {
        self.residue
    }

    pub(crate) fn holder(&self) -> Option<HolderKeyId> {
        self.holder
    }

    pub(crate) fn pages(&self) -> &[Option<PlannedPage>] {
        &self.pages
    }

    /// The tasks that make up the plan, each of which takes about `memory` bytes at most for
    /// factors and sums. Those over the same tiles follow each other.
    pub fn tasks(&self, memory: usize) -> Vec<TileTask> {
        if self.tiles.is_empty() {
            return Vec::new();
        }
        let all = self.block(&self.tiles);
        let chunks = self.layout.chunks();
        if all.chunks_within(&self.params, memory) >= chunks {
            return vec![TileTask {
                block: Arc::new(all),
                band: 0..chunks,
            }];
        }
        let mut tasks = Vec::new();
        let mut rest = &self.tiles[..];
        while !rest.is_empty() {
            let (tiles, others) = rest.split_at(self.tiles_within(rest, memory / 2));
            rest = others;
            let block = Arc::new(self.block(tiles));
            let whole = TileTask {
                block,
                band: 0..chunks,
            };
            tasks.extend(whole.bands(&self.params, memory / 2));
        }
        tasks
    }

    /// How many of the first tiles have sums that take at most `memory` bytes: at least one.
    fn tiles_within(&self, tiles: &[Tile], memory: usize) -> usize {
        // Two triples of polynomials a pair of leaves, where a ciphertext has two polynomials.
        let pair = 3 * self.params.set().memory_bytes();
        let mut pairs = tiles.iter().scan(0, |pairs, tile| {
            *pairs += tile.pairs().len();
            Some(*pairs)
        });
        let fit = pairs.position(|pairs| pairs > memory / pair);
        fit.unwrap_or(tiles.len()).max(1)
    }

    /// Some tiles, over the combinations that they need alone.
    fn block(&self, tiles: &[Tile]) -> Block {
        let shape = (self.layout, self.residue);
        Block::of(shape, [&self.left, &self.right], tiles)
    }

    /// A page's cells as tiles.
    fn lay_out(&self, page: usize, cells: &[(usize, Cell)]) -> Result<Vec<Tile>> {
        let mut cells = cells.to_vec();
        cells.sort_unstable_by_key(|&(p, _)| p);
        if cells
            .windows(2)
            .any(|pair| matches!(pair, [a, b] if a.0 == b.0))
        {
            return Err(Error::OutOfRange("two cells share a position"));
        }
        let mut tiles: BTreeMap<usize, BTreeMap<usize, Leaf>> = BTreeMap::new();
        for (p, cell) in cells {
            let (Cell::Product { left, .. } | Cell::Sum { left }) = cell;
            if p >= PAGE || left >= self.left.len() {
                return Err(Error::OutOfRange("cell position or operand"));
            }
            let (leaf, slot) = self.layout.place(p);
            let (index, place) = (leaf / TILE_LEAVES, leaf % TILE_LEAVES);
            let leaf = tiles.entry(index).or_default().entry(place).or_default();
            leaf.place = place;
            match cell {
                Cell::Sum { .. } => leaf.sums.push((slot, left)),
                Cell::Product { right, .. } if right >= self.right.len() => {
                    return Err(Error::OutOfRange("cell operand"));
                }
                Cell::Product { right, .. } => add_product(leaf, right, slot, left),
            }
        }
        let tile = |(index, leaves): (usize, BTreeMap<usize, Leaf>)| Tile {
            id: TileId { page, index },
            leaves: leaves.into_values().collect(),
        };
        Ok(tiles.into_iter().map(tile).collect())
    }

    /// Variance of the noise of each left and each right operand.
    fn operand_noise(&self) -> [Vec<Variance>; 2] {
        let ColumnNoise { fresh, right, .. } = self.column_noise();
        let variance = |c: &Combination| c.variance(fresh);
        let left = self.left.iter().map(variance).collect();
        let right = self.right.iter().map(|c| variance(c) + right);
        [left, right.collect()]
    }

    fn column_noise(&self) -> ColumnNoise {
        match self.holder {
            None => ColumnNoise::of_service(&self.params, self.layout.stride()),
            Some(_) => ColumnNoise::of_holder(&self.params, self.layout.stride()),
        }
    }

    fn page_noise(&self, tiles: &[Tile], operands: &[Vec<Variance>; 2]) -> PageNoise {
        let packing = self.column_noise().packing;
        let leaves = tiles.iter().flat_map(|tile| &tile.leaves);
        let variances = leaves.map(|leaf| self.leaf_variance(operands, leaf));
        let noisiest = variances.clone().fold(0.0, f64::max);
        // All slots of a product are noisy, those without a cell too.
        let products = self.layout.slots() as f64 * variances.sum::<f64>();
        PageNoise {
            deviation: (noisiest + packing).sqrt(),
            norm_squared: products + DEGREE as f64 * packing,
        }
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "`lay_out` checked every operand that a leaf names"
    )]
    fn leaf_variance(&self, [left, right]: &[Vec<Variance>; 2], leaf: &Leaf) -> f64 {
        let chunks = self.layout.chunks() as f64;
        let t = self.params.plaintext_modulus(self.residue);
        let lefts = |terms: &[(usize, usize)]| terms.iter().map(|&(_, k)| left[k]).sum();
        let product = |p: &Product| noise::product_variance(t, lefts(&p.left), right[p.right]);
        let products: f64 = leaf.products.iter().map(product).sum();
        let sums: Variance = lefts(&leaf.sums);
        chunks * (products + sums.total * self.layout.stride() as f64)
    }
}

/// Adds a product to a leaf: those with the same right operand are one, over several slots.
fn add_product(leaf: &mut Leaf, right: usize, slot: usize, left: usize) {
    let same = |product: &&mut Product| product.right == right;
    match leaf.products.iter_mut().find(same) {
        Some(product) => product.left.push((slot, left)),
        None => leaf.products.push(Product {
            right,
            left: vec![(slot, left)],
        }),
    }
}

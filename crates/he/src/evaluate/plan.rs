//! From the requested cells to tasks: first step of an evaluation.
//!
//! A plan arranges each page's cells as leaves of a packing tree, and the leaves as tiles, and predicts the noise.
//! It is then divided for the backend. If all factors of a table fit in the memory that a task may take, the plan
//! is one task. Otherwise a task has as many tiles as the memory can hold sums of, over a band of record chunks.

use crate::error::{Error, Result};
use crate::evaluate::context::EvaluationContext;
use crate::evaluate::task::{Block, Leaf, Product, TILE_LEAVES, Tile, TileId, TileTask};
use crate::release::page::PageNoise;
use crate::scheme::noise::{self, ColumnNoise, Variance};
use crate::scheme::params::Parameters;
use crate::scheme::ring::DEGREE;
use crate::table::layout::{Layout, PAGE};
use crate::table::{Columns, Combination, Factors, Section};
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

/// A batch of pages under one plaintext modulus, arranged as tiles.
#[derive(Clone, Debug)]
pub struct PagePlan {
    params: Parameters,
    layout: Layout,
    /// The record chunks by the key of their products.
    sections: Vec<Section>,
    residue: usize,
    left: Vec<Combination>,
    right: Vec<Combination>,
    /// The tiles of all pages, in order, over all combinations.
    tiles: Vec<Tile>,
    /// The tile numbers and the noise of each page, or `None` for a page without cells.
    pages: Vec<Option<PlannedPage>>,
}

/// A page with cells.
#[derive(Clone, Debug)]
pub(crate) struct PlannedPage {
    /// The numbers of the page's tiles, ascending.
    pub(crate) tiles: Vec<usize>,
    pub(crate) noise: PageNoise,
}

impl PlannedPage {
    /// Returns whether one of the page's tiles has a number in `range`.
    pub(crate) fn has_tile_within(&self, range: Range<usize>) -> bool {
        let first = self.tiles.partition_point(|&tile| tile < range.start);
        self.tiles.get(first).is_some_and(|&tile| tile < range.end)
    }
}

impl PagePlan {
    /// Arranges pages, each with its cells at their positions (distinct, below [`PAGE`]).
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for positions, factors, columns or a plaintext modulus outside their
    /// ranges.
    pub fn new(
        context: &EvaluationContext<'_>,
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
                "a combination names a column that the table lacks",
            ));
        }
        let mut plan = Self {
            params: table.params().clone(),
            layout: table.layout(),
            sections: table.sections(),
            residue,
            left: factors.left.to_vec(),
            right: factors.right.to_vec(),
            tiles: Vec::new(),
            pages: Vec::new(),
        };
        let noise = plan.section_noise(context)?;
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

    pub(crate) fn sections(&self) -> &[Section] {
        &self.sections
    }

    pub(crate) fn pages(&self) -> &[Option<PlannedPage>] {
        &self.pages
    }

    /// Divides the plan into tasks, each of which takes at most about `memory` bytes for factors and sums. Tasks over
    /// the same tiles follow each other.
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

    /// Returns how many of the first tiles have sums that take at most `memory` bytes, and at least one.
    fn tiles_within(&self, tiles: &[Tile], memory: usize) -> usize {
        // A pair of leaves has two triples of polynomials; a ciphertext has two polynomials.
        let pair = 3 * self.params.set().memory_bytes();
        let mut pairs = tiles.iter().scan(0, |pairs, tile| {
            *pairs += tile.pairs().len();
            Some(*pairs)
        });
        let fit = pairs.position(|pairs| pairs > memory / pair);
        fit.unwrap_or(tiles.len()).max(1)
    }

    /// Makes a block of some tiles, with only the combinations that they need.
    fn block(&self, tiles: &[Tile]) -> Block {
        let shape = (self.layout, self.residue);
        Block::of(shape, [&self.left, &self.right], tiles)
    }

    /// Arranges a page's cells as tiles.
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

    /// Returns the variances of the noise of each section's operands, and the variance that its merges add to the
    /// cells.
    fn section_noise(&self, context: &EvaluationContext<'_>) -> Result<Vec<SectionNoise>> {
        let noise = |section: &Section| {
            let keys = context.product_keys(section.key)?;
            let noise = ColumnNoise::uploaded(&self.params, keys.origin, section.key);
            let left = |c: &Combination| c.variance(noise.fresh) + noise.left;
            let right = |c: &Combination| c.variance(noise.fresh) + noise.right;
            Ok(SectionNoise {
                chunks: section.chunks.len() as f64,
                left: self.left.iter().map(left).collect(),
                right: self.right.iter().map(right).collect(),
                merge: noise.merge,
            })
        };
        self.sections.iter().map(noise).collect()
    }

    fn page_noise(&self, tiles: &[Tile], sections: &[SectionNoise]) -> PageNoise {
        let merges = sections.iter().map(|section| section.merge).sum();
        let packing = noise::packing_variance(&self.params, self.layout.stride(), merges);
        let leaves = tiles.iter().flat_map(|tile| &tile.leaves);
        let of_leaf = |leaf| {
            let of_section = |section| self.leaf_variance(section, leaf);
            sections.iter().map(of_section).sum::<f64>()
        };
        let variances = leaves.map(of_leaf);
        let noisiest = variances.clone().fold(0.0, f64::max);
        // All slots of a product are noisy, including those without a cell.
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
    fn leaf_variance(&self, section: &SectionNoise, leaf: &Leaf) -> f64 {
        let SectionNoise { left, right, .. } = section;
        let t = self.params.plaintext_modulus(self.residue);
        let lefts = |terms: &[(usize, usize)]| terms.iter().map(|&(_, k)| left[k]).sum();
        let product = |p: &Product| noise::product_variance(t, lefts(&p.left), right[p.right]);
        let products: f64 = leaf.products.iter().map(product).sum();
        let sums: Variance = lefts(&leaf.sums);
        section.chunks * (products + sums.total * self.layout.stride() as f64)
    }
}

/// The noise of one section's operands.
struct SectionNoise {
    /// Number of record chunks.
    chunks: f64,
    /// Variances of the left operands.
    left: Vec<Variance>,
    /// Variances of the right operands.
    right: Vec<Variance>,
    /// Variance of the digits that a merge of two leaves adds.
    merge: f64,
}

/// Adds a product to a leaf. Products with the same right operand are combined into one over several slots.
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

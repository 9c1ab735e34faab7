//! The computation service's evaluator: statistics of an encrypted table, packed into pages.
//!
//! Of a table that fits the memory it may use, the evaluator holds all factors and multiplies a
//! tile of the packing tree where it is packed. Of a larger one it goes through bands of record
//! chunks, for as many leaves at once as it can hold the sums of, and packs those.

use crate::ciphertext::Ciphertext;
use crate::error::{Error, Result};
use crate::keys::{EvaluationKeys, KeySwitchKey, Pair};
use crate::keyswitch::{Lifted, Scratch};
use crate::layout::{Layout, PAGE};
use crate::noise;
use crate::operands::{Needed, Operands, Query};
use crate::packing::Packer;
use crate::params::{DEGREE, Parameters};
use crate::ring::Poly;
use crate::table::{Columns, Factors};
use crate::tensor::{Product, Spread, Tensor};
use std::sync::{Mutex, PoisonError};

/// Bytes that an evaluator takes for factors and sums, unless told otherwise: what
/// `adult-32` (48,842 records, 247 columns) needs without going through bands.
pub const WORKING_BYTES: usize = 2 << 30;

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

/// Seconds of work by kind, summed over threads, and how often it was done.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Multiply-accumulates of residues in the tensor kernel.
    pub multiply_accumulates: u64,
    /// Polynomials whose key was switched: of right forms, products and merges.
    pub key_switches: u64,
    /// Transforms of one limb that the key switches made.
    pub transforms: u64,
    /// Seconds in the tensor kernel.
    pub tensor: f64,
    /// Seconds making right forms, and merging leaves, which also relinearises.
    pub switching: f64,
    /// Seconds in the other levels of packing.
    pub packing: f64,
}

impl Work {
    /// Takes over what a scratch has counted.
    fn count(&mut self, scratch: &mut Scratch) {
        self.key_switches += std::mem::take(&mut scratch.switches);
        self.transforms += std::mem::take(&mut scratch.transforms_made);
    }
}

impl std::ops::AddAssign for Work {
    fn add_assign(&mut self, other: Self) {
        self.multiply_accumulates += other.multiply_accumulates;
        self.key_switches += other.key_switches;
        self.transforms += other.transforms;
        self.tensor += other.tensor;
        self.switching += other.switching;
        self.packing += other.packing;
    }
}

/// Evaluates statistics with a dataset's evaluation keys.
#[derive(Debug)]
pub struct Evaluator<'a> {
    keys: &'a EvaluationKeys,
    layout: Layout,
    /// Bytes for factors and sums.
    memory: usize,
    packer: Packer<'a>,
    pub(crate) inversion: Vec<u32>,
    /// Transform of sum over r < stride of X^-r, in Montgomery form: its product with a column
    /// holds the column's sum at slot 0.
    ones: Poly,
    /// What no thread uses at present: made anew for each tile, they cost page faults.
    scratches: Mutex<Vec<Scratch>>,
}

/// A packed ciphertext with what is expected of its noise.
#[derive(Clone, Debug)]
pub struct Page {
    pub(crate) ciphertext: Ciphertext,
    /// Deviation of the noisiest coefficient.
    pub(crate) deviation: f64,
    /// Squared norm over all coefficients.
    pub(crate) norm_squared: f64,
}

impl Page {
    /// The ciphertext. It carries unmasked noise: only a sealed page may leave the service.
    pub fn ciphertext(&self) -> &Ciphertext {
        &self.ciphertext
    }

    /// Expected deviation of the noisiest coefficient's noise.
    pub fn deviation(&self) -> f64 {
        self.deviation
    }
}

/// A leaf of the packing tree: what it sums before it is relinearised.
#[derive(Debug, Default)]
pub(crate) struct Leaf {
    index: usize,
    /// Number of cells.
    cells: usize,
    pub(crate) products: Vec<Product>,
    /// (slot, left operand)
    pub(crate) sums: Vec<(usize, usize)>,
}

/// Where the products of a subtree's leaves come from.
enum Products<'a> {
    /// Multiplied when a tile is reached, over all record chunks.
    Now(&'a Operands),
    /// One for each pair of leaves, complete.
    Summed(Vec<Spread>),
}

impl Products<'_> {
    /// Those of the first `pairs` pairs of leaves, and those of the rest.
    fn split_at(self, pairs: usize) -> [Self; 2] {
        match self {
            Self::Now(operands) => [Self::Now(operands), Self::Now(operands)],
            Self::Summed(mut first) => {
                let second = first.split_off(pairs);
                [Self::Summed(first), Self::Summed(second)]
            }
        }
    }
}

/// One thread computes a subtree of 2^TILE_HEIGHT leaves as a tile. Every tree is higher: the
/// smallest stride leaves 2^6 leaves.
const TILE_HEIGHT: usize = 4;
const _: () = assert!(Layout::MIN_STRIDE >> TILE_HEIGHT > 0);

/// Pairs of leaves of a tile.
const PAIRS: usize = 1 << (TILE_HEIGHT - 1);

impl<'a> Evaluator<'a> {
    /// Tables for one layout.
    pub fn new(keys: &'a EvaluationKeys, layout: Layout) -> Self {
        let ring = keys.params.ring();
        let mut ones = vec![0; DEGREE];
        ones[0] = 1;
        ones[DEGREE - layout.stride() + 1..].fill(-1);
        let mut ones = ring.transform_signed(&ones);
        for (j, limb) in ring.ciphertext_limbs().iter().enumerate() {
            ones.limb_mut(j)
                .iter_mut()
                .for_each(|x| *x = limb.modulus.mont(*x));
        }
        Self {
            keys,
            layout,
            memory: WORKING_BYTES,
            packer: Packer::new(keys, layout.slots()),
            inversion: ring.automorphism(2 * DEGREE - 1),
            ones,
            scratches: Mutex::default(),
        }
    }

    /// The same, holding at most about `bytes` of factors and sums at once.
    pub fn with_memory(self, bytes: usize) -> Self {
        Self {
            memory: bytes,
            ..self
        }
    }

    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    pub(crate) fn params(&self) -> &Parameters {
        &self.keys.params
    }

    pub(crate) fn keys(&self) -> &'a EvaluationKeys {
        self.keys
    }

    /// Lends a scratch, and adds what it counts to `work`.
    pub(crate) fn with_scratch<T>(
        &self,
        work: &mut Work,
        use_it: impl FnOnce(&mut Scratch) -> T,
    ) -> T {
        let scratches = || {
            self.scratches
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        let spare = scratches().pop();
        let mut scratch = spare.unwrap_or_else(|| Scratch::new(self.params().ring()));
        let done = use_it(&mut scratch);
        work.count(&mut scratch);
        scratches().push(scratch);
        done
    }

    /// The pair under s that encrypts what the triple encrypts under (1, s, s^2).
    pub(crate) fn relinearise(&self, [c0, c1, c2]: [Poly; 3], scratch: &mut Scratch) -> Pair {
        self.switch([c0, c1], &self.keys.relinearise, &c2, scratch)
    }

    /// `pair` plus the pair under s that encrypts `d` under the key's source.
    pub(crate) fn switch(
        &self,
        pair: Pair,
        key: &KeySwitchKey,
        d: &Poly,
        scratch: &mut Scratch,
    ) -> Pair {
        let switcher = &self.packer.switcher;
        let mut lifted = switcher.lift(pair);
        switcher.add(&[(key, d)], &mut lifted, scratch);
        switcher.lower(lifted, scratch)
    }

    /// Pages, each with its cells at their positions (distinct, below [`PAGE`]) and zero
    /// elsewhere; `None` for no cells.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for positions, factors or columns outside their ranges;
    /// [`Error::Mismatch`] where table and keys do not belong together; [`Error::Unavailable`]
    /// where a column cannot be read.
    pub fn pages(
        &self,
        table: &dyn Columns,
        residue: usize,
        factors: Factors<'_>,
        pages: &[Vec<(usize, Cell)>],
        work: &mut Work,
    ) -> Result<Vec<Option<Page>>> {
        let query = Query {
            table,
            residue,
            factors,
        };
        self.check(&query)?;
        let leaves = pages.iter().map(|cells| self.leaves(factors, cells));
        let pages = leaves.collect::<Result<Vec<_>>>()?;
        let needed = Needed::by(pages.iter().flatten(), factors);
        let chunks = self.layout.chunks();
        let whole = if self.band(&query, &needed, self.memory) == chunks {
            Some(self.operands(&query, &needed, 0..chunks, work)?)
        } else {
            None
        };
        let noise = self.operand_noise(factors);
        let page = |leaves: Vec<Leaf>| {
            let pairs = pairs(&leaves);
            let height = self.packer.height();
            let root = match &whole {
                Some(operands) => {
                    let (root, done) = self.subtree(&pairs, Products::Now(operands), height);
                    *work += done;
                    root
                }
                None => self.banded(&query, &pairs, height, work)?,
            };
            Ok(root.map(|root| self.page(residue, root, &leaves, &noise, work)))
        };
        pages.into_iter().map(page).collect()
    }

    /// A tree's root as a page, with what is expected of its noise.
    fn page(
        &self,
        residue: usize,
        root: Lifted,
        leaves: &[Leaf],
        noise: &[Vec<f64>; 2],
        work: &mut Work,
    ) -> Page {
        let finish = |scratch: &mut Scratch| self.packer.finish(residue, root, scratch);
        let ciphertext = self.with_scratch(work, finish);
        let packing = noise::packing_variance(self.params().set(), self.layout.stride());
        let variances = leaves.iter().map(|leaf| {
            let cells = leaf.cells as f64;
            (cells, self.leaf_variance(residue, noise, leaf))
        });
        let noisiest = variances.clone().map(|(_, v)| v).fold(0.0, f64::max);
        let norm_squared: f64 = variances.map(|(cells, v)| cells * v).sum();
        Page {
            ciphertext,
            deviation: (noisiest + packing).sqrt(),
            norm_squared: norm_squared + DEGREE as f64 * packing,
        }
    }

    fn leaf_variance(&self, residue: usize, [left, right]: &[Vec<f64>; 2], leaf: &Leaf) -> f64 {
        let chunks = self.layout.chunks() as f64;
        let t = self.keys.params.set().plaintext_moduli[residue];
        let lefts = |terms: &[(usize, usize)]| terms.iter().map(|&(_, k)| left[k]).sum::<f64>();
        let product = |p: &Product| noise::product_variance(t, lefts(&p.left), right[p.right]);
        let products: f64 = leaf.products.iter().map(product).sum();
        chunks * (products + lefts(&leaf.sums) * self.layout.stride() as f64)
    }

    fn leaves(&self, factors: Factors<'_>, cells: &[(usize, Cell)]) -> Result<Vec<Leaf>> {
        let mut cells = cells.to_vec();
        cells.sort_unstable_by_key(|&(p, _)| p);
        if cells.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(Error::OutOfRange("two cells share a position"));
        }
        let mut leaves: Vec<Leaf> = Vec::new();
        for (p, cell) in cells {
            let (Cell::Product { left, .. } | Cell::Sum { left }) = cell;
            if p >= PAGE || left >= factors.left.len() {
                return Err(Error::OutOfRange("cell position or operand"));
            }
            let (index, slot) = self.layout.place(p);
            if leaves.last().is_none_or(|leaf| leaf.index != index) {
                leaves.push(Leaf {
                    index,
                    ..Leaf::default()
                });
            }
            // The line above made sure there is a last leaf.
            let Some(leaf) = leaves.last_mut() else {
                continue;
            };
            leaf.cells += 1;
            match cell {
                Cell::Sum { .. } => leaf.sums.push((slot, left)),
                Cell::Product { right, .. } if right >= factors.right.len() => {
                    return Err(Error::OutOfRange("cell operand"));
                }
                Cell::Product { right, .. } => {
                    match leaf
                        .products
                        .iter_mut()
                        .find(|product| product.right == right)
                    {
                        Some(product) => product.left.push((slot, left)),
                        None => leaf.products.push(Product {
                            right,
                            left: vec![(slot, left)],
                        }),
                    }
                }
            }
        }
        Ok(leaves)
    }

    /// Packs the leaves of a subtree of the given height, going through the table in bands of
    /// record chunks: for all leaves at once, or for one half after the other where their sums
    /// would take too much memory.
    fn banded(
        &self,
        query: &Query<'_>,
        pairs: &[LeafPair<'_>],
        height: usize,
        work: &mut Work,
    ) -> Result<Option<Lifted>> {
        let most = self.memory / 2 / spread_bytes(self.params());
        if height <= TILE_HEIGHT || pairs.len() <= most {
            let sums = self.sum_bands(query, pairs, work)?;
            let (root, done) = self.subtree(pairs, Products::Summed(sums), height);
            *work += done;
            return Ok(root);
        }
        let (low, high) = pairs.split_at(middle(pairs, height));
        let low = self.banded(query, low, height - 1, work)?;
        let high = self.banded(query, high, height - 1, work)?;
        Ok(self.merge(height, low, high, work))
    }

    /// The products of pairs of leaves, summed over all bands of record chunks.
    fn sum_bands(
        &self,
        query: &Query<'_>,
        pairs: &[LeafPair<'_>],
        work: &mut Work,
    ) -> Result<Vec<Spread>> {
        let leaves = pairs
            .iter()
            .flat_map(|pair| pair.leaves.into_iter().flatten());
        let needed = Needed::by(leaves, query.factors);
        let chunks = self.layout.chunks();
        let band = self.band(query, &needed, self.memory / 2);
        let mut sums: Vec<Spread> = pairs.iter().map(|_| self.no_products()).collect();
        for start in (0..chunks).step_by(band) {
            let band = start..(start + band).min(chunks);
            let operands = self.operands(query, &needed, band, work)?;
            let tiles = pairs.chunks(PAIRS).zip(sums.chunks_mut(PAIRS)).collect();
            let done = consume(tiles, |(pairs, sums)| self.multiply(&operands, pairs, sums));
            done.into_iter().for_each(|done| *work += done);
        }
        Ok(sums)
    }

    /// Packs the leaves of a subtree of the given height.
    fn subtree(
        &self,
        pairs: &[LeafPair<'_>],
        products: Products<'_>,
        height: usize,
    ) -> (Option<Lifted>, Work) {
        if pairs.is_empty() {
            return (None, Work::default());
        }
        if height <= TILE_HEIGHT {
            return self.tile(pairs, products);
        }
        let middle = middle(pairs, height);
        let (low, high) = pairs.split_at(middle);
        let [first, second] = products.split_at(middle);
        let ((u, mut work), (v, other)) = join(
            || self.subtree(low, first, height - 1),
            || self.subtree(high, second, height - 1),
        );
        work += other;
        (self.merge(height, u, v, &mut work), work)
    }

    /// Merges the two halves of a subtree of the given height.
    fn merge(
        &self,
        height: usize,
        u: Option<Lifted>,
        v: Option<Lifted>,
        work: &mut Work,
    ) -> Option<Lifted> {
        let started = Clock::start();
        let merge = |scratch: &mut Scratch| self.packer.merge(height - 1, u, v, scratch);
        let merged = self.with_scratch(work, merge);
        work.packing += started.seconds();
        merged
    }

    /// Packs the leaves of a subtree of height [`TILE_HEIGHT`].
    fn tile(&self, pairs: &[LeafPair<'_>], products: Products<'_>) -> (Option<Lifted>, Work) {
        let mut work = Work::default();
        let products = match products {
            Products::Summed(products) => products,
            Products::Now(operands) => {
                let mut products: Vec<_> = pairs.iter().map(|_| self.no_products()).collect();
                work += self.multiply(operands, pairs, &mut products);
                products
            }
        };
        let started = Clock::start();
        let mut nodes: Vec<Option<Lifted>> = (0..PAIRS).map(|_| None).collect();
        self.with_scratch(&mut work, |scratch| {
            for (pair, products) in pairs.iter().zip(products) {
                let merged = self.merge_leaves(pair, products, scratch);
                nodes[pair.index % PAIRS] = Some(merged);
            }
        });
        work.switching += started.seconds();

        let started = Clock::start();
        self.with_scratch(&mut work, |scratch| {
            for height in 1..TILE_HEIGHT {
                let row = std::mem::take(&mut nodes);
                nodes = merge_row(row, |u, v| self.packer.merge(height, u, v, scratch));
            }
        });
        work.packing += started.seconds();
        (nodes.pop().flatten(), work)
    }

    fn no_products(&self) -> Spread {
        let zero = || self.keys.params.ring().zero();
        [[zero(), zero(), zero()], [zero(), zero(), zero()]]
    }

    /// Adds the products and the sums of pairs of leaves, not relinearised, to `out`.
    fn multiply(&self, operands: &Operands, pairs: &[LeafPair<'_>], out: &mut [Spread]) -> Work {
        let ring = self.keys.params.ring();
        let started = Clock::start();
        let tensor = Tensor {
            ring,
            left: &operands.left,
            right: &operands.right,
            stride: self.layout.stride(),
            monomial: self.packer.first_monomial(),
        };
        let products: Vec<[&[Product]; 2]> = pairs.iter().map(LeafPair::products).collect();
        tensor.add_tile(&products, out);
        for (pair, [[s0, s1, _], [d0, d1, _]]) in pairs.iter().zip(out) {
            let [u, v] = pair.leaves.map(|leaf| self.sums(operands, leaf?));
            let sums = self.packer.spread_leaves(u, v);
            for (out, sum) in [s0, s1, d0, d1]
                .into_iter()
                .zip(sums.iter().flatten().flatten())
            {
                out.add_assign(sum, ring);
            }
        }
        let terms: usize = products.iter().flatten().map(|p| p.len()).sum();
        let limbs = ring.ciphertext_limbs().len();
        Work {
            multiply_accumulates: (4 * terms * operands.chunks * limbs * DEGREE) as u64,
            tensor: started.seconds(),
            ..Work::default()
        }
    }

    /// Relinearises a pair of leaves and merges them.
    fn merge_leaves(
        &self,
        pair: &LeafPair<'_>,
        [[s0, s1, s2], [d0, d1, d2]]: Spread,
        scratch: &mut Scratch,
    ) -> Lifted {
        let mut leaves = pair.leaves.iter().flatten();
        let squares = leaves
            .any(|leaf| !leaf.products.is_empty())
            .then_some([s2, d2]);
        self.packer
            .merge_leaves([[s0, s1], [d0, d1]], squares, scratch)
    }

    /// The sums of a leaf's columns at their slots; `None` if it has none.
    fn sums(&self, operands: &Operands, leaf: &Leaf) -> Option<Pair> {
        if leaf.sums.is_empty() {
            return None;
        }
        let ring = self.keys.params.ring();
        let mut out = [ring.zero(), ring.zero()];
        for (half, out) in out.iter_mut().enumerate() {
            for &(slot, left) in &leaf.sums {
                for chunk in &operands.left[left] {
                    let k = slot * self.layout.stride();
                    ring.add_shifted(out, &chunk.c[half], k);
                }
            }
            for (j, limb) in ring.ciphertext_limbs().iter().enumerate() {
                let m = limb.modulus;
                let unit = u128::from(m.mont(m.inv(self.layout.stride() as u64)));
                for (o, &one) in out.limb_mut(j).iter_mut().zip(self.ones.limb(j)) {
                    let summed = m.redc(u128::from(*o) * u128::from(one));
                    *o = m.redc(u128::from(summed) * unit);
                }
            }
        }
        Some(out)
    }
}

/// Leaves 2 i and 2 i + 1 of the tree.
#[derive(Debug)]
struct LeafPair<'a> {
    index: usize,
    leaves: [Option<&'a Leaf>; 2],
}

impl<'a> LeafPair<'a> {
    fn products(&self) -> [&'a [Product]; 2] {
        self.leaves
            .map(|leaf| leaf.map_or(&[][..], |leaf| &leaf.products))
    }
}

/// Leaves, sorted by index, in pairs that have at least one.
fn pairs(leaves: &[Leaf]) -> Vec<LeafPair<'_>> {
    leaves
        .chunk_by(|a, b| a.index / 2 == b.index / 2)
        .map(|pair| LeafPair {
            index: pair[0].index / 2,
            leaves: [0, 1].map(|side| pair.iter().find(|leaf| leaf.index % 2 == side)),
        })
        .collect()
}

/// Bytes of the sums of a pair of leaves: two of three polynomials each.
fn spread_bytes(params: &Parameters) -> usize {
    3 * params.set().memory_bytes()
}

/// Where the higher half of a subtree of the given height begins in its pairs.
fn middle(pairs: &[LeafPair<'_>], height: usize) -> usize {
    let half = 1 << (height - 2);
    pairs.partition_point(|pair| pair.index & half == 0)
}

/// The next level of a tree: every two neighbours merged.
pub(crate) fn merge_row<T, U>(
    row: Vec<Option<T>>,
    mut merge: impl FnMut(Option<T>, Option<T>) -> Option<U>,
) -> Vec<Option<U>> {
    let mut row = row.into_iter();
    let mut merged = Vec::with_capacity(row.len().div_ceil(2));
    while let Some(u) = row.next() {
        merged.push(merge(u, row.next().flatten()));
    }
    merged
}

/// Wall time where there is a clock; the browser's target has none.
pub(crate) struct Clock(#[cfg(not(target_family = "wasm"))] std::time::Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(
            #[cfg(not(target_family = "wasm"))]
            std::time::Instant::now(),
        )
    }

    pub(crate) fn seconds(&self) -> f64 {
        #[cfg(not(target_family = "wasm"))]
        return self.0.elapsed().as_secs_f64();
        #[cfg(target_family = "wasm")]
        return 0.0;
    }
}

#[cfg(feature = "threads")]
fn join<A: Send, B: Send>(a: impl FnOnce() -> A + Send, b: impl FnOnce() -> B + Send) -> (A, B) {
    rayon::join(a, b)
}

#[cfg(not(feature = "threads"))]
fn join<A, B>(a: impl FnOnce() -> A, b: impl FnOnce() -> B) -> (A, B) {
    (a(), b())
}

#[cfg(feature = "threads")]
fn consume<T: Send, U: Send>(items: Vec<T>, f: impl Fn(T) -> U + Sync + Send) -> Vec<U> {
    use rayon::prelude::*;
    items.into_par_iter().map(f).collect()
}

#[cfg(not(feature = "threads"))]
fn consume<T, U>(items: Vec<T>, f: impl Fn(T) -> U) -> Vec<U> {
    items.into_iter().map(f).collect()
}

//! The computation service's evaluator: statistics of an encrypted table, packed into pages.

use crate::ciphertext::Ciphertext;
use crate::error::{Error, Result};
use crate::keys::{EvaluationKeys, KeySwitchKey, Pair};
use crate::keyswitch::{Lifted, Scratch};
use crate::layout::{Layout, PAGE};
use crate::noise;
use crate::packing::Packer;
use crate::params::{DEGREE, Parameters};
use crate::ring::Poly;
use crate::tensor::{Operand, Product, Spread, Tensor};
use std::sync::Arc;

/// An encrypted table as the computation service holds it: `columns[c][chunk]`, one ciphertext
/// a one-hot column, record chunk and plaintext modulus.
#[derive(Clone, Debug)]
pub struct EncryptedTable {
    params: Parameters,
    layout: Layout,
    /// `columns[residue][column][chunk]`
    columns: Vec<Vec<Operand>>,
}

impl EncryptedTable {
    /// A table from ciphertexts as [`crate::PublicKey::encrypt`] makes them:
    /// `columns[column][chunk][residue]`.
    ///
    /// # Errors
    /// [`Error::Mismatch`] where a column lacks a chunk or a residue.
    pub fn new(
        params: &Parameters,
        layout: Layout,
        columns: Vec<Vec<Vec<Ciphertext>>>,
    ) -> Result<Self> {
        let mut by_residue: Vec<Vec<Operand>> = vec![Vec::new(); params.residues()];
        for chunks in columns {
            if chunks.len() != layout.chunks() {
                return Err(Error::Mismatch("a column has another number of chunks"));
            }
            let mut operands = vec![Operand::new(); params.residues()];
            for residues in chunks {
                if residues.len() != params.residues()
                    || residues.iter().enumerate().any(|(k, c)| c.residue != k)
                {
                    return Err(Error::Mismatch("a chunk lacks a residue"));
                }
                for (operand, ciphertext) in operands.iter_mut().zip(residues) {
                    operand.push(Arc::new(ciphertext));
                }
            }
            for (all, operand) in by_residue.iter_mut().zip(operands) {
                all.push(operand);
            }
        }
        Ok(Self {
            params: params.clone(),
            layout,
            columns: by_residue,
        })
    }

    /// The public shape.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Number of one-hot columns.
    pub fn columns(&self) -> usize {
        self.columns[0].len()
    }
}

/// An integer combination of one-hot columns: (column, coefficient) pairs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Combination(pub Vec<(usize, i64)>);

impl Combination {
    /// One column as it is.
    pub fn column(column: usize) -> Self {
        Self(vec![(column, 1)])
    }

    /// Variance of the noise of this combination of fresh columns.
    fn variance(&self) -> f64 {
        let energy: f64 = self.0.iter().map(|&(_, c)| (c as f64).powi(2)).sum();
        noise::fresh_variance() * energy
    }
}

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
    /// Adds what a thread's scratch has counted.
    pub(crate) fn count(&mut self, scratch: &Scratch) {
        self.key_switches += scratch.switches;
        self.transforms += scratch.transforms_made;
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
    packer: Packer<'a>,
    inversion: Vec<u32>,
    /// Transform of sum over r < stride of X^-r, in Montgomery form: its product with a column
    /// holds the column's sum at slot 0.
    ones: Poly,
}

/// Combinations ready to be multiplied, for one plaintext modulus. Right ones are scaled as the
/// tensor asks for.
#[derive(Debug)]
pub struct Operands {
    residue: usize,
    left: Vec<Operand>,
    right: Vec<Operand>,
    /// Variance of each operand's noise.
    left_noise: Vec<f64>,
    right_noise: Vec<f64>,
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
struct Leaf {
    index: usize,
    /// Number of cells.
    cells: usize,
    products: Vec<Product>,
    /// (slot, left operand)
    sums: Vec<(usize, usize)>,
}

/// One thread computes a subtree of 2^TILE_HEIGHT leaves as a tile. Every tree is higher: the
/// smallest stride leaves 2^6 leaves.
const TILE_HEIGHT: usize = 4;
const _: () = assert!(Layout::MIN_STRIDE >> TILE_HEIGHT > 0);

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
            packer: Packer::new(keys, layout.slots()),
            inversion: ring.automorphism(2 * DEGREE - 1),
            ones,
        }
    }

    pub(crate) fn params(&self) -> &Parameters {
        &self.keys.params
    }

    pub(crate) fn keys(&self) -> &'a EvaluationKeys {
        self.keys
    }

    /// The pair under s that encrypts what the triple encrypts under (1, s, s^2).
    pub(crate) fn relinearise(&self, [c0, c1, c2]: [Poly; 3], scratch: &mut Scratch) -> Pair {
        self.switch([c0, c1], &self.keys.relinearise, &c2, scratch)
    }

    /// `pair` plus the pair under s that encrypts `d` under the key's source.
    fn switch(&self, pair: Pair, key: &KeySwitchKey, d: &Poly, scratch: &mut Scratch) -> Pair {
        let switcher = &self.packer.switcher;
        let mut lifted = switcher.lift(pair);
        switcher.add(&[(key, d)], &mut lifted, scratch);
        switcher.lower(lifted, scratch)
    }

    /// Builds left and right forms of combinations of the table's columns. A right form takes a
    /// key switch a chunk.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] where a combination names a column the table lacks;
    /// [`Error::Mismatch`] where table and keys do not belong together.
    pub fn operands(
        &self,
        table: &EncryptedTable,
        residue: usize,
        left: &[Combination],
        right: &[Combination],
        work: &mut Work,
    ) -> Result<Operands> {
        self.keys.params.check_same(&table.params)?;
        if table.layout != self.layout {
            return Err(Error::Mismatch("the table has another layout"));
        }
        let columns = table
            .columns
            .get(residue)
            .ok_or(Error::OutOfRange("plaintext modulus"))?;
        let named = left.iter().chain(right).flat_map(|c| &c.0);
        if named
            .into_iter()
            .any(|&(column, _)| column >= columns.len())
        {
            return Err(Error::OutOfRange(
                "a combination names a column the table lacks",
            ));
        }
        let started = Clock::start();
        let switch = noise::switch_variance(self.keys.params.set());
        let left_noise = left.iter().map(Combination::variance).collect();
        let right_noise = right.iter().map(|c| c.variance() + switch).collect();
        let left = map(left, |c| self.combine(columns, residue, c));
        // Each is inverted as soon as it is combined: a wide table's combinations take as much
        // memory as its columns.
        let inverted = map(right, |combination| {
            let mut scratch = Scratch::new(self.keys.params.ring());
            let combined = self.combine(columns, residue, combination);
            let invert = |c: Arc<Ciphertext>| {
                let mut inverted = self.invert(&c, &mut scratch);
                self.scale(&mut inverted);
                Arc::new(inverted)
            };
            let inverted: Operand = combined.into_iter().map(invert).collect();
            (inverted, scratch)
        });
        let mut right = Vec::with_capacity(inverted.len());
        for (operand, scratch) in inverted {
            work.count(&scratch);
            right.push(operand);
        }
        work.switching += started.seconds();
        Ok(Operands {
            residue,
            left,
            right,
            left_noise,
            right_noise,
        })
    }

    fn combine(&self, columns: &[Operand], residue: usize, combination: &Combination) -> Operand {
        if let [(column, 1)] = combination.0[..] {
            return columns[column].clone();
        }
        let params = &self.keys.params;
        let chunk = |k: usize| {
            let mut sum = Ciphertext::zero(params, residue);
            for &(column, coefficient) in &combination.0 {
                for (sum, c) in sum.c.iter_mut().zip(&columns[column][k].c) {
                    params.ring().add_scaled_shifted(sum, c, coefficient, 0);
                }
            }
            Arc::new(sum)
        };
        (0..self.layout.chunks()).map(chunk).collect()
    }

    /// The image under X -> X^-1.
    pub(crate) fn invert(&self, c: &Ciphertext, scratch: &mut Scratch) -> Ciphertext {
        let ring = self.keys.params.ring();
        let image = |p: &Poly| {
            let mut out = ring.zero();
            for j in 0..ring.ciphertext_limbs().len() {
                for (o, &i) in out.limb_mut(j).iter_mut().zip(&self.inversion) {
                    *o = p.limb(j)[i as usize];
                }
            }
            out
        };
        let pair = [image(&c.c[0]), ring.zero()];
        Ciphertext {
            residue: c.residue,
            c: self.switch(pair, &self.keys.inversion, &image(&c.c[1]), scratch),
        }
    }

    /// One page with each cell at its position (distinct, below [`PAGE`]) and zero elsewhere;
    /// `None` for no cells.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for positions or operands outside their ranges.
    pub fn pack(
        &self,
        operands: &Operands,
        cells: &[(usize, Cell)],
        work: &mut Work,
    ) -> Result<Option<Page>> {
        let leaves = self.leaves(operands, cells)?;
        let (packed, done) = self.subtree(operands, &leaves, self.packer.height());
        *work += done;
        let mut scratch = Scratch::new(self.keys.params.ring());
        let packed = packed.map(|root| self.packer.finish(operands.residue, root, &mut scratch));
        work.count(&scratch);
        Ok(packed.map(|ciphertext| {
            let packing = noise::packing_variance(self.params().set(), self.layout.stride());
            let variances = leaves.iter().map(|leaf| {
                let cells = leaf.cells as f64;
                (cells, self.leaf_variance(operands, leaf))
            });
            let noisiest = variances.clone().map(|(_, v)| v).fold(0.0, f64::max);
            let norm_squared: f64 = variances.map(|(cells, v)| cells * v).sum();
            Page {
                ciphertext,
                deviation: (noisiest + packing).sqrt(),
                norm_squared: norm_squared + DEGREE as f64 * packing,
            }
        }))
    }

    fn leaf_variance(&self, operands: &Operands, leaf: &Leaf) -> f64 {
        let chunks = self.layout.chunks() as f64;
        let t = self.keys.params.set().plaintext_moduli[operands.residue];
        let product = |p: &Product| -> f64 {
            let left: f64 = p
                .left
                .iter()
                .map(|&(_, left)| operands.left_noise[left])
                .sum();
            noise::product_variance(t, left, operands.right_noise[p.right])
        };
        let sums: f64 = leaf
            .sums
            .iter()
            .map(|&(_, left)| operands.left_noise[left])
            .sum();
        let products: f64 = leaf.products.iter().map(product).sum();
        chunks * (products + sums * self.layout.stride() as f64)
    }

    fn leaves(&self, operands: &Operands, cells: &[(usize, Cell)]) -> Result<Vec<Leaf>> {
        let mut cells = cells.to_vec();
        cells.sort_unstable_by_key(|&(p, _)| p);
        if cells.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(Error::OutOfRange("two cells share a position"));
        }
        let mut leaves: Vec<Leaf> = Vec::new();
        for (p, cell) in cells {
            let (Cell::Product { left, .. } | Cell::Sum { left }) = cell;
            if p >= PAGE || left >= operands.left.len() {
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
                Cell::Product { right, .. } if right >= operands.right.len() => {
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

    /// Packs the leaves (sorted by index) of a subtree of the given height.
    fn subtree(
        &self,
        operands: &Operands,
        leaves: &[Leaf],
        height: usize,
    ) -> (Option<Lifted>, Work) {
        if leaves.is_empty() {
            return (None, Work::default());
        }
        if height <= TILE_HEIGHT {
            return self.tile(operands, leaves);
        }
        let half = 1 << (height - 1);
        let middle = leaves.partition_point(|leaf| leaf.index & half == 0);
        let (low, high) = leaves.split_at(middle);
        let ((u, mut work), (v, other)) = join(
            || self.subtree(operands, low, height - 1),
            || self.subtree(operands, high, height - 1),
        );
        work += other;
        let started = Clock::start();
        let mut scratch = Scratch::new(self.keys.params.ring());
        let merged = self.packer.merge(height - 1, u, v, &mut scratch);
        work.packing += started.seconds();
        work.count(&scratch);
        (merged, work)
    }

    /// Multiplies and packs the leaves of a subtree of height [`TILE_HEIGHT`].
    fn tile(&self, operands: &Operands, leaves: &[Leaf]) -> (Option<Lifted>, Work) {
        const PAIRS: usize = 1 << (TILE_HEIGHT - 1);
        let mut work = Work::default();
        let mut scratch = Scratch::new(self.keys.params.ring());
        let pairs = pairs(leaves);
        let started = Clock::start();
        let spread = self.tensor_tile(operands, &pairs, &mut work);
        work.tensor += started.seconds();

        let started = Clock::start();
        let mut nodes: Vec<Option<Lifted>> = (0..PAIRS).map(|_| None).collect();
        for (pair, spread) in pairs.iter().zip(spread) {
            let merged = self.merge_leaves(operands, pair, spread, &mut scratch);
            nodes[pair.index % PAIRS] = Some(merged);
        }
        work.switching += started.seconds();

        let started = Clock::start();
        for height in 1..TILE_HEIGHT {
            nodes = merge_row(nodes, |u, v| self.packer.merge(height, u, v, &mut scratch));
        }
        work.packing += started.seconds();
        work.count(&scratch);
        (nodes.pop().flatten(), work)
    }

    /// The products of pairs of leaves, not relinearised.
    fn tensor_tile(
        &self,
        operands: &Operands,
        pairs: &[LeafPair<'_>],
        work: &mut Work,
    ) -> Vec<Spread> {
        let ring = self.keys.params.ring();
        let tensor = Tensor {
            ring,
            left: &operands.left,
            right: &operands.right,
            stride: self.layout.stride(),
            monomial: self.packer.first_monomial(),
        };
        let products: Vec<[&[Product]; 2]> = pairs.iter().map(LeafPair::products).collect();
        let terms: usize = products.iter().flatten().map(|p| p.len()).sum();
        let limbs = ring.ciphertext_limbs().len();
        work.multiply_accumulates += (4 * terms * self.layout.chunks() * limbs * DEGREE) as u64;
        tensor.tile(&products)
    }

    /// Adds the leaves' sums to their products and merges them.
    fn merge_leaves(
        &self,
        operands: &Operands,
        pair: &LeafPair<'_>,
        [sum, difference]: Spread,
        scratch: &mut Scratch,
    ) -> Lifted {
        let [s0, s1, s2] = sum;
        let [d0, d1, d2] = difference;
        let mut spread = [[s0, s1], [d0, d1]];
        let [u, v] = pair.leaves.map(|leaf| self.sums(operands, leaf?));
        let sums = self.packer.spread_leaves(u, v);
        for (spread, sum) in spread
            .iter_mut()
            .flatten()
            .zip(sums.iter().flatten().flatten())
        {
            spread.add_assign(sum, self.keys.params.ring());
        }
        let mut leaves = pair.leaves.iter().flatten();
        let squares = leaves
            .any(|leaf| !leaf.products.is_empty())
            .then_some([s2, d2]);
        self.packer.merge_leaves(spread, squares, scratch)
    }

    /// Multiplies by t stride^-1, in Montgomery form: what the tensor leaves to its operands, and
    /// what leaves enter packing with.
    fn scale(&self, c: &mut Ciphertext) {
        let params = &self.keys.params;
        let t = params.set().plaintext_moduli[c.residue];
        for (j, limb) in params.ring().ciphertext_limbs().iter().enumerate() {
            let m = limb.modulus;
            let unit = m.inv(self.layout.stride() as u64);
            let scale = u128::from(m.mont(m.mont(m.mul(t % m.value(), unit))));
            for x in c.c.iter_mut().flat_map(|p| p.limb_mut(j)) {
                *x = m.redc(u128::from(*x) * scale);
            }
        }
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
                    ring.add_scaled_shifted(out, &chunk.c[half], 1, k);
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
fn map<T: Sync, U: Send>(items: &[T], f: impl Fn(&T) -> U + Sync + Send) -> Vec<U> {
    use rayon::prelude::*;
    items.par_iter().map(f).collect()
}

#[cfg(not(feature = "threads"))]
fn map<T, U>(items: &[T], f: impl Fn(&T) -> U) -> Vec<U> {
    items.iter().map(f).collect()
}

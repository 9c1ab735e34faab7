//! Combinations of columns in left and right form, and how many of them are held at once.

use crate::ciphertext::Ciphertext;
use crate::error::{Error, Result};
use crate::evaluate::{Clock, Evaluator, Leaf, Work};
use crate::keyswitch::Scratch;
use crate::noise;
use crate::ring::Poly;
use crate::table::{Chunks, Columns, Combination, Factors};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// What pages are asked of: a table under one plaintext modulus, and combinations of its columns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Query<'a> {
    pub(crate) table: &'a dyn Columns,
    pub(crate) residue: usize,
    pub(crate) factors: Factors<'a>,
}

/// Factors over some record chunks, ready to be multiplied. Right ones are scaled as the tensor
/// asks for. Factors that are not needed have no chunks.
#[derive(Debug)]
pub(crate) struct Operands {
    /// Number of record chunks.
    pub(crate) chunks: usize,
    pub(crate) left: Vec<Chunks>,
    pub(crate) right: Vec<Chunks>,
}

/// Which factors are needed.
#[derive(Debug)]
pub(crate) struct Needed {
    left: Vec<bool>,
    right: Vec<bool>,
}

impl Needed {
    pub(crate) fn by<'a>(leaves: impl IntoIterator<Item = &'a Leaf>, factors: Factors<'_>) -> Self {
        let mut needed = Self {
            left: vec![false; factors.left.len()],
            right: vec![false; factors.right.len()],
        };
        for leaf in leaves {
            for product in &leaf.products {
                needed.right[product.right] = true;
                for &(_, left) in &product.left {
                    needed.left[left] = true;
                }
            }
            for &(_, left) in &leaf.sums {
                needed.left[left] = true;
            }
        }
        needed
    }

    /// The factors needed, by side.
    fn of<'a>(&'a self, factors: Factors<'a>) -> [Vec<Option<&'a Combination>>; 2] {
        let pick = |needed: &[bool], all: &'a [Combination]| {
            let pick = all.iter().zip(needed.iter());
            pick.map(|(c, &needed)| needed.then_some(c)).collect()
        };
        [
            pick(&self.left, factors.left),
            pick(&self.right, factors.right),
        ]
    }
}

impl Evaluator<'_> {
    /// Refuses a query that the evaluator's keys or the table cannot answer.
    pub(crate) fn check(&self, query: &Query<'_>) -> Result<()> {
        self.params().check_same(query.table.params())?;
        if query.table.layout() != self.layout() {
            return Err(Error::Mismatch("the table has another layout"));
        }
        if query.residue >= self.params().residues() {
            return Err(Error::OutOfRange("plaintext modulus"));
        }
        let columns = query.table.count();
        if query.factors.columns().any(|column| column >= columns) {
            return Err(Error::OutOfRange(
                "a combination names a column the table lacks",
            ));
        }
        Ok(())
    }

    /// Record chunks whose columns, and the factors made of them, take at most `memory` bytes: at
    /// least one, at most all.
    pub(crate) fn band(&self, query: &Query<'_>, needed: &Needed, memory: usize) -> usize {
        let [left, right] = needed.of(query.factors);
        let made = |c: &&Combination| c.single().is_none();
        let ciphertexts = columns(&[&left, &right]).len()
            + left.iter().flatten().filter(|c| made(c)).count()
            + right.iter().flatten().count();
        let chunk = ciphertexts.max(1) * self.params().set().memory_bytes();
        (memory / chunk).clamp(1, self.layout().chunks())
    }

    /// The needed factors over a band of record chunks. A right form takes a key switch a chunk.
    pub(crate) fn operands(
        &self,
        query: &Query<'_>,
        needed: &Needed,
        band: Range<usize>,
        work: &mut Work,
    ) -> Result<Operands> {
        let [left, right] = needed.of(query.factors);
        let chunks = band.len();
        let named = columns(&[&left, &right]);
        let read = query.table.read(query.residue, &named, band)?;
        if read.len() != named.len() || read.iter().any(|column| column.len() != chunks) {
            return Err(Error::Mismatch("a table gave other columns than asked for"));
        }
        let read: BTreeMap<usize, Chunks> = named.into_iter().zip(read).collect();
        let started = Clock::start();
        let combine = |c: &Combination| self.combine(&read, query.residue, chunks, c);
        let left = map(&left, |c| c.map(combine).unwrap_or_default());
        // Each is inverted as soon as it is combined: a wide table's combinations take as much
        // memory as its columns.
        let inverted = map(&right, |c| {
            let combined = c.map(combine).unwrap_or_default();
            let mut done = Work::default();
            let invert = |scratch: &mut Scratch| {
                let chunks = combined.into_iter().map(|c| {
                    let mut inverted = self.invert(&c, scratch);
                    self.scale(&mut inverted);
                    Arc::new(inverted)
                });
                chunks.collect::<Chunks>()
            };
            (self.with_scratch(&mut done, invert), done)
        });
        let mut right = Vec::with_capacity(inverted.len());
        for (operand, done) in inverted {
            *work += done;
            right.push(operand);
        }
        work.switching += started.seconds();
        Ok(Operands {
            chunks,
            left,
            right,
        })
    }

    fn combine(
        &self,
        read: &BTreeMap<usize, Chunks>,
        residue: usize,
        chunks: usize,
        combination: &Combination,
    ) -> Chunks {
        // Every column that a needed factor names was read.
        if let Some(column) = combination.single() {
            return read[&column].clone();
        }
        let chunk = |k: usize| {
            let half = |half: usize| {
                let terms = combination.0.iter();
                let terms = terms.map(|&(column, c)| (c, &read[&column][k].c[half]));
                self.params().ring().combine(&terms.collect::<Vec<_>>())
            };
            Arc::new(Ciphertext {
                residue,
                c: [half(0), half(1)],
            })
        };
        (0..chunks).map(chunk).collect()
    }

    /// The image under X -> X^-1.
    pub(crate) fn invert(&self, c: &Ciphertext, scratch: &mut Scratch) -> Ciphertext {
        let ring = self.params().ring();
        let image = |p: &Poly| p.permuted(&self.inversion);
        let pair = [image(&c.c[0]), ring.zero()];
        Ciphertext {
            residue: c.residue,
            c: self.switch(pair, &self.keys().inversion, &image(&c.c[1]), scratch),
        }
    }

    /// Multiplies by t stride^-1, in Montgomery form: what the tensor leaves to its operands, and
    /// what leaves enter packing with.
    fn scale(&self, c: &mut Ciphertext) {
        let params = self.params();
        let t = params.set().plaintext_moduli[c.residue];
        for (j, limb) in params.ring().ciphertext_limbs().iter().enumerate() {
            let m = limb.modulus;
            let unit = m.inv(self.layout().stride() as u64);
            let scale = u128::from(m.mont(m.mont(m.mul(t % m.value(), unit))));
            for x in c.c.iter_mut().flat_map(|p| p.limb_mut(j)) {
                *x = m.redc(u128::from(*x) * scale);
            }
        }
    }

    /// Variance of the noise of each left and each right operand.
    pub(crate) fn operand_noise(&self, factors: Factors<'_>) -> [Vec<f64>; 2] {
        let switch = noise::switch_variance(self.params().set());
        let left = factors.left.iter().map(Combination::variance).collect();
        let right = factors.right.iter().map(|c| c.variance() + switch);
        [left, right.collect()]
    }
}

/// The columns that combinations name, once each, in order.
fn columns(sides: &[&[Option<&Combination>]]) -> Vec<usize> {
    let combinations = sides.iter().flat_map(|side| side.iter().flatten());
    let mut columns: Vec<usize> = combinations
        .flat_map(|c| c.0.iter().map(|&(column, _)| column))
        .collect();
    columns.sort_unstable();
    columns.dedup();
    columns
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

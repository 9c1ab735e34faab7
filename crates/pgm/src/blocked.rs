//! Passes over a node's tables in slabs of cells, and over records.
//!
//! The large tables of a model exceed every cache. All operations on a cell are therefore done
//! while it is in the nearest cache, and large tables are shared among threads. Each cell, and each
//! sum, is computed as a single thread would compute it in one go. Neither the number of threads
//! nor the bounds of slabs change a bit.

use crate::kernel;
use crate::table::Embedding;

/// Number of cells that are processed at a time. With their factors they stay in the first-level
/// cache.
pub(crate) const SLAB: usize = 2048;

/// Smallest number of cells or records that is shared among threads.
#[cfg(not(target_family = "wasm"))]
const MIN_SHARED: usize = 1 << 16;

/// Calls `work` for all parts, on all threads if the parts have many `cells` together. Returns
/// whether all calls returned `true`.
pub(crate) fn all<T: Send>(
    parts: impl Iterator<Item = T>,
    #[cfg_attr(target_family = "wasm", expect(unused_variables))] cells: usize,
    work: impl Fn(T) -> bool + Sync + Send,
) -> bool {
    #[cfg(not(target_family = "wasm"))]
    if cells >= MIN_SHARED {
        use rayon::prelude::*;
        let parts: Vec<T> = parts.collect();
        let done = parts.into_par_iter().map(work);
        return done.reduce(|| true, |all, part| all & part);
    }
    parts.fold(true, |all, part| work(part) & all)
}

/// The inputs that a table's weights are computed from.
#[derive(Debug)]
pub(crate) struct Weights<'a> {
    /// The largest of the logarithms in the table, if something flowed into it.
    pub top: Option<f64>,
    /// The weights of the tables that it carries, with their embeddings.
    pub carried: Vec<(&'a Embedding, &'a [f64])>,
}

impl Weights<'_> {
    /// Turns the logarithms in a table into its weights.
    pub fn fill(&self, table: &mut [f64]) {
        let cells = table.len();
        let parts = table.chunks_mut(SLAB).enumerate();
        all(parts, cells, |(i, slab): (usize, &mut [f64])| {
            self.fill_slab(i * SLAB, slab);
            true
        });
    }

    /// As [`Weights::fill`], and sums the table's blocks of `block` cells. Returns whether all sums
    /// are above `least`.
    pub fn fill_blocks(
        &self,
        table: &mut [f64],
        block: usize,
        sums: &mut [f64],
        least: f64,
    ) -> bool {
        let cells = table.len();
        if block > SLAB {
            self.fill(table);
            let parts = table.chunks_exact(block).zip(sums);
            return all(parts, cells, |(block, sum): (&[f64], &mut f64)| {
                *sum = wide_sum(block);
                *sum > least
            });
        }
        let blocks = SLAB / block;
        let slabs = table.chunks_mut(blocks * block);
        let parts = slabs.zip(sums.chunks_mut(blocks)).enumerate();
        type Part<'p> = (usize, (&'p mut [f64], &'p mut [f64]));
        all(parts, cells, |(i, (slab, sums)): Part<'_>| {
            self.fill_slab(i * blocks * block, slab);
            sum_blocks(slab, block, sums, least)
        })
    }

    /// Sets a table's cells from `start` on.
    fn fill_slab(&self, start: usize, slab: &mut [f64]) {
        kernel::with_avx2!(
            self.fill_slab_avx2(start, slab),
            self.fill_slab_portable(start, slab)
        );
    }

    #[target_feature(enable = "avx2")]
    #[cfg(target_arch = "x86_64")]
    fn fill_slab_avx2(&self, start: usize, slab: &mut [f64]) {
        self.fill_slab_portable(start, slab);
    }

    #[inline(always)]
    fn fill_slab_portable(&self, start: usize, slab: &mut [f64]) {
        let mut carried = self.carried.iter();
        match (self.top, carried.next()) {
            (None, None) => slab.fill(1.0),
            (None, Some((embedding, from))) => embedding.copy_from(start, from, slab),
            (Some(top), first) => {
                kernel::exponentiate_below(slab, top);
                if let Some((embedding, from)) = first {
                    embedding.multiply_from(start, from, slab);
                }
            }
        }
        for (embedding, from) in carried {
            embedding.multiply_from(start, from, slab);
        }
    }
}

/// Sums each block. Returns whether all sums are above `least`.
fn sum_blocks(slab: &[f64], block: usize, sums: &mut [f64], least: f64) -> bool {
    #[target_feature(enable = "avx2")]
    #[cfg(target_arch = "x86_64")]
    fn sum_blocks_avx2(slab: &[f64], block: usize, sums: &mut [f64], least: f64) -> bool {
        sum_blocks_portable(slab, block, sums, least)
    }
    kernel::with_avx2!(
        sum_blocks_avx2(slab, block, sums, least),
        sum_blocks_portable(slab, block, sums, least)
    )
}

#[inline(always)]
fn sum_blocks_portable(slab: &[f64], block: usize, sums: &mut [f64], least: f64) -> bool {
    let mut above = true;
    for (block, sum) in slab.chunks_exact(block).zip(sums) {
        *sum = kernel::sum(block);
        above &= *sum > least;
    }
    above
}

fn wide_sum(row: &[f64]) -> f64 {
    #[target_feature(enable = "avx2")]
    #[cfg(target_arch = "x86_64")]
    fn sum_avx2(row: &[f64]) -> f64 {
        kernel::sum(row)
    }
    kernel::with_avx2!(sum_avx2(row), kernel::sum(row))
}

/// Scales each block of a table to its marginal.
pub(crate) fn scale_blocks(table: &mut [f64], block: usize, sums: &[f64], marginals: &[f64]) {
    let cells = table.len();
    if block > SLAB {
        let blocks = table
            .chunks_exact_mut(block)
            .zip(sums.iter().zip(marginals));
        let slabs = blocks.flat_map(|(block, (sum, marginal))| {
            block
                .chunks_mut(SLAB)
                .map(move |slab| (slab, marginal / sum))
        });
        all(slabs, cells, |(slab, by): (&mut [f64], f64)| {
            scale_rows(slab, SLAB, std::iter::once(by));
            true
        });
        return;
    }
    let blocks = SLAB / block;
    let sums = sums.chunks(blocks).zip(marginals.chunks(blocks));
    let parts = table.chunks_mut(blocks * block).zip(sums);
    type Part<'p> = (&'p mut [f64], (&'p [f64], &'p [f64]));
    all(parts, cells, |(slab, (sums, marginals)): Part<'_>| {
        let shares = marginals.iter().zip(sums);
        scale_rows(slab, block, shares.map(|(marginal, sum)| marginal / sum));
        true
    });
}

/// Multiplies each row by a number.
fn scale_rows(table: &mut [f64], row: usize, by: impl Iterator<Item = f64>) {
    #[target_feature(enable = "avx2")]
    #[cfg(target_arch = "x86_64")]
    fn scale_rows_avx2(table: &mut [f64], row: usize, by: impl Iterator<Item = f64>) {
        scale_rows_portable(table, row, by);
    }
    kernel::with_avx2!(
        scale_rows_avx2(table, row, by),
        scale_rows_portable(table, row, by)
    );
}

#[inline(always)]
fn scale_rows_portable(table: &mut [f64], row: usize, by: impl Iterator<Item = f64>) {
    for (row, by) in table.chunks_mut(row).zip(by) {
        kernel::scale(row, by);
    }
}

/// Sets each of the tables that `large` carries to sums of its cells.
pub(crate) fn sum_onto_all<'a>(
    large: &[f64],
    carried: impl Iterator<Item = (&'a Embedding, &'a mut [f64])>,
) {
    all(
        carried,
        large.len(),
        |(embedding, small): (&Embedding, &mut [f64])| {
            wide_sum_onto(embedding, large, small);
            true
        },
    );
}

fn wide_sum_onto(embedding: &Embedding, large: &[f64], small: &mut [f64]) {
    #[target_feature(enable = "avx2")]
    #[cfg(target_arch = "x86_64")]
    fn sum_onto_avx2(embedding: &Embedding, large: &[f64], small: &mut [f64]) {
        embedding.sum(large, small);
    }
    kernel::with_avx2!(
        sum_onto_avx2(embedding, large, small),
        embedding.sum(large, small)
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Axis, cells};

    fn numbers(count: usize, seed: u64) -> Vec<f64> {
        let mut x = seed;
        let mut next = || {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (x >> 11) as f64 / (1u64 << 53) as f64 + 0.1
        };
        (0..count).map(|_| next()).collect()
    }

    /// Compares with plain loops, for tables that are shared among threads and for blocks smaller
    /// and larger than a slab.
    #[test]
    fn blocked_passes_and_threads_change_no_bit() {
        let sizes = [7, 11, 9, 13, 17];
        let axes: Vec<Axis> = (sizes.iter().enumerate())
            .map(|(rank, &size)| Axis { rank, size })
            .collect();
        let all = cells(&axes);
        assert!(all > MIN_SHARED);
        let smaller = [vec![0, 2], vec![1, 4], vec![0, 1, 2, 3], vec![3]];
        let smaller: Vec<(Embedding, Vec<f64>)> = (smaller.iter().zip(1..))
            .map(|(ranks, seed)| {
                let own: Vec<Axis> = ranks.iter().map(|&rank| axes[rank]).collect();
                (Embedding::new(&axes, &own), numbers(cells(&own), seed))
            })
            .collect();
        let carried = || smaller.iter().map(|(e, values)| (e, &values[..]));
        for top in [None, Some(0.9)] {
            let start = numbers(all, 9);
            let mut wanted = start.clone();
            match top {
                Some(top) => kernel::exponentiate_below(&mut wanted, top),
                None => wanted.fill(1.0),
            }
            carried().for_each(|(embedding, values)| embedding.multiply(values, &mut wanted));
            for depth in 0..=sizes.len() {
                let block = sizes[depth..].iter().product();
                let mut table = start.clone();
                let mut sums = vec![f64::NAN; all / block];
                let weights = Weights {
                    top,
                    carried: carried().collect(),
                };
                assert!(weights.fill_blocks(&mut table, block, &mut sums, 1e-6));
                assert_eq!(table, wanted);
                let plain: Vec<f64> = wanted.chunks_exact(block).map(kernel::sum).collect();
                assert_eq!(sums, plain);
                assert!(!weights.fill_blocks(&mut start.clone(), block, &mut sums, 1e9));

                let marginals = numbers(all / block, 5);
                scale_blocks(&mut table, block, &sums, &marginals);
                let mut scaled = wanted.clone();
                for (i, row) in scaled.chunks_exact_mut(block).enumerate() {
                    kernel::scale(row, marginals[i] / sums[i]);
                }
                assert_eq!(table, scaled);
            }
        }
        let large = numbers(all, 3);
        let mut sums: Vec<Vec<f64>> = carried().map(|(_, v)| vec![f64::NAN; v.len()]).collect();
        let parts = smaller.iter().zip(&mut sums);
        sum_onto_all(&large, parts.map(|((e, _), sums)| (e, &mut sums[..])));
        for ((embedding, values), sums) in smaller.iter().zip(&sums) {
            let mut wanted = vec![f64::NAN; values.len()];
            embedding.sum(&large, &mut wanted);
            assert_eq!(*sums, wanted);
        }
    }
}

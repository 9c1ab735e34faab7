//! Embeddings of small tables, such as marginals, in larger tables.

use crate::kernel;

/// One axis of a table: the rank of its attribute, by which axes are sorted, and its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Axis {
    pub rank: usize,
    pub size: usize,
}

/// Returns the number of cells of a table.
pub(crate) fn cells(axes: &[Axis]) -> usize {
    axes.iter().map(|axis| axis.size).product()
}

/// Checks whether every axis of `small` is one of `large`.
pub(crate) fn is_subset(small: &[Axis], large: &[Axis]) -> bool {
    small.iter().all(|axis| large.contains(axis))
}

/// Runs a block with the length of runs, as a constant if runs are short. Loops over such runs are
/// then compiled to straight vector instructions instead of calls.
macro_rules! with_short_runs {
    ($length:expr, $run:ident => $body:block) => {
        with_short_runs!($length, $run => $body, 2 3 4 5 6 7 8 10 12 16)
    };
    ($length:expr, $run:ident => $body:block, $($short:literal)*) => {
        match $length {
            $($short => {
                let $run = $short;
                $body
            })*
            $run => $body,
        }
    };
}

pub(crate) use with_short_runs;

/// The embedding of a small table in a large one that has all its axes, both sorted by rank.
///
/// The large table is cut into runs of contiguous cells, of equal length. The small table has
/// either all axes that vary within a run, so that a run meets as many of its cells, in order, or
/// none of them, so that a run meets one cell.
#[derive(Clone, Debug)]
pub(crate) struct Embedding {
    run: usize,
    /// Whether a run meets `run` cells of the small table instead of one.
    kept: bool,
    /// For each run, the small table's first cell.
    offsets: Vec<u32>,
}

impl Embedding {
    /// Returns the length of the runs, and whether the small table has their axes.
    fn run(large: &[Axis], small: &[Axis]) -> (usize, bool) {
        let kept = large.last().is_none_or(|axis| small.contains(axis));
        let run = (large.iter().rev())
            .take_while(|axis| small.contains(axis) == kept)
            .map(|axis| axis.size)
            .product();
        (run, kept)
    }

    /// Returns the bytes that [`Embedding::new`] will take.
    pub fn bytes(large: &[Axis], small: &[Axis]) -> usize {
        let runs = cells(large) / Self::run(large, small).0.max(1);
        runs * size_of::<u32>()
    }

    /// Returns the embedding of `small`, a subset of `large`. The small table's cells must fit 32
    /// bits.
    pub fn new(large: &[Axis], small: &[Axis]) -> Self {
        let (run, kept) = Self::run(large, small);
        // Offsets by the outer axes, the last of which varies fastest.
        let mut offsets = vec![0u32];
        let mut covered = cells(large);
        for axis in large {
            if covered <= run {
                break;
            }
            covered /= axis.size;
            let stride = stride(small, axis) as u32;
            offsets = (offsets.iter())
                .flat_map(|&offset| (0..axis.size as u32).map(move |i| offset + i * stride))
                .collect();
        }
        Self { run, kept, offsets }
    }

    /// Returns the size in bytes.
    pub fn held_bytes(&self) -> usize {
        size_of_val(self.offsets.as_slice())
    }

    /// Returns the small table's cell for every cell of the large one, in order.
    pub fn places(&self) -> impl Iterator<Item = usize> + '_ {
        let step = usize::from(self.kept);
        (self.offsets.iter())
            .flat_map(move |&offset| (0..self.run).map(move |i| offset as usize + i * step))
    }

    /// Adds the small table to every matching cell of the large one.
    #[inline(always)]
    pub fn add(&self, small: &[f64], large: &mut [f64]) {
        self.spread(0, small, large, |x, y| x + y);
    }

    /// Multiplies every matching cell of the large table by the small one's.
    #[inline(always)]
    pub fn multiply(&self, small: &[f64], large: &mut [f64]) {
        self.multiply_from(0, small, large);
    }

    /// As [`Embedding::multiply`], for the cells of the large table from `start` on.
    #[inline(always)]
    pub fn multiply_from(&self, start: usize, small: &[f64], part: &mut [f64]) {
        self.spread(start, small, part, |x, y| x * y);
    }

    /// Sets the cells of the large table from `start` on to the matching ones of the small one.
    #[inline(always)]
    pub fn copy_from(&self, start: usize, small: &[f64], part: &mut [f64]) {
        self.spread(start, small, part, |_, y| y);
    }

    #[inline(always)]
    fn spread(
        &self,
        start: usize,
        small: &[f64],
        part: &mut [f64],
        apply: impl Fn(f64, f64) -> f64 + Copy,
    ) {
        // The rest of a run that begins before `start`.
        let (first, within) = (start / self.run, start % self.run);
        let rest = (self.run - within) % self.run;
        let (head, runs) = part.split_at_mut(rest.min(part.len()));
        if !head.is_empty() {
            self.spread_run(self.offsets[first], within, small, head, apply);
        }
        let offsets = &self.offsets[first + usize::from(within > 0)..];
        let tail = runs.len() / self.run;
        with_short_runs!(self.run, run => {
            for (run, &offset) in runs.chunks_exact_mut(run).zip(offsets) {
                self.spread_run(offset, 0, small, run, apply);
            }
        });
        let run = &mut runs[tail * self.run..];
        if !run.is_empty() {
            self.spread_run(offsets[tail], 0, small, run, apply);
        }
    }

    /// Applies part of a run, from its cell `within` on.
    #[inline(always)]
    fn spread_run(
        &self,
        offset: u32,
        within: usize,
        small: &[f64],
        run: &mut [f64],
        apply: impl Fn(f64, f64) -> f64,
    ) {
        let offset = offset as usize;
        if self.kept {
            let values = &small[offset + within..][..run.len()];
            run.iter_mut()
                .zip(values)
                .for_each(|(x, &y)| *x = apply(*x, y));
        } else {
            let value = small[offset];
            run.iter_mut().for_each(|x| *x = apply(*x, value));
        }
    }

    /// Sets the small table to the sums of the large one's matching cells.
    #[inline(always)]
    pub fn sum(&self, large: &[f64], small: &mut [f64]) {
        small.fill(0.0);
        with_short_runs!(self.run, run => {
            let runs = large.chunks_exact(run).zip(&self.offsets);
            if self.kept {
                for (cells, &offset) in runs {
                    kernel::add(&mut small[offset as usize..][..run], cells);
                }
            } else {
                for (cells, &offset) in runs {
                    small[offset as usize] += kernel::sum(cells);
                }
            }
        });
    }
}

/// Returns the distance of neighbours along `axis` in `table`; 0 if the table does not have the
/// axis.
pub(crate) fn stride(table: &[Axis], axis: &Axis) -> usize {
    match table.iter().position(|other| other == axis) {
        Some(i) => cells(&table[i + 1..]),
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes(sizes: &[usize]) -> Vec<Axis> {
        (sizes.iter().enumerate())
            .map(|(rank, &size)| Axis { rank, size })
            .collect()
    }

    /// Computes by division the small table's cell that each cell of the large one belongs to.
    fn slow_places(large: &[Axis], small: &[Axis]) -> Vec<usize> {
        (0..cells(large))
            .map(|cell| {
                large.iter().enumerate().fold(0, |place, (i, axis)| {
                    let coordinate = cell / cells(&large[i + 1..]) % axis.size;
                    place + coordinate * stride(small, axis)
                })
            })
            .collect()
    }

    #[test]
    fn embedding_of_every_subset_of_axes_matches_cells_by_division() {
        let large = axes(&[2, 3, 4, 3]);
        for subset in 0..16u32 {
            let small: Vec<Axis> = (large.iter().copied())
                .filter(|axis| subset >> axis.rank & 1 == 1)
                .collect();
            let places = slow_places(&large, &small);
            let embedding = Embedding::new(&large, &small);
            assert!(embedding.places().eq(places.iter().copied()));
            assert_eq!(embedding.held_bytes(), Embedding::bytes(&large, &small));

            let values: Vec<f64> = (0..cells(&small)).map(|i| (i * i) as f64).collect();
            let mut added = vec![1.0; cells(&large)];
            embedding.add(&values, &mut added);
            let expected: Vec<f64> = places.iter().map(|&p| 1.0 + values[p]).collect();
            assert_eq!(added, expected);

            for start in 0..added.len() {
                for end in start..=added.len() {
                    let mut part = vec![2.0; end - start];
                    embedding.multiply_from(start, &values, &mut part);
                    let places = &places[start..end];
                    let expected: Vec<f64> = places.iter().map(|&p| 2.0 * values[p]).collect();
                    assert_eq!(part, expected);
                }
            }

            let mut sums = vec![f64::NAN; cells(&small)];
            embedding.sum(&added, &mut sums);
            let mut expected = vec![0.0; cells(&small)];
            places
                .iter()
                .zip(&added)
                .for_each(|(&p, x)| expected[p] += x);
            assert_eq!(sums, expected);
        }
    }
}

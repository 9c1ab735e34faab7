//! Tables with rows of whole vectors, and the places of their cells in one another.

use crate::kernel;
use crate::table::{Axis, cells, with_short_runs};

/// Rows of more than one cell are padded with zeros to a multiple of this.
const WIDTH: usize = 4;

/// Returns the padded length of a row of `cells` cells.
pub(crate) fn padded(cells: usize) -> usize {
    match cells {
        1 => 1,
        _ => cells.next_multiple_of(WIDTH),
    }
}

/// The axes of a table from the slowest to the fastest, each with its stride.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    axes: Vec<(Axis, usize)>,
    /// Number of cells, including padding.
    pub cells: usize,
}

impl Layout {
    /// Returns the layout with a padded row over the `inner` axes for every cell of the `outer`
    /// ones.
    pub fn rows(outer: &[Axis], inner: &[Axis]) -> Self {
        Self::new(outer, inner, padded(cells(inner)))
    }

    /// Returns the layout of a table without padding.
    pub fn plain(axes: &[Axis]) -> Self {
        Self::new(&[], axes, cells(axes))
    }

    fn new(outer: &[Axis], inner: &[Axis], row: usize) -> Self {
        let inner = (inner.iter().enumerate()).map(|(i, &axis)| (axis, cells(&inner[i + 1..])));
        let outer = (outer.iter().enumerate())
            .map(|(i, &axis)| (axis, cells(&outer[i + 1..]).saturating_mul(row)));
        let all = outer.clone().map(|(axis, _)| axis.size);
        Self {
            cells: all.fold(row, usize::saturating_mul),
            axes: outer.chain(inner).collect(),
        }
    }

    /// Returns the axes, from the slowest to the fastest.
    pub fn axes(&self) -> impl Iterator<Item = Axis> + '_ {
        self.axes.iter().map(|&(axis, _)| axis)
    }

    fn stride(&self, axis: &Axis) -> usize {
        let found = self.axes.iter().find(|(own, _)| own == axis);
        found.map_or(0, |&(_, stride)| stride)
    }
}

/// The places of a small table's cells in a large table that has all of its axes.
///
/// The large table is cut into runs of contiguous cells. Along a run, the small table's cells have
/// equal distances, which may be 0.
#[derive(Clone, Debug)]
pub(crate) struct Placement {
    run: usize,
    step: usize,
    /// For each run, its first cell in the large table and in the small one.
    runs: Vec<(u32, u32)>,
}

impl Placement {
    /// Returns the run length, the step, and the sizes of the axes outside runs with both tables'
    /// strides.
    fn outline(large: &Layout, small: &Layout) -> (usize, usize, Vec<(usize, usize, usize)>) {
        let mut outer: Vec<(usize, usize, usize)> = (large.axes.iter())
            .filter(|(axis, _)| axis.size > 1)
            .map(|(axis, stride)| (axis.size, *stride, small.stride(axis)))
            .collect();
        let (mut run, mut step) = (1, 0);
        while let Some(&(size, stride, small_stride)) = outer.last() {
            let contiguous = stride == run && (run == 1 || small_stride == step * run);
            if !contiguous {
                break;
            }
            if run == 1 {
                step = small_stride;
            }
            run *= size;
            outer.pop();
        }
        (run, step, outer)
    }

    /// Returns the bytes that [`Placement::new`] takes.
    pub fn bytes(large: &Layout, small: &Layout) -> usize {
        let (_, _, outer) = Self::outline(large, small);
        let runs = outer.iter().map(|&(size, ..)| size);
        runs.fold(size_of::<(u32, u32)>(), usize::saturating_mul)
    }

    /// Returns the place of `small` in `large`. The number of cells of both must fit 32 bits.
    pub fn new(large: &Layout, small: &Layout) -> Self {
        let (run, step, outer) = Self::outline(large, small);
        let mut runs = vec![(0u32, 0u32)];
        for (size, stride, small_stride) in outer {
            runs = (runs.iter())
                .flat_map(|&(l, s)| {
                    (0..size).map(move |i| (l + (i * stride) as u32, s + (i * small_stride) as u32))
                })
                .collect();
        }
        Self { run, step, runs }
    }

    /// Whether the small table's cells along a run are neither the same nor contiguous.
    pub fn is_scattered(&self) -> bool {
        self.step > 1
    }

    /// Sets the large table's cells from `start` on to the small one's. Padding stays as it is.
    #[inline(always)]
    pub fn copy(&self, small: &[f64], start: usize, part: &mut [f64]) {
        self.spread(small, start, part, |_, y| y);
    }

    /// Multiplies the large table's cells from `start` on by the small one's.
    #[inline(always)]
    pub fn multiply(&self, small: &[f64], start: usize, part: &mut [f64]) {
        self.spread(small, start, part, |x, y| x * y);
    }

    /// Adds the large table's cells from `start` on to the small one's.
    #[inline(always)]
    pub fn sum(&self, start: usize, part: &[f64], small: &mut [f64]) {
        let cut = self.cut(start, part.len());
        for run in [cut.head, cut.tail].into_iter().flatten() {
            self.sum_run(run, part, small);
        }
        with_short_runs!(self.run, run => {
            for &(l, s) in cut.whole {
                self.sum_run((l as usize - start, s as usize, run), part, small);
            }
        });
    }

    #[inline(always)]
    fn spread(
        &self,
        small: &[f64],
        start: usize,
        part: &mut [f64],
        apply: impl Fn(f64, f64) -> f64 + Copy,
    ) {
        let cut = self.cut(start, part.len());
        for run in [cut.head, cut.tail].into_iter().flatten() {
            self.spread_run(run, small, part, apply);
        }
        with_short_runs!(self.run, run => {
            for &(l, s) in cut.whole {
                self.spread_run((l as usize - start, s as usize, run), small, part, apply);
            }
        });
    }

    /// Applies a run, given by its first cell in the part and in the small table, and its length.
    /// It uses loops because calls of closures are not always compiled for wide vectors.
    #[inline(always)]
    fn spread_run(
        &self,
        (first, from, length): (usize, usize, usize),
        small: &[f64],
        part: &mut [f64],
        apply: impl Fn(f64, f64) -> f64,
    ) {
        let run = &mut part[first..][..length];
        match self.step {
            0 => {
                let y = small[from];
                for x in run {
                    *x = apply(*x, y);
                }
            }
            1 => {
                for (x, y) in run.iter_mut().zip(&small[from..][..length]) {
                    *x = apply(*x, *y);
                }
            }
            step => {
                for (x, y) in run.iter_mut().zip(small[from..].iter().step_by(step)) {
                    *x = apply(*x, *y);
                }
            }
        }
    }

    #[inline(always)]
    fn sum_run(&self, (first, to, length): (usize, usize, usize), part: &[f64], small: &mut [f64]) {
        let run = &part[first..][..length];
        match self.step {
            0 => small[to] += kernel::sum(run),
            1 => kernel::add(&mut small[to..][..length], run),
            step => {
                for (y, x) in small[to..].iter_mut().step_by(step).zip(run) {
                    *y += x;
                }
            }
        }
    }

    /// Returns the runs that overlap `length` cells of the large table from `start` on.
    #[inline(always)]
    fn cut(&self, start: usize, length: usize) -> Cut<'_> {
        let end = start + length;
        let first = (self.runs).partition_point(|&(l, _)| l as usize + self.run <= start);
        let last = self.runs.partition_point(|&(l, _)| (l as usize) < end);
        let mut whole = &self.runs[first..last];
        let rest = |&(l, s): &(u32, u32)| {
            let (l, s) = (l as usize, s as usize);
            let (from, to) = (l.max(start), (l + self.run).min(end));
            (from - start, s + (from - l) * self.step, to - from)
        };
        let is_whole = |&(l, _): &(u32, u32)| l as usize >= start && l as usize + self.run <= end;
        let (mut head, mut tail) = (None, None);
        if let Some((run, others)) = whole.split_first()
            && !is_whole(run)
        {
            (head, whole) = (Some(rest(run)), others);
        }
        if let Some((run, others)) = whole.split_last()
            && !is_whole(run)
        {
            (tail, whole) = (Some(rest(run)), others);
        }
        Cut { head, whole, tail }
    }
}

/// Runs, of which the first and the last may be cut short. These two are given by their first cells
/// in the part and in the small table, and their lengths.
struct Cut<'a> {
    head: Option<(usize, usize, usize)>,
    whole: &'a [(u32, u32)],
    tail: Option<(usize, usize, usize)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers every subset of the axes of a table with padded rows, in two orders, in parts of
    /// every length.
    #[test]
    fn parts_are_spread_and_summed_by_their_cells() {
        let axes: Vec<Axis> = ([2, 3, 2, 5].into_iter().enumerate())
            .map(|(rank, size)| Axis { rank, size })
            .collect();
        let large = Layout::rows(&axes[..2], &axes[2..]);
        let all = Placement::new(&large, &Layout::plain(&axes));
        let mut places = vec![0.0; large.cells];
        let counted: Vec<f64> = (1..=cells(&axes)).map(|cell| cell as f64).collect();
        all.copy(&counted, 0, &mut places);
        for subset in 0..32u32 {
            let own = axes.iter().filter(|axis| subset >> axis.rank & 1 == 1);
            let mut own: Vec<Axis> = own.copied().collect();
            if subset >= 16 {
                own.reverse();
            }
            let layout = Layout::plain(&own);
            let placement = Placement::new(&large, &layout);
            let place = |cell: f64| -> usize {
                let coordinate =
                    |axis: &Axis| (cell as usize - 1) / cells(&axes[axis.rank + 1..]) % axis.size;
                own.iter()
                    .map(|axis| coordinate(axis) * layout.stride(axis))
                    .sum()
            };
            let values: Vec<f64> = (0..layout.cells).map(|i| (i * i) as f64).collect();
            for length in 1..=large.cells {
                let mut spread = vec![1.0; large.cells];
                let mut sums = vec![0.0; layout.cells];
                for (i, part) in spread.chunks_mut(length).enumerate() {
                    placement.multiply(&values, i * length, part);
                    placement.sum(i * length, &places[i * length..][..part.len()], &mut sums);
                }
                let mut wanted = vec![0.0; layout.cells];
                for (cell, x) in places.iter().zip(&spread) {
                    // Zero marks padding.
                    match *cell {
                        0.0 => assert_eq!(*x, 1.0),
                        cell => {
                            assert_eq!(*x, values[place(cell)]);
                            wanted[place(cell)] += cell;
                        }
                    }
                }
                assert_eq!(sums, wanted);
            }
        }
    }
}

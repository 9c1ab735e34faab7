//! Tables with rows of whole vectors, and where their cells are in one another.

use crate::table::{Axis, cells};

/// Rows of more than one cell are filled up with zeros to a multiple of so many.
const WIDTH: usize = 4;

/// The length of a row of `cells` cells, filled up.
pub(crate) fn padded(cells: usize) -> usize {
    match cells {
        1 => 1,
        _ => cells.next_multiple_of(WIDTH),
    }
}

/// The axes of a table from the slowest to the fastest, each with the distance of its neighbours.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    axes: Vec<(Axis, usize)>,
    /// Cells, those that fill rows up among them.
    pub cells: usize,
}

impl Layout {
    /// A row over the `inner` axes, filled up, for every cell of the `outer` ones.
    pub fn rows(outer: &[Axis], inner: &[Axis]) -> Self {
        Self::new(outer, inner, padded(cells(inner)))
    }

    /// A table whose rows are not filled up.
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

    /// The axes, from the slowest to the fastest.
    pub fn axes(&self) -> impl Iterator<Item = Axis> + '_ {
        self.axes.iter().map(|&(axis, _)| axis)
    }

    fn stride(&self, axis: &Axis) -> usize {
        let found = self.axes.iter().find(|(own, _)| own == axis);
        found.map_or(0, |&(_, stride)| stride)
    }
}

/// Where the cells of a small table are in a large one that has all of its axes.
///
/// The large table is cut into runs of contiguous cells, along which the small table's cells are
/// equally far apart (or the same, where the distance is 0).
#[derive(Clone, Debug)]
pub(crate) struct Placement {
    run: usize,
    step: usize,
    /// For each run, its first cell in the large table and in the small one.
    runs: Vec<(u32, u32)>,
}

impl Placement {
    /// Runs and steps, and the axes outside of runs with both tables' strides.
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

    /// Bytes that [`Placement::new`] takes.
    pub fn bytes(large: &Layout, small: &Layout) -> usize {
        let (_, _, outer) = Self::outline(large, small);
        let runs = outer.iter().map(|&(size, ..)| size);
        runs.fold(size_of::<(u32, u32)>(), usize::saturating_mul)
    }

    /// The place of `small` in `large`; the cells of both fit 32 bits.
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

    /// Sets the large table's cells to the small one's; those that fill rows up stay as they are.
    #[inline(always)]
    pub fn copy(&self, small: &[f64], large: &mut [f64]) {
        self.spread(small, large, |_, y| y);
    }

    /// Multiplies the large table's cells by the small one's.
    #[inline(always)]
    pub fn multiply(&self, small: &[f64], large: &mut [f64]) {
        self.spread(small, large, |x, y| x * y);
    }

    #[inline(always)]
    fn spread(&self, small: &[f64], large: &mut [f64], apply: impl Fn(f64, f64) -> f64) {
        for &(l, s) in &self.runs {
            let run = &mut large[l as usize..][..self.run];
            let from = &small[s as usize..];
            match self.step {
                0 => run.iter_mut().for_each(|x| *x = apply(*x, from[0])),
                1 => (run.iter_mut().zip(&from[..self.run])).for_each(|(x, &y)| *x = apply(*x, y)),
                step => (run.iter_mut().zip(from.iter().step_by(step)))
                    .for_each(|(x, &y)| *x = apply(*x, y)),
            }
        }
    }

    /// Adds the large table's cells to the small one's.
    #[inline(always)]
    pub fn sum(&self, large: &[f64], small: &mut [f64]) {
        for &(l, s) in &self.runs {
            let run = &large[l as usize..][..self.run];
            let to = &mut small[s as usize..];
            match self.step {
                0 => to[0] += crate::kernel::sum(run),
                1 => crate::kernel::add(&mut to[..self.run], run),
                step => (to.iter_mut().step_by(step).zip(run)).for_each(|(y, x)| *y += x),
            }
        }
    }
}

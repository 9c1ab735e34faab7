//! Measures the speed of this machine at the operations of a fit, as a reference for the times of
//! fits.

use std::hint::black_box;
use std::time::Instant;

use crate::blocked::SLAB;
use crate::contraction::multiply_slab;
use crate::kernel::widened;
use crate::layout::{Layout, Placement};
use crate::product::{Matrix, multiply};
use crate::table::{Axis, cells};

/// Number of rounds. The fastest one counts, because the others were disturbed.
const ROUNDS: usize = 50;

/// The times of single operations, in seconds on one thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Multiplying one cell by a smaller table's, in the nearest cache.
    pub cached_cell: f64,
    /// The same in tables that exceed every cache.
    pub cell: f64,
    /// One multiplication and addition of a product of matrices, in the nearest cache.
    pub product: f64,
}

impl Pace {
    /// Measures the times, in about a second.
    pub fn measure() -> Self {
        Self {
            cached_cell: cell(&[4, 16, 32], 64),
            // 32 MB.
            cell: cell(&[4096, 32, 32], 1),
            product: product(),
        }
    }
}

/// Returns the seconds of the fastest round.
fn least(mut work: impl FnMut()) -> f64 {
    let mut round = || {
        let started = Instant::now();
        work();
        started.elapsed().as_secs_f64()
    };
    (0..ROUNDS).map(|_| round()).fold(f64::INFINITY, f64::min)
}

/// Measures the time per cell of copying from a factor over the last two axes of a table, and
/// multiplying by another factor over its first and last axis.
fn cell(sizes: &[usize; 3], repeated: usize) -> f64 {
    let axes = [0, 1, 2].map(|rank| Axis {
        rank,
        size: sizes[rank],
    });
    let large = Layout::plain(&axes);
    let small = [[axes[1], axes[2]], [axes[0], axes[2]]].map(|axes| {
        let place = Placement::new(&large, &Layout::plain(&axes));
        (place, vec![1.0; cells(&axes)])
    });
    let factors = small.each_ref().map(|(place, table)| (place, &table[..]));
    let mut table = vec![0.0; large.cells];
    let seconds = least(|| {
        for _ in 0..repeated {
            for (i, slab) in black_box(&mut table).chunks_mut(SLAB).enumerate() {
                multiply_slab(black_box(&factors), i * SLAB, slab);
            }
        }
    });
    seconds / (factors.len() * large.cells * repeated) as f64
}

/// Rows and columns of the matrices of the measured product.
const SIZE: usize = 32;

widened!(multiply_matrices = multiply_matrices_portable(a: &[f64], b: &[f64], out: &mut [f64]));

#[inline(always)]
fn multiply_matrices_portable(a: &[f64], b: &[f64], out: &mut [f64]) {
    multiply::<false>((SIZE, SIZE, SIZE), Matrix::rows(a, SIZE), b, out);
}

fn product() -> f64 {
    const REPEATED: usize = 64;
    let (a, b) = (vec![1.0; SIZE * SIZE], vec![1.0; SIZE * SIZE]);
    let mut out = vec![0.0; SIZE * SIZE];
    let seconds = least(|| {
        for _ in 0..REPEATED {
            multiply_matrices(black_box(&a), black_box(&b), black_box(&mut out));
        }
    });
    seconds / (SIZE * SIZE * SIZE * REPEATED) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_measured_times_are_positive() {
        let pace = Pace::measure();
        for seconds in [pace.cached_cell, pace.cell, pace.product] {
            assert!(seconds > 0.0 && seconds.is_finite(), "{pace:?}");
        }
    }
}

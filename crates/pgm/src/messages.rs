//! Messages of buckets, which are sent up and returned down: products of the matrices of a bucket's
//! two sides.
//!
//! Large matrices are shared among threads by their rows, small ones whole. Every cell is a single
//! sum in the order of the inner index. Neither the number of threads nor the width of vectors
//! therefore changes a bit.

use crate::blocked;
use crate::buckets::Bucket;
use crate::kernel::{self, widened};
use crate::product::{self, Matrix};
use crate::propagation::MIN_SUM;

/// Number of cells of messages that one thread processes at a time.
const PART: usize = 1 << 14;

/// Number of cells from which on a single product is shared among threads.
const SHARED: usize = 1 << 16;

/// Number of rows of a shared product that a thread gets at a time. It is a whole number of tiles.
const BAND: usize = 8;

/// Number of columns of a matrix that are transposed at a time.
const TURNED: usize = 64;

/// The memory of a bucket's message.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    /// The cells that are sent up.
    pub cells: Vec<f64>,
    /// The divisor that makes the message's largest cell 1.
    scale: f64,
    /// The marginal of the message's attributes, which is later divided by the message.
    pub marginal: Vec<f64>,
}

widened!(send_part_up = send_part_up_portable(bucket: &Bucket, first: usize, sides: [&[f64]; 2], messages: &mut [f64]) -> bool);
widened!(sum_rows = sum_rows_portable(right: &[f64], row: usize, start: usize, sums: &mut [f64]));
widened!(scale_to_one = scale_to_one_portable(message: &mut [f64]) -> f64);
widened!(send_part_down = send_part_down_portable(bucket: &Bucket, sides: [&mut [f64]; 2], ratios: &[f64]));
widened!(send_band_down = send_band_down_portable(bucket: &Bucket, sides: [&mut [f64]; 2], ratio: &[f64], turned: &[f64]));
widened!(turn = turn_portable(ratio: &[f64], columns: usize, first: usize, to: &mut [f64], row: usize));
widened!(multiply_row = multiply(to: &mut [f64], by: &[f64]));
widened!(divide = divide_portable(marginals: &mut [f64], messages: &[f64], scale: f64));

/// Lengths of a bucket's matrices.
struct Lengths {
    left: usize,
    right: usize,
    message: usize,
    /// Number of matrices that a thread gets at a time.
    many: usize,
    /// Whether one matrix is shared among threads.
    shared: bool,
}

impl Lengths {
    fn of(bucket: &Bucket) -> Self {
        let message = bucket.rows * bucket.right_row();
        let work = message * bucket.inner;
        Self {
            left: bucket.inner * bucket.left_row(),
            right: bucket.inner * bucket.right_row(),
            message,
            many: (PART / work).max(1),
            shared: work >= SHARED,
        }
    }
}

impl Message {
    /// Returns zeroed memory.
    pub fn of(bucket: &Bucket) -> Self {
        Self {
            cells: vec![0.0; bucket.message()],
            scale: 1.0,
            marginal: vec![0.0; bucket.message()],
        }
    }

    /// Computes the message from the sides with factors. Returns whether all of its cells are far
    /// from underflow.
    pub fn send_up(
        &mut self,
        bucket: &Bucket,
        left: Option<&[f64]>,
        right: Option<&[f64]>,
    ) -> bool {
        let sound = match (left, right) {
            (Some(left), Some(right)) => multiply_up(bucket, [left, right], &mut self.cells),
            // The cells of a side without factors are all 1.
            (_, Some(right)) => {
                let row = self.cells.len();
                let pieces = self.cells.chunks_mut(PIECE).enumerate();
                blocked::all(pieces, right.len(), |(i, sums): (usize, &mut [f64])| {
                    sum_rows(right, row, i * PIECE, sums);
                    true
                });
                all_above(&self.cells[..bucket.columns])
            }
            _ => {
                self.cells.fill(bucket.inner as f64);
                true
            }
        };
        self.scale = scale_to_one(&mut self.cells);
        sound
    }

    /// Turns both sides into marginals. `scratch` is overwritten.
    pub fn send_down(
        &mut self,
        bucket: &Bucket,
        left: Option<&mut [f64]>,
        right: Option<&mut [f64]>,
        scratch: &mut Vec<f64>,
    ) {
        let cells = self.cells.len();
        let parts = (self.marginal.chunks_mut(PART)).zip(self.cells.chunks(PART));
        blocked::all(
            parts,
            cells,
            |(marginals, messages): (&mut [f64], &[f64])| {
                divide(marginals, messages, self.scale);
                true
            },
        );
        match (left, right) {
            (Some(left), Some(right)) => {
                multiply_down(bucket, [left, right], &self.marginal, scratch);
            }
            (_, Some(right)) => {
                let cells = right.len();
                let rows = right.chunks_exact_mut(self.marginal.len());
                blocked::all(rows, cells, |row: &mut [f64]| {
                    multiply_row(row, &self.marginal);
                    true
                });
            }
            _ => {}
        }
    }
}

/// Sets messages to products of the sides' matrices. Returns whether all of their cells are far
/// from underflow.
fn multiply_up(bucket: &Bucket, [left, right]: [&[f64]; 2], messages: &mut [f64]) -> bool {
    let of = Lengths::of(bucket);
    let lefts = left.chunks(of.many * of.left);
    let parts = lefts.zip(right.chunks(of.many * of.right));
    let parts = parts.zip(messages.chunks_mut(of.many * of.message));
    let band = match of.shared {
        true => BAND,
        false => of.many * bucket.rows,
    };
    let bands = parts.flat_map(|((left, right), messages)| {
        let bands = messages.chunks_mut(band * bucket.right_row()).enumerate();
        bands.map(move |(i, messages)| (i * band, [left, right], messages))
    });
    type Part<'p> = (usize, [&'p [f64]; 2], &'p mut [f64]);
    let work = bucket.message() * bucket.inner;
    blocked::all(bands, work, |(first, sides, messages): Part<'_>| {
        send_part_up(bucket, first, sides, messages)
    })
}

/// Computes the messages of some matrices, or the rows of a single matrix's message from `first`
/// on.
#[inline(always)]
fn send_part_up_portable(
    bucket: &Bucket,
    first: usize,
    [lefts, rights]: [&[f64]; 2],
    messages: &mut [f64],
) -> bool {
    let of = Lengths::of(bucket);
    let sides = lefts
        .chunks_exact(of.left)
        .zip(rights.chunks_exact(of.right));
    let mut sound = true;
    for ((left, right), message) in sides.zip(messages.chunks_mut(of.message)) {
        let shape = (
            message.len() / bucket.right_row(),
            bucket.inner,
            bucket.right_row(),
        );
        let turned = Matrix {
            cells: &left[first..],
            row: 1,
            column: bucket.left_row(),
        };
        product::multiply::<false>(shape, turned, right, message);
        for row in message.chunks_exact(bucket.right_row()) {
            sound &= all_above(&row[..bucket.columns]);
        }
    }
    sound
}

/// Checks whether all numbers are far from underflow.
#[inline(always)]
fn all_above(row: &[f64]) -> bool {
    row.iter().fold(true, |sound, &x| sound & (x > MIN_SUM))
}

/// Number of cells of a sum of rows that stay in a near cache while all rows are added.
const PIECE: usize = 1024;

/// Computes a piece, from `start` on, of the sum of the rows of a bucket's only side with factors.
#[inline(always)]
fn sum_rows_portable(right: &[f64], row: usize, start: usize, sums: &mut [f64]) {
    sums.fill(0.0);
    for row in right.chunks_exact(row) {
        kernel::add(sums, &row[start..][..sums.len()]);
    }
}

/// Divides a message by its largest cell, and returns that cell.
#[inline(always)]
fn scale_to_one_portable(message: &mut [f64]) -> f64 {
    let largest = kernel::max(message);
    kernel::scale(message, largest.recip());
    largest
}

/// Turns both sides into marginals, given the factors `ratios` that the rest of the model
/// contributes to the message's cells.
fn multiply_down(
    bucket: &Bucket,
    [left, right]: [&mut [f64]; 2],
    ratios: &[f64],
    scratch: &mut Vec<f64>,
) {
    let of = Lengths::of(bucket);
    let work = bucket.message() * bucket.inner;
    let (left_row, right_row) = (bucket.left_row(), bucket.right_row());
    type Part<'p> = (&'p mut [f64], &'p mut [f64]);
    if !of.shared {
        let parts = left.chunks_mut(of.many * of.left);
        let parts = parts.zip(right.chunks_mut(of.many * of.right));
        let parts = parts.zip(ratios.chunks(of.many * of.message));
        blocked::all(
            parts,
            work,
            |((left, right), ratios): (Part<'_>, &[f64])| {
                send_part_down(bucket, [left, right], ratios);
                true
            },
        );
        return;
    }
    let sides = left.chunks_exact_mut(of.left);
    let sides = sides.zip(right.chunks_exact_mut(of.right));
    for ((left, right), ratio) in sides.zip(ratios.chunks_exact(of.message)) {
        if bucket.rows > 1 {
            let cells = left_row * right_row;
            scratch.resize(cells.max(scratch.len()), 0.0);
            let parts = scratch[..cells].chunks_mut(TURNED * left_row);
            let parts = parts.enumerate();
            blocked::all(parts, work, |(i, to): (usize, &mut [f64])| {
                turn(ratio, right_row, i * TURNED, to, left_row);
                true
            });
        }
        let turned = &scratch[..];
        let lefts = left.chunks_mut(BAND * left_row);
        let bands = lefts.zip(right.chunks_mut(BAND * right_row));
        blocked::all(bands, work, |(left, right): Part<'_>| {
            send_band_down(bucket, [left, right], ratio, turned);
            true
        });
    }
}

#[inline(always)]
fn turn_portable(ratio: &[f64], columns: usize, first: usize, to: &mut [f64], row: usize) {
    product::turn(ratio, columns, first, to, row);
}

/// Processes some matrices of both sides.
#[inline(always)]
fn send_part_down_portable(bucket: &Bucket, [lefts, rights]: [&mut [f64]; 2], ratios: &[f64]) {
    let of = Lengths::of(bucket);
    let (left_row, right_row) = (bucket.left_row(), bucket.right_row());
    let turned_cells = if bucket.rows == 1 {
        0
    } else {
        left_row * right_row
    };
    let mut scratch = vec![0.0; of.left + turned_cells];
    let (for_left, turned) = scratch.split_at_mut(of.left);
    let sides = (lefts.chunks_exact_mut(of.left)).zip(rights.chunks_exact_mut(of.right));
    for ((left, right), ratio) in sides.zip(ratios.chunks_exact(of.message)) {
        if bucket.rows > 1 {
            product::turn(ratio, right_row, 0, turned, left_row);
        }
        settle(bucket, [left, right], ratio, turned, for_left);
    }
}

/// Processes some rows of a single matrix of both sides.
#[inline(always)]
fn send_band_down_portable(
    bucket: &Bucket,
    [left, right]: [&mut [f64]; 2],
    ratio: &[f64],
    turned: &[f64],
) {
    let mut for_left = vec![0.0; left.len()];
    settle(bucket, [left, right], ratio, turned, &mut for_left);
}

/// Multiplies each side's rows by the product of the other side's with the ratio, or with the
/// transposed ratio.
#[inline(always)]
fn settle(
    bucket: &Bucket,
    [left, right]: [&mut [f64]; 2],
    ratio: &[f64],
    turned: &[f64],
    for_left: &mut [f64],
) {
    let (left_row, right_row) = (bucket.left_row(), bucket.right_row());
    let inner = left.len() / left_row;
    if bucket.rows == 1 {
        product::column(right, ratio, for_left);
    } else {
        let shape = (inner, right_row, left_row);
        let right = Matrix::rows(right, right_row);
        product::multiply::<false>(shape, right, turned, for_left);
    }
    let shape = (inner, bucket.rows, right_row);
    product::multiply::<true>(shape, Matrix::rows(left, left_row), ratio, right);
    multiply(left, for_left);
}

/// Divides marginals by messages as they were before scaling. Padding, which is zero in both, stays
/// zero.
#[inline(always)]
fn divide_portable(marginals: &mut [f64], messages: &[f64], scale: f64) {
    for (x, &y) in marginals.iter_mut().zip(messages) {
        *x = if y > 0.0 { *x / (y * scale) } else { 0.0 };
    }
}

#[inline(always)]
fn multiply(to: &mut [f64], by: &[f64]) {
    for (x, y) in to.iter_mut().zip(by) {
        *x *= y;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buckets::{Level, Side};
    use crate::layout::padded;

    fn numbers(count: usize, seed: u64) -> Vec<f64> {
        let mut x = seed;
        let mut next = || {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (x >> 11) as f64 / (1u64 << 53) as f64 + 0.1
        };
        (0..count).map(|_| next()).collect()
    }

    /// Returns a bucket with many matrices, or one, whose sides' rows are padded.
    fn bucket(matrices: usize, rows: usize, columns: usize) -> Bucket {
        let side = |row: usize| Side {
            levels: vec![Level {
                cells: matrices * INNER * padded(row),
                before: None,
                factors: Vec::new(),
            }],
        };
        Bucket {
            matrices,
            inner: INNER,
            rows,
            columns,
            left: side(rows),
            right: side(columns),
        }
    }

    const INNER: usize = 13;

    /// Returns the rows of a side, of which `row` cells each are not padding.
    fn side(row: usize, matrices: usize) -> Vec<f64> {
        let mut cells = numbers(matrices * INNER * padded(row), row as u64);
        for row_cells in cells.chunks_exact_mut(padded(row)) {
            row_cells[row..].fill(0.0);
        }
        cells
    }

    /// Computes each cell by plain loops: the message, and both sides after its return.
    fn plain(bucket: &Bucket, left: &[f64], right: &[f64], ratios: &[f64]) -> [Vec<f64>; 3] {
        let (rows, columns) = (bucket.left_row(), bucket.right_row());
        let mut message = vec![0.0; bucket.message()];
        let (mut new_left, mut new_right) = (left.to_vec(), right.to_vec());
        for m in 0..bucket.matrices {
            for r in 0..bucket.rows {
                for c in 0..columns {
                    let cell = (m * bucket.rows + r) * columns + c;
                    for k in m * INNER..(m + 1) * INNER {
                        message[cell] += left[k * rows + r] * right[k * columns + c];
                    }
                }
            }
            for k in m * INNER..(m + 1) * INNER {
                let ratio = |r: usize, c: usize| ratios[(m * bucket.rows + r) * columns + c];
                for r in 0..bucket.rows {
                    let row = &right[k * columns..][..columns];
                    new_left[k * rows + r] *= match bucket.rows {
                        1 => kernel::dot_portable(row, &ratios[m * columns..][..columns]),
                        _ => row
                            .iter()
                            .enumerate()
                            .fold(0.0, |sum, (c, x)| sum + x * ratio(r, c)),
                    };
                }
                for c in 0..columns {
                    let share = |r: usize| left[k * rows + r] * ratio(r, c);
                    new_right[k * columns + c] *=
                        (0..bucket.rows).fold(0.0, |sum, r| sum + share(r));
                }
            }
        }
        [message, new_left, new_right]
    }

    /// The results must not depend on the width of vectors or the number of threads.
    #[test]
    fn vectors_and_threads_change_no_bit() {
        let shapes = [
            (1, 1, 1),
            (6, 1, 9),
            (6, 5, 13),
            (700, 8, 16),
            (3, 75, 90),
            (1, 150, 211),
            (2, 1, 7001),
        ];
        for (matrices, rows, columns) in shapes {
            let bucket = bucket(matrices, rows, columns);
            let (left, right) = (side(rows, matrices), side(columns, matrices));
            let ratios = numbers(bucket.message(), 3);
            let wanted = plain(&bucket, &left, &right, &ratios);
            let mut message = vec![f64::NAN; bucket.message()];
            assert!(multiply_up(&bucket, [&left, &right], &mut message));
            let (mut new_left, mut new_right) = (left.clone(), right.clone());
            // Leftovers of an earlier bucket must not matter.
            let mut scratch = vec![f64::NAN; 10];
            multiply_down(
                &bucket,
                [&mut new_left, &mut new_right],
                &ratios,
                &mut scratch,
            );
            assert_eq!([message, new_left, new_right], wanted);
        }
    }
}

//! Products of small matrices, in an order that does not depend on the machine.
//!
//! Every entry of a product is a single sum in the order of the inner index, without fused
//! multiply-adds. Vectors hold separate entries, never parts of a sum, so that their width changes
//! no bit.

use crate::kernel;

/// Size of the tiles in which a product is computed, which stay in registers.
const ROWS: usize = 4;
const COLUMNS: usize = 8;

/// Number of columns of the right matrix that are processed before the next ones, so that they stay
/// in a near cache.
const PANEL: usize = 64;

/// Rows, inner index and columns of a product.
pub(crate) type Shape = (usize, usize, usize);

/// A matrix in memory: its cells, and the strides of rows and columns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matrix<'a> {
    pub cells: &'a [f64],
    pub row: usize,
    pub column: usize,
}

impl<'a> Matrix<'a> {
    /// Returns a matrix with rows of `row` cells.
    #[inline(always)]
    pub fn rows(cells: &'a [f64], row: usize) -> Self {
        Self {
            cells,
            row,
            column: 1,
        }
    }
}

/// Sets `out` to the product of `a` and `b`. With `ONTO`, multiplies each cell of `out` by the
/// product's cell instead. The row strides of `out` and `b` equal the number of columns.
#[inline(always)]
pub(crate) fn multiply<const ONTO: bool>(
    (rows, inner, columns): Shape,
    a: Matrix<'_>,
    b: &[f64],
    out: &mut [f64],
) {
    let mut committee = 0;
    while committee < columns {
        let end = columns.min(committee + PANEL);
        let mut i = 0;
        while i + ROWS <= rows {
            band::<ONTO, ROWS>(i, (committee, end), (inner, columns), a, b, out);
            i += ROWS;
        }
        while i < rows {
            band::<ONTO, 1>(i, (committee, end), (inner, columns), a, b, out);
            i += 1;
        }
        committee = end;
    }
}

/// Computes some rows of a product, from column `start` to `end`.
#[inline(always)]
fn band<const ONTO: bool, const R: usize>(
    first: usize,
    (start, end): (usize, usize),
    (inner, columns): (usize, usize),
    a: Matrix<'_>,
    b: &[f64],
    out: &mut [f64],
) {
    let mut j = start;
    while j + COLUMNS <= end {
        tile::<ONTO, R, COLUMNS>((first, j), (inner, columns), a, b, out);
        j += COLUMNS;
    }
    while j + 4 <= end {
        tile::<ONTO, R, 4>((first, j), (inner, columns), a, b, out);
        j += 4;
    }
    while j < end {
        tile::<ONTO, R, 1>((first, j), (inner, columns), a, b, out);
        j += 1;
    }
}

#[inline(always)]
fn tile<const ONTO: bool, const R: usize, const C: usize>(
    (i, j): (usize, usize),
    (inner, columns): (usize, usize),
    a: Matrix<'_>,
    b: &[f64],
    out: &mut [f64],
) {
    let mut sums = [[0.0; C]; R];
    let b = b[j..].chunks(columns).take(inner).enumerate();
    for (k, row) in b {
        let Some(row) = row.first_chunk::<C>() else {
            continue;
        };
        for (r, sums) in sums.iter_mut().enumerate() {
            let x = a.cells[(i + r) * a.row + k * a.column];
            for (sum, y) in sums.iter_mut().zip(row) {
                *sum += x * y;
            }
        }
    }
    for (r, sums) in sums.iter().enumerate() {
        let out = &mut out[(i + r) * columns + j..][..C];
        for (out, sum) in out.iter_mut().zip(sums) {
            *out = if ONTO { *out * sum } else { *sum };
        }
    }
}

/// Number of rows that are transposed at a time, so that each write to a column fills a whole cache
/// line.
const LINE: usize = 8;

/// Transposes columns of a matrix, from the `first` on, one for each row of `to`. The rows of the
/// matrix have `columns` cells. The rows of `to` have `row` cells, at least as many as the matrix
/// has rows, and are padded with zeros.
#[inline(always)]
pub(crate) fn turn(from: &[f64], columns: usize, first: usize, to: &mut [f64], row: usize) {
    let rows = from.len() / columns;
    for start in (0..row).step_by(LINE) {
        let (end, filled) = ((start + LINE).min(row), (start + LINE).min(rows).max(start));
        for (column, to) in (first..).zip(to.chunks_exact_mut(row)) {
            for (i, to) in (start..filled).zip(&mut to[start..]) {
                *to = from[i * columns + column];
            }
            to[filled..end].fill(0.0);
        }
    }
}

/// Computes the product of a matrix, whose rows have the length of `b`, and the column `b`.
#[inline(always)]
pub(crate) fn column(a: &[f64], b: &[f64], out: &mut [f64]) {
    for (out, row) in out.iter_mut().zip(a.chunks_exact(b.len())) {
        *out = kernel::dot_portable(row, b);
    }
}

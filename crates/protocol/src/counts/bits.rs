//! Counting pairs of columns a few records at a time: of columns of few values by bits, 64 records a word.

use super::cells;
use fhaim_domain::Domain;
use std::ops::Range;
use zeroize::Zeroizing;

/// Records that are counted at a time: the bits of all columns stay in a processor's cache.
pub(super) const PIECE: usize = 8192;

/// A pair is counted by bits where it has at most so many cells beside those that follow from the columns' own counts:
/// with more, one step a record is quicker.
const MAX_BIT_CELLS: usize = 64;

/// Some records of all columns.
pub(super) struct Piece<'a> {
    columns: Vec<Column<'a>>,
}

struct Column<'a> {
    codes: &'a [u32],
    /// Of each value but the last the records that have it, a bit each; none of columns of many values.
    bits: Zeroizing<Vec<u64>>,
    /// Records of each value.
    counts: Zeroizing<Vec<i64>>,
}

impl<'a> Piece<'a> {
    /// These records of columns whose codes are all within the domain.
    pub(super) fn new(columns: &[&'a [u32]], domain: &Domain, records: Range<usize>) -> Self {
        let columns = columns.iter().zip(domain.sizes());
        let column = |(codes, &size): (&&'a [u32], &usize)| {
            Column::new(codes.get(records.clone()).unwrap_or(&[]), size)
        };
        Self {
            columns: columns.map(column).collect(),
        }
    }

    /// The tables of an attribute with each of those behind it, one after the other.
    pub(super) fn tables(&self, a: usize, domain: &Domain) -> Zeroizing<Vec<i64>> {
        let others = a + 1..domain.len();
        let size = others.clone().map(|b| cells(domain, a, b)).sum();
        let mut tables = Zeroizing::new(vec![0; size]);
        let mut rest = tables.as_mut_slice();
        for b in others {
            let (table, behind) = rest.split_at_mut(cells(domain, a, b));
            rest = behind;
            if let (Some(a), Some(b)) = (self.columns.get(a), self.columns.get(b)) {
                a.count(b, table);
            }
        }
        tables
    }
}

impl<'a> Column<'a> {
    fn new(codes: &'a [u32], size: usize) -> Self {
        let mut counts = Zeroizing::new(vec![0; size]);
        for &code in codes {
            if let Some(count) = counts.get_mut(code as usize) {
                *count += 1;
            }
        }
        let with_bits = size <= 1 + MAX_BIT_CELLS;
        let values = if with_bits { size.saturating_sub(1) } else { 0 };
        let words = codes.len().div_ceil(64);
        let mut bits = Zeroizing::new(vec![0; values * words]);
        for (word, codes) in codes.chunks(64).enumerate() {
            for (bit, &code) in codes.iter().enumerate() {
                // The last value has no bits, and no value of a column of many.
                if let Some(bits) = bits.get_mut(code as usize * words + word) {
                    *bits |= 1 << bit;
                }
            }
        }
        Self {
            codes,
            bits,
            counts,
        }
    }

    /// Adds a pair's cells to its table, in row-major order.
    fn count(&self, other: &Self, table: &mut [i64]) {
        let [rows, columns] = [self, other].map(|column| column.counts.len().saturating_sub(1));
        if rows.saturating_mul(columns) <= MAX_BIT_CELLS {
            self.count_by_bits(other, table);
        } else {
            let row = other.counts.len();
            for (&x, &y) in self.codes.iter().zip(other.codes) {
                if let Some(count) = table.get_mut(x as usize * row + y as usize) {
                    *count += 1;
                }
            }
        }
    }

    /// The last row and the last column of a table are what the others leave of the columns' own counts.
    fn count_by_bits(&self, other: &Self, table: &mut [i64]) {
        let words = self.codes.len().div_ceil(64).max(1);
        let mut left = other.counts.clone();
        let mut rows = table.chunks_exact_mut(other.counts.len().max(1));
        let values = self.bits.chunks_exact(words).zip(self.counts.iter());
        for ((x, &all), row) in values.zip(rows.by_ref()) {
            let mut rest = all;
            let mut cells = row.iter_mut().zip(left.iter_mut());
            for (y, (cell, left)) in other.bits.chunks_exact(words).zip(cells.by_ref()) {
                let both = common(x, y);
                *cell += both;
                *left -= both;
                rest -= both;
            }
            if let Some((cell, left)) = cells.next() {
                *cell += rest;
                *left -= rest;
            }
        }
        let last = rows.next().into_iter().flatten();
        for (cell, left) in last.zip(left.iter()) {
            *cell += left;
        }
    }
}

/// Records in both.
fn common(x: &[u64], y: &[u64]) -> i64 {
    let both = x.iter().zip(y).map(|(x, y)| (x & y).count_ones());
    i64::from(both.sum::<u32>())
}

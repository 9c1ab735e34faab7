//! Counts pairs of columns in pieces of records. Columns with few values are counted by bits, 64
//! records per word.

use super::cells;
use fhaim_domain::Domain;
use std::ops::Range;
use zeroize::Zeroizing;

/// Records per piece, so that the bits of all columns stay in a processor's cache.
pub(super) const PIECE: usize = 8192;

/// A pair is counted by bits if it has at most this many cells in addition to those that follow
/// from the columns' own counts. With more cells, one step per record is faster.
const MAX_BIT_CELLS: usize = 64;

/// Some records, with all columns.
pub(super) struct Piece<'a> {
    columns: Vec<Column<'a>>,
}

struct Column<'a> {
    codes: &'a [u32],
    /// For each value except the last: one bit per record, set where the record has the value.
    /// Empty for columns with many values.
    bits: Zeroizing<Vec<u64>>,
    /// Number of records with each value.
    counts: Zeroizing<Vec<i64>>,
}

impl<'a> Piece<'a> {
    /// Takes a range of records from columns whose codes are all within the domain.
    pub(super) fn new(columns: &[&'a [u32]], domain: &Domain, records: Range<usize>) -> Self {
        let columns = columns.iter().zip(domain.sizes());
        let column = |(codes, &size): (&&'a [u32], &usize)| {
            Column::new(codes.get(records.clone()).unwrap_or(&[]), size)
        };
        Self {
            columns: columns.map(column).collect(),
        }
    }

    /// Returns the tables of an attribute with each later attribute, one after the other.
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
                // The last value has no bits, and neither has any value of a column with many
                // values.
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

    /// Adds the counts of a pair to its table, in row-major order.
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

    /// Counts by bits. The last row and the last column follow from the columns' own counts and the
    /// other cells.
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

/// Number of records in both.
fn common(x: &[u64], y: &[u64]) -> i64 {
    let both = x.iter().zip(y).map(|(x, y)| (x & y).count_ones());
    i64::from(both.sum::<u32>())
}

//! Counts records in pieces, with memory for the tables only, for any number of records.

use super::bits::{PIECE, Piece};
use super::{CountTables, cells};
use crate::Error;
use crate::holder::check_records;
use fhaim_domain::{Clique, Counted, Domain, Table};
use fhaim_he::map;
use std::fmt;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Counts of all pairs so far. They are as secret as the records, and wiped from memory when they
/// are dropped.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct PairCounts {
    #[zeroize(skip)]
    tables: CountTables,
    record_bound: u64,
    records: u64,
    /// Counts by place.
    counts: Vec<i64>,
}

impl fmt::Debug for PairCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PairCounts").finish_non_exhaustive()
    }
}

impl PairCounts {
    /// Creates counts of no records, for a dataset whose terms allow this holder `record_bound`
    /// records.
    pub fn new(tables: CountTables, record_bound: u64) -> Self {
        let places = tables.layout().ciphertexts() * tables.layout().stride();
        Self {
            tables,
            record_bound,
            records: 0,
            counts: vec![0; places],
        }
    }

    /// Counts all records of a table.
    ///
    /// # Errors
    /// Those of [`PairCounts::add`].
    pub fn of_table(tables: CountTables, record_bound: u64, table: &Table) -> Result<Self, Error> {
        let mut pair_counts = Self::new(tables, record_bound);
        pair_counts.add(table.columns())?;
        Ok(pair_counts)
    }

    /// Counts further records, given as codes of each attribute by record.
    ///
    /// # Errors
    /// [`Error::Records`] if the total exceeds the bound; [`Error::Table`] for columns that do not
    /// fit the domain, and for codes outside it. Nothing is counted then.
    pub fn add<C: AsRef<[u32]>>(&mut self, columns: &[C]) -> Result<(), Error> {
        let columns: Vec<&[u32]> = columns.iter().map(AsRef::as_ref).collect();
        let columns = columns.as_slice();
        let records = self.check(columns)?;
        let domain = self.tables.domain().clone();
        if let [only] = columns {
            let first = self.tables.first(0, 0)?;
            self.count(first, only.iter().map(|&x| x as usize));
        }
        let rows = columns.first().map_or(0, |column| column.len());
        for start in (0..rows).step_by(PIECE) {
            let end = rows.min(start + PIECE);
            self.add_pairs(&Piece::new(columns, &domain, start..end), &domain)?;
        }
        self.records = records;
        Ok(())
    }

    /// Counts the pairs of some records, with several attributes in parallel.
    fn add_pairs(&mut self, piece: &Piece<'_>, domain: &Domain) -> Result<(), Error> {
        let attributes: Vec<usize> = (0..domain.len()).collect();
        let counted = map(attributes.iter().collect(), |&a| piece.tables(a, domain));
        for (a, tables) in counted.iter().enumerate() {
            let mut rest = tables.as_slice();
            for b in a + 1..domain.len() {
                let (table, behind) = rest.split_at(cells(domain, a, b).min(rest.len()));
                rest = behind;
                let places = self.counts.iter_mut().skip(self.tables.first(a, b)?);
                places.zip(table).for_each(|(place, count)| *place += count);
            }
        }
        Ok(())
    }

    fn count(&mut self, first: usize, cells: impl Iterator<Item = usize>) {
        let Some(table) = self.counts.get_mut(first..) else {
            return;
        };
        for cell in cells {
            // `check` has compared every code with its attribute's size.
            if let Some(count) = table.get_mut(cell) {
                *count += 1;
            }
        }
    }

    /// Checks further records and returns the total number with them.
    fn check(&self, columns: &[&[u32]]) -> Result<u64, Error> {
        let domain = self.tables.domain();
        let rows = columns.first().map_or(0, |column| column.len());
        if columns.len() != domain.len() || columns.iter().any(|column| column.len() != rows) {
            return Err(Error::Table(
                "its columns are not those of the schema".to_owned(),
            ));
        }
        for (column, &size) in columns.iter().zip(domain.sizes()) {
            if column.iter().any(|&code| code as usize >= size) {
                return Err(Error::Table(
                    "a value is outside of the range of its column".to_owned(),
                ));
            }
        }
        let records = self.records.saturating_add(rows as u64);
        check_records(
            usize::try_from(records).unwrap_or(usize::MAX),
            self.record_bound,
        )?;
        Ok(records)
    }

    /// Returns the tables that are counted.
    pub fn tables(&self) -> &CountTables {
        &self.tables
    }

    /// Returns the number of counted records.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Returns the counts of one ciphertext, by place in it, or `None` beyond the last ciphertext.
    /// They are as secret as the records.
    pub fn counts(&self, number: usize) -> Option<&[i64]> {
        self.counts
            .chunks(self.tables.layout().stride())
            .nth(number)
    }

    /// Returns the table of a pair (a < b) or of a single attribute (a = b), in row-major order.
    pub fn table(&self, a: usize, b: usize) -> Option<&[i64]> {
        let domain = self.tables.domain();
        let first = self.tables.first(a, b).ok()?;
        let cells = if a == b {
            domain.size(a)
        } else {
            cells(domain, a, b)
        };
        self.counts.get(first..first + cells)
    }

    /// Returns the marginal of one attribute, computed from the smallest table that has the
    /// attribute.
    fn margin(&self, attribute: usize) -> Option<Vec<i64>> {
        let (size, partner) = (
            *self.tables.domain().sizes().get(attribute)?,
            self.tables.partner(attribute)?,
        );
        let (a, b) = (attribute.min(partner), attribute.max(partner));
        let table = self.table(a, b)?;
        if a == b {
            return Some(table.to_vec());
        }
        let row = self.tables.domain().size(b);
        let mut margin = vec![0; size];
        for (cell, count) in table.iter().enumerate() {
            let code = if attribute == a {
                cell / row
            } else {
                cell % row
            };
            *margin.get_mut(code)? += count;
        }
        Some(margin)
    }
}

impl Counted for PairCounts {
    fn domain(&self) -> &Domain {
        self.tables.domain()
    }

    fn records(&self) -> u64 {
        self.records
    }

    fn marginal(&self, clique: &Clique) -> Option<Vec<u64>> {
        let counts = match *clique.attributes() {
            [] => return Some(vec![self.records]),
            [a] => self.margin(a)?,
            [a, b] => self.table(a, b)?.to_vec(),
            _ => return None,
        };
        // Counts begin at zero and only grow.
        Some(counts.into_iter().map(i64::cast_unsigned).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};

    /// Columns with one, few and many values over several pieces, the last of which does not fill a
    /// whole word.
    #[test]
    fn every_cell_of_every_pair_is_counted() {
        let mut rng = rand_chacha::ChaCha20Rng::seed_from_u64(3);
        let domain = Domain::new(vec![4, 1, 65, 2, 66, 9, 200, 9]);
        let records = 2 * PIECE + 77;
        let mut column = |&size: &usize| {
            let code = |_| rng.random_range(0..size as u32);
            (0..records).map(code).collect::<Vec<u32>>()
        };
        let columns: Vec<Vec<u32>> = domain.sizes().iter().map(&mut column).collect();
        let tables = CountTables::new(&domain).unwrap();
        let mut pair_counts = PairCounts::new(tables, records as u64 + 1);
        // Two calls, the second with one record.
        let part = |range: std::ops::Range<usize>| {
            let of = columns.iter().map(|column| &column[range.clone()]);
            of.collect::<Vec<_>>()
        };
        pair_counts.add(&part(0..records - 1)).unwrap();
        pair_counts.add(&part(records - 1..records)).unwrap();
        for a in 0..domain.len() {
            for b in a + 1..domain.len() {
                let mut expected = vec![0; cells(&domain, a, b)];
                for (&x, &y) in columns[a].iter().zip(&columns[b]) {
                    expected[x as usize * domain.size(b) + y as usize] += 1;
                }
                assert_eq!(pair_counts.table(a, b).unwrap(), expected, "{a}, {b}");
            }
        }
    }
}

//! Counting records a few at a time: memory is that of the tables, whatever the number of records.

use super::{CountTables, cells, pairs};
use crate::Error;
use crate::holder::check_records;
use fhaim_domain::{Clique, Counted, Domain, Table};
use std::fmt;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Counts of all pairs so far: as secret as the records, and wiped from memory when it is dropped.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Tally {
    #[zeroize(skip)]
    tables: CountTables,
    record_bound: u64,
    records: u64,
    /// By place.
    counts: Vec<i64>,
}

impl fmt::Debug for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tally").finish_non_exhaustive()
    }
}

impl Tally {
    /// A tally of no record, of a dataset whose terms allow this holder `record_bound` of them.
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
    /// As [`Tally::add`].
    pub fn of_table(tables: CountTables, record_bound: u64, table: &Table) -> Result<Self, Error> {
        let mut tally = Self::new(tables, record_bound);
        tally.add(table.columns())?;
        Ok(tally)
    }

    /// Counts some records more, given as codes of each attribute by record.
    ///
    /// # Errors
    /// [`Error::Records`] where they are more than the bound; [`Error::Table`] for columns that are
    /// not the domain's, and for codes outside it. Nothing is counted then.
    pub fn add<C: AsRef<[u32]>>(&mut self, columns: &[C]) -> Result<(), Error> {
        let columns: Vec<&[u32]> = columns.iter().map(AsRef::as_ref).collect();
        let columns = columns.as_slice();
        let records = self.check(columns)?;
        let domain = self.tables.domain().clone();
        if let [only] = columns {
            let first = self.tables.first(0, 0)?;
            self.count(first, only.iter().map(|&x| x as usize));
        }
        for [a, b] in pairs(domain.len()) {
            let (first, row) = (self.tables.first(a, b)?, domain.size(b));
            if let (Some(x), Some(y)) = (columns.get(a), columns.get(b)) {
                let both = x.iter().zip(y.iter());
                self.count(first, both.map(|(&x, &y)| x as usize * row + y as usize));
            }
        }
        self.records = records;
        Ok(())
    }

    fn count(&mut self, first: usize, cells: impl Iterator<Item = usize>) {
        let Some(table) = self.counts.get_mut(first..) else {
            return;
        };
        for cell in cells {
            // Every code was held against its attribute.
            if let Some(count) = table.get_mut(cell) {
                *count += 1;
            }
        }
    }

    /// The number of records with these.
    fn check(&self, columns: &[&[u32]]) -> Result<u64, Error> {
        let domain = self.tables.domain();
        let rows = columns.first().map_or(0, |column| column.len());
        if columns.len() != domain.len() || columns.iter().any(|column| column.len() != rows) {
            return Err(Error::Table("its columns are not the schema's".to_owned()));
        }
        for (column, &size) in columns.iter().zip(domain.sizes()) {
            if column.iter().any(|&code| code as usize >= size) {
                return Err(Error::Table("a value is outside of its column".to_owned()));
            }
        }
        let records = self.records.saturating_add(rows as u64);
        check_records(
            usize::try_from(records).unwrap_or(usize::MAX),
            self.record_bound,
        )?;
        Ok(records)
    }

    /// Which tables these are.
    pub fn tables(&self) -> &CountTables {
        &self.tables
    }

    /// Records counted.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The counts of a ciphertext, by place in it; nothing beyond the last. They are as secret as the
    /// records.
    pub fn counts(&self, number: usize) -> Option<&[i64]> {
        self.counts
            .chunks(self.tables.layout().stride())
            .nth(number)
    }

    /// The table of a pair, a < b, or of a single attribute, a = b, in row-major order.
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

    /// The marginal of one attribute, off the smallest table that has it.
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

impl Counted for Tally {
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

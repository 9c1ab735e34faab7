//! A table of codes.

use std::sync::Arc;

use rand::{Rng, seq::SliceRandom};

use crate::{Clique, CodesProblem, Column, Domain, Schema};

/// Maximum number of cells of a marginal that [`Table::counts`] builds: a gigabyte of counts.
pub const MAX_COUNTED_CELLS: usize = 1 << 27;

/// Records as codes, one list per attribute. A table has at least one record, and every code is below its attribute's
/// size.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    schema: Arc<Schema>,
    records: usize,
    columns: Vec<Vec<u32>>,
}

/// Records whose marginals are available: a table, or the counts taken while one was read.
pub trait Counted {
    /// Number of values of each attribute.
    fn domain(&self) -> &Domain;

    /// Number of records.
    fn records(&self) -> u64;

    /// Returns the marginal over `clique`, row-major in its attributes, or `None` if it was not counted or is too
    /// large.
    fn marginal(&self, clique: &Clique) -> Option<Vec<u64>>;
}

impl Counted for Table {
    fn domain(&self) -> &Domain {
        self.domain()
    }

    fn records(&self) -> u64 {
        self.records as u64
    }

    fn marginal(&self, clique: &Clique) -> Option<Vec<u64>> {
        self.counts(clique).ok()
    }
}

impl Table {
    /// Builds a table from one list of codes per column of `schema`.
    ///
    /// # Errors
    /// The number of lists differs from the number of columns, the lists differ in length or are empty, or a code is
    /// outside its column's domain.
    pub fn new(
        schema: impl Into<Arc<Schema>>,
        columns: Vec<Vec<u32>>,
    ) -> Result<Self, CodesProblem> {
        let schema = schema.into();
        let expected = schema.columns().len();
        if columns.len() != expected {
            return Err(CodesProblem::Columns {
                found: columns.len(),
                expected,
            });
        }
        let records = columns.first().map_or(0, Vec::len);
        if records == 0 {
            return Err(CodesProblem::Empty);
        }
        for (codes, column) in columns.iter().zip(schema.columns()) {
            check_codes(codes, column, records)?;
        }
        Ok(Self {
            schema,
            records,
            columns,
        })
    }

    /// The schema that the codes belong to.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The schema, to share with another table.
    pub fn shared_schema(&self) -> Arc<Schema> {
        Arc::clone(&self.schema)
    }

    /// Number of values of each attribute.
    pub fn domain(&self) -> &Domain {
        self.schema.domain()
    }

    /// Number of records, at least 1.
    pub fn records(&self) -> usize {
        self.records
    }

    /// Codes of an attribute, by record.
    ///
    /// # Panics
    /// If there is no such attribute.
    pub fn column(&self, attribute: usize) -> &[u32] {
        &self.columns[attribute]
    }

    /// Codes of all attributes.
    pub fn columns(&self) -> &[Vec<u32>] {
        &self.columns
    }

    /// Returns the records at `rows` (counted from 0, in any order, repeats allowed) as a table.
    ///
    /// # Errors
    /// A row that the table does not have, or no rows.
    pub fn select(&self, rows: &[usize]) -> Result<Self, CodesProblem> {
        if let Some(&row) = rows.iter().find(|&&row| row >= self.records) {
            return Err(CodesProblem::Row {
                row,
                records: self.records,
            });
        }
        if rows.is_empty() {
            return Err(CodesProblem::Empty);
        }
        let columns = self
            .columns
            .iter()
            .map(|codes| rows.iter().map(|&row| codes[row]).collect())
            .collect();
        Ok(Self {
            schema: self.shared_schema(),
            records: rows.len(),
            columns,
        })
    }

    /// Splits the table at random into `first` records and all others. Rows keep their order.
    ///
    /// # Errors
    /// One of the two parts would be empty.
    pub fn split(
        &self,
        first: usize,
        rng: &mut (impl Rng + ?Sized),
    ) -> Result<(Self, Self), CodesProblem> {
        let mut rows: Vec<usize> = (0..self.records).collect();
        let (chosen, _) = rows.partial_shuffle(rng, first.min(self.records));
        let mut is_chosen = vec![false; self.records];
        for &mut row in chosen {
            is_chosen[row] = true;
        }
        let (one, two): (Vec<usize>, Vec<usize>) =
            (0..self.records).partition(|&row| is_chosen[row]);
        Ok((self.select(&one)?, self.select(&two)?))
    }

    /// Counts the marginal over `clique`: records per cell, row-major in the clique's attributes. Over no attributes,
    /// the result is the number of records.
    ///
    /// # Errors
    /// An attribute that the table does not have, or more than [`MAX_COUNTED_CELLS`] cells.
    pub fn counts(&self, clique: &Clique) -> Result<Vec<u64>, CodesProblem> {
        let attributes = self.columns.len();
        if let Some(&attribute) = clique.attributes().iter().find(|&&a| a >= attributes) {
            return Err(CodesProblem::Attribute {
                attribute,
                attributes,
            });
        }
        let cells = self
            .domain()
            .cells(clique)
            .filter(|&cells| cells <= MAX_COUNTED_CELLS)
            .ok_or_else(|| CodesProblem::Cells(clique.attributes().to_vec()))?;
        let mut cell_of = vec![0usize; self.records];
        for &attribute in clique.attributes() {
            let size = self.domain().size(attribute);
            for (cell, &code) in cell_of.iter_mut().zip(&self.columns[attribute]) {
                *cell = *cell * size + code as usize;
            }
        }
        let mut counts = vec![0u64; cells];
        for cell in cell_of {
            counts[cell] += 1;
        }
        Ok(counts)
    }
}

fn check_codes(codes: &[u32], column: &Column, records: usize) -> Result<(), CodesProblem> {
    let name = || column.name().to_owned();
    if codes.len() != records {
        return Err(CodesProblem::Length {
            column: name(),
            found: codes.len(),
            expected: records,
        });
    }
    let size = column.size();
    match codes.iter().position(|&code| code as usize >= size) {
        None => Ok(()),
        Some(row) => Err(CodesProblem::Code {
            row: row + 1,
            column: name(),
            code: codes[row],
            size,
        }),
    }
}

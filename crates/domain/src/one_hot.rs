//! Conversion between tables and 0/1 columns, one for each value of each attribute.
//!
//! One-hot column c belongs to attribute a and category v if c equals v plus the sizes of the
//! attributes before a.

use std::{ops::Range, sync::Arc};

use crate::{CodesProblem, Domain, Schema, Table};

impl Domain {
    /// Returns the index of each attribute's first one-hot column, followed by [`Domain::columns`].
    pub fn one_hot_offsets(&self) -> Vec<usize> {
        let mut offsets = Vec::with_capacity(self.len() + 1);
        let mut offset = 0;
        offsets.push(offset);
        for &size in self.sizes() {
            offset += size;
            offsets.push(offset);
        }
        offsets
    }

    /// Returns the attribute and category of one-hot column `column`, or `None` past the last
    /// column.
    pub fn one_hot_position(&self, column: usize) -> Option<(usize, u32)> {
        let mut category = column;
        for (attribute, &size) in self.sizes().iter().enumerate() {
            if category < size {
                return Some((attribute, category as u32));
            }
            category -= size;
        }
        None
    }
}

impl Table {
    /// Returns the one-hot column of `category` of `attribute` for a range of records: 1 for a
    /// record of the category, otherwise 0.
    ///
    /// # Errors
    /// An attribute, category or record that the table does not have.
    pub fn indicator(
        &self,
        attribute: usize,
        category: u32,
        records: Range<usize>,
    ) -> Result<impl ExactSizeIterator<Item = u64> + '_, CodesProblem> {
        let attributes = self.domain().len();
        let column = self
            .schema()
            .columns()
            .get(attribute)
            .ok_or(CodesProblem::Attribute {
                attribute,
                attributes,
            })?;
        let size = column.size();
        if category as usize >= size {
            let (row, column) = (records.start + 1, column.name().to_owned());
            return Err(CodesProblem::Code {
                row,
                column,
                code: category,
                size,
            });
        }
        let end = records.end;
        let codes = self
            .column(attribute)
            .get(records)
            .ok_or(CodesProblem::Row {
                row: end,
                records: self.records(),
            })?;
        Ok(codes.iter().map(move |&code| u64::from(code == category)))
    }

    /// Builds a table from all its one-hot columns, in the order of [`Domain::one_hot_position`].
    ///
    /// # Errors
    /// A number of columns that differs from the domain's, columns of different lengths, no
    /// records, or a record whose values for an attribute are not a single 1 among 0s.
    pub fn from_one_hot(
        schema: impl Into<Arc<Schema>>,
        columns: &[Vec<u64>],
    ) -> Result<Self, CodesProblem> {
        let schema = schema.into();
        let expected = schema.domain().columns();
        if columns.len() != expected {
            return Err(CodesProblem::Columns {
                found: columns.len(),
                expected,
            });
        }
        let records = columns.first().map_or(0, Vec::len);
        let offsets = schema.domain().one_hot_offsets();
        let mut coded = Vec::with_capacity(schema.columns().len());
        for (window, column) in offsets.windows(2).zip(schema.columns()) {
            let group = &columns[window[0]..window[1]];
            coded.push(group_codes(group, column.name(), records)?);
        }
        Self::new(schema, coded)
    }
}

/// Returns the codes of one attribute from its one-hot columns.
fn group_codes(group: &[Vec<u64>], name: &str, records: usize) -> Result<Vec<u32>, CodesProblem> {
    let refuse = |row: usize| CodesProblem::OneHot {
        row: row + 1,
        column: name.to_owned(),
    };
    let mut codes: Vec<Option<u32>> = vec![None; records];
    for (category, values) in (0u32..).zip(group) {
        if values.len() != records {
            let (found, expected) = (values.len(), records);
            return Err(CodesProblem::Length {
                column: name.to_owned(),
                found,
                expected,
            });
        }
        for (row, (&value, code)) in values.iter().zip(&mut codes).enumerate() {
            match value {
                0 => {}
                1 if code.is_none() => *code = Some(category),
                _ => return Err(refuse(row)),
            }
        }
    }
    codes
        .into_iter()
        .enumerate()
        .map(|(row, code)| code.ok_or_else(|| refuse(row)))
        .collect()
}

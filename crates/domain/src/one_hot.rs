//! Tables as 0/1 columns, one per value of each attribute, and back.
//!
//! One-hot column c of a domain belongs to attribute a and category v where c is v plus the
//! sizes of the attributes before a.

use std::{ops::Range, sync::Arc};

use crate::{CodesProblem, Domain, Schema, Table};

impl Domain {
    /// Index of the first one-hot column of each attribute, and [`Domain::columns`] at the end.
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

    /// Attribute and category of one-hot column `column`, or `None` past the last.
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
    /// One-hot column of `category` of `attribute` over a range of records: 1 where the record
    /// has the category, else 0.
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

    /// A table from all its one-hot columns, in the order of [`Domain::one_hot_position`].
    ///
    /// # Errors
    /// Not as many columns as the domain has, columns of different lengths or empty, or a record
    /// that does not have exactly one 1, among 0s, for an attribute.
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

/// The codes of one attribute from its one-hot columns.
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

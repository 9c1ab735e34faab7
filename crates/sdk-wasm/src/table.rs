//! Data of tables that the page shows.

use fhaim_domain::{Schema, Table, TableReading};
use fhaim_he::Layout;
use serde::Serialize;

/// Returns the meaning of each code, by attribute.
pub(crate) fn labels(schema: &Schema) -> Vec<Vec<String>> {
    let columns = schema.columns().iter();
    let label = |column: &fhaim_domain::Column| {
        let codes = 0..u32::try_from(column.size()).unwrap_or(u32::MAX);
        codes.map(|code| column.label(code)).collect()
    };
    columns.map(label).collect()
}

/// A table that was read. Its counts are of the private records: they must not leave the page.
#[derive(Debug, Serialize)]
pub(crate) struct ReadTable {
    records: usize,
    /// Number of records that the upload has room for. The size of the upload reveals it.
    record_bound: usize,
    left_out: Vec<String>,
    /// One entry per attribute.
    columns: Vec<ReadColumn>,
}

/// An attribute of a table that was read.
#[derive(Debug, Serialize)]
struct ReadColumn {
    name: String,
    /// Whether its codes are parts of a coarser attribute's values.
    digit: bool,
    labels: Vec<String>,
    counts: Vec<u64>,
    clamped: u64,
    other: u64,
    invalid: u64,
    missing: u64,
}

impl ReadTable {
    pub(crate) fn of(reading: &TableReading) -> Self {
        let table = &reading.table;
        let columns = table.schema().columns().iter().zip(labels(table.schema()));
        let column = |(attribute, (column, labels)): (usize, (&fhaim_domain::Column, _))| {
            let adjusted = reading.adjusted.get(attribute).cloned().unwrap_or_default();
            ReadColumn {
                name: column.name().to_owned(),
                digit: table.domain().is_digit(attribute),
                labels,
                counts: one_way(table, attribute),
                clamped: adjusted.clamped,
                other: adjusted.other,
                invalid: adjusted.invalid,
                missing: adjusted.missing,
            }
        };
        Self {
            records: table.records(),
            // A table has at least one record, so it has a layout.
            record_bound: Layout::for_records(table.records()).map_or(0, |l| l.max_records()),
            left_out: reading.left_out.clone(),
            columns: columns.enumerate().map(column).collect(),
        }
    }
}

fn one_way(table: &Table, attribute: usize) -> Vec<u64> {
    let mut counts = vec![0; table.domain().size(attribute)];
    for &code in table.column(attribute) {
        // A table's codes are checked against its domain when it is created.
        if let Some(count) = counts.get_mut(code as usize) {
            *count += 1;
        }
    }
    counts
}

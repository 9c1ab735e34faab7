//! What the page shows of schemas and tables.

use fhaim_domain::{Clique, Draft, Reading, Schema, SchemaCost, Table, check_schema};
use fhaim_he::Layout;
use serde::Serialize;

/// A draft of a schema.
#[derive(Debug, Serialize)]
pub(crate) struct Drafted {
    schema: Schema,
    statement: &'static str,
    notes: Vec<Remark>,
}

/// Something to look at in a draft.
#[derive(Debug, Serialize)]
struct Remark {
    column: String,
    text: String,
}

impl From<Draft> for Drafted {
    fn from(draft: Draft) -> Self {
        let statement = draft.statement();
        let remark = |note: fhaim_domain::Note| Remark {
            column: note.column,
            text: note.text,
        };
        Self {
            schema: draft.schema,
            statement,
            notes: draft.notes.into_iter().map(remark).collect(),
        }
    }
}

/// What a schema costs, and its labels.
#[derive(Debug, Serialize)]
pub(crate) struct Checked {
    cost: SchemaCost,
    /// By column, what each code stands for.
    labels: Vec<Vec<String>>,
}

impl Checked {
    pub(crate) fn of(schema: &Schema) -> Self {
        Self {
            cost: check_schema(schema, None),
            labels: labels(schema),
        }
    }
}

fn labels(schema: &Schema) -> Vec<Vec<String>> {
    let columns = schema.columns().iter();
    let label = |column: &fhaim_domain::Column| {
        let codes = 0..u32::try_from(column.size()).unwrap_or(u32::MAX);
        codes.map(|code| column.label(code)).collect()
    };
    columns.map(label).collect()
}

/// A table that was read. Counts are of the private records: for the page alone.
#[derive(Debug, Serialize)]
pub(crate) struct ReadTable {
    records: usize,
    /// Records that the upload has room for, which its size shows.
    record_bound: usize,
    left_out: Vec<String>,
    columns: Vec<ReadColumn>,
}

/// A column of a table that was read.
#[derive(Debug, Serialize)]
struct ReadColumn {
    name: String,
    labels: Vec<String>,
    counts: Vec<u64>,
    clamped: u64,
    other: u64,
    missing: u64,
}

impl ReadTable {
    pub(crate) fn of(reading: &Reading) -> Self {
        let table = &reading.table;
        let columns = table.schema().columns().iter().zip(labels(table.schema()));
        let column = |(attribute, (column, labels)): (usize, (&fhaim_domain::Column, _))| {
            let adjusted = reading.adjusted.get(attribute).cloned().unwrap_or_default();
            ReadColumn {
                name: column.name().to_owned(),
                labels,
                counts: one_way(table, attribute),
                clamped: adjusted.clamped,
                other: adjusted.other,
                missing: adjusted.missing,
            }
        };
        Self {
            records: table.records(),
            // A table has a record, so it has a layout.
            record_bound: Layout::for_records(table.records()).map_or(0, |l| l.max_records()),
            left_out: reading.left_out.clone(),
            columns: columns.enumerate().map(column).collect(),
        }
    }
}

fn one_way(table: &Table, attribute: usize) -> Vec<u64> {
    let mut counts = vec![0; table.domain().size(attribute)];
    for &code in table.column(attribute) {
        counts[code as usize] += 1;
    }
    counts
}

/// How close a synthetic table is to the real one: statistics of the private records, for the
/// page alone.
#[derive(Debug, Serialize)]
pub(crate) struct Comparison {
    real_records: usize,
    synthetic_records: usize,
    columns: Vec<ComparedColumn>,
    /// Total variation distance of every pair of columns, symmetric; the diagonal has the
    /// columns' own.
    pairs: Vec<Vec<f64>>,
}

/// One column of both tables.
#[derive(Debug, Serialize)]
struct ComparedColumn {
    name: String,
    labels: Vec<String>,
    real: Vec<f64>,
    synthetic: Vec<f64>,
}

impl Comparison {
    /// # Errors
    /// A pair of columns with too many cells to count.
    pub(crate) fn of(real: &Table, synthetic: &Table) -> Result<Self, fhaim_domain::CodesProblem> {
        let attributes = real.domain().len();
        let distance = |a: usize, b: usize| {
            let clique = Clique::new([a, b]);
            let real = shares(&real.counts(&clique)?);
            Ok(total_variation(&real, &shares(&synthetic.counts(&clique)?)))
        };
        let from = |a| (a..attributes).map(|b| distance(a, b)).collect();
        let upper: Vec<Vec<f64>> = (0..attributes).map(from).collect::<Result<_, _>>()?;
        let pair = |a: usize, b: usize| upper[a.min(b)][a.abs_diff(b)];
        let row = |a| (0..attributes).map(|b| pair(a, b)).collect();
        let pairs = (0..attributes).map(row).collect();
        let columns = real.schema().columns().iter().zip(labels(real.schema()));
        let column =
            |(attribute, (column, labels)): (usize, (&fhaim_domain::Column, _))| ComparedColumn {
                name: column.name().to_owned(),
                labels,
                real: shares(&one_way(real, attribute)),
                synthetic: shares(&one_way(synthetic, attribute)),
            };
        Ok(Self {
            real_records: real.records(),
            synthetic_records: synthetic.records(),
            columns: columns.enumerate().map(column).collect(),
            pairs,
        })
    }
}

fn shares(counts: &[u64]) -> Vec<f64> {
    let total = counts.iter().sum::<u64>().max(1) as f64;
    counts.iter().map(|&count| count as f64 / total).collect()
}

/// Half the L1 distance of two distributions.
fn total_variation(one: &[f64], two: &[f64]) -> f64 {
    one.iter().zip(two).map(|(a, b)| (a - b).abs()).sum::<f64>() / 2.0
}

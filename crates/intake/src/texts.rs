//! Counts of the texts in each column: the input of a private draft.

use std::{collections::BTreeMap, io::Read};

use fhaim_domain::{Dialect, Error, HeaderProblem, MAX_COLUMNS, TableRecords, is_missing};

/// How often each text of a column occurs. Private: this is the column itself, except for the order
/// of its records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextCounts {
    /// The column's name.
    pub name: String,
    /// Number of records with each text.
    pub texts: BTreeMap<String, u64>,
    /// Number of records without a value.
    pub missing: u64,
}

impl TextCounts {
    /// Returns the number of records.
    pub fn records(&self) -> u64 {
        self.missing + self.texts.values().sum::<u64>()
    }
}

/// Counts the texts of all columns except `leave_out`.
///
/// # Errors
/// A broken CSV file, as in [`fhaim_domain::read_csv`]; a name in `leave_out` that the table does not
/// have; no column left, or more than [`MAX_COLUMNS`].
pub fn count_texts(
    input: impl Read,
    file: &str,
    dialect: &Dialect,
    missing: &[String],
    leave_out: &[String],
) -> Result<Vec<TextCounts>, Error> {
    let mut records = TableRecords::open(file, dialect, input)?;
    let header = records.header();
    let absent = |name: &&String| !header.contains(name);
    Error::no_such_columns(file, leave_out.iter().filter(absent))?;
    let kept = header.iter().enumerate();
    let kept = kept.filter(|(_, name)| !leave_out.contains(name));
    let (places, mut columns): (Vec<usize>, Vec<TextCounts>) = kept
        .map(|(place, name)| {
            let name = name.clone();
            (
                place,
                TextCounts {
                    name,
                    ..TextCounts::default()
                },
            )
        })
        .unzip();
    if !(1..=MAX_COLUMNS).contains(&columns.len()) {
        return Err(records.refuse_header(HeaderProblem::Columns {
            found: columns.len(),
            limit: MAX_COLUMNS,
        }));
    }
    while records.advance()? {
        for (&place, column) in places.iter().zip(&mut columns) {
            let text = records
                .text(place)
                .map_err(|problem| records.refuse(place, problem))?;
            if is_missing(text, missing) {
                column.missing += 1;
            } else if let Some(count) = column.texts.get_mut(text) {
                *count += 1;
            } else {
                column.texts.insert(text.to_owned(), 1);
            }
        }
    }
    Ok(columns)
}

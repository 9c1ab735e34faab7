//! A table as counts of its columns' texts: what a private draft looks at.

use std::{collections::BTreeMap, io::Read};

use crate::{Error, HeaderProblem, MAX_COLUMNS, options::is_missing, records::Records};

/// How often each text of a column occurs. Private: the column itself, but for its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextCounts {
    /// The column's name.
    pub name: String,
    /// Records with each text.
    pub texts: BTreeMap<String, u64>,
    /// Records without a value.
    pub missing: u64,
}

impl TextCounts {
    /// Records in all.
    pub fn records(&self) -> u64 {
        self.missing + self.texts.values().sum::<u64>()
    }
}

/// Counts the texts of all columns but those left out.
///
/// # Errors
/// A broken CSV file, as in [`crate::read_csv`]; no column, or one to leave out that is not there.
pub fn count_texts(
    input: impl Read,
    file: &str,
    delimiter: u8,
    missing: &[String],
    leave_out: &[String],
) -> Result<Vec<TextCounts>, Error> {
    let mut records = Records::open(file, delimiter, input)?;
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

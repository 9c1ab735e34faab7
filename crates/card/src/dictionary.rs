//! The data dictionary: one line for each column, as CSV.

use crate::{Card, Error, columns::type_words, numbers::plus_minus};

const HEADER: [&str; 9] = [
    "column",
    "kind",
    "type",
    "form",
    "unit",
    "values",
    "precision",
    "missing",
    "noise",
];

impl Card {
    /// Returns the data dictionary as CSV, with one line for each column of the schema.
    ///
    /// The columns are the name, the kind in the schema, the type, the form, the unit, the values (all that are listed,
    /// or the limits), the precision, the text of a missing value (`no` for a column without missing values) and the
    /// noise of released counts.
    ///
    /// # Errors
    /// [`Error::Csv`] if the memory is exhausted.
    pub fn dictionary(&self) -> Result<String, Error> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(HEADER)?;
        for column in &self.columns {
            let missing = match &column.missing {
                None => "no".to_owned(),
                Some(text) if text.is_empty() => "empty field".to_owned(),
                Some(text) => format!("written as {text}"),
            };
            writer.write_record([
                column.name.as_str(),
                column.kind.word(),
                column.output.map_or("", type_words),
                &column.form,
                column.unit.as_deref().unwrap_or_default(),
                &column.values_text(usize::MAX),
                &column.precision,
                &missing,
                &column.noise.map(plus_minus).unwrap_or_default(),
            ])?;
        }
        let bytes = writer
            .into_inner()
            .map_err(|error| csv::Error::from(error.into_error()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

//! Values that share their codes with no other value, so that a rule about codes is a rule about the values.

use crate::{Column, Field, Kind, Schema, field::Meaning, ordered::Ordered};

impl Schema {
    /// Returns the attributes and codes of a value that shares them with no other value, with the code of the field's
    /// first attribute first. The value is one of the table, or empty for a missing value. It may also be the label of
    /// a bin or a chapter, which stands for all values in it.
    ///
    /// # Errors
    /// The field has no such value, or other values have the same codes.
    pub(crate) fn own_codes_of(
        &self,
        field: &Field,
        text: &str,
    ) -> Result<Vec<(usize, u32)>, &'static str> {
        if field.attributes.is_empty() {
            return Err("identifiers and left-out columns have no values that a rule can name");
        }
        if text.is_empty() && !field.nullable {
            return Err("a column has missing values only if it is `nullable`");
        }
        let codes = self.codes_of(field, text);
        let mut codes = codes.ok_or("a column has no such value")?;
        let &(first, code) = codes.first().ok_or("a column has no such value")?;
        let column = self.columns().get(first);
        let is_label = codes.len() == 1 && column.is_some_and(|column| column.label(code) == text);
        if text.is_empty() || is_label {
            return Ok(codes);
        }
        if is_word(field, text) {
            // With a word, no time of day and no offset has a meaning.
            codes.truncate(1);
            return Ok(codes);
        }
        let part = codes.get(1).map(|&(_, part)| part);
        match column.is_some_and(|column| is_sole(field, column, (code, part))) {
            true => Ok(codes),
            false => Err(
                "a value has the same codes as others: name the label of its bin, or give the column more \
                 `bins` or `digits`",
            ),
        }
    }
}

/// Returns whether a text is a word in a field of dates, datetimes, times of day or durations.
fn is_word(field: &Field, text: &str) -> bool {
    let words = match &field.meaning {
        Meaning::Time(time) => &time.dated.words,
        Meaning::Lapse(lapse) => &lapse.dated.words,
        Meaning::Steps(steps) => &steps.words,
        _ => return false,
    };
    words.find(text).is_some()
}

/// Returns whether the codes of a field's first part, and of its digit, stand for a single value.
fn is_sole(field: &Field, column: &Column, (code, part): (u32, Option<u32>)) -> bool {
    let is_step = |steps: &Ordered| {
        let (first, last) = steps.span(code, part);
        first == last
    };
    // The time of day and the offset are kept only in part.
    let is_day_only = field.parts.len() == 1;
    match &field.meaning {
        Meaning::Plain => match column.kind() {
            Kind::Categorical { .. } => true,
            Kind::Numeric(binning) => {
                let (first, last) = binning.numbers(code);
                binning.integer() && first == last
            }
            Kind::Part { .. } => false,
        },
        Meaning::Number(number) => {
            let span = number.values.span(code, part);
            span.is_none_or(|(first, last)| first == last)
        }
        Meaning::Time(time) => is_day_only && is_step(&time.days),
        Meaning::Lapse(lapse) => is_day_only && is_step(&lapse.units),
        Meaning::Steps(steps) => is_step(&steps.steps),
        Meaning::Code(_) => true,
        Meaning::Identifier(_) | Meaning::Derived(_) | Meaning::LeftOut => false,
    }
}

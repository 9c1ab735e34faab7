//! Derived columns: their values follow from another column of the same record.

use std::collections::HashSet;

use crate::{
    Column, ColumnProblem, Field, Kind, SchemaProblem, Value,
    field::{Derived, Meaning},
    names::{cut, is_text},
};

/// A derived field and the field that it follows from, by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Derivation {
    pub(crate) field: usize,
    pub(crate) from: usize,
    /// Indices of their values among those of the written fields.
    pub(crate) place: usize,
    pub(crate) from_place: usize,
}

/// Finds the field that each derived field follows from.
///
/// # Errors
/// [`SchemaProblem::Column`] for a derived field that does not fit the other one.
pub(crate) fn resolve(
    fields: &[Field],
    columns: &[Column],
) -> Result<Vec<Derivation>, SchemaProblem> {
    let place = |index: usize| {
        let before = fields.iter().take(index);
        before.filter(|field| field.is_written()).count()
    };
    let mut all = Vec::new();
    for (index, field) in fields.iter().enumerate() {
        let Meaning::Derived(derived) = &field.meaning else {
            continue;
        };
        let from = check(field, derived, fields, columns);
        let from = from.map_err(|problem| SchemaProblem::Column {
            column: field.name.clone(),
            problem,
        })?;
        all.push(Derivation {
            field: index,
            from,
            place: place(index),
            from_place: place(from),
        });
    }
    Ok(all)
}

/// Gives each derived field that repeats another one the texts that stand for a missing value there.
pub(crate) fn copy_missing_texts(fields: &mut [Field], derivations: &[Derivation]) {
    for derivation in derivations {
        let texts = fields.get(derivation.from).map(|from| from.missing.clone());
        if let (Some(texts), Some(field)) = (texts, fields.get_mut(derivation.field))
            && let Meaning::Derived(Derived { values: None, .. }) = &field.meaning
        {
            field.missing = texts;
        }
    }
}

/// Checks a derived field, and returns the index of the field that it follows from.
fn check(
    field: &Field,
    derived: &Derived,
    fields: &[Field],
    columns: &[Column],
) -> Result<usize, ColumnProblem> {
    let from = fields.iter().position(|other| other.name == derived.from);
    let from = from.and_then(|from| Some((from, fields.get(from)?)));
    let is_suitable = |other: &Field| {
        let is_derived = matches!(other.meaning, Meaning::Derived(_));
        other.is_written() && !is_derived
    };
    let (from, other) = from
        .filter(|(_, other)| is_suitable(other))
        .ok_or_else(|| ColumnProblem::From(cut(&derived.from)))?;
    check_values(derived, other, columns)?;
    let may_be_missing = match &derived.values {
        None => other.nullable,
        Some(values) => {
            let is_open = other.nullable && !values.contains_key("");
            is_open || values.values().any(String::is_empty)
        }
    };
    match may_be_missing && !field.nullable {
        true => Err(ColumnProblem::DerivedMissing(cut(&derived.from))),
        false => Ok(from),
    }
}

/// Checks that `values` has a text for each value of the other field, and for no other value.
fn check_values(derived: &Derived, other: &Field, columns: &[Column]) -> Result<(), ColumnProblem> {
    let Some(values) = &derived.values else {
        return Ok(());
    };
    let listed = listed(other, columns);
    let listed = listed.ok_or_else(|| ColumnProblem::ValuesOf(cut(&derived.from)))?;
    let of = |value: &str| (cut(value), cut(&derived.from));
    if let Some(value) = listed.iter().find(|&&value| !values.contains_key(value)) {
        let (value, from) = of(value);
        return Err(ColumnProblem::NoDerivedValue { value, from });
    }
    let listed: HashSet<&str> = listed.into_iter().collect();
    for (value, text) in values {
        let is_known = match value.is_empty() {
            true => other.nullable,
            false => listed.contains(value.as_str()),
        };
        if !is_known {
            let (value, from) = of(value);
            return Err(ColumnProblem::ValuesKey { value, from });
        }
        if !is_text(text) {
            return Err(ColumnProblem::DerivedText(cut(text)));
        }
    }
    Ok(())
}

/// Returns the values of a field of categories or codes, or `None` for any other field.
fn listed<'a>(field: &'a Field, columns: &'a [Column]) -> Option<Vec<&'a str>> {
    if let Meaning::Code(book) = &field.meaning {
        let codes = book.chapters().iter().flat_map(|chapter| &chapter.codes);
        return Some(codes.map(String::as_str).collect());
    }
    match columns.get(field.parts.first()?.coarse)?.kind() {
        Kind::Categorical { categories, .. } => {
            Some(categories.iter().map(String::as_str).collect())
        }
        Kind::Numeric(_) | Kind::Part { .. } => None,
    }
}

impl Derived {
    /// Returns the value that follows from the other field's value.
    pub(crate) fn value<'a>(&'a self, other: Value<'a>) -> Value<'a> {
        let Some(values) = &self.values else {
            return other;
        };
        let key = match other {
            Value::Category(text) => text,
            _ => "",
        };
        match values.get(key).filter(|text| !text.is_empty()) {
            Some(text) => Value::Category(text),
            None => Value::Null,
        }
    }

    /// Describes the rule for the field `name`.
    pub(crate) fn text(&self, name: &str) -> String {
        match self.values {
            None => format!("{name:?} equals {:?}", self.from),
            Some(_) => format!("{name:?} follows from {:?}", self.from),
        }
    }
}

impl Field {
    /// Name of the column that a derived column follows from; `None` for any other column.
    pub fn derived_from(&self) -> Option<&str> {
        match &self.meaning {
            Meaning::Derived(derived) => Some(&derived.from),
            _ => None,
        }
    }
}

//! Derived columns: their values follow from another column of the same record.

use std::collections::HashSet;

use crate::{
    Column, ColumnProblem, Field, Kind, Schema, SchemaProblem, Value,
    field::{Derived, Meaning},
    names::{cut, is_text},
    options::is_missing,
};

/// A derived field and the field that it follows from, by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Derivation {
    pub(crate) field: usize,
    pub(crate) from: usize,
    /// Indices of their values among those of the written fields.
    place: usize,
    from_place: usize,
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
    fn value<'a>(&'a self, other: Value<'a>) -> Value<'a> {
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
    fn text(&self, name: &str) -> String {
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

impl Schema {
    /// Returns the field that defines the form and the type of a field's values: the other one for a derived field
    /// that repeats its values, and otherwise the field itself.
    pub fn value_field<'a>(&'a self, field: &'a Field) -> &'a Field {
        let is_copy = match &field.meaning {
            Meaning::Derived(derived) => derived.values.is_none(),
            _ => false,
        };
        let from = field.derived_from().filter(|_| is_copy);
        let from = from.and_then(|from| self.fields().iter().find(|other| other.name() == from));
        from.unwrap_or(field)
    }

    /// Returns all rules of the schema, in words: its constraints, and one rule for each derived column. Numbers of
    /// records that break a rule are in this order ([`crate::TableReading::broken`]).
    pub fn rule_texts(&self) -> Vec<String> {
        let rules = self.constraints.len() + self.derivations.len();
        (0..rules).map(|rule| self.rule_text(rule)).collect()
    }

    /// Returns a rule of [`Schema::rule_texts`].
    pub(crate) fn rule_text(&self, rule: usize) -> String {
        if let Some(constraint) = self.constraints.get(rule) {
            return constraint.to_string();
        }
        let derivation = rule.checked_sub(self.constraints.len());
        let derivation = derivation.and_then(|index| self.derivations.get(index));
        let field = derivation.and_then(|derivation| self.fields.get(derivation.field));
        let text = field.and_then(|field| match &field.meaning {
            Meaning::Derived(derived) => Some(derived.text(&field.name)),
            _ => None,
        });
        text.unwrap_or_default()
    }

    /// Sets the values of derived fields, given those of all other written fields.
    pub(crate) fn derive<'a>(&'a self, values: &mut [Value<'a>]) {
        for derivation in &self.derivations {
            let Some(Meaning::Derived(derived)) = self
                .fields
                .get(derivation.field)
                .map(|field| &field.meaning)
            else {
                continue;
            };
            let other = values.get(derivation.from_place).copied();
            if let (Some(other), Some(value)) = (other, values.get_mut(derivation.place)) {
                *value = derived.value(other);
            }
        }
    }
}

/// A derived column of a table that is read.
pub(crate) struct DerivedColumn<'a> {
    schema: &'a Schema,
    field: &'a Field,
    derived: &'a Derived,
    /// The other column.
    other: &'a Field,
    /// Indices of the two columns in the file.
    place: usize,
    other_place: usize,
    /// Texts that stand for a missing value in every column of the file.
    missing: &'a [String],
}

impl<'a> DerivedColumn<'a> {
    /// Returns the derived columns of a schema, in order. `places` has the index of each field in the file.
    pub(crate) fn all(
        schema: &'a Schema,
        places: &[Option<usize>],
        missing: &'a [String],
    ) -> Vec<Self> {
        let column = |derivation: &Derivation| {
            let field = schema.fields.get(derivation.field)?;
            let Meaning::Derived(derived) = &field.meaning else {
                return None;
            };
            Some(Self {
                schema,
                field,
                derived,
                other: schema.fields.get(derivation.from)?,
                place: places.get(derivation.field).copied().flatten()?,
                other_place: places.get(derivation.from).copied().flatten()?,
                missing,
            })
        };
        schema.derivations.iter().filter_map(column).collect()
    }

    /// Returns whether a record's value follows from the other column. `bytes` returns the cells of the record, and
    /// `code` its codes.
    ///
    /// A value of the other column that is not listed, so that it is read as `other` or as missing, has no text in
    /// `values`. Then every value is accepted.
    pub(crate) fn holds<'r>(
        &self,
        bytes: impl Fn(usize) -> &'r [u8],
        code: &dyn Fn(usize) -> u32,
    ) -> bool {
        let (cell, other) = (bytes(self.place), bytes(self.other_place));
        let is_missing = || self.is_missing(self.field, cell);
        let Some(values) = &self.derived.values else {
            let is_other_missing =
                || self.other_lacks_code(code) || self.is_missing(self.other, other);
            return cell == other || (is_missing() && is_other_missing());
        };
        let listed = self.listed_text(code);
        let is_listed = match listed {
            Some(text) => text.as_bytes() == other,
            None => self.is_missing(self.other, other),
        };
        let text = values.get(listed.unwrap_or_default());
        match text.filter(|text| !text.is_empty()) {
            _ if !is_listed => true,
            Some(text) => text.as_bytes() == cell,
            None => is_missing(),
        }
    }

    /// Returns whether a cell stands for a missing value in a field.
    fn is_missing(&self, field: &Field, cell: &[u8]) -> bool {
        let text = std::str::from_utf8(cell).ok();
        text.is_some_and(|text| {
            let is_marker = field.is_missing(text) || is_missing(text, self.missing);
            // A copy has the values of the other column.
            let is_copy = self.derived.values.is_none();
            let form = if is_copy { self.other } else { field };
            is_marker && !self.schema.has_value(form, text)
        })
    }

    /// Returns whether the other field was read as missing.
    fn other_lacks_code(&self, code: &dyn Fn(usize) -> u32) -> bool {
        let coarse = self.other.parts.first().map(|part| part.coarse);
        let null = coarse.and_then(|coarse| self.schema.columns().get(coarse)?.null_code());
        null.is_some() && null == coarse.map(code)
    }

    /// Returns the category or code that the other field was read as, or `None` if it is missing.
    fn listed_text(&self, code: &dyn Fn(usize) -> u32) -> Option<&'a str> {
        let part = self.other.parts.first()?;
        let column = self.schema.columns().get(part.coarse)?;
        let coarse = code(part.coarse);
        match (&self.other.meaning, column.kind()) {
            (Meaning::Code(book), _) => book.code(coarse, part.fine.map_or(0, code)),
            (_, Kind::Categorical { categories, .. }) => {
                categories.get(coarse as usize).map(String::as_str)
            }
            _ => None,
        }
    }
}

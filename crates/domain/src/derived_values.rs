//! Values of derived columns, in records that are drawn and in tables that are read.

use crate::{
    Field, Kind, Schema, Value,
    derived::Derivation,
    field::{Derived, Meaning},
    options::is_missing,
};

/// A rule that every record satisfies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaRule {
    /// The rule, in words.
    pub text: String,
    /// Names of the columns that it is about.
    pub columns: Vec<String>,
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

    /// Returns all rules of the schema: its constraints, and one rule for each derived column. Numbers of records that
    /// break a rule are in this order ([`crate::TableReading::broken`]).
    pub fn rules(&self) -> Vec<SchemaRule> {
        let rules = self.constraints.len() + self.derivations.len();
        (0..rules).filter_map(|index| self.rule(index)).collect()
    }

    /// Returns a rule of [`Schema::rules`].
    pub(crate) fn rule(&self, index: usize) -> Option<SchemaRule> {
        if let Some(constraint) = self.constraints.get(index) {
            return Some(SchemaRule {
                text: constraint.to_string(),
                columns: constraint
                    .columns()
                    .into_iter()
                    .map(str::to_owned)
                    .collect(),
            });
        }
        let derivation = self
            .derivations
            .get(index.checked_sub(self.constraints.len())?)?;
        let field = self.fields.get(derivation.field)?;
        let Meaning::Derived(derived) = &field.meaning else {
            return None;
        };
        Some(SchemaRule {
            text: derived.text(&field.name),
            columns: vec![field.name.clone(), derived.from.clone()],
        })
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

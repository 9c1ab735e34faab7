//! Rules such as "no cigarettes without smoking", resolved to codes.

use std::collections::{BTreeMap, BTreeSet};

use super::Implies;
use crate::Field;

/// Returns the attributes and codes that only this value of a field has, or the reason for a refusal.
pub(crate) type OwnCodesOf<'a> =
    dyn Fn(&Field, &str) -> Result<Vec<(usize, u32)>, &'static str> + 'a;

/// Records that have a listed value in each field of the first list have one in each field of the second.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Implication {
    when: Vec<Listed>,
    then: Vec<Listed>,
}

/// The codes of the values that a rule lists for a field.
#[derive(Clone, Debug, PartialEq)]
struct Listed {
    /// The field's first attribute.
    attribute: usize,
    /// For each code of the attribute, codes of the field's other attributes. A record has a listed value if it has all
    /// codes of an entry, which may be none.
    codes: BTreeMap<u32, Vec<Vec<(usize, u32)>>>,
}

impl Listed {
    /// Returns whether a record has one of the values.
    fn has(&self, code: &dyn Fn(usize) -> u32) -> bool {
        let entries = self.codes.get(&code(self.attribute));
        entries.is_some_and(|entries| {
            let has_all =
                |codes: &Vec<(usize, u32)>| codes.iter().all(|&(other, no)| code(other) == no);
            entries.iter().any(has_all)
        })
    }
}

impl Implication {
    /// Resolves a rule.
    ///
    /// # Errors
    /// The rule does not fit the fields.
    pub(super) fn of(
        implies: &Implies,
        fields: &[Field],
        own_codes_of: &OwnCodesOf<'_>,
    ) -> Result<Self, &'static str> {
        let Implies { when, then } = implies;
        if when.is_empty() || then.is_empty() {
            return Err("it needs a column in `when` and one in `then`");
        }
        if when.keys().any(|column| then.contains_key(column)) {
            return Err("it names a column twice");
        }
        let of_columns = |columns: &BTreeMap<String, Vec<String>>| {
            let of_column = |(name, values): (&String, &Vec<String>)| {
                let field = fields.iter().find(|field| field.name == *name);
                listed(
                    field.ok_or("it names a column that the schema does not have")?,
                    values,
                    own_codes_of,
                )
            };
            let listed = columns.iter().map(of_column);
            listed.collect::<Result<Vec<Listed>, &'static str>>()
        };
        Ok(Self {
            when: of_columns(when)?,
            then: of_columns(then)?,
        })
    }

    /// Returns whether a record with these codes satisfies the rule.
    pub(super) fn holds(&self, code: &dyn Fn(usize) -> u32) -> bool {
        let has = |listed: &Listed| listed.has(code);
        !self.when.iter().all(has) || self.then.iter().all(has)
    }

    /// Returns the attributes that the rule needs, apart from the first of each field.
    pub(super) fn other_attributes(&self) -> BTreeSet<usize> {
        let listed = self.when.iter().chain(&self.then);
        let codes = listed.flat_map(|listed| listed.codes.values().flatten().flatten());
        codes.map(|&(attribute, _)| attribute).collect()
    }
}

fn listed(
    field: &Field,
    values: &[String],
    own_codes_of: &OwnCodesOf<'_>,
) -> Result<Listed, &'static str> {
    if values.is_empty() {
        return Err("a column has no values in it");
    }
    let mut listed = Listed {
        attribute: field.attributes.start,
        codes: BTreeMap::new(),
    };
    for value in values {
        let mut codes = own_codes_of(field, value)?.into_iter();
        // The first code is that of the field's first attribute.
        if let Some((_, code)) = codes.next() {
            let entries = listed.codes.entry(code).or_default();
            entries.push(codes.collect());
        }
    }
    Ok(listed)
}

//! Fields that rules between dates connect.

use std::collections::{BTreeMap, BTreeSet};

use super::rule::TimeRule;
use crate::{Field, field::Meaning};

/// Fields that rules connect directly or through other fields.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Group {
    /// The fields of dates, moments and years, ascending: a field comes after the one that it is relative to.
    pub(super) fields: Vec<usize>,
    /// The place of each field among those that are written.
    pub(super) places: Vec<usize>,
    /// The rules. Except for ages, their fields are indices of `fields`.
    pub(super) rules: Vec<TimeRule>,
    /// Other fields that are relative to these, ascending.
    pub(super) followers: Vec<usize>,
}

/// Returns the field that a field is relative to.
pub(super) fn base(fields: &[Field], field: usize) -> Option<usize> {
    match &fields.get(field)?.meaning {
        Meaning::Lapse(lapse) => Some(lapse.base),
        _ => None,
    }
}

impl Group {
    pub(super) fn new(fields: &[Field], own: &BTreeSet<usize>, rules: &[TimeRule]) -> Self {
        let written = fields.iter().filter(|field| field.is_written());
        let places: BTreeMap<&str, usize> = written.map(Field::name).zip(0..).collect();
        let place = |field: &usize| {
            let name = fields.get(*field).map_or("", Field::name);
            places.get(name).copied().unwrap_or(usize::MAX)
        };
        let mut all = own.clone();
        let mut followers = Vec::new();
        for field in 0..fields.len() {
            let follows = base(fields, field).is_some_and(|base| all.contains(&base));
            if follows && all.insert(field) {
                followers.push(field);
            }
        }
        let ascending: Vec<usize> = own.iter().copied().collect();
        Self {
            places: ascending.iter().map(place).collect(),
            rules: rules
                .iter()
                .map(|rule| rule.with_indices(&ascending))
                .collect(),
            fields: ascending,
            followers,
        }
    }
}

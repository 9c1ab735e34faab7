//! A constraint resolved to fields, and the rules of a schema.

use super::{
    implies::Implication,
    times::{group::Group, rule::TimeRule},
};
use crate::{Column, Field};

/// A constraint that refers to fields by index.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Rule {
    AtMost(usize, usize),
    Together(usize, usize),
    /// Attributes and their codes.
    Never(Vec<(usize, u32)>),
    Implies(Implication),
    Sum {
        total: usize,
        parts: Vec<usize>,
    },
    Time(TimeRule),
}

/// The numbers of a record, by field, as in its table.
pub(crate) type Numbers = std::collections::HashMap<usize, f64>;

impl Rule {
    /// Returns the fields whose numbers the rule is about, and whether it is a sum.
    pub(super) fn numbers(&self) -> (Vec<usize>, bool) {
        match self {
            Self::AtMost(low, high) => (vec![*low, *high], false),
            Self::Sum { total, parts } => ([&[*total], &parts[..]].concat(), true),
            Self::Together(..) | Self::Never(_) | Self::Implies(_) | Self::Time(_) => {
                (Vec::new(), false)
            }
        }
    }
}

/// The rules of a schema with its fields and columns.
#[derive(Clone, Copy)]
pub(crate) struct RuleSet<'a> {
    pub(crate) fields: &'a [Field],
    pub(crate) columns: &'a [Column],
    pub(crate) rules: &'a [Rule],
    pub(crate) groups: &'a [Group],
}

impl RuleSet<'_> {
    /// Returns whether a field has no value in a record.
    pub(super) fn is_missing(&self, field: usize, code: &dyn Fn(usize) -> u32) -> bool {
        let part = self.fields.get(field).and_then(|field| field.parts.first());
        part.is_some_and(|part| {
            let column = self.columns.get(part.coarse);
            column.and_then(|column| column.null_code()) == Some(code(part.coarse))
        })
    }
}

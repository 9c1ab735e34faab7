//! The codes of a drawn record as they are once it is written and read.

use crate::{Column, Field, clique::Digit, field::Meaning};

/// The codes of a record that a model drew, with those that its values have.
///
/// A model may give a little mass to parts that a group does not have. Such a part stands for another part of its group
/// ([`crate::ordered::Ordered::sample`]). It may also give a number of units to a column that is relative to one without
/// a value. Such a column has no value either.
pub(crate) struct WrittenCodes<'a> {
    pub(crate) fields: &'a [Field],
    pub(crate) columns: &'a [Column],
    /// In the order of their fine attributes.
    pub(crate) digits: &'a [Digit],
    pub(crate) code: &'a dyn Fn(usize) -> u32,
}

impl WrittenCodes<'_> {
    /// Returns the code of an attribute.
    pub(crate) fn of(&self, attribute: usize) -> u32 {
        let field = (self.fields).partition_point(|field| field.attributes.end <= attribute);
        if self.lacks_base(field) {
            let column = self.columns.get(attribute);
            return column.and_then(Column::null_code).unwrap_or(0);
        }
        let code = (self.code)(attribute);
        let digit = (self.digits).binary_search_by_key(&attribute, Digit::fine);
        let digit = digit.ok().and_then(|digit| self.digits.get(digit));
        let parts = digit.and_then(|digit| {
            let coarse = (self.code)(digit.coarse()) as usize;
            digit.parts().get(coarse).copied()
        });
        parts.map_or(code, |parts| code % parts.max(1))
    }

    /// Returns whether a field counts from another one that has no moment.
    fn lacks_base(&self, field: usize) -> bool {
        let Some(field) = self.fields.get(field) else {
            return false;
        };
        let (Meaning::Lapse(lapse), Some(part)) = (&field.meaning, field.parts.first()) else {
            return false;
        };
        let group = (self.code)(part.coarse);
        lapse.counts_from_base(group) && !self.has_moment(lapse.base)
    }

    /// Returns whether a field of dates has a date, and neither a word without one nor no value.
    fn has_moment(&self, index: usize) -> bool {
        let Some(field) = self.fields.get(index) else {
            return false;
        };
        let Some(part) = field.parts.first() else {
            return false;
        };
        let group = (self.code)(part.coarse);
        let column = self.columns.get(part.coarse);
        if column.and_then(Column::null_code) == Some(group) {
            return false;
        }
        match &field.meaning {
            Meaning::Time(time) => time.dated.has_moment(&time.days, group),
            Meaning::Lapse(lapse) if lapse.counts_from_base(group) => self.has_moment(lapse.base),
            Meaning::Lapse(lapse) => lapse.dated.has_moment(&lapse.units, group),
            _ => false,
        }
    }
}

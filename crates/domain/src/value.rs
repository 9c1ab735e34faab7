//! Decoded values of a table.

use std::fmt::{self, Display, Formatter};

use crate::{Decimal, Identifier, Moment};

/// A decoded value, as it stands in a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// No value.
    Null,
    /// A category, a code, or a word in a column of numbers, dates or times.
    Category(&'a str),
    /// A number of a `numeric` column.
    Number(f64),
    /// A number of a `number` column, displayed in the column's number style.
    Decimal(Decimal<'a>),
    /// A date, datetime, time of day or duration, displayed in the column's format.
    Moment(Moment<'a>),
    /// A newly generated identifier.
    Identifier(Identifier<'a>),
}

impl Value<'_> {
    /// Returns the number, if the value belongs to a column of numbers.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Decimal(decimal) => Some(decimal.value()),
            _ => None,
        }
    }
}

impl Display for Value<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => Ok(()),
            Self::Category(category) => out.write_str(category),
            Self::Number(number) => number.fmt(out),
            Self::Decimal(decimal) => decimal.fmt(out),
            Self::Moment(moment) => moment.fmt(out),
            Self::Identifier(identifier) => identifier.fmt(out),
        }
    }
}

//! A rule between dates, resolved to fields.

use crate::{
    Field,
    constraint::{Age, AgeAt, YearOf},
    times::{Dated, Grid, TimeScale},
};

/// A rule between dates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum TimeRule {
    /// The first field's value is at most the second's.
    Order { low: usize, high: usize, by: Scale },
    /// The number of one field is the age between two dates.
    Age { age: usize, born: usize, at: At },
}

/// The values that two fields are compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Steps of numbers.
    Step,
    /// Months or days.
    Grid(Grid),
    /// Moments of the columns' own clocks.
    Own,
    /// Moments in universal time.
    Universal,
}

/// The time at which an age was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    Year(i64),
    Field(usize),
    EndOfYear(i64),
    /// The end of the year of a field's date.
    EndOfField(usize),
}

fn is_date(dated: &Dated) -> bool {
    dated.format.grain() == crate::DAY
}

/// Resolves the order of two fields, or returns `None` unless both have dates or datetimes.
pub(crate) fn order(fields: &[Field], low: usize, high: usize) -> Option<TimeRule> {
    let (one, other) = (fields.get(low)?.dated()?, fields.get(high)?.dated()?);
    let grids = [one.format.grid(), other.format.grid()];
    let is_universal = |dated: &Dated| dated.format.scale() == TimeScale::Universal;
    let by = if grids.contains(&Grid::Month) {
        Scale::Grid(Grid::Month)
    } else if is_date(one) || is_date(other) {
        Scale::Grid(Grid::Day)
    } else if is_universal(one) && is_universal(other) {
        Scale::Universal
    } else {
        Scale::Own
    };
    Some(TimeRule::Order { low, high, by })
}

/// Resolves an age. `field` finds a field by its name.
pub(crate) fn age(
    fields: &[Field],
    rule: &Age,
    field: impl Fn(&String) -> Result<usize, &'static str>,
) -> Result<TimeRule, &'static str> {
    let is_whole = |index: usize| {
        let style = fields.get(index).and_then(Field::number);
        style.is_some_and(|number| (number.style.decimals, number.style.step) == (0, 1))
    };
    let has_dates = |index: usize| fields.get(index).and_then(Field::dated).is_some();
    let (age, born) = (field(&rule.age)?, field(&rule.born)?);
    if !is_whole(age) {
        return Err(
            "`age` must be a column of kind `number` with whole numbers and without `step`",
        );
    }
    if !has_dates(born) && !is_whole(born) {
        return Err(
            "`born` must be a column of kind `date` or `datetime`, or one of kind `number` with years, \
             without decimals and `step`",
        );
    }
    let known = |year: i64| match year {
        1..=9999 => Ok(year),
        _ => Err("the year in `at` must be from 1 to 9999"),
    };
    let at = match &rule.at {
        AgeAt::Year(year) => At::Year(known(*year)?),
        AgeAt::Column(name) => At::Field(field(name)?),
        AgeAt::EndOf { end_of } => match end_of {
            YearOf::Year(year) => At::EndOfYear(known(*year)?),
            YearOf::Column(name) => At::EndOfField(field(name)?),
        },
    };
    match at.field() {
        Some(at) if !has_dates(at) => {
            Err("`at` must be a column of kind `date` or `datetime`, or a year")
        }
        Some(at) if at == born => Err("it names a column twice"),
        _ if age == born => Err("it names a column twice"),
        _ => Ok(TimeRule::Age { age, born, at }),
    }
}

impl At {
    /// Returns the field that has the time, if any.
    pub(super) fn field(self) -> Option<usize> {
        match self {
            Self::Field(field) | Self::EndOfField(field) => Some(field),
            Self::Year(_) | Self::EndOfYear(_) => None,
        }
    }

    /// Whether the birthday of the year has passed.
    pub(super) fn is_year_end(self) -> bool {
        matches!(self, Self::EndOfYear(_) | Self::EndOfField(_))
    }
}

impl TimeRule {
    /// Returns the fields whose values the rule bounds.
    pub(super) fn bounded(&self) -> Vec<usize> {
        match *self {
            Self::Order { low, high, .. } => vec![low, high],
            Self::Age { born, at, .. } => [born].into_iter().chain(at.field()).collect(),
        }
    }

    /// Returns the field of the age.
    pub(crate) fn age(&self) -> Option<usize> {
        match self {
            Self::Age { age, .. } => Some(*age),
            Self::Order { .. } => None,
        }
    }

    /// Returns the year of birth, if it is a field of numbers.
    pub(crate) fn year(&self, fields: &[Field]) -> Option<usize> {
        let is_number = |field: &usize| fields.get(*field).and_then(Field::number).is_some();
        match self {
            Self::Age { born, .. } => Some(*born).filter(is_number),
            Self::Order { .. } => None,
        }
    }

    /// Returns the rule with an index of `fields` in place of each field but that of an age.
    pub(super) fn with_indices(self, fields: &[usize]) -> Self {
        // `fields` has all fields of the rule.
        let index = |field: usize| fields.binary_search(&field).unwrap_or_else(|place| place);
        match self {
            Self::Order { low, high, by } => Self::Order {
                low: index(low),
                high: index(high),
                by,
            },
            Self::Age { age, born, at } => Self::Age {
                age,
                born: index(born),
                at: match at {
                    At::Year(_) | At::EndOfYear(_) => at,
                    At::Field(at) => At::Field(index(at)),
                    At::EndOfField(at) => At::EndOfField(index(at)),
                },
            },
        }
    }
}

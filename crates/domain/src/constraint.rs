//! Constraints between the columns of every record, from public knowledge. They are part of the schema.
//!
//! Readers reject a table that breaks a constraint, and drawn records satisfy all of them. The sampler draws codes
//! again if no values for them satisfy the constraints ([`crate::Schema::allows`]). Within the codes, values are drawn
//! until they satisfy the constraints, or are set to values that do ([`hold()`]).

mod calendar;
mod hold;
mod implies;
mod rule;
mod rules;
mod times;
mod written;

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::marker::PhantomData;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

pub(crate) use self::hold::hold;
pub(crate) use self::rule::{Numbers, Rule, RuleSet};
pub(crate) use self::rules::resolve;
pub(crate) use self::times::{Readings, group::Group, groups, hold as hold_times};
pub(crate) use self::written::WrittenCodes;

/// A relation that holds in every record. Columns have their names in the table. A column without a value in a record
/// is not constrained there, except by [`Constraint::MissingTogether`] and [`Constraint::Implies`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Constraint {
    /// The first column's value is at most the second's. Both columns have kind `number` and the same decimals and
    /// step, or both are dates or datetimes. Between a date and a datetime, days are compared; with a month, months.
    AtMost([String; 2]),
    /// The columns have values in the same records.
    MissingTogether([String; 2]),
    /// No record has all of these values.
    #[serde(deserialize_with = "each_once")]
    Never(BTreeMap<String, String>),
    /// Records with these values have those values.
    Implies(Implies),
    /// One column's number is the age between two dates or years. The column belongs to no other constraint of numbers.
    Age(Age),
    /// One column's number is the sum of the others'. All columns have kind `number` and the same decimals and step,
    /// and belong to no other sum and to no `at_most`.
    Sum(Sum),
}

/// Reads values by column, and rejects a column that is named twice. A plain map would keep the last value, and the
/// constraint would differ from the written one.
pub(crate) fn each_once<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<BTreeMap<String, T>, D::Error> {
    struct EachOnce<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for EachOnce<T> {
        type Value = BTreeMap<String, T>;

        fn expecting(&self, out: &mut Formatter<'_>) -> fmt::Result {
            out.write_str("values by column")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
            let mut values = BTreeMap::new();
            while let Some((column, value)) = from.next_entry::<String, T>()? {
                if values.contains_key(&column) {
                    let reason = format!("{column:?} is named twice");
                    return Err(A::Error::custom(reason));
                }
                values.insert(column, value);
            }
            Ok(values)
        }
    }

    from.deserialize_map(EachOnce(PhantomData))
}

/// The columns and values of a [`Constraint::Implies`]. An empty value stands for a missing one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Implies {
    /// Values by column. The rule is about the records that have one of the values in each column.
    #[serde(deserialize_with = "each_once")]
    pub when: BTreeMap<String, Vec<String>>,
    /// Values by column. The records have one of the values in each column.
    #[serde(deserialize_with = "each_once")]
    pub then: BTreeMap<String, Vec<String>>,
}

/// The columns of a [`Constraint::Age`].
///
/// With two dates, the age is the number of whole years between them. A birthday on 29 February counts on 1 March in
/// common years. With a year on either side, the age is the difference of the years, or one less, because the birthday
/// is not known; the same holds for two equal months of different years. At the end of a year ([`AgeAt::EndOf`]), the
/// age is always the difference of the years, because the birthday has passed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Age {
    /// A column of kind `number` with whole numbers: the age in years.
    pub age: String,
    /// A column of dates of birth, or of kind `number` with years of birth.
    pub born: String,
    /// The time at which the age was taken.
    pub at: AgeAt,
}

/// The time at which an age was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum AgeAt {
    /// The same year in all records.
    Year(i64),
    /// A column of dates or datetimes.
    Column(String),
    /// The end of a year.
    EndOf {
        /// The year.
        end_of: YearOf,
    },
}

/// A year at whose end an age was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum YearOf {
    /// The same year in all records.
    Year(i64),
    /// The year of a column of dates or datetimes.
    Column(String),
}

impl AgeAt {
    /// Returns the column that has the time, if any.
    pub fn column(&self) -> Option<&str> {
        match self {
            Self::Column(column)
            | Self::EndOf {
                end_of: YearOf::Column(column),
            } => Some(column),
            Self::Year(_)
            | Self::EndOf {
                end_of: YearOf::Year(_),
            } => None,
        }
    }
}

/// The columns of a [`Constraint::Sum`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sum {
    /// The column that holds the sum.
    pub total: String,
    /// The columns that are added: two or more.
    pub parts: Vec<String>,
}

impl Constraint {
    /// Returns the columns that the constraint is about.
    pub fn columns(&self) -> Vec<&str> {
        match self {
            Self::AtMost(two) | Self::MissingTogether(two) => two.iter().map(|c| &**c).collect(),
            Self::Never(values) => values.keys().map(|c| &**c).collect(),
            Self::Implies(Implies { when, then }) => {
                when.keys().chain(then.keys()).map(|c| &**c).collect()
            }
            Self::Age(Age { age, born, at }) => [age.as_str(), born]
                .into_iter()
                .chain(at.column())
                .collect(),
            Self::Sum(sum) => {
                let parts = sum.parts.iter().map(|c| &**c);
                std::iter::once(&*sum.total).chain(parts).collect()
            }
        }
    }
}

impl Display for Constraint {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost([low, high]) => write!(out, "{low:?} is at most {high:?}"),
            Self::MissingTogether([one, other]) => {
                write!(out, "{one:?} and {other:?} are missing together")
            }
            Self::Never(values) => {
                let values: Vec<String> =
                    values.iter().map(|(c, v)| format!("{c:?} {v:?}")).collect();
                write!(out, "no record has {}", values.join(" with "))
            }
            Self::Implies(Implies { when, then }) => {
                write!(out, "records with {} have {}", any_of(when), any_of(then))
            }
            Self::Age(Age { age, born, at }) => match at {
                AgeAt::Year(year) => write!(out, "{age:?} is the age in {year} by {born:?}"),
                AgeAt::Column(at) => write!(out, "{age:?} is the age at {at:?} by {born:?}"),
                AgeAt::EndOf { end_of } => match end_of {
                    YearOf::Year(year) => {
                        write!(out, "{age:?} is the age at the end of {year} by {born:?}")
                    }
                    YearOf::Column(at) => {
                        write!(
                            out,
                            "{age:?} is the age at the end of the year of {at:?} by {born:?}"
                        )
                    }
                },
            },
            Self::Sum(sum) => {
                let parts: Vec<String> = sum.parts.iter().map(|part| format!("{part:?}")).collect();
                write!(out, "{:?} is {}", sum.total, parts.join(" + "))
            }
        }
    }
}

/// Shows columns with the values that each may have.
fn any_of(values: &BTreeMap<String, Vec<String>>) -> String {
    let one = |value: &String| match value.is_empty() {
        true => "no value".to_owned(),
        false => format!("{value:?}"),
    };
    let column = |(column, values): (&String, &Vec<String>)| {
        let values: Vec<String> = values.iter().map(one).collect();
        format!("{column:?} {}", values.join(" or "))
    };
    values
        .iter()
        .map(column)
        .collect::<Vec<String>>()
        .join(" and ")
}

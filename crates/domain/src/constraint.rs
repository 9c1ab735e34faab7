//! Constraints between the columns of every record, from public knowledge. They are part of the schema.
//!
//! Readers reject a table that breaks a constraint, and drawn records satisfy all of them. The sampler draws codes
//! again if no values for them satisfy the constraints ([`crate::Schema::allows`]). Within the codes, values are drawn
//! until they satisfy the constraints, or are set to values that do ([`hold()`]).

mod hold;
mod rules;

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

pub(crate) use self::hold::hold;
pub(crate) use self::rules::{Numbers, Rule, RuleSet, resolve};

/// A relation that holds in every record. Columns have their names in the table. A column without a value in a record
/// is not constrained there, except by [`Constraint::MissingTogether`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Constraint {
    /// The first column's number is at most the second's. Both columns have kind `number` and the same
    /// decimals and step.
    AtMost([String; 2]),
    /// The columns have values in the same records.
    MissingTogether([String; 2]),
    /// No record has all of these values.
    #[serde(deserialize_with = "each_once")]
    Never(BTreeMap<String, String>),
    /// One column's number is the sum of the others'. All columns have kind `number` and the same decimals and step,
    /// and belong to no other sum and to no `at_most`.
    Sum(Sum),
}

/// Reads values by column, and rejects a column that is named twice. A plain map would keep the last value, and the
/// constraint would differ from the written one.
fn each_once<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    struct EachOnce;

    impl<'de> Visitor<'de> for EachOnce {
        type Value = BTreeMap<String, String>;

        fn expecting(&self, out: &mut Formatter<'_>) -> fmt::Result {
            out.write_str("values by column")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
            let mut values = BTreeMap::new();
            while let Some((column, value)) = from.next_entry::<String, String>()? {
                if values.contains_key(&column) {
                    let reason = format!("`never` names column {column:?} twice");
                    return Err(A::Error::custom(reason));
                }
                values.insert(column, value);
            }
            Ok(values)
        }
    }

    from.deserialize_map(EachOnce)
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
            Self::Sum(sum) => {
                let parts: Vec<String> = sum.parts.iter().map(|part| format!("{part:?}")).collect();
                write!(out, "{:?} is {}", sum.total, parts.join(" + "))
            }
        }
    }
}

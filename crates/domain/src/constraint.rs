//! What holds between the columns of every record, by public knowledge: part of the schema.
//!
//! A table that breaks one is refused where it is read, and none is broken by a record that is drawn. Codes that
//! leave no way to hold all of them are drawn anew ([`crate::Schema::allows`]), and values are drawn
//! from what the codes leave open until they hold, or put where they do ([`hold()`]).

mod hold;
mod rules;

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

pub(crate) use self::hold::hold;
pub(crate) use self::rules::{Numbers, Rule, RuleSet, resolve};

/// Something that holds in every record. A column is named as in the table; one without a value in a
/// record constrains nothing there, but for [`Constraint::MissingTogether`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Constraint {
    /// The first column's number is at most the second's: columns of kind `number` with as many decimals.
    AtMost([String; 2]),
    /// The columns have values in the same records.
    MissingTogether([String; 2]),
    /// No record has all of these values.
    #[serde(deserialize_with = "each_once")]
    Never(BTreeMap<String, String>),
    /// One column's number is the sum of the others': columns of kind `number` with as many decimals, each
    /// in no other sum and in no `at_most`.
    Sum(Sum),
}

/// Reads values by column, and refuses a column that is named twice: a map alone would keep the last one's
/// value, and the constraint would be another one than was written.
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

/// What [`Constraint::Sum`] is of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sum {
    /// The column that is the sum.
    pub total: String,
    /// What it is the sum of: two columns or more.
    pub parts: Vec<String>,
}

impl Constraint {
    /// The columns that it is about.
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

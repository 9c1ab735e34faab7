//! The JSON form of a schema's columns, before it is validated.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error as _, Visitor},
};

/// The cost of a schema that was drafted privately from the records, as its holder states it.
/// Nobody else can verify it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Epsilon of the draft.
    pub epsilon: f64,
    /// Delta of the draft.
    pub delta: f64,
    /// The rho-zCDP cost of the draft, as a count of 2^-80. It adds to the cost of later releases.
    #[serde(with = "count")]
    pub rho: u128,
}

/// Serializes a count as decimal text, because JSON's numbers are not wide enough.
mod count {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(count: &u128, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(count)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<u128, D::Error> {
        let text = String::deserialize(deserializer)?;
        let written_so = |count: &u128| count.to_string() == text;
        let count = text.parse().ok().filter(written_so);
        count.ok_or_else(|| D::Error::custom("`rho` must be a whole number of 2^-80, as a text"))
    }
}

/// The kinds of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum KindForm {
    Categorical,
    Numeric,
    Number,
    Date,
    Datetime,
    Code,
    Identifier,
    LeftOut,
}

impl KindForm {
    /// The kind as users write it, for messages.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Categorical => "categorical",
            Self::Numeric => "numeric",
            Self::Number => "number",
            Self::Date => "date",
            Self::Datetime => "datetime",
            Self::Code => "code",
            Self::Identifier => "identifier",
            Self::LeftOut => "left-out",
        }
    }

    /// Returns whether the column of codes describes the column completely, so that the field keeps
    /// no form.
    pub(crate) fn is_plain(self) -> bool {
        matches!(self, Self::Categorical | Self::Numeric)
    }

    /// Returns the fields that a column of the kind may have, in addition to `name`, `kind` and
    /// `nullable`.
    pub(crate) fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Categorical => &["categories", "other"],
            Self::Numeric => &["min", "max", "bins", "integer"],
            Self::Number => &[
                "special",
                "min",
                "max",
                "bins",
                "edges",
                "digits",
                "integer",
                "decimals",
                "trailing_zeros",
                "decimal_comma",
            ],
            Self::Date | Self::Datetime => &[
                "min",
                "max",
                "bins",
                "edges",
                "digits",
                "format",
                "unit",
                "relative_to",
            ],
            Self::Code => &["codes", "prefix", "chapters", "other"],
            Self::Identifier => &["pattern"],
            Self::LeftOut => &["reason"],
        }
    }
}

/// The unit that a date or datetime column counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Unit {
    Day,
    Hour,
    Minute,
}

impl Unit {
    pub(crate) fn seconds(self) -> i64 {
        match self {
            Self::Day => crate::calendar::DAY,
            Self::Hour => 3_600,
            Self::Minute => 60,
        }
    }
}

/// A chapter of a code book.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChapterForm {
    pub(crate) name: String,
    pub(crate) codes: Vec<String>,
}

/// A limit or an edge: a number, or a date as `2024-01-31`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Bound {
    Number(f64),
    Date(String),
}

impl Serialize for Bound {
    /// Writes whole numbers without a decimal point, as a person would.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(value) if value.fract() == 0.0 && value.abs() <= crate::MAX_MAGNITUDE => {
                serializer.serialize_i64(*value as i64)
            }
            Self::Number(value) => serializer.serialize_f64(*value),
            Self::Date(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for Bound {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bounds;

        impl Visitor<'_> for Bounds {
            type Value = Bound;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a number, or a date such as \"2024-01-31\"")
            }

            fn visit_f64<E>(self, value: f64) -> Result<Bound, E> {
                Ok(Bound::Number(value))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Bound, E> {
                Ok(Bound::Number(value as f64))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Bound, E> {
                Ok(Bound::Number(value as f64))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Bound, E> {
                if text.len() > 10 {
                    return Err(E::custom("a date is written as 2024-01-31"));
                }
                Ok(Bound::Date(text.to_owned()))
            }
        }

        deserializer
            .deserialize_any(Bounds)
            .map_err(D::Error::custom)
    }
}

/// A column. It has the fields of all kinds, so that a field of the wrong kind can be rejected with
/// the column's name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ColumnForm {
    pub(crate) name: String,
    pub(crate) kind: KindForm,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) categories: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) other: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) special: Option<Vec<Bound>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) min: Option<Bound>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max: Option<Bound>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bins: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) edges: Option<Vec<Bound>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) digits: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) integer: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) decimals: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trailing_zeros: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) decimal_comma: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) format: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unit: Option<Unit>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) relative_to: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) prefix: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) codes: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) chapters: Option<Vec<ChapterForm>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pattern: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) nullable: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_false(value: &bool) -> bool {
    !value
}

impl ColumnForm {
    /// Creates a column without any optional field.
    pub(crate) fn empty(name: String, kind: KindForm, nullable: bool) -> Self {
        Self {
            name,
            kind,
            categories: None,
            other: None,
            special: None,
            min: None,
            max: None,
            bins: None,
            edges: None,
            digits: None,
            integer: None,
            decimals: None,
            trailing_zeros: None,
            decimal_comma: None,
            format: None,
            unit: None,
            relative_to: None,
            prefix: None,
            codes: None,
            chapters: None,
            pattern: None,
            reason: None,
            nullable,
        }
    }

    /// Returns the first field that a column of this kind must not have.
    pub(crate) fn surplus(&self) -> Option<&'static str> {
        let allowed = self.kind.fields();
        let present = [
            ("categories", self.categories.is_some()),
            ("other", self.other.is_some()),
            ("special", self.special.is_some()),
            ("min", self.min.is_some()),
            ("max", self.max.is_some()),
            ("bins", self.bins.is_some()),
            ("edges", self.edges.is_some()),
            ("digits", self.digits.is_some()),
            ("integer", self.integer.is_some()),
            ("decimals", self.decimals.is_some()),
            ("trailing_zeros", self.trailing_zeros.is_some()),
            ("decimal_comma", self.decimal_comma.is_some()),
            ("format", self.format.is_some()),
            ("unit", self.unit.is_some()),
            ("relative_to", self.relative_to.is_some()),
            ("prefix", self.prefix.is_some()),
            ("codes", self.codes.is_some()),
            ("chapters", self.chapters.is_some()),
            ("pattern", self.pattern.is_some()),
            ("reason", self.reason.is_some()),
        ];
        let surplus = |&(name, present): &(&'static str, bool)| present && !allowed.contains(&name);
        present.into_iter().find(surplus).map(|(name, _)| name)
    }
}

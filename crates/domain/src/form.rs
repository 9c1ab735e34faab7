//! The JSON form of a schema's columns, before it is validated. Keys are documented in docs/reference/schema.md.

use std::{collections::BTreeMap, fmt, str::FromStr};

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KindForm {
    /// A value from a list.
    #[default]
    Categorical,
    /// A number of which only the bin is kept.
    Numeric,
    /// A number.
    Number,
    /// A day.
    Date,
    /// A day and a time of day.
    Datetime,
    /// A time of day.
    Time,
    /// A length of time.
    Duration,
    /// A code of a code book.
    Code,
    /// A value without meaning.
    Identifier,
    /// A value that follows from another column.
    Derived,
    /// A column that synthetic tables do not have.
    LeftOut,
}

impl FromStr for KindForm {
    type Err = String;

    /// Parses a kind as users write it.
    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|kind| kind.word() == text);
        known.ok_or_else(|| {
            format!(
                "{text:?} is no kind: use one of {}",
                Self::ALL.map(Self::word).join(", ")
            )
        })
    }
}

impl KindForm {
    /// All kinds.
    pub const ALL: [Self; 11] = [
        Self::Categorical,
        Self::Numeric,
        Self::Number,
        Self::Date,
        Self::Datetime,
        Self::Time,
        Self::Duration,
        Self::Code,
        Self::Identifier,
        Self::Derived,
        Self::LeftOut,
    ];

    /// The kind as users write it, for messages.
    pub fn word(self) -> &'static str {
        match self {
            Self::Categorical => "categorical",
            Self::Numeric => "numeric",
            Self::Number => "number",
            Self::Date => "date",
            Self::Datetime => "datetime",
            Self::Time => "time",
            Self::Duration => "duration",
            Self::Code => "code",
            Self::Identifier => "identifier",
            Self::Derived => "derived",
            Self::LeftOut => "left-out",
        }
    }

    /// Returns whether the column of codes describes the column completely, so that the field keeps
    /// no form.
    pub fn is_plain(self) -> bool {
        matches!(self, Self::Categorical | Self::Numeric)
    }

    /// Returns whether synthetic tables keep the values of a column of the kind.
    pub fn is_kept(self) -> bool {
        !matches!(self, Self::Identifier | Self::Derived | Self::LeftOut)
    }

    /// Returns the fields that a column of the kind may have, in addition to `name`, `kind`,
    /// `nullable` and, for kinds that are kept, `missing` and `invalid`.
    pub fn fields(self) -> &'static [&'static str] {
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
                "step",
                "thousands",
                "before",
                "after",
                "negative",
            ],
            Self::Date => &[
                "special",
                "min",
                "max",
                "bins",
                "edges",
                "digits",
                "format",
                "unit",
                "relative_to",
                "first_year",
                "months",
                "weekdays",
            ],
            Self::Datetime => &[
                "special",
                "min",
                "max",
                "bins",
                "edges",
                "digits",
                "format",
                "unit",
                "relative_to",
                "clock",
                "first_year",
                "midnight",
                "offsets",
                "months",
                "weekdays",
            ],
            Self::Time => &[
                "special", "min", "max", "bins", "edges", "digits", "format", "midnight",
            ],
            Self::Duration => &["special", "min", "max", "bins", "edges", "digits", "format"],
            Self::Code => &["codes", "prefix", "chapters", "other"],
            Self::Identifier => &["pattern"],
            Self::Derived => &["from", "values"],
            Self::LeftOut => &["reason"],
        }
    }
}

/// How a column of numbers writes negative ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Negative {
    /// `-12.50`
    #[default]
    Minus,
    /// `(12.50)`
    Parentheses,
    /// `12.50-`
    Trailing,
    /// `\u{2212}12.50`, with the minus sign of mathematics
    MinusSign,
    /// `-12.50`, and other numbers with a plus: `+12.50`
    PlusMinus,
}

/// What to do with a cell that has no valid value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Invalid {
    /// Read it as a missing value, and count it.
    Missing,
}

/// The unit that a date or datetime column counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeUnit {
    /// A day.
    Day,
    /// An hour.
    Hour,
    /// A minute.
    Minute,
}

impl TimeUnit {
    /// Seconds of the unit.
    pub fn seconds(self) -> i64 {
        match self {
            Self::Day => crate::DAY,
            Self::Hour => 3_600,
            Self::Minute => 60,
        }
    }
}

/// A chapter of a code book.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChapterForm {
    /// The chapter's name.
    pub name: String,
    /// Its codes.
    pub codes: Vec<String>,
}

/// A limit, an edge or a special value: a number or a text, such as a date as `2024-01-31`.
#[derive(Clone, Debug, PartialEq)]
pub enum Bound {
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
}

impl Serialize for Bound {
    /// Writes whole numbers without a decimal point, as a person would.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(value) => plain_number(&Some(*value), serializer),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

/// Writes whole numbers without a decimal point.
#[expect(clippy::ref_option, reason = "serde passes a reference")]
fn plain_number<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match *value {
        Some(value) if value.fract() == 0.0 && value.abs() <= crate::MAX_MAGNITUDE => {
            serializer.serialize_i64(value as i64)
        }
        Some(value) => serializer.serialize_f64(value),
        None => serializer.serialize_none(),
    }
}

impl<'de> Deserialize<'de> for Bound {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bounds;

        impl Visitor<'_> for Bounds {
            type Value = Bound;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a number, or a text such as \"2024-01-31\"")
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

            fn visit_str<E>(self, text: &str) -> Result<Bound, E> {
                Ok(Bound::Text(text.to_owned()))
            }
        }

        deserializer
            .deserialize_any(Bounds)
            .map_err(D::Error::custom)
    }
}

/// Reads texts by text, and rejects a text that is named twice.
fn values_by_value<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<BTreeMap<String, String>>, D::Error> {
    #[derive(Deserialize)]
    struct Values(
        #[serde(deserialize_with = "crate::constraint::each_once")] BTreeMap<String, String>,
    );

    let values = Option::<Values>::deserialize(from)?;
    Ok(values.map(|Values(values)| values))
}

/// A column. It has the fields of all kinds, so that a field of the wrong kind can be rejected with
/// the column's name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnForm {
    /// The column's name.
    pub name: String,
    /// Its kind.
    pub kind: KindForm,
    /// Categories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub categories: Option<Vec<String>>,
    /// The category or code that stands for all values outside the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<String>,
    /// Values with separate bins: numbers, dates, or texts of neither kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub special: Option<Vec<Bound>>,
    /// Lower limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<Bound>,
    /// Upper limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<Bound>,
    /// Number of bins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bins: Option<u64>,
    /// First value of each bin, and the largest value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edges: Option<Vec<Bound>>,
    /// Number of parts of each bin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digits: Option<u64>,
    /// Whether all values are whole numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integer: Option<bool>,
    /// Number of decimals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decimals: Option<u64>,
    /// Whether zeros at the end are written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trailing_zeros: Option<bool>,
    /// Whether the decimal mark is a comma.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decimal_comma: Option<bool>,
    /// All numbers are multiples of this one.
    #[serde(
        default,
        serialize_with = "plain_number",
        skip_serializing_if = "Option::is_none"
    )]
    pub step: Option<f64>,
    /// Character between groups of three digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thousands: Option<char>,
    /// Text before each number, such as `$`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Text after each number, such as ` mg`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// How negative numbers are written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub negative: Option<Negative>,
    /// Form of the dates or times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Precision of the values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<TimeUnit>,
    /// The column that the values are relative to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relative_to: Option<String>,
    /// Precision of the time of day next to whole days from the other column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<TimeUnit>,
    /// The first of the hundred years that two-digit years stand for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_year: Option<i64>,
    /// `24:00` if midnight belongs to the day before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub midnight: Option<String>,
    /// UTC offsets, or names of zones, that the values have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offsets: Option<Vec<String>>,
    /// Names of the months, from January.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub months: Option<Vec<String>>,
    /// Names of the weekdays, from Monday.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weekdays: Option<Vec<String>>,
    /// Number of leading characters of a code that name its chapter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<usize>,
    /// Codes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub codes: Option<Vec<String>>,
    /// Chapters of the code book.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chapters: Option<Vec<ChapterForm>>,
    /// The column that a derived column follows from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The value of a derived column for each value of the other column; the same value if absent.
    #[serde(
        default,
        deserialize_with = "values_by_value",
        skip_serializing_if = "Option::is_none"
    )]
    pub values: Option<BTreeMap<String, String>>,
    /// Pattern of identifiers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// Why the column is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether values may be missing.
    #[serde(default, skip_serializing_if = "is_false")]
    pub nullable: bool,
    /// Texts that stand for a missing value. The first is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Vec<String>>,
    /// What to do with cells of no valid value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid: Option<Invalid>,
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
    pub fn empty(name: String, kind: KindForm, nullable: bool) -> Self {
        Self {
            name,
            kind,
            nullable,
            ..Self::default()
        }
    }

    /// Returns the first field that a column of this kind must not have.
    pub fn surplus(&self) -> Option<&'static str> {
        const KEPT: [&str; 2] = ["missing", "invalid"];
        let present = serde_json::to_value(self).ok()?;
        let allowed = self.kind.fields();
        let kept: &[&str] = if self.kind.is_kept() { &KEPT } else { &[] };
        let others = KindForm::ALL.into_iter().flat_map(KindForm::fields);
        let mut known = KEPT.iter().chain(others).copied();
        known.find(|field| {
            present.get(field).is_some() && !allowed.contains(field) && !kept.contains(field)
        })
    }
}

//! Attributes: the meaning of one column of codes.

use rand::Rng;

use crate::{Binning, value::Value};

/// What the codes of a column stand for.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// One of a list of categories; code c stands for `categories[c]`.
    Categorical {
        /// The categories, in the order of their codes.
        categories: Vec<String>,
        /// The code for values outside the list, used if the holder asks for it.
        other: Option<u32>,
    },
    /// A number in one of several bins; code b stands for bin b.
    Numeric(Binning),
    /// A part of a value (its bin, its digit, its hour). Code c stands for `labels[c]`.
    /// [`crate::Schema::values`] combines all parts into the value.
    Part {
        /// Meaning of each code, for people.
        labels: Vec<String>,
        /// Whether the order of the codes is meaningful, as it is for bins.
        ordered: bool,
    },
}

impl Kind {
    /// Number of values, without null.
    fn len(&self) -> usize {
        match self {
            Self::Categorical { categories, .. } => categories.len(),
            Self::Numeric(binning) => binning.bins() as usize,
            Self::Part { labels, .. } => labels.len(),
        }
    }
}

/// One attribute of a [`crate::Schema`]: a column of codes. A column of the table becomes one
/// attribute, several, or none (see [`crate::Field`]).
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) nullable: bool,
}

impl Column {
    /// The column's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the column's codes stand for.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Whether values may be missing.
    pub fn nullable(&self) -> bool {
        self.nullable
    }

    /// Number of codes: one for each category or bin, and one for null in a nullable column.
    pub fn size(&self) -> usize {
        self.kind.len() + usize::from(self.nullable)
    }

    /// The code of a missing value: the last code of a nullable column.
    pub fn null_code(&self) -> Option<u32> {
        // At most MAX_CATEGORIES or MAX_BINS.
        self.nullable.then(|| self.kind.len() as u32)
    }

    /// Whether neighbouring codes stand for neighbouring values.
    pub fn ordered(&self) -> bool {
        match self.kind {
            Kind::Categorical { .. } => false,
            Kind::Numeric(_) => true,
            Kind::Part { ordered, .. } => ordered,
        }
    }

    /// Decodes `code` to a category, a number drawn from its bin (see [`Binning::sample`]), or a
    /// part's label. Returns `None` if the column has no such code.
    pub fn decode(&self, code: u32, rng: &mut (impl Rng + ?Sized)) -> Option<Value<'_>> {
        if self.null_code() == Some(code) {
            return Some(Value::Null);
        }
        match &self.kind {
            Kind::Categorical { categories, .. } => {
                let category = categories.get(code as usize)?;
                Some(Value::Category(category))
            }
            Kind::Numeric(binning) => {
                (code < binning.bins()).then(|| Value::Number(binning.sample(code, rng)))
            }
            Kind::Part { labels, .. } => Some(Value::Category(labels.get(code as usize)?)),
        }
    }

    /// Describes `code` for people: a category, the limits of a bin (its integers, in a column of
    /// integers), `(missing)`, or `(none)` if the column has no such code.
    pub fn label(&self, code: u32) -> String {
        if self.null_code() == Some(code) {
            return "(missing)".to_owned();
        }
        match &self.kind {
            Kind::Categorical {
                categories: texts, ..
            }
            | Kind::Part { labels: texts, .. } => match texts.get(code as usize) {
                Some(text) => text.clone(),
                None => "(none)".to_owned(),
            },
            Kind::Numeric(binning) if code >= binning.bins() => "(none)".to_owned(),
            Kind::Numeric(binning) if binning.integer() => match binning.numbers(code) {
                (first, last) if first == last => first.to_string(),
                (first, last) => format!("{first} to {last}"),
            },
            Kind::Numeric(binning) => {
                let (low, high) = binning.edges(code);
                // Three digits past the width's first: exact for any limits that a person would
                // write.
                let decimals = binning.decimals() as usize + 1;
                format!("{} to {}", short(low, decimals), short(high, decimals))
            }
        }
    }
}

/// Formats `value` with at most `decimals` decimals and without zeros at their end.
fn short(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}

//! The columns of a schema, described for readers of a card.

use std::collections::HashSet;

use fhaim_domain::{
    Field, Output, Schema, SchemaForm, TickUnit, counted,
    form::{Bound, ColumnForm, KindForm, Negative, TimeUnit},
};

use crate::AttributeNoise;

/// A column of the schema.
#[derive(Clone, Debug, PartialEq)]
pub struct CardColumn {
    /// Name in the table's header.
    pub name: String,
    /// Kind in the schema.
    pub kind: KindForm,
    /// Meaning and form of the values, in words.
    pub form: String,
    /// Unit of numbers, as it stands next to each of them.
    pub unit: Option<String>,
    /// The values that the column can have.
    pub values: CardValues,
    /// The precision with which synthetic values follow the records, in words.
    pub precision: String,
    /// Text of a missing value, or `None` for a column without missing values. The text may be empty.
    pub missing: Option<String>,
    /// Standard deviation of the noise in the released count of one value or bin, if it is known.
    pub noise: Option<f64>,
    /// Type of the values; `None` for a column that the table does not have.
    pub output: Option<Output>,
    /// Whether programs read the column's text in a CSV file as values of this type without being told its form.
    pub is_plain_text: bool,
}

/// The values that a column can have, according to the schema.
#[derive(Clone, Debug, PartialEq)]
pub enum CardValues {
    /// Listed values.
    List(Vec<String>),
    /// Values from `first` to `last`, and special values.
    Range {
        /// The smallest value.
        first: String,
        /// The largest value.
        last: String,
        /// Values with separate bins, which may be outside the range.
        special: Vec<String>,
    },
    /// Values that the schema does not limit.
    Open,
}

impl CardColumn {
    /// Whether a synthetic table has the column.
    pub fn is_written(&self) -> bool {
        self.output.is_some()
    }

    /// Describes the values, with at most `most` of a list.
    pub fn values_text(&self, most: usize) -> String {
        let list = |values: &[String]| {
            let shown = values.iter().take(most).cloned().collect::<Vec<_>>();
            match values.len().saturating_sub(most) {
                0 => shown.join(", "),
                more => format!("{} and {more} more", shown.join(", ")),
            }
        };
        match &self.values {
            CardValues::List(values) => list(values),
            CardValues::Open => String::new(),
            CardValues::Range {
                first,
                last,
                special,
            } => {
                let special = match special.is_empty() {
                    true => String::new(),
                    false => format!("; special values: {}", list(special)),
                };
                format!("{first} to {last}{special}")
            }
        }
    }
}

/// Describes the columns of a schema.
pub(crate) fn describe(schema: &Schema, noise: Option<&AttributeNoise>) -> Vec<CardColumn> {
    let forms = SchemaForm::from(schema.clone()).columns;
    let fields = schema.fields().iter().zip(&forms);
    fields
        .map(|(field, form)| {
            Described {
                schema,
                field,
                form,
                forms: &forms,
            }
            .column(noise)
        })
        .collect()
}

/// A column with its form in the schema.
struct Described<'a> {
    schema: &'a Schema,
    field: &'a Field,
    form: &'a ColumnForm,
    forms: &'a [ColumnForm],
}

impl Described<'_> {
    fn column(&self, noise: Option<&AttributeNoise>) -> CardColumn {
        let Self {
            schema,
            field,
            form,
            ..
        } = self;
        // The first attribute is the value or its bin.
        let attribute = (!field.attributes().is_empty()).then_some(field.attributes().start);
        let count = |noise: &AttributeNoise| *noise.counts.get(attribute?)?;
        CardColumn {
            name: form.name.clone(),
            kind: form.kind,
            form: self.form_words(),
            unit: unit(form),
            values: values(form),
            precision: self.precision(),
            missing: form
                .nullable
                .then(|| field.missing_text().unwrap_or_default().to_owned()),
            noise: noise.and_then(count),
            is_plain_text: is_plain_text(self.value_form()),
            output: field
                .is_written()
                .then(|| schema.value_field(field).output(schema.columns())),
        }
    }

    /// Returns the form of the column that defines the texts of this one.
    fn value_form(&self) -> &ColumnForm {
        let name = self.schema.value_field(self.field).name();
        let other = self.forms.iter().find(|form| form.name == name);
        other.unwrap_or(self.form)
    }

    fn form_words(&self) -> String {
        let form = self.form;
        let written = match &form.format {
            Some(format) => format!(", written as {format}"),
            None => String::new(),
        };
        let after = match &form.relative_to {
            Some(other) => format!(", counted from \"{other}\""),
            None => String::new(),
        };
        match form.kind {
            KindForm::Categorical => "value from a list".to_owned(),
            KindForm::Numeric | KindForm::Number => number_words(form),
            KindForm::Date => format!("date{written}{after}"),
            KindForm::Datetime => format!("date and time{written}{after}"),
            KindForm::Time => format!("time of day{written}"),
            KindForm::Duration => format!("length of time{written}"),
            KindForm::Code => "code of a code book".to_owned(),
            KindForm::Identifier => {
                format!(
                    "new identifier, pattern {}",
                    form.pattern.as_deref().unwrap_or_default()
                )
            }
            KindForm::Derived => {
                format!(
                    "follows from \"{}\"",
                    form.from.as_deref().unwrap_or_default()
                )
            }
            KindForm::LeftOut => match &form.reason {
                Some(reason) => format!("left out: {reason}"),
                None => "left out".to_owned(),
            },
        }
    }

    fn precision(&self) -> String {
        let form = self.form;
        match form.kind {
            KindForm::Categorical | KindForm::Code => match &form.other {
                Some(other) => format!("listed values; all others are \"{other}\""),
                None => "listed values".to_owned(),
            },
            KindForm::Numeric => format!("{}; the value within a bin is random", self.bins()),
            KindForm::Number if self.keeps_every_number() => "every value".to_owned(),
            KindForm::Number | KindForm::Time | KindForm::Duration | KindForm::Date => {
                format!("{}; the value within a part is random", self.bins())
            }
            KindForm::Datetime => format!(
                "{}, precise to the {}; the value within a part is random",
                self.bins(),
                unit_word(form)
            ),
            KindForm::Identifier => "unrelated to the real identifiers".to_owned(),
            KindForm::Derived => "as precise as the other column".to_owned(),
            KindForm::LeftOut => String::new(),
        }
    }

    /// Describes the bins of an ordered column, and their parts.
    fn bins(&self) -> String {
        let form = self.form;
        let edges = form
            .edges
            .as_ref()
            .map(|edges| edges.len().saturating_sub(1) as u64);
        let bins = counted(form.bins.or(edges).unwrap_or(1), "bin");
        match self.parts().into_iter().max() {
            Some(most) if most > 1 => format!("{bins} of up to {most} parts"),
            _ => bins,
        }
    }

    /// Returns the number of parts of each code of the first attribute, without that of a missing value.
    fn parts(&self) -> Vec<u32> {
        let start = self.field.attributes().start;
        let Some(column) = self.schema.columns().get(start) else {
            return Vec::new();
        };
        let values = column.size() - usize::from(column.nullable());
        let digits = self.schema.domain().digits();
        let digit = digits.iter().find(|digit| digit.coarse() == start);
        let parts = digit.map_or_else(|| vec![1; values], |digit| digit.parts().to_vec());
        parts.into_iter().take(values).collect()
    }

    /// Whether each number of a column has its own part.
    fn keeps_every_number(&self) -> bool {
        let form = self.form;
        let Some((first, last)) = limits(form) else {
            return false;
        };
        let (Bound::Number(first), Bound::Number(last)) = (first, last) else {
            return false;
        };
        let decimals = form.decimals.unwrap_or(0);
        let step = form.step.unwrap_or_else(|| 10f64.powi(-(decimals as i32)));
        let inside = ((last - first) / step).round() + 1.0;
        let is_outside = |bound: &&Bound| match bound {
            Bound::Number(number) => number < first || number > last,
            Bound::Text(_) => true,
        };
        let special = form.special.iter().flatten().filter(is_outside).count();
        let parts: u64 = self.parts().into_iter().map(u64::from).sum();
        parts as f64 >= inside + special as f64
    }
}

/// Whether the texts of a column have the form that programs expect: 12.5, 2024-01-31, 2024-01-31 07:05 or 07:05.
fn is_plain_text(form: &ColumnForm) -> bool {
    let format = form.format.as_deref().unwrap_or_default();
    let is_expected = match form.kind {
        KindForm::Date => format == "%Y-%m-%d",
        KindForm::Datetime => {
            format.starts_with("%Y-%m-%d %H:%M") || format.starts_with("%Y-%m-%dT%H:%M")
        }
        KindForm::Time => format.starts_with("%H:%M"),
        _ => {
            let has_texts = form.before.is_some() || form.after.is_some();
            let has_marks = form.thousands.is_some() || form.decimal_comma == Some(true);
            let is_minus = matches!(form.negative, None | Some(Negative::Minus));
            !has_texts && !has_marks && is_minus
        }
    };
    let missing = form.missing.iter().flatten().next();
    is_expected && missing.is_none_or(String::is_empty)
}

/// Describes the numbers of a column.
fn number_words(form: &ColumnForm) -> String {
    let decimals = form.decimals.unwrap_or(0);
    let mut words = match form.integer {
        Some(true) => "whole number".to_owned(),
        _ if decimals > 0 => format!("number with {}", counted(decimals, "decimal")),
        _ if form.kind == KindForm::Numeric => "number".to_owned(),
        _ => "whole number".to_owned(),
    };
    if let Some(step) = form.step {
        words.push_str(&format!(", in steps of {step}"));
    }
    if form.decimal_comma == Some(true) {
        words.push_str(", decimal comma");
    }
    words
}

/// Returns the texts around each number as its unit.
fn unit(form: &ColumnForm) -> Option<String> {
    let texts = [&form.before, &form.after].into_iter().flatten();
    let texts: Vec<&str> = texts
        .map(|text| text.trim())
        .filter(|text| !text.is_empty())
        .collect();
    (!texts.is_empty()).then(|| texts.join(" "))
}

/// Returns the unit that a date or datetime column counts in, as a word.
fn unit_word(form: &ColumnForm) -> &'static str {
    match (form.unit, form.kind) {
        (Some(TimeUnit::Hour), _) => "hour",
        (Some(TimeUnit::Minute), _) | (None, KindForm::Datetime) => "minute",
        _ if form.format.as_ref().is_some_and(|format| !has_day(format)) => "month",
        _ => "day",
    }
}

fn has_day(format: &str) -> bool {
    ["%d", "%-d", "%e"]
        .iter()
        .any(|letters| format.contains(letters))
}

/// Returns the limits of an ordered column.
fn limits(form: &ColumnForm) -> Option<(&Bound, &Bound)> {
    match &form.edges {
        Some(edges) => edges.first().zip(edges.last()),
        None => form.min.as_ref().zip(form.max.as_ref()),
    }
}

fn bound_text(bound: &Bound) -> String {
    match bound {
        Bound::Number(number) => number.to_string(),
        Bound::Text(text) => text.clone(),
    }
}

fn values(form: &ColumnForm) -> CardValues {
    let owned = |values: &Option<Vec<String>>| values.clone().unwrap_or_default();
    match form.kind {
        KindForm::Categorical => CardValues::List(owned(&form.categories)),
        KindForm::Code => CardValues::List(match &form.chapters {
            Some(chapters) => chapters
                .iter()
                .flat_map(|chapter| chapter.codes.clone())
                .collect(),
            None => owned(&form.codes),
        }),
        KindForm::Derived => match &form.values {
            Some(values) => CardValues::List(distinct(values.values())),
            None => CardValues::Open,
        },
        KindForm::Identifier | KindForm::LeftOut => CardValues::Open,
        _ => match limits(form) {
            Some((first, last)) => CardValues::Range {
                first: bound_text(first),
                last: match &form.relative_to {
                    Some(other) => {
                        format!(
                            "{} {}s after \"{other}\"",
                            bound_text(last),
                            unit_word(form)
                        )
                    }
                    None => bound_text(last),
                },
                special: form.special.iter().flatten().map(bound_text).collect(),
            },
            None => CardValues::Open,
        },
    }
}

/// Returns the texts that are not empty, each once, in their order.
fn distinct<'a>(texts: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut known = HashSet::new();
    let found = texts.filter(|text| !text.is_empty() && known.insert(*text));
    found.cloned().collect()
}

/// Describes the type of a column's values, for people.
pub(crate) fn type_words(output: Output) -> &'static str {
    match output {
        Output::Text | Output::Category => "text",
        Output::Flag => "true or false",
        Output::Integer => "whole number",
        Output::Decimal(_) | Output::Number => "number",
        Output::Date => "date",
        Output::TimeOfDay(_) => "time of day",
        Output::Duration(TickUnit::Millisecond | TickUnit::Microsecond | TickUnit::Nanosecond) => {
            "duration"
        }
        Output::Timestamp { .. } => "date and time",
    }
}

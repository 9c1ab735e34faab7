//! Fields: the columns of a table as its holder has it, and the attributes that each becomes.

use std::{collections::BTreeMap, ops::Range};

use rand::Rng;

use crate::{
    Column, Value,
    attributes::{Codes, FieldPart, Resolved, digits},
    codes::CodeBook,
    form::{ColumnForm, Invalid},
    identifier::Pattern,
    number::NumberField,
    options::is_missing,
    ordered_words::Drawn,
    times::{Dated, Lapse, Steps, Time, TimeFormat},
};

/// A column of a table as its holder has it. Most fields are one attribute. A number with digits is
/// two: a coarse attribute and a fine one that depends on it. A datetime is up to four. Identifiers
/// and left-out fields have none.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub(crate) name: String,
    pub(crate) nullable: bool,
    pub(crate) meaning: Meaning,
    /// The attributes, which are consecutive.
    pub(crate) attributes: Range<usize>,
    /// The attributes again, each coarse one with its digit.
    pub(crate) parts: Vec<FieldPart>,
    /// Texts that stand for a missing value, in addition to the empty one. The first is written.
    pub(crate) missing: Vec<String>,
    /// What to do with cells that have no valid value; an error if `None`.
    pub(crate) invalid: Option<Invalid>,
    /// The form in the schema; `None` for a categorical or numeric field, which its attribute
    /// and the fields above describe completely.
    pub(crate) form: Option<Box<ColumnForm>>,
}

/// How the value of a field follows from another field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Derived {
    /// Name of the other field, which may come later.
    pub(crate) from: String,
    /// The value for each value of the other field; the same value if `None`.
    pub(crate) values: Option<BTreeMap<String, String>>,
}

/// What the codes of a field's attributes mean together.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Meaning {
    /// The field has one attribute, with the same meaning.
    Plain,
    Number(NumberField),
    Time(Time),
    Lapse(Lapse),
    Steps(Steps),
    Code(CodeBook),
    Identifier(Pattern),
    /// A value that follows from another field.
    Derived(Derived),
    LeftOut,
}

impl Field {
    /// The field's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether values may be missing.
    pub fn nullable(&self) -> bool {
        self.nullable
    }

    /// The text that a synthetic table has for a missing value, if the schema names one.
    pub fn missing_text(&self) -> Option<&str> {
        self.missing.first().map(String::as_str)
    }

    /// Whether `text` stands for a missing value: it is empty, or the schema names it.
    pub fn is_missing(&self, text: &str) -> bool {
        text.is_empty() || is_missing(text, &self.missing)
    }

    /// The attributes that the values become; empty for left-out and derived fields and for identifiers.
    pub fn attributes(&self) -> Range<usize> {
        self.attributes.clone()
    }

    /// Whether a synthetic table has the field.
    pub fn is_written(&self) -> bool {
        self.meaning != Meaning::LeftOut
    }

    /// Whether sampling generates new values for the field.
    pub fn is_identifier(&self) -> bool {
        matches!(self.meaning, Meaning::Identifier(_))
    }

    /// The format of the field's times, if it has dates, times of day or durations. [`crate::RawColumn`] has these as
    /// seconds.
    pub fn time_format(&self) -> Option<&TimeFormat> {
        match &self.meaning {
            Meaning::Time(time) => Some(&time.dated.format),
            Meaning::Lapse(lapse) => Some(&lapse.dated.format),
            Meaning::Steps(steps) => Some(&steps.format),
            _ => None,
        }
    }

    /// Number of identifiers that follow the pattern exactly, if it is limited. Identifiers of later records are
    /// longer.
    pub fn capacity(&self) -> Option<u64> {
        match &self.meaning {
            Meaning::Identifier(pattern) => pattern.capacity(),
            _ => None,
        }
    }
}

impl Field {
    /// The numbers of a field of numbers.
    pub(crate) fn number(&self) -> Option<&NumberField> {
        match &self.meaning {
            Meaning::Number(number) => Some(number),
            _ => None,
        }
    }

    /// The format and the words of a field of dates or datetimes.
    pub(crate) fn dated(&self) -> Option<&Dated> {
        match &self.meaning {
            Meaning::Time(time) => Some(&time.dated),
            Meaning::Lapse(lapse) => Some(&lapse.dated),
            _ => None,
        }
    }
}

impl Meaning {
    /// Returns the attributes of a field with this meaning. A plain field has none here: its
    /// attribute is built separately.
    pub(crate) fn resolve(&self) -> Vec<Resolved> {
        match self {
            Self::Plain | Self::Identifier(_) | Self::Derived(_) | Self::LeftOut => Vec::new(),
            Self::Number(NumberField { style, values, .. }) => vec![Resolved {
                suffix: "",
                labels: values.labels(|step| style.number(step).to_string()),
                ordered: true,
                digits: digits(values.parts().collect()),
            }],
            Self::Time(time) => time.resolve(),
            Self::Lapse(lapse) => lapse.resolve(),
            Self::Steps(steps) => steps.resolve(),
            Self::Code(book) => {
                let chapters = book.chapters();
                let parts: Vec<u32> = chapters.iter().map(|c| c.codes.len() as u32).collect();
                vec![Resolved {
                    suffix: "",
                    labels: chapters
                        .iter()
                        .map(|chapter| chapter.name.clone())
                        .collect(),
                    ordered: false,
                    digits: digits(parts),
                }]
            }
        }
    }
}

/// Decodes records, field by field.
pub(crate) struct Decoder<'a> {
    pub(crate) fields: &'a [Field],
    pub(crate) columns: &'a [Column],
}

impl<'a> Decoder<'a> {
    /// Decodes record `number` (counted from 0), whose attributes have the codes `code`, into one
    /// value for each written field.
    pub(crate) fn values(
        &self,
        code: &dyn Fn(usize) -> u32,
        number: u64,
        rng: &mut (impl Rng + ?Sized),
        values: &mut Vec<Value<'a>>,
    ) {
        values.clear();
        // Moments of fields that other fields may be relative to.
        let mut moments: Vec<Option<i64>> = vec![None; self.fields.len()];
        for (index, field) in self.fields.iter().enumerate() {
            let start = field.attributes.start;
            let mut codes = Codes {
                columns: self.columns,
                code,
                parts: field.parts.iter(),
            };
            let value = match &field.meaning {
                Meaning::LeftOut => continue,
                Meaning::Plain => {
                    let column = self.columns.get(start);
                    column.and_then(|column| column.decode(code(start), rng))
                }
                Meaning::Number(NumberField { style, values, .. }) => {
                    let drawn = codes
                        .next()
                        .map(|(group, part)| values.sample(group, part, rng));
                    drawn.map(|drawn| match drawn {
                        Drawn::Step(step) => Value::Decimal(style.number(step)),
                        Drawn::Word(word) => Value::Category(word),
                    })
                }
                Meaning::Time(time) => {
                    let drawn = time.draw(&mut codes, rng);
                    moments[index] = drawn.moment;
                    drawn.value
                }
                Meaning::Lapse(lapse) => {
                    let base = moments.get(lapse.base).copied().flatten();
                    let drawn = lapse.draw(base, &mut codes, rng);
                    moments[index] = drawn.moment;
                    drawn.value
                }
                Meaning::Steps(steps) => steps.draw(&mut codes, rng),
                Meaning::Code(book) => {
                    let code = codes
                        .next()
                        .and_then(|(chapter, place)| book.code(chapter, place));
                    code.map(Value::Category)
                }
                Meaning::Identifier(pattern) => Some(Value::Identifier(pattern.value(number, rng))),
                Meaning::Derived(_) => None,
            };
            values.push(value.unwrap_or(Value::Null));
        }
    }
}

//! Fields: the columns of a table as its holder has it, and the attributes that each becomes.

use std::ops::Range;

use rand::Rng;

use crate::{
    Column, Kind, Value,
    calendar::{DAY, TimeFormat},
    codes::CodeBook,
    decimal::DecimalStyle,
    form::{ColumnForm, Invalid, Unit},
    identifier::Pattern,
    options::is_missing,
    ordered::Ordered,
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

/// A coarse attribute and the fine one that depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FieldPart {
    pub(crate) coarse: usize,
    pub(crate) fine: Option<usize>,
}

/// What the codes of a field's attributes mean together.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Meaning {
    /// The field has one attribute, with the same meaning.
    Plain,
    Number(DecimalStyle, Ordered),
    Time(Time),
    Lapse(Lapse),
    Code(CodeBook),
    Identifier(Pattern),
    LeftOut,
}

/// A date or datetime: its day and, if the unit is finer than a day, its time of day.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Time {
    pub(crate) format: TimeFormat,
    /// Days since 1970-01-01.
    pub(crate) days: Ordered,
    /// Minutes of the day.
    pub(crate) clock: Option<Ordered>,
}

/// A date or datetime relative to another field: the number of units after it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Lapse {
    pub(crate) format: TimeFormat,
    /// Index of the other field, which comes before this one.
    pub(crate) base: usize,
    pub(crate) unit: Unit,
    /// Whether this field is a date, so that calendar days are counted.
    pub(crate) whole_days: bool,
    pub(crate) units: Ordered,
}

/// Type of a field's values, for code that writes tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Texts, including dates and identifiers.
    Text,
    /// Whole numbers.
    Integer,
    /// Numbers.
    Number,
}

/// The number of fine codes under each code of the coarse attribute, and their labels.
pub(crate) struct Digits {
    pub(crate) parts: Vec<u32>,
    pub(crate) labels: Vec<String>,
}

/// A coarse attribute and its digit, as a field resolves to them.
pub(crate) struct Resolved {
    /// Suffix of the attribute's name: "" or " (time)".
    pub(crate) suffix: &'static str,
    pub(crate) labels: Vec<String>,
    pub(crate) ordered: bool,
    pub(crate) digits: Option<Digits>,
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

    /// The attributes that the values become; empty for left-out fields and identifiers.
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

    /// Number of identifiers that follow the pattern exactly, if it is limited. Identifiers of later records are
    /// longer.
    pub fn capacity(&self) -> Option<u64> {
        match &self.meaning {
            Meaning::Identifier(pattern) => pattern.capacity(),
            _ => None,
        }
    }

    /// Returns the type of the field's values. `columns` are the schema's.
    pub fn output(&self, columns: &[Column]) -> Output {
        let plain = columns.get(self.attributes.start).map(Column::kind);
        match (&self.meaning, plain) {
            (Meaning::Plain, Some(Kind::Numeric(binning))) if binning.integer() => Output::Integer,
            (Meaning::Plain, Some(Kind::Numeric(_))) => Output::Number,
            (Meaning::Number(style, _), _) if style.decimals == 0 => Output::Integer,
            (Meaning::Number(..), _) => Output::Number,
            _ => Output::Text,
        }
    }
}

impl Meaning {
    /// Returns the attributes of a field with this meaning. A plain field has none here: its
    /// attribute is built separately.
    pub(crate) fn resolve(&self) -> Vec<Resolved> {
        match self {
            Self::Plain | Self::Identifier(_) | Self::LeftOut => Vec::new(),
            Self::Number(style, ordered) => {
                vec![resolved("", ordered, |step| style.number(step).to_string())]
            }
            Self::Lapse(lapse) => vec![resolved("", &lapse.units, |step| step.to_string())],
            Self::Time(time) => {
                let day = |days: i64| {
                    let (year, month, day) = crate::calendar::date_from_days(days);
                    format!("{year:04}-{month:02}-{day:02}")
                };
                let clock = |minute: i64| format!("{:02}:{:02}", minute / 60, minute % 60);
                let mut all = vec![resolved("", &time.days, day)];
                let times = time.clock.iter();
                all.extend(times.map(|times| resolved(" (time)", times, clock)));
                all
            }
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

fn resolved(suffix: &'static str, ordered: &Ordered, show: impl Fn(i64) -> String) -> Resolved {
    Resolved {
        suffix,
        labels: ordered.labels(show),
        ordered: true,
        digits: digits(ordered.parts().collect()),
    }
}

/// Returns the fine attribute, if any coarse code has more than one part.
fn digits(parts: Vec<u32>) -> Option<Digits> {
    let most = parts.iter().copied().max().filter(|&most| most > 1)?;
    Some(Digits {
        parts,
        labels: (1..=most).map(|part| format!("part {part}")).collect(),
    })
}

/// Iterates over the codes of a field's parts in a record.
struct Codes<'a> {
    columns: &'a [Column],
    code: &'a dyn Fn(usize) -> u32,
    parts: std::slice::Iter<'a, FieldPart>,
}

impl Codes<'_> {
    /// Returns the next coarse code and its fine one (0 if it has none), or `None` for a missing
    /// value.
    fn next(&mut self) -> Option<(u32, u32)> {
        let part = self.parts.next()?;
        let coarse = (self.code)(part.coarse);
        let fine = part.fine.map_or(0, self.code);
        let missing = self.columns.get(part.coarse)?.null_code() == Some(coarse);
        (!missing).then_some((coarse, fine))
    }

    /// Draws a step from the next part's codes.
    fn step(&mut self, ordered: &Ordered, rng: &mut (impl Rng + ?Sized)) -> Option<i64> {
        let (group, part) = self.next()?;
        Some(ordered.sample(group, part, rng))
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
                Meaning::Number(style, ordered) => {
                    let step = codes.step(ordered, rng);
                    step.map(|step| Value::Decimal(style.number(step)))
                }
                Meaning::Time(time) => {
                    moments[index] = time.moment(&mut codes, rng);
                    moments[index].map(|seconds| Value::Moment(time.format.show(seconds)))
                }
                Meaning::Lapse(lapse) => {
                    let base = moments.get(lapse.base).copied().flatten();
                    let moment = lapse.moment(base, &mut codes, rng);
                    moment.map(|seconds| Value::Moment(lapse.format.show(seconds)))
                }
                Meaning::Code(book) => {
                    let code = codes
                        .next()
                        .and_then(|(chapter, place)| book.code(chapter, place));
                    code.map(Value::Category)
                }
                Meaning::Identifier(pattern) => Some(Value::Identifier(pattern.value(number, rng))),
            };
            values.push(value.unwrap_or(Value::Null));
        }
    }
}

impl Time {
    /// Draws a moment from the codes, a multiple of the format's grain; `None` for a missing value.
    fn moment(&self, codes: &mut Codes<'_>, rng: &mut (impl Rng + ?Sized)) -> Option<i64> {
        let day = codes.step(&self.days, rng);
        let clock = self.clock.as_ref().map(|clock| {
            let minute = codes.step(clock, rng);
            // A model may give a day without a time of day. Then any time will do.
            60 * minute.unwrap_or_else(|| rng.random_range(0..DAY / 60))
        });
        let grain = self.format.grain();
        let seconds = match clock {
            Some(seconds) if grain < 60 => seconds + rng.random_range(0..60 / grain) * grain,
            Some(seconds) => seconds - seconds % grain,
            None => rng.random_range(0..DAY / grain) * grain,
        };
        day.map(|day| day * DAY + seconds)
    }
}

impl Lapse {
    /// Draws a moment that is as many units later than `base` as the codes say.
    fn moment(
        &self,
        base: Option<i64>,
        codes: &mut Codes<'_>,
        rng: &mut (impl Rng + ?Sized),
    ) -> Option<i64> {
        let units = codes.step(&self.units, rng);
        let (base, units) = (base?, units?);
        let unit = self.unit.seconds();
        if self.whole_days {
            return Some((base.div_euclid(DAY) + units) * DAY);
        }
        // The multiples of the grain from `units` whole units later up to, but not including, one
        // more.
        let grain = self.format.grain();
        let first = (base + units * unit).div_euclid(grain)
            + i64::from((base + units * unit).rem_euclid(grain) > 0);
        let last = (base + (units + 1) * unit - 1).div_euclid(grain);
        Some(rng.random_range(first..=last.max(first)) * grain)
    }

    /// Returns the number of units from `base` to `moment`.
    pub(crate) fn between(&self, base: i64, moment: i64) -> i64 {
        if self.whole_days {
            moment.div_euclid(DAY) - base.div_euclid(DAY)
        } else {
            (moment - base).div_euclid(self.unit.seconds())
        }
    }
}

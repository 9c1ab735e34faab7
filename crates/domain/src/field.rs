//! Fields: the columns of a table as people have it, and the attributes that each becomes.

use std::ops::Range;

use rand::Rng;

use crate::{
    Column, Kind, Value,
    calendar::{DAY, TimeFormat},
    codes::CodeBook,
    decimal::DecimalStyle,
    form::{ColumnForm, Unit},
    identifier::Pattern,
    ordered::Ordered,
};

/// A column of a table as its holder has it. Most fields are one attribute; numbers with digits
/// are two, a coarse one and a fine one that hangs on it; a datetime has up to four; identifiers
/// and fields that are left out have none.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub(crate) name: String,
    pub(crate) nullable: bool,
    pub(crate) meaning: Meaning,
    /// The attributes, consecutive ones.
    pub(crate) attributes: Range<usize>,
    /// The same, each coarse one with its digit.
    pub(crate) parts: Vec<FieldPart>,
    /// As it is written in the schema; `None` for a categorical or numeric field, whose attribute
    /// says all.
    pub(crate) form: Option<Box<ColumnForm>>,
}

/// A coarse attribute and the one that hangs on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FieldPart {
    pub(crate) coarse: usize,
    pub(crate) fine: Option<usize>,
}

/// What the codes of a field's attributes mean together.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Meaning {
    /// The one attribute says it.
    Plain,
    Number(DecimalStyle, Ordered),
    Time(Time),
    Lapse(Lapse),
    Code(CodeBook),
    Identifier(Pattern),
    LeftOut,
}

/// A date or datetime: its day, and where the unit is finer than that, its time of day.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Time {
    pub(crate) format: TimeFormat,
    /// Days since 1970-01-01.
    pub(crate) days: Ordered,
    /// Minutes of the day.
    pub(crate) clock: Option<Ordered>,
}

/// A date or datetime relative to another field: how many units later it is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Lapse {
    pub(crate) format: TimeFormat,
    /// Index of the other field, which stands before this one.
    pub(crate) base: usize,
    pub(crate) unit: Unit,
    /// Whether this field is a date: then days of the calendar are counted.
    pub(crate) whole_days: bool,
    pub(crate) units: Ordered,
}

/// What the values of a field are, for those who write tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Texts, dates and identifiers among them.
    Text,
    /// Whole numbers.
    Integer,
    /// Numbers.
    Number,
}

/// How many codes a part of a field has beside each code of its coarse attribute.
pub(crate) struct Digits {
    pub(crate) parts: Vec<u32>,
    pub(crate) labels: Vec<String>,
}

/// A coarse attribute and what hangs on it, as a field resolves to them.
pub(crate) struct Resolved {
    /// Ends the attribute's name: "" or " (time)".
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

    /// The attributes that its values become, none for what is left out or made anew.
    pub fn attributes(&self) -> Range<usize> {
        self.attributes.clone()
    }

    /// Whether a synthetic table has the field.
    pub fn is_written(&self) -> bool {
        self.meaning != Meaning::LeftOut
    }

    /// Whether the field is made anew on sampling.
    pub fn is_identifier(&self) -> bool {
        matches!(self.meaning, Meaning::Identifier(_))
    }

    /// How many different identifiers there are, if that is a bound.
    pub fn capacity(&self) -> Option<u64> {
        match &self.meaning {
            Meaning::Identifier(pattern) => pattern.capacity(),
            _ => None,
        }
    }

    /// What its values are; `columns` are the schema's.
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
    /// The attributes of a field of this meaning; empty for a plain one, whose attribute is
    /// built by itself.
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

/// The fine attribute, where any coarse code has more than one part.
fn digits(parts: Vec<u32>) -> Option<Digits> {
    let most = parts.iter().copied().max().filter(|&most| most > 1)?;
    Some(Digits {
        parts,
        labels: (1..=most).map(|part| format!("part {part}")).collect(),
    })
}

/// The codes of a field's parts in a record.
struct Codes<'a> {
    columns: &'a [Column],
    code: &'a dyn Fn(usize) -> u32,
    parts: std::slice::Iter<'a, FieldPart>,
}

impl Codes<'_> {
    /// A coarse code and its fine one, 0 where there is none; `None` for a missing value.
    fn next(&mut self) -> Option<(u32, u32)> {
        let part = self.parts.next()?;
        let coarse = (self.code)(part.coarse);
        let fine = part.fine.map_or(0, self.code);
        let missing = self.columns.get(part.coarse)?.null_code() == Some(coarse);
        (!missing).then_some((coarse, fine))
    }

    /// A step drawn from the next part's codes.
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
    /// The values of record `number` (counted from 0) whose attributes have the codes `code`, one
    /// for each field that is written.
    pub(crate) fn values(
        &self,
        code: &dyn Fn(usize) -> u32,
        number: u64,
        rng: &mut (impl Rng + ?Sized),
        values: &mut Vec<Value<'a>>,
    ) {
        values.clear();
        // Moments of fields that others may be relative to.
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
    /// A moment of the codes, a multiple of the format's grain; `None` for a missing value.
    fn moment(&self, codes: &mut Codes<'_>, rng: &mut (impl Rng + ?Sized)) -> Option<i64> {
        let day = codes.step(&self.days, rng);
        let clock = self.clock.as_ref().map(|clock| {
            let minute = codes.step(clock, rng);
            // A day without its time, which a model may give: any time will do.
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
    /// So many units later than `base` as the codes say.
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
        // The multiples of the grain that are `units` whole units later, and less than one more.
        let grain = self.format.grain();
        let first = (base + units * unit).div_euclid(grain)
            + i64::from((base + units * unit).rem_euclid(grain) > 0);
        let last = (base + (units + 1) * unit - 1).div_euclid(grain);
        Some(rng.random_range(first..=last.max(first)) * grain)
    }

    /// How many units `moment` is later than `base`.
    pub(crate) fn between(&self, base: i64, moment: i64) -> i64 {
        if self.whole_days {
            moment.div_euclid(DAY) - base.div_euclid(DAY)
        } else {
            (moment - base).div_euclid(self.unit.seconds())
        }
    }
}

//! The letters of a format, and the items that they become.

use jiff::{civil::date, fmt::strtime};

use super::{
    names::{MONTHS, TimeNames, WEEKDAYS},
    options::TimeOptions,
};

/// A part of a date or time. A format has each part at most once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Year,
    /// The last two digits of a year.
    ShortYear,
    Month,
    Day,
    Weekday,
    Hour,
    /// The hour of a clock with twelve hours.
    Hour12,
    /// The half of the day, AM or PM.
    Half,
    Minute,
    Second,
    Fraction,
    Offset,
}

impl Part {
    /// Number of parts.
    pub(super) const COUNT: usize = Self::Offset as usize + 1;
}

/// The characters in place of a number's leading zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pad {
    Zero,
    Blank,
    None,
}

/// How UTC offsets are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OffsetForm {
    /// `+0100`
    Plain,
    /// `+01:00`
    Colon,
    /// `+01` or `+05:30`
    Short,
    /// `CET`
    Name,
}

/// An item of a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// Text that stands for itself.
    Text(String),
    Number(Part, Pad),
    /// A part that is one of a list of names.
    Name(Part, TimeNames),
    /// Digits of a second; with `None`, as many as needed. `dot` includes the point before them.
    Fraction {
        dot: bool,
        digits: Option<u32>,
    },
    Offset(OffsetForm),
}

impl Item {
    /// The part that the item writes, if it is not text.
    pub(super) fn part(&self) -> Option<Part> {
        match self {
            Self::Text(_) => None,
            Self::Number(part, _) | Self::Name(part, _) => Some(*part),
            Self::Fraction { .. } => Some(Part::Fraction),
            Self::Offset(_) => Some(Part::Offset),
        }
    }
}

/// Splits a format into items. The options have the names of months and weekdays.
///
/// # Errors
/// A directive that has no meaning.
pub(super) fn items(format: &str, options: &TimeOptions) -> Result<Vec<Item>, String> {
    let mut items: Vec<Item> = Vec::new();
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        let item = match letter {
            '%' => directive(&mut letters, options)?,
            _ => Item::Text(letter.into()),
        };
        match (items.last_mut(), item) {
            (Some(Item::Text(text)), Item::Text(more)) => text.push_str(&more),
            (_, item) => items.push(item),
        }
    }
    Ok(items)
}

/// Reads the rest of a directive such as `%-d` or `%.3f`, after its `%`.
fn directive(letters: &mut std::str::Chars<'_>, options: &TimeOptions) -> Result<Item, String> {
    let rest = letters.as_str();
    let length = rest.find(|letter: char| letter.is_ascii_alphabetic() || letter == '%');
    let length = length.map_or(rest.len(), |length| length + 1);
    let (directive, after) = rest.split_at(length);
    *letters = after.chars();
    item(directive, options).ok_or_else(|| format!("%{directive}"))
}

fn item(directive: &str, options: &TimeOptions) -> Option<Item> {
    let named = |part, names: Option<TimeNames>| names.map(|names| Item::Name(part, names));
    let number = |part| Some(Item::Number(part, Pad::Zero));
    let bare = |part| Some(Item::Number(part, Pad::None));
    let blank = |part| Some(Item::Number(part, Pad::Blank));
    match directive {
        "%" => Some(Item::Text("%".to_owned())),
        "Y" => number(Part::Year),
        "y" => number(Part::ShortYear),
        "m" => number(Part::Month),
        "-m" => bare(Part::Month),
        "d" => number(Part::Day),
        "-d" => bare(Part::Day),
        "e" => blank(Part::Day),
        "H" => number(Part::Hour),
        "-H" => bare(Part::Hour),
        "k" => blank(Part::Hour),
        "I" => number(Part::Hour12),
        "-I" => bare(Part::Hour12),
        "l" => blank(Part::Hour12),
        "M" => number(Part::Minute),
        "-M" => bare(Part::Minute),
        "S" => number(Part::Second),
        "-S" => bare(Part::Second),
        "z" => Some(Item::Offset(OffsetForm::Plain)),
        ":z" => Some(Item::Offset(OffsetForm::Colon)),
        ":::z" => Some(Item::Offset(OffsetForm::Short)),
        "Z" => Some(Item::Offset(OffsetForm::Name)),
        "p" | "P" => named(Part::Half, halves(directive)),
        "b" | "^b" | "#b" | "B" | "^B" | "#B" => named(
            Part::Month,
            match &options.months {
                Some(names) => in_case(names, directive),
                None => months(directive),
            },
        ),
        "a" | "^a" | "#a" | "A" | "^A" | "#A" => named(
            Part::Weekday,
            match &options.weekdays {
                Some(names) => in_case(names, directive),
                None => weekdays(directive),
            },
        ),
        _ => fraction(directive),
    }
}

/// Reads `f`, `3f`, `.f` or `.3f`.
pub(super) fn fraction(directive: &str) -> Option<Item> {
    let digits = directive.strip_suffix('f')?;
    let (dot, digits) = match digits.strip_prefix('.') {
        Some(digits) => (true, digits),
        None => (false, digits),
    };
    let digits = match digits.as_bytes() {
        [] => None,
        [digit @ b'1'..=b'9'] => Some(u32::from(digit - b'0')),
        _ => return None,
    };
    Some(Item::Fraction { dot, digits })
}

/// A column's own names, with the letters that the directive asks for.
fn in_case(names: &TimeNames, directive: &str) -> Option<TimeNames> {
    match directive.as_bytes().first() {
        Some(b'^') => names.map(str::to_uppercase),
        Some(b'#') => names.map(str::to_lowercase),
        _ => Some(names.clone()),
    }
}

/// English names of the months, from January.
fn months(directive: &str) -> Option<TimeNames> {
    let names = (1..=12).map(|month| name(directive, date(2024, month, 1)));
    TimeNames::of(names.collect(), MONTHS)
}

/// English names of the weekdays, from Monday.
fn weekdays(directive: &str) -> Option<TimeNames> {
    // 2024-01-01 is a Monday.
    let names = (1..=7).map(|day| name(directive, date(2024, 1, day)));
    TimeNames::of(names.collect(), WEEKDAYS)
}

/// Names of the halves of a day, from the first.
fn halves(directive: &str) -> Option<TimeNames> {
    let day = date(2024, 1, 1);
    let names = [0, 12].map(|hour| name(directive, day.at(hour, 0, 0, 0)));
    TimeNames::of(names.into(), 2)
}

/// Formats one directive. `jiff` has no lower-case names, so that `#` stands for them here.
fn name(directive: &str, moment: impl Into<strtime::BrokenDownTime>) -> String {
    let (lower, directive) = match directive.strip_prefix('#') {
        Some(directive) => (true, directive),
        None => (false, directive),
    };
    let name = strtime::format(format!("%{directive}"), moment).unwrap_or_default();
    if lower {
        name.to_ascii_lowercase()
    } else {
        name
    }
}

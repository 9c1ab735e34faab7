//! Formats of dates, datetimes, times of day and durations.

use super::{
    date::{DAY, Grid, YEARS},
    iso,
    letters::{Item, OffsetForm, Pad, Part, items},
    names::TimeNames,
    options::TimeOptions,
    problem::{FormatProblem, MAX_FORMAT},
};
use crate::form::KindForm;

/// Digits of a fraction whose format names no number of digits, when it is written.
const USUAL_DIGITS: u32 = 6;

/// The format of a column's dates, datetimes, times of day or durations, such as `%d.%m.%Y %H:%M`.
///
/// ```
/// use fhaim_domain::{TimeFormat, form::KindForm};
///
/// let format = TimeFormat::parse("%d.%m.%Y %H:%M", KindForm::Datetime)?;
/// assert_eq!(format.read("02.01.1970 00:01"), Some(86_460));
/// assert_eq!(format.read("2.1.1970 00:01"), None);
/// assert_eq!(format.show(86_460).to_string(), "02.01.1970 00:01");
/// # Ok::<(), fhaim_domain::FormatProblem>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeFormat {
    pub(super) kind: KindForm,
    pub(super) items: Vec<Item>,
    pub(super) options: TimeOptions,
    /// Whether the format has each part.
    present: [bool; Part::COUNT],
    /// The part of a duration that may have any value: the largest.
    pub(super) open: Option<Part>,
    /// Whether texts are durations as ISO 8601 writes them, without the parts that are zero.
    pub(super) is_iso: bool,
}

impl TimeFormat {
    /// Parses the format of a column of kind `date`, `datetime`, `time` or `duration`. Every other
    /// kind is treated as `datetime`.
    ///
    /// # Errors
    /// See [`FormatProblem`].
    pub fn parse(format: &str, kind: KindForm) -> Result<Self, FormatProblem> {
        Self::with_options(format, kind, TimeOptions::default())
    }

    /// Parses a format whose letters depend on settings of the column.
    ///
    /// # Errors
    /// See [`FormatProblem`].
    pub fn with_options(
        format: &str,
        kind: KindForm,
        options: TimeOptions,
    ) -> Result<Self, FormatProblem> {
        let length = format.chars().count();
        if !(1..=MAX_FORMAT).contains(&length) || format.chars().any(char::is_control) {
            return Err(FormatProblem::Length);
        }
        // Blanks around a text are not part of it.
        let format = format.trim();
        let is_iso = kind == KindForm::Duration && iso::is_iso(format);
        let mut format = Self {
            kind,
            items: match is_iso {
                true => iso::items(format)?,
                false => items(format, &options).map_err(FormatProblem::Letter)?,
            },
            options,
            present: [false; Part::COUNT],
            open: None,
            is_iso,
        };
        for part in format.items.iter().filter_map(Item::part) {
            if std::mem::replace(&mut format.present[part as usize], true) {
                return Err(format.parts_problem());
            }
        }
        format.check_parts()?;
        if kind == KindForm::Duration {
            let largest = [Part::Day, Part::Hour, Part::Minute, Part::Second];
            format.open = largest.into_iter().find(|&part| format.has(part));
        }
        let clock = matches!(kind, KindForm::Datetime | KindForm::Time);
        format.options.midnight &= clock && format.has(Part::Hour);
        if !format.has_offsets() {
            format.options.offsets.clear();
        }
        format.check_options()?;
        format.check_widths()?;
        Ok(format)
    }

    /// Whether the format has a part.
    pub(super) fn has(&self, part: Part) -> bool {
        self.present[part as usize]
    }

    fn parts_problem(&self) -> FormatProblem {
        FormatProblem::Parts(match self.kind {
            KindForm::Date => {
                "a year (%Y or %y), a month (%m, %b or %B) and, unless the month is enough, a day (%d)"
            }
            KindForm::Time => "an hour (%H, or %I and %p), then %M, then %S",
            KindForm::Duration => "%H, %M and %S, or some of them without a gap,",
            _ => "%Y (or %y), %m (or %b), %d and %H (or %I and %p), then %M, then %S",
        })
    }

    /// Checks that the parts determine a value of the kind.
    fn check_parts(&self) -> Result<(), FormatProblem> {
        let has = |part| self.has(part);
        let any = |parts: &[Part]| parts.iter().any(|&part| self.has(part));
        let year = has(Part::Year) != has(Part::ShortYear);
        let date = year && has(Part::Month) && (has(Part::Day) || !has(Part::Weekday));
        let no_date = !any(&[Part::Year, Part::ShortYear, Part::Month, Part::Weekday]);
        let twelve = has(Part::Hour12) && has(Part::Half);
        let hour = has(Part::Hour) != twelve && has(Part::Hour12) == has(Part::Half);
        let below = (has(Part::Minute) || !has(Part::Second))
            && (has(Part::Second) || !has(Part::Fraction));
        let no_clock = below && !any(&[Part::Hour, Part::Hour12, Part::Half, Part::Minute]);
        let fits = match self.kind {
            KindForm::Date => date && no_clock && !has(Part::Offset),
            KindForm::Time => no_date && hour && below && !any(&[Part::Day, Part::Offset]),
            KindForm::Duration => no_date && self.is_duration() && !has(Part::Offset),
            _ => date && has(Part::Day) && hour && below,
        };
        match fits {
            true => Ok(()),
            false => Err(self.parts_problem()),
        }
    }

    /// Whether the parts are those of a duration, from the largest to the smallest without a gap.
    fn is_duration(&self) -> bool {
        let parts = [
            Part::Day,
            Part::Hour,
            Part::Minute,
            Part::Second,
            Part::Fraction,
        ];
        let present = parts.map(|part| self.has(part));
        let changes = present.windows(2).filter(|pair| pair[0] != pair[1]).count();
        let ends = usize::from(present[0]) + usize::from(present[4]);
        let clock = present[1] || present[2] || present[3];
        let twelve = self.has(Part::Hour12) || self.has(Part::Half);
        (clock || (self.is_iso && present[0])) && !twelve && changes + ends <= 2
    }

    fn check_options(&self) -> Result<(), FormatProblem> {
        let first = self.options.first_year;
        let four_digits = |first: &i64| (*YEARS.start()..=*YEARS.end() - 99).contains(first);
        match self.has(Part::ShortYear) && !first.as_ref().is_some_and(four_digits) {
            true => Err(FormatProblem::FirstYear),
            false => Ok(()),
        }
    }

    /// Checks that a reader can tell where each part ends.
    fn check_widths(&self) -> Result<(), FormatProblem> {
        if let (KindForm::Duration, Some(Item::Text(text))) = (self.kind, self.items.first())
            && text.starts_with('-')
        {
            return Err(FormatProblem::Minus);
        }
        for (place, pair) in self.items.windows(2).enumerate() {
            let before_digit = match &pair[1] {
                Item::Text(text) => text.starts_with(|letter: char| letter.is_ascii_digit()),
                Item::Number(..) => true,
                Item::Fraction { dot, .. } => !dot,
                Item::Name(..) | Item::Offset(_) => false,
            };
            let before_dot = matches!(&pair[1], Item::Text(text) if text.starts_with('.'));
            let before_mark = matches!(&pair[1], Item::Text(text)
                if !text.starts_with(|letter: char| letter.is_alphanumeric() || "+-:".contains(letter)));
            let problem = match &pair[0] {
                // A blank before the first number is not part of the text.
                Item::Number(_, Pad::Blank) if place == 0 && before_digit => "a number",
                Item::Name(_, names) if is_name_open(names, &pair[1]) => "a name",
                Item::Number(part, pad) if *pad == Pad::None || self.open == Some(*part) => {
                    if !before_digit {
                        continue;
                    }
                    "a number without leading zeros"
                }
                Item::Fraction { digits: None, dot } if before_digit || (*dot && before_dot) => {
                    "a fraction"
                }
                Item::Offset(_) if !before_mark => "an offset",
                _ => continue,
            };
            return Err(FormatProblem::Adjacent(problem));
        }
        Ok(())
    }

    /// Seconds in the smallest unit of the format. Its moments are multiples of it.
    pub fn grain(&self) -> i64 {
        let parts = [
            (Part::Second, 1),
            (Part::Minute, 60),
            (Part::Hour, 3_600),
            (Part::Hour12, 3_600),
        ];
        let smallest = parts.into_iter().find(|&(part, _)| self.has(part));
        smallest.map_or(DAY, |(_, seconds)| seconds)
    }

    /// Whether values are days or moments. Otherwise they are times of day or durations.
    pub fn has_days(&self) -> bool {
        !matches!(self.kind, KindForm::Time | KindForm::Duration)
    }

    /// Whether the format is that of durations.
    pub(crate) fn is_of_durations(&self) -> bool {
        self.kind == KindForm::Duration
    }

    /// Number of decimals of a second in the format.
    pub(crate) fn decimals(&self) -> u32 {
        let digits = |item: &Item| match item {
            Item::Fraction { digits, .. } => Some(digits.unwrap_or(USUAL_DIGITS)),
            _ => None,
        };
        self.items.iter().find_map(digits).unwrap_or(0)
    }

    /// The unit in which a column of this format counts its dates.
    pub(crate) fn grid(&self) -> Grid {
        match self.has(Part::Day) {
            true => Grid::Day,
            false => Grid::Month,
        }
    }

    /// Seconds by which days begin after midnight: with `midnight`, midnight belongs to the day
    /// before it.
    pub(crate) fn day_start(&self) -> i64 {
        match self.options.midnight {
            true => self.grain(),
            false => 0,
        }
    }

    /// Returns the day of a moment, in days since 1970-01-01. A moment that is written as 24:00
    /// belongs to the day before it.
    pub fn day(&self, seconds: i64) -> i64 {
        seconds.saturating_sub(self.day_start()).div_euclid(DAY)
    }

    /// The first and the last moment that the format can write.
    pub(crate) fn range(&self) -> (i64, i64) {
        let (first, last) = match (self.has(Part::ShortYear), self.options.first_year) {
            (true, Some(first)) => (first, first + 99),
            _ => (*YEARS.start(), *YEARS.end()),
        };
        let start = |year| super::days_from_date(year, 1, 1).unwrap_or(0) * DAY;
        let end = super::days_from_date(last, 12, 31).unwrap_or(0) * DAY + DAY;
        let shift = self.day_start();
        (start(first) + shift, end + shift - self.grain())
    }

    /// Whether the format has two-digit years.
    pub(crate) fn has_short_years(&self) -> bool {
        self.has(Part::ShortYear)
    }

    /// Whether texts have one of the column's offsets.
    pub fn has_offsets(&self) -> bool {
        self.has(Part::Offset)
    }

    /// Whether midnight may be written as 24:00.
    pub(crate) fn has_midnight(&self) -> bool {
        self.options.midnight
    }

    /// Whether texts have the name of a month.
    pub(crate) fn has_month_names(&self) -> bool {
        self.has_names(Part::Month)
    }

    /// Whether texts have the name of a weekday.
    pub(crate) fn has_weekday_names(&self) -> bool {
        self.has_names(Part::Weekday)
    }

    fn has_names(&self, wanted: Part) -> bool {
        let names = |item: &Item| matches!(item, Item::Name(part, _) if *part == wanted);
        self.items.iter().any(names)
    }

    /// The offsets of the column.
    pub(crate) fn offsets(&self) -> &[String] {
        &self.options.offsets
    }

    /// Whether a text is an offset as the format writes them.
    pub(crate) fn is_offset(&self, text: &str) -> bool {
        let form = self.items.iter().find_map(|item| match item {
            Item::Offset(form) => Some(*form),
            _ => None,
        });
        form.is_some_and(|form| form.length(text.as_bytes()) == Some(text.len()))
    }
}

/// Whether the next item may continue a name.
fn is_name_open(names: &TimeNames, next: &Item) -> bool {
    match next {
        Item::Text(text) => names.run_into(text),
        Item::Name(..) => names.overlap(),
        _ => false,
    }
}

impl OffsetForm {
    /// Length of the offset at the beginning of a text. Zero may be written as `Z`.
    pub(super) fn length(self, text: &[u8]) -> Option<usize> {
        const LONGEST_NAME: usize = 8;
        let letters = text
            .iter()
            .take_while(|letter| letter.is_ascii_alphabetic());
        let letters = letters.count();
        if self == Self::Name {
            return (1..=LONGEST_NAME).contains(&letters).then_some(letters);
        }
        if letters > 0 {
            return (letters == 1 && text.first() == Some(&b'Z')).then_some(1);
        }
        // The digits as zeros, up to the longest offset.
        let mut shape = [0; 6];
        for (shape, &byte) in shape.iter_mut().zip(text) {
            *shape = if byte.is_ascii_digit() { b'0' } else { byte };
        }
        match (self, &shape) {
            (Self::Plain, [b'+' | b'-', b'0', b'0', b'0', b'0', _]) => Some(5),
            (Self::Colon | Self::Short, [b'+' | b'-', b'0', b'0', b':', b'0', b'0']) => Some(6),
            (Self::Short, [b'+' | b'-', b'0', b'0', ..]) => Some(3),
            _ => None,
        }
    }
}

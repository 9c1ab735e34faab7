//! Formats of dates, datetimes, times of day and durations that a text may have.
//!
//! The search goes through the text from its beginning. It tries every letter of a format that fits
//! the next characters, and the characters themselves, and keeps the formats that read the text.

use std::collections::HashSet;

use fhaim_domain::{TimeFormat, TimeOptions, form::KindForm};

use super::names::{months, weekdays};

/// Texts with more bytes are no dates.
const MAX_TEXT: usize = 48;

/// Maximum number of numbers in a text: six parts, a fraction, and an offset.
const MAX_NUMBERS: usize = 9;

/// Maximum number of digits without another character between them.
const MAX_DIGITS: usize = 14;

/// Characters that may stand between parts, at most [`MAX_MARKS`] in a row.
const MARKS: &str = " -/.,:_";
const MAX_MARKS: usize = 3;

/// Words that may follow a part of a date or time of day, and stand for themselves.
const WORDS: [&str; 12] = [
    "T", "Z", "h", "Uhr", "at", "um", "de", "del", "à", "às", "om", "alle",
];

/// Words that name a part of a duration.
const UNITS: [(Part, &[&str]); 4] = [
    (Part::Day, &["days", "day", "d", "D", "Tage", "Tag"]),
    (Part::Hour, &["hours", "hour", "hrs", "hr", "h", "H", "Std"]),
    (
        Part::Minute,
        &["minutes", "minute", "mins", "min", "m", "M", "Min"],
    ),
    (
        Part::Second,
        &["seconds", "second", "secs", "sec", "s", "S", "Sek"],
    ),
];

/// First of the hundred years that two-digit years stand for while a column is read.
const FIRST_YEAR: i64 = 1950;

/// A part of a date, time or duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Year,
    Month,
    Day,
    Weekday,
    Hour,
    Half,
    Minute,
    Second,
    Fraction,
    Offset,
}

/// How unlikely a format is among those that read a text: by the number of parts without leading
/// zeros, then by rare letters, then by the order of day and month.
type Rank = (usize, usize, usize);

/// A format of the beginning of a text.
#[derive(Clone, Default)]
struct Path {
    format: String,
    parts: Vec<Part>,
    /// Length of the text that the format reads.
    place: usize,
    /// Number of letters that are rare.
    rare: usize,
    /// Number of words that name parts of a duration.
    units: usize,
}

/// The search for the formats of one kind.
struct Search<'t> {
    /// The text, without the minus of a negative duration.
    text: &'t str,
    is_negative: bool,
    kind: KindForm,
    options: TimeOptions,
    found: Vec<(Rank, String)>,
}

/// Returns settings with which 24:00, any offset, and names of months and weekdays in all known languages are read.
/// The draft decides the names and the century of two-digit years.
pub(crate) fn reading_options() -> TimeOptions {
    TimeOptions {
        first_year: Some(FIRST_YEAR),
        midnight: true,
        offsets: Vec::new(),
        months: months().names.clone(),
        weekdays: weekdays().names.clone(),
    }
}

/// Returns all formats that read `text` and whose numbers are as wide as its numbers, with their
/// kinds. A number with two digits or more may have leading zeros (`%d`) or not (`%-d`).
///
/// The letters `%b` and `%a` stand for names of months and weekdays in any known language and form.
///
/// Of formats that read all texts of a column, the first is the likeliest: dates come before times
/// and durations, numbers with leading zeros before those without, and days before months. Digits
/// without any other character are dates, but no times of day or durations.
pub(crate) fn candidate_formats(text: &str) -> Vec<(String, KindForm)> {
    let text = text.trim();
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let numbers = text.split(|letter: char| !letter.is_ascii_digit());
    let numbers = numbers.filter(|number| !number.is_empty()).count();
    if text.len() > MAX_TEXT || numbers > MAX_NUMBERS {
        return Vec::new();
    }
    let iso = || iso_durations(text).map(|format| (format, KindForm::Duration));
    if digits < 2 {
        return iso().collect();
    }
    let kinds = [
        KindForm::Date,
        KindForm::Datetime,
        KindForm::Time,
        KindForm::Duration,
    ];
    let of_kind = |kind| {
        let formats = Search::new(text, kind).formats();
        formats.into_iter().map(move |format| (format, kind))
    };
    kinds.into_iter().flat_map(of_kind).chain(iso()).collect()
}

/// Returns the formats of ISO 8601 in which parts may be left out, if they read `text`. They differ in their largest
/// and smallest part.
fn iso_durations(text: &str) -> impl Iterator<Item = String> {
    const PARTS: [&str; 5] = ["[%-dD]", "[%-HH]", "[%-MM]", "[%-SS]", "[%-S%.fS]"];
    let positive = text.strip_prefix('-').unwrap_or(text);
    let first = if positive.starts_with('P') {
        0..4
    } else {
        0..0
    };
    // A column without days has none in its format.
    let ranges = first
        .rev()
        .flat_map(|first| (first..5).map(move |last| (first, last)));
    let formats = ranges.map(|(first, last)| {
        let parts = (first..=last).filter(|&part| part == last || part != 3 || last < 4);
        let days = if first == 0 { PARTS[0] } else { "" };
        let clock: String = parts
            .filter(|&part| part > 0)
            .map(|part| PARTS[part])
            .collect();
        let mark = if clock.is_empty() { "" } else { "T" };
        format!("P{days}{mark}{clock}")
    });
    formats.filter(move |format| {
        let format = TimeFormat::parse(format, KindForm::Duration);
        format.is_ok_and(|format| format.read(text).is_some())
    })
}

impl Path {
    fn has(&self, part: Part) -> bool {
        self.parts.contains(&part)
    }

    /// Adds a piece of a format that reads the next `length` bytes.
    fn with(&self, format: &str, length: usize) -> Self {
        let mut path = self.clone();
        path.format.push_str(format);
        path.place += length;
        path
    }

    fn with_part(&self, part: Part, letters: &str, length: usize) -> Self {
        let mut path = self.with(letters, length);
        path.parts.push(part);
        path.rare += usize::from(matches!(letters, "%e" | "%k" | "%l" | "%.f" | ",%f"));
        path.rare += usize::from(part == Part::Offset);
        path
    }

    /// Whether a number may have these letters after the numbers before it. Dates that begin with the
    /// year have leading zeros in both month and day or in neither, and an hour after `T` has one.
    fn fits_padding(&self, part: Part, letters: &str, width: usize) -> bool {
        let unpadded = letters.starts_with("%-");
        match part {
            _ if width == 1 => true,
            Part::Day if self.format.starts_with("%Y") && self.format.contains("m") => {
                unpadded == self.format.contains("%-m")
            }
            Part::Hour => !(unpadded && self.format.ends_with('T')),
            _ => true,
        }
    }

    fn has_date(&self) -> bool {
        [Part::Year, Part::Month, Part::Day]
            .into_iter()
            .all(|part| self.has(part))
    }

    /// Returns how unlikely the order of year, month and day is, or `None` if no date has it.
    fn order(&self) -> Option<usize> {
        let is_date = |part: &&Part| matches!(part, Part::Year | Part::Month | Part::Day);
        let order: Vec<Part> = self.parts.iter().filter(is_date).copied().collect();
        let is_long = self.format.contains("%Y");
        let is_compact = self.format.contains("%m%") || self.format.contains("%y%m");
        let is_american = self.format.contains("%p") && self.format.contains('/');
        match order[..] {
            // A duration in days has no year.
            [] | [Part::Day] => Some(0),
            [Part::Year, Part::Month, Part::Day] if is_long || is_compact => Some(0),
            [Part::Year, Part::Month, Part::Day] => Some(3),
            [Part::Day, Part::Month, Part::Year] => Some(1),
            [Part::Month, Part::Day, Part::Year] => Some(if is_american { 0 } else { 2 }),
            [Part::Year, Part::Month] | [Part::Month, Part::Year] => {
                Some(if is_long { 0 } else { 4 })
            }
            _ => None,
        }
    }
}

impl<'t> Search<'t> {
    fn new(text: &'t str, kind: KindForm) -> Self {
        let positive = text
            .strip_prefix('-')
            .filter(|_| kind == KindForm::Duration);
        Self {
            text: positive.unwrap_or(text),
            is_negative: positive.is_some(),
            kind,
            options: reading_options(),
            found: Vec::new(),
        }
    }

    /// Returns the formats, the likelier first.
    fn formats(mut self) -> Vec<String> {
        self.extend(&Path::default());
        // Stable, so that formats of the same rank keep the order in which letters are tried.
        self.found.sort_by_key(|(rank, _)| *rank);
        let mut known = HashSet::new();
        let formats = self.found.into_iter().map(|(_, format)| format);
        formats
            .filter(|format| known.insert(format.clone()))
            .collect()
    }

    fn rest(&self, path: &Path) -> &'t str {
        self.text.get(path.place..).unwrap_or("")
    }

    /// Keeps the format of the whole text if it reads the text.
    fn add(&mut self, path: &Path) {
        let says_time = [":", "%p", "%P", "Uhr", "h"];
        let says_time = says_time.into_iter().any(|mark| path.format.contains(mark));
        let plausible = match self.kind {
            // 12.30 is a number.
            KindForm::Date => self.text.len() > 5 || self.text.contains(['/', '-']),
            KindForm::Time => says_time,
            KindForm::Duration if path.format.starts_with('P') => {
                self.text.ends_with(|letter: char| letter.is_alphabetic())
            }
            KindForm::Duration => {
                let parts = path.parts.iter().filter(|part| **part != Part::Fraction);
                parts.count() > 1 && (path.format.contains(':') || path.units > 0)
            }
            _ => true,
        };
        // A date may end with a point, and nothing else ends with a mark.
        let ended = path.format.ends_with(|mark: char| MARKS.contains(mark))
            && !(path.has_date() && path.format.ends_with('.'));
        let Some(order) = path.order().filter(|_| plausible && !ended) else {
            return;
        };
        let format = TimeFormat::with_options(&path.format, self.kind, self.options.clone());
        let sign = if self.is_negative { "-" } else { "" };
        let reads = |format: TimeFormat| format.read(&format!("{sign}{}", self.text)).is_some();
        if format.is_ok_and(reads) {
            let unpadded = path.format.matches("%-").count();
            self.found
                .push(((unpadded, path.rare, order), path.format.clone()));
        }
    }

    /// Tries all ways to read the rest of the text.
    fn extend(&mut self, path: &Path) {
        let rest = self.rest(path);
        if path.format.ends_with("%S") && !rest.starts_with(['.', ',']) {
            // A fraction that only other texts of the column have.
            self.extend(&path.with_part(Part::Fraction, "%.f", 0));
        }
        if rest.is_empty() {
            return self.add(path);
        }
        if self.kind == KindForm::Date && is_zero_clock(rest) {
            self.add(&path.with(rest, rest.len()));
        }
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let word = rest.chars().take_while(|letter| letter.is_alphabetic());
        let word = rest.get(..word.map(char::len_utf8).sum()).unwrap_or("");
        match (digits, word, self.kind) {
            (1..=MAX_DIGITS, _, KindForm::Duration) => self.extend_by_amount(path, digits),
            (1..=MAX_DIGITS, ..) => self.extend_by_number(path, digits),
            (0, "", _) => self.extend_by_mark(path, rest),
            (0, _, KindForm::Duration) => self.extend_by_unit(path, word),
            (0, ..) => self.extend_by_word(path, word),
            _ => {}
        }
    }

    /// Whether a part of a date or time of day may come next.
    fn allows(&self, path: &Path, part: Part) -> bool {
        use Part::{Day, Fraction, Half, Hour, Minute, Month, Offset, Second, Weekday, Year};
        let last = path.parts.last().copied();
        let mark = path.format.chars().last();
        let fits = match part {
            Year | Month | Day | Weekday => self.allows_date(path, mark),
            Hour => self.allows_clock(path, mark),
            Minute => last == Some(Hour),
            Second => last == Some(Minute),
            Fraction => last == Some(Second),
            Half => matches!(last, Some(Hour | Minute | Second | Fraction)),
            Offset => {
                let after_clock = matches!(last, Some(Hour | Minute | Second | Fraction | Half));
                after_clock && self.kind == KindForm::Datetime
            }
        };
        fits && !path.has(part)
    }

    /// Whether a part of a date may follow `mark`. A date is before or after the time of day, except
    /// for a year at the end.
    fn allows_date(&self, path: &Path, mark: Option<char>) -> bool {
        let after_clock = match path.parts.last() {
            None | Some(Part::Year | Part::Month | Part::Day | Part::Weekday) => true,
            Some(Part::Hour) => false,
            Some(_) => matches!(mark, Some(' ' | ',')),
        };
        let colon = mark == Some(':') && !path.format.starts_with("%Y");
        self.kind != KindForm::Time && after_clock && !colon
    }

    /// Whether a time of day may follow `mark`.
    fn allows_clock(&self, path: &Path, mark: Option<char>) -> bool {
        let before = path.parts.is_empty() || path.parts == [Part::Weekday];
        let after = path.has_date() || (path.has(Part::Month) && path.has(Part::Day));
        let mark = !matches!(mark, Some('/' | '.'));
        self.kind != KindForm::Date && mark && (before || after)
    }

    /// Tries the parts of a date or time of day that the next digits may be.
    fn extend_by_number(&mut self, path: &Path, digits: usize) {
        const NUMBERS: [(Part, &str, usize); 16] = [
            (Part::Year, "%Y", 4),
            (Part::Year, "%y", 2),
            (Part::Month, "%m", 2),
            (Part::Month, "%-m", 1),
            (Part::Month, "%-m", 2),
            (Part::Day, "%d", 2),
            (Part::Day, "%-d", 1),
            (Part::Day, "%-d", 2),
            (Part::Hour, "%H", 2),
            (Part::Hour, "%-H", 1),
            (Part::Hour, "%-H", 2),
            (Part::Hour, "%I", 2),
            (Part::Hour, "%-I", 1),
            (Part::Hour, "%-I", 2),
            (Part::Minute, "%M", 2),
            (Part::Second, "%S", 2),
        ];
        let before = self.text.get(..path.place).unwrap_or("");
        let inside = before.ends_with(|letter: char| letter.is_ascii_digit());
        let all_digits = before.bytes().all(|byte| byte.is_ascii_digit());
        let in_date = matches!(
            path.parts.last(),
            Some(Part::Year | Part::Month | Part::Day)
        );
        for (part, letters, width) in NUMBERS {
            let is_date = matches!(part, Part::Year | Part::Month | Part::Day);
            let fits = if inside || width < digits {
                // Digits without other characters between them: a date, and after it a clock.
                let short = letters == "%y" && !all_digits;
                let clock = !is_date && path.has_date() && !(inside && in_date && !all_digits);
                !letters.starts_with("%-") && !short && (is_date || clock)
            } else {
                width == digits && path.fits_padding(part, letters, width)
            };
            if fits && self.allows(path, part) {
                self.extend(&path.with_part(part, letters, width));
            }
        }
        if digits == 2 {
            self.extend_by_blank(path);
        }
    }

    /// Tries days and hours that may have a blank in place of a leading zero. They occur next to
    /// names of months.
    fn extend_by_blank(&mut self, path: &Path) {
        let named = path.format.contains('b') && path.format.ends_with(' ');
        for (part, letters) in [(Part::Day, "%e"), (Part::Hour, "%k"), (Part::Hour, "%l")] {
            if named && self.allows(path, part) {
                self.extend(&path.with_part(part, letters, 2));
            }
        }
    }

    /// Tries names of months, weekdays and halves of the day, zones, and known words.
    fn extend_by_word(&mut self, path: &Path, word: &str) {
        let rest = self.rest(path);
        let found = [
            (Part::Month, "%b", &self.options.months),
            (Part::Weekday, "%a", &self.options.weekdays),
        ]
        .map(|(part, letters, names)| {
            let found = names.as_ref().and_then(|names| names.find(rest));
            (part, letters, found.map(|(_, length)| length))
        });
        for (part, letters, length) in found {
            if let Some(length) = length
                && self.allows(path, part)
            {
                self.extend(&path.with_part(part, letters, length));
            }
        }
        let half = match word {
            "AM" | "PM" => Some("%p"),
            "am" | "pm" => Some("%P"),
            _ => None,
        };
        if let Some(letters) = half
            && self.allows(path, Part::Half)
        {
            self.extend(&path.with_part(Part::Half, letters, word.len()));
        }
        if WORDS.contains(&word) && !path.parts.is_empty() {
            self.extend(&path.with(word, word.len()));
        }
        if self.allows(path, Part::Offset) {
            let capital = word.bytes().all(|letter| letter.is_ascii_uppercase());
            let forms: &[&str] = match word {
                "Z" => &["%:z", "%z"],
                _ if capital && (3..=5).contains(&word.len()) => &["%Z"],
                _ => &[],
            };
            for form in forms {
                self.extend(&path.with_part(Part::Offset, form, word.len()));
            }
        }
    }

    /// Tries fractions, offsets, blanks in place of zeros, and the next character itself.
    fn extend_by_mark(&mut self, path: &Path, rest: &str) {
        let Some(mark) = rest.chars().next() else {
            return;
        };
        let after = rest.get(mark.len_utf8()..).unwrap_or("");
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        if matches!(mark, '.' | ',')
            && (1..=9).contains(&digits)
            && self.allows(path, Part::Fraction)
        {
            let (fixed, open) = match mark {
                '.' => (format!("%.{digits}f"), "%.f"),
                _ => (format!(",%{digits}f"), ",%f"),
            };
            self.extend(&path.with_part(Part::Fraction, &fixed, digits + 1));
            self.extend(&path.with_part(Part::Fraction, open, digits + 1));
        }
        if matches!(mark, '+' | '-') && self.allows(path, Part::Offset) {
            for (form, length) in [("%:z", 6), ("%z", 5), ("%:::z", 6), ("%:::z", 3)] {
                if rest.is_char_boundary(length.min(rest.len())) && length <= rest.len() {
                    self.extend(&path.with_part(Part::Offset, form, length));
                }
            }
        }
        if mark == ' ' && digits == 1 {
            self.extend_by_blank(path);
        }
        let marks = path
            .format
            .chars()
            .rev()
            .take_while(|mark| MARKS.contains(*mark));
        if MARKS.contains(mark) && marks.count() < MAX_MARKS && !path.parts.is_empty() {
            self.extend(&path.with(mark.encode_utf8(&mut [0; 4]), mark.len_utf8()));
        }
    }

    /// Tries the parts of a duration that the next digits may be: any part first, then the next
    /// smaller one.
    fn extend_by_amount(&mut self, path: &Path, digits: usize) {
        const AMOUNTS: [(Part, &str, &str); 4] = [
            (Part::Day, "%d", "%-d"),
            (Part::Hour, "%H", "%-H"),
            (Part::Minute, "%M", "%-M"),
            (Part::Second, "%S", "%-S"),
        ];
        let last = path.parts.last();
        let last = last.and_then(|last| AMOUNTS.iter().position(|(part, ..)| part == last));
        for (place, (part, padded, unpadded)) in AMOUNTS.into_iter().enumerate() {
            let is_next = last.map_or(path.parts.is_empty(), |last| place == last + 1);
            // Without words for the parts, the last of them are minutes or seconds with a zero.
            let fixed = matches!(part, Part::Minute | Part::Second) && !path.parts.is_empty();
            let apart = path.units > 0 || path.format.ends_with([' ', '.']);
            let after_days = last == Some(0) && !apart;
            if !is_next || after_days || (digits == 1 && fixed && path.units == 0) {
                continue;
            }
            if digits > 1 {
                self.extend(&path.with_part(part, padded, digits));
            }
            if !fixed || path.units > 0 {
                self.extend(&path.with_part(part, unpadded, digits));
            }
        }
    }

    /// Tries words that name the last part of a duration, and the letters of ISO durations.
    fn extend_by_unit(&mut self, path: &Path, word: &str) {
        let is_iso = path.format.is_empty() && matches!(word, "P" | "PT");
        let is_time = word == "T" && path.format.starts_with('P');
        let names_last = |(part, words): (Part, &[&str])| {
            path.parts.last() == Some(&part) && words.contains(&word)
        };
        let names_part = UNITS.into_iter().any(names_last);
        if is_iso || is_time || names_part {
            let mut path = path.with(word, word.len());
            path.units += 1;
            self.extend(&path);
            return;
        }
        // The letter after the days of an ISO duration: P1DT4H.
        if let Some(day) = word.strip_suffix('T').filter(|day| *day == "D") {
            let mut path = path.with(day, day.len());
            path.units += 1;
            self.extend(&path.with("T", 1));
        }
    }
}

/// Whether the rest of a text is midnight, which tables of dates may have after every date.
fn is_zero_clock(rest: &str) -> bool {
    let Some(clock) = rest.strip_prefix([' ', 'T']) else {
        return false;
    };
    let clock = clock
        .strip_suffix('Z')
        .or(clock.strip_suffix("+00:00"))
        .unwrap_or(clock);
    let (clock, decimals) = clock.split_once('.').unwrap_or((clock, "0"));
    let zeros = !decimals.is_empty() && decimals.bytes().all(|byte| byte == b'0');
    zeros && ["0:00", "00:00", "0:00:00", "00:00:00"].contains(&clock)
}

#[cfg(test)]
mod tests {
    use super::*;
    use KindForm::{Date, Datetime, Duration, Time};
    use proptest::prelude::*;

    fn formats(text: &str, kind: KindForm) -> Vec<String> {
        let all = candidate_formats(text).into_iter();
        all.filter(|(_, of)| *of == kind)
            .map(|(format, _)| format)
            .collect()
    }

    #[test]
    fn likeliest_format_comes_first() {
        for (text, format, kind) in [
            ("2024-01-31", "%Y-%m-%d", Date),
            ("2024.01.31", "%Y.%m.%d", Date),
            ("2024/1/5", "%Y/%-m/%-d", Date),
            ("31.01.2024", "%d.%m.%Y", Date),
            ("5.3.2021", "%-d.%-m.%Y", Date),
            ("05/03/2021", "%d/%m/%Y", Date),
            ("05/13/2021", "%m/%d/%Y", Date),
            ("1/31/2024", "%-m/%d/%Y", Date),
            ("08/02/83", "%d/%m/%y", Date),
            ("09.02.23", "%d.%m.%y", Date),
            ("20220426", "%Y%m%d", Date),
            ("26042022", "%d%m%Y", Date),
            ("220426", "%y%m%d", Date),
            ("202204", "%Y%m", Date),
            ("2024-05", "%Y-%m", Date),
            ("05/2024", "%m/%Y", Date),
            ("May 2024", "%b %Y", Date),
            ("March 2024", "%b %Y", Date),
            ("18-MAY-2022", "%d-%b-%Y", Date),
            ("18MAY2022", "%d%b%Y", Date),
            ("19 Sep 2022", "%d %b %Y", Date),
            ("19-sep-22", "%d-%b-%y", Date),
            ("5. March 2021", "%-d. %b %Y", Date),
            ("March 5, 2021", "%b %-d, %Y", Date),
            ("MARCH 15, 2021", "%b %d, %Y", Date),
            ("Mon, 05 Sep 2022", "%a, %d %b %Y", Date),
            ("Monday, September 5, 2022", "%a, %b %-d, %Y", Date),
            ("5. März 2021", "%-d. %b %Y", Date),
            ("05-MRZ-21", "%d-%b-%y", Date),
            ("So., 5. Sept. 2021", "%a, %-d. %b %Y", Date),
            ("5 févr. 2021", "%-d %b %Y", Date),
            ("5 de enero de 2021", "%-d de %b de %Y", Date),
            (
                "terça-feira, 5 de janeiro de 2021",
                "%a, %-d de %b de %Y",
                Date,
            ),
            ("2024-01-31 00:00:00", "%Y-%m-%d 00:00:00", Date),
            ("2024-01-31T23:09:02", "%Y-%m-%dT%H:%M:%S", Datetime),
            ("2024-01-31T23:09:02Z", "%Y-%m-%dT%H:%M:%SZ", Datetime),
            (
                "2024-01-31T23:09:02.405Z",
                "%Y-%m-%dT%H:%M:%S%.3fZ",
                Datetime,
            ),
            ("2024-01-31 23:09:02,405", "%Y-%m-%d %H:%M:%S,%3f", Datetime),
            (
                "2024-01-23T22:01:54+01:00",
                "%Y-%m-%dT%H:%M:%S%:z",
                Datetime,
            ),
            (
                "2024-01-23 22:01:54.123456 +0100",
                "%Y-%m-%d %H:%M:%S%.6f %z",
                Datetime,
            ),
            ("2024-01-23 22:01:54-03", "%Y-%m-%d %H:%M:%S%:::z", Datetime),
            ("2022-04-08 24:00", "%Y-%m-%d %H:%M", Datetime),
            ("20240131230902", "%Y%m%d%H%M%S", Datetime),
            ("20240131T230902Z", "%Y%m%dT%H%M%SZ", Datetime),
            ("31.01.2024 7:09", "%d.%m.%Y %-H:%M", Datetime),
            ("31.01.2024, 07:09 Uhr", "%d.%m.%Y, %H:%M Uhr", Datetime),
            ("1/5/2024 7:09:02 AM", "%-m/%-d/%Y %-I:%M:%S %p", Datetime),
            ("01/31/2024 11:09pm", "%m/%d/%Y %I:%M%P", Datetime),
            ("22:05 31.01.2024", "%H:%M %d.%m.%Y", Datetime),
            (
                "2024-01-31-23.09.02.123456",
                "%Y-%m-%d-%H.%M.%S%.6f",
                Datetime,
            ),
            (
                "31/Jan/2024:23:09:02 +0100",
                "%d/%b/%Y:%H:%M:%S %z",
                Datetime,
            ),
            ("Jan  1 2024  7:00AM", "%b %e %Y %l:%M%p", Datetime),
            ("Jan  1 2024 12:00AM", "%b %e %Y %I:%M%p", Datetime),
            (
                "Tue Jan 23 22:01:54 CET 2024",
                "%a %b %d %H:%M:%S %Z %Y",
                Datetime,
            ),
            (
                "Mon, 15 Jul 2024 16:24:59 GMT",
                "%a, %d %b %Y %H:%M:%S %Z",
                Datetime,
            ),
            ("22:05", "%H:%M", Time),
            ("7:05:59", "%-H:%M:%S", Time),
            ("03:05 PM", "%I:%M %p", Time),
            ("7.05 Uhr", "%-H.%M Uhr", Time),
            ("22h05", "%Hh%M", Time),
            ("24:00", "%H:%M", Time),
            ("36:05:00", "%H:%M:%S", Duration),
            ("-0:15", "%-H:%M", Duration),
            ("136:05", "%H:%M", Duration),
            ("01:10.500", "%M:%S%.3f", Duration),
            ("2 days 04:22:37", "%-d days %H:%M:%S", Duration),
            ("1 day, 4:05:00", "%-d day, %-H:%M:%S", Duration),
            ("1.04:22:37", "%-d.%H:%M:%S", Duration),
            ("4h 22m", "%-Hh %Mm", Duration),
            ("PT36H5M", "PT%HH%-MM", Duration),
            ("P1DT4H5M", "P%-dDT%-HH%-MM", Duration),
            ("PT45M", "PT%MM", Duration),
        ] {
            let found = formats(text, kind);
            assert_eq!(
                found.first().map(String::as_str),
                Some(format),
                "{text}: {found:?}"
            );
        }
    }

    #[test]
    fn all_formats_of_a_text_are_found() {
        let dates = [
            "%d/%m/%Y",
            "%m/%d/%Y",
            "%d/%-m/%Y",
            "%m/%-d/%Y",
            "%-d/%m/%Y",
            "%-m/%d/%Y",
            "%-d/%-m/%Y",
            "%-m/%-d/%Y",
        ];
        let found: HashSet<String> = formats("10/11/2022", Date).into_iter().collect();
        assert_eq!(found, dates.map(str::to_owned).into());
        let times = ["%H:%M", "%-H:%M"];
        assert_eq!(formats("12:05", Time), times);
        assert_eq!(
            formats("12:05", Duration),
            [
                "%H:%M",
                "%M:%S",
                "%M:%S%.f",
                "%-H:%M",
                "%-M:%S",
                "%-M:%S%.f"
            ]
        );
        assert_eq!(formats("4:22:37", Duration), ["%-H:%M:%S", "%-H:%M:%S%.f"]);
        let month = formats("May 2024", Date);
        assert_eq!(month, ["%b %Y"]);
        let zulu = formats("2024-01-31T23:09:02Z", Datetime);
        for format in [
            "%Y-%m-%dT%H:%M:%SZ",
            "%Y-%m-%dT%H:%M:%S%:z",
            "%Y-%m-%dT%H:%M:%S%.fZ",
        ] {
            assert!(
                zulu.iter().any(|found| found == format),
                "{format}: {zulu:?}"
            );
        }
        let two = formats("10-11-12", Date);
        for format in ["%d-%m-%y", "%m-%d-%y", "%y-%m-%d"] {
            assert!(two.iter().any(|found| found == format), "{format}: {two:?}");
        }
        assert!(formats("May 15 2022", Date).contains(&"%b %e %Y".to_owned()));
    }

    #[test]
    fn iso_durations_have_formats_with_parts_that_may_be_left_out() {
        let found = formats("PT1H5M", Duration);
        for format in [
            "PT%-HH%-MM",
            "PT[%-MM]",
            "PT[%-HH][%-MM]",
            "P[%-dD]T[%-HH][%-MM][%-SS]",
        ] {
            assert!(
                found.iter().any(|found| found == format),
                "{format}: {found:?}"
            );
        }
        assert!(formats("PT5S", Duration).contains(&"PT[%-MM][%-SS]".to_owned()));
        assert!(formats("P30D", Duration).contains(&"P[%-dD]".to_owned()));
    }

    #[test]
    fn a_text_has_few_formats() {
        for (text, most) in [
            ("2024-01-31", 2),
            ("P1DT1H", 16),
            ("10/11/2022 10:05:06 PM", 32),
            ("10/11/12 10:05:06.123", 64),
            ("Mon Jan 15 10:05:06 UTC 2024", 18),
            ("20240131230902", 4),
        ] {
            let found = candidate_formats(text);
            assert!(found.len() <= most, "{text}: {} {found:?}", found.len());
        }
    }

    #[test]
    fn search_ends_soon_for_any_text() {
        let start = std::time::Instant::now();
        for text in [
            "11 ", "1-", "11/", "1.1:", "T11", "11:11 ", "Mon 1 ", "11Z ", "1 d ", "+11:",
        ] {
            for times in 1..=MAX_TEXT / text.len() {
                let _ = candidate_formats(&text.repeat(times));
            }
        }
        assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
    }

    #[test]
    fn other_texts_have_no_formats() {
        for text in [
            "",
            "7",
            "P12345",
            "PT12",
            "P00123",
            "12",
            "1234",
            "12.30",
            "4.5",
            "north",
            "A123",
            "10.0.2.171",
            "123-45-6789",
            "https://example.org/a/19",
            "4 d",
            "12 kg",
            "2024-13-01",
            "2024-02-30",
            "31/31/2024",
            "25:61",
            "é2024-01-31",
            "12345",
            "1e10",
            "+491701234567",
            "99999999999999999999",
        ] {
            assert_eq!(candidate_formats(text), [], "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_candidate_reads_the_text(
            text in "[0-9]{1,4}[-/. :T]{0,2}([0-9]{1,4}|Jan|MAY|September|pm)[-/. :,]{0,2}[0-9]{0,4}[ T]?[0-9:.+Zh]{0,12}",
        ) {
            for (format, kind) in candidate_formats(&text) {
                let parsed = TimeFormat::with_options(&format, kind, reading_options());
                prop_assert!(parsed.is_ok_and(|parsed| parsed.read(&text).is_some()), "{}: {}", text, format);
            }
        }

        #[test]
        fn arbitrary_text_does_not_panic(text: String, dense in "[0-9a-zA-Zé :.+/-]{0,48}") {
            let _ = (candidate_formats(&text), candidate_formats(&dense));
        }
    }
}

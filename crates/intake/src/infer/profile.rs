//! Statistics of a column, collected while it is read for a draft.

use std::collections::HashMap;

use fhaim_domain::{NumberStyle, TimeFormat, is_missing, parse_number};

/// Maximum number of different texts to remember: of any column, and of one that may hold dates.
const MAX_TEXTS: usize = 1 << 16;
const MAX_MOMENTS: usize = 1 << 20;

/// Date formats to try, the likelier first.
const DATES: [&str; 7] = [
    "%Y-%m-%d",
    "%d.%m.%Y",
    "%-d.%-m.%Y",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%-d/%-m/%Y",
    "%-m/%-d/%Y",
];

/// Times of day that may follow a date. The coarser come first, because finer formats read their
/// texts too.
const CLOCKS: [&str; 5] = ["%H:00:00", "%H:%M:00", "%H:%M:%S", "%H:00", "%H:%M"];

/// A format that fits all texts so far.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) text: String,
    pub(super) format: TimeFormat,
    pub(super) clock: bool,
}

/// Returns all formats to try.
fn candidates() -> Vec<Candidate> {
    let candidate = |text: String, clock| {
        let format = TimeFormat::parse(&text, clock).ok()?;
        Some(Candidate {
            text,
            format,
            clock,
        })
    };
    let dates = DATES
        .iter()
        .filter_map(|date| candidate((*date).to_owned(), false));
    let separated = DATES
        .iter()
        .flat_map(|date| [' ', 'T'].map(|letter| format!("{date}{letter}")));
    let clocks = separated.flat_map(|date| CLOCKS.map(|clock| format!("{date}{clock}")));
    dates
        .chain(clocks.filter_map(|text| candidate(text, true)))
        .collect()
}

/// Returns the date formats that drafts try, the likelier first: the format as written in a schema,
/// whether it has a time of day, and its parser.
pub fn time_formats() -> impl Iterator<Item = (String, bool, TimeFormat)> {
    let parts = |candidate: Candidate| (candidate.text, candidate.clock, candidate.format);
    candidates().into_iter().map(parts)
}

/// How a column's texts read as numbers with one decimal mark.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    pub(super) comma: bool,
    /// Whether every text so far is such a number.
    pub(super) all: bool,
    /// The most and the fewest decimals of a text.
    pub(super) decimals: (u32, u32),
}

/// Statistics of a column.
pub(super) struct Profile {
    /// Texts by index, and their counts.
    pub(super) texts: Vec<String>,
    pub(super) counts: Vec<u64>,
    index: HashMap<String, u32>,
    /// Whether the column has more different texts than are remembered.
    pub(super) overflowed: bool,
    pub(super) missing: bool,
    /// Records with a value.
    pub(super) present: u64,
    /// Readings with a decimal point and with a decimal comma.
    pub(super) numbers: [Numbers; 2],
    /// Smallest and largest number, read with a decimal point.
    pub(super) limits: (f64, f64),
    /// The last number, and whether each number was one more than the previous one.
    last: Option<f64>,
    pub(super) counting: bool,
    pub(super) formats: Vec<Candidate>,
    /// The index of each record's text, while the column may hold dates.
    rows: Vec<Option<u32>>,
}

impl Profile {
    pub(super) fn new() -> Self {
        let numbers = |comma| Numbers {
            comma,
            all: true,
            decimals: (0, u32::MAX),
        };
        Self {
            texts: Vec::new(),
            counts: Vec::new(),
            index: HashMap::new(),
            overflowed: false,
            missing: false,
            present: 0,
            numbers: [numbers(false), numbers(true)],
            limits: (f64::INFINITY, f64::NEG_INFINITY),
            last: None,
            counting: true,
            formats: candidates(),
            rows: Vec::new(),
        }
    }

    pub(super) fn see(&mut self, text: &str, missing: &[String]) {
        let dated = !self.formats.is_empty();
        if is_missing(text, missing) {
            self.missing = true;
            if dated {
                self.rows.push(None);
            }
            return;
        }
        self.present += 1;
        if self.counting {
            let number = parse_number(text);
            let next = |last: f64| number.is_some_and(|value| value - last == 1.0);
            self.counting = number.is_some() && self.last.is_none_or(next);
            self.last = number;
        }
        let index = match self.index.get(text) {
            Some(&index) => {
                self.counts[index as usize] += 1;
                Some(index)
            }
            None => self.see_first(text),
        };
        if self.formats.is_empty() {
            self.rows = Vec::new();
        } else {
            self.rows.push(index);
        }
    }

    /// Handles a text that is new, or beyond the number of remembered texts.
    fn see_first(&mut self, text: &str) -> Option<u32> {
        self.formats
            .retain(|candidate| candidate.format.read(text).is_some());
        for numbers in &mut self.numbers {
            numbers.see(text);
        }
        if let Some(value) = parse_number(text) {
            self.limits = (self.limits.0.min(value), self.limits.1.max(value));
        }
        let limit = if self.formats.is_empty() {
            MAX_TEXTS
        } else {
            MAX_MOMENTS
        };
        if self.texts.len() >= limit {
            self.overflowed = true;
            return None;
        }
        let index = self.texts.len() as u32;
        self.texts.push(text.to_owned());
        self.counts.push(1);
        self.index.insert(text.to_owned(), index);
        Some(index)
    }

    /// Returns each text with its number of occurrences.
    pub(super) fn counted(&self) -> impl Iterator<Item = (&str, u64)> + '_ {
        self.texts
            .iter()
            .map(String::as_str)
            .zip(self.counts.iter().copied())
    }

    /// Returns the moments by record, in a format that fits all texts.
    pub(super) fn moments(&self, format: &TimeFormat) -> Vec<Option<i64>> {
        let read: Vec<Option<i64>> = self.texts.iter().map(|text| format.read(text)).collect();
        let moment = |row: &Option<u32>| row.and_then(|row| read[row as usize]);
        self.rows.iter().map(moment).collect()
    }

    /// Returns how the numbers are written, if all texts are numbers. Points take precedence over
    /// commas if both fit.
    pub(super) fn number_style(&self) -> Option<Numbers> {
        self.numbers.into_iter().find(|numbers| numbers.all)
    }
}

impl Numbers {
    fn see(&mut self, text: &str) {
        if !self.all {
            return;
        }
        let style = NumberStyle {
            comma: self.comma,
            ..NumberStyle::default()
        };
        self.all = style.parse(text).is_some() && !is_padded(text);
        let count = self.decimals_of(text);
        self.decimals = (self.decimals.0.max(count), self.decimals.1.min(count));
    }

    /// Counts the decimals of a number in this style.
    pub(super) fn decimals_of(&self, text: &str) -> u32 {
        let mark = if self.comma { ',' } else { '.' };
        let decimals = text
            .trim()
            .split_once(mark)
            .map_or("", |(_, decimals)| decimals);
        // An exponent says nothing about decimals, so assume the most that are kept.
        let digits = decimals.bytes().all(|byte| byte.is_ascii_digit());
        let exponent = text.contains(['e', 'E']);
        if digits && !exponent {
            decimals.len() as u32
        } else {
            fhaim_domain::MAX_DECIMALS
        }
    }
}

/// Returns whether a text of digits begins with a zero that a number would lose, as postal codes
/// do.
fn is_padded(text: &str) -> bool {
    let text = text.trim();
    text.len() > 1 && text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padded_digits_are_not_numbers() {
        assert!(is_padded("01234"));
        assert!(!is_padded("0"));
        assert!(!is_padded("0.5"));
    }

    #[test]
    fn first_format_that_reads_all_texts_is_chosen() {
        let first = |texts: &[&str]| {
            let mut profile = Profile::new();
            texts.iter().for_each(|text| profile.see(text, &[]));
            profile
                .formats
                .first()
                .map(|candidate| candidate.text.clone())
        };
        assert_eq!(first(&["2024-01-31"]).unwrap(), "%Y-%m-%d");
        assert_eq!(
            first(&["31.01.2024 07:05", "01.02.2024 23:59"]).unwrap(),
            "%d.%m.%Y %H:%M"
        );
        assert_eq!(
            first(&["2024-01-31T07:05:00"]).unwrap(),
            "%Y-%m-%dT%H:%M:00"
        );
        assert_eq!(first(&["1/31/2024", "12/1/2024"]).unwrap(), "%-m/%-d/%Y");
        assert_eq!(first(&["2024-01-31", "x"]), None);
    }
}

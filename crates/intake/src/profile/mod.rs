//! Statistics of a column, collected in one pass and in bounded memory.

mod cell;
mod distinct;
mod numbers;
mod quantiles;
mod texts;
mod times;

use fhaim_domain::{TimeFormat, TimeOptions, form::KindForm};

use crate::kinds::FIRST_YEARS;
use crate::times::candidates::reading_options;

pub(crate) use cell::Cell;
pub(crate) use numbers::{Mark, Numbers, Read};
pub(crate) use quantiles::Quantiles;
pub(crate) use texts::{Seen, Texts};
pub(crate) use times::{FormatUse, Times};

/// A column of dates is known by this share of the cells of its first records.
const LIKELY: f64 = 0.8;

/// Maximum number of formats that the dates of a column may have.
const MAX_LIKELY: usize = 4;

/// A format that the dates of a column may have.
#[derive(Debug)]
pub(crate) struct LikelyDates {
    /// The format as in a schema.
    pub(crate) text: String,
    /// First of the hundred years that two-digit years stand for, if the format has them.
    pub(crate) first_year: Option<i64>,
    pub(crate) format: TimeFormat,
}

impl LikelyDates {
    fn of(used: FormatUse) -> Vec<Self> {
        if !used.text.contains("%y") {
            return vec![Self {
                text: used.text,
                first_year: None,
                format: used.format,
            }];
        }
        let with = |first_year: i64| {
            let options = TimeOptions {
                first_year: Some(first_year),
                ..reading_options()
            };
            let format = TimeFormat::with_options(&used.text, used.kind, options).ok()?;
            Some(Self {
                text: used.text.clone(),
                first_year: Some(first_year),
                format,
            })
        };
        FIRST_YEARS.into_iter().filter_map(with).collect()
    }
}

/// Statistics of a column.
#[derive(Debug)]
pub(crate) struct Profile {
    /// Texts that stand for a missing value in every column.
    missing: Vec<String>,
    /// The remembered texts.
    pub(crate) texts: Texts,
    /// Records.
    pub(crate) records: u64,
    /// Records whose cell is one of the texts for a missing value.
    pub(crate) empty: u64,
    /// Those texts, other than the empty one, in the order of their first records, with their numbers of records.
    pub(crate) marked: Vec<(String, u64)>,
    /// Records with another text.
    pub(crate) present: u64,
    /// Cells that are not text in the file's encoding, and the first record with one.
    pub(crate) bad_bytes: (u64, u64),
    pub(crate) numbers: Numbers,
    pub(crate) times: Times,
    /// Whether each cell was one more than the cell before.
    pub(crate) counting: bool,
    last: Option<i64>,
    is_finished: bool,
}

impl Profile {
    /// Starts the statistics of a column in which `missing` stand for missing values.
    pub(crate) fn new(missing: &[String]) -> Self {
        Self {
            missing: missing.to_vec(),
            texts: Texts::new(),
            records: 0,
            empty: 0,
            marked: Vec::new(),
            present: 0,
            bad_bytes: (0, 0),
            numbers: Numbers::new(),
            times: Times::default(),
            counting: true,
            last: None,
            is_finished: false,
        }
    }

    /// Adds the cell of a record, counted from 1.
    pub(crate) fn see(&mut self, text: &str, row: u64) -> Cell {
        self.records += 1;
        if fhaim_domain::is_missing(text, &self.missing) {
            self.see_missing(text);
            return Cell::Missing;
        }
        self.present += 1;
        if self.counting {
            let number = text.parse::<i64>().ok();
            let follows =
                |last: i64| number.is_some_and(|number| number.checked_sub(1) == Some(last));
            self.counting = number.is_some() && self.last.is_none_or(follows);
            self.last = number;
        }
        match self.texts.see(text, row) {
            Some(number) => Cell::Text(number),
            None => {
                self.numbers.add(text, 1, false);
                self.times.add(text, 1, false);
                Cell::Unknown
            }
        }
    }

    fn see_missing(&mut self, text: &str) {
        self.empty += 1;
        if text.is_empty() {
            return;
        }
        match self.marked.iter_mut().find(|(marked, _)| marked == text) {
            Some((_, count)) => *count += 1,
            None => self.marked.push((text.to_owned(), 1)),
        }
    }

    /// Adds a cell that is not text in the file's encoding.
    pub(crate) fn see_bad_bytes(&mut self, row: u64) -> Cell {
        self.records += 1;
        let (cells, first) = self.bad_bytes;
        self.bad_bytes = (cells + 1, if cells == 0 { row } else { first });
        Cell::Unknown
    }

    /// Adds the remembered texts to the statistics of numbers and times. Call it once, after the last record.
    pub(crate) fn finish(&mut self) {
        if std::mem::replace(&mut self.is_finished, true) {
            return;
        }
        for (text, seen) in self.texts.in_order() {
            self.numbers.add(text, seen.count, true);
            self.times.add(text, seen.count, true);
        }
    }

    /// Returns the formats of dates that nearly all texts so far have. A format with two-digit years is returned for each
    /// first year that a draft may choose.
    pub(crate) fn likely_dates(&self) -> Vec<LikelyDates> {
        let mut times = Times::default();
        for (text, seen) in self.texts.in_order() {
            times.add(text, seen.count, true);
        }
        let enough = |format: &FormatUse| {
            let dated = matches!(format.kind, KindForm::Date | KindForm::Datetime);
            dated && format.count as f64 >= LIKELY * self.present as f64 && format.count > 0
        };
        let formats = times.formats.into_iter().filter(enough).take(MAX_LIKELY);
        formats.flat_map(LikelyDates::of).collect()
    }
}

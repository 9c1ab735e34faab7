//! Special values of columns of dates and times. Each has its own group.
//!
//! A special value is a date, a day of every year, a time, or a word: a text that is written as it
//! stands. Words have steps beyond those of all dates and times.

use std::collections::HashMap;

use super::{
    date::{Grid, YEARS, date_of, days_from_date},
    format::TimeFormat,
    read::Reading,
};
use crate::{
    ColumnProblem,
    form::Bound,
    limits::MAX_CATEGORIES,
    names::{cut, is_name},
    ordered::{MAX_PARTS, OrderedProblem, Span},
};

/// Added to the steps of special dates in a column that counts from another column.
pub(crate) const SPECIAL_DAY: i64 = 1 << 60;

/// The step of the first word.
const FIRST_WORD: i64 = 1 << 61;

/// A text that is written as it stands.
#[derive(Clone, Debug, PartialEq)]
struct Word {
    text: String,
    /// The moment that it stands for, if it is a text of the column's format.
    moment: Option<Reading>,
}

/// The words of a column.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Words {
    all: Vec<Word>,
    places: HashMap<String, usize>,
}

impl Words {
    fn add(&mut self, text: &str, moment: Option<Reading>) -> Result<(), ColumnProblem> {
        if !is_name(text) || text.trim() != text {
            return Err(ColumnProblem::Special(cut(text)));
        }
        let place = self.all.len();
        if self.places.insert(text.to_owned(), place).is_some() {
            return Err(OrderedProblem::RepeatedSpecial.into());
        }
        let text = text.to_owned();
        self.all.push(Word { text, moment });
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether a word stands for no moment.
    pub(crate) fn lack_moment(&self) -> bool {
        self.all.iter().any(|word| word.moment.is_none())
    }

    /// Returns the index of the word that `text` is, apart from blanks around it.
    pub(crate) fn find(&self, text: &str) -> Option<usize> {
        if self.all.is_empty() {
            return None;
        }
        self.places.get(text.trim()).copied()
    }

    /// Returns the step of the word of an index.
    pub(crate) fn step(&self, word: usize) -> i64 {
        FIRST_WORD + word as i64
    }

    /// Returns the index of the word that a step stands for.
    pub(crate) fn at(&self, step: i64) -> Option<usize> {
        let word = usize::try_from(step.checked_sub(FIRST_WORD)?).ok()?;
        (word < self.all.len()).then_some(word)
    }

    pub(crate) fn text(&self, word: usize) -> &str {
        self.all.get(word).map_or("", |word| &word.text)
    }

    pub(crate) fn reading(&self, word: usize) -> Option<Reading> {
        self.all.get(word).and_then(|word| word.moment)
    }

    /// One set for each word.
    fn sets(&self) -> impl Iterator<Item = Vec<i64>> + '_ {
        (0..self.all.len()).map(|word| vec![self.step(word)])
    }
}

/// The special values of a column, as sets of steps that share a group, and its words.
#[derive(Debug, Default)]
pub(crate) struct Special {
    pub(crate) sets: Vec<Vec<i64>>,
    pub(crate) words: Words,
}

/// Where the days of a column's special values are.
#[derive(Clone, Copy)]
pub(crate) enum Days<'a> {
    /// Among the column's bins.
    Bins(&'a [Span]),
    /// Apart from the column's bins, which count from another column.
    Apart,
}

impl Special {
    /// Returns the special values of a column of dates.
    ///
    /// # Errors
    /// [`ColumnProblem::Special`] for a value that is neither a date that the format can write, nor
    /// a day of every year, nor a word; [`OrderedProblem`] for a value that appears twice, or too
    /// many.
    pub(crate) fn of_dates(
        values: &[Bound],
        format: &TimeFormat,
        days: Days<'_>,
    ) -> Result<Self, ColumnProblem> {
        check_number(values)?;
        let grid = format.grid();
        let mut special = Self::default();
        let mut every_year = Vec::new();
        for value in values {
            let text = text(value)?;
            let date = grid
                .parse(text)
                .and_then(|step| Some((step, grid.first_day(step)?)));
            match (date, day_of_year(text, grid)) {
                (Some((step, day)), _) => {
                    if !can_write(format, day) {
                        return Err(ColumnProblem::Special(cut(text)));
                    }
                    let apart = matches!(days, Days::Apart);
                    special
                        .sets
                        .push(vec![if apart { SPECIAL_DAY + step } else { step }]);
                }
                (None, Some(day)) if every_year.iter().any(|&(_, other)| other == day) => {
                    return Err(OrderedProblem::RepeatedSpecial.into());
                }
                (None, Some(day)) => every_year.push((text, day)),
                (None, None) => special.words.add(text, format.read_exact(text))?,
            }
        }
        special.check_words(format, days)?;
        for (text, day) in every_year {
            match days {
                Days::Bins(bins) => special.add_every_year(day, grid, bins)?,
                Days::Apart => return Err(ColumnProblem::EveryYear(cut(text))),
            }
        }
        special.sets.extend(special.words.sets());
        Ok(special)
    }

    /// Refuses a word whose moment belongs to a special day: both would be written as the same text.
    fn check_words(&self, format: &TimeFormat, days: Days<'_>) -> Result<(), ColumnProblem> {
        let apart = if matches!(days, Days::Apart) {
            SPECIAL_DAY
        } else {
            0
        };
        for word in &self.words.all {
            let step = |moment: Reading| format.grid().step(format.day(moment.seconds));
            let step = word.moment.map(|moment| vec![apart + step(moment)]);
            if step.is_some_and(|step| self.sets.contains(&step)) {
                return Err(ColumnProblem::SpecialMoment(cut(&word.text)));
            }
        }
        Ok(())
    }

    /// Returns the special values of a column of times of day or durations. `step` returns the step
    /// of a time that is written as limits are.
    ///
    /// # Errors
    /// The same as [`Special::of_dates`].
    pub(crate) fn of_times(
        values: &[Bound],
        step: impl Fn(&str) -> Option<i64>,
    ) -> Result<Self, ColumnProblem> {
        check_number(values)?;
        let mut special = Self::default();
        for value in values {
            let text = text(value)?;
            match step(text) {
                Some(step) => special.sets.push(vec![step]),
                None => special.words.add(text, None)?,
            }
        }
        special.sets.extend(special.words.sets());
        Ok(special)
    }

    /// Adds a set for each bin: the days of a month and day in all of the bin's years, except those
    /// that are special themselves.
    fn add_every_year(
        &mut self,
        (month, day): (i64, i64),
        grid: Grid,
        bins: &[Span],
    ) -> Result<(), ColumnProblem> {
        let taken: std::collections::HashSet<i64> = self.sets.iter().flatten().copied().collect();
        let mut sets = vec![Vec::new(); bins.len()];
        for year in YEARS {
            let Some(step) = days_from_date(year, month, day).map(|days| grid.step(days)) else {
                continue;
            };
            let after = bins.partition_point(|bin| bin.0 <= step);
            let bin = after
                .checked_sub(1)
                .and_then(|bin| Some((bin, bins.get(bin)?)));
            if let Some((bin, span)) = bin
                && step <= span.1
                && !taken.contains(&step)
            {
                sets[bin].push(step);
            }
        }
        self.sets
            .extend(sets.into_iter().filter(|set| !set.is_empty()));
        match self.sets.iter().map(Vec::len).sum::<usize>() > MAX_PARTS {
            true => Err(OrderedProblem::Parts.into()),
            false => Ok(()),
        }
    }
}

fn check_number(values: &[Bound]) -> Result<(), ColumnProblem> {
    match values.len() > MAX_CATEGORIES {
        true => Err(OrderedProblem::Parts.into()),
        false => Ok(()),
    }
}

fn text(value: &Bound) -> Result<&str, ColumnProblem> {
    match value {
        Bound::Text(text) => Ok(text),
        Bound::Number(_) => Err(ColumnProblem::Bound {
            field: "special",
            expected: "a list of texts",
        }),
    }
}

/// Reads a day of every year, such as `*-01-31`, as a month and a day; a month of every year, such
/// as `*-01`, in a column of months.
fn day_of_year(text: &str, grid: Grid) -> Option<(i64, i64)> {
    let day = text.strip_prefix("*-")?;
    // A leap year has every day.
    let step = grid.parse(&format!("2000-{day}"))?;
    let (_, month, day) = super::date_from_days(grid.first_day(step)?)?;
    Some((month, day))
}

/// Returns the label of a set of days or months: `1 January, 1950 to 1959`.
pub(super) fn label(grid: Grid, steps: &[i64]) -> Option<String> {
    let date = |step: Option<&i64>| grid.first_day(*step?).and_then(date_of);
    let (first, last) = (date(steps.first())?, date(steps.last())?);
    let format = match grid {
        Grid::Day => "%-d %B",
        Grid::Month => "%B",
    };
    let day = jiff::fmt::strtime::format(format, first).ok()?;
    Some(format!("{day}, {} to {}", first.year(), last.year()))
}

/// Returns the seconds of a time of day or duration as schemas write it: hours, minutes, seconds and
/// their decimals, such as `23:30` or `36:05:00`. Also returns the nanoseconds to add, and the
/// number of nanoseconds in the smallest part of the text.
pub(crate) fn clock_text(text: &str) -> Option<(i64, u32, i64)> {
    const SECOND: i64 = 1_000_000_000;
    let (text, sign) = match text.strip_prefix('-') {
        Some(text) => (text, -1),
        None => (text, 1),
    };
    let (whole, decimals) = match text.split_once('.') {
        Some((whole, decimals)) => (whole, Some(decimals)),
        None => (text, None),
    };
    let number = |text: &str, most: usize| {
        let digits = (1..=most).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        text.parse::<i64>().ok().filter(|_| digits)
    };
    let sixty = |text: &str| number(text, 2).filter(|&value| text.len() == 2 && value < 60);
    let parts: Vec<&str> = whole.split(':').collect();
    let (seconds, smallest) = match parts[..] {
        [hours, minutes] => (
            number(hours, 9)? * 3_600 + sixty(minutes)? * 60,
            60 * SECOND,
        ),
        [hours, minutes, seconds] => {
            let seconds = sixty(minutes)? * 60 + sixty(seconds)?;
            (number(hours, 9)? * 3_600 + seconds, SECOND)
        }
        _ => return None,
    };
    let Some(decimals) = decimals else {
        return Some((sign * seconds, 0, smallest));
    };
    if smallest != SECOND {
        return None;
    }
    let scale = 10i64.pow(9u32.checked_sub(decimals.len() as u32)?);
    let nanos = number(decimals, 9)? * scale;
    let total = sign * nanos;
    let seconds = sign * seconds + total.div_euclid(SECOND);
    Some((seconds, total.rem_euclid(SECOND) as u32, scale))
}

/// Whether a day is within the days that a format can write.
pub(crate) fn can_write(format: &TimeFormat, day: i64) -> bool {
    let (first, last) = format.range();
    (format.day(first)..=format.day(last)).contains(&day)
}

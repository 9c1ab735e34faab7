//! Columns of dates and datetimes: what their codes mean, and values drawn from codes.

use rand::Rng;

use super::{
    date::DAY,
    format::TimeFormat,
    read::Reading,
    special::{SPECIAL_DAY, Words, label},
};
use crate::{
    Value,
    attributes::{Codes, Resolved, resolved},
    ordered::{Ordered, Span},
};

/// The step of a time of day in records that have a word for the date.
pub(crate) const NO_TIME: i64 = DAY;

/// How a date or datetime is written, and the attributes that it has next to its day: the time of
/// day and the UTC offset.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Dated {
    pub(crate) format: TimeFormat,
    pub(crate) words: Words,
    /// Minutes since the beginning of the day ([`TimeFormat::day`]), if the time of day is an
    /// attribute.
    pub(crate) clock: Option<Ordered>,
}

/// A date or datetime: its day and, if the unit is finer than a day, its time of day.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Time {
    pub(crate) dated: Dated,
    /// Days since 1970-01-01, or months (see [`super::Grid`]).
    pub(crate) days: Ordered,
}

/// A date or datetime relative to another field: the number of units after it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Lapse {
    pub(crate) dated: Dated,
    /// Index of the other field, which comes before this one.
    pub(crate) base: usize,
    /// The other field's [`TimeFormat::day_start`].
    pub(crate) base_start: i64,
    pub(crate) count: Count,
    pub(crate) units: Ordered,
}

/// The unit in which a lapse is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Count {
    /// Calendar days.
    Days,
    /// Calendar months.
    Months,
    /// A number of seconds.
    Seconds(i64),
}

impl Count {
    /// Returns the unit in words, for one and for several.
    pub(crate) fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Days => ("day", "days"),
            Self::Months => ("month", "months"),
            Self::Seconds(60) => ("minute", "minutes"),
            Self::Seconds(3_600) => ("hour", "hours"),
            Self::Seconds(_) => ("day of 24 hours", "days of 24 hours"),
        }
    }
}

/// A cell of a column of dates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cell {
    /// The word of this index.
    Word(usize),
    Moment(Reading),
}

/// A value drawn from codes, and its moment, to which later fields may be relative.
pub(crate) struct Drawn<'a> {
    pub(crate) value: Option<Value<'a>>,
    pub(crate) moment: Option<i64>,
}

impl Drawn<'_> {
    const MISSING: Self = Self {
        value: None,
        moment: None,
    };
}

/// Returns the step of the time of day that is `seconds` after the beginning of its day.
pub(crate) fn minutes_of(seconds: i64) -> i64 {
    seconds.rem_euclid(DAY) / 60
}

/// Returns the day that a step of a lapse stands for, if it is a special date.
pub(crate) fn special_day(step: i64) -> Option<i64> {
    (step > SPECIAL_DAY / 2).then(|| step - SPECIAL_DAY)
}

impl Dated {
    /// Reads a cell that has a value of the column, or returns `None`.
    pub(crate) fn read(&self, text: &str) -> Option<Cell> {
        if let Some(word) = self.words.find(text) {
            return Some(Cell::Word(word));
        }
        self.format.read_exact(text).map(Cell::Moment)
    }

    /// Returns the moment of a cell, with its fraction and offset.
    pub(crate) fn reading(&self, cell: Cell) -> Option<Reading> {
        match cell {
            Cell::Word(word) => self.words.reading(word),
            Cell::Moment(reading) => Some(reading),
        }
    }

    /// Returns the moment of a cell.
    pub(crate) fn moment(&self, cell: Cell) -> Option<i64> {
        self.reading(cell).map(|reading| reading.seconds)
    }

    /// Returns the codes of the attributes of a cell next to its day.
    pub(crate) fn codes(&self, cell: Cell) -> [Option<(u32, u32)>; 2] {
        let minute = match cell {
            Cell::Word(_) => NO_TIME,
            Cell::Moment(reading) => {
                minutes_of(reading.seconds.saturating_sub(self.format.day_start()))
            }
        };
        let clock = self.clock.as_ref().and_then(|clock| clock.encode(minute));
        let offsets = self.format.offsets().len() as u32;
        let offset = match cell {
            Cell::Word(_) => offsets,
            Cell::Moment(reading) => reading.offset,
        };
        let offset = (offsets > 0).then_some((offset, 0));
        match clock {
            None => [offset, None],
            clock => [clock, offset],
        }
    }

    /// Whether a group of `days` has a moment, and no word without one.
    pub(crate) fn has_moment(&self, days: &Ordered, group: u32) -> bool {
        let (step, _) = days.span(group, None);
        let word = self.words.at(step);
        word.is_none_or(|word| self.words.reading(word).is_some())
    }

    /// Sets of steps that the time of day needs in addition to its minutes.
    pub(crate) fn clock_sets(words: &Words) -> Vec<Vec<i64>> {
        match words.is_empty() {
            true => Vec::new(),
            false => vec![vec![NO_TIME]],
        }
    }

    /// Returns the attributes next to the day.
    fn resolve(&self) -> Vec<Resolved> {
        const NONE: &str = "none";
        let start = self.format.day_start() / 60;
        let show = |minute: i64| match minute {
            NO_TIME => NONE.to_owned(),
            _ => format!("{:02}:{:02}", (minute + start) / 60, (minute + start) % 60),
        };
        let clock = self.clock.iter();
        let mut all: Vec<Resolved> = clock
            .map(|clock| resolved(" (time)", clock, show))
            .collect();
        if !self.format.offsets().is_empty() {
            let mut labels = self.format.offsets().to_vec();
            labels.extend((!self.words.is_empty()).then(|| NONE.to_owned()));
            all.push(Resolved {
                suffix: " (offset)",
                labels,
                ordered: false,
                digits: None,
            });
        }
        all
    }

    /// Draws the seconds since the beginning of a day, multiples of the format's grain. Without an
    /// attribute for the time of day, any time may be drawn.
    fn draw_clock(&self, codes: &mut Codes<'_>, rng: &mut (impl Rng + ?Sized)) -> i64 {
        let clock = self.clock.as_ref().map(|clock| {
            let minute = codes.step(clock, rng).filter(|&minute| minute != NO_TIME);
            // A model may give a day without a time of day. Then any time will do.
            60 * minute.unwrap_or_else(|| rng.random_range(0..DAY / 60))
        });
        let grain = self.format.grain();
        match clock {
            Some(seconds) if grain < 60 => seconds + rng.random_range(0..60 / grain) * grain,
            Some(seconds) => seconds - seconds % grain,
            None => rng.random_range(0..DAY / grain) * grain,
        }
    }

    /// Returns the value of a moment, with a fraction and an offset drawn for it. A moment outside
    /// the calendar is moved into it.
    fn draw<'a>(
        &'a self,
        moment: i64,
        codes: &mut Codes<'_>,
        rng: &mut (impl Rng + ?Sized),
    ) -> Drawn<'a> {
        let (first, last) = self.format.range();
        let seconds = moment.clamp(first, last);
        let decimals = self.format.decimals();
        let nanos = match decimals {
            0 => 0,
            _ => rng.random_range(0..10u32.pow(decimals)) * 10u32.pow(9 - decimals),
        };
        let offsets = self.format.offsets().len() as u32;
        let offset = match offsets {
            0 => 0,
            _ => {
                let code = codes.next().map(|(code, _)| code);
                let known = code.filter(|&code| code < offsets);
                known.unwrap_or_else(|| rng.random_range(0..offsets))
            }
        };
        let reading = Reading {
            seconds,
            nanos,
            offset,
        };
        Drawn {
            value: Some(Value::Moment(self.format.show_exact(reading))),
            moment: Some(seconds),
        }
    }

    fn word(&self, word: usize) -> Drawn<'_> {
        Drawn {
            value: Some(Value::Category(self.words.text(word))),
            moment: self.words.reading(word).map(|reading| reading.seconds),
        }
    }

    /// Returns the first moment of a day that the format can write.
    fn start_of(&self, day: i64) -> i64 {
        day.saturating_mul(DAY)
            .saturating_add(self.format.day_start())
    }

    /// Returns the label of a step.
    fn show(&self, step: i64) -> String {
        match self.words.at(step) {
            Some(word) => self.words.text(word).to_owned(),
            None => self.format.grid().show(step),
        }
    }
}

impl Time {
    /// Returns the step of a cell.
    pub(crate) fn step(&self, cell: Cell) -> i64 {
        let format = &self.dated.format;
        match cell {
            Cell::Word(word) => self.dated.words.step(word),
            Cell::Moment(reading) => format.grid().step(format.day(reading.seconds)),
        }
    }

    /// The first and the last moment that is no special value, in seconds.
    pub(crate) fn limits(&self) -> (i64, i64) {
        let (first, last) = self.days.limits();
        let day = |step: i64| self.dated.format.grid().first_day(step).unwrap_or(step);
        let end = self.dated.start_of(day(last.saturating_add(1)));
        (self.dated.start_of(day(first)), end.saturating_sub(1))
    }

    /// Returns a step in the column's format, for errors.
    pub(crate) fn show(&self, step: i64) -> String {
        let day = self.dated.format.grid().first_day(step).unwrap_or(step);
        let first = self.dated.start_of(day);
        self.dated.format.show(first).to_string()
    }

    pub(crate) fn resolve(&self) -> Vec<Resolved> {
        let grid = self.dated.format.grid();
        let show = |step| self.dated.show(step);
        let mut all = vec![Resolved {
            labels: self.days.labels_of_sets(show, |set| label(grid, set)),
            ..resolved("", &self.days, show)
        }];
        all.extend(self.dated.resolve());
        all
    }

    /// Draws a value from the codes.
    pub(crate) fn draw(&self, codes: &mut Codes<'_>, rng: &mut (impl Rng + ?Sized)) -> Drawn<'_> {
        let step = codes.step(&self.days, rng);
        let word = step.and_then(|step| self.dated.words.at(step));
        if let Some(word) = word {
            return self.dated.word(word);
        }
        let clock = self.dated.draw_clock(codes, rng);
        let day = step.and_then(|step| self.dated.format.grid().first_day(step));
        match day {
            Some(day) => self
                .dated
                .draw(self.dated.start_of(day) + clock, codes, rng),
            None => Drawn::MISSING,
        }
    }
}

impl Lapse {
    /// Returns the step of a cell that does not depend on the other field: that of a word or of a
    /// special date.
    pub(crate) fn special(&self, cell: Cell) -> Option<i64> {
        let format = &self.dated.format;
        let step = match cell {
            Cell::Word(word) => self.dated.words.step(word),
            Cell::Moment(reading) => SPECIAL_DAY + format.grid().step(format.day(reading.seconds)),
        };
        self.units.encode(step).map(|_| step)
    }

    /// Whether the values of a group count from the other field: they are neither special dates nor words.
    pub(crate) fn counts_from_base(&self, group: u32) -> bool {
        let (step, _) = self.units.span(group, None);
        self.dated.words.at(step).is_none() && special_day(step).is_none()
    }

    /// Returns the unit of a group's values in words, such as `hours`, or `None` if they do not count from the other
    /// field.
    pub(crate) fn unit(&self, group: u32) -> Option<&'static str> {
        let (one, many) = self.count.names();
        let is_one = self.units.span(group, None) == (1, 1);
        self.counts_from_base(group)
            .then_some(if is_one { one } else { many })
    }

    /// Returns the number of units from `base` to `moment`.
    pub(crate) fn between(&self, base: i64, moment: i64) -> i64 {
        let format = &self.dated.format;
        match self.count {
            Count::Days => format.day(moment) - self.base_day(base),
            Count::Months => {
                let grid = format.grid();
                grid.step(format.day(moment)) - grid.step(self.base_day(base))
            }
            Count::Seconds(unit) => (moment - base).div_euclid(unit),
        }
    }

    /// Whether values that are from `first` to `last` units later than a day of the other field can be written, and are
    /// no special date.
    pub(crate) fn can_write(&self, day: i64, (first, last): Span) -> bool {
        let format = &self.dated.format;
        let grid = format.grid();
        let (begin, unit) = match self.count {
            Count::Days | Count::Months => (grid.step(day), None),
            Count::Seconds(unit) => (day.saturating_mul(DAY), Some(unit)),
        };
        let place = |moment: i64| match unit {
            None => grid.step(format.day(moment)),
            Some(_) => moment,
        };
        let (least, most) = format.range();
        let later = |units: i64| begin.saturating_add(units.saturating_mul(unit.unwrap_or(1)));
        let special = SPECIAL_DAY.saturating_add(later(first));
        let is_special = first == last && unit.is_none() && self.units.encode(special).is_some();
        place(least) <= later(first) && later(last) <= place(most) && !is_special
    }

    /// Returns the day of a moment of the other field.
    pub(crate) fn base_day(&self, base: i64) -> i64 {
        base.saturating_sub(self.base_start).div_euclid(DAY)
    }

    pub(crate) fn resolve(&self) -> Vec<Resolved> {
        let show = |step: i64| match (self.dated.words.at(step), special_day(step)) {
            (None, None) => step.to_string(),
            (Some(_), _) => self.dated.show(step),
            (None, Some(day)) => self.dated.show(day),
        };
        let mut all = vec![resolved("", &self.units, show)];
        all.extend(self.dated.resolve());
        all
    }

    /// Draws a value from the codes: as many units later than `base` as they say.
    pub(crate) fn draw(
        &self,
        base: Option<i64>,
        codes: &mut Codes<'_>,
        rng: &mut (impl Rng + ?Sized),
    ) -> Drawn<'_> {
        let Some(step) = codes.step(&self.units, rng) else {
            return Drawn::MISSING;
        };
        if let Some(word) = self.dated.words.at(step) {
            return self.dated.word(word);
        }
        let grid = self.dated.format.grid();
        let later = match (special_day(step), base, self.count) {
            (Some(day), ..) => day,
            (None, None, _) => return Drawn::MISSING,
            (None, Some(base), Count::Days) => self.base_day(base).saturating_add(step),
            (None, Some(base), Count::Months) => {
                grid.step(self.base_day(base)).saturating_add(step)
            }
            (None, Some(base), Count::Seconds(unit)) => {
                let moment = self.within_unit(base, step, unit, rng);
                return self.dated.draw(moment, codes, rng);
            }
        };
        // Beyond the calendar, the nearest moment is drawn.
        let beyond = if later < 0 { i64::MIN } else { i64::MAX };
        let first = grid
            .first_day(later)
            .map_or(beyond, |day| self.dated.start_of(day));
        let clock = match self.dated.clock {
            Some(_) => self.dated.draw_clock(codes, rng),
            None => 0,
        };
        self.dated.draw(first.saturating_add(clock), codes, rng)
    }

    /// Draws a moment that is as many units later than `base` as the codes say: a multiple of the
    /// format's grain from `units` whole units later up to, but not including, one more.
    fn within_unit(&self, base: i64, units: i64, unit: i64, rng: &mut (impl Rng + ?Sized)) -> i64 {
        let grain = self.dated.format.grain();
        let begin = base.saturating_add(units.saturating_mul(unit));
        let end = begin.saturating_add(unit - 1);
        let first = begin.div_euclid(grain) + i64::from(begin.rem_euclid(grain) > 0);
        let last = end.div_euclid(grain);
        rng.random_range(first..=last.max(first))
            .saturating_mul(grain)
    }
}

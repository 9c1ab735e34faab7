//! The values that a record's codes leave to a field.

use rand::Rng;

use super::{age::Calendar, group::Group};
use crate::{
    Column, DAY, Field, Value,
    attributes::Codes,
    field::Meaning,
    number::NumberField,
    ordered::{Span, StepSet},
    times::{Count, Dated, Grid, Lapse, NO_TIME, Reading, Time, TimeFormat, special_day},
};

/// Nanoseconds of a second.
const SECOND: u32 = 1_000_000_000;

/// A moment, or the step of a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Instant {
    /// Seconds by the column's own clock, or the step.
    pub(super) whole: i64,
    pub(super) nanos: u32,
}

impl Instant {
    pub(super) const FIRST: Self = Self::at(i64::MIN);
    pub(super) const LAST: Self = Self::end(i64::MAX);

    /// The beginning of a second, or a step.
    pub(super) const fn at(whole: i64) -> Self {
        Self { whole, nanos: 0 }
    }

    /// The end of a second.
    pub(super) const fn end(whole: i64) -> Self {
        let nanos = SECOND - 1;
        Self { whole, nanos }
    }

    pub(super) fn of(reading: Reading) -> Self {
        Self {
            whole: reading.seconds,
            nanos: reading.nanos,
        }
    }

    pub(super) fn plus(self, more: i64) -> Self {
        Self {
            whole: self.whole.saturating_add(more),
            ..self
        }
    }
}

/// The end of a range that is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Least,
    Most,
}

/// The values of a field.
#[derive(Clone, Copy, Debug)]
pub(super) struct Domain<'a> {
    pub(super) values: Values<'a>,
    pub(super) link: Option<Link>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Values<'a> {
    Number(&'a NumberField, StepSet<'a>),
    /// A special text, and its moment.
    Word(&'a TimeFormat, Reading),
    Dates(Dates<'a>),
}

/// Moments: some times of some days.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dates<'a> {
    pub(super) format: &'a TimeFormat,
    /// Index of the UTC offset.
    pub(super) offset: u32,
    /// Days or months.
    days: StepSet<'a>,
    /// First and last time of day, in seconds since the day's beginning. All multiples of the grain between them belong
    /// to the set.
    clock: Span,
    grain: i64,
    /// Nanoseconds in the last digit of a fraction of a second; a second without fractions.
    fraction: u32,
}

/// The distance of a field from the one that it is relative to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    /// The other field, as an index of [`Group::fields`].
    pub(super) base: usize,
    base_start: i64,
    count: Count,
    /// The least and the largest number of units.
    units: Span,
}

/// Returns the first moment of a day or month.
pub(super) fn first_of(format: &TimeFormat, grid: Grid, step: i64) -> Instant {
    start_of(format.day_start(), grid, step)
}

/// Returns the last moment of a day or month.
pub(super) fn last_of(format: &TimeFormat, grid: Grid, step: i64) -> Instant {
    end_of(format.day_start(), grid, step)
}

fn start_of(day_start: i64, grid: Grid, step: i64) -> Instant {
    let day = match grid {
        Grid::Day => Some(step),
        Grid::Month => grid.first_day(step),
    };
    // Year 1 begins with month 12.
    let beyond = if step < 12 { i64::MIN } else { i64::MAX };
    let day = day.unwrap_or(beyond);
    Instant::at(day.saturating_mul(DAY).saturating_add(day_start))
}

fn end_of(day_start: i64, grid: Grid, step: i64) -> Instant {
    let next = start_of(day_start, grid, step.saturating_add(1));
    Instant::end(next.whole.saturating_sub(1))
}

impl Link {
    /// Returns the end of the range that the other field's value leaves to this field.
    pub(super) fn later(&self, format: &TimeFormat, base: Instant, side: Side) -> Instant {
        let (grid, units) = (self.grid(), self.units);
        let day = |units: i64| {
            grid.map(|grid| {
                let base = base.whole.saturating_sub(self.base_start).div_euclid(DAY);
                (grid, grid.step(base).saturating_add(units))
            })
        };
        match (
            side,
            day(if side == Side::Least {
                units.0
            } else {
                units.1
            }),
            self.count,
        ) {
            (Side::Least, Some((grid, step)), _) => first_of(format, grid, step),
            (Side::Most, Some((grid, step)), _) => last_of(format, grid, step),
            (Side::Least, None, count) => Instant::at(
                base.whole
                    .saturating_add(units.0.saturating_mul(seconds(count))),
            ),
            (Side::Most, None, count) => {
                let unit = seconds(count);
                let more = units.1.saturating_mul(unit).saturating_add(unit - 1);
                Instant::end(base.whole.saturating_add(more))
            }
        }
    }

    /// Returns the end of the range that this field's value leaves to the other field.
    pub(super) fn base(&self, format: &TimeFormat, own: Instant, side: Side) -> Instant {
        let (grid, units) = (self.grid(), self.units);
        let step = |grid: Grid| grid.step(format.day(own.whole));
        match (side, grid) {
            (Side::Least, Some(grid)) => {
                start_of(self.base_start, grid, step(grid).saturating_sub(units.1))
            }
            (Side::Most, Some(grid)) => {
                end_of(self.base_start, grid, step(grid).saturating_sub(units.0))
            }
            (Side::Least, None) => {
                let unit = seconds(self.count);
                let more = units.1.saturating_mul(unit).saturating_add(unit - 1);
                Instant::at(own.whole.saturating_sub(more))
            }
            (Side::Most, None) => {
                let more = units.0.saturating_mul(seconds(self.count));
                Instant::end(own.whole.saturating_sub(more))
            }
        }
    }

    /// Draws a number of units.
    pub(super) fn draw(&self, rng: &mut (impl Rng + ?Sized)) -> Self {
        let (first, last) = self.units;
        let units = rng.random_range(first..=last.max(first));
        Self {
            units: (units, units),
            ..*self
        }
    }

    fn grid(&self) -> Option<Grid> {
        match self.count {
            Count::Days => Some(Grid::Day),
            Count::Months => Some(Grid::Month),
            Count::Seconds(_) => None,
        }
    }
}

fn seconds(count: Count) -> i64 {
    match count {
        Count::Seconds(unit) => unit,
        Count::Days | Count::Months => DAY,
    }
}

impl<'a> Domain<'a> {
    /// Returns the values of a field, or `None` if the record has no moment or number there. `others` are the values of
    /// the fields of the group before it.
    pub(super) fn of(
        field: &'a Field,
        columns: &[Column],
        code: &dyn Fn(usize) -> u32,
        group: &Group,
        others: &[Option<Self>],
    ) -> Option<Self> {
        let mut codes = Codes {
            columns,
            code,
            parts: field.parts.iter(),
        };
        let free = |values| Some(Self { values, link: None });
        match &field.meaning {
            Meaning::Time(Time { dated, days }) => {
                let (coarse, fine) = codes.next()?;
                let days = days.steps(coarse, Some(fine));
                match word(dated, days.span().0) {
                    Some(word) => free(word?),
                    None => free(Values::Dates(Dates::of(dated, days, &mut codes, true))),
                }
            }
            Meaning::Lapse(lapse) => {
                let (coarse, fine) = codes.next()?;
                let units = lapse.units.steps(coarse, Some(fine)).span();
                if let Some(word) = word(&lapse.dated, units.0) {
                    return free(word?);
                }
                if let Some(day) = special_day(units.0) {
                    let days = StepSet::all((day, day));
                    return free(Values::Dates(Dates::of(
                        &lapse.dated,
                        days,
                        &mut codes,
                        false,
                    )));
                }
                let base = group.fields.binary_search(&lapse.base).ok()?;
                others.get(base)?.as_ref()?;
                let link = Link {
                    base,
                    base_start: lapse.base_start,
                    count: lapse.count,
                    units,
                };
                let values = Values::Dates(later_dates(lapse, &mut codes));
                Some(Self {
                    values,
                    link: Some(link),
                })
            }
            _ => {
                let number = field.number()?;
                let (coarse, fine) = codes.next()?;
                free(Values::Number(
                    number,
                    number.values.steps(coarse, Some(fine))?,
                ))
            }
        }
    }

    /// Returns the format of dates.
    pub(super) fn format(&self) -> Option<&'a TimeFormat> {
        match self.values {
            Values::Number(..) => None,
            Values::Word(format, _) => Some(format),
            Values::Dates(dates) => Some(dates.format),
        }
    }

    /// Returns how the values stand for dates.
    pub(super) fn calendar(&self) -> Calendar<'a> {
        self.format().map_or(Calendar::YEARS, Calendar::with_format)
    }

    /// Returns the seconds by which the clock of the record's offset is ahead of universal time.
    pub(super) fn seconds_east(&self) -> i64 {
        match self.values {
            Values::Number(..) => 0,
            Values::Word(format, reading) => format.seconds_east(reading.offset),
            Values::Dates(dates) => dates.format.seconds_east(dates.offset),
        }
    }

    /// Returns the value nearest to a bound that satisfies it: at least `bound` for the least value, at most `bound` for
    /// the largest.
    pub(super) fn nearest(&self, bound: Instant, side: Side) -> Option<Instant> {
        match (self.values, side) {
            (Values::Number(_, steps), Side::Least) => {
                let least = bound.whole.saturating_add(i64::from(bound.nanos > 0));
                steps.at_least(least).map(Instant::at)
            }
            (Values::Number(_, steps), Side::Most) => steps.at_most(bound.whole).map(Instant::at),
            (Values::Word(_, reading), Side::Least) => {
                Some(Instant::of(reading)).filter(|word| *word >= bound)
            }
            (Values::Word(_, reading), Side::Most) => {
                Some(Instant::of(reading)).filter(|word| *word <= bound)
            }
            (Values::Dates(dates), Side::Least) => dates.at_least(bound),
            (Values::Dates(dates), Side::Most) => dates.at_most(bound),
        }
    }

    /// Draws a value between two of the domain's values.
    pub(super) fn draw(
        &self,
        low: Instant,
        high: Instant,
        rng: &mut (impl Rng + ?Sized),
    ) -> Instant {
        match self.values {
            Values::Number(_, steps) => {
                let drawn = steps.draw((low.whole, high.whole), rng);
                drawn.map_or(low, Instant::at)
            }
            Values::Word(_, reading) => Instant::of(reading),
            Values::Dates(dates) => {
                let is_even = matches!(
                    self.link,
                    Some(Link {
                        count: Count::Seconds(_),
                        ..
                    })
                );
                dates.draw(low, high, is_even, rng)
            }
        }
    }

    /// Returns the written value.
    pub(super) fn value(&self, at: Instant) -> Option<Value<'a>> {
        match self.values {
            Values::Number(number, _) => Some(Value::Decimal(number.style.number(at.whole))),
            Values::Word(..) => None,
            Values::Dates(Dates { format, offset, .. }) => {
                let reading = Reading {
                    seconds: at.whole,
                    nanos: at.nanos,
                    offset,
                };
                Some(Value::Moment(format.show_exact(reading)))
            }
        }
    }
}

/// Returns the word of a step, which may have no moment, or `None` for another step.
fn word(dated: &Dated, step: i64) -> Option<Option<Values<'_>>> {
    let word = dated.words.at(step)?;
    let reading = dated.words.reading(word);
    Some(reading.map(|reading| Values::Word(&dated.format, reading)))
}

/// Returns all moments that the format of a lapse can write at the time of day that the codes say.
fn later_dates<'a>(lapse: &'a Lapse, codes: &mut Codes<'_>) -> Dates<'a> {
    let format = &lapse.dated.format;
    let (first, last) = format.range();
    let step = |seconds| format.grid().step(format.day(seconds));
    let days = StepSet::all((step(first), step(last)));
    let any_time = matches!(lapse.count, Count::Seconds(_));
    Dates::of(&lapse.dated, days, codes, any_time)
}

impl<'a> Dates<'a> {
    /// Returns the moments of some days at the time of day that the codes say. If the time of day is not an attribute,
    /// there are all times of the day or only its beginning.
    fn of(dated: &'a Dated, days: StepSet<'a>, codes: &mut Codes<'_>, any_time: bool) -> Self {
        let format = &dated.format;
        let grain = format.grain();
        let all = (0, DAY - grain);
        let clock = match &dated.clock {
            None if any_time => all,
            None => (0, 0),
            Some(clock) => {
                let code = codes.next();
                let minutes = code.map(|(coarse, fine)| clock.steps(coarse, Some(fine)).span());
                // A model may give a day without a time of day. Then any time fits.
                minutes
                    .filter(|span| span.0 != NO_TIME)
                    .map_or(all, |(first, last)| {
                        let floor = |seconds: i64| seconds - seconds.rem_euclid(grain);
                        (floor(60 * first), floor(60 * last + 59))
                    })
            }
        };
        let offsets = format.offsets().len() as u32;
        let offset = if offsets > 0 { codes.next() } else { None };
        let known = offset.map(|(code, _)| code).filter(|&code| code < offsets);
        Self {
            format,
            offset: known.unwrap_or(0),
            days,
            clock,
            grain,
            fraction: SECOND / 10u32.pow(format.decimals().min(9)),
        }
    }

    fn step(&self, seconds: i64) -> i64 {
        self.format.grid().step(self.format.day(seconds))
    }

    fn start(&self, step: i64) -> i64 {
        first_of(self.format, self.format.grid(), step).whole
    }

    /// Returns the largest fraction of a second, in nanoseconds.
    fn last_fraction(&self, seconds: i64) -> u32 {
        self.format.nanos(seconds, SECOND - self.fraction)
    }

    fn at_least(&self, bound: Instant) -> Option<Instant> {
        let step = self.days.at_least(self.step(bound.whole))?;
        let start = self.start(step);
        match self.clock_at_least(start, bound) {
            Some(at) => Some(at),
            None => {
                let next = self.days.at_least(step.checked_add(1)?)?;
                Some(Instant::at(self.start(next).saturating_add(self.clock.0)))
            }
        }
    }

    /// Returns the first moment of a day that is at least `bound`.
    fn clock_at_least(&self, start: i64, bound: Instant) -> Option<Instant> {
        let first = Instant::at(start.saturating_add(self.clock.0));
        if bound <= first {
            return Some(first);
        }
        let second = bound.whole.saturating_sub(start);
        let late = second.rem_euclid(self.grain);
        let floor = bound.whole.saturating_sub(late);
        let nanos = bound.nanos.div_ceil(self.fraction) * self.fraction;
        let at = match late == 0 && nanos <= self.last_fraction(floor) {
            true => Instant {
                whole: floor,
                nanos,
            },
            false => Instant::at(floor.saturating_add(self.grain)),
        };
        (at.whole.saturating_sub(start) <= self.clock.1).then_some(at)
    }

    fn at_most(&self, bound: Instant) -> Option<Instant> {
        let step = self.days.at_most(self.step(bound.whole))?;
        let start = self.start(step);
        match self.clock_at_most(start, bound) {
            Some(at) => Some(at),
            None => {
                let before = self.days.at_most(step.checked_sub(1)?)?;
                Some(self.last(self.start(before)))
            }
        }
    }

    /// Returns the last moment of a day.
    fn last(&self, start: i64) -> Instant {
        let whole = start.saturating_add(self.clock.1);
        Instant {
            whole,
            nanos: self.last_fraction(whole),
        }
    }

    /// Returns the last moment of a day that is at most `bound`.
    fn clock_at_most(&self, start: i64, bound: Instant) -> Option<Instant> {
        let last = self.last(start);
        if bound >= last {
            return Some(last);
        }
        let second = bound.whole.saturating_sub(start);
        let late = second.rem_euclid(self.grain);
        let whole = bound.whole.saturating_sub(late);
        let most = self.last_fraction(whole);
        let nanos = match late {
            0 => (bound.nanos - bound.nanos % self.fraction).min(most),
            _ => most,
        };
        (second.saturating_sub(late) >= self.clock.0).then_some(Instant { whole, nanos })
    }

    /// Draws a moment between two. With `is_even`, all moments between them are equally likely; otherwise all days are,
    /// and all times of a day.
    fn draw(
        &self,
        low: Instant,
        high: Instant,
        is_even: bool,
        rng: &mut (impl Rng + ?Sized),
    ) -> Instant {
        let (first, last) = (self.step(low.whole), self.step(high.whole));
        let (begin, end) = match self.days.draw((first, last), rng).filter(|_| !is_even) {
            None => (low.whole, high.whole),
            Some(step) => {
                let start = self.start(step);
                let begin = start.saturating_add(self.clock.0);
                let end = start.saturating_add(self.clock.1);
                (begin.max(low.whole), end.min(high.whole))
            }
        };
        let steps = end.saturating_sub(begin).max(0) / self.grain;
        let whole = begin.saturating_add(self.grain * rng.random_range(0..=steps));
        let fractions = SECOND / self.fraction;
        let nanos = match fractions {
            1 => 0,
            _ => rng.random_range(0..fractions) * self.fraction,
        };
        let drawn = Instant {
            whole,
            nanos: self.format.nanos(whole, nanos),
        };
        drawn.clamp(low, high.max(low))
    }
}

//! Encodes dates, datetimes, times of day and durations.

use super::{Encoder, Moments, Read};
use crate::{
    CellProblem, TimeFormat,
    names::cut,
    options::Adjusted,
    times::{Cell, Dated, Lapse, Steps, Time},
};

impl Encoder<'_> {
    pub(super) fn time(
        &self,
        time: &Time,
        text: &str,
        moments: &mut Moments,
        noted: &mut Adjusted,
    ) -> Result<Read, CellProblem> {
        let cell = read(&time.dated, text)?;
        let place = self.place(&time.days, time.step(cell), noted);
        let place = place.ok_or_else(|| {
            let (first, last) = time.days.limits();
            out_of_time(text, &time.show(first), &time.show(last))
        })?;
        Ok(self.dated(&time.dated, cell, place, moments))
    }

    /// Returns `None` if the value depends on another field's moment, which is missing.
    pub(super) fn lapse(
        &self,
        lapse: &Lapse,
        text: &str,
        moments: &mut Moments,
        noted: &mut Adjusted,
    ) -> Result<Option<Read>, CellProblem> {
        let cell = read(&lapse.dated, text)?;
        let base = moments.at.get(&lapse.base).map(|base| base.seconds);
        let later = lapse.dated.moment(cell);
        let units = match (lapse.special(cell), base, later) {
            (Some(step), ..) => step,
            (None, Some(base), Some(later)) => lapse.between(base, later),
            _ => return Ok(None),
        };
        let place = self.place(&lapse.units, units, noted).ok_or_else(|| {
            let (min, max) = lapse.units.limits();
            CellProblem::OutOfLapse {
                value: cut(text).into(),
                distance: format!("{units} {}", lapse.count.names().1).into(),
                range: format!("{min} to {max}").into(),
            }
        })?;
        Ok(Some(self.dated(&lapse.dated, cell, place, moments)))
    }

    /// Keeps the moment of a cell for later fields, and adds the attributes next to its day.
    fn dated(&self, dated: &Dated, cell: Cell, place: (u32, u32), moments: &mut Moments) -> Read {
        let reading = dated.reading(cell);
        if let Some(reading) = reading {
            moments.at.insert(self.index, reading);
        }
        Read {
            more: dated.codes(cell),
            ..Read::place(place, reading.map(|reading| reading.seconds as f64))
        }
    }

    pub(super) fn steps(
        &self,
        steps: &Steps,
        text: &str,
        noted: &mut Adjusted,
    ) -> Result<Read, CellProblem> {
        let step = steps
            .step(text)
            .ok_or_else(|| not_a_moment(&steps.format, text))?;
        let place = self.place(&steps.steps, step, noted).ok_or_else(|| {
            let (first, last) = steps.steps.limits();
            out_of_time(text, &steps.show(first), &steps.show(last))
        })?;
        Ok(Read::place(place, steps.seconds(step)))
    }
}

fn read(dated: &Dated, text: &str) -> Result<Cell, CellProblem> {
    dated
        .read(text)
        .ok_or_else(|| match dated.format.offset(text) {
            Some(offset) => CellProblem::UnknownOffset {
                value: cut(text),
                offset: cut(offset),
            },
            None => not_a_moment(&dated.format, text),
        })
}

fn not_a_moment(format: &TimeFormat, text: &str) -> CellProblem {
    CellProblem::NotAMoment {
        value: cut(text),
        example: format.show(0).to_string(),
    }
}

fn out_of_time(text: &str, first: &str, last: &str) -> CellProblem {
    CellProblem::OutOfTime {
        value: cut(text),
        range: format!("from {first} to {last}"),
    }
}

impl Time {
    /// Returns the codes of a cell's attributes, each coarse one with its digit.
    pub(super) fn places(&self, text: &str) -> Option<Vec<(u32, u32)>> {
        let cell = self.dated.read(text)?;
        let place = self.days.encode(self.step(cell))?;
        let more = self.dated.codes(cell).into_iter().flatten();
        Some(std::iter::once(place).chain(more).collect())
    }
}

impl Lapse {
    /// Returns the codes of a number of units, a special date or a word.
    pub(super) fn places(&self, text: &str) -> Option<Vec<(u32, u32)>> {
        if let Ok(units) = text.trim().parse() {
            return self.units.encode(units).map(|place| vec![place]);
        }
        let cell = self.dated.read(text)?;
        let place = self.units.encode(self.special(cell)?)?;
        let more = self.dated.codes(cell).into_iter().flatten();
        Some(std::iter::once(place).chain(more).collect())
    }
}

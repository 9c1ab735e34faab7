//! Columns of times of day and durations, counted in the smallest part of their format.

use rand::Rng;

use super::{
    format::TimeFormat,
    read::Reading,
    special::{Words, clock_text},
};
use crate::{
    Value,
    attributes::{Codes, Resolved, resolved},
    ordered::Ordered,
};

/// Nanoseconds of a second.
const SECOND: i64 = 1_000_000_000;

/// Times of day or durations. A step is the smallest part of the format: an hour, a minute, a
/// second, or a decimal of a second.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Steps {
    pub(crate) format: TimeFormat,
    pub(crate) words: Words,
    pub(crate) steps: Ordered,
}

impl TimeFormat {
    /// Number of steps in a second; 1 if steps are longer.
    fn steps_per_second(&self) -> i64 {
        10i64.pow(self.decimals())
    }

    /// Returns the number of steps in a time, rounded down, or `None` if it is too large.
    fn step(&self, seconds: i64, nanos: u32) -> Option<i64> {
        let rate = self.steps_per_second();
        let whole = seconds.div_euclid(self.grain()).checked_mul(rate)?;
        whole.checked_add(i64::from(nanos) / (SECOND / rate))
    }

    /// Returns the time of a number of steps.
    pub(crate) fn time_of(&self, step: i64) -> Reading {
        let rate = self.steps_per_second();
        Reading {
            seconds: step.div_euclid(rate).saturating_mul(self.grain()),
            nanos: (step.rem_euclid(rate) * (SECOND / rate)) as u32,
            offset: 0,
        }
    }

    /// Returns a step as schemas write it, without decimals of a second.
    pub(crate) fn clock_text_of(&self, step: i64) -> String {
        let seconds = self.time_of(step).seconds;
        let sign = if seconds < 0 { "-" } else { "" };
        let seconds = seconds.unsigned_abs();
        let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
        format!("{sign}{hours:02}:{minutes:02}:{:02}", seconds % 60)
    }

    /// Returns the step of a limit as schemas write it (`23:30`), or `None` if it is not a time, or
    /// not a multiple of a step. With `whole`, it is the last step in the smallest part of the text:
    /// 23:30:59 for `23:30` in a column of seconds.
    pub(crate) fn step_of_text(&self, text: &str, whole: bool) -> Option<i64> {
        let (seconds, nanos, smallest) = clock_text(text)?;
        let step = self.step(seconds, nanos)?;
        let exact = self.time_of(step);
        if (exact.seconds, exact.nanos) != (seconds, nanos) {
            return None;
        }
        let step_nanos = self.grain() * (SECOND / self.steps_per_second());
        let more = if whole {
            (smallest / step_nanos - 1).max(0)
        } else {
            0
        };
        step.checked_add(more)
    }
}

impl Steps {
    /// Returns the step of a cell, or `None` if the cell is not in the column's format.
    pub(crate) fn step(&self, text: &str) -> Option<i64> {
        if let Some(word) = self.words.find(text) {
            return Some(self.words.step(word));
        }
        let reading = self.format.read_exact(text)?;
        self.format.step(reading.seconds, reading.nanos)
    }

    /// Whether the column's format can write a step, and its text is read as the same step.
    pub(crate) fn can_write(&self, step: i64) -> bool {
        self.step(&self.show(step)) == Some(step)
    }

    /// Returns the number of seconds of a step, or `None` for a word.
    pub(crate) fn seconds(&self, step: i64) -> Option<f64> {
        let time = self.format.time_of(step);
        let seconds = time.seconds as f64 + f64::from(time.nanos) / SECOND as f64;
        self.words.at(step).is_none().then_some(seconds)
    }

    /// Returns a step as tables have it.
    pub(crate) fn show(&self, step: i64) -> String {
        match self.words.at(step) {
            Some(word) => self.words.text(word).to_owned(),
            None => self
                .format
                .show_exact(self.format.time_of(step))
                .to_string(),
        }
    }

    pub(crate) fn resolve(&self) -> Vec<Resolved> {
        vec![resolved("", &self.steps, |step| self.show(step))]
    }

    /// Draws a value from the codes.
    pub(crate) fn draw(
        &self,
        codes: &mut Codes<'_>,
        rng: &mut (impl Rng + ?Sized),
    ) -> Option<Value<'_>> {
        let step = codes.step(&self.steps, rng)?;
        Some(match self.words.at(step) {
            Some(word) => Value::Category(self.words.text(word)),
            None => Value::Moment(self.format.show_exact(self.format.time_of(step))),
        })
    }
}

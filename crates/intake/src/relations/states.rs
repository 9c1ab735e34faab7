//! The values that a drafted schema tells apart in a column, and their texts.

use std::collections::BTreeMap;

use fhaim_domain::form::{Bound, ColumnForm, Invalid, KindForm};

use crate::options::InferOptions;
use crate::profile::{Cell, Profile};

/// A value that a rule may name.
#[derive(Debug, Default)]
pub(super) struct State {
    /// The value as a rule names it; empty for a missing one.
    pub(super) value: String,
    /// Number of records.
    pub(super) records: u64,
    /// The cells that are read as the value.
    pub(super) cells: Vec<Cell>,
}

/// A column, with the values that a rule may name.
#[derive(Debug)]
pub(super) struct States<'a> {
    pub(super) form: &'a ColumnForm,
    /// Number of records.
    pub(super) records: u64,
    /// Records with the most frequent text, or without a value if these are more.
    pub(super) usual: u64,
    /// The values; the missing one first, if there is one.
    pub(super) states: Vec<State>,
    /// The text of each cell, by its place.
    texts: Vec<&'a str>,
    /// The state of each cell, by its place.
    by_place: Vec<Option<usize>>,
    /// Whether the missing value includes all cells that are read as missing.
    pub(super) knows_missing: bool,
}

impl<'a> States<'a> {
    pub(super) fn of(form: &'a ColumnForm, profile: &'a Profile, options: &InferOptions) -> Self {
        let mut seen = profile.texts.in_order();
        let texts = std::iter::once("").chain(seen.iter().map(|(text, _)| *text));
        let reading = Reading::of(form);
        let mut states = Self {
            form,
            records: profile.records,
            usual: 0,
            states: Vec::new(),
            texts: texts.collect(),
            by_place: vec![None; seen.len() + 1],
            knows_missing: reading.is_listed || form.invalid != Some(Invalid::Missing),
        };
        let most = seen.iter().map(|(_, seen)| seen.count).max();
        states.usual = profile.empty.max(most.unwrap_or(0));
        let mut by_value = BTreeMap::new();
        if profile.empty > 0 {
            states.add(&mut by_value, "", Cell::Missing, profile.empty);
        }
        // Markers of missing values come first, so that the missing value is the first state.
        let is_missing = |text: &str| reading.value(text, options) == Some("");
        seen.sort_by_cached_key(|(text, seen)| (!is_missing(text), seen.number));
        for (text, seen) in seen {
            if let Some(value) = reading.value(text, options) {
                states.add(&mut by_value, value, Cell::Text(seen.number), seen.count);
            }
        }
        states
    }

    fn add(
        &mut self,
        by_value: &mut BTreeMap<String, usize>,
        value: &str,
        cell: Cell,
        records: u64,
    ) {
        let index = *by_value.entry(value.to_owned()).or_insert_with(|| {
            let value = value.to_owned();
            self.states.push(State {
                value,
                ..State::default()
            });
            self.states.len() - 1
        });
        if let Some(state) = self.states.get_mut(index) {
            state.records += records;
            state.cells.push(cell);
        }
        let place = cell.place().and_then(|place| self.by_place.get_mut(place));
        if let Some(own) = place {
            *own = Some(index);
        }
    }

    /// The name of the column.
    pub(super) fn name(&self) -> &str {
        &self.form.name
    }

    /// Whether the values are listed in the schema.
    pub(super) fn is_listed(&self) -> bool {
        matches!(self.form.kind, KindForm::Categorical | KindForm::Code)
    }

    /// Whether a cell stands for a missing value, and is not only read as one.
    pub(super) fn is_marker(&self, cell: Cell) -> bool {
        let marked =
            |text| fhaim_domain::is_missing(text, self.form.missing.as_deref().unwrap_or(&[]));
        cell == Cell::Missing || self.text(cell).is_some_and(marked)
    }

    /// Returns the index of the state of a cell.
    pub(super) fn state(&self, cell: Cell) -> Option<usize> {
        self.by_place.get(cell.place()?).copied()?
    }

    /// Returns the text of a cell; empty for a missing one.
    pub(super) fn text(&self, cell: Cell) -> Option<&'a str> {
        self.texts.get(cell.place()?).copied()
    }

    /// Number of remembered texts.
    pub(super) fn texts(&self) -> u32 {
        // At most the number of texts of a profile.
        self.texts.len().saturating_sub(1) as u32
    }

    /// Returns the missing value, if the column has one.
    pub(super) fn missing(&self) -> Option<&State> {
        self.states.first().filter(|state| state.value.is_empty())
    }
}

/// How a form reads texts.
struct Reading<'f> {
    form: &'f ColumnForm,
    /// The listed texts in order.
    listed: Vec<&'f str>,
    is_listed: bool,
    /// The texts of special values.
    special: Vec<(String, &'f Bound)>,
}

impl<'f> Reading<'f> {
    fn of(form: &'f ColumnForm) -> Self {
        let list = form.categories.as_ref().or(form.codes.as_ref());
        let mut listed: Vec<&str> = list.into_iter().flatten().map(String::as_str).collect();
        listed.sort_unstable();
        let is_number = matches!(form.kind, KindForm::Number);
        // Of dates and times, rules name only words: days and times may be written in several ways.
        let is_word = |bound: &Bound| match bound {
            Bound::Text(text) => !text.contains(|letter: char| letter.is_ascii_digit()),
            Bound::Number(_) => false,
        };
        let special = form.special.iter().flatten();
        let special = special.filter(|bound| is_number || is_word(bound));
        let text = |bound: &Bound| match (bound, form.decimal_comma) {
            (Bound::Number(number), Some(true)) => number.to_string().replace('.', ","),
            (Bound::Number(number), _) => number.to_string(),
            (Bound::Text(text), _) => text.clone(),
        };
        Self {
            form,
            listed,
            is_listed: list.is_some(),
            special: special.map(|bound| (text(bound), bound)).collect(),
        }
    }

    /// Returns the value of the schema that a text stands for; `None` if rules cannot name it.
    fn value<'t>(&'t self, text: &'t str, options: &InferOptions) -> Option<&'t str> {
        let missing = self.form.missing.as_ref().unwrap_or(&options.missing);
        if fhaim_domain::is_missing(text, missing) {
            return Some("");
        }
        if self.is_listed {
            let invalid = self.form.invalid == Some(Invalid::Missing);
            return match self.listed.binary_search(&text) {
                Ok(_) => Some(text),
                Err(_) => (self.form.other.as_deref()).or(invalid.then_some("")),
            };
        }
        let point = |text: &str| match self.form.decimal_comma {
            Some(true) => text.replace(',', "."),
            _ => text.to_owned(),
        };
        let number = point(text.trim()).parse::<f64>().ok();
        let is_special = |bound: &Bound| match bound {
            Bound::Number(special) => number == Some(*special),
            Bound::Text(special) => special == text.trim(),
        };
        let special = self.special.iter().find(|(_, bound)| is_special(bound));
        special.map(|(text, _)| text.as_str())
    }
}

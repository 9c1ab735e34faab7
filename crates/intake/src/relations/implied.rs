//! Values of a column that always go with one value of another.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::{Chance, states::States, together::Together};
use crate::profile::Cell;

/// Maximum number of implications that are compared with each other.
const MAX_IMPLICATIONS: usize = 20_000;

/// A value: its column, and its state there.
pub(super) type Value = (usize, usize);

/// The columns that rules of values may be about, and what occurs together in them.
pub(super) struct Pairs<'a> {
    pub(super) columns: &'a [States<'a>],
    together: &'a Together,
    chance: Chance,
    shared_by: u64,
    /// By column: the cells with their own bits, and the state of each.
    cells: Vec<Vec<(Cell, Option<usize>)>>,
    /// By column, unless rules cannot be about it.
    usable: Vec<bool>,
}

/// Records with one value have another value of another column, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Implication {
    pub(super) when: Value,
    pub(super) then: Value,
}

impl<'a> Pairs<'a> {
    /// Prepares the columns that are not `taken`.
    pub(super) fn of(
        columns: &'a [States<'a>],
        taken: &[bool],
        together: &'a Together,
        (chance, shared_by): (Chance, u64),
    ) -> Self {
        let usable = columns.iter().zip(taken);
        let usable = usable.map(|(states, &taken)| !taken && states.form.kind.is_kept());
        let cells = columns.iter().enumerate().map(|(column, states)| {
            let all = std::iter::once(Cell::Missing).chain((0..states.texts()).map(Cell::Text));
            let known = all.filter(|&cell| together.knows(column, cell));
            known.map(|cell| (cell, states.state(cell))).collect()
        });
        Self {
            columns,
            together,
            chance,
            shared_by,
            cells: cells.collect(),
            usable: usable.collect(),
        }
    }

    /// Returns the columns that rules may be about.
    pub(super) fn usable(&self) -> impl Iterator<Item = usize> + '_ {
        let columns = self.usable.iter().enumerate();
        columns
            .filter(|(_, usable)| **usable)
            .map(|(column, _)| column)
    }

    /// Returns the listed values of all columns that enough records share.
    pub(super) fn listed(&self) -> Vec<Value> {
        let columns = self.usable();
        let listed = columns.filter_map(|column| Some((column, self.columns.get(column)?)));
        let values = listed.filter(|(_, states)| states.is_listed());
        values
            .flat_map(|(column, states)| (0..states.states.len()).map(move |state| (column, state)))
            .filter(|&value| {
                !self.text(value).is_empty()
                    && self.is_known(value)
                    && self.records(value) >= self.shared_by
            })
            .collect()
    }

    /// Returns the special values of numbers that enough records share.
    fn special(&self) -> Vec<Value> {
        let columns = self
            .usable()
            .filter_map(|column| Some((column, self.columns.get(column)?)));
        let special = columns.filter(|(_, states)| !states.is_listed());
        let values = special.flat_map(|(column, states)| {
            (0..states.states.len()).map(move |state| (column, state))
        });
        let is_shared = |&value: &Value| {
            let is_value = !self.text(value).is_empty() && self.is_known(value);
            is_value && self.records(value) >= self.shared_by
        };
        values.filter(is_shared).collect()
    }

    /// The value as a rule names it; empty for a missing one.
    pub(super) fn text(&self, (column, state): Value) -> &str {
        let state = self
            .columns
            .get(column)
            .and_then(|states| states.states.get(state));
        state.map_or("", |state| &state.value)
    }

    /// Name of the value's column.
    pub(super) fn name(&self, (column, _): Value) -> String {
        let states = self.columns.get(column);
        states.map_or_else(String::new, |states| states.name().to_owned())
    }

    /// Number of records with the value.
    pub(super) fn records(&self, (column, state): Value) -> u64 {
        let state = self
            .columns
            .get(column)
            .and_then(|states| states.states.get(state));
        state.map_or(0, |state| state.records)
    }

    /// Whether all cells with the value have their own bits.
    fn is_known(&self, (column, state): Value) -> bool {
        let state = self
            .columns
            .get(column)
            .and_then(|states| states.states.get(state));
        state.is_some_and(|state| {
            let mut cells = state.cells.iter();
            cells.all(|&cell| self.together.knows(column, cell))
        })
    }

    /// Number of records that two values of different columns would share if these were independent.
    pub(super) fn expected(&self, one: Value, other: Value) -> f64 {
        let all = self
            .columns
            .get(one.0)
            .map_or(1, |states| states.records.max(1));
        self.records(one) as f64 * self.records(other) as f64 / all as f64
    }

    /// Whether it is hardly chance that no record occurs of this expected number.
    pub(super) fn is_unlikely(&self, expected: f64) -> bool {
        self.chance.is_unlikely(expected)
    }

    /// Whether two values occur in the same record.
    pub(super) fn occur(&self, one: Value, other: Value) -> bool {
        let cells = |value: Value| {
            let states = self.columns.get(value.0);
            let state = states.and_then(|states| states.states.get(value.1));
            state.map_or(&[][..], |state| &state.cells)
        };
        let with = |cell: &Cell| {
            let mut others = cells(other).iter();
            others.any(|&its| self.together.occurred((one.0, *cell), (other.0, its)))
        };
        cells(one).iter().any(with)
    }

    /// Returns the only value of `column` that occurs with a value.
    fn only(&self, value: Value, column: usize) -> Option<Value> {
        let state = self.columns.get(value.0)?.states.get(value.1)?;
        let mut only = None;
        for &cell in &state.cells {
            if self.together.occurred_with_others((value.0, cell), column) {
                return None;
            }
            for &(other, state) in self.cells.get(column)? {
                if self.together.occurred((value.0, cell), (column, other)) {
                    if only.is_some() && only != state {
                        return None;
                    }
                    only = Some(state?);
                }
            }
        }
        Some((column, only?))
    }

    /// Returns the implications from listed and special values, and from missing values to missing values, unless they
    /// may hold by chance.
    pub(super) fn implications(&self) -> Vec<Implication> {
        let mut whens = self.listed();
        whens.extend(self.special());
        let mut all = self.implications_of(&whens, |_| true);
        let closure = Closure::of(&all);
        let missing = self.usable().filter(|&column| self.can_miss(column));
        let missing = missing.map(|column| (column, 0));
        // If a question decides which values are missing, it also decides this for the columns that follow.
        let missing: Vec<Value> = missing
            .filter(|&value| !self.is_explained(value, &closure))
            .collect();
        let missing = self.implications_of(&missing, |Implication { when, then }| {
            let is_missing = self.text(then).is_empty();
            is_missing && self.only(then, when.0) != Some(when)
        });
        all.extend(missing);
        let records = |implication: &Implication| self.records(implication.when);
        all.sort_by_key(|implication| std::cmp::Reverse(records(implication)));
        all.truncate(MAX_IMPLICATIONS);
        all
    }

    fn implications_of(
        &self,
        values: &[Value],
        is_wanted: impl Fn(Implication) -> bool,
    ) -> Vec<Implication> {
        let mut all = Vec::new();
        for &when in values {
            for column in self.usable().filter(|&column| column != when.0) {
                let then = self.only(when, column);
                let then = then.filter(|&then| self.is_telling(when, then));
                let implication = then.map(|then| Implication { when, then });
                all.extend(implication.filter(|&implication| is_wanted(implication)));
            }
        }
        all
    }

    /// Whether the records with a value are those with some values of one other column.
    pub(super) fn is_explained(&self, value: Value, closure: &Closure) -> bool {
        self.explanation(value, closure).is_some()
    }

    /// Returns the values of another column that exactly the records with `value` have. Of several columns, it is the one
    /// with the fewest such values.
    fn explanation(&self, value: Value, closure: &Closure) -> Option<BTreeSet<Value>> {
        let named = |whens: BTreeSet<Value>| -> BTreeSet<Value> {
            let whens = whens.into_iter();
            whens.filter(|&when| !self.text(when).is_empty()).collect()
        };
        let records =
            |whens: &BTreeSet<Value>| -> u64 { whens.iter().map(|&when| self.records(when)).sum() };
        let explanations = closure.whens(value).into_values().map(named);
        let exact =
            explanations.filter(|whens| !whens.is_empty() && records(whens) == self.records(value));
        exact.min_by_key(BTreeSet::len)
    }

    /// Returns the missing and special values that exactly the records with some values of another column have, with these
    /// values. Implications have only the other direction.
    pub(super) fn explained(&self, closure: &Closure) -> Vec<(Value, BTreeSet<Value>)> {
        let missing = self.usable().filter(|&column| self.can_miss(column));
        let values = missing.map(|column| (column, 0)).chain(self.special());
        let explained = values.filter_map(|value| Some((value, self.explanation(value, closure)?)));
        let is_new = |value: Value, whens: &BTreeSet<Value>| {
            let first = whens.first().copied();
            whens.len() > 1 || first.is_some_and(|when| !closure.has(value, when))
        };
        explained
            .filter(|(value, whens)| is_new(*value, whens))
            .collect()
    }

    /// Whether a column has missing values that a rule can be about.
    fn can_miss(&self, column: usize) -> bool {
        let states = self.columns.get(column);
        let missing =
            states.is_some_and(|states| states.knows_missing && states.missing().is_some());
        missing && self.is_known((column, 0)) && self.records((column, 0)) >= self.shared_by
    }

    /// Whether records with `when` hardly have `then` by chance, and enough records have other values.
    fn is_telling(&self, when: Value, then: Value) -> bool {
        let all = self.columns.get(then.0).map_or(0, |states| states.records);
        let others = all.saturating_sub(self.records(then));
        let expected = self.records(when) as f64 * others as f64 / all.max(1) as f64;
        others >= self.shared_by && self.is_unlikely(expected)
    }

    /// Returns groups of columns whose values are missing in the same records.
    pub(super) fn missing_together(&self) -> Vec<Vec<usize>> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for column in self.usable().filter(|&column| self.can_miss(column)) {
            let is_same = |other: usize| {
                let (one, other) = ((column, 0), (other, 0));
                self.records(one) == self.records(other)
                    && self.only(one, other.0) == Some(other)
                    && self.only(other, one.0) == Some(one)
                    && self.is_telling(one, other)
            };
            let group = groups
                .iter_mut()
                .find(|group| group.first().is_some_and(|&first| is_same(first)));
            match group {
                Some(group) => group.push(column),
                None => groups.push(vec![column]),
            }
        }
        groups.retain(|group| group.len() > 1);
        groups
    }
}

/// Implications by their first value.
pub(super) struct Closure {
    all: HashSet<Implication>,
    thens: BTreeMap<Value, Vec<Value>>,
}

impl Closure {
    pub(super) fn of(implications: &[Implication]) -> Self {
        let mut thens: BTreeMap<Value, Vec<Value>> = BTreeMap::new();
        for implication in implications {
            thens
                .entry(implication.when)
                .or_default()
                .push(implication.then);
        }
        Self {
            all: implications.iter().copied().collect(),
            thens,
        }
    }

    pub(super) fn has(&self, when: Value, then: Value) -> bool {
        self.all.contains(&Implication { when, then })
    }

    /// Returns the values that `when` implies.
    pub(super) fn thens(&self, when: Value) -> &[Value] {
        self.thens.get(&when).map_or(&[], Vec::as_slice)
    }

    /// Returns the columns and values that imply a value, by column.
    fn whens(&self, then: Value) -> BTreeMap<usize, BTreeSet<Value>> {
        let mut whens: BTreeMap<usize, BTreeSet<Value>> = BTreeMap::new();
        for implication in self
            .all
            .iter()
            .filter(|implication| implication.then == then)
        {
            whens
                .entry(implication.when.0)
                .or_default()
                .insert(implication.when);
        }
        whens
    }

    /// Whether an implication follows from two others. Of values that imply each other, the first stands for all.
    pub(super) fn is_indirect(&self, Implication { when, then }: Implication) -> bool {
        self.thens(when).iter().any(|&between| {
            between != then
                && self.has(between, then)
                && (between < when || !self.has(between, when))
                && (between < then || !self.has(then, between))
        })
    }
}

//! Relations between columns that hold in all records.
//!
//! They are collected while the records are read, in bounded memory, and proposed as rules. A relation is proposed only if
//! it has no exception and would hardly hold by chance.

mod derive;
mod equal;
mod follows;
mod implied;
mod never;
pub(crate) mod order;
mod quantities;
mod skip;
mod states;
mod together;
pub(crate) mod valid;

use std::collections::BTreeSet;

use fhaim_domain::form::ColumnForm;

use self::order::Order;
use self::quantities::Quantities;
use crate::draft::ProposedRule;
use crate::options::InferOptions;
use crate::profile::{Cell, Profile};

/// Smallest number of records that must be expected to contradict a relation if the columns were independent.
const MIN_EXPECTED: f64 = 20.0;

/// Largest probability that one of all relations that are looked at holds by chance.
const MAX_CHANCE: f64 = 1e-6;

/// The drafted table, after the last record.
pub(crate) struct Drafted<'a> {
    /// The drafted columns.
    pub(crate) forms: &'a [ColumnForm],
    /// The profiles of the same columns.
    pub(crate) profiles: &'a [Profile],
    /// The order of the columns of dates.
    pub(crate) order: Option<&'a Order>,
    /// How to draft.
    pub(crate) options: &'a InferOptions,
}

/// A record, by column.
pub(crate) struct Record<'a> {
    /// The texts; empty where the bytes are no text.
    pub(crate) texts: &'a [&'a str],
    /// The cells in the profiles.
    pub(crate) cells: &'a [Cell],
}

/// The relations between columns so far.
#[derive(Debug)]
pub(crate) struct Relations {
    equal: equal::Equal,
    follows: follows::Follows,
    together: together::Together,
    quantities: Quantities,
}

impl Relations {
    /// Starts when the first records are known. `profiles` and `first` have them; [`Relations::see`] must be called with
    /// them as well.
    pub(crate) fn new(profiles: &[Profile], first: &[Vec<Cell>], options: &InferOptions) -> Self {
        Self {
            equal: equal::Equal::new(profiles.len()),
            follows: follows::Follows::new(profiles.len(), first),
            together: together::Together::new(profiles),
            quantities: Quantities::new(profiles, options),
        }
    }

    /// Looks at a record.
    pub(crate) fn see(&mut self, record: &Record<'_>) {
        self.equal.see(record.texts);
        self.follows.see(record.cells);
        self.together.see(record.cells);
        self.quantities.see(record.texts);
    }

    /// Returns the columns that must be numbers for a sum or an age. `may_be` says whether a column is a number or may
    /// become one.
    pub(crate) fn numbers(&self, may_be: impl Fn(usize) -> bool) -> BTreeSet<usize> {
        self.quantities.numbers(may_be)
    }

    /// Proposes rules.
    pub(crate) fn propose(&self, drafted: &Drafted<'_>) -> Vec<ProposedRule> {
        let columns = drafted.forms.iter().zip(drafted.profiles);
        let states = |(form, profile)| states::States::of(form, profile, drafted.options);
        let columns: Vec<states::States<'_>> = columns.map(states).collect();
        let mut taken: Vec<bool> = (drafted.profiles.iter())
            .map(|profile| profile.bad_bytes.0 > 0)
            .collect();
        let chance = Chance::among(self.together.pairs());
        let derive = derive::Derive {
            columns: &columns,
            equal: &self.equal,
            follows: &self.follows,
            options: drafted.options,
            chance,
        };
        let mut rules = derive.propose(&mut taken);
        rules.extend(self.quantities.propose(drafted, &taken));
        let skip = skip::Skip {
            columns: &columns,
            taken: &taken,
            together: &self.together,
            shared_by: drafted.options.shared_by,
            chance,
        };
        rules.extend(skip.propose());
        rules
    }
}

/// How many contradicting records must be expected, were the columns independent, before a relation is proposed.
///
/// If `n` are expected, none occurs with a probability of at most `exp(-n)`.
#[derive(Clone, Copy, Debug)]
struct Chance {
    least: f64,
}

impl Chance {
    /// Returns the number for a table in which `relations` relations are looked at.
    fn among(relations: f64) -> Self {
        Self {
            least: (relations.max(1.0) / MAX_CHANCE).ln().max(MIN_EXPECTED),
        }
    }

    /// Whether a relation hardly holds by chance, given the expected number of contradicting records.
    fn is_unlikely(self, expected: f64) -> bool {
        expected >= self.least
    }
}

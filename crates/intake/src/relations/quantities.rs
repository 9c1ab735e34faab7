//! Relations between quantities: sums, the order of dates, ages.

mod ages;
mod exact;
mod prime;
mod sums;

use std::collections::BTreeSet;

use self::ages::Ages;
use self::sums::Sums;
use super::Drafted;
use crate::draft::ProposedRule;
use crate::options::InferOptions;
use crate::profile::Profile;

/// A rule is proposed if at least this many records could break it.
pub(super) const MIN_RECORDS: u64 = 20;

/// A column with fewer different values is no quantity: two are yes and no.
const MIN_VALUES: u64 = 3;

/// Returns the columns with several values, those with many different ones first.
fn varied_first(profiles: &[Profile], options: &InferOptions) -> Vec<usize> {
    let few = options.max_number_categories as u64;
    let values = |column: &usize| {
        let profile = profiles.get(*column);
        profile.map_or(0, |profile| profile.texts.distinct())
    };
    let columns = (0..profiles.len()).filter(|column| values(column) >= MIN_VALUES);
    let (many, few): (Vec<usize>, Vec<usize>) = columns.partition(|column| values(column) > few);
    many.into_iter().chain(few).collect()
}

/// Relations between quantities that no record so far breaks.
#[derive(Debug)]
pub(crate) struct Quantities {
    sums: Sums,
    ages: Ages,
}

impl Quantities {
    /// Prepares for a table, of which `profiles` have the first records. These records are seen again.
    pub(crate) fn new(profiles: &[Profile], options: &InferOptions) -> Self {
        Self {
            sums: Sums::new(profiles, options),
            ages: Ages::new(profiles, options),
        }
    }

    /// Looks at the texts of a record.
    pub(crate) fn see(&mut self, texts: &[&str]) {
        self.sums.see(texts);
        self.ages.see(texts);
    }

    /// Returns the columns that must be numbers for a sum or an age. `may_be` says whether a column is a number or may
    /// become one.
    pub(crate) fn numbers(&self, may_be: impl Fn(usize) -> bool) -> BTreeSet<usize> {
        let all = self.sums.supported().chain(self.ages.supported());
        all.filter(|columns| columns.iter().all(|&column| may_be(column)))
            .flatten()
            .collect()
    }

    /// Returns the rules that a schema can have together. `taken` says which columns can be in no rule.
    pub(crate) fn propose(&self, drafted: &Drafted<'_>, taken: &[bool]) -> Vec<ProposedRule> {
        let is_free = |column: usize| taken.get(column) == Some(&false);
        let mut rules = self.sums.rules(drafted.forms, is_free);
        // A column of numbers that a sum sets can be in no other rule of numbers.
        let summed: Vec<String> = rules.iter().flat_map(|rule| rule.columns.clone()).collect();
        let is_unsummed = |column: usize| {
            let form = drafted.forms.get(column);
            is_free(column) && form.is_some_and(|form| !summed.contains(&form.name))
        };
        if let Some(order) = drafted.order {
            rules.extend(order.rules(drafted, is_free));
        }
        rules.extend(self.ages.rules(drafted, is_unsummed));
        rules
    }
}

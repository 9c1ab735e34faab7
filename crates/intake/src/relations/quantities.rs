//! Relations between quantities: sums, the order of dates, ages.

mod ages;
mod exact;
mod prime;
mod sums;

use self::ages::Ages;
use self::sums::Sums;
use super::Drafted;
use crate::draft::ProposedRule;
use crate::options::InferOptions;
use crate::profile::Profile;

/// A rule is proposed if at least this many records could break it.
pub(super) const MIN_RECORDS: u64 = 20;

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

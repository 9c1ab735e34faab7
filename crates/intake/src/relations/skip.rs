//! Rules of values: skip patterns, columns that are missing together, and values that never occur together.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use fhaim_domain::{Constraint, Implies};

use super::{
    Chance,
    implied::{Closure, Implication, Pairs, Value},
    never,
    states::States,
    together::Together,
};
use crate::draft::{ProposedRule, RuleChange};

/// Maximum number of proposed rules of each sort: as many as a person can judge.
pub(super) const MAX_RULES: usize = 20;

/// What rules of values are found in.
pub(super) struct Skip<'a> {
    pub(super) columns: &'a [States<'a>],
    /// Columns that rules must not be about.
    pub(super) taken: &'a [bool],
    pub(super) together: &'a Together,
    pub(super) shared_by: u64,
    pub(super) chance: Chance,
}

impl Skip<'_> {
    /// Proposes rules: implications, columns that are missing together, and values that never occur together.
    pub(super) fn propose(&self) -> Vec<ProposedRule> {
        let limits = (self.chance, self.shared_by);
        let pairs = Pairs::of(self.columns, self.taken, self.together, limits);
        let implications = pairs.implications();
        let closure = Closure::of(&implications);
        let mut covered = Covered::default();
        let mut rules = implies(&pairs, &implications, &closure, &mut covered);
        rules.extend(explained(&pairs, &closure));
        rules.extend(together(&pairs, &closure));
        rules.extend(never::never(&pairs, &closure, &covered));
        rules
    }
}

/// Pairs of values that implications exclude.
#[derive(Default)]
pub(super) struct Covered(HashSet<(Value, Value)>);

impl Covered {
    fn ordered(one: Value, other: Value) -> (Value, Value) {
        (one.min(other), one.max(other))
    }

    pub(super) fn has(&self, one: Value, other: Value) -> bool {
        self.0.contains(&Self::ordered(one, other))
    }

    /// Adds the pairs that an implication excludes. Returns the expected number of records of those that are new.
    fn add(&mut self, pairs: &Pairs<'_>, implication: Implication) -> f64 {
        let Implication { when, then } = implication;
        let Some(states) = pairs.columns.get(then.0) else {
            return 0.0;
        };
        let mut new = 0.0;
        let mut listed = 0;
        for state in 0..states.states.len() {
            let other = (then.0, state);
            listed += pairs.records(other);
            if other != then && self.0.insert(Self::ordered(when, other)) {
                new += pairs.expected(when, other);
            }
        }
        let unlisted = states.records.saturating_sub(listed) as f64;
        new + pairs.records(when) as f64 * unlisted / states.records.max(1) as f64
    }
}

/// Proposes implications that do not follow from others.
fn implies(
    pairs: &Pairs<'_>,
    implications: &[Implication],
    closure: &Closure,
    covered: &mut Covered,
) -> Vec<ProposedRule> {
    let mut direct: Vec<Implication> = (implications.iter().copied())
        .filter(|&implication| !closure.is_indirect(implication))
        .collect();
    // "No smoker has cigarettes" and "who has cigarettes is a smoker" are the same: the missing value is the consequence.
    direct.sort_by_key(|implication| {
        let is_missing = pairs.text(implication.then).is_empty();
        let records = std::cmp::Reverse(pairs.records(implication.when));
        (!is_missing, records, implication.when, implication.then)
    });
    let mut by_then: BTreeMap<(usize, Value), BTreeSet<Value>> = BTreeMap::new();
    for implication in direct {
        let new = covered.add(pairs, implication);
        if pairs.is_unlikely(new) {
            let key = (implication.when.0, implication.then);
            by_then.entry(key).or_default().insert(implication.when);
        }
    }
    for &implication in implications {
        covered.add(pairs, implication);
    }
    let mut by_whens: BTreeMap<BTreeSet<Value>, Vec<Value>> = BTreeMap::new();
    for ((_, then), whens) in by_then {
        by_whens.entry(whens).or_default().push(then);
    }
    let rules = by_whens.into_iter();
    let rules = rules.map(|(whens, thens)| implication_rule(pairs, &whens, &thens));
    strongest(rules.collect())
}

fn implication_rule(pairs: &Pairs<'_>, whens: &BTreeSet<Value>, thens: &[Value]) -> ProposedRule {
    let mut when: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for &value in whens {
        when.entry(pairs.name(value))
            .or_default()
            .push(pairs.text(value).to_owned());
    }
    let then = thens.iter();
    let then = then.map(|&value| (pairs.name(value), vec![pairs.text(value).to_owned()]));
    let then: BTreeMap<String, Vec<String>> = then.collect();
    let records = whens.iter().map(|&value| pairs.records(value)).sum();
    rule(Constraint::Implies(Implies { when, then }), records)
}

/// Proposes that missing and special values occur only with the values of another column that imply them: "who has no
/// cigarettes does not smoke".
fn explained(pairs: &Pairs<'_>, closure: &Closure) -> Vec<ProposedRule> {
    let explained = pairs.explained(closure).into_iter();
    let rules = explained.map(|(value, whens)| {
        let when = BTreeMap::from([(pairs.name(value), vec![pairs.text(value).to_owned()])]);
        let mut then: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for other in whens {
            let values = then.entry(pairs.name(other)).or_default();
            values.push(pairs.text(other).to_owned());
        }
        let implies = Implies { when, then };
        rule(Constraint::Implies(implies), pairs.records(value))
    });
    strongest(rules.collect())
}

/// Proposes columns that are missing together, unless one other column says where they are missing.
fn together(pairs: &Pairs<'_>, closure: &Closure) -> Vec<ProposedRule> {
    let mut rules = Vec::new();
    for group in pairs.missing_together() {
        let Some((&first, others)) = group.split_first() else {
            continue;
        };
        if pairs.is_explained((first, 0), closure) {
            continue;
        }
        let missing = pairs.records((first, 0));
        for &other in others {
            let two = [first, other].map(|column| pairs.name((column, 0)));
            rules.push(rule(Constraint::MissingTogether(two), missing));
        }
    }
    strongest(rules)
}

pub(super) fn rule(constraint: Constraint, records: u64) -> ProposedRule {
    ProposedRule {
        columns: constraint
            .columns()
            .into_iter()
            .map(str::to_owned)
            .collect(),
        rule: constraint.to_string(),
        records,
        change: RuleChange::Constraint(constraint),
    }
}

/// Returns the rules that most records support, in their order.
fn strongest(mut rules: Vec<ProposedRule>) -> Vec<ProposedRule> {
    if let Some(least) = {
        let mut records: Vec<u64> = rules.iter().map(|rule| rule.records).collect();
        records.sort_unstable_by(|a, b| b.cmp(a));
        records.get(MAX_RULES - 1).copied()
    } {
        rules.retain(|rule| rule.records >= least);
        rules.truncate(MAX_RULES);
    }
    rules
}

//! Values of two columns that never occur in the same record.

use std::collections::{BTreeMap, HashSet};

use fhaim_domain::{Constraint, Implies};

use super::{
    implied::{Closure, Pairs, Value},
    skip::{Covered, MAX_RULES, rule},
};
use crate::draft::ProposedRule;

/// Maximum number of pairs that are grouped, those with the largest expected numbers of records.
const MAX_PAIRS: usize = 400;

/// Values that never occur with a value of another column.
struct Exclusion {
    value: Value,
    others: Vec<Value>,
    /// Number of records that would have the value and one of the others if the columns were independent.
    expected: f64,
}

/// Proposes the pairs of values with the largest expected numbers of records among those that never occur together.
pub(super) fn never(pairs: &Pairs<'_>, closure: &Closure, covered: &Covered) -> Vec<ProposedRule> {
    let never = excluded(pairs, closure, covered);
    let mut exclusions = grouped(pairs, never);
    exclusions.sort_by(|a, b| {
        b.expected
            .total_cmp(&a.expected)
            .then_with(|| a.value.cmp(&b.value))
    });
    exclusions.truncate(MAX_RULES);
    exclusions
        .iter()
        .filter_map(|exclusion| exclusion.rule(pairs))
        .collect()
}

/// Returns the pairs that never occur, hardly by chance, and that do not follow from other rules.
fn excluded(pairs: &Pairs<'_>, closure: &Closure, covered: &Covered) -> Vec<(Value, Value)> {
    let listed = pairs.listed();
    let mut never: Vec<(Value, Value)> = Vec::new();
    for (index, &one) in listed.iter().enumerate() {
        let others = listed.iter().skip(index + 1);
        never.extend(others.map(|&other| (one, other)).filter(|&(one, other)| {
            one.0 != other.0
                && pairs.is_unlikely(pairs.expected(one, other))
                && !covered.has(one, other)
                && !pairs.occur(one, other)
        }));
    }
    let all: HashSet<(Value, Value)> = never.iter().copied().collect();
    let is_never = |one: Value, other: Value| all.contains(&(one.min(other), one.max(other)));
    // A pair follows from a wider one: records with `one` have `wider`, which never occurs with `other`.
    let follows = |one: Value, other: Value| {
        let mut wider = closure.thens(one).iter();
        wider.any(|&wider| is_never(wider, other) && (wider < one || !closure.has(wider, one)))
    };
    never.retain(|&(one, other)| !follows(one, other) && !follows(other, one));
    let expected = |&(one, other): &(Value, Value)| pairs.expected(one, other);
    never.sort_by(|a, b| expected(b).total_cmp(&expected(a)));
    never.truncate(MAX_PAIRS);
    never
}

/// Groups pairs by a value and the other column. A value that goes with few values of a column is one rule.
fn grouped(pairs: &Pairs<'_>, mut never: Vec<(Value, Value)>) -> Vec<Exclusion> {
    let mut exclusions = Vec::new();
    loop {
        let mut groups: BTreeMap<(Value, usize), Vec<Value>> = BTreeMap::new();
        for &(one, other) in &never {
            groups.entry((one, other.0)).or_default().push(other);
            groups.entry((other, one.0)).or_default().push(one);
        }
        let shorter = groups.into_iter().filter(|((_, column), others)| {
            let allowed = allowed(pairs, *column, others);
            others.len() > 1 && allowed.len() <= others.len()
        });
        let Some(((value, _), others)) = shorter.max_by_key(|(_, others)| others.len()) else {
            break;
        };
        never.retain(|&(one, other)| {
            !(one == value && others.contains(&other) || other == value && others.contains(&one))
        });
        exclusions.push(Exclusion::of(pairs, value, others));
    }
    let single = never.into_iter();
    exclusions.extend(single.map(|(one, other)| Exclusion::of(pairs, one, vec![other])));
    exclusions
}

/// Returns the values of a column that are not excluded.
fn allowed(pairs: &Pairs<'_>, column: usize, excluded: &[Value]) -> Vec<String> {
    let Some(form) = pairs.columns.get(column).map(|states| states.form) else {
        return Vec::new();
    };
    let listed = form.categories.as_ref().or(form.codes.as_ref());
    let is_free = |text: &&String| excluded.iter().all(|&other| pairs.text(other) != **text);
    let values = listed.into_iter().flatten().filter(is_free).cloned();
    values.chain(form.nullable.then(String::new)).collect()
}

impl Exclusion {
    fn of(pairs: &Pairs<'_>, value: Value, others: Vec<Value>) -> Self {
        let expected = others
            .iter()
            .map(|&other| pairs.expected(value, other))
            .sum();
        Self {
            value,
            others,
            expected,
        }
    }

    fn rule(&self, pairs: &Pairs<'_>) -> Option<ProposedRule> {
        let text = |value: Value| (pairs.name(value), pairs.text(value).to_owned());
        let &other = self.others.first()?;
        let records = |value: &Value| pairs.records(*value);
        if self.others.len() == 1 {
            let values = [self.value, other].map(text);
            let records = records(&self.value) + records(&other);
            return Some(rule(
                Constraint::Never(values.into_iter().collect()),
                records,
            ));
        }
        let (column, value) = text(self.value);
        let allowed = allowed(pairs, other.0, &self.others);
        let implies = Implies {
            when: BTreeMap::from([(column, vec![value])]),
            then: BTreeMap::from([(pairs.name(other), allowed)]),
        };
        Some(rule(Constraint::Implies(implies), records(&self.value)))
    }
}

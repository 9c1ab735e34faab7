//! Draws values that satisfy a schema's constraints, within what a record's codes allow.
//!
//! Groups of rules that share no field are satisfied separately, so that drawing again for one group does not change
//! the values of another. If [`TRIES`] draws of all fields of a group fail, only the fields of a broken rule are drawn
//! again, one rule after the other. If that fails too, the values are set to ones that satisfy the rules.

use std::collections::{BTreeMap, BTreeSet};

use rand::Rng;

use super::{
    rule::{Rule, RuleSet},
    rules::Bounds,
};
use crate::{Field, Value, ordered_words::Drawn};

/// Number of draws of all fields of connected rules.
const TRIES: usize = 64;

/// Number of rules to check while the fields of single broken rules are drawn again, before [`put`] sets the values.
const REPAIRS: usize = 1 << 16;

/// Makes the numbers among a record's drawn values satisfy the schema's constraints, as far as its codes allow
/// ([`crate::Schema::allows`]). `values` are those of the written fields, in order.
pub(crate) fn hold<'a>(
    set: RuleSet<'a>,
    code: &dyn Fn(usize) -> u32,
    rng: &mut (impl Rng + ?Sized),
    values: &mut [Value<'a>],
) {
    let Some(bounds) = Bounds::of(set, code).filter(|bounds| !bounds.spans.is_empty()) else {
        return;
    };
    let mut steps: BTreeMap<usize, i64> = BTreeMap::new();
    for &field in bounds.spans.keys() {
        if let Some(Value::Decimal(number)) = place(set, field).and_then(|place| values.get(place))
        {
            steps.insert(field, number.step());
        }
    }
    let all: Vec<&Rule> = set.rules.iter().collect();
    if broken(&bounds, &all, &mut steps).is_some() {
        for rules in together(&all) {
            hold_rules(&bounds, &rules, rng, &mut steps);
        }
    }
    for (field, step) in steps {
        let number = set.fields.get(field).and_then(Field::number);
        let value = place(set, field).and_then(|place| values.get_mut(place));
        if let (Some(number), Some(value)) = (number, value) {
            *value = Value::Decimal(number.style.number(step));
        }
    }
}

/// Groups the rules of numbers that share fields directly or through other rules.
fn together<'a>(rules: &[&'a Rule]) -> Vec<Vec<&'a Rule>> {
    let mut groups: Vec<(BTreeSet<usize>, Vec<&'a Rule>)> = Vec::new();
    for &rule in rules {
        let mut fields: BTreeSet<usize> = rule.numbers().0.into_iter().collect();
        if fields.is_empty() {
            continue;
        }
        let mut own = vec![rule];
        let shares = |group: &(BTreeSet<usize>, _)| !group.0.is_disjoint(&fields);
        let (shared, apart): (Vec<_>, Vec<_>) = groups.into_iter().partition(shares);
        for (others, rules) in shared {
            fields.extend(others);
            own.extend(rules);
        }
        groups = apart;
        groups.push((fields, own));
    }
    groups.into_iter().map(|(_, rules)| rules).collect()
}

/// Makes the fields of connected rules satisfy them.
fn hold_rules(
    bounds: &Bounds<'_>,
    rules: &[&Rule],
    rng: &mut (impl Rng + ?Sized),
    steps: &mut BTreeMap<usize, i64>,
) {
    let fields: BTreeSet<usize> = rules.iter().flat_map(|rule| rule.numbers().0).collect();
    let repairs = REPAIRS / rules.len().max(1);
    for attempt in 0..TRIES + repairs {
        let Some(rule) = broken(bounds, rules, steps) else {
            return;
        };
        if attempt < TRIES {
            draw_anew(bounds, fields.iter().copied(), rng, steps);
        } else {
            draw_anew(bounds, rule.numbers().0.into_iter(), rng, steps);
        }
    }
    put(bounds, rules, &fields, steps);
    broken(bounds, rules, steps);
}

/// Draws the values of fields from their codes again.
fn draw_anew(
    bounds: &Bounds<'_>,
    fields: impl Iterator<Item = usize>,
    rng: &mut (impl Rng + ?Sized),
    steps: &mut BTreeMap<usize, i64>,
) {
    for field in fields {
        if let Some(step) = steps.get_mut(&field)
            && let Some(drawn) = draw(bounds.rules, field, bounds.code, rng)
        {
            *step = drawn;
        }
    }
}

/// Returns the index of a field's value among those of the written fields.
fn place(set: RuleSet<'_>, field: usize) -> Option<usize> {
    let before = set.fields.get(..field)?;
    Some(before.iter().filter(|field| field.is_written()).count())
}

fn draw(
    set: RuleSet<'_>,
    field: usize,
    code: &dyn Fn(usize) -> u32,
    rng: &mut (impl Rng + ?Sized),
) -> Option<i64> {
    let field = set.fields.get(field)?;
    let part = field.parts.first()?;
    let digit = part.fine.map_or(0, code);
    match field.number()?.values.sample(code(part.coarse), digit, rng) {
        Drawn::Step(step) => Some(step),
        Drawn::Word(_) => None,
    }
}

/// Returns the first rule that the steps break. Also sets each total to the sum of its parts.
fn broken<'a>(
    bounds: &Bounds<'_>,
    rules: &[&'a Rule],
    steps: &mut BTreeMap<usize, i64>,
) -> Option<&'a Rule> {
    let holds = |rule: &Rule, steps: &mut BTreeMap<usize, i64>| match rule {
        Rule::AtMost(low, high) => match (steps.get(low), steps.get(high)) {
            (Some(low), Some(high)) => low <= high,
            _ => true,
        },
        Rule::Sum { total, parts } => {
            if bounds.sum(*total, parts).is_none() {
                return true;
            }
            let sum: i64 = parts.iter().filter_map(|part| steps.get(part)).sum();
            let within = bounds
                .coarse(*total)
                .is_some_and(|(first, last)| (first..=last).contains(&sum));
            steps.insert(*total, sum);
            within
        }
        Rule::Together(..) | Rule::Never(_) | Rule::Implies(_) | Rule::Time(_) => true,
    };
    rules.iter().copied().find(|rule| !holds(rule, steps))
}

/// Sets steps that satisfy the rules: each field to its minimum. Then the parts of a sum are raised in order until the
/// sum is large enough.
fn put(
    bounds: &Bounds<'_>,
    rules: &[&Rule],
    fields: &BTreeSet<usize>,
    steps: &mut BTreeMap<usize, i64>,
) {
    for field in fields {
        if let Some(&(first, _)) = bounds.spans.get(field) {
            steps.insert(*field, first);
        }
    }
    for rule in rules {
        let Rule::Sum { total, parts } = rule else {
            continue;
        };
        let (Some((least, _)), Some((wanted, _))) =
            (bounds.sum(*total, parts), bounds.coarse(*total))
        else {
            continue;
        };
        let mut missing = wanted.saturating_sub(least).max(0);
        for part in parts {
            if let (Some(step), Some((first, last))) = (steps.get_mut(part), bounds.spans.get(part))
            {
                let raised = missing.min(last - first);
                *step = first + raised;
                missing -= raised;
            }
        }
    }
}

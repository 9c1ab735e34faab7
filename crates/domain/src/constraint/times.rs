//! Rules between dates: their order, and ages.
//!
//! A record's codes leave a set of values to each field. Every rule, and every distance of a field from the one that it
//! is relative to, bounds one field from below by another one, and the other one from above. So the least values that
//! satisfy all bounds satisfy all rules, and codes are allowed if such values exist ([`open::Open::least`]). An age is
//! not drawn: it follows from the dates, which its coarse code bounds in the same way.

mod age;
pub(crate) mod group;
mod hold;
mod open;
pub(crate) mod rule;
mod span;

use std::collections::{BTreeSet, HashMap};

pub(crate) use self::hold::hold;
use self::{
    age::Calendar,
    group::{Group, base},
    rule::{At, Scale, TimeRule},
};
use super::rule::{Numbers, Rule, RuleSet};
use crate::{
    Field,
    times::{Dated, Reading},
};

/// The dates and datetimes of a record, by field, as in its table.
pub(crate) type Readings = HashMap<usize, Reading>;

impl TimeRule {
    /// Returns whether a record of a table satisfies the rule.
    pub(super) fn holds(&self, fields: &[Field], numbers: &Numbers, readings: &Readings) -> bool {
        let step = |field: usize| {
            let number = fields.get(field)?.number()?;
            number.style.step(*numbers.get(&field)?)
        };
        let reading = |field: usize| Some((fields.get(field)?.dated()?, readings.get(&field)?));
        match *self {
            Self::Order {
                low,
                high,
                by: Scale::Step,
            } => step(low)
                .zip(step(high))
                .is_none_or(|(low, high)| low <= high),
            Self::Order { low, high, by } => {
                let pair = reading(low).zip(reading(high));
                pair.is_none_or(|(low, high)| by.key(low.0, *low.1) <= by.key(high.0, *high.1))
            }
            Self::Age { age, born, at } => {
                let value = |field: usize| {
                    let calendar = Calendar::of(fields.get(field)?)?;
                    let seconds = readings.get(&field).map(|reading| reading.seconds);
                    Some((calendar, seconds.or_else(|| step(field))?))
                };
                let time = match at {
                    At::Year(year) | At::EndOfYear(year) => Some((Calendar::YEARS, year)),
                    At::Field(at) | At::EndOfField(at) => value(at),
                };
                let (Some(age), Some(born), Some(time)) = (step(age), value(born), time) else {
                    return true;
                };
                let (of_born, of_time) = born.0.common(time.0, at.is_year_end());
                let (least, most) = age::ages(of_born.dates(born.1), of_time.dates(time.1));
                (least..=most).contains(&age)
            }
        }
    }
}

impl Scale {
    /// Returns the value that a field's reading is compared by.
    fn key(self, dated: &Dated, reading: Reading) -> (i64, u32) {
        let Reading { seconds, nanos, .. } = reading;
        match self {
            Self::Grid(grid) => (grid.step(dated.format.day(seconds)), 0),
            Self::Universal => {
                let east = dated.format.seconds_east(reading.offset);
                (seconds.saturating_sub(east), nanos)
            }
            Self::Own | Self::Step => (seconds, nanos),
        }
    }
}

/// Turns the order of numbers into a rule of dates where ages depend on the same years. Their values are held together.
pub(super) fn take_years(rules: &mut [Rule], fields: &[Field]) {
    let years = rules.iter().filter_map(|rule| match rule {
        Rule::Time(rule) => rule.year(fields),
        _ => None,
    });
    let mut taken: BTreeSet<usize> = years.collect();
    let mut grows = !taken.is_empty();
    while grows {
        grows = false;
        for rule in &mut *rules {
            if let Rule::AtMost(low, high) = *rule
                && (taken.contains(&low) || taken.contains(&high))
            {
                taken.extend([low, high]);
                let by = Scale::Step;
                *rule = Rule::Time(TimeRule::Order { low, high, by });
                grows = true;
            }
        }
    }
}

/// Groups the rules of dates that share fields directly, through other rules, or through fields that theirs are
/// relative to.
pub(crate) fn groups(rules: &[Rule], fields: &[Field]) -> Vec<Group> {
    let mut groups: Vec<(BTreeSet<usize>, Vec<TimeRule>)> = Vec::new();
    for rule in rules {
        let Rule::Time(rule) = rule else {
            continue;
        };
        let mut all: BTreeSet<usize> = BTreeSet::new();
        for field in rule.bounded() {
            let mut next = Some(field);
            while let Some(field) = next {
                all.insert(field);
                next = base(fields, field);
            }
        }
        let mut own = vec![*rule];
        let shares = |group: &(BTreeSet<usize>, _)| !group.0.is_disjoint(&all);
        let (shared, apart): (Vec<_>, Vec<_>) = groups.into_iter().partition(shares);
        for (others, rules) in shared {
            all.extend(others);
            own.extend(rules);
        }
        groups = apart;
        groups.push((all, own));
    }
    let group = |(all, rules): (BTreeSet<usize>, Vec<TimeRule>)| Group::new(fields, &all, &rules);
    groups.into_iter().map(group).collect()
}

/// Returns whether a record with the codes that `code` gives can have dates that satisfy the rules.
pub(super) fn allows(set: RuleSet<'_>, code: &dyn Fn(usize) -> u32) -> bool {
    let is_open = |group| {
        let open = open::Open::of(set, group, code, false);
        open.least().is_some()
    };
    set.groups.iter().all(is_open)
}

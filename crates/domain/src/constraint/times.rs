//! Rules between dates: their order, and ages.
//!
//! A record's codes leave a set of values to each field. Every rule, and every distance of a field from the one that it
//! is relative to, bounds one field from below by another one, and the other one from above. So the least values that
//! satisfy all bounds satisfy all rules, and codes are allowed if such values exist ([`open::Open::least`]). An age is
//! not drawn: it follows from the dates, which its coarse code bounds in the same way.

mod age;
mod hold;
mod open;
mod span;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use self::age::Calendar;
pub(crate) use self::hold::hold;
use super::{
    Age, AgeAt,
    rules::{Numbers, Rule, RuleSet, number_field},
};
use crate::{
    Field,
    field::Meaning,
    times::{Dated, Grid, Reading, TimeScale, special_day},
};

/// The dates and datetimes of a record, by field, as in its table.
pub(crate) type Readings = HashMap<usize, Reading>;

/// A rule between dates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum TimeRule {
    /// The first field's value is at most the second's.
    Order { low: usize, high: usize, by: Scale },
    /// The number of one field is the age between two dates.
    Age { age: usize, born: usize, at: At },
}

/// The values that two fields are compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Steps of numbers.
    Step,
    /// Months or days.
    Grid(Grid),
    /// Moments of the columns' own clocks.
    Own,
    /// Moments in universal time.
    Universal,
}

/// The time at which an age was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    Year(i64),
    Field(usize),
}

/// Fields that rules connect directly or through other fields.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Group {
    /// The fields of dates, moments and years, ascending: a field comes after the one that it is relative to.
    fields: Vec<usize>,
    /// The place of each field among those that are written.
    places: Vec<usize>,
    /// The rules. Except for ages, their fields are indices of `fields`.
    rules: Vec<TimeRule>,
    /// Other fields that are relative to these, ascending.
    followers: Vec<usize>,
}

/// Returns the format and words of a field of dates or datetimes.
fn dated(field: &Field) -> Option<&Dated> {
    match &field.meaning {
        Meaning::Time(time) => Some(&time.dated),
        Meaning::Lapse(lapse) => Some(&lapse.dated),
        _ => None,
    }
}

/// Returns the field that a field is relative to.
fn base(fields: &[Field], field: usize) -> Option<usize> {
    match &fields.get(field)?.meaning {
        Meaning::Lapse(lapse) => Some(lapse.base),
        _ => None,
    }
}

fn is_date(dated: &Dated) -> bool {
    dated.format.grain() == crate::DAY
}

/// Resolves the order of two fields, or returns `None` unless both have dates or datetimes.
pub(super) fn order(fields: &[Field], low: usize, high: usize) -> Option<TimeRule> {
    let (one, other) = (dated(fields.get(low)?)?, dated(fields.get(high)?)?);
    let grids = [one.format.grid(), other.format.grid()];
    let is_universal = |dated: &Dated| dated.format.scale() == TimeScale::Universal;
    let by = if grids.contains(&Grid::Month) {
        Scale::Grid(Grid::Month)
    } else if is_date(one) || is_date(other) {
        Scale::Grid(Grid::Day)
    } else if is_universal(one) && is_universal(other) {
        Scale::Universal
    } else {
        Scale::Own
    };
    Some(TimeRule::Order { low, high, by })
}

/// Resolves an age. `field` finds a field by its name.
pub(super) fn age(
    fields: &[Field],
    rule: &Age,
    field: impl Fn(&String) -> Result<usize, &'static str>,
) -> Result<TimeRule, &'static str> {
    let is_whole = |index: usize| {
        let style = fields.get(index).and_then(number_field);
        style.is_some_and(|number| (number.style.decimals, number.style.step) == (0, 1))
    };
    let has_dates = |index: usize| fields.get(index).and_then(dated).is_some();
    let (age, born) = (field(&rule.age)?, field(&rule.born)?);
    if !is_whole(age) {
        return Err(
            "`age` must be a column of kind `number` with whole numbers and without `step`",
        );
    }
    if !has_dates(born) && !is_whole(born) {
        return Err(
            "`born` must be a column of kind `date` or `datetime`, or one of kind `number` with years, \
             without decimals and `step`",
        );
    }
    let at = match &rule.at {
        AgeAt::Year(year) if (1..=9999).contains(year) => At::Year(*year),
        AgeAt::Year(_) => return Err("the year in `at` must be from 1 to 9999"),
        AgeAt::Column(name) => At::Field(field(name)?),
    };
    match at {
        At::Field(at) if !has_dates(at) => {
            Err("`at` must be a column of kind `date` or `datetime`, or a year")
        }
        At::Field(at) if at == born => Err("it names a column twice"),
        _ if age == born => Err("it names a column twice"),
        at => Ok(TimeRule::Age { age, born, at }),
    }
}

impl TimeRule {
    /// Returns the fields whose values the rule bounds.
    fn bounded(&self) -> Vec<usize> {
        match *self {
            Self::Order { low, high, .. } => vec![low, high],
            Self::Age { born, at, .. } => match at {
                At::Year(_) => vec![born],
                At::Field(at) => vec![born, at],
            },
        }
    }

    /// Returns the field of the age.
    pub(super) fn age(&self) -> Option<usize> {
        match self {
            Self::Age { age, .. } => Some(*age),
            Self::Order { .. } => None,
        }
    }

    /// Returns the year of birth, if it is a field of numbers.
    pub(super) fn year(&self, fields: &[Field]) -> Option<usize> {
        let is_number = |field: &usize| fields.get(*field).and_then(number_field).is_some();
        match self {
            Self::Age { born, .. } => Some(*born).filter(is_number),
            Self::Order { .. } => None,
        }
    }

    /// Returns the rule with an index of `fields` in place of each field but that of an age.
    fn with_indices(self, fields: &[usize]) -> Self {
        // `fields` has all fields of the rule.
        let index = |field: usize| fields.binary_search(&field).unwrap_or_else(|place| place);
        match self {
            Self::Order { low, high, by } => Self::Order {
                low: index(low),
                high: index(high),
                by,
            },
            Self::Age { age, born, at } => Self::Age {
                age,
                born: index(born),
                at: match at {
                    At::Year(_) => at,
                    At::Field(at) => At::Field(index(at)),
                },
            },
        }
    }

    /// Returns whether a record of a table satisfies the rule.
    pub(super) fn holds(&self, fields: &[Field], numbers: &Numbers, readings: &Readings) -> bool {
        let step = |field: usize| {
            let number = number_field(fields.get(field)?)?;
            number.style.step(*numbers.get(&field)?)
        };
        let reading = |field: usize| Some((dated(fields.get(field)?)?, readings.get(&field)?));
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
                let at = match at {
                    At::Year(year) => Some((Calendar::YEARS, year)),
                    At::Field(at) => value(at),
                };
                let (Some(age), Some(born), Some(at)) = (step(age), value(born), at) else {
                    return true;
                };
                let (of_born, of_at) = born.0.common(at.0);
                let (least, most) = age::ages(of_born.dates(born.1), of_at.dates(at.1));
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

impl Group {
    fn new(fields: &[Field], own: &BTreeSet<usize>, rules: &[TimeRule]) -> Self {
        let written = fields.iter().filter(|field| field.is_written());
        let places: BTreeMap<&str, usize> = written.map(Field::name).zip(0..).collect();
        let place = |field: &usize| {
            let name = fields.get(*field).map_or("", Field::name);
            places.get(name).copied().unwrap_or(usize::MAX)
        };
        let mut all = own.clone();
        let mut followers = Vec::new();
        for field in 0..fields.len() {
            let follows = base(fields, field).is_some_and(|base| all.contains(&base));
            if follows && all.insert(field) {
                followers.push(field);
            }
        }
        let ascending: Vec<usize> = own.iter().copied().collect();
        Self {
            places: ascending.iter().map(place).collect(),
            rules: rules
                .iter()
                .map(|rule| rule.with_indices(&ascending))
                .collect(),
            fields: ascending,
            followers,
        }
    }
}

/// Returns whether a record with the codes that `code` gives can have dates that satisfy the rules.
pub(super) fn allows(set: RuleSet<'_>, code: &dyn Fn(usize) -> u32) -> bool {
    let is_open = |group| {
        let open = open::Open::of(set, group, code, false);
        open.least().is_some()
    };
    set.groups.iter().all(is_open)
}

/// Returns whether a record has no value in a field because the value counts from a missing one.
pub(super) fn lacks_base(set: RuleSet<'_>, field: usize, code: &dyn Fn(usize) -> u32) -> bool {
    let (mut next, mut is_base) = (field, false);
    // A field is relative to an earlier one, so this ends.
    loop {
        let Some(field) = set.fields.get(next) else {
            return false;
        };
        let (ordered, base) = match &field.meaning {
            Meaning::Lapse(lapse) => (&lapse.units, Some(lapse.base)),
            Meaning::Time(time) => (&time.days, None),
            _ => return false,
        };
        let (Some(dated), Some(part)) = (dated(field), field.parts.first()) else {
            return false;
        };
        if is_base && set.has_null(next, code) {
            return true;
        }
        let step = ordered.span(code(part.coarse), None).0;
        if let Some(word) = dated.words.at(step) {
            return is_base && dated.words.reading(word).is_none();
        }
        match base {
            Some(base) if special_day(step).is_none() => (next, is_base) = (base, true),
            _ => return false,
        }
    }
}

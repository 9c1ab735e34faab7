//! The dates that a record's codes leave open, and the bounds that rules put on them.

use super::{
    age::{self, Calendar},
    group::Group,
    rule::{At, Scale, TimeRule},
    span::{Domain, Instant, Side, first_of, last_of},
};
use crate::{Field, attributes::Codes, constraint::rule::RuleSet, ordered::StepSet};

/// Number of times that the bounds of all rules are applied in addition to once for each rule. Bounds that still change
/// then rise forever: the rules and the codes contradict each other.
const ROUNDS: usize = 64;

/// A bound on a field: the field's index in [`Group::fields`], and the bound.
type Bound = Option<(usize, Instant)>;

/// The values that a record's codes leave to the fields of a group.
pub(super) struct Open<'a> {
    pub(super) set: RuleSet<'a>,
    pub(super) group: &'a Group,
    /// Values by index of [`Group::fields`]; `None` where the record has none.
    pub(super) domains: Vec<Option<Domain<'a>>>,
    /// The ages of each rule.
    pub(super) ages: Vec<Option<StepSet<'a>>>,
}

impl<'a> Open<'a> {
    /// Returns the values that the codes leave open. With `fine`, the digits of ages count.
    pub(super) fn of(
        set: RuleSet<'a>,
        group: &'a Group,
        code: &dyn Fn(usize) -> u32,
        fine: bool,
    ) -> Self {
        let mut domains = Vec::with_capacity(group.fields.len());
        for &index in &group.fields {
            let field = set.fields.get(index);
            let domain =
                field.and_then(|field| Domain::of(field, set.columns, code, group, &domains));
            domains.push(domain);
        }
        let ages = group.rules.iter().map(|rule| {
            let field = set.fields.get(rule.age()?)?;
            age_codes(set, field, code, fine)
        });
        Self {
            ages: ages.collect(),
            domains,
            set,
            group,
        }
    }

    /// Returns the least values that satisfy all rules, by index, or `None` if none do.
    pub(super) fn least(&self) -> Option<Vec<Instant>> {
        self.ends(Side::Least)
    }

    /// Returns the largest values that satisfy all rules.
    pub(super) fn most(&self) -> Option<Vec<Instant>> {
        self.ends(Side::Most)
    }

    fn ends(&self, side: Side) -> Option<Vec<Instant>> {
        let start = match side {
            Side::Least => Instant::FIRST,
            Side::Most => Instant::LAST,
        };
        let ends = self.domains.iter().map(|domain| match domain {
            Some(domain) => domain.nearest(start, side),
            None => Some(start),
        });
        let mut ends: Vec<Instant> = ends.collect::<Option<_>>()?;
        self.tighten(&mut ends, side).then_some(ends)
    }

    /// Moves the ends of ranges until they satisfy all rules. Returns false if a range is empty.
    pub(super) fn tighten(&self, ends: &mut [Instant], side: Side) -> bool {
        let rounds = ROUNDS + self.group.fields.len() + self.group.rules.len();
        for _ in 0..rounds {
            let mut moved = false;
            for number in 0..self.group.fields.len() + self.group.rules.len() {
                for (index, bound) in self.bounds(number, ends, side).into_iter().flatten() {
                    let (Some(Some(domain)), Some(end)) =
                        (self.domains.get(index), ends.get_mut(index))
                    else {
                        continue;
                    };
                    let is_met = match side {
                        Side::Least => *end >= bound,
                        Side::Most => *end <= bound,
                    };
                    if is_met {
                        continue;
                    }
                    let Some(nearest) = domain.nearest(bound, side) else {
                        return false;
                    };
                    *end = nearest;
                    moved = true;
                }
            }
            if !moved {
                return self.meets_years(ends, side);
            }
        }
        false
    }

    /// Returns whether the ends of ranges also satisfy the bounds from the other side that do not depend on another
    /// field: those of ages in a given year.
    fn meets_years(&self, ends: &[Instant], side: Side) -> bool {
        let other = match side {
            Side::Least => Side::Most,
            Side::Most => Side::Least,
        };
        self.group.rules.iter().enumerate().all(|(rule, of)| {
            let TimeRule::Age { born, at, .. } = *of else {
                return true;
            };
            let bounds = match at.field() {
                None => self.bounds_of_age(rule, born, at, ends, other),
                Some(_) => None,
            };
            let bound = bounds.and_then(|[_, bound]| bound);
            let end = ends.get(born).copied().unwrap_or_default();
            bound.is_none_or(|(_, bound)| match side {
                Side::Least => end <= bound,
                Side::Most => end >= bound,
            })
        })
    }

    /// Returns the bounds of a field's distance from another one, or of a rule. The distances come first.
    fn bounds(&self, number: usize, ends: &[Instant], side: Side) -> [Bound; 2] {
        let found = match number.checked_sub(self.group.fields.len()) {
            None => self.bounds_of_link(number, ends, side),
            Some(rule) => self.bounds_of_rule(rule, ends, side),
        };
        found.unwrap_or([None; 2])
    }

    /// Returns the bound on a field from the values of the others.
    pub(super) fn bound(&self, index: usize, values: &[Instant], side: Side) -> Instant {
        let all = 0..self.group.fields.len() + self.group.rules.len();
        let bounds = all.flat_map(|number| self.bounds(number, values, side));
        let own = bounds.flatten().filter(|&(of, _)| of == index);
        let own = own.map(|(_, bound)| bound);
        match side {
            Side::Least => own.max().unwrap_or(Instant::FIRST),
            Side::Most => own.min().unwrap_or(Instant::LAST),
        }
    }

    fn domain(&self, index: usize) -> Option<&Domain<'a>> {
        self.domains.get(index)?.as_ref()
    }

    fn bounds_of_link(&self, index: usize, ends: &[Instant], side: Side) -> Option<[Bound; 2]> {
        let domain = self.domain(index)?;
        let (link, format) = (domain.link?, domain.format()?);
        let (own, base) = (*ends.get(index)?, *ends.get(link.base)?);
        Some([
            Some((index, link.later(format, base, side))),
            Some((link.base, link.base(format, own, side))),
        ])
    }

    fn bounds_of_rule(&self, rule: usize, ends: &[Instant], side: Side) -> Option<[Bound; 2]> {
        match *self.group.rules.get(rule)? {
            TimeRule::Order { low, high, by } => {
                let (from, to) = match side {
                    Side::Least => (low, high),
                    Side::Most => (high, low),
                };
                let bound = self.order(by, from, to, *ends.get(from)?, side)?;
                Some([Some((to, bound)), None])
            }
            TimeRule::Age { born, at, .. } => self.bounds_of_age(rule, born, at, ends, side),
        }
    }

    /// Returns the bound on one field of an order from the other one.
    fn order(
        &self,
        by: Scale,
        from: usize,
        to: usize,
        end: Instant,
        side: Side,
    ) -> Option<Instant> {
        let (one, other) = (self.domain(from)?, self.domain(to)?);
        Some(match by {
            Scale::Step | Scale::Own => end,
            Scale::Universal => {
                let east = |index| self.seconds_east(index);
                end.plus(east(to).saturating_sub(east(from)))
            }
            Scale::Grid(grid) => {
                let step = grid.step(one.format()?.day(end.whole));
                match side {
                    Side::Least => first_of(other.format()?, grid, step),
                    Side::Most => last_of(other.format()?, grid, step),
                }
            }
        })
    }

    fn seconds_east(&self, index: usize) -> i64 {
        self.domain(index).map_or(0, Domain::seconds_east)
    }

    /// Returns the bounds on the dates of an age. The age is at least the least of its code if the last date at which it
    /// may have been taken is late enough, and at most the largest if the first date is early enough.
    fn bounds_of_age(
        &self,
        rule: usize,
        born: usize,
        at: At,
        ends: &[Instant],
        side: Side,
    ) -> Option<[Bound; 2]> {
        let (least, most) = self.ages(rule)?;
        let (of_born, of_at) = self.calendars(born, at)?;
        let born_dates = of_born.dates(ends.get(born)?.whole);
        let at_dates = of_at.dates(time(at, ends)?);
        let bound_at = |bound| at.field().map(|at| (at, bound));
        let too_late = most.saturating_add(1);
        Some(match side {
            Side::Least => {
                let first = age::later(born_dates.0, least);
                let born_after = age::later(at_dates.0, -too_late).saturating_add(1);
                let bound = Instant::at(of_born.at_least(born_after));
                [
                    bound_at(Instant::at(of_at.at_least(first))),
                    Some((born, bound)),
                ]
            }
            Side::Most => {
                let last = age::later(born_dates.1, too_late).saturating_sub(1);
                let born_before = age::later(at_dates.1, -least);
                let bound = Instant::end(of_born.at_most(born_before));
                [
                    bound_at(Instant::end(of_at.at_most(last))),
                    Some((born, bound)),
                ]
            }
        })
    }

    /// Returns the calendars of an age's dates, with the part of dates that is known in both.
    fn calendars(&self, born: usize, at: At) -> Option<(Calendar<'a>, Calendar<'a>)> {
        let calendar = |index: usize| self.domain(index).map(Domain::calendar);
        let of_at = match at.field() {
            None => Calendar::YEARS,
            Some(at) => calendar(at)?,
        };
        Some(calendar(born)?.common(of_at, at.is_year_end()))
    }

    /// Returns the least and the largest age of a rule's code.
    fn ages(&self, rule: usize) -> Option<(i64, i64)> {
        let ages = self.ages.get(rule)?.as_ref()?;
        Some((ages.at_least(i64::MIN)?, ages.at_most(i64::MAX)?))
    }

    /// Returns the ages between two dates, by index.
    pub(super) fn between(&self, born: usize, at: At, values: &[Instant]) -> Option<(i64, i64)> {
        let (of_born, of_at) = self.calendars(born, at)?;
        let birth = values.get(born)?.whole;
        let at_dates = of_at.dates(time(at, values)?);
        Some(age::ages(of_born.dates(birth), at_dates))
    }

    /// Returns whether values satisfy all rules and have the codes' distances.
    pub(super) fn holds(&self, values: &[Instant]) -> bool {
        let links = 0..self.group.fields.len();
        let mut bounds = links
            .chain(self.orders())
            .flat_map(|number| self.bounds(number, values, Side::Least))
            .flatten();
        let are_met = bounds.all(|(index, bound)| values.get(index) >= Some(&bound));
        are_met && (0..self.group.rules.len()).all(|rule| self.has_age(rule, values))
    }

    /// Numbers of the rules that are no ages, as in [`Self::bounds`].
    fn orders(&self) -> impl Iterator<Item = usize> + '_ {
        let first = self.group.fields.len();
        let rules = self.group.rules.iter().zip(first..);
        rules
            .filter(|(rule, _)| rule.age().is_none())
            .map(|(_, number)| number)
    }

    /// Returns whether an age of the rule's code fits to the dates.
    fn has_age(&self, rule: usize, values: &[Instant]) -> bool {
        let (Some(TimeRule::Age { born, at, .. }), Some(Some(ages))) =
            (self.group.rules.get(rule), self.ages.get(rule))
        else {
            return true;
        };
        self.between(*born, *at, values)
            .is_none_or(|(least, most)| ages.at_least(least).is_some_and(|age| age <= most))
    }
}

/// Returns the value of an age's time: a year, or that of its field.
fn time(at: At, values: &[Instant]) -> Option<i64> {
    match at {
        At::Year(year) | At::EndOfYear(year) => Some(year),
        At::Field(at) | At::EndOfField(at) => Some(values.get(at)?.whole),
    }
}

/// Returns the ages that the codes of a field leave open, or `None` if it has no number.
fn age_codes<'a>(
    set: RuleSet<'a>,
    field: &'a Field,
    code: &dyn Fn(usize) -> u32,
    fine: bool,
) -> Option<StepSet<'a>> {
    let mut codes = Codes {
        columns: set.columns,
        code,
        parts: field.parts.iter(),
    };
    let (coarse, digit) = codes.next()?;
    let number = field.number()?;
    number.values.steps(coarse, Some(digit).filter(|_| fine))
}

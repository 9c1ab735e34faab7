//! Constraints resolved to fields, and the values that a record's codes leave open.

use std::collections::BTreeMap;

use super::{
    Constraint, Sum, calendar,
    implies::{Implication, OwnCodesOf},
    rule::{Numbers, Rule, RuleSet},
    times::{self, Readings, rule as time_rule},
};
use crate::{
    Field, SchemaProblem, field::Meaning, limits::MAX_CONSTRAINTS, names::cut, ordered::Span,
};

/// Resolves constraints to the fields of a schema. `own_codes_of` returns the codes of a field's value, which it shares
/// with no other value.
///
/// # Errors
/// [`SchemaProblem::Constraints`] for too many constraints, [`SchemaProblem::Constraint`] for one that does not fit the
/// fields.
pub(crate) fn resolve(
    constraints: &[Constraint],
    fields: &[Field],
    own_codes_of: &OwnCodesOf<'_>,
) -> Result<Vec<Rule>, SchemaProblem> {
    if constraints.len() > MAX_CONSTRAINTS {
        return Err(SchemaProblem::Constraints(constraints.len()));
    }
    // A sum sets the values of its columns, and dates set ages: no other constraint of numbers may use them.
    let mut taken = BTreeMap::new();
    let mut rules = Vec::with_capacity(constraints.len());
    for constraint in constraints {
        let rule = rule(constraint, fields, own_codes_of).and_then(|rule| {
            for (field, usage) in rule.uses(fields) {
                match (taken.insert(field, usage), usage) {
                    (None, _) | (Some(Usage::Bound), Usage::Bound) => {}
                    (Some(Usage::Age), _) | (_, Usage::Age) => {
                        return Err(
                            "the column of an age cannot be in another constraint of numbers",
                        );
                    }
                    _ => {
                        return Err("a column of a sum cannot be in another constraint of numbers");
                    }
                }
            }
            Ok(rule)
        });
        rules.push(rule.map_err(|problem| refused(constraint, problem))?);
    }
    for (constraint, rule) in constraints.iter().zip(&rules) {
        if let Some(problem) = set_digit(rule, &rules, fields) {
            return Err(refused(constraint, problem));
        }
    }
    times::take_years(&mut rules, fields);
    Ok(rules)
}

fn refused(constraint: &Constraint, problem: &'static str) -> SchemaProblem {
    SchemaProblem::Constraint {
        constraint: cut(&constraint.to_string()),
        problem,
    }
}

/// Returns why a rule must not refer to one of its attributes: [`super::hold()`] and [`super::hold_times`] do not keep the
/// digits of totals and ages.
fn set_digit(rule: &Rule, rules: &[Rule], fields: &[Field]) -> Option<&'static str> {
    let attributes = match rule {
        Rule::Implies(implication) => implication.other_attributes(),
        Rule::Never(codes) => codes.iter().map(|&(attribute, _)| attribute).collect(),
        _ => return None,
    };
    let has_digit = |field: usize| {
        let part = fields.get(field).and_then(|field| field.parts.first());
        let digit = part.and_then(|part| part.fine);
        digit.is_some_and(|digit| attributes.contains(&digit))
    };
    rules.iter().find_map(|other| match (other, rule) {
        (Rule::Sum { total, .. }, _) if has_digit(*total) => {
            Some("a total follows from its parts: name only labels of its bins")
        }
        (Rule::Time(other), _) if other.age().is_some_and(has_digit) => {
            Some("an age follows from dates: name only labels of its bins")
        }
        _ => None,
    })
}

/// How a constraint uses a column of numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Usage {
    Bound,
    Sum,
    Age,
}

fn rule(
    constraint: &Constraint,
    fields: &[Field],
    own_codes_of: &OwnCodesOf<'_>,
) -> Result<Rule, &'static str> {
    let is_derived = |name: &&str| {
        let field = fields.iter().find(|field| field.name == **name);
        field.is_some_and(|field| field.derived_from().is_some())
    };
    if constraint.columns().iter().any(is_derived) {
        return Err("a derived column has no constraints: name the column that it follows from");
    }
    let field = |name: &String| {
        let place = fields.iter().position(|field| field.name == *name);
        place.ok_or("there is no such column")
    };
    let number = |name: &String| {
        let index = field(name)?;
        match &fields[index].meaning {
            Meaning::Number(number) => Ok((index, (number.style.decimals, number.style.step))),
            _ => Err(
                "its columns must be of kind `number`; in `at_most`, both may also be of kind `date` or \
                 `datetime`",
            ),
        }
    };
    match constraint {
        Constraint::AtMost([low, high]) => {
            let (one, other) = (field(low)?, field(high)?);
            if let Some(order) = time_rule::order(fields, one, other) {
                different(&[one, other])?;
                return Ok(Rule::Time(order));
            }
            let ((low, of_low), (high, of_high)) = (number(low)?, number(high)?);
            alike(&[of_low, of_high])?;
            different(&[low, high])?;
            Ok(Rule::AtMost(low, high))
        }
        Constraint::MissingTogether([one, other]) => {
            let (one, other) = (field(one)?, field(other)?);
            different(&[one, other])?;
            let kept = |index: usize| !fields[index].attributes.is_empty();
            if !kept(one) || !kept(other) {
                return Err("identifiers and left-out columns are never missing");
            }
            Ok(Rule::Together(one, other))
        }
        Constraint::Never(values) => {
            if values.len() < 2 {
                return Err("it needs two columns or more");
            }
            let mut codes = Vec::new();
            for (name, value) in values {
                let of = &fields[field(name)?];
                codes.extend(own_codes_of(of, value)?);
            }
            Ok(Rule::Never(codes))
        }
        Constraint::Implies(implies) => {
            Implication::of(implies, fields, own_codes_of).map(Rule::Implies)
        }
        Constraint::Age(age) => time_rule::age(fields, age, field).map(Rule::Time),
        Constraint::Sum(Sum { total, parts }) => {
            if parts.len() < 2 {
                return Err("a sum needs two parts or more");
            }
            let numbers: Vec<(usize, Steps)> = std::iter::once(total)
                .chain(parts)
                .map(number)
                .collect::<Result<_, _>>()?;
            let (places, steps): (Vec<usize>, Vec<Steps>) = numbers.into_iter().unzip();
            alike(&steps)?;
            different(&places)?;
            let (&total, parts) = places
                .split_first()
                .ok_or("a sum needs two parts or more")?;
            Ok(Rule::Sum {
                total,
                parts: parts.to_vec(),
            })
        }
    }
}

/// The decimals and the step of a column. Rules compare numbers by their steps.
type Steps = (u32, i64);

fn alike(steps: &[Steps]) -> Result<(), &'static str> {
    let is_same = |of: fn(&Steps) -> i64| steps.windows(2).all(|pair| of(&pair[0]) == of(&pair[1]));
    match (
        is_same(|&(decimals, _)| decimals.into()),
        is_same(|&(_, step)| step),
    ) {
        (true, true) => Ok(()),
        (false, _) => Err("its columns must have the same number of `decimals`"),
        (true, false) => Err("its columns must have the same `step`"),
    }
}

fn different(fields: &[usize]) -> Result<(), &'static str> {
    let mut seen = std::collections::HashSet::new();
    match fields.iter().all(|field| seen.insert(field)) {
        true => Ok(()),
        false => Err("it names a column twice"),
    }
}

impl Rule {
    /// Returns the fields of numbers that the rule is about, with their use.
    fn uses(&self, fields: &[Field]) -> Vec<(usize, Usage)> {
        if let Self::Time(rule) = self {
            let age = rule.age().map(|age| (age, Usage::Age));
            let year = rule.year(fields).map(|year| (year, Usage::Bound));
            return age.into_iter().chain(year).collect();
        }
        let (numbers, is_sum) = self.numbers();
        let usage = if is_sum { Usage::Sum } else { Usage::Bound };
        numbers.into_iter().map(|field| (field, usage)).collect()
    }
}

impl RuleSet<'_> {
    /// Returns whether a record with the codes that `code` gives can have values that satisfy all constraints.
    pub(crate) fn allows(&self, code: &dyn Fn(usize) -> u32) -> bool {
        let Some(bounds) = Bounds::of(*self, code) else {
            return false;
        };
        self.rules.iter().all(|rule| match rule {
            // `Bounds` and `times` enforce them.
            Rule::AtMost(..) | Rule::Time(_) => true,
            Rule::Together(one, other) => {
                self.is_missing(*one, code) == self.is_missing(*other, code)
            }
            Rule::Never(codes) => codes.iter().any(|&(attribute, no)| code(attribute) != no),
            Rule::Implies(implication) => implication.holds(code),
            Rule::Sum { total, parts } => bounds.sum(*total, parts).is_none_or(|(low, high)| {
                bounds
                    .coarse(*total)
                    .is_some_and(|(first, last)| low <= last && high >= first)
            }),
        }) && times::allows(*self, code)
            && (self.rules.is_empty() || calendar::fits(*self, code))
    }

    /// Returns the constraints that a record of a table breaks, given its codes, its numbers and its dates.
    pub(crate) fn broken(
        &self,
        code: &dyn Fn(usize) -> u32,
        numbers: &Numbers,
        readings: &Readings,
    ) -> Vec<usize> {
        let step = |field: usize| {
            let field_of_numbers = self.fields.get(field)?.number()?;
            field_of_numbers.style.step(*numbers.get(&field)?)
        };
        let holds = |rule: &Rule| match rule {
            Rule::AtMost(low, high) => match (step(*low), step(*high)) {
                (Some(low), Some(high)) => low <= high,
                _ => true,
            },
            Rule::Together(one, other) => {
                self.is_missing(*one, code) == self.is_missing(*other, code)
            }
            Rule::Never(codes) => codes.iter().any(|&(attribute, no)| code(attribute) != no),
            Rule::Implies(implication) => implication.holds(code),
            Rule::Sum { total, parts } => {
                let parts: Option<Vec<i64>> = parts.iter().map(|&part| step(part)).collect();
                match (step(*total), parts) {
                    (Some(total), Some(parts)) => {
                        parts.iter().map(|&p| i128::from(p)).sum::<i128>() == total.into()
                    }
                    _ => true,
                }
            }
            Rule::Time(rule) => rule.holds(self.fields, numbers, readings),
        };
        let rules = self.rules.iter().enumerate();
        rules
            .filter(|(_, rule)| !holds(rule))
            .map(|(index, _)| index)
            .collect()
    }
}

/// The steps that a record's codes leave to its numbers. Each field begins at the least step that `at_most` leaves.
pub(super) struct Bounds<'a> {
    pub(super) rules: RuleSet<'a>,
    pub(super) code: &'a dyn Fn(usize) -> u32,
    /// The span of each field of numbers that has a number, and not a word.
    pub(super) spans: BTreeMap<usize, Span>,
}

impl<'a> Bounds<'a> {
    /// Returns `None` if `at_most` leaves a field no steps.
    pub(super) fn of(rules: RuleSet<'a>, code: &'a dyn Fn(usize) -> u32) -> Option<Self> {
        let mut bounds = Self {
            rules,
            code,
            spans: BTreeMap::new(),
        };
        for rule in rules.rules {
            for field in rule.numbers().0 {
                if let Some(span) = bounds.span(field) {
                    bounds.spans.insert(field, span);
                }
            }
        }
        // A minimum propagates from low to high, at most once through every field.
        for _ in 0..bounds.spans.len() {
            if !bounds.raise() {
                break;
            }
        }
        let open = bounds.spans.values().all(|(first, last)| first <= last);
        open.then_some(bounds)
    }

    /// Raises the minimum of each upper field to that of its lower field. Returns whether any was raised.
    fn raise(&mut self) -> bool {
        let mut raised = false;
        for rule in self.rules.rules {
            if let Rule::AtMost(low, high) = rule
                && let Some(&(least, _)) = self.spans.get(low)
                && let Some(span) = self.spans.get_mut(high)
                && span.0 < least
            {
                span.0 = least;
                raised = true;
            }
        }
        raised
    }

    /// First and last step that a field's codes stand for; `None` without a number.
    fn span(&self, field: usize) -> Option<Span> {
        self.step_range(field, true)
    }

    /// First and last step that the coarse code stands for.
    pub(super) fn coarse(&self, field: usize) -> Option<Span> {
        self.step_range(field, false)
    }

    fn step_range(&self, index: usize, fine: bool) -> Option<Span> {
        let field = self.rules.fields.get(index)?;
        let part = field.parts.first()?;
        if self.rules.is_missing(index, self.code) {
            return None;
        }
        let digit = part.fine.filter(|_| fine).map(self.code);
        let number = field.number()?;
        number.values.span((self.code)(part.coarse), digit)
    }

    /// Returns the least and the largest sum of the parts; `None` if a number is missing, which leaves the sum open.
    pub(super) fn sum(&self, total: usize, parts: &[usize]) -> Option<Span> {
        self.spans.get(&total)?;
        let mut sum = (0i64, 0i64);
        for part in parts {
            let (first, last) = self.spans.get(part)?;
            sum = (sum.0.saturating_add(*first), sum.1.saturating_add(*last));
        }
        Some(sum)
    }
}

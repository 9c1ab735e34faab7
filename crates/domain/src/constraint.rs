//! What holds between the columns of every record, by public knowledge: part of the schema.
//!
//! A table that breaks one is refused where it is read, and none is broken by a record that is drawn. Codes that
//! leave no way to hold all of them are drawn anew ([`Schema::allows`], by whoever draws), and values are drawn
//! from what the codes leave open until they hold, or put where they do ([`hold()`]).

mod hold;

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::{
    Field, Schema, SchemaProblem,
    decimal::DecimalStyle,
    field::Meaning,
    ordered::{Ordered, Span},
};

pub(crate) use self::hold::hold;

/// A schema may have so many.
pub const MAX_CONSTRAINTS: usize = 1_000;

/// Something that holds in every record. A column is named as in the table; one without a value in a
/// record constrains nothing there, but for [`Constraint::MissingTogether`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Constraint {
    /// The first column's number is at most the second's: columns of kind `number` with as many decimals.
    AtMost([String; 2]),
    /// The columns have values in the same records.
    MissingTogether([String; 2]),
    /// No record has all of these values.
    #[serde(deserialize_with = "each_once")]
    Never(BTreeMap<String, String>),
    /// One column's number is the sum of the others': columns of kind `number` with as many decimals, each
    /// in no other sum and in no `at_most`.
    Sum(Sum),
}

/// Reads values by column, and refuses a column that is named twice: a map alone would keep the last one's
/// value, and the constraint would be another one than was written.
fn each_once<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    struct EachOnce;

    impl<'de> Visitor<'de> for EachOnce {
        type Value = BTreeMap<String, String>;

        fn expecting(&self, out: &mut Formatter<'_>) -> fmt::Result {
            out.write_str("values by column")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
            let mut values = BTreeMap::new();
            while let Some((column, value)) = from.next_entry::<String, String>()? {
                if values.contains_key(&column) {
                    let reason = format!("`never` names column {column:?} twice");
                    return Err(A::Error::custom(reason));
                }
                values.insert(column, value);
            }
            Ok(values)
        }
    }

    from.deserialize_map(EachOnce)
}

/// What [`Constraint::Sum`] is of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sum {
    /// The column that is the sum.
    pub total: String,
    /// What it is the sum of: two columns or more.
    pub parts: Vec<String>,
}

impl Constraint {
    /// The columns that it is about.
    pub fn columns(&self) -> Vec<&str> {
        match self {
            Self::AtMost(two) | Self::MissingTogether(two) => two.iter().map(|c| &**c).collect(),
            Self::Never(values) => values.keys().map(|c| &**c).collect(),
            Self::Sum(sum) => {
                let parts = sum.parts.iter().map(|c| &**c);
                std::iter::once(&*sum.total).chain(parts).collect()
            }
        }
    }
}

impl Display for Constraint {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost([low, high]) => write!(out, "{low:?} is at most {high:?}"),
            Self::MissingTogether([one, other]) => {
                write!(out, "{one:?} and {other:?} are missing together")
            }
            Self::Never(values) => {
                let values: Vec<String> =
                    values.iter().map(|(c, v)| format!("{c:?} {v:?}")).collect();
                write!(out, "no record has {}", values.join(" with "))
            }
            Self::Sum(sum) => {
                let parts: Vec<String> = sum.parts.iter().map(|part| format!("{part:?}")).collect();
                write!(out, "{:?} is {}", sum.total, parts.join(" + "))
            }
        }
    }
}

/// A constraint by indices of fields.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Rule {
    AtMost(usize, usize),
    Together(usize, usize),
    /// Attributes and their codes.
    Never(Vec<(usize, u32)>),
    Sum {
        total: usize,
        parts: Vec<usize>,
    },
}

/// The numbers of a record, by field, as a table has them.
pub(crate) type Numbers = std::collections::HashMap<usize, f64>;

/// Works out what constraints mean in a schema.
///
/// # Errors
/// [`SchemaProblem::Constraint`].
pub(crate) fn resolve(
    constraints: &[Constraint],
    schema: &Schema,
) -> Result<Vec<Rule>, SchemaProblem> {
    if constraints.len() > MAX_CONSTRAINTS {
        return Err(SchemaProblem::Constraints(constraints.len()));
    }
    // Where a sum's values are put, nothing else may want them.
    let mut taken = vec![[false; 2]; schema.fields().len()];
    let mut rules = Vec::with_capacity(constraints.len());
    for constraint in constraints {
        let rule = rule(constraint, schema).and_then(|rule| {
            let (fields, is_sum) = rule.numbers();
            for field in fields {
                let [sum, bound] = &mut taken[field];
                if *sum || (is_sum && *bound) {
                    return Err("a column of a sum is in no other constraint of numbers");
                }
                (*sum, *bound) = (is_sum, !is_sum);
            }
            Ok(rule)
        });
        rules.push(rule.map_err(|problem| SchemaProblem::Constraint {
            constraint: crate::schema::cut(&constraint.to_string()),
            problem,
        })?);
    }
    Ok(rules)
}

fn rule(constraint: &Constraint, schema: &Schema) -> Result<Rule, &'static str> {
    let field = |name: &String| {
        let place = schema.fields().iter().position(|field| field.name == *name);
        place.ok_or("there is no such column")
    };
    let number = |name: &String| {
        let index = field(name)?;
        match &schema.fields()[index].meaning {
            Meaning::Number(style, _) => Ok((index, style.decimals)),
            _ => Err("its columns must be of kind `number`"),
        }
    };
    match constraint {
        Constraint::AtMost([low, high]) => {
            let ((low, of_low), (high, of_high)) = (number(low)?, number(high)?);
            alike(&[of_low, of_high])?;
            different(&[low, high])?;
            Ok(Rule::AtMost(low, high))
        }
        Constraint::MissingTogether([one, other]) => {
            let (one, other) = (field(one)?, field(other)?);
            different(&[one, other])?;
            let kept = |index: usize| !schema.fields()[index].attributes.is_empty();
            if !kept(one) || !kept(other) {
                return Err("identifiers and columns that are left out are never missing");
            }
            Ok(Rule::Together(one, other))
        }
        Constraint::Never(values) => {
            if values.len() < 2 {
                return Err("it needs two columns or more");
            }
            let mut codes = Vec::new();
            for (name, value) in values {
                let of = &schema.fields()[field(name)?];
                codes.extend(
                    schema
                        .codes_of(of, value)
                        .ok_or("a column has no such value")?,
                );
            }
            Ok(Rule::Never(codes))
        }
        Constraint::Sum(Sum { total, parts }) => {
            if parts.len() < 2 {
                return Err("a sum has two parts or more");
            }
            let numbers: Vec<(usize, u32)> = std::iter::once(total)
                .chain(parts)
                .map(number)
                .collect::<Result<_, _>>()?;
            let (fields, decimals): (Vec<usize>, Vec<u32>) = numbers.into_iter().unzip();
            alike(&decimals)?;
            different(&fields)?;
            let (&total, parts) = fields.split_first().ok_or("a sum has two parts or more")?;
            Ok(Rule::Sum {
                total,
                parts: parts.to_vec(),
            })
        }
    }
}

fn alike(decimals: &[u32]) -> Result<(), &'static str> {
    match decimals.windows(2).all(|pair| pair[0] == pair[1]) {
        true => Ok(()),
        false => Err("its columns must have as many `decimals` as each other"),
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
    /// The fields whose numbers it is about, and whether it is a sum.
    fn numbers(&self) -> (Vec<usize>, bool) {
        match self {
            Self::AtMost(low, high) => (vec![*low, *high], false),
            Self::Sum { total, parts } => ([&[*total], &parts[..]].concat(), true),
            Self::Together(..) | Self::Never(_) => (Vec::new(), false),
        }
    }
}

/// The style and the steps of a field of numbers: rules of numbers name no others.
fn ordered(field: &Field) -> Option<(DecimalStyle, &Ordered)> {
    match &field.meaning {
        Meaning::Number(style, ordered) => Some((*style, ordered)),
        _ => None,
    }
}

impl Schema {
    /// What holds between columns of every record.
    pub fn constraints(&self) -> &[Constraint] {
        &self.constraints
    }

    /// Whether values that hold all constraints can be drawn for the record whose attributes have the codes
    /// that `code` gives.
    pub fn allows(&self, code: &dyn Fn(usize) -> u32) -> bool {
        let Some(bounds) = Bounds::of(self, code) else {
            return false;
        };
        self.rules.iter().all(|rule| match rule {
            Rule::AtMost(..) => true, // so they are bounded
            Rule::Together(one, other) => {
                self.is_missing(*one, code) == self.is_missing(*other, code)
            }
            Rule::Never(codes) => codes.iter().any(|&(attribute, no)| code(attribute) != no),
            Rule::Sum { total, parts } => bounds.sum(*total, parts).is_none_or(|(low, high)| {
                bounds
                    .coarse(*total)
                    .is_some_and(|(first, last)| low <= last && high >= first)
            }),
        })
    }

    /// The first constraint that a record of a table breaks, by its codes and its numbers.
    pub(crate) fn broken(&self, code: &dyn Fn(usize) -> u32, numbers: &Numbers) -> Vec<usize> {
        let step = |field: usize| {
            let (style, _) = ordered(self.fields().get(field)?)?;
            style.step(*numbers.get(&field)?)
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
            Rule::Sum { total, parts } => {
                let parts: Option<Vec<i64>> = parts.iter().map(|&part| step(part)).collect();
                match (step(*total), parts) {
                    (Some(total), Some(parts)) => {
                        parts.iter().map(|&p| i128::from(p)).sum::<i128>() == total.into()
                    }
                    _ => true,
                }
            }
        };
        let rules = self.rules.iter().enumerate();
        rules
            .filter(|(_, rule)| !holds(rule))
            .map(|(index, _)| index)
            .collect()
    }

    /// Whether a field has no value in a record.
    fn is_missing(&self, field: usize, code: &dyn Fn(usize) -> u32) -> bool {
        let part = self.fields.get(field).and_then(|field| field.parts.first());
        part.is_some_and(|part| {
            let column = self.columns.get(part.coarse);
            column.and_then(|column| column.null_code()) == Some(code(part.coarse))
        })
    }
}

/// The steps that a record's codes leave to its numbers, each field's from the least that `at_most` leaves.
struct Bounds<'a> {
    schema: &'a Schema,
    code: &'a dyn Fn(usize) -> u32,
    /// By field of numbers that has a value.
    spans: BTreeMap<usize, Span>,
}

impl<'a> Bounds<'a> {
    /// `None` where `at_most` leaves nothing.
    fn of(schema: &'a Schema, code: &'a dyn Fn(usize) -> u32) -> Option<Self> {
        let mut bounds = Self {
            schema,
            code,
            spans: BTreeMap::new(),
        };
        for rule in &schema.rules {
            for field in rule.numbers().0 {
                if let Some(span) = bounds.span(field) {
                    bounds.spans.insert(field, span);
                }
            }
        }
        // A least value passes on from low to high, at most once through every field.
        for _ in 0..bounds.spans.len() {
            if !bounds.raise() {
                break;
            }
        }
        let open = bounds.spans.values().all(|(first, last)| first <= last);
        open.then_some(bounds)
    }

    /// Raises the least of each field to that of one which it is not below; whether any was raised.
    fn raise(&mut self) -> bool {
        let mut raised = false;
        for rule in &self.schema.rules {
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

    /// First and last step of what a field's codes stand for; `None` without a value.
    fn span(&self, field: usize) -> Option<Span> {
        self.step_range(field, true)
    }

    /// The same by the coarse code alone.
    fn coarse(&self, field: usize) -> Option<Span> {
        self.step_range(field, false)
    }

    fn step_range(&self, index: usize, fine: bool) -> Option<Span> {
        let field = self.schema.fields.get(index)?;
        let part = field.parts.first()?;
        if self.schema.is_missing(index, self.code) {
            return None;
        }
        let digit = part.fine.filter(|_| fine).map(self.code);
        let (_, ordered) = ordered(field)?;
        Some(ordered.span((self.code)(part.coarse), digit))
    }

    /// The least and the largest sum of parts; `None` where it is open, a value being missing.
    fn sum(&self, total: usize, parts: &[usize]) -> Option<Span> {
        self.spans.get(&total)?;
        let mut sum = (0i64, 0i64);
        for part in parts {
            let (first, last) = self.spans.get(part)?;
            sum = (sum.0.saturating_add(*first), sum.1.saturating_add(*last));
        }
        Some(sum)
    }
}

//! Builds a field and its attributes from the JSON form of a column.

mod number;
mod times;

use std::collections::HashSet;

use crate::{
    Binning, Column, ColumnProblem, Field, Kind,
    attributes::FieldPart,
    clique::Digit,
    codes::{Chapter, CodeBook},
    field::{Derived, Meaning},
    form::{Bound, ColumnForm, KindForm},
    identifier::Pattern,
    limits::{MAX_CATEGORIES, MAX_MISSING},
    names::{cut, is_name, is_text},
    ordered::{Ordered, OrderedProblem, Span, bins_between, even_bins},
};

/// Fields and their attributes, while a schema is built.
#[derive(Default)]
pub(crate) struct Built {
    pub(crate) fields: Vec<Field>,
    pub(crate) columns: Vec<Column>,
    pub(crate) digits: Vec<Digit>,
}

impl Built {
    /// Adds a column of the schema.
    ///
    /// # Errors
    /// The column is invalid.
    pub(crate) fn add(&mut self, mut form: ColumnForm) -> Result<(), ColumnProblem> {
        if let Some(field) = form.surplus() {
            let kind = form.kind.word();
            return Err(ColumnProblem::Surplus { kind, field });
        }
        form.missing = form.missing.filter(|texts| !texts.is_empty());
        check_missing(&form)?;
        let start = self.columns.len();
        let meaning = match form.kind {
            KindForm::Categorical => self.plain(&form, categorical(&form)?),
            KindForm::Numeric => self.plain(&form, numeric(&form)?),
            KindForm::Number => Meaning::Number(number::number(&form)?),
            KindForm::Date | KindForm::Datetime => times::dated(&form, &self.fields)?,
            KindForm::Time | KindForm::Duration => Meaning::Steps(times::steps(&form)?),
            KindForm::Code => Meaning::Code(code_book(&form)?),
            KindForm::Identifier => {
                Meaning::Identifier(Pattern::parse(needed(&form, "pattern", &form.pattern)?)?)
            }
            KindForm::Derived => Meaning::Derived(Derived {
                from: needed(&form, "from", &form.from)?.clone(),
                values: form.values.clone(),
            }),
            KindForm::LeftOut => Meaning::LeftOut,
        };
        let mut parts = self.resolve(&form, &meaning);
        if meaning == Meaning::Plain {
            parts.push(FieldPart {
                coarse: start,
                fine: None,
            });
        }
        self.fields.push(Field {
            name: form.name.clone(),
            nullable: form.nullable,
            meaning,
            attributes: start..self.columns.len(),
            parts,
            missing: form.missing.clone().unwrap_or_default(),
            invalid: form.invalid,
            form: (!form.kind.is_plain()).then(|| Box::new(form)),
        });
        Ok(())
    }

    fn plain(&mut self, form: &ColumnForm, kind: Kind) -> Meaning {
        self.columns.push(Column {
            name: form.name.clone(),
            kind,
            nullable: form.nullable,
        });
        Meaning::Plain
    }

    /// Adds the attributes of a meaning. Only the coarse ones have a code for a missing value; with
    /// it, a fine attribute has its first code.
    fn resolve(&mut self, form: &ColumnForm, meaning: &Meaning) -> Vec<FieldPart> {
        let mut all = Vec::new();
        for resolved in meaning.resolve() {
            let coarse = self.columns.len();
            let name = format!("{}{}", form.name, resolved.suffix);
            self.columns.push(Column {
                name: name.clone(),
                kind: Kind::Part {
                    labels: resolved.labels,
                    ordered: resolved.ordered,
                },
                nullable: form.nullable,
            });
            let fine = resolved.digits.as_ref().map(|_| coarse + 1);
            all.push(FieldPart { coarse, fine });
            let Some(digits) = resolved.digits else {
                continue;
            };
            let mut parts = digits.parts;
            parts.extend(form.nullable.then_some(1));
            self.columns.push(Column {
                name: format!("{name} (digit)"),
                kind: Kind::Part {
                    labels: digits.labels,
                    ordered: true,
                },
                nullable: false,
            });
            self.digits.push(Digit::new(coarse, coarse + 1, parts));
        }
        all
    }
}

/// Builds groups and parts from `digits` and either `edges` or `min`, `max` and `bins`.
fn ordered(
    form: &ColumnForm,
    special: &[i64],
    step: impl Fn(&'static str, &Bound) -> Result<i64, ColumnProblem>,
) -> Result<Ordered, ColumnProblem> {
    let bins = bins(form, &step, &step)?;
    Ok(Ordered::new(special, &bins, digits(form)?)?)
}

/// Returns the bins between `edges`, or from `min` to `max`. `first` returns the step at which a bin
/// begins, and `last` the step at which the last bin ends.
fn bins(
    form: &ColumnForm,
    first: impl Fn(&'static str, &Bound) -> Result<i64, ColumnProblem>,
    last: impl Fn(&'static str, &Bound) -> Result<i64, ColumnProblem>,
) -> Result<Vec<Span>, ColumnProblem> {
    let bins = match (&form.edges, &form.min, &form.max, form.bins) {
        (Some(edges), None, None, None) => {
            let (end, begins) = edges.split_last().ok_or(OrderedProblem::Edges)?;
            let steps = begins.iter().map(|edge| first("edges", edge));
            let steps = steps.chain([last("edges", end)]);
            bins_between(&steps.collect::<Result<Vec<i64>, _>>()?)?
        }
        (None, Some(min), Some(max), Some(bins)) => {
            even_bins((first("min", min)?, last("max", max)?), bins)?
        }
        _ => return Err(OrderedProblem::Limits.into()),
    };
    match bins.len() > crate::MAX_BINS as usize {
        true => Err(OrderedProblem::Bins(crate::MAX_BINS.into()).into()),
        false => Ok(bins),
    }
}

fn digits(form: &ColumnForm) -> Result<u32, OrderedProblem> {
    let digits = form.digits.unwrap_or(1);
    u32::try_from(digits).map_err(|_| OrderedProblem::Digits(digits))
}

/// Checks the keys for missing values. Whether their texts are values of the column is checked once it is built.
fn check_missing(form: &ColumnForm) -> Result<(), ColumnProblem> {
    if form.invalid.is_some() && !form.nullable {
        return Err(ColumnProblem::InvalidNotNullable);
    }
    let texts = form.missing.as_deref().unwrap_or_default();
    if texts.len() > MAX_MISSING {
        return Err(ColumnProblem::MissingTexts(texts.len()));
    }
    let mut seen = HashSet::with_capacity(texts.len());
    for text in texts {
        if !is_text(text) {
            return Err(ColumnProblem::MissingText(cut(text)));
        }
        if !seen.insert(text.as_str()) {
            return Err(ColumnProblem::RepeatedMissing(cut(text)));
        }
    }
    Ok(())
}

fn needed<'a, T>(
    form: &ColumnForm,
    field: &'static str,
    value: &'a Option<T>,
) -> Result<&'a T, ColumnProblem> {
    let kind = form.kind.word();
    value.as_ref().ok_or(ColumnProblem::Missing { kind, field })
}

fn code_book(form: &ColumnForm) -> Result<CodeBook, ColumnProblem> {
    let other = form.other.as_deref();
    match (&form.codes, form.prefix, &form.chapters) {
        (Some(codes), Some(prefix @ 1..=64), None) => CodeBook::with_prefix(codes, prefix, other),
        (None, None, Some(chapters)) => {
            let chapter = |form: &crate::form::ChapterForm| Chapter {
                name: form.name.clone(),
                codes: form.codes.clone(),
            };
            CodeBook::new(chapters.iter().map(chapter).collect(), other)
        }
        _ => Err(ColumnProblem::Chapters),
    }
}

fn categorical(form: &ColumnForm) -> Result<Kind, ColumnProblem> {
    let categories = needed(form, "categories", &form.categories)?;
    if !(1..=MAX_CATEGORIES).contains(&categories.len()) {
        return Err(ColumnProblem::Categories(categories.len()));
    }
    let mut seen = HashSet::with_capacity(categories.len());
    for category in categories {
        if !is_name(category) {
            return Err(ColumnProblem::Category(cut(category)));
        }
        if !seen.insert(category.as_str()) {
            return Err(ColumnProblem::RepeatedCategory(category.clone()));
        }
    }
    let other = match &form.other {
        None => None,
        Some(other) => Some(
            categories
                .iter()
                .position(|category| category == other)
                .ok_or_else(|| ColumnProblem::Other(cut(other)))? as u32,
        ),
    };
    Ok(Kind::Categorical {
        categories: categories.clone(),
        other,
    })
}

fn numeric(form: &ColumnForm) -> Result<Kind, ColumnProblem> {
    let value = |field, bound: &Option<Bound>| match needed(form, field, bound)? {
        Bound::Number(value) => Ok(*value),
        Bound::Text(_) => Err(ColumnProblem::Bound {
            field,
            expected: "a number",
        }),
    };
    let (min, max) = (value("min", &form.min)?, value("max", &form.max)?);
    let bins = *needed(form, "bins", &form.bins)?;
    let binning = Binning::new(min, max, bins, form.integer.unwrap_or(false))?;
    Ok(Kind::Numeric(binning))
}

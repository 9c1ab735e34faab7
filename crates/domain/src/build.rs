//! Builds a field and its attributes from the JSON form of a column.

use std::collections::HashSet;

use crate::{
    Binning, Column, ColumnProblem, Field, Kind,
    calendar::{DAY, TimeFormat, days_from_date},
    clique::Digit,
    codes::{Chapter, CodeBook},
    decimal::{DecimalStyle, MAX_DECIMALS},
    field::{FieldPart, Lapse, Meaning, Time},
    form::{Bound, ColumnForm, KindForm, Unit},
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
            KindForm::Number => number(&form)?,
            KindForm::Date | KindForm::Datetime => self.time(&form)?,
            KindForm::Code => Meaning::Code(code_book(&form)?),
            KindForm::Identifier => {
                Meaning::Identifier(Pattern::parse(needed(&form, "pattern", &form.pattern)?)?)
            }
            // Not built yet.
            KindForm::Time | KindForm::Duration | KindForm::LeftOut => Meaning::LeftOut,
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

    fn time(&self, form: &ColumnForm) -> Result<Meaning, ColumnProblem> {
        let with_clock = form.kind == KindForm::Datetime;
        let format = TimeFormat::parse(needed(form, "format", &form.format)?, with_clock)?;
        let unit = match (form.unit, with_clock) {
            (Some(unit), _) => unit,
            (None, false) => Unit::Day,
            (None, true) => Unit::Minute,
        };
        if !with_clock && unit != Unit::Day {
            return Err(ColumnProblem::Unit("`day` in a column of dates"));
        }
        if format.grain() > unit.seconds() {
            return Err(ColumnProblem::Unit(
                "no finer than the smallest unit of `format`",
            ));
        }
        match &form.relative_to {
            None => Ok(Meaning::Time(Time {
                format,
                days: ordered(form, &[], day_of)?,
                clock: clock(unit)?,
            })),
            Some(base) => {
                let known = |field: &&Field| field.name == *base;
                let field = self.fields.iter().zip(0..).find(|(field, _)| known(field));
                let base = match field {
                    Some((field, index)) if matches!(field.meaning, Meaning::Time(_)) => {
                        if field.nullable && !form.nullable {
                            return Err(ColumnProblem::MissingBase(cut(base)));
                        }
                        index
                    }
                    _ => return Err(ColumnProblem::Base(cut(base))),
                };
                Ok(Meaning::Lapse(Lapse {
                    format,
                    base,
                    unit,
                    whole_days: !with_clock,
                    units: ordered(form, &[], |field, bound| whole().step_of(field, bound))?,
                }))
            }
        }
    }
}

/// Returns the times of day of a unit, or `None` for whole days.
fn clock(unit: Unit) -> Result<Option<Ordered>, ColumnProblem> {
    let digits = match unit {
        Unit::Day => return Ok(None),
        Unit::Hour => 1,
        Unit::Minute => 60,
    };
    let hours = even_bins((0, DAY / 60 - 1), 24)?;
    Ok(Some(Ordered::new(&[], &hours, digits)?))
}

/// The style of whole numbers.
fn whole() -> DecimalStyle {
    DecimalStyle::default()
}

impl DecimalStyle {
    fn step_of(self, field: &'static str, bound: &Bound) -> Result<i64, ColumnProblem> {
        match bound {
            Bound::Number(value) => Ok(self.exact_step(*value)?),
            Bound::Text(_) => Err(ColumnProblem::Bound {
                field,
                expected: "a number",
            }),
        }
    }
}

fn day_of(field: &'static str, bound: &Bound) -> Result<i64, ColumnProblem> {
    let wrong = ColumnProblem::Bound {
        field,
        expected: "a date such as \"2024-01-31\"",
    };
    let Bound::Text(text) = bound else {
        return Err(wrong);
    };
    let parts: Vec<&str> = text.split('-').collect();
    let digits =
        |part: &str, width| part.len() == width && part.bytes().all(|b| b.is_ascii_digit());
    let [year, month, day] = parts[..] else {
        return Err(wrong);
    };
    if !(digits(year, 4) && digits(month, 2) && digits(day, 2)) {
        return Err(wrong);
    }
    let number = |part: &str| part.parse().unwrap_or(0);
    days_from_date(number(year), number(month), number(day)).ok_or(wrong)
}

/// Builds groups and parts from `digits` and either `edges` or `min`, `max` and `bins`.
fn ordered(
    form: &ColumnForm,
    special: &[i64],
    step: impl Fn(&'static str, &Bound) -> Result<i64, ColumnProblem>,
) -> Result<Ordered, ColumnProblem> {
    let bins: Vec<Span> = match (&form.edges, &form.min, &form.max, form.bins) {
        (Some(edges), None, None, None) => {
            let edges = edges.iter().map(|edge| step("edges", edge));
            bins_between(&edges.collect::<Result<Vec<i64>, _>>()?)?
        }
        (None, Some(min), Some(max), Some(bins)) => {
            even_bins((step("min", min)?, step("max", max)?), bins)?
        }
        _ => return Err(OrderedProblem::Limits.into()),
    };
    if bins.len() > crate::MAX_BINS as usize {
        return Err(OrderedProblem::Bins(crate::MAX_BINS.into()).into());
    }
    let digits = form.digits.unwrap_or(1);
    let digits = u32::try_from(digits).map_err(|_| OrderedProblem::Digits(digits))?;
    Ok(Ordered::new(special, &bins, digits)?)
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

fn number(form: &ColumnForm) -> Result<Meaning, ColumnProblem> {
    let integer = form.integer.unwrap_or(false);
    let decimals = form.decimals.unwrap_or(0);
    if decimals > u64::from(MAX_DECIMALS) || (integer && decimals > 0) {
        return Err(ColumnProblem::Decimals(decimals));
    }
    if !integer && form.decimals.is_none() {
        let (kind, field) = (form.kind.word(), "decimals");
        return Err(ColumnProblem::Missing { kind, field });
    }
    let style = DecimalStyle {
        decimals: decimals as u32,
        trailing_zeros: form.trailing_zeros.unwrap_or(false),
        comma: form.decimal_comma.unwrap_or(false),
    };
    let special = form.special.iter().flatten();
    let special = special.map(|value| style.step_of("special", value));
    let special: Vec<i64> = special.collect::<Result<_, _>>()?;
    if special.len() > MAX_CATEGORIES {
        return Err(OrderedProblem::Parts.into());
    }
    let ordered = ordered(form, &special, |field, bound| style.step_of(field, bound))?;
    Ok(Meaning::Number(style, ordered))
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

//! Builds a field of numbers from the JSON form of a column.

use super::ordered;
use crate::{
    ColumnProblem, MAX_CATEGORIES, NumberStyle,
    decimal::MAX_DECIMALS,
    form::{Bound, ColumnForm},
    names::{cut, is_name},
    number::{NumberField, Precision},
    ordered::OrderedProblem,
    ordered_words::OrderedWithWords,
};

/// Builds a field of numbers.
pub(super) fn number(form: &ColumnForm) -> Result<NumberField, ColumnProblem> {
    let style = style(form)?;
    let (special, words) = special(form, &style)?;
    let steps = ordered(form, &special, |field, bound| style.step_of(field, bound))?;
    Ok(NumberField {
        values: OrderedWithWords::new(steps, &words),
        precision: match (form.step, form.integer) {
            (Some(_), _) => Precision::Multiple,
            (None, Some(true)) => Precision::Whole,
            (None, _) => Precision::Rounded,
        },
        style,
    })
}

fn style(form: &ColumnForm) -> Result<NumberStyle, ColumnProblem> {
    let style = NumberStyle {
        decimals: decimals(form)?,
        trailing_zeros: form.trailing_zeros.unwrap_or(false),
        comma: form.decimal_comma.unwrap_or(false),
        thousands: form.thousands,
        before: form.before.clone().unwrap_or_default(),
        after: form.after.clone().unwrap_or_default(),
        negative: form.negative.unwrap_or_default(),
        ..NumberStyle::default()
    };
    style.check()?;
    let Some(step) = form.step else {
        return Ok(style);
    };
    match style.exact_step(step) {
        Ok(units @ 1..) => Ok(NumberStyle {
            step: units,
            ..style
        }),
        _ => Err(ColumnProblem::Step(style.number(1).value())),
    }
}

fn decimals(form: &ColumnForm) -> Result<u32, ColumnProblem> {
    let integer = form.integer.unwrap_or(false);
    if !integer && form.decimals.is_none() {
        let (kind, field) = (form.kind.word(), "decimals");
        return Err(ColumnProblem::Missing { kind, field });
    }
    let decimals = form.decimals.unwrap_or(0);
    let most = if integer { 0 } else { MAX_DECIMALS };
    match u32::try_from(decimals) {
        Ok(few) if few <= most => Ok(few),
        _ => Err(ColumnProblem::Decimals(decimals)),
    }
}

/// Splits the special values into steps and words.
fn special(
    form: &ColumnForm,
    style: &NumberStyle,
) -> Result<(Vec<i64>, Vec<String>), ColumnProblem> {
    let all = form.special.as_deref().unwrap_or_default();
    if all.len() > MAX_CATEGORIES {
        return Err(OrderedProblem::Parts.into());
    }
    let (mut steps, mut words) = (Vec::new(), Vec::new());
    for value in all {
        match value {
            Bound::Number(_) => steps.push(style.step_of("special", value)?),
            Bound::Text(word) => {
                check_word(word, style)?;
                words.push(word.clone());
            }
        }
    }
    let mut sorted: Vec<&String> = words.iter().collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(ColumnProblem::RepeatedWord(cut(pair[0]))),
        None => Ok((steps, words)),
    }
}

fn check_word(word: &str, style: &NumberStyle) -> Result<(), ColumnProblem> {
    if !is_name(word) || word.trim() != word {
        return Err(ColumnProblem::Word(cut(word)));
    }
    match style.parse(word) {
        Some(_) => Err(ColumnProblem::NumberAsWord(cut(word))),
        None => Ok(()),
    }
}

impl NumberStyle {
    /// Returns the step of a limit, an edge or a special value.
    pub(super) fn step_of(&self, field: &'static str, bound: &Bound) -> Result<i64, ColumnProblem> {
        match bound {
            Bound::Number(value) => Ok(self.exact_step(*value)?),
            Bound::Text(_) => Err(ColumnProblem::Bound {
                field,
                expected: "a number",
            }),
        }
    }
}

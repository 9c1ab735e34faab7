//! Columns of texts: categories, codes, identifiers, or nothing.

use std::collections::BTreeMap;

use fhaim_domain::{
    MAX_DIGITS, counted,
    form::{ColumnForm, Invalid, KindForm},
};

use super::{Column, Decided, identifier, person};
use crate::draft::{Exception, Flag, RecordUse};
use crate::markers::is_marker;
use crate::profile::Seen;
use crate::shape::Shape;

/// A list is drafted if its values cover at least this share of the records.
const LISTED_SHARE: f64 = 0.5;

/// A column is taken for identifiers if it has at least this many different values per record.
const UNIQUE_SHARE: f64 = 0.5;

/// Maximum length of a code, and of a code in a list with chapters, and maximum number of codes of a column.
const MAX_LENGTH: usize = 24;
const MAX_CODE_LENGTH: usize = 12;
const MAX_CODES: usize = 5_000;

/// Maximum number of chapters of drafted codes.
const MAX_CHAPTERS: usize = 64;

/// Advice about values that are too rare to be listed.
const PUBLIC: &str = ". Add the publicly known ones to the list";

/// Name of the category of values that are too rare to be listed.
const OTHER: &str = "other";

/// Values that enough records share, and the others.
pub(super) struct Split<'a> {
    /// The values that enough records share, in order.
    pub(super) listed: Vec<&'a str>,
    /// Records of the listed values.
    pub(super) covered: u64,
    /// Values that too few records share, in the order of their first records.
    pub(super) rare: Vec<(&'a str, Seen)>,
    /// Records of the other values, including values that were not remembered.
    pub(super) rest: u64,
}

impl<'a> Split<'a> {
    pub(super) fn of(column: &Column<'a>) -> Self {
        let enough = |seen: &Seen| seen.count >= column.options.shared_by;
        let mut listed: Vec<&str> = Vec::new();
        let mut rare = Vec::new();
        let mut covered = 0;
        for (text, seen) in column.values.iter() {
            if enough(&seen) && fhaim_domain::is_name(text) {
                covered += seen.count;
                listed.push(text);
            } else {
                rare.push((text, seen));
            }
        }
        listed.sort_unstable_by(|a, b| by_number(a, b));
        Self {
            listed,
            covered,
            rare,
            rest: column.values.cells.saturating_sub(covered),
        }
    }

    /// Whether the listed values cover enough records for a list.
    fn is_worth_a_list(&self) -> bool {
        let all = self.covered + self.rest;
        !self.listed.is_empty() && self.covered as f64 >= LISTED_SHARE * all as f64
    }
}

/// Orders numbers by value, other texts by their characters.
fn by_number(one: &str, other: &str) -> std::cmp::Ordering {
    let value = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
    match (value(one), value(other)) {
        (Some(a), Some(b)) => a.total_cmp(&b).then_with(|| one.cmp(other)),
        (a, b) => (a.is_none(), one).cmp(&(b.is_none(), other)),
    }
}

/// Drafts a column whose values are neither numbers nor dates.
pub(super) fn decide(column: &Column<'_>) -> Decided {
    let split = Split::of(column);
    if split.is_worth_a_list() {
        if split.listed.len() <= column.options.max_categories {
            return categories(column, &split);
        }
        if let Some(decided) = codes(column, &split) {
            return decided;
        }
    }
    let different = column.values.distinct;
    let unique = different as f64 >= UNIQUE_SHARE * column.values.cells as f64;
    if !unique && person::names_codes(column.name) {
        return rare_texts(column);
    }
    if let Some(pattern) = identifier::pattern(&column.values, column.profile.records)
        && (unique || is_bare_code(column))
    {
        return with_pattern(column, &pattern);
    }
    rare_texts(column)
}

/// Drafts a column of identifiers, or leaves it out if they are not regular.
pub(super) fn identifiers(column: &Column<'_>) -> Decided {
    match identifier::pattern(&column.values, column.profile.records) {
        Some(pattern) => with_pattern(column, &pattern),
        None => rare_texts(column),
    }
}

/// Drafts numbers that are codes: as a list, or with the question for their code book.
pub(super) fn codes_or_question(column: &Column<'_>, split: &Split<'_>) -> Decided {
    if split.is_worth_a_list() {
        if split.listed.len() <= column.options.max_categories {
            return categories(column, split);
        }
        if let Some(decided) = codes(column, split) {
            return decided;
        }
    }
    let reason = format!(
        "{} in {} look like codes, and too few records share each of them to list them",
        counted(column.values.distinct, "different number"),
        counted(column.values.cells, "record")
    );
    let mut decided = left_out(column, &reason, Flag::NearUnique);
    decided.questions.push(code_question(column.name));
    decided
}

/// Drafts categories by the holder's choice: those that enough records share.
pub(super) fn forced_categories(column: &Column<'_>) -> Option<Decided> {
    let split = Split::of(column);
    (!split.listed.is_empty()).then(|| categories(column, &split))
}

/// Drafts codes by the holder's choice: those that enough records share.
pub(super) fn forced_codes(column: &Column<'_>) -> Option<Decided> {
    let split = Split::of(column);
    codes(column, &split).filter(|_| !split.listed.is_empty())
}

/// Drafts identifiers by the holder's choice. Irregular ones are replaced by numbers.
pub(super) fn forced_identifiers(column: &Column<'_>) -> Decided {
    let pattern = identifier::pattern(&column.values, column.profile.records);
    person::person(column, pattern.as_deref().unwrap_or("sequence"))
}

/// Whether the values look like codes: short, without blanks.
fn is_code(column: &Column<'_>) -> bool {
    let code =
        |text: &str| text.chars().count() <= MAX_LENGTH && !text.contains(char::is_whitespace);
    column.values.iter().all(|(text, _)| code(text))
}

/// Whether the values are digits and letters only, as card numbers and batches are.
fn is_bare_code(column: &Column<'_>) -> bool {
    let bare = |text: &str| {
        text.len() <= MAX_LENGTH && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    column.values.iter().all(|(text, _)| bare(text))
}

fn with_pattern(column: &Column<'_>, pattern: &str) -> Decided {
    let different = column.values.distinct;
    let form = ColumnForm {
        pattern: Some(pattern.to_owned()),
        ..ColumnForm::empty(column.name.to_owned(), KindForm::Identifier, false)
    };
    let mut decided = Decided::new(
        form,
        Flag::NearUnique,
        RecordUse::Nothing,
        format!(
            "{different} different values in {} have one form: synthetic tables get new ones",
            counted(column.values.cells, "record")
        ),
    );
    decided.proposals.extend(person::filled(column));
    if (different as f64) < UNIQUE_SHARE * column.values.cells as f64 {
        let question = match person::names_identifiers(column.name) {
            true => person::unit_question(column),
            false => Some(code_question(column.name)),
        };
        decided.questions.extend(question);
    }
    decided
}

/// The question for a column of values that may be codes of a public code book.
pub(super) fn code_question(name: &str) -> String {
    format!(
        "are these codes of a public code book? Give it with --code-book {name:?}=FILE: too few records share each code to list \
         them"
    )
}

fn rare_texts(column: &Column<'_>) -> Decided {
    let different = column.values.distinct;
    let reason = format!(
        "{different} different texts in {}, nearly all of them rare, as in names and free text",
        counted(column.values.cells, "record")
    );
    let mut decided = left_out(column, &reason, Flag::NearUnique);
    if is_code(column) && different * 3 <= column.values.cells {
        decided.questions.push(code_question(column.name));
    }
    decided
}

/// Leaves the column out.
pub(super) fn left_out(column: &Column<'_>, reason: &str, flag: Flag) -> Decided {
    let form = ColumnForm {
        reason: Some(reason.to_owned()),
        ..ColumnForm::empty(column.name.to_owned(), KindForm::LeftOut, false)
    };
    Decided::new(
        form,
        flag,
        RecordUse::Nothing,
        format!("left out: {reason}"),
    )
}

/// Drafts the values that enough records share as categories.
pub(super) fn categories(column: &Column<'_>, split: &Split<'_>) -> Decided {
    let mut form = column.form(KindForm::Categorical);
    let mut listed: Vec<String> = split.listed.iter().map(|&text| text.to_owned()).collect();
    let rest = rest(column, split, &mut form, &mut listed);
    let bad = super::bad_bytes(column, &mut form);
    let evidence = format!(
        "{} in {}",
        counted(column.values.distinct, "different value"),
        counted(column.values.cells, "record")
    );
    let taken = list(column, split);
    let marker = listed.iter().find(|text| is_marker(text)).cloned();
    form.categories = Some(listed);
    let mut decided = Decided::new(form, Flag::FromRecords, taken, evidence);
    decided.questions.extend(marker.map(|text| {
        format!("{text:?} is listed as a value: if it stands for a missing one, draft again with --missing {text:?}")
    }));
    decided.exceptions.extend(rest.into_iter().chain(bad));
    decided
}

fn list(column: &Column<'_>, split: &Split<'_>) -> RecordUse {
    RecordUse::List {
        values: split.listed.len(),
        shared_by: column.options.shared_by,
    }
}

/// Reads the values that are too rare to be listed as `other` or, if they are few, as missing.
fn rest(
    column: &Column<'_>,
    split: &Split<'_>,
    form: &mut ColumnForm,
    listed: &mut Vec<String>,
) -> Option<Exception> {
    if split.rest == 0 {
        return None;
    }
    let (row, shape) = match split.rare.first() {
        Some((text, seen)) => (seen.row, Shape::of(text)),
        None => (0, Shape::of("")),
    };
    let read_as = if split.rest >= column.options.shared_by {
        let other = free_name(&split.listed, &split.rare);
        listed.push(other.clone());
        let read_as = format!("too few records share each, so they are read as {other:?}{PUBLIC}");
        form.other = Some(other);
        read_as
    } else {
        form.nullable = true;
        form.invalid = Some(Invalid::Missing);
        format!("too few records share each, so they are read as missing{PUBLIC}")
    };
    Some(Exception::new(split.rest, row, &shape, read_as))
}

/// Returns a name for the other values that is not a value itself.
fn free_name(listed: &[&str], rare: &[(&str, Seen)]) -> String {
    let taken = |name: &str| listed.contains(&name) || rare.iter().any(|(text, _)| *text == name);
    let mut name = OTHER.to_owned();
    while taken(&name) {
        name.push('_');
    }
    name
}

/// Drafts many values that enough records share as codes with chapters.
pub(super) fn codes(column: &Column<'_>, split: &Split<'_>) -> Option<Decided> {
    let code = |text: &&str| {
        text.chars().count() <= MAX_CODE_LENGTH && !text.contains(char::is_whitespace)
    };
    if split.listed.len() > MAX_CODES || !split.listed.iter().all(code) {
        return None;
    }
    let prefix = best_prefix(&split.listed)?;
    let mut form = column.form(KindForm::Code);
    let mut listed: Vec<String> = split.listed.iter().map(|&text| text.to_owned()).collect();
    let rest = rest(column, split, &mut form, &mut listed);
    let bad = super::bad_bytes(column, &mut form);
    form.prefix = Some(prefix);
    form.codes = Some(listed);
    let evidence = format!(
        "{} in {}, in chapters of the first {}",
        counted(column.values.distinct, "different code"),
        counted(column.values.cells, "record"),
        counted(prefix, "character")
    );
    let mut decided = Decided::new(form, Flag::FromRecords, list(column, split), evidence);
    decided.exceptions.extend(rest.into_iter().chain(bad));
    decided.questions.push(code_question(column.name));
    Some(decided)
}

/// Returns the prefix with the fewest one-hot columns: chapters, and the codes of the largest chapter.
pub(super) fn best_prefix(texts: &[&str]) -> Option<usize> {
    let cost = |prefix: usize| {
        let mut chapters: BTreeMap<String, usize> = BTreeMap::new();
        for text in texts {
            *chapters
                .entry(text.chars().take(prefix).collect())
                .or_default() += 1;
        }
        let largest = chapters.values().copied().max().unwrap_or(0);
        let fits = chapters.len() <= MAX_CHAPTERS && largest <= MAX_DIGITS as usize;
        fits.then_some((chapters.len() + largest, prefix))
    };
    (1..=4).filter_map(cost).min().map(|(_, prefix)| prefix)
}

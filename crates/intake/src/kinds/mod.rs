//! Choice of the kind of a drafted column.
//!
//! The majority of the cells decides. Cells that do not fit are named by row and form, and read as missing or as special
//! values; see [`crate::Exception`].

mod bins;
mod identifier;
mod number;
mod person;
mod relate;
mod text;
mod time;

use std::collections::BTreeMap;

use fhaim_domain::{
    Schema, SchemaForm, SchemaProblem, counted,
    form::{Bound, ColumnForm, Invalid, KindForm},
};

use crate::draft::{ColumnDraft, Exception, Flag, RecordUse};
use crate::markers::{is_clear_marker, is_marker};
use crate::options::InferOptions;
use crate::profile::{Profile, Seen};
use crate::shape::Shape;

pub(crate) use relate::relate;
pub(crate) use time::{FIRST_YEARS, has_day, last_year};

/// A kind is chosen if at least this share of the cells have a value of it.
const MAJORITY: f64 = 0.9;

/// Maximum number of words that are special values of a column in which numbers or dates are not the majority.
const MAX_WORDS: usize = 5;

/// A column that is being drafted.
pub(crate) struct Column<'a> {
    pub(crate) name: &'a str,
    pub(crate) profile: &'a Profile,
    pub(crate) options: &'a InferOptions,
    /// The last four-digit year of the dates of the table, if it has such dates.
    pub(crate) last_year: Option<i64>,
    /// The values, without missing ones.
    pub(crate) values: Values<'a>,
    /// Texts that stand for a missing value in addition to those of the options, the most frequent first.
    missing: Vec<(&'a str, Seen)>,
}

/// Values of a column.
pub(crate) struct Values<'a> {
    texts: Vec<(&'a str, Seen)>,
    /// Number of cells with a value.
    pub(crate) cells: u64,
    /// Number of different values, estimated if there are many.
    pub(crate) distinct: u64,
}

impl<'a> Values<'a> {
    fn without(profile: &'a Profile, is_missing: impl Fn(&str) -> bool) -> Self {
        let (missing, texts): (Vec<_>, Vec<_>) =
            (profile.texts.in_order().into_iter()).partition(|(text, _)| is_missing(text));
        let cells: u64 = missing.iter().map(|(_, seen)| seen.count).sum();
        Self {
            texts,
            cells: profile.present.saturating_sub(cells),
            distinct: profile
                .texts
                .distinct()
                .saturating_sub(missing.len() as u64),
        }
    }

    /// Splits off the values that `is_apart`.
    fn split(&self, is_apart: impl Fn(&(&'a str, Seen)) -> bool) -> (Vec<(&'a str, Seen)>, Self) {
        let (apart, texts): (Vec<_>, Vec<_>) = self.texts.iter().copied().partition(is_apart);
        let cells: u64 = apart.iter().map(|(_, seen)| seen.count).sum();
        let rest = Self {
            texts,
            cells: self.cells.saturating_sub(cells),
            distinct: self.distinct.saturating_sub(apart.len() as u64),
        };
        (apart, rest)
    }

    /// All values of a profile.
    #[cfg(test)]
    pub(crate) fn all(profile: &'a Profile) -> Self {
        Self::without(profile, |_| false)
    }

    /// Returns the remembered values in the order of their first records.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'a str, Seen)> + '_ {
        self.texts.iter().copied()
    }
}

impl<'a> Column<'a> {
    /// Prepares a column, with markers of missing values as `is_missing` finds them.
    fn new(
        name: &'a str,
        profile: &'a Profile,
        options: &'a InferOptions,
        is_missing: impl Fn(&str) -> bool,
    ) -> Self {
        let values = Values::without(profile, &is_missing);
        let all = profile.texts.in_order().into_iter();
        let mut missing: Vec<(&str, Seen)> = all.filter(|(text, _)| is_missing(text)).collect();
        missing.sort_by_key(|(_, seen)| std::cmp::Reverse(seen.count));
        Self {
            name,
            profile,
            options,
            last_year: None,
            values,
            missing,
        }
    }

    /// Returns a form of a kind, with the missing values of the column.
    fn form(&self, kind: KindForm) -> ColumnForm {
        let marked = self.profile.marked.iter();
        let marked = marked.map(|(text, count)| (*count, text.as_str()));
        let named: u64 = marked.clone().map(|(count, _)| count).sum();
        let empty = self.profile.empty.saturating_sub(named);
        let found = self.missing.iter().map(|(text, seen)| (seen.count, *text));
        let mut texts: Vec<(u64, &str)> = found.chain(marked).collect();
        let nullable = empty > 0 || !texts.is_empty();
        let mut form = ColumnForm::empty(self.name.to_owned(), kind, nullable);
        if !texts.is_empty() {
            texts.extend((empty > 0).then_some((empty, "")));
            texts.sort_by_key(|&(count, _)| std::cmp::Reverse(count));
            form.missing = Some(texts.into_iter().map(|(_, text)| text.to_owned()).collect());
        }
        form
    }

    /// Describes the markers of missing values, if any.
    fn missing_proposals(&self) -> Vec<String> {
        let say = |(text, seen): &(&str, Seen)| {
            format!(
                "{} {text:?}, first in row {}: proposed as a missing value",
                counted(seen.count, "cell"),
                seen.row
            )
        };
        self.missing.iter().map(say).collect()
    }
}

/// A drafted column.
pub(crate) struct Decided {
    pub(crate) form: ColumnForm,
    pub(crate) flag: Flag,
    pub(crate) taken: RecordUse,
    pub(crate) evidence: String,
    pub(crate) exceptions: Vec<Exception>,
    pub(crate) proposals: Vec<String>,
    pub(crate) questions: Vec<String>,
    /// For dates, what their order to other dates depends on.
    dated: Option<Dated>,
}

/// A column of dates.
struct Dated {
    /// The format in which its order to others was looked at.
    format: String,
    /// First of the hundred years that two-digit years stand for.
    first_year: Option<i64>,
    /// Days from the first to the last date.
    span: i64,
    /// The texts of special days with a time, by day, if enough records share each of them.
    moments: BTreeMap<String, Vec<String>>,
}

impl Decided {
    fn new(form: ColumnForm, flag: Flag, taken: RecordUse, evidence: String) -> Self {
        Self {
            form,
            flag,
            taken,
            evidence,
            exceptions: Vec::new(),
            proposals: Vec::new(),
            questions: Vec::new(),
            dated: None,
        }
    }

    /// Splits the column into its form and what the draft says about it.
    pub(crate) fn parts(self) -> (ColumnForm, ColumnDraft) {
        let about = ColumnDraft {
            column: self.form.name.clone(),
            kind: self.form.kind.word(),
            flag: self.flag,
            taken: self.taken,
            evidence: self.evidence,
            exceptions: self.exceptions,
            proposals: self.proposals,
            questions: self.questions,
        };
        (self.form, about)
    }
}

/// Drafts a column of a table. `last_year` is the last four-digit year of the table's dates.
pub(crate) fn decide(
    name: &str,
    profile: &Profile,
    last_year: Option<i64>,
    options: &InferOptions,
) -> Decided {
    // Among numbers and dates, more texts stand for a missing value than among other texts.
    let strict = Column {
        last_year,
        ..Column::new(name, profile, options, is_marker)
    };
    let texts = Column::new(name, profile, options, is_clear_marker);
    let decided = match (options.code_books.get(name), options.kinds.get(name)) {
        (Some(book), _) => code_book(&texts, book),
        (None, Some(KindForm::LeftOut)) => text::left_out(&texts, "by choice", Flag::Safe),
        (None, Some(&kind)) => chosen(kind, &strict, &texts),
        (None, None) => automatic(&strict, &texts),
    };
    let mut decided = with_missing(decided, &strict, &texts);
    if problem(&decided.form, None).is_none() {
        return decided;
    }
    // A text that the holder named may also be a value, and is then given again when the table is read.
    let is_marked = |text: &String| profile.marked.iter().any(|(marked, _)| marked == text);
    if let Some(missing) = &mut decided.form.missing {
        missing.retain(|text| !is_marked(text));
    }
    decided.form.missing = decided.form.missing.filter(|texts| !texts.is_empty());
    if problem(&decided.form, None).is_none() {
        return decided;
    }
    // The schema's problem may quote a value, and a reason is public.
    let reason = format!("it cannot be drafted as {}", decided.form.kind.word());
    text::left_out(&texts, &reason, Flag::Safe)
}

/// Drafts a column of a few different numbers, which would be categories, as numbers: sums and ages need them.
pub(crate) fn as_number(name: &str, profile: &Profile, options: &InferOptions) -> Option<Decided> {
    let is_chosen = options.kinds.contains_key(name) || options.code_books.contains_key(name);
    if is_chosen || options.target.as_deref() == Some(name) {
        return None;
    }
    let column = Column::new(name, profile, options, is_marker);
    let mut decided = number::forced(&column)?;
    let form = &decided.form;
    let is_code = profile.numbers.padded > 0 || form.before.is_some() || form.after.is_some();
    if is_code || !decided.exceptions.is_empty() || problem(form, None).is_some() {
        return None;
    }
    let reason = "drafted as a number, because a sum or an age depends on it";
    decided.proposals.push(reason.to_owned());
    Some(with_missing(decided, &column, &column))
}

/// Returns what a schema refuses in a column, next to the column that it may be relative to.
fn problem(form: &ColumnForm, base: Option<&ColumnForm>) -> Option<SchemaProblem> {
    let alone = SchemaForm {
        format: None,
        version: None,
        claim: None,
        name: "column".to_owned(),
        source: None,
        target: None,
        columns: base.into_iter().chain([form]).cloned().collect(),
        constraints: Vec::new(),
    };
    match Schema::try_from(alone) {
        // A schema of identifiers and left-out columns only is refused, and the column is not wrong.
        Ok(_) | Err(SchemaProblem::Nothing) => None,
        Err(problem) => Some(problem),
    }
}

fn automatic(strict: &Column<'_>, texts: &Column<'_>) -> Decided {
    if texts.values.cells == 0 {
        return text::left_out(texts, "every value is missing", Flag::Safe);
    }
    let by_form = || {
        let column = Some(strict).filter(|column| column.values.cells > 0)?;
        let dated = time::decide(column).or_else(|| person::decide(column));
        dated.or_else(|| number::decide(column, MAJORITY))
    };
    by_form()
        .or_else(|| among_words(strict, texts))
        .unwrap_or_else(|| text::decide(texts))
}

/// Drafts numbers, dates or times in a column in which most cells may be a few words, such as "not applicable". The words
/// become special values. Values that can all be listed stay categories.
fn among_words(strict: &Column<'_>, texts: &Column<'_>) -> Option<Decided> {
    let shared_by = strict.options.shared_by;
    if text::Split::of(texts).rest == 0 {
        return None;
    }
    let is_word = |(text, seen): &(&str, Seen)| {
        let has_digit = text.contains(|letter: char| letter.is_ascii_digit());
        seen.count >= shared_by && !has_digit && fhaim_domain::is_name(text)
    };
    let (words, rest) = strict.values.split(is_word);
    if words.is_empty() || words.len() > MAX_WORDS || rest.cells < shared_by {
        return None;
    }
    let column = Column {
        values: rest,
        missing: strict.missing.clone(),
        ..*strict
    };
    let decided = time::decide(&column).or_else(|| number::decide(&column, MAJORITY));
    let is_counted = |form: &ColumnForm| {
        matches!(
            form.kind,
            KindForm::Number
                | KindForm::Date
                | KindForm::Datetime
                | KindForm::Time
                | KindForm::Duration
        )
    };
    let mut decided = decided.filter(|decided| is_counted(&decided.form))?;
    for (text, seen) in words {
        let text = text.trim();
        let special = decided.form.special.get_or_insert_default();
        special.push(Bound::Text(text.to_owned()));
        decided.exceptions.push(special_word(text, seen));
    }
    Some(decided)
}

/// Says which texts were read as missing values.
fn with_missing(mut decided: Decided, strict: &Column<'_>, texts: &Column<'_>) -> Decided {
    let Some(missing) = &decided.form.missing else {
        return decided;
    };
    let strict_only =
        |(text, _): &&(&str, Seen)| missing.iter().any(|own| own == text) && !is_clear_marker(text);
    let column = if strict.missing.iter().any(|text| strict_only(&text)) {
        strict
    } else {
        texts
    };
    let mut proposals = column.missing_proposals();
    proposals.append(&mut decided.proposals);
    decided.proposals = proposals;
    decided
}

/// Describes cells with a word that becomes a special value.
fn special_word(text: &str, seen: Seen) -> Exception {
    let read_as = format!("proposed as the special value {text:?}");
    Exception::new(seen.count, seen.row, &Shape::of(text), read_as)
}

/// Reads texts that do not fit, and that too few records share, as missing. Groups them by their shape.
fn rare_exceptions(
    column: &Column<'_>,
    rare: &[(&str, Seen)],
    form: &mut ColumnForm,
) -> Vec<Exception> {
    let mut by_shape: BTreeMap<Shape, (u64, u64)> = BTreeMap::new();
    for (text, seen) in rare {
        let (cells, row) = by_shape.entry(Shape::of(text)).or_insert((0, seen.row));
        *cells += seen.count;
        *row = seen.row.min(*row);
    }
    let bad = bad_bytes(column, form);
    if by_shape.is_empty() {
        return bad.into_iter().collect();
    }
    form.nullable = true;
    form.invalid = Some(Invalid::Missing);
    let mut all: Vec<Exception> = by_shape
        .into_iter()
        .map(|(shape, (cells, row))| Exception::new(cells, row, &shape, "proposed as missing"))
        .collect();
    all.sort_by_key(|exception| exception.row);
    all.extend(bad);
    all
}

/// Reads cells whose bytes are no text as missing.
fn bad_bytes(column: &Column<'_>, form: &mut ColumnForm) -> Option<Exception> {
    let (cells, row) = column.profile.bad_bytes;
    if cells == 0 {
        return None;
    }
    form.nullable = true;
    form.invalid = Some(Invalid::Missing);
    Some(Exception::bad_bytes(cells, row))
}

/// Drafts a column with the codes of a public code book.
fn code_book(column: &Column<'_>, book: &[String]) -> Decided {
    let codes: Vec<&str> = book.iter().map(String::as_str).collect();
    let evidence = format!("a code book of {}", counted(codes.len(), "code"));
    let known = |text: &str| codes.contains(&text);
    let outside: Vec<(&str, Seen)> = column
        .values
        .iter()
        .filter(|(text, _)| !known(text))
        .collect();
    let mut form = match text::best_prefix(&codes) {
        Some(prefix) if codes.len() > column.options.max_categories => {
            let mut form = column.form(KindForm::Code);
            (form.codes, form.prefix) = (Some(book.to_vec()), Some(prefix));
            form
        }
        _ => {
            let mut form = column.form(KindForm::Categorical);
            form.categories = Some(book.to_vec());
            form
        }
    };
    let exceptions = rare_exceptions(column, &outside, &mut form);
    let mut decided = Decided::new(form, Flag::Safe, RecordUse::Nothing, evidence);
    decided.exceptions = exceptions;
    decided
}

/// Drafts a column as the kind that its holder has chosen, if any value is of that kind.
fn chosen<'a>(kind: KindForm, strict: &Column<'a>, texts: &Column<'a>) -> Decided {
    let decided = match kind {
        KindForm::Number | KindForm::Numeric => number::forced(strict),
        KindForm::Date | KindForm::Datetime | KindForm::Time | KindForm::Duration => {
            time::forced(kind, strict)
        }
        KindForm::Categorical => text::forced_categories(texts),
        KindForm::Code => text::forced_codes(texts),
        KindForm::Identifier => Some(text::forced_identifiers(texts)),
        KindForm::Derived | KindForm::LeftOut => None,
    };
    decided.unwrap_or_else(|| {
        let reason = format!("no value can be drafted as {}", kind.word());
        text::left_out(texts, &reason, Flag::Safe)
    })
}

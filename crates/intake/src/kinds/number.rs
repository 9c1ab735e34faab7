//! Columns of numbers.

use std::collections::BTreeMap;

use fhaim_domain::{
    NumberStyle, counted,
    form::{Bound, ColumnForm, KindForm, Negative},
};

use super::{Column, Decided, bins, person, text};
use crate::draft::{Exception, Flag, RecordUse};
use crate::numbers::scan_number;
use crate::profile::{Mark, Numbers, Read, Seen};

/// The drafted decimals suffice for at least this share of a column's numbers.
const USUAL_SHARE: f64 = 0.95;

/// A scale has at most this many steps, and at least this many of them have a sign.
const MAX_SCALE: u64 = 30;
const MIN_SIGNED: usize = 3;

/// Special values may be many, but at least this share of the cells are numbers.
const MIN_NUMBERS: f64 = 0.6;

/// A whole number with at least this many digits may be an identifier.
const LONG: usize = 7;

/// Codes are at least this many times as far apart as they would be without gaps.
const GAP: u64 = 10;

/// A code occurs in at least this many records on average.
const CODE_RECORDS: u64 = 3;

/// With fewer records, identifiers look the same as values that happen to differ.
const MIN_RECORDS: u64 = 20;

/// Maximum number of different steps of a column that are counted one by one.
const MAX_STEPS: usize = 1 << 17;

/// The values of a column, read as numbers of one style.
struct Fit<'a> {
    style: NumberStyle,
    mark: Mark,
    /// Records by step.
    steps: BTreeMap<i64, u64>,
    /// Cells that are numbers.
    cells: u64,
    /// Texts that are no numbers of the style, in the order of their first records.
    others: Vec<(&'a str, Seen)>,
    /// Numbers that are rounded to the style's decimals.
    rounded: u64,
    /// Cells that are limits, such as <0.5.
    limits: u64,
}

/// Drafts numbers by the holder's choice.
pub(super) fn forced(column: &Column<'_>) -> Option<Decided> {
    let fit = Fit::of(column).filter(|fit| fit.cells > 0)?;
    Some(fit.number(column))
}

/// Drafts a column whose cells are numbers, but for a few.
pub(super) fn decide(column: &Column<'_>, majority: f64) -> Option<Decided> {
    let fit = Fit::of(column)?;
    let cells = column.values.cells as f64;
    let words = fit.limits.max(fit.shared(column.options.shared_by));
    if ((fit.cells + words) as f64) < majority * cells || (fit.cells as f64) < MIN_NUMBERS * cells {
        return None;
    }
    if is_prose(&fit.style) {
        return None;
    }
    let numbers = &column.profile.numbers;
    if column.profile.counting && column.values.cells > 2 && column.values.cells == fit.cells {
        return Some(sequence(column));
    }
    // A number would lose the zero in front of a code, 01234, and letters that touch digits belong to codes: B20.
    if (numbers.padded.saturating_mul(20) > fit.cells)
        || (numbers.glued * 2 > fit.cells && !fit.is_measured())
    {
        return None;
    }
    let split = text::Split::of(column);
    if (fit.is_few(column) && split.rest == 0) || (fit.is_scale(column) && !split.listed.is_empty())
    {
        return Some(text::categories(column, &split));
    }
    if let Some(decided) = fit.identifiers_or_codes(column, &split) {
        return Some(decided);
    }
    Some(fit.number(column))
}

/// Whether the texts around the numbers are words of a sentence, as in "Note 17 on someone", and no currency or unit.
fn is_prose(style: &NumberStyle) -> bool {
    let word = |text: &str| text.len() > 2 && text.chars().all(char::is_lowercase);
    let before = style
        .before
        .trim()
        .chars()
        .filter(|letter| letter.is_lowercase())
        .count();
    let after = style
        .after
        .split_whitespace()
        .filter(|text| word(text))
        .count();
    before >= 3 || after >= 2 || (after > 0 && style.after.split_whitespace().count() > 1)
}

fn sequence(column: &Column<'_>) -> Decided {
    let form = ColumnForm {
        pattern: Some("sequence".to_owned()),
        ..ColumnForm::empty(column.name.to_owned(), KindForm::Identifier, false)
    };
    let evidence = "it counts the rows: synthetic tables count theirs".to_owned();
    Decided::new(form, Flag::Safe, RecordUse::Nothing, evidence)
}

/// Returns the style in which most numbers of a column are written.
fn style(numbers: &Numbers, mark: Mark, read: &Read) -> NumberStyle {
    let affixes = numbers.affixes();
    let (usual, most) = read.usual_decimals(USUAL_SHARE);
    let magnitude = read.min.abs().max(read.max.abs()).max(1e-9).log10().ceil();
    // More digits than a double has would not be meaningful.
    let room = (12.0 - magnitude).clamp(0.0, f64::from(fhaim_domain::MAX_DECIMALS)) as u32;
    let decimals = usual.min(room);
    let negative = [
        Negative::Minus,
        Negative::Parentheses,
        Negative::Trailing,
        Negative::MinusSign,
    ];
    let negative = negative
        .into_iter()
        .zip(numbers.negative)
        .max_by_key(|&(kind, count)| (count, kind == Negative::Minus));
    let negative = negative.map_or(Negative::Minus, |(kind, _)| kind);
    let mut style = NumberStyle {
        decimals,
        trailing_zeros: decimals > 0 && read.is_even(),
        comma: mark.comma,
        step: 1,
        thousands: read
            .thousands
            .filter(|separator| mark.is_grouped || !matches!(separator, ',' | '.')),
        before: affixes.before,
        after: affixes.after,
        negative: match negative {
            Negative::Minus if numbers.has_plus() => Negative::PlusMinus,
            negative => negative,
        },
    };
    if decimals == most {
        style.step = step(read.divisor, decimals);
    }
    style
}

/// Returns the distance of neighbouring numbers, in units of the last decimal, given the divisor of all numbers in units
/// of the ninth.
fn step(divisor: u128, decimals: u32) -> i64 {
    let unit = 10u128.pow(fhaim_domain::MAX_DECIMALS.saturating_sub(decimals));
    i64::try_from(divisor / unit).unwrap_or(1).max(1)
}

impl<'a> Fit<'a> {
    fn of(column: &Column<'a>) -> Option<Self> {
        let numbers = &column.profile.numbers;
        let mark = numbers.marks.decide();
        let read = numbers.read(mark.comma);
        if read.count == 0 {
            return None;
        }
        let mut fit = Self {
            style: style(numbers, mark, read),
            mark,
            steps: BTreeMap::new(),
            cells: 0,
            others: Vec::new(),
            rounded: 0,
            limits: 0,
        };
        for (text, seen) in column.values.iter() {
            fit.see(text, seen);
        }
        fit.cells += read.values.count();
        for (value, weight) in read.values.weighted() {
            if let Some(step) = fit.style.step(value) {
                fit.count(step, weight);
            }
        }
        // The limits also cover numbers that the summary dropped.
        if read.values.count() > 0 {
            for limit in [read.min, read.max] {
                if let Some(step) = fit.style.step(limit) {
                    fit.steps.entry(step).or_insert(1);
                }
            }
        }
        Some(fit)
    }

    fn see(&mut self, text: &'a str, seen: Seen) {
        let value = self.style.parse(text);
        let Some((value, step)) = value.and_then(|value| Some((value, self.style.step(value)?)))
        else {
            self.others.push((text, seen));
            let is_limit = scan_number(text).is_some_and(|scanned| scanned.limit.is_some());
            self.limits += u64::from(is_limit) * seen.count;
            return;
        };
        if self.style.multiple(value).is_none() {
            self.rounded += seen.count;
        }
        self.cells += seen.count;
        self.count(step, seen.count);
    }

    /// Cells with texts that enough records share to be special values.
    fn shared(&self, shared_by: u64) -> u64 {
        let shared = self
            .others
            .iter()
            .filter(|(_, seen)| seen.count >= shared_by);
        shared.map(|(_, seen)| seen.count).sum()
    }

    fn count(&mut self, step: i64, count: u64) {
        if self.steps.len() < MAX_STEPS || self.steps.contains_key(&step) {
            *self.steps.entry(step).or_default() += count;
        }
    }

    /// Whether there are so few different numbers, each always written the same way, that they are categories.
    fn is_few(&self, column: &Column<'_>) -> bool {
        let few = column.options.max_number_categories as u64;
        let different = self.steps.len() as u64;
        different <= 1 || (column.values.distinct <= few && different == column.values.distinct)
    }

    /// Whether the texts are steps of a scale, such as the grades 1-, 2+ and 2, where a sign makes no negative number.
    fn is_scale(&self, column: &Column<'_>) -> bool {
        let signed = self.others.iter().filter(|(text, _)| text.ends_with('+'));
        let is_signed = self.style.negative == Negative::Trailing || signed.count() >= MIN_SIGNED;
        self.style.decimals == 0 && is_signed && column.values.distinct <= MAX_SCALE
    }

    /// Whether all numbers are whole, without texts or separators.
    fn is_plain(&self) -> bool {
        let style = &self.style;
        style.decimals == 0
            && style.thousands.is_none()
            && style.before.is_empty()
            && style.after.is_empty()
    }

    /// Whether letters that touch the digits are a unit, as in 5mg, and not part of a code, as in B20.
    fn is_measured(&self) -> bool {
        let varied = self.steps.len() > 1;
        varied && self.style.before.is_empty() && self.style.after.len() >= 2
    }

    fn identifiers_or_codes(
        &self,
        column: &Column<'_>,
        split: &text::Split<'_>,
    ) -> Option<Decided> {
        if !self.is_plain() || column.values.cells < MIN_RECORDS {
            return None;
        }
        if person::names_codes(column.name) {
            return Some(text::codes_or_question(column, split));
        }
        let (first, last) = (*self.steps.keys().next()?, *self.steps.keys().next_back()?);
        let (cells, distinct) = (column.values.cells, column.values.distinct.max(1));
        let gaps = (last.abs_diff(first) / distinct) >= GAP && first >= 0 && self.style.step == 1;
        let numbers = &column.profile.numbers;
        let even = numbers.width.0 == numbers.width.1;
        let nearly_unique = distinct * 100 >= cells * 99;
        if nearly_unique
            && gaps
            && (even && numbers.width.1 >= LONG
                || person::names_identifiers(column.name)
                || person::names_a_person(column.name))
        {
            return Some(text::identifiers(column));
        }
        let repeated = cells >= distinct.saturating_mul(CODE_RECORDS);
        let coded = (even && numbers.width.1 >= 3) || last >= 100_000;
        if !(gaps && repeated && coded && distinct >= 10) {
            return None;
        }
        Some(text::codes_or_question(column, split))
    }

    fn number(&self, column: &Column<'_>) -> Decided {
        let mut form = column.form(KindForm::Number);
        let exceptions = self.exceptions(column, &mut form);
        self.write_style(&mut form);
        let bound = |step: i64| Bound::Number(self.style.number(step).value());
        let binning = bins::Binning {
            bins: column.options.bins,
            shared_by: column.options.shared_by,
            bound: &bound,
        };
        let words = form.special.take().unwrap_or_default();
        bins::fill(&mut form, &self.steps, &binning);
        let special = self.special_note(&form, column.options.shared_by);
        if !words.is_empty() {
            form.special.get_or_insert_default().extend(words);
        }
        let mut decided = Decided::new(
            form,
            Flag::FromRecords,
            RecordUse::Range,
            self.evidence(column),
        );
        decided.exceptions = exceptions;
        decided.proposals.extend(special);
        if self.rounded > 0 {
            let rounded = counted(self.rounded, "number");
            decided.proposals.push(format!(
                "{rounded} with more decimals than the others: rounded when read"
            ));
        }
        decided.questions.extend(self.mark_question());
        if self.is_plain() && person::names_identifiers(column.name) {
            decided.questions.extend(person::unit_question(column));
        }
        decided
    }

    /// Asks for the meaning of a comma or point, if no number decides it.
    fn mark_question(&self) -> Option<String> {
        let separator = self.style.thousands.filter(|_| self.mark.is_open);
        match separator {
            Some(separator) => Some(format!(
                "{separator:?} was read as a separator between thousands: if it is the decimal mark, remove `thousands` and \
                 set `decimals`"
            )),
            None if self.mark.is_open => Some(format!(
                "{:?} was read as the decimal mark: if it separates thousands, set `thousands`",
                self.style.mark()
            )),
            None => None,
        }
    }

    /// Writes the style into the form.
    fn write_style(&self, form: &mut ColumnForm) {
        let style = &self.style;
        if style.decimals == 0 && self.rounded == 0 {
            form.integer = Some(true);
        } else {
            form.decimals = Some(u64::from(style.decimals));
            form.trailing_zeros = style.trailing_zeros.then_some(true);
        }
        form.decimal_comma = style.comma.then_some(true);
        form.thousands = style.thousands;
        form.before = Some(style.before.clone()).filter(|text| !text.is_empty());
        form.after = Some(style.after.clone()).filter(|text| !text.is_empty());
        form.negative = Some(style.negative).filter(|&negative| negative != Negative::Minus);
        let step = style.number(1).value();
        form.step = (style.step > 1).then_some(step);
    }

    fn evidence(&self, column: &Column<'_>) -> String {
        let cells = column.values.cells;
        let mut text = match self.cells == cells {
            true => format!("{} are numbers", counted(cells, "cell")),
            false => format!("{} of {} are numbers", self.cells, counted(cells, "cell")),
        };
        let style = &self.style;
        if style.comma {
            text.push_str(", with a decimal comma");
        }
        if let Some(separator) = style.thousands {
            text.push_str(&format!(", with {separator:?} between thousands"));
        }
        if style.step > 1 {
            text.push_str(&format!(", all multiples of {}", style.number(1).value()));
        }
        text
    }

    /// Reads texts that are no numbers as special values, if enough records share them, or as missing.
    fn exceptions(&self, column: &Column<'_>, form: &mut ColumnForm) -> Vec<Exception> {
        let (shared, rare): (Vec<_>, Vec<_>) = (self.others.iter()).partition(|(text, seen)| {
            seen.count >= column.options.shared_by && fhaim_domain::is_name(text)
        });
        let mut exceptions = Vec::new();
        for (text, seen) in shared {
            let text = text.trim();
            let special = form.special.get_or_insert_default();
            special.push(Bound::Text(text.to_owned()));
            exceptions.push(super::special_word(text, seen));
        }
        exceptions.extend(super::rare_exceptions(column, &rare, form));
        exceptions
    }

    /// Names the special numbers of a draft.
    fn special_note(&self, form: &ColumnForm, shared_by: u64) -> Option<String> {
        let number = |bound: &Bound| match bound {
            Bound::Number(number) => number.to_string(),
            Bound::Text(text) => text.clone(),
        };
        let all: Vec<String> = form.special.iter().flatten().map(number).collect();
        let hint = match bins::codes(&self.steps, shared_by).is_empty() {
            true => "",
            false => ". If one stands for a missing value, move it to `missing`",
        };
        let all = (!all.is_empty()).then(|| all.join(", "))?;
        Some(format!("frequent values have separate bins: {all}{hint}"))
    }
}

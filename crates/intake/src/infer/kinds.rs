//! Choice of the kind of a drafted column.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::{
    InferOptions, numbers,
    profile::{Numbers, Profile},
    times,
};
use fhaim_domain::{
    NumberStyle,
    form::{ColumnForm, KindForm},
};

/// Texts that often stand for a missing value.
const MISSING_LOOKALIKES: [&str; 12] = [
    "?", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "none", "-", ".",
];

/// Maximum length of a code, and maximum number of codes of a column.
const MAX_CODE_LENGTH: usize = 12;
const MAX_CODES: usize = 5_000;

/// The drafted decimals suffice for at least this share of a column's records.
const USUAL_SHARE: f64 = 0.95;

/// Maximum number of chapters of drafted codes.
const MAX_CHAPTERS: usize = 64;

/// With fewer records, identifiers look the same as values that happen to differ.
const MIN_RECORDS_OF_IDENTIFIERS: u64 = 20;

/// A column's form and, if there is something to check, a note.
type Drafted = (ColumnForm, Option<String>);

/// Drafts a column.
pub(super) fn form(name: &str, profile: &Profile, options: &InferOptions) -> Drafted {
    let empty = |kind| ColumnForm::empty(name.to_owned(), kind, profile.missing);
    if profile.texts.is_empty() {
        return left_out(name, "every value is missing");
    }
    if let Some(drafted) = times::form(name, profile, options) {
        return drafted;
    }
    if let Some(style) = profile.number_style()
        && !few_numbers(profile, style, options)
    {
        return if profile.counting && profile.present > 2 {
            identifier(name, "sequence", "it counts the rows")
        } else {
            number(empty(KindForm::Number), style, profile, options)
        };
    }
    if profile.texts.len() <= options.max_categories && !profile.overflowed {
        let form = ColumnForm {
            categories: Some(sorted_texts(profile)),
            ..empty(KindForm::Categorical)
        };
        let rare = MISSING_LOOKALIKES
            .iter()
            .find(|token| profile.texts.iter().any(|t| t == *token));
        let note = rare.map(|token| {
            format!("if {token:?} stands for a missing value, declare it as one and draft again")
        });
        // If all values differ, the column may hold names or the like.
        if !all_differ(profile) {
            return (form, note);
        }
    }
    many_texts(name, profile)
}

fn all_differ(profile: &Profile) -> bool {
    profile.present >= MIN_RECORDS_OF_IDENTIFIERS && profile.texts.len() as u64 == profile.present
}

/// Identifiers, codes, or free text.
fn many_texts(name: &str, profile: &Profile) -> Drafted {
    if all_differ(profile) || profile.overflowed {
        return match pattern(profile) {
            Some(pattern) => identifier(
                name,
                &pattern,
                "all values have the same form and no two are equal",
            ),
            None => left_out(name, "every value is different, as in names and free text"),
        };
    }
    let code = |text: &String| {
        let short = text.chars().count() <= MAX_CODE_LENGTH;
        short && !text.contains(char::is_whitespace)
    };
    if profile.texts.len() <= MAX_CODES
        && profile.texts.iter().all(code)
        && let Some(prefix) = best_prefix(&profile.texts)
    {
        let mut form = ColumnForm::empty(name.to_owned(), KindForm::Code, profile.missing);
        form.prefix = Some(prefix);
        form.codes = Some(sorted_texts(profile));
        let note = format!(
            "its {} codes were read from the records, in chapters of the first {}: replace them \
             with the code book's, and add an `other` for unknown codes",
            profile.texts.len(),
            fhaim_domain::counted(prefix, "character")
        );
        return (form, Some(note));
    }
    let different = profile.texts.len();
    left_out(
        name,
        &format!("{different} different texts, as in names and free text"),
    )
}

/// Returns the prefix with the fewest one-hot columns: chapters, and the codes of the largest
/// chapter.
fn best_prefix(texts: &[String]) -> Option<usize> {
    let cost = |prefix: usize| {
        let mut chapters: BTreeMap<String, usize> = BTreeMap::new();
        for text in texts {
            *chapters
                .entry(text.chars().take(prefix).collect())
                .or_default() += 1;
        }
        let largest = chapters.values().copied().max().unwrap_or(0);
        let fits = chapters.len() <= MAX_CHAPTERS && largest <= fhaim_domain::MAX_DIGITS as usize;
        fits.then_some((chapters.len() + largest, prefix))
    };
    (1..=4).filter_map(cost).min().map(|(_, prefix)| prefix)
}

fn left_out(name: &str, reason: &str) -> Drafted {
    let form = ColumnForm {
        reason: Some(reason.to_owned()),
        ..ColumnForm::empty(name.to_owned(), KindForm::LeftOut, false)
    };
    (form, Some(format!("left out: {reason}")))
}

fn identifier(name: &str, pattern: &str, why: &str) -> Drafted {
    let form = ColumnForm {
        pattern: Some(pattern.to_owned()),
        ..ColumnForm::empty(name.to_owned(), KindForm::Identifier, false)
    };
    (
        form,
        Some(format!(
            "{why}: drafted as an identifier, which sampling replaces with new ones"
        )),
    )
}

/// Returns the pattern that all texts follow. They have the same length and, at each place, a
/// digit, a letter of one case, or always the same character.
fn pattern(profile: &Profile) -> Option<String> {
    let mut texts = profile.texts.iter();
    let first: Vec<char> = texts.next()?.chars().collect();
    let class = |letter: char| match letter {
        '0'..='9' => Some("[0-9]"),
        'a'..='z' => Some("[a-z]"),
        'A'..='Z' => Some("[A-Z]"),
        _ => None,
    };
    let mut same = vec![true; first.len()];
    for text in texts {
        let letters: Vec<char> = text.chars().collect();
        let alike = letters.len() == first.len()
            && (letters.iter().zip(&first))
                .all(|(&x, &y)| x == y || class(x).is_some_and(|c| class(y) == Some(c)));
        if !alike {
            return is_uuid(profile).then(|| "uuid".to_owned());
        }
        for (same, (x, y)) in same.iter_mut().zip(letters.iter().zip(&first)) {
            *same &= x == y;
        }
    }
    let mut places: Vec<(String, usize)> = Vec::new();
    for (&letter, same) in first.iter().zip(same) {
        let place = match class(letter) {
            Some(class) if letter.is_ascii_digit() || !same => class.to_owned(),
            _ if "[]{}".contains(letter) || letter.is_control() => return None,
            _ => letter.to_string(),
        };
        match places.last_mut() {
            Some((last, times)) if *last == place && place.len() > 1 => *times += 1,
            _ => places.push((place, 1)),
        }
    }
    let written = places.iter().map(|(place, times)| match times {
        1 => place.clone(),
        times => format!("{place}{{{times}}}"),
    });
    let digits = places.iter().any(|(place, _)| place.len() > 1);
    digits.then(|| written.collect())
}

fn is_uuid(profile: &Profile) -> bool {
    profile.texts.iter().all(|text| {
        let groups: Vec<usize> = text.split('-').map(str::len).collect();
        let hex = |letter: char| letter == '-' || letter.is_ascii_hexdigit();
        groups == [8, 4, 4, 4, 12] && text.chars().all(hex)
    })
}

/// Returns whether a column of numbers is better drafted as categorical: it has few different
/// numbers, each always written the same way.
fn few_numbers(profile: &Profile, style: Numbers, options: &InferOptions) -> bool {
    let style = number_style(style, 0);
    let values = || profile.texts.iter().filter_map(|text| style.parse(text));
    // Adding zero turns -0 into 0, so that both have the same bits.
    let different: HashSet<u64> = values().map(|value| (value + 0.0).to_bits()).collect();
    if different.len() <= 1 {
        return !profile.overflowed;
    }
    let few = profile.texts.len() <= options.max_number_categories && !profile.overflowed;
    few && different.len() == profile.texts.len()
}

fn number_style(style: Numbers, decimals: u32) -> NumberStyle {
    NumberStyle {
        decimals,
        trailing_zeros: decimals > 0 && style.decimals.0 == style.decimals.1,
        comma: style.comma,
        ..NumberStyle::default()
    }
}

/// Drafts numbers in bins with digits.
fn number(
    mut form: ColumnForm,
    written: Numbers,
    profile: &Profile,
    options: &InferOptions,
) -> Drafted {
    let plain = number_style(written, 0);
    let values = profile.texts.iter().filter_map(|text| plain.parse(text));
    let limits = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(min, max), value| {
        (min.min(value), max.max(value))
    });
    let usual = usual_decimals(written, profile);
    let decimals = numbers::decimals_within(usual, limits);
    let style = number_style(written, decimals);
    let mut steps: BTreeMap<i64, u64> = BTreeMap::new();
    for (text, count) in profile.counted() {
        if let Some(step) = style.parse(text).and_then(|value| style.step(value)) {
            *steps.entry(step).or_default() += count;
        }
    }
    if style.decimals == 0 && written.decimals.0 == 0 {
        form.integer = Some(true);
    } else {
        form.decimals = Some(u64::from(style.decimals));
        form.trailing_zeros = style.trailing_zeros.then_some(true);
    }
    // The limits also cover texts that are not remembered.
    if profile.overflowed {
        for limit in [profile.limits.0, profile.limits.1] {
            steps.extend(
                style
                    .step(limit)
                    .filter(|step| !steps.contains_key(step))
                    .map(|s| (s, 1)),
            );
        }
    }
    form.decimal_comma = style.comma.then_some(true);
    let (first, last) = numbers::fill(&mut form, &style, &steps, options);
    let mut note = format!(
        "the range from {} to {} and the bin edges were read from the records and rounded: \
         replace them with publicly known ones",
        style.number(first),
        style.number(last)
    );
    if form.special.is_some() {
        note.push_str("; its special values occur in many records, or consist of nines");
    }
    if usual < written.decimals.0 {
        note.push_str("; a few values have more decimals and are rounded");
    }
    (form, Some(note))
}

/// Returns the decimals that suffice for nearly all records. A few quotients among measurements
/// (9.53333333 among 9.4 and 9.8) are no reason to write all others with nine decimals.
fn usual_decimals(written: Numbers, profile: &Profile) -> u32 {
    let mut records: BTreeMap<u32, u64> = BTreeMap::new();
    for (text, count) in profile.counted() {
        *records.entry(written.decimals_of(text)).or_default() += count;
    }
    let total: u64 = records.values().sum();
    let mut seen = 0;
    for (&decimals, &count) in &records {
        seen += count;
        if seen as f64 >= USUAL_SHARE * total as f64 {
            return decimals;
        }
    }
    written.decimals.0
}

/// Sorts numbers by value, other texts by their characters.
fn sorted_texts(profile: &Profile) -> Vec<String> {
    let texts: BTreeSet<&String> = profile.texts.iter().collect();
    let mut texts: Vec<String> = texts.into_iter().cloned().collect();
    if let Some(style) = profile.number_style() {
        let style = number_style(style, 0);
        let value = |text: &String| style.parse(text).unwrap_or(f64::INFINITY);
        texts.sort_by(|one, two| value(one).total_cmp(&value(two)));
    }
    texts
}

//! Looks for values of single records in a draft.

use std::collections::HashSet;

use serde_json::Value as Json;

use super::{
    cells::{Cells, SHARED, counts, is_known_missing, number},
    drafted::{Column, Drafted},
};

/// Words of notes that may also be values of a table.
const COMMON: [&str; 24] = [
    "other", "missing", "text", "texts", "number", "numbers", "date", "dates", "row", "rows",
    "line", "value", "values", "record", "records", "column", "code", "codes", "yes", "and", "the",
    "not", "are", "with",
];

/// Returns each value that fewer than [`SHARED`] records share and that the draft contains: in a
/// list, or in a note.
pub fn leaks(drafted: &Drafted, cells: &Cells) -> Vec<String> {
    let mut found = Vec::new();
    for (place, column) in drafted.columns().iter().enumerate() {
        if let Some(values) = cells.column(column.name(), place) {
            found.extend(listed_leaks(column, values));
        }
    }
    let prose = drafted.prose();
    for (at, values) in cells.columns.iter().enumerate() {
        let column = drafted.column(&cells.header[at], at);
        found.extend(leaks_in_prose(
            &prose,
            column.as_ref(),
            values,
            &cells.header,
        ));
    }
    found
}

fn listed_leaks(column: &Column<'_>, values: &[String]) -> Vec<String> {
    let counts = counts(values);
    let count = |text: &str| counts.get(text).copied().unwrap_or(0);
    let mut found = Vec::new();
    let other = column.text("other");
    for (key, text) in column.listed() {
        let exempt = is_known_missing(&text) || Some(text.as_str()) == other;
        if !exempt && count(&text) < SHARED {
            let count = count(&text);
            found.push(format!(
                "{key} of {:?} lists {text:?} ({count} records)",
                column.name()
            ));
        }
    }
    for special in column.list("special") {
        let count = special_count(column, special, values);
        let exempt = special.as_str().is_some_and(is_known_missing);
        if count < SHARED && !exempt {
            found.push(format!(
                "special of {:?} lists {special} ({count} records)",
                column.name()
            ));
        }
    }
    found
}

/// Number of cells with a special value: a number, a date, a day of every year, or a word.
fn special_count(column: &Column<'_>, special: &Json, values: &[String]) -> usize {
    let counted = |matches: &dyn Fn(&str) -> bool| values.iter().filter(|v| matches(v)).count();
    if let Some(wanted) = special.as_f64() {
        let comma = column.is_true("decimal_comma");
        let close = |value: f64| (value - wanted).abs() < 1e-9 * wanted.abs().max(1.0);
        return counted(&|text| number(text, comma).is_some_and(close));
    }
    let word = special.as_str().unwrap_or_default();
    let exact = counted(&|text| text == word);
    let format = column.text("format").unwrap_or("%Y-%m-%d");
    let written: HashSet<String> = match word.strip_prefix('*') {
        Some(day) => (1800..2200)
            .filter_map(|year| written_date(&format!("{year:04}{day}"), format))
            .collect(),
        None => written_date(word, format).into_iter().collect(),
    };
    let length = written.iter().map(String::len).max().unwrap_or(0);
    let dated = counted(&|text| {
        text.get(..length.min(text.len()))
            .is_some_and(|head| written.contains(head))
            || written.contains(text)
    });
    exact.max(dated)
}

/// Writes an ISO date in the part of `format` that has no time of day.
fn written_date(iso: &str, format: &str) -> Option<String> {
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    let parts: Vec<&str> = iso.split('-').collect();
    let [year, month, day] = parts[..] else {
        return None;
    };
    let number = |text: &str| text.parse::<usize>().ok();
    let (month_number, day_number) = (number(month)?, number(day)?);
    let name = MONTHS.get(month_number.checked_sub(1)?)?;
    let clock = format
        .find([' ', 'T'])
        .filter(|&at| format[at..].contains("%H") || format[at..].contains("%I"));
    let date = &format[..clock.unwrap_or(format.len())];
    let replacements = [
        ("%F", iso.to_owned()),
        ("%Y", year.to_owned()),
        ("%y", year.get(2..)?.to_owned()),
        ("%m", month.to_owned()),
        ("%d", day.to_owned()),
        ("%-m", month_number.to_string()),
        ("%-d", day_number.to_string()),
        ("%e", format!("{day_number:>2}")),
        ("%B", (*name).to_owned()),
        ("%b", name[..3].to_owned()),
        ("%^b", name[..3].to_uppercase()),
        ("%^B", name.to_uppercase()),
    ];
    let mut date = date.to_owned();
    for (directive, text) in replacements {
        date = date.replace(directive, &text);
    }
    Some(date)
}

/// Looks for rare values as whole words in notes, remarks and reasons. Short numbers cannot be told
/// from counts and rows, and numbers and dates within the drafted range are public.
fn leaks_in_prose(
    prose: &str,
    column: Option<&Column<'_>>,
    values: &[String],
    names: &[String],
) -> Vec<String> {
    let is_number = column.is_some_and(|column| column.kind() == "number");
    let bounds: HashSet<String> = column.map(Column::bounds).unwrap_or_default();
    let mut found = Vec::new();
    for (value, count) in counts(values) {
        let letters = value.chars().any(char::is_alphabetic);
        let long = value.chars().count() >= if letters { 3 } else { 5 };
        let public = count >= SHARED
            || is_known_missing(value)
            || bounds.contains(value)
            || names.iter().any(|name| name == value)
            || COMMON.contains(&value)
            || (is_number && number(value, false).is_some());
        if long && !public && is_word_of(prose, value) {
            found.push(format!(
                "a note contains the cell {value:?} ({count} records)"
            ));
        }
    }
    found.sort();
    found
}

/// Whether `word` occurs in `text` with no letter or digit next to it.
pub fn is_word_of(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        let apart = |letter: Option<char>| letter.is_none_or(|letter| !letter.is_alphanumeric());
        apart(before) && apart(after)
    })
}

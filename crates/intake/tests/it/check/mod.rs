//! Checks drafts against expectations, for the tests of this crate and of `fhaim-files`.
#![allow(dead_code, clippy::unwrap_used)]

pub mod cells;
pub mod drafted;
pub mod expectations;
pub mod privacy;
pub mod rules;
pub mod synthetic;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

use fhaim_domain::Table;
use serde_json::Value as Json;

use cells::{Cells, is_known_missing};
use drafted::{Column, Drafted, Intake};
use expectations::{Entry, Facts, Words, entries};

/// An expectation that a table does not meet.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The table's file.
    pub table: String,
    /// The expectation.
    pub expectation: String,
    /// The result instead.
    pub found: String,
}

/// The result of one table.
pub struct Checked {
    /// The requirements.
    pub entry: Entry,
    /// The expectations that it does not meet.
    pub failures: Vec<Failure>,
}

/// Checks the tables of a folder. `group` limits them to one group.
pub fn check_folder(folder: &Path, group: Option<&str>, intake: &dyn Intake) -> Vec<Checked> {
    let chosen = |entry: &Entry| group.is_none_or(|group| entry.group == group);
    let entries = entries(folder).into_iter().filter(chosen);
    let entries = entries.filter(|entry| entry.elsewhere.is_none());
    let checked = entries.map(|entry| {
        let failures = check(&entry, folder, intake);
        Checked { entry, failures }
    });
    checked.collect()
}

/// Panics with a table of all failures, if there are any.
pub fn assert_all(checked: &[Checked]) {
    assert!(!checked.is_empty(), "the group has no tables");
    for Checked { entry, failures } in checked.iter().filter(|one| one.entry.open.is_some()) {
        assert!(
            !failures.is_empty(),
            "{} is right: remove its key `open`",
            entry.file
        );
    }
    let checked: Vec<&Checked> = (checked.iter().filter(|one| one.entry.open.is_none())).collect();
    let failures: Vec<&Failure> = checked.iter().flat_map(|one| &one.failures).collect();
    if failures.is_empty() {
        return;
    }
    let mut lines = vec![
        "| table | expectation | found |".to_owned(),
        "|---|---|---|".to_owned(),
    ];
    lines.extend(failures.iter().map(|failure| {
        let Failure {
            table,
            expectation,
            found,
        } = failure;
        format!("| {table} | {expectation} | {found} |")
    }));
    let wrong = checked
        .iter()
        .filter(|one| !one.failures.is_empty())
        .count();
    panic!(
        "{wrong} of {} tables are wrong:\n{}",
        checked.len(),
        lines.join("\n")
    );
}

/// Returns a Markdown table with a line for each table.
pub fn summary(title: &str, checked: &[Checked]) -> String {
    let right = checked.iter().filter(|one| one.failures.is_empty()).count();
    let mut lines = vec![
        format!("## {title}: {right} of {} right\n", checked.len()),
        "| table | group | result | wrong |".to_owned(),
        "|---|---|---|---|".to_owned(),
    ];
    for Checked { entry, failures } in checked {
        let result = if failures.is_empty() {
            "right"
        } else {
            "wrong"
        };
        let wrong: Vec<String> = failures
            .iter()
            .map(|failure| format!("{}: {}", failure.expectation, failure.found).replace('|', "/"))
            .collect();
        lines.push(format!(
            "| {} | {} | {result} | {} |",
            entry.file,
            entry.group,
            wrong.join("; ")
        ));
    }
    lines.join("\n")
}

/// Checks one table. A panic of the tested code is a failure.
pub fn check(entry: &Entry, folder: &Path, intake: &dyn Intake) -> Vec<Failure> {
    let problems = catch_unwind(AssertUnwindSafe(|| problems(entry, folder, intake)));
    let problems = problems.unwrap_or_else(|_| vec![("no panic".to_owned(), "a panic".to_owned())]);
    let failure = |(expectation, found): (String, String)| Failure {
        table: entry.file.clone(),
        expectation,
        found: shortened(&found),
    };
    problems.into_iter().map(failure).collect()
}

fn shortened(text: &str) -> String {
    let line = text.replace('\n', " ");
    match line.char_indices().nth(160) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// A pair of an expectation and the result instead.
type Problem = (String, String);

fn problems(entry: &Entry, folder: &Path, intake: &dyn Intake) -> Vec<Problem> {
    let path = folder.join(&entry.file);
    let drafted = match intake.draft(&path) {
        Err(error) => return refusal_problems(entry, &nameless(&error, &path)),
        Ok(_) if entry.refused.is_some() => {
            return vec![("the table is refused".to_owned(), "a draft".to_owned())];
        }
        Ok(mut drafted) => {
            let lines = |lines: &[String]| lines.iter().map(|line| nameless(line, &path)).collect();
            (drafted.notes, drafted.remarks) = (lines(&drafted.notes), lines(&drafted.remarks));
            drafted
        }
    };
    let cells = Cells::read(&plain(entry, folder));
    let mut problems = prose_problems(entry, &drafted);
    problems.extend(rules::proposal_problems(entry, &drafted));
    problems.extend(rules::accepted_problems(&drafted, &path, &cells, intake));
    for (place, name) in cells.header.iter().enumerate() {
        let none = Facts::default();
        let facts = entry.columns.get(name).unwrap_or(&none);
        match drafted.column(name, place) {
            Some(column) => problems.extend(column_problems(column, facts, &drafted)),
            None if facts.optional => {}
            None => problems.push((format!("a column {name:?}"), "no such column".to_owned())),
        }
    }
    let leaks = privacy::leaks(&drafted, &cells);
    if let Some(first) = leaks.first() {
        let more = format!("{first}; {} in all", leaks.len());
        problems.push(("no value of fewer than 20 records".to_owned(), more));
    }
    match intake.read(&drafted.schema_json, &path) {
        Err(error) => problems.push(("the draft reads its own table".to_owned(), error)),
        Ok(table) => {
            problems.extend(reading_problems(entry, &drafted, &table, &cells));
            problems.extend(synthetic::problems(entry, &drafted, &table, &cells, intake));
        }
    }
    problems
}

/// A message without the path of the table, which may have words that are looked for.
fn nameless(message: &str, path: &Path) -> String {
    message.replace(&path.display().to_string(), "the table")
}

fn plain(entry: &Entry, folder: &Path) -> PathBuf {
    folder.join(entry.plain.as_ref().unwrap_or(&entry.file))
}

fn refusal_problems(entry: &Entry, error: &str) -> Vec<Problem> {
    let Some(words) = entry.refused.as_ref().or(entry.may_refuse.as_ref()) else {
        return vec![("a draft".to_owned(), format!("refused: {error}"))];
    };
    let absent = words.iter().filter(|words| !words.are_in(error));
    let mut problems: Vec<Problem> = absent
        .map(|words| {
            (
                format!("the error has {:?}", words.show()),
                error.to_owned(),
            )
        })
        .collect();
    let secret = entry
        .absent
        .iter()
        .filter(|text| error.contains(text.as_str()));
    problems.extend(secret.map(|text| (format!("the error lacks {text:?}"), error.to_owned())));
    problems
}

/// Checks the words of notes and remarks.
fn prose_problems(entry: &Entry, drafted: &Drafted) -> Vec<Problem> {
    let prose = drafted.prose();
    let everything = drafted.everything();
    let mut problems = word_problems("a note or remark", &entry.says, &prose);
    for text in &entry.absent {
        if everything.contains(text.as_str()) {
            problems.push((format!("{text:?} appears nowhere"), "it does".to_owned()));
        }
    }
    problems
}

fn word_problems(place: &str, words: &[Words], text: &str) -> Vec<Problem> {
    let absent = words.iter().filter(|words| !words.are_in(text));
    absent
        .map(|words| (format!("{place} has {:?}", words.show()), text.to_owned()))
        .collect()
}

/// Checks the schema of a column and the notes about it.
fn column_problems(column: Column<'_>, facts: &Facts, drafted: &Drafted) -> Vec<Problem> {
    let name = column.name();
    let mut problems = Vec::new();
    let kinds = facts
        .kind
        .as_ref()
        .map(|kinds| kinds.list())
        .unwrap_or_default();
    if !kinds.is_empty() && !kinds.contains(&column.kind()) {
        problems.push((
            format!("{name} is {}", kinds.join(" or ")),
            column.kind().to_owned(),
        ));
    }
    problems.extend(word_problems(
        &format!("a note about {name}"),
        &facts.says,
        &drafted.about(name),
    ));
    for (key, wanted) in &facts.schema {
        let found = column.get(key);
        if !is_wanted(wanted, &found) {
            problems.push((format!("{name} has {key} {wanted}"), found.to_string()));
        }
    }
    let listed = |key: &str, value: &Json| column.list(key).iter().any(|found| same(found, value));
    for value in &facts.special {
        if !listed("special", value) {
            problems.push((
                format!("{name} has the special value {value}"),
                column.get("special").to_string(),
            ));
        }
    }
    for value in &facts.set_apart {
        let missing = Json::String(
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned),
        );
        if !listed("special", value) && !listed("missing", &missing) {
            let found = format!(
                "special {}, missing {}",
                column.get("special"),
                column.get("missing")
            );
            problems.push((format!("{name} sets {value} apart"), found));
        }
    }
    for text in &facts.missing {
        let dropped = column.text("invalid") == Some("missing");
        if !dropped && !listed("missing", &Json::String(text.clone())) {
            problems.push((
                format!("{name} reads {text:?} as missing"),
                column.get("missing").to_string(),
            ));
        }
    }
    problems.extend(category_problems(column, facts));
    problems
}

fn category_problems(column: Column<'_>, facts: &Facts) -> Vec<Problem> {
    let Some(wanted) = facts
        .categories
        .as_ref()
        .filter(|_| column.kind() != "left-out")
    else {
        return Vec::new();
    };
    let other = column.text("other");
    let mut found: Vec<String> = column
        .listed()
        .into_iter()
        .filter(|(key, text)| *key != "missing" && Some(text.as_str()) != other)
        .map(|(_, text)| text)
        .collect();
    let mut wanted = wanted.clone();
    found.sort();
    wanted.sort();
    match found == wanted {
        true => Vec::new(),
        false => vec![(
            format!("{} has the categories {wanted:?}", column.name()),
            format!("{found:?}"),
        )],
    }
}

fn is_wanted(wanted: &Json, found: &Json) -> bool {
    if let Some(alternatives) = wanted["one_of"].as_array() {
        return alternatives.iter().any(|wanted| is_wanted(wanted, found));
    }
    match wanted {
        Json::Null => found.is_null() || *found == Json::Bool(false),
        Json::String(any) if any == "*" => !found.is_null(),
        wanted => same(wanted, found),
    }
}

fn same(one: &Json, two: &Json) -> bool {
    match (one.as_f64(), two.as_f64()) {
        (Some(one), Some(two)) => (one - two).abs() < 1e-9,
        _ => one == two,
    }
}

/// Checks the number of records and of missing values that the draft reads.
fn reading_problems(
    entry: &Entry,
    drafted: &Drafted,
    table: &Table,
    cells: &Cells,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    let wanted = match entry.records.is_empty() {
        true => vec![cells.records()],
        false => entry.records.clone(),
    };
    if !wanted.contains(&table.records()) {
        problems.push((format!("{wanted:?} records"), table.records().to_string()));
    }
    for (at, name) in cells.header.iter().enumerate() {
        let Some(facts) = entry.columns.get(name) else {
            continue;
        };
        let counted = || {
            let is_missing = |cell: &&String| cell.is_empty() || facts.missing.contains(cell);
            cells.columns[at].iter().filter(is_missing).count()
        };
        let nulls = facts
            .nulls
            .or_else(|| (!facts.missing.is_empty()).then(counted));
        let column = drafted.column(name, at);
        let found = column.and_then(|column| missing_records(table, column.name()));
        if let (Some(wanted), Some(found)) = (nulls, found)
            && wanted != found
        {
            problems.push((
                format!("{name} has {wanted} missing values"),
                found.to_string(),
            ));
        }
    }
    problems
}

/// Number of records without a value in a field; `None` for fields without attributes.
fn missing_records(table: &Table, name: &str) -> Option<usize> {
    let schema = table.schema();
    let field = schema.fields().iter().find(|field| field.name() == name)?;
    let first = field.attributes().next()?;
    let null = schema.columns().get(first)?.null_code();
    let is_null = |code: &&u32| Some(**code) == null;
    Some(table.column(first).iter().filter(is_null).count())
}

/// Whether a text is a well-known missing marker.
pub fn is_marker(text: &str) -> bool {
    is_known_missing(text)
}

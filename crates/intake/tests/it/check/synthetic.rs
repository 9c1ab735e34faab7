//! A synthetic table of a drafted schema, and what its values must be.

use std::{
    collections::HashSet,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

use fhaim_domain::{Schema, Table, WriteOptions, write_csv};
use rand::{Rng, seq::SliceRandom};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use super::{
    cells::{Cells, Shapes, number},
    drafted::{Column, Drafted, Intake},
    expectations::{Entry, Facts},
};

/// A table whose fields have the codes of the real one, each in its own random order. The attributes
/// of a field keep together.
pub fn shuffled(table: &Table, rng: &mut impl Rng) -> Result<Table, String> {
    let mut columns = table.columns().to_vec();
    for field in table.schema().fields() {
        let mut order: Vec<usize> = (0..table.records()).collect();
        order.shuffle(rng);
        for attribute in field.attributes() {
            columns[attribute] = order
                .iter()
                .map(|&row| table.column(attribute)[row])
                .collect();
        }
    }
    Table::new(table.shared_schema(), columns).map_err(|problem| problem.to_string())
}

/// Writes a table as plain CSV. `before` is the number of records that the output already has.
pub fn written(table: &Table, before: u64, rng: &mut impl Rng) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let options = WriteOptions {
        before,
        ..WriteOptions::new("synthetic.csv")
    };
    write_csv(table, &mut bytes, rng, &options).map_err(|error| error.to_string())?;
    Ok(bytes)
}

/// Checks a synthetic table. Returns pairs of an expectation and the result instead.
pub fn problems(
    entry: &Entry,
    drafted: &Drafted,
    table: &Table,
    cells: &Cells,
    intake: &dyn Intake,
) -> Vec<(String, String)> {
    let mut rng = ChaCha8Rng::seed_from_u64(20);
    let synthetic = match shuffled(table, &mut rng).and_then(|table| written(&table, 0, &mut rng)) {
        Ok(bytes) => bytes,
        Err(error) => return vec![("a synthetic table is written".to_owned(), error)],
    };
    let mut problems = Vec::new();
    let rows = Cells::parse(&synthetic);
    let file = format!("{}.synthetic.csv", entry.file);
    if let Err(error) = read_back(&file, &drafted.schema_json, &synthetic, intake) {
        problems.push((
            "the synthetic table is read by its schema".to_owned(),
            error,
        ));
    }
    for column in drafted.columns() {
        let place = drafted
            .columns()
            .iter()
            .position(|other| other.name() == column.name());
        let real = cells.column(column.name(), place.unwrap_or(usize::MAX));
        let at = rows.header.iter().position(|name| name == column.name());
        let (Some(real), Some(at)) = (real, at) else {
            continue;
        };
        let none = Facts::default();
        let facts = entry.columns.get(column.name()).unwrap_or(&none);
        problems.extend(value_problems(column, facts, real, &rows.columns[at]));
    }
    problems.extend(order_problems(entry, drafted, &rows));
    if let Some(times) = entry.larger {
        let before = (table.records() as u64) * (times - 1);
        if let Err(error) = written(table, before, &mut rng) {
            problems.push((
                format!("a table of {times} times the length is written"),
                error,
            ));
        }
    }
    problems
}

/// Reads a written table by a schema.
pub fn read_back(
    name: &str,
    schema_json: &str,
    bytes: &[u8],
    intake: &dyn Intake,
) -> Result<(), String> {
    static FILES: AtomicUsize = AtomicUsize::new(0);
    // Tests of one program run at the same time, each with its own files.
    let file = FILES.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("fhaim-situations-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let path = folder.join(format!("{file}.{name}"));
    std::fs::write(&path, bytes).map_err(|error| error.to_string())?;
    let read = intake.read(schema_json, &path);
    let _ = std::fs::remove_file(&path);
    read.map(|_| ())
}

/// Checks the written values of a column.
fn value_problems(
    column: Column<'_>,
    facts: &Facts,
    real: &[String],
    values: &[String],
) -> Vec<(String, String)> {
    let name = column.name();
    let wanted = &facts.written;
    let comma = column.is_true("decimal_comma");
    let apart = set_apart(column, facts);
    let is_apart = |value: &str| {
        value.is_empty()
            || apart.texts.contains(value)
            || number(value, comma).is_some_and(|n| apart.has_number(n))
    };
    let thousands = column
        .text("thousands")
        .and_then(|mark| mark.chars().next());
    let shapes = Shapes::of(real, thousands, column.kind());
    let known: HashSet<&str> = real.iter().map(String::as_str).collect();
    let regular = || {
        values
            .iter()
            .map(String::as_str)
            .filter(|value| !is_apart(value))
    };
    let mut problems = Vec::new();
    let mut check = |expectation: String, holds: &dyn Fn(&str) -> bool| {
        let bad: Vec<&str> = regular().filter(|value| !holds(value)).collect();
        if let Some(first) = bad.first() {
            problems.push((
                format!("{name}: {expectation}"),
                format!("{first:?} ({} values)", bad.len()),
            ));
        }
    };
    if !wanted.any_form {
        check(
            format!("written in the form of its column ({})", shapes.show()),
            &|value| shapes.fit(value),
        );
    }
    if wanted.real {
        check("written values occur in the table".to_owned(), &|value| {
            known.contains(value)
        });
    }
    if let Some(text) = &wanted.begins {
        check(format!("written values begin with {text:?}"), &|value| {
            value.starts_with(text.as_str())
        });
    }
    if let Some(text) = &wanted.ends {
        check(format!("written values end with {text:?}"), &|value| {
            value.ends_with(text.as_str())
        });
    }
    for words in &wanted.contains {
        let expectation = format!("written values contain {}", words.show());
        check(expectation, &|value| words.are_in(value));
    }
    let value_of = |text: &str| number(text, comma).unwrap_or(f64::NAN);
    if let Some(step) = wanted.multiple {
        check(
            format!("written numbers are multiples of {step}"),
            &|value| {
                let steps = value_of(value) / step;
                (steps - steps.round()).abs() < 1e-6
            },
        );
    }
    if let Some(limit) = wanted.at_least {
        check(format!("written numbers are at least {limit}"), &|value| {
            value_of(value) >= limit
        });
    }
    if let Some(limit) = wanted.at_most {
        check(format!("written numbers are at most {limit}"), &|value| {
            value_of(value) <= limit
        });
    }
    for kept in &wanted.keeps {
        let matching = |cells: &[String]| cells.iter().filter(|cell| matches(kept, cell)).count();
        let (before, after) = (matching(real), matching(values));
        if before.abs_diff(after) > (before / 10).max(5) {
            problems.push((
                format!("{name}: {kept:?} is written about {before} times"),
                format!("{after} times"),
            ));
        }
    }
    problems
}

/// Values that need not have the form of the others.
struct SetApart {
    texts: HashSet<String>,
    numbers: Vec<f64>,
}

impl SetApart {
    fn has_number(&self, value: f64) -> bool {
        self.numbers
            .iter()
            .any(|number| (number - value).abs() < 1e-9)
    }
}

fn set_apart(column: Column<'_>, facts: &Facts) -> SetApart {
    let mut texts: HashSet<String> = column.listed().into_iter().map(|(_, text)| text).collect();
    texts.extend(column.text("other").map(str::to_owned));
    let special = column.list("special").into_iter();
    let wanted = facts.special.iter().chain(&facts.set_apart);
    let mut numbers = Vec::new();
    for value in special.chain(wanted) {
        texts.extend(value.as_str().map(str::to_owned));
        numbers.extend(value.as_f64());
    }
    SetApart { texts, numbers }
}

/// Whether a text matches a pattern with at most one `*`.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        Some((begin, end)) => text.starts_with(begin) && text.ends_with(end),
        None => pattern == text,
    }
}

fn order_problems(entry: &Entry, drafted: &Drafted, rows: &Cells) -> Vec<(String, String)> {
    let at = |name: &str| rows.header.iter().position(|other| other == name);
    let mut problems = Vec::new();
    for (first, second) in &entry.ordered {
        let (Some(one), Some(two)) = (at(first), at(second)) else {
            continue;
        };
        let late = |row: &usize| {
            let (a, b) = (&rows.columns[one][*row], &rows.columns[two][*row]);
            let length = a.len().min(b.len());
            !a.is_empty() && !b.is_empty() && a[..length] > b[..length]
        };
        let broken = (0..rows.records()).filter(late).count();
        if broken > 0
            && drafted
                .columns()
                .iter()
                .any(|column| column.name() == second)
        {
            problems.push((
                format!("no {first} is after {second}"),
                format!("{broken} of {}", rows.records()),
            ));
        }
    }
    problems
}

/// The schema of a draft.
pub fn schema(drafted: &Drafted) -> Result<Schema, String> {
    Schema::from_json("draft.json", drafted.schema_json.as_bytes())
        .map_err(|error| error.to_string())
}

/// Whether a path is a plain CSV file, which the tests can read themselves.
pub fn is_plain(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "csv")
}

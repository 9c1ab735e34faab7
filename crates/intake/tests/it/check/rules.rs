//! Proposed rules between columns, and a table that was drawn with all of them.

use std::{collections::HashMap, path::Path};

use fhaim_domain::{Schema, Table};
use rand::Rng;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::Value as Json;

use super::{
    cells::{Cells, is_known_missing},
    drafted::{Drafted, Intake, Rule},
    expectations::{Entry, ProposedRule},
    privacy,
    synthetic::{read_back, written},
};

/// Number of records that are drawn.
const RECORDS: usize = 2_000;

/// Maximum number of records to try.
const TRIES: usize = 4_000_000;

/// Number of broken rules that are named.
const NAMED: usize = 3;

/// Compares the proposed rules with the expected ones.
pub fn proposal_problems(entry: &Entry, drafted: &Drafted) -> Vec<(String, String)> {
    let mut problems = Vec::new();
    for wanted in &entry.rules {
        // A rule may say the same of several columns at once.
        let about = |rule: &&Rule| is_about(rule, &wanted.columns);
        let mut rules = drafted.rules.iter().filter(about);
        let first = rules.clone().next();
        let found = rules.find(|rule| is_wanted(wanted, rule)).or(first);
        let found = match found {
            Some(rule) if is_wanted(wanted, rule) => continue,
            Some(rule) => format!("{} ({} records)", rule.sentence, rule.records),
            None if is_relative(drafted, &wanted.columns) => continue,
            None => "no such rule".to_owned(),
        };
        let words: Vec<String> = wanted.says.iter().map(|words| words.show()).collect();
        let columns = wanted.columns.join(", ");
        let records = wanted
            .records
            .map_or(String::new(), |records| format!("{records} records "));
        let expectation = format!("a rule for {columns}: {records}{}", words.join(" "));
        problems.push((expectation, found));
    }
    for columns in &entry.unrelated {
        let has_all = |rule: &&Rule| columns.iter().all(|column| rule.columns.contains(column));
        if let Some(rule) = drafted.rules.iter().find(has_all) {
            problems.push((
                format!("no rule for {}", columns.join(", ")),
                rule.sentence.clone(),
            ));
        }
    }
    problems
}

/// Whether a rule is about these columns.
fn is_about(rule: &Rule, columns: &[String]) -> bool {
    columns.iter().all(|column| rule.columns.contains(column))
}

fn is_wanted(wanted: &ProposedRule, rule: &Rule) -> bool {
    let records = wanted
        .records
        .is_none_or(|records| rule.records == records as u64);
    records && wanted.says.iter().all(|words| words.are_in(&rule.sentence))
}

/// Whether the schema has the columns relative to each other.
fn is_relative(drafted: &Drafted, columns: &[String]) -> bool {
    let bases: HashMap<&str, &str> = drafted
        .columns()
        .iter()
        .filter_map(|column| Some((column.name(), column.text("relative_to")?)))
        .collect();
    let follows =
        |one: &String, two: &String| bases.get(one.as_str()).copied() == Some(two.as_str());
    let related = columns
        .windows(2)
        .all(|pair| follows(&pair[0], &pair[1]) || follows(&pair[1], &pair[0]));
    columns.len() > 1 && related
}

/// Accepts all rules, and checks the real table and a drawn one.
pub fn accepted_problems(
    drafted: &Drafted,
    path: &Path,
    cells: &Cells,
    intake: &dyn Intake,
) -> Vec<(String, String)> {
    let schema_json = match &drafted.accepted {
        None => return Vec::new(),
        Some(Ok(schema_json)) => schema_json,
        Some(Err(error)) => return vec![("all rules are accepted".to_owned(), error.clone())],
    };
    let accepted = Drafted::new(schema_json.clone(), Vec::new(), Vec::new());
    let mut problems: Vec<(String, String)> =
        (privacy::leaks(&accepted, cells).into_iter().take(1))
            .map(|leak| {
                (
                    "no rule has a value of fewer than 20 records".to_owned(),
                    leak,
                )
            })
            .collect();
    problems.extend(broken("the table", &drafted.rules, cells));
    problems.extend(loose_ages(&drafted.rules, cells));
    let drawn = intake
        .read(schema_json, path)
        .and_then(|table| drawn(&table));
    let (schema, bytes) = match drawn {
        Ok(drawn) => drawn,
        Err(error) => {
            problems.push(("records of the accepted schema are drawn".to_owned(), error));
            return problems;
        }
    };
    if let Err(error) = read_back("accepted.csv", &schema, &bytes, intake) {
        problems.push((
            "the drawn records are read by the accepted schema".to_owned(),
            error,
        ));
    }
    problems.extend(broken(
        "the drawn table",
        &drafted.rules,
        &Cells::parse(&bytes),
    ));
    problems
}

/// Draws records whose fields are independent of each other, apart from the rules, and writes them. Also returns the
/// schema.
fn drawn(table: &Table) -> Result<(String, Vec<u8>), String> {
    let schema = table.schema();
    let mut rng = ChaCha8Rng::seed_from_u64(48);
    let mut columns: Vec<Vec<u32>> = vec![Vec::with_capacity(RECORDS); schema.columns().len()];
    let mut codes = vec![0; columns.len()];
    for _ in 0..TRIES {
        draw(table, schema, &mut rng, &mut codes);
        if schema.allows(&|attribute| codes[attribute]) {
            columns
                .iter_mut()
                .zip(&codes)
                .for_each(|(column, &code)| column.push(code));
        }
        if columns.first().is_none_or(|column| column.len() >= RECORDS) {
            break;
        }
    }
    let found = columns.first().map_or(0, Vec::len);
    if found < RECORDS {
        return Err(format!("{found} of {TRIES} records are allowed"));
    }
    let drawn =
        Table::new(table.shared_schema(), columns).map_err(|problem| problem.to_string())?;
    Ok((schema.to_json(), written(&drawn, 0, &mut rng)?))
}

/// Draws the codes of each field from a random record.
fn draw(table: &Table, schema: &Schema, rng: &mut impl Rng, codes: &mut [u32]) {
    for field in schema.fields() {
        let row = rng.random_range(0..table.records());
        for attribute in field.attributes() {
            codes[attribute] = table.column(attribute)[row];
        }
    }
}

/// Checks rules on the texts of a table, without the program's own reader. Each rule is checked as far as its texts are
/// plain: dates in ISO form, numbers with a decimal point.
fn broken(place: &str, rules: &[Rule], cells: &Cells) -> Vec<(String, String)> {
    let broken = rules.iter().filter_map(|rule| {
        let first = (0..cells.records()).find(|&row| !holds(rule, cells, row))?;
        Some((
            format!("{place} keeps the rule: {}", rule.sentence),
            format!("row {}", first + 1),
        ))
    });
    broken.take(NAMED).collect()
}

/// Whether a record keeps a rule, as far as its texts are plain.
fn holds(rule: &Rule, cells: &Cells, row: usize) -> bool {
    let text = |name: &Json| text(cells, row, name);
    let constraint = &rule.change["constraint"];
    if let Some([low, high]) = constraint["at_most"].as_array().map(Vec::as_slice) {
        return in_order(text(low), text(high));
    }
    let sum = &constraint["sum"];
    if let (Some(total), Some(parts)) = (hundredths(text(&sum["total"])), sum["parts"].as_array()) {
        let parts: Option<Vec<i64>> = parts.iter().map(|part| hundredths(text(part))).collect();
        return parts.is_none_or(|parts| parts.iter().sum::<i64>() == total);
    }
    let age = &constraint["age"];
    if age.is_object() {
        let end_of = &age["at"]["end_of"];
        let at = if end_of.is_null() { &age["at"] } else { end_of };
        return is_age(age, at, &text, !end_of.is_null()).unwrap_or(true);
    }
    if let Some([one, other]) = constraint["missing_together"].as_array().map(Vec::as_slice) {
        return is_known_missing(text(one)) == is_known_missing(text(other));
    }
    if let Some(values) = constraint["never"].as_object() {
        return values
            .iter()
            .any(|(name, value)| text(&Json::from(name.as_str())) != *value);
    }
    if constraint["implies"].is_object() {
        let all = |values: &Json| {
            let mut values = values.as_object().into_iter().flatten();
            values.all(|(name, allowed)| is_any(text(&Json::from(name.as_str())), allowed))
        };
        return !all(&constraint["implies"]["when"]) || all(&constraint["implies"]["then"]);
    }
    follows(&rule.change["column"], &text)
}

/// Whether a text is one of the listed values; an empty one stands for a missing value.
fn is_any(text: &str, allowed: &Json) -> bool {
    let is = |value: &Json| match value.as_str() {
        Some("") => is_known_missing(text),
        value => value == Some(text),
    };
    allowed
        .as_array()
        .is_some_and(|allowed| allowed.iter().any(is))
}

/// Whether the value of a derived column follows from the other column.
fn follows<'t>(column: &Json, text: &dyn Fn(&Json) -> &'t str) -> bool {
    let (own, other) = (text(&column["name"]), text(&column["from"]));
    let wanted = match column["values"].as_object() {
        Some(values) => values.get(other).and_then(Json::as_str),
        None => Some(other),
    };
    match wanted {
        Some(wanted) => wanted == own || (is_known_missing(wanted) && is_known_missing(own)),
        None => is_known_missing(other) || is_known_missing(own),
    }
}

/// Whether two ISO dates, with or without a time, are in order by their common part.
fn in_order(low: &str, high: &str) -> bool {
    let length = low.len().min(high.len());
    match (iso_date(low), iso_date(high)) {
        (Some(_), Some(_)) => low[..length] <= high[..length],
        _ => true,
    }
}

/// Whether an age fits the date or year of birth and the date or year of the age, or the end of its year; `None` if a
/// text is not plain.
fn is_age<'t>(
    rule: &Json,
    at: &Json,
    text: &dyn Fn(&Json) -> &'t str,
    is_year_end: bool,
) -> Option<bool> {
    let number = |text: &str| text.parse::<i64>().ok();
    let born = text(&rule["born"]);
    let born = iso_date(born).or_else(|| number(born).map(|year| (year, None)));
    let at = iso_date(text(at)).or_else(|| at.as_i64().map(|year| (year, None)));
    let (age, (born, birthday), (year, day)) = (number(text(&rule["age"]))?, born?, at?);
    Some(match (birthday, day) {
        _ if is_year_end => age == year - born,
        (Some(birthday), Some(day)) => age == year - born - i64::from(day < birthday),
        _ => age == year - born || age == year - born - 1,
    })
}

/// Finds rules that leave two ages although all records have the difference of the years.
fn loose_ages(rules: &[Rule], cells: &Cells) -> Vec<(String, String)> {
    let is_exact = |rule: &&Rule| {
        let age = &rule.change["constraint"]["age"];
        let exact = (0..cells.records())
            .filter_map(|row| is_age(age, &age["at"], &|name| text(cells, row, name), true));
        let exact: Vec<bool> = exact.collect();
        !exact.is_empty() && exact.iter().all(|&is| is)
    };
    let loose = rules
        .iter()
        .filter(|rule| rule.sentence.contains("or one less"));
    let expected = "an age that is always the difference of two years is proposed as such";
    loose
        .filter(is_exact)
        .map(|rule| (expected.to_owned(), rule.sentence.clone()))
        .collect()
}

/// Returns the text of a column in a record.
fn text<'t>(cells: &'t Cells, row: usize, name: &Json) -> &'t str {
    let column = cells.column(name.as_str().unwrap_or_default(), usize::MAX);
    column
        .and_then(|column| column.get(row))
        .map_or("", String::as_str)
}

/// Returns the year of an ISO date, and its month and day.
fn iso_date(text: &str) -> Option<(i64, Option<(i64, i64)>)> {
    let date = text.get(..10)?;
    let mut parts = date.split('-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    parts.next().is_none().then_some((year, Some((month, day))))
}

/// Returns a plain number with at most two decimals as hundredths.
fn hundredths(text: &str) -> Option<i64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{}{decimals:0<2}", whole.trim_start_matches('-'));
    let number: i64 = (decimals.len() <= 2).then(|| digits.parse().ok())??;
    Some(if text.starts_with('-') {
        -number
    } else {
        number
    })
}

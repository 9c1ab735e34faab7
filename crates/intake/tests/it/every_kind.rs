//! Columns of every kind, in random forms: drafted, read, sampled, written and read again.
//!
//! Written values are checked with functions of this file only, which know how the column was generated.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, HashSet};

use fhaim_domain::{ReadOptions, Schema, SchemaForm, Table, form::KindForm, read_csv};
use fhaim_intake::{InferOptions, infer_schema};
use proptest::prelude::*;
use rand::Rng;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::Value as Json;

use crate::check::synthetic::{shuffled, written};

mod numbers;
mod texts;
mod times;

/// Texts for a missing value.
const MARKERS: [&str; 4] = ["NA", "", "n/a", "."];

/// Returns the value of a text.
type ValueOf = dyn Fn(&str) -> Option<f64>;

/// A generated column.
struct Generated {
    kind: KindForm,
    /// The kind that the holder chooses, if a draft would not choose it.
    chosen: Option<KindForm>,
    cells: Vec<String>,
    /// Returns the value of a text in the generated form, on the scale of the schema's limits; `None` for other texts.
    value: Box<ValueOf>,
    /// Converts a limit of the schema.
    limit: fn(&Json) -> Option<f64>,
}

/// A generated table: the column, and another one.
struct Generator {
    rng: ChaCha8Rng,
    records: usize,
}

impl Generator {
    fn new(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let records = rng.random_range(300..600);
        Self { rng, records }
    }

    fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.rng.random_range(0..values.len())]
    }

    fn column(&mut self, kind: KindForm) -> Generated {
        match kind {
            KindForm::Number | KindForm::Numeric => self.numbers(kind),
            KindForm::Date => self.dates(),
            KindForm::Datetime => self.datetimes(),
            KindForm::Time => self.times(),
            KindForm::Duration => self.durations(),
            KindForm::Categorical | KindForm::Derived => self.categories(kind),
            KindForm::Code => self.codes(),
            KindForm::Identifier => self.identifiers(),
            KindForm::LeftOut => self.sentences(),
        }
    }

    /// Replaces up to a sixth of the cells by texts for a missing value, and up to a twentieth by other texts.
    fn disturb(&mut self, cells: &mut [String]) {
        let missing = self.pick(&[0.0, 0.02, 0.15]);
        let other = self.pick(&[0.0, 0.01, 0.045]);
        let marker = self.pick(&MARKERS);
        let mut others = 0;
        let most = (other * cells.len() as f64) as usize;
        for cell in cells {
            if self.rng.random_bool(missing) {
                marker.clone_into(cell);
            } else if others < most.min(19) && self.rng.random_bool(other) {
                others += 1;
                *cell = self.exception(others);
            }
        }
    }

    fn exception(&mut self, number: usize) -> String {
        let word = self.pick(&["see note", "broken?", "tbd", "lost", "error:"]);
        format!("{word} {}", "x".repeat(number % 3 + 1))
    }
}

/// What a draft made of a generated column.
struct Drafted {
    schema: Schema,
    /// The drafted column.
    form: Json,
    options: InferOptions,
}

fn csv(columns: &[(&str, &[String])]) -> Vec<u8> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer
        .write_record(columns.iter().map(|(name, _)| name))
        .unwrap();
    for row in 0..columns[0].1.len() {
        writer
            .write_record(columns.iter().map(|(_, cells)| &cells[row]))
            .unwrap();
    }
    writer.into_inner().unwrap()
}

fn draft(generated: &Generated, bytes: &[u8]) -> Result<Drafted, String> {
    let mut options = InferOptions::new("t.csv", "t");
    if let Some(kind) = generated.chosen {
        options.kinds = BTreeMap::from([("value".to_owned(), kind)]);
    }
    let mut draft = infer_schema(bytes, &options).map_err(|error| error.to_string())?;
    if generated.kind == KindForm::Derived {
        let rules: Vec<usize> = (0..draft.rules.len()).collect();
        draft.accept(&rules).map_err(|error| error.to_string())?;
    }
    let forms = SchemaForm::from(draft.schema.clone()).columns;
    let name = if generated.kind == KindForm::Derived {
        "label"
    } else {
        "value"
    };
    let form = forms
        .iter()
        .find(|form| form.name == name)
        .ok_or("no column")?;
    let form = serde_json::to_value(form).map_err(|error| error.to_string())?;
    let schema = draft.schema;
    Ok(Drafted {
        schema,
        form,
        options,
    })
}

fn read(drafted: &Drafted, bytes: &[u8]) -> Result<Table, String> {
    let options = ReadOptions {
        dialect: drafted.options.dialect,
        ..ReadOptions::new("t.csv")
    };
    let reading = read_csv(drafted.schema.clone(), bytes, &options);
    Ok(reading.map_err(|error| error.to_string())?.table)
}

/// The written cells of a column.
fn cells(bytes: &[u8], name: &str) -> Option<Vec<String>> {
    let mut reader = csv::Reader::from_reader(bytes);
    let place = reader
        .headers()
        .unwrap()
        .iter()
        .position(|other| other == name)?;
    let cell = |record: csv::Result<csv::StringRecord>| record.unwrap()[place].to_owned();
    Some(reader.records().map(cell).collect())
}

/// The texts of a list in the drafted column.
fn list(form: &Json, key: &str) -> Vec<String> {
    let text = |value: &Json| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    form[key]
        .as_array()
        .map(|list| list.iter().map(text).collect())
        .unwrap_or_default()
}

/// The drafted limits.
fn limits(generated: &Generated, form: &Json) -> Option<(f64, f64)> {
    let edges = form["edges"].as_array();
    let first = edges
        .and_then(|edges| edges.first())
        .unwrap_or(&form["min"]);
    let last = edges.and_then(|edges| edges.last()).unwrap_or(&form["max"]);
    Some(((generated.limit)(first)?, (generated.limit)(last)?))
}

/// Checks the written values of the column.
fn check(generated: &Generated, drafted: &Drafted, values: &[String]) -> Result<(), String> {
    let form = &drafted.form;
    let mut apart: HashSet<String> = list(form, "missing").into_iter().collect();
    apart.insert(String::new());
    apart.extend(form["other"].as_str().map(str::to_owned));
    apart.extend(list(form, "special"));
    let special: Vec<f64> = (form["special"].as_array().into_iter().flatten())
        .filter_map(|value| (generated.limit)(value))
        .collect();
    let limits = limits(generated, form);
    for value in values.iter().filter(|value| !apart.contains(*value)) {
        let number =
            (generated.value)(value).ok_or_else(|| format!("{value:?} has another form"))?;
        let is_special = special
            .iter()
            .any(|special| (special - number).abs() < 1e-9);
        if let Some((least, most)) = limits
            && !is_special
            && !(least - 1e-9..=most + 1e-9).contains(&number)
        {
            return Err(format!("{value:?} is not from {least} to {most}"));
        }
    }
    let regular = values
        .iter()
        .filter(|value| !apart.contains(*value))
        .count();
    match regular * 2 > values.len() {
        true => Ok(()),
        false => Err(format!(
            "only {regular} of {} values are regular",
            values.len()
        )),
    }
}

/// Checks one generated column.
fn problem(kind: KindForm, seed: u64) -> Result<(), String> {
    let mut generator = Generator::new(seed);
    let mut generated = generator.column(kind);
    generated.kind = kind;
    let groups: Vec<String> = (0..generated.cells.len())
        .map(|_| generator.pick(&["a", "b", "c"]).to_owned())
        .collect();
    let labels: Vec<String> = generated
        .cells
        .iter()
        .map(|cell| texts::label(cell))
        .collect();
    let mut columns = vec![("value", &generated.cells[..]), ("group", &groups[..])];
    if kind == KindForm::Derived {
        columns.push(("label", &labels[..]));
    }
    let bytes = csv(&columns);
    let shown = || {
        generated
            .cells
            .iter()
            .take(8)
            .cloned()
            .collect::<Vec<String>>()
            .join(" | ")
    };
    round_trip(&generated, &bytes, seed)
        .map_err(|problem| format!("{}: {problem} ({})", kind.word(), shown()))
}

fn round_trip(generated: &Generated, bytes: &[u8], seed: u64) -> Result<(), String> {
    let drafted = draft(generated, bytes)?;
    let wanted = match generated.kind {
        KindForm::Numeric => KindForm::Number,
        kind => kind,
    };
    if drafted.form["kind"] != wanted.word() {
        return Err(format!("drafted as {}", drafted.form));
    }
    let table = read(&drafted, bytes)?;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let sample = shuffled(&table, &mut rng)?;
    let output = written(&sample, 0, &mut rng)?;
    match (generated.kind, cells(&output, "value")) {
        (KindForm::LeftOut, None) => {}
        (KindForm::LeftOut, Some(_)) => return Err("the left-out column is written".to_owned()),
        (_, None) => return Err("the column is not written".to_owned()),
        (KindForm::Derived, Some(values)) => {
            let labels = cells(&output, "label").ok_or("no labels")?;
            let wrong = values
                .iter()
                .zip(&labels)
                .find(|(value, label)| texts::label(value) != **label);
            if let Some((value, label)) = wrong {
                return Err(format!("{label:?} with {value:?}"));
            }
        }
        (_, Some(values)) => check(generated, &drafted, &values)?,
    }
    let again =
        read(&drafted, &output).map_err(|error| format!("{error}, in the written table"))?;
    let schema = table.schema();
    for (index, column) in schema.columns().iter().enumerate() {
        let pairs = sample.column(index).iter().zip(again.column(index));
        let texts = cells(&output, "value").unwrap_or_default();
        if let Some(row) = pairs.into_iter().position(|(one, other)| one != other) {
            let text = texts.get(row).cloned().unwrap_or_default();
            let name = column.name();
            return Err(format!(
                "{text:?} is read with another code of {name:?}: {}",
                drafted.form
            ));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 110, ..ProptestConfig::default() })]

    #[test]
    fn column_of_every_kind_is_written_as_it_was_read(
        kind in prop::sample::select(KindForm::ALL.to_vec()),
        seed in any::<u64>(),
    ) {
        let problem = problem(kind, seed);
        prop_assert!(problem.is_ok(), "{}", problem.unwrap_err());
    }
}

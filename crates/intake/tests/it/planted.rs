//! Plants a value of one record, or of a few, into generated tables and looks for it in the draft
//! and in synthetic tables.

#![allow(clippy::unwrap_used)]

use std::{
    fs,
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering},
};

use fhaim_domain::Table;
use rand::Rng;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use crate::{
    adapter::Csv,
    check::{
        cells::Cells,
        drafted::{Drafted, Intake},
        privacy::{is_word_of, leaks},
        synthetic::{shuffled, written},
    },
};

const TABLES: usize = 500;

/// Number of synthetic tables that are drawn. A value that one of them has is chance; a value that
/// all have is in the schema.
const DRAWS: usize = 3;

/// The columns of generated tables.
const COLUMNS: [&str; 15] = [
    "age", "amount", "price", "rate", "sex", "ward", "admitted", "visit", "seen", "bedtime",
    "waited", "icd", "record", "comment", "lab",
];

const WORDS: [&str; 12] = [
    "calm", "river", "stone", "cloud", "amber", "field", "quiet", "lamp", "north", "paper", "salt",
    "tide",
];

/// A generated table with one planted value.
struct Planted {
    bytes: Vec<u8>,
    column: &'static str,
    row: usize,
    /// The value, in the forms that a schema may have it in.
    texts: Vec<String>,
}

/// A date as days of a year of 360 days, which is enough for a test.
fn date(rng: &mut impl Rng, first: u32, last: u32) -> (u32, u32, u32) {
    (
        rng.random_range(first..=last),
        rng.random_range(1..=12),
        rng.random_range(1..=28),
    )
}

fn thousands(value: u32) -> String {
    match value / 1000 {
        0 => value.to_string(),
        whole => format!("{whole},{:03}", value % 1000),
    }
}

/// A value that is usual in a column.
fn usual(column: &str, row: usize, rng: &mut impl Rng) -> String {
    let mut pick = |values: &[&str]| values[rng.random_range(0..values.len())].to_owned();
    match column {
        "sex" => return pick(&["f", "m"]),
        "ward" => return pick(&["east", "north", "south", "west"]),
        "icd" => return pick(&["E10", "E11", "I10", "J45"]),
        "comment" => return (0..5).map(|_| pick(&WORDS)).collect::<Vec<_>>().join(" "),
        _ => {}
    }
    let (year, month, day) = date(rng, 2019, 2023);
    let clock = |seconds: u32| {
        format!(
            "{:02}:{:02}:{:02}",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60
        )
    };
    match column {
        "age" => rng.random_range(18..90).to_string(),
        "amount" => format!("{:.2}", rng.random_range(1.0..900.0)),
        "price" => thousands(rng.random_range(200..9000)),
        "rate" => format!("{:.1}%", rng.random_range(0.0..99.0)),
        "admitted" => format!("{year}-{month:02}-{day:02}"),
        "visit" => format!("{day:02}.{month:02}.{year}"),
        "seen" => format!(
            "{year}-{month:02}-{day:02} {}",
            clock(rng.random_range(0..86400))
        ),
        "bedtime" => {
            let minutes = (21 * 60 + rng.random_range(0..300)) % 1440;
            format!("{:02}:{:02}", minutes / 60, minutes % 60)
        }
        "waited" => {
            let seconds = rng.random_range(10..20_000);
            format!(
                "{}:{:02}:{:02}",
                seconds / 3600,
                seconds / 60 % 60,
                seconds % 60
            )
        }
        "record" => format!("P{:05}", (row * 7919 + 13) % 100_000),
        _ => match rng.random_range(0..4) {
            0 => "<0.5".to_owned(),
            _ => format!("{:.1}", rng.random_range(0.5..40.0)),
        },
    }
}

/// A value far outside the range of a column, in its form and in the forms of a schema; `None` for
/// columns without such values.
fn outlier(column: &str, number: usize) -> Option<Vec<String>> {
    let value = 48_001 + (number * 37 % 900) as u32;
    let hundredths = number % 89 + 10;
    let forms: Vec<String> = match column {
        "age" => vec![value.to_string()],
        "amount" => vec![format!("{value}.{hundredths}")],
        "price" => vec![thousands(value), value.to_string()],
        "rate" => vec![format!("{value}.7%"), format!("{value}.7")],
        "lab" => vec![format!("{value}.3")],
        "admitted" => vec!["1887-11-23".to_owned()],
        "visit" => vec!["23.11.1887".to_owned(), "1887-11-23".to_owned()],
        "seen" => vec!["1887-11-23 04:13:27".to_owned(), "1887-11-23".to_owned()],
        "waited" => vec![format!("{}:13:41", 900 + number % 90)],
        _ => return None,
    };
    Some(forms)
}

/// A text that no other record has: in no form, or in the form of the column.
fn rare_text(column: &str, number: usize) -> String {
    let letter = |shift: usize| char::from(b'a' + ((number >> shift) % 26) as u8);
    let word = format!("zq{}{}vorn", letter(0), letter(2));
    match (column, number / COLUMNS.len() / 2 % 3) {
        ("ward", 0) => "upper".to_owned(),
        ("sex", 0) => "q".to_owned() + &word,
        ("icd", 0) => format!("Z{}", 80 + number % 19),
        ("comment", _) => format!("calm river {word} stone"),
        (_, 1) => word.to_uppercase(),
        (_, 2) => format!("{word} 7{}", number % 10),
        _ => word,
    }
}

/// Generates table `number`. Its position cycles through columns and rows.
fn planted(number: usize) -> Planted {
    let mut rng = ChaCha8Rng::seed_from_u64(number as u64);
    let records = rng.random_range(150..220);
    let column = COLUMNS[number % COLUMNS.len()];
    let row = (number * 31) % records;
    let columns: Vec<&str> = COLUMNS
        .into_iter()
        .filter(|name| *name == column || rng.random_bool(0.6))
        .collect();
    let round = number / COLUMNS.len();
    let wants_outlier = round.is_multiple_of(2);
    let texts = outlier(column, number)
        .filter(|_| wants_outlier)
        .unwrap_or_else(|| vec![rare_text(column, number)]);
    let is_outlier = wants_outlier && outlier(column, number).is_some();
    let copies = if is_outlier {
        1
    } else {
        [1, 1, 1, 7, 19][round % 5]
    };
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(&columns).unwrap();
    for at in 0..records {
        let has_it = (at + records - row) % records < copies;
        let record = columns.iter().map(|name| match has_it && *name == column {
            true => texts[0].clone(),
            false => usual(name, at, &mut rng),
        });
        writer
            .write_record(record.collect::<Vec<String>>())
            .unwrap();
    }
    Planted {
        bytes: writer.into_inner().unwrap(),
        column,
        row: row + 1,
        texts,
    }
}

fn folder() -> PathBuf {
    let folder = std::env::temp_dir().join(format!("fhaim-planted-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Drafts and reads a generated table.
fn drafted(planted: &Planted) -> Result<(Drafted, Table), String> {
    // Tests of one program run at the same time, each with its own files.
    static FILES: AtomicUsize = AtomicUsize::new(0);
    let file = FILES.fetch_add(1, Ordering::Relaxed);
    let path = folder().join(format!("{file}.csv"));
    fs::write(&path, &planted.bytes).map_err(|error| error.to_string())?;
    let read = |drafted: Drafted| {
        let table = Csv.read(&drafted.schema_json, &path)?;
        Ok((drafted, table))
    };
    let result = Csv.draft(&path).and_then(read);
    let _ = fs::remove_file(&path);
    result
}

/// Where a planted value appears.
fn places(
    planted: &Planted,
    drafted: &Drafted,
    table: &Table,
) -> Result<Vec<&'static str>, String> {
    let has = |text: &str| planted.texts.iter().any(|value| is_word_of(text, value));
    let mut places = Vec::new();
    if has(&drafted.schema_json) {
        places.push("schema");
    }
    if drafted.lines().any(has) {
        places.push("notes");
    }
    let mut drawn = 0;
    for draw in 0..DRAWS {
        let mut rng = ChaCha8Rng::seed_from_u64(draw as u64);
        let bytes = written(&shuffled(table, &mut rng)?, 0, &mut rng)?;
        drawn += usize::from(has(&String::from_utf8_lossy(&bytes)));
    }
    if drawn == DRAWS {
        places.push("synthetic table");
    }
    Ok(places)
}

fn assert_no_failures(failures: &[String]) {
    let shown = failures.iter().take(30).cloned().collect::<Vec<String>>();
    assert!(
        failures.is_empty(),
        "{} of {TABLES} tables:\n{}",
        failures.len(),
        shown.join("\n")
    );
}

#[test]
fn planted_value_appears_nowhere() {
    let failure = |number: usize| {
        let planted = planted(number);
        let found = drafted(&planted)
            .and_then(|(drafted, table)| places(&planted, &drafted, &table))
            .map(|places| places.join(", "))
            .unwrap_or_else(|error| format!("refused: {error}"));
        let Planted {
            column, row, texts, ..
        } = planted;
        (!found.is_empty()).then(|| {
            format!(
                "table {number}, {column:?}, row {row}, {:?}: {found}",
                texts[0]
            )
        })
    };
    let failures: Vec<String> = (0..TABLES).filter_map(failure).collect();
    assert_no_failures(&failures);
}

#[test]
fn no_rare_value_of_a_generated_table_is_listed() {
    let failure = |number: usize| {
        let planted = planted(number);
        let (drafted, _) = drafted(&planted).ok()?;
        let leaks = leaks(&drafted, &Cells::parse(&planted.bytes));
        let first = leaks.first()?;
        Some(format!("table {number}: {first}; {} in all", leaks.len()))
    };
    let failures: Vec<String> = (0..TABLES).filter_map(failure).collect();
    assert_no_failures(&failures);
}

/// The checks find a value that is there.
#[test]
fn planted_value_in_a_list_is_found() {
    let planted = Planted {
        bytes: Vec::new(),
        column: "ward",
        row: 1,
        texts: vec!["zqabvorn".to_owned()],
    };
    let schema = r#"{"name": "t", "columns": [
        {"name": "ward", "kind": "categorical", "categories": ["east", "zqabvorn"]}]}"#;
    let note = "column \"ward\": row 3 has \"zqabvorn\"".to_owned();
    let drafted = Drafted::new(schema.to_owned(), vec![note], Vec::new());
    let schema = crate::check::synthetic::schema(&drafted).unwrap();
    let table = Table::new(schema, vec![vec![0, 1, 0]]).unwrap();
    let found = places(&planted, &drafted, &table).unwrap();
    assert_eq!(found, ["schema", "notes", "synthetic table"]);
}

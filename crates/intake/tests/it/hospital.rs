//! A generated hospital export: it is drafted completely, read, and written in the same form.
#![allow(clippy::unwrap_used)]

use std::collections::HashSet;

use fhaim_domain::{
    Dialect, RawValues, ReadOptions, Schema, Table, TableReading, WriteOptions, read_csv, write_csv,
};
use fhaim_intake::{Draft, InferOptions, infer_schema};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value as Json;

const WARDS: [&str; 4] = [
    "Innere Medizin",
    "Chirurgie",
    "Gyn\u{e4}kologie",
    "K\u{fc}nstliche Ern\u{e4}hrung",
];

/// Returns `records` stays with identifiers, two datetimes, a ward, an age with gaps, a weight with
/// a decimal comma, a postcode, a diagnosis, and free text.
fn export(records: usize) -> String {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut csv = "fall;aufnahme;entlassung;station;alter;gewicht;plz;icd;notiz\n".to_owned();
    for row in 0..records {
        let (month, day) = (rng.random_range(1..=12), rng.random_range(1..=28));
        let (hour, minute) = (rng.random_range(0..24), rng.random_range(0..60));
        let stay = rng.random_range(1..=240);
        let (after, later) = (day * 24 + hour + stay, minute);
        // Every month counts 28 days here. A stay of at most ten days ends in the same month or the
        // next.
        let (out_month, out_day) = if after / 24 > 28 {
            (month + 1, after / 24 - 28)
        } else {
            (month, after / 24)
        };
        let (out_year, out_month) = if out_month > 12 {
            (2024, 1)
        } else {
            (2023, out_month)
        };
        let age = match rng.random_range(0..20) {
            0 => String::new(),
            _ => rng.random_range(0..100).to_string(),
        };
        let ward = WARDS[rng.random_range(0..4)];
        let weight = rng.random_range(450..1200);
        let zip = 1000 + rng.random_range(0..150) * 60;
        let icd = format!(
            "{}{:02}.{}",
            ["A", "C", "I", "J"][rng.random_range(0..4)],
            rng.random_range(0..25),
            rng.random_range(0..4)
        );
        csv.push_str(&format!(
            "P{:05};{day:02}.{month:02}.2023 {hour:02}:{minute:02};{out_day:02}.{out_month:02}.{out_year} \
             {:02}:{later:02};{ward};{age};{},{};{zip:05};{icd};Patient {row} klagt \u{fc}ber Schmerzen\n",
            (row * 7919) % 99_991, after % 24, weight / 10, weight % 10,
        ));
    }
    csv
}

fn draft(csv: &str) -> Draft {
    let mut options = InferOptions::new("export.csv", "export");
    options.dialect = Dialect::of_delimiter(b';');
    infer_schema(csv.as_bytes(), &options).unwrap()
}

fn read(schema: Schema, csv: &[u8]) -> TableReading {
    let mut options = ReadOptions::new("export.csv");
    options.dialect = Dialect::of_delimiter(b';');
    options.keep_values = true;
    read_csv(schema, csv, &options).unwrap()
}

fn write(table: &Table, seed: u64) -> String {
    let mut csv = Vec::new();
    let mut options = WriteOptions::new("synthetic.csv");
    options.delimiter = b';';
    write_csv(
        table,
        &mut csv,
        &mut ChaCha8Rng::seed_from_u64(seed),
        &options,
    )
    .unwrap();
    String::from_utf8(csv).unwrap()
}

fn column<'a>(csv: &'a str, name: &str) -> Vec<&'a str> {
    let mut lines = csv.lines();
    let place = lines
        .next()
        .unwrap()
        .split(';')
        .position(|field| field == name)
        .unwrap();
    lines
        .map(|line| line.split(';').nth(place).unwrap())
        .collect()
}

#[test]
fn hospital_export_is_drafted_completely() {
    let draft = draft(&export(20_000));
    let json: Json = serde_json::from_str(&draft.schema.to_json()).unwrap();
    let kinds: Vec<(&str, &str)> = (json["columns"].as_array().unwrap().iter())
        .map(|column| {
            (
                column["name"].as_str().unwrap(),
                column["kind"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        kinds,
        [
            ("fall", "identifier"),
            ("aufnahme", "datetime"),
            ("entlassung", "datetime"),
            ("station", "categorical"),
            ("alter", "number"),
            ("gewicht", "number"),
            ("plz", "code"),
            ("icd", "code"),
            ("notiz", "left-out"),
        ]
    );
    let of = |name: &str| {
        json["columns"]
            .as_array()
            .unwrap()
            .iter()
            .find(|c| c["name"] == name)
            .unwrap()
    };
    assert_eq!(of("fall")["pattern"], "P[0-9]{6}");
    assert_eq!(of("aufnahme")["format"], "%d.%m.%Y %H:%M");
    assert_eq!(of("entlassung")["relative_to"], "aufnahme");
    assert_eq!(of("gewicht")["decimal_comma"], true);
    assert_eq!(of("alter")["nullable"], true);
    let reason = of("notiz")["reason"].as_str().unwrap();
    assert!(reason.contains("free text"), "{reason}");
}

#[test]
fn written_table_has_the_form_of_the_original() {
    let csv = export(20_000);
    let schema = draft(&csv).schema;
    let real = read(schema.clone(), csv.as_bytes());
    let written = write(&real.table, 2);
    let again = read(schema.clone(), written.as_bytes());
    assert_eq!(again.table.columns(), real.table.columns());
    // The column of free text is left out, and the others keep their order.
    assert_eq!(
        written.lines().next().unwrap(),
        "fall;aufnahme;entlassung;station;alter;gewicht;plz;icd"
    );
    // Identifiers are new and distinct.
    let identifiers = column(&written, "fall");
    assert_eq!(identifiers.iter().collect::<HashSet<_>>().len(), 20_000);
    assert!(
        identifiers
            .iter()
            .all(|id| id.len() == 7 && id.starts_with('P'))
    );
    // Codes and categories are those of the record. So are ages, because each has its own digit.
    for name in ["station", "alter", "plz", "icd"] {
        assert_eq!(column(&written, name), column(&csv, name), "{name}");
    }
    let decimals = |text: &&str| {
        text.split_once(',')
            .is_some_and(|(_, decimals)| decimals.len() == 1)
    };
    assert!(column(&written, "gewicht").iter().all(decimals));
    in_order(&schema, &written);
}

/// Dates are in order even for random codes, such as those of a bad model.
#[test]
fn dates_are_in_order_for_random_codes() {
    let csv = export(500);
    let schema = draft(&csv).schema;
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let codes = |size: usize| {
        (0..2_000)
            .map(|_| rng.random_range(0..size as u32))
            .collect()
    };
    let columns: Vec<Vec<u32>> = schema.domain().sizes().iter().copied().map(codes).collect();
    let table = Table::new(schema.clone(), columns).unwrap();
    in_order(&schema, &write(&table, 4));
}

fn in_order(schema: &Schema, written: &str) {
    let values = read(schema.clone(), written.as_bytes()).values;
    let moments = |name: &str| {
        let column = values.iter().find(|column| column.name == name).unwrap();
        match &column.values {
            RawValues::Numbers(numbers) => numbers.clone(),
            RawValues::Texts { .. } => panic!("moments"),
        }
    };
    let (admitted, discharged) = (moments("aufnahme"), moments("entlassung"));
    assert!(
        admitted
            .iter()
            .zip(&discharged)
            .all(|(before, after)| before <= after)
    );
}

#[test]
fn invalid_cells_are_reported_with_their_place() {
    let csv = export(20_000);
    let schema = draft(&csv).schema;
    let refused = |from: &str, to: &str| {
        let line = csv.lines().nth(1).unwrap();
        let wrong = csv.replacen(line, &line.replacen(from, to, 1), 1);
        let mut options = ReadOptions::new("export.csv");
        options.dialect = Dialect::of_delimiter(b';');
        read_csv(schema.clone(), wrong.as_bytes(), &options)
            .unwrap_err()
            .to_string()
    };
    let first: Vec<&str> = csv.lines().nth(1).unwrap().split(';').collect();
    let error = refused(first[1], "31.02.2023 07:00");
    assert!(
        error.contains("row 1 (line 2), column \"aufnahme\"") && error.contains("01.01.1970 00:00"),
        "{error}"
    );
    let error = refused(first[2], "01.01.2022 00:00");
    assert!(
        error.contains("column \"entlassung\"") && error.contains("relative to"),
        "{error}"
    );
    let error = refused(first[5], "71.5");
    assert!(
        error.contains("\"71.5\" is not a number written as"),
        "{error}"
    );
    let error = refused(first[7], "Z99.9");
    assert!(
        error.contains("not one of the schema's categories"),
        "{error}"
    );
}

//! Drafts of schemas.
#![allow(clippy::unwrap_used)]

use fhaim_domain::{ReadOptions, WriteOptions, form::KindForm, read_csv, write_csv};
use fhaim_intake::{Draft, Flag, InferOptions, Note, infer_schema};
use proptest::prelude::*;
use rand_chacha::rand_core::SeedableRng;
use serde_json::{Value as Json, json};

fn infer(csv: &str, options: &InferOptions) -> Result<Draft, String> {
    infer_schema(csv.as_bytes(), options).map_err(|error| error.to_string())
}

fn options() -> InferOptions {
    InferOptions::new("t.csv", "t")
}

/// A table with a column of each kind and 120 records.
fn example() -> String {
    let mut csv = "id,name,sex,zip,age,bmi,children,note\n".to_owned();
    for row in 0..120 {
        let (id, age, bmi) = (row + 1, 18 + row * 37 % 70, 16.5 + f64::from(row) / 3.0);
        let sex = ["f", "m", ""][row as usize % 3];
        csv.push_str(&format!(
            "{id},n{row},{sex},0{},{age},{bmi:.1},{},?\n",
            row % 4,
            row % 5
        ));
    }
    csv
}

#[test]
fn columns_are_drafted_by_their_content() {
    let csv = example();
    let leave_out = vec!["name".to_owned(), "id".to_owned()];
    let options = InferOptions {
        leave_out,
        target: Some("sex".to_owned()),
        ..options()
    };
    let draft = infer(&csv, &options).unwrap();
    let written: Json = serde_json::from_str(&draft.schema.to_json()).unwrap();
    assert_eq!(
        written,
        json!({"name": "t", "target": "sex", "columns": [
            {"name": "sex", "kind": "categorical", "categories": ["f", "m"], "nullable": true},
            {"name": "zip", "kind": "categorical", "categories": ["00", "01", "02", "03"]},
            {"name": "age", "kind": "number", "integer": true, "digits": 11,
             "edges": [15, 25, 32, 39, 46, 54, 60, 67, 74, 81, 90]},
            {"name": "bmi", "kind": "number", "decimals": 1, "trailing_zeros": true, "digits": 61,
             "edges": [15, 21, 25, 29, 33, 37, 41, 45, 49, 53, 56.5, 60]},
            {"name": "children", "kind": "categorical", "categories": ["0", "1", "2", "3", "4"]},
            {"name": "note", "kind": "left-out", "reason": "every value is missing"},
        ]})
    );
    let flags: Vec<Flag> = draft.columns.iter().map(|column| column.flag).collect();
    let list = Flag::FromRecords;
    assert_eq!(flags, [list, list, list, list, list, Flag::Safe]);
    assert!(draft.statement().contains("confirm that it may be public"));
    let read = ReadOptions {
        unlisted: fhaim_domain::UnlistedColumn::LeaveOut,
        ..ReadOptions::new("t.csv")
    };
    assert_eq!(
        read_csv(draft.schema, csv.as_bytes(), &read)
            .unwrap()
            .table
            .records(),
        120
    );
}

#[test]
fn missing_columns_are_reported_together() {
    let options = InferOptions {
        target: Some("b".to_owned()),
        leave_out: vec!["c".to_owned()],
        ..options()
    };
    let error = infer("a\n1\n", &options).unwrap_err();
    assert_eq!(error, "t.csv: there is no column \"c\", \"b\"");
}

#[test]
fn row_number_is_drafted_as_identifier() {
    let options = InferOptions {
        max_categories: 120,
        ..options()
    };
    let draft = infer(&example(), &options).unwrap();
    let notes = draft.notes();
    let note = notes.iter().find(|note| note.column == "id").unwrap();
    assert!(note.to_string().contains("counts the rows"));
    assert!(draft.schema.to_json().contains("\"pattern\": \"sequence\""));
}

#[test]
fn invalid_tables_are_rejected() {
    for (csv, words) in [
        ("", "the file is empty"),
        ("a,b\n", "no records"),
        ("a,b\n1\n", "1 field where the header has 2"),
        ("a,a\n1,2\n", "appears twice"),
    ] {
        let error = infer(csv, &options()).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
    let options = InferOptions {
        leave_out: vec!["a".to_owned()],
        ..options()
    };
    let error = infer("a\n1\n", &options).unwrap_err();
    assert!(error.contains("the header has 0 columns"), "{error}");
}

/// The keys of the only column of a draft.
fn drafted_column(cells: &[String], options: &InferOptions) -> Json {
    let group = |row: usize| ["a", "b"][row % 2];
    let lines = cells.iter().enumerate();
    let lines: String = lines
        .map(|(row, cell)| format!("{cell},{}\n", group(row)))
        .collect();
    let draft = infer(&format!("value,group\n{lines}"), options).unwrap();
    let written: Json = serde_json::from_str(&draft.schema.to_json()).unwrap();
    written["columns"][0].clone()
}

#[test]
fn compact_dates_among_a_few_words_are_dates() {
    let cell = |row: u32| match row % 30 {
        0 => "see note".to_owned(),
        _ => format!("2022{:02}{:02}", row % 12 + 1, row % 28 + 1),
    };
    let cells: Vec<String> = (1..400).map(cell).collect();
    let column = drafted_column(&cells, &options());
    assert_eq!(
        (&column["kind"], &column["format"]),
        (&json!("date"), &json!("%Y%m%d"))
    );
}

#[test]
fn months_of_one_year_are_dates() {
    let cells: Vec<String> = (0..400)
        .map(|row| format!("2022-{:02}", row * 7 % 12 + 1))
        .collect();
    let column = drafted_column(&cells, &options());
    assert_eq!(
        (&column["kind"], &column["format"]),
        (&json!("date"), &json!("%Y-%m"))
    );
}

#[test]
fn chosen_durations_keep_their_form() {
    let cell = |row: u32| {
        format!(
            "0 days {:02}:{:02}:{:02}",
            row % 4,
            row * 7 % 60,
            row * 11 % 60
        )
    };
    let cells: Vec<String> = (0..400).map(cell).collect();
    let mut options = options();
    options.kinds.insert("value".to_owned(), KindForm::Duration);
    let column = drafted_column(&cells, &options);
    assert_eq!(column["format"], "%-d days %H:%M:%S");
}

proptest! {
    #[test]
    fn draft_accepts_its_source_table(
        rows in proptest::collection::vec((-1e6..1e6f64, -500i32..500, 0u8..5), 1..60),
    ) {
        let mut csv = "x,y,z\n".to_owned();
        for (x, y, z) in rows {
            csv.push_str(&format!("{x},{y},{z}\n"));
        }
        let draft = infer(&csv, &options()).unwrap();
        prop_assert!(read_csv(draft.schema, csv.as_bytes(), &ReadOptions::new("t.csv")).is_ok());
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(
        prop_oneof![Just(b','), Just(b'\n'), Just(b'1'), Just(b'e'), Just(b'-'), any::<u8>()], 0..200)) {
        let _ = infer_schema(&bytes[..], &options());
    }
}

/// The alcohol of red wines: 9.4, 9.8, and a few quotients.
#[test]
fn minutes_of_24_are_no_midnight_of_the_day_before() {
    let times = |last: &str| {
        let rows = (0..300).map(|row| format!("{:02}:{:02}:00\n", row % 24, 1 + row % 59));
        format!("called\n{}{last}\n", rows.collect::<String>())
    };
    for (last, midnight) in [("06:24:00", None), ("24:00:00", Some("24:00"))] {
        let draft = infer(&times(last), &options()).unwrap();
        let written: Json = serde_json::from_str(&draft.schema.to_json()).unwrap();
        let called = &written["columns"][0];
        assert_eq!(called["kind"], "time", "{called}");
        assert_eq!(called["midnight"].as_str(), midnight);
    }
}

#[test]
fn few_long_decimals_do_not_set_the_number_style() {
    let mut csv = "alcohol,sulfur\n".to_owned();
    for row in 0..400 {
        let sulfur = if row == 7 {
            "40.5".to_owned()
        } else {
            (row % 70).to_string()
        };
        csv.push_str(&match row {
            0 => format!("9.53333333333333,{sulfur}\n"),
            _ => format!("{:.1},{sulfur}\n", 8.0 + f64::from(row * 7 % 68) / 10.0),
        });
    }
    let draft = infer(&csv, &options()).unwrap();
    let written: Json = serde_json::from_str(&draft.schema.to_json()).unwrap();
    let columns = &written["columns"];
    assert_eq!(columns[0]["decimals"], 1, "{written}");
    assert_eq!(
        (&columns[1]["decimals"], &columns[1]["integer"]),
        (&json!(0), &Json::Null)
    );
    let rounded = |note: &&Note| note.text.contains("rounded when read");
    let notes = draft.notes();
    assert_eq!(notes.iter().filter(rounded).count(), 2, "{notes:?}");
    // The draft reads its source table, and the quotient becomes the nearest value.
    let mut reading = ReadOptions::new("t.csv");
    reading.keep_values = true;
    let table = read_csv(draft.schema.clone(), csv.as_bytes(), &reading)
        .unwrap()
        .table;
    assert_eq!(table.records(), 400);
    let of = |text: &str| {
        draft
            .schema
            .codes_of(&draft.schema.fields()[0], text)
            .unwrap()
    };
    assert_eq!(of("9.53333333333333"), of("9.5"));
    // If most values have them, all decimals count.
    let many: String = (0..200)
        .map(|row| format!("{}\n", f64::from(row) / 7.0))
        .collect();
    let draft = infer(&format!("x\n{many}"), &options()).unwrap();
    let written: Json = serde_json::from_str(&draft.schema.to_json()).unwrap();
    assert_eq!(written["columns"][0]["decimals"], 9, "{written}");
}

/// A table of dates from January 2020 on, with a time format such as "{d}. {m} {y}".
fn dates_of(form: &str, months: &str) -> String {
    let months: Vec<&str> = months.split(' ').collect();
    let date = |row: usize| {
        let text = form.replace("{d}", &(1 + row * 7 % 28).to_string());
        let text = text.replace("{0d}", &format!("{:02}", 1 + row * 7 % 28));
        let text = text.replace("{m}", months[row * 5 % 12]);
        format!(
            "\"{}\"\n",
            text.replace("{y}", &(2020 + row % 3).to_string())
        )
    };
    format!("seen\n{}", (0..300).map(date).collect::<String>())
}

#[test]
fn month_names_of_other_languages_are_dates() {
    for (form, months, format) in [
        (
            "{d}. {m} {y}",
            "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
            "%-d. %B %Y",
        ),
        (
            "{d}. {m} {y}",
            "Jan. Feb. März Apr. Mai Juni Juli Aug. Sept. Okt. Nov. Dez.",
            "%-d. %b %Y",
        ),
        (
            "{0d}-{m}-{y}",
            "JAN FEB MRZ APR MAI JUN JUL AUG SEP OKT NOV DEZ",
            "%d-%b-%Y",
        ),
        (
            "{m} {y}",
            "Jan Feb Mär Apr Mai Jun Jul Aug Sep Okt Nov Dez",
            "%b %Y",
        ),
        (
            "{d} {m} {y}",
            "janv. févr. mars avr. mai juin juil. août sept. oct. nov. déc.",
            "%-d %b %Y",
        ),
        (
            "{d} de {m} de {y}",
            "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
            "%-d de %B de %Y",
        ),
        (
            "{0d}-{m}-{y}",
            "ene feb mar abr may jun jul ago sept oct nov dic",
            "%d-%b-%Y",
        ),
        (
            "{d} {m} {y}",
            "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
            "%-d %B %Y",
        ),
        (
            "{d} {m} {y}",
            "jan feb mrt apr mei jun jul aug sep okt nov dec",
            "%-d %b %Y",
        ),
        (
            "{0d}/{m}./{y}",
            "Jan Fev Mar Abr Mai Jun Jul Ago Set Out Nov Dez",
            "%d/%b/%Y",
        ),
        (
            "{m} {d}, {y}",
            "Jan. Feb. Mar. Apr. May June July Aug. Sept. Oct. Nov. Dec.",
            "%b %-d, %Y",
        ),
    ] {
        let csv = dates_of(form, months);
        let draft = infer(&csv, &options()).unwrap();
        let written: Json = serde_json::from_str(&draft.schema.to_json()).unwrap();
        let column = &written["columns"][0];
        assert_eq!(
            (&column["kind"], &column["format"]),
            (&json!("date"), &json!(format)),
            "{months}"
        );
        let names: Vec<&str> = months.split(' ').collect();
        let listed = column["months"].as_array().unwrap();
        let plain = |name: &Json| name.as_str().unwrap().trim_end_matches('.').to_owned();
        let listed: Vec<String> = listed.iter().map(plain).collect();
        assert_eq!(
            listed,
            names
                .iter()
                .map(|name| name.trim_end_matches('.'))
                .collect::<Vec<_>>()
        );
        assert_eq!(column["nullable"], Json::Null, "{months}");
        assert_eq!(
            rewritten(draft.schema, &csv),
            csv.replace('"', ""),
            "{months}"
        );
    }
}

/// The records of a table whose synthetic copy has all days, in the form in which it is written.
fn rewritten(schema: fhaim_domain::Schema, csv: &str) -> String {
    let table = read_csv(schema, csv.as_bytes(), &ReadOptions::new("t.csv"))
        .unwrap()
        .table;
    let mut written = Vec::new();
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
    write_csv(&table, &mut written, &mut rng, &WriteOptions::new("o.csv")).unwrap();
    String::from_utf8(written).unwrap().replace('"', "")
}

#[test]
fn rare_spellings_of_months_are_read() {
    let csv = dates_of(
        "{d} {m} {y}",
        "Jan Feb Mrz Apr Mai Jun Jul Aug Sep Okt Nov Dez",
    )
    .replacen("Sep ", "Sept ", 2);
    let draft = infer(&csv, &options()).unwrap();
    let written: Json = serde_json::from_str(&draft.schema.to_json()).unwrap();
    let months = written["columns"][0]["months"].as_array().unwrap();
    assert_eq!(months.len(), 24);
    assert_eq!(
        (&months[8], written["columns"][0]["nullable"].as_bool()),
        (&json!("Sep"), None)
    );
    assert!(read_csv(draft.schema, csv.as_bytes(), &ReadOptions::new("t.csv")).is_ok());
}

#[test]
fn iso_durations_of_several_shapes_are_durations() {
    for (texts, format) in [
        (
            &["PT5M", "PT1H5M", "PT45S", "PT3H", "PT12M30S"][..],
            "PT[%-HH][%-MM][%-SS]",
        ),
        (
            &["PT5M", "PT1H5M", "P1DT2H", "P2D", "PT36H"],
            "P[%-dD]T[%-HH][%-MM]",
        ),
        (
            &["PT5M", "PT31H5M", "P1DT2H", "PT50H", "PT36H"],
            "PT[%-HH][%-MM]",
        ),
        (&["PT5M", "PT90M", "PT12M", "PT700M", "PT1M"], "PT[%-MM]"),
        (
            &["PT1.5S", "PT2S", "PT1M2S", "PT3.25S", "PT9S"],
            "PT[%-MM][%-S%.fS]",
        ),
        (&["P1D", "P30D", "P14D", "P7D", "P90D"], "P[%-dD]"),
    ] {
        let rows: String = (0..300)
            .map(|row| format!("{}\n", texts[row * 7 % 5]))
            .collect();
        let csv = format!("watched\n{rows}");
        let options = InferOptions {
            kinds: [("watched".to_owned(), KindForm::Duration)].into(),
            ..options()
        };
        let draft = infer(&csv, &options).unwrap();
        let written: Json = serde_json::from_str(&draft.schema.to_json()).unwrap();
        let column = &written["columns"][0];
        assert_eq!(
            (&column["kind"], &column["format"]),
            (&json!("duration"), &json!(format)),
            "{column}"
        );
        assert_eq!(column["nullable"], Json::Null, "{column}");
        let automatic = infer(&csv, &self::options()).unwrap();
        assert_eq!(automatic.columns[0].kind, "duration", "{texts:?}");
        assert!(
            rewritten(draft.schema, &csv)
                .lines()
                .skip(1)
                .all(|line| line.starts_with('P'))
        );
    }
}

#[test]
fn two_digit_years_of_birth_end_with_the_dates_of_the_table() {
    let table = |years: i32, seen: fn(i32) -> String| {
        let row = |row: i32| {
            let (day, month) = (1 + row % 28, 1 + row % 12);
            format!("{day:02}/{month:02}/{:02},{}\n", row % years, seen(row))
        };
        format!("born,seen\n{}", (0..300).map(row).collect::<String>())
    };
    let to_2024 = |row: i32| format!("{}-03-{:02}", 2024 - row % 5, 1 + row % 28);
    let to_1998 = |row: i32| format!("{:02}/03/{}", 1 + row % 28, 1998 - row % 5);
    let undated = |row: i32| format!("x{}", row % 5);
    for (csv, first, says) in [
        (
            table(100, to_2024),
            1925,
            "1925 to 2024, because the table's other dates end then",
        ),
        (table(100, to_1998), 1899, "1899 to 1998, because"),
        (table(20, to_2024), 1931, "1931 to 2030: if"),
        (table(100, undated), 1931, "1931 to 2030: if"),
    ] {
        let draft = infer(&csv, &options()).unwrap();
        let written: Json = serde_json::from_str(&draft.schema.to_json()).unwrap();
        assert_eq!(written["columns"][0]["first_year"], first, "{csv:.60}");
        let questions = &draft.columns[0].questions;
        assert!(
            questions.iter().any(|question| question.contains(says)),
            "{questions:?}"
        );
    }
}

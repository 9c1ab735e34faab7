//! Numbers as people write them: separators, currencies, units, steps and words.
#![allow(clippy::unwrap_used)]

use fhaim_domain::{
    Field, NumberStyle, OutOfRange, Output, RawValues, ReadOptions, Schema, Table, TableReading,
    Value, WriteOptions, form::Negative, parse_conditions, read_csv, write_csv,
};
use proptest::prelude::*;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::{Value as Json, json};

/// A column of numbers from 0 to 10,000 with further keys.
fn column(more: &Json) -> Json {
    let mut column = json!({"name": "a", "kind": "number", "decimals": 2, "min": 0, "max": 10_000,
        "bins": 10, "digits": 1000});
    let fields = column.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    fields.retain(|_, value| !value.is_null());
    column
}

fn parse(schema: &Json) -> Result<Schema, String> {
    Schema::from_json("s.json", schema.to_string().as_bytes()).map_err(|error| error.to_string())
}

fn with(more: &Json) -> Result<Schema, String> {
    parse(&json!({"name": "t", "columns": [column(more)]}))
}

fn read_with(
    schema: &Schema,
    cells: &[&str],
    change: impl FnOnce(&mut ReadOptions),
) -> Result<TableReading, String> {
    let mut csv = csv::Writer::from_writer(Vec::new());
    csv.write_record(["a"]).unwrap();
    cells
        .iter()
        .for_each(|cell| csv.write_record([cell]).unwrap());
    let csv = csv.into_inner().unwrap();
    let mut options = ReadOptions::new("t.csv");
    change(&mut options);
    read_csv(schema.clone(), csv.as_slice(), &options).map_err(|error| error.to_string())
}

fn read(schema: &Schema, cells: &[&str]) -> Result<Table, String> {
    read_with(schema, cells, |_| {}).map(|reading| reading.table)
}

fn write(table: &Table) -> Vec<String> {
    let mut csv = Vec::new();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    write_csv(table, &mut csv, &mut rng, &WriteOptions::new("o.csv")).unwrap();
    let records = csv::Reader::from_reader(csv.as_slice()).into_records();
    records
        .map(|record| record.unwrap()[0].to_owned())
        .collect()
}

/// Reads cells and writes them. Every number has its own digit, so the texts come back.
fn rewritten(more: &Json, cells: &[&str]) -> Vec<String> {
    write(&read(&with(more).unwrap(), cells).unwrap())
}

/// One bin for each of few numbers.
fn few(min: f64, max: f64, numbers: u64) -> Json {
    json!({"min": min, "max": max, "bins": numbers, "digits": null})
}

fn merged(one: Json, other: &Json) -> Json {
    let mut one = one;
    let fields = one.as_object_mut().unwrap();
    fields.extend(other.as_object().unwrap().clone());
    one
}

#[test]
fn digest_of_a_schema_without_new_keys_is_unchanged() {
    let schema = parse(&json!({"name": "t", "columns": [
        {"name": "gain", "kind": "number", "integer": true, "special": [0, 99999], "min": 1,
         "max": 5000, "bins": 10, "digits": 20},
        {"name": "weight", "kind": "number", "decimals": 1, "trailing_zeros": true,
         "decimal_comma": true, "edges": [30, 60.5, 80, 200], "digits": 16, "nullable": true}]}));
    let digest = schema.unwrap().digest();
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(
        hex,
        "ba4a4815e9f2df02fced02ce6945699a6e9ef7841fcb185eaf70a1286c1dc872"
    );
}

#[test]
fn keys_round_trip_through_json_and_change_the_digest() {
    let plain = with(&json!({})).unwrap();
    for more in [
        json!({"step": 0.25}),
        json!({"step": 500}),
        json!({"thousands": "\u{202f}"}),
        json!({"before": "$"}),
        json!({"after": " €"}),
        json!({"negative": "trailing"}),
        json!({"special": [0, "<0.5", "neg"]}),
    ] {
        let schema = with(&more).unwrap();
        let written: Json = serde_json::from_str(&schema.to_json()).unwrap();
        assert_eq!(written["columns"][0], column(&more));
        assert_eq!(parse(&written).unwrap(), schema);
        assert_ne!(schema.digest(), plain.digest(), "{more}");
    }
}

#[test]
fn numbers_are_written_as_they_were_read() {
    let thousands = merged(
        few(800.0, 13_000.0, 123),
        &json!({"decimals": null, "integer": true,
        "step": 100, "thousands": ","}),
    );
    let cells = ["1,200", "13,000", "800"];
    assert_eq!(rewritten(&thousands, &cells), cells);

    let euros = merged(
        few(1_234.0, 1_235.0, 101),
        &json!({"decimal_comma": true, "thousands": ".",
        "trailing_zeros": true, "after": " €"}),
    );
    let cells = ["1.234,56 €", "1.234,00 €", "1.234,50 €"];
    assert_eq!(rewritten(&euros, &cells), cells);

    let dollars = merged(
        few(-2_409.0, -2_407.0, 201),
        &json!({"thousands": ",", "before": "$",
        "negative": "parentheses", "trailing_zeros": true, "special": [0, 5]}),
    );
    let cells = ["($2,408.56)", "($2,408.00)", "$0.00", "$5.00"];
    assert_eq!(rewritten(&dollars, &cells), cells);
    assert_eq!(
        rewritten(&dollars, &[" -$2408.56 ", "$ -2,408.5"]),
        ["($2,408.56)", "($2,408.50)"]
    );

    let ages = merged(
        few(0.0, 109.0, 110),
        &json!({"decimals": 1, "trailing_zeros": true, "step": 1}),
    );
    assert_eq!(rewritten(&ages, &["17.0", "58"]), ["17.0", "58.0"]);
}

#[test]
fn number_in_another_style_is_refused_with_an_example() {
    let schema = with(&json!({"thousands": ",", "before": "$", "trailing_zeros": true})).unwrap();
    for cell in ["5", "€5", "$1,00", "$1.000,50", "$1,200.50 net"] {
        let error = read(&schema, &[cell]).unwrap_err();
        let words = format!("{cell:?} is not a number written as \"$10,000.00\"");
        assert!(error.contains(&words), "{error}");
    }
    let error = read(&with(&json!({})).unwrap(), &["x"]).unwrap_err();
    assert!(error.ends_with("\"x\" is not a number"), "{error}");
}

#[test]
fn number_that_is_no_multiple_is_refused_and_not_rounded() {
    let schema = with(&json!({"step": 0.25, "special": [20_000]})).unwrap();
    assert_eq!(
        rewritten(&json!({"step": 5}), &["995", "1e3"]),
        ["995", "1000"]
    );
    for cell in ["17.1", "17.251", "17.250001", "10000.1"] {
        let error = read(&schema, &[cell]).unwrap_err();
        let words = format!("{cell:?} is not a multiple of 0.25, the schema's `step`");
        assert!(
            error.contains(&words) && error.contains("finer `step`"),
            "{error}"
        );
    }
    for cell in ["10000.25", "10000.2", "1e300", "-1"] {
        let error = read(&schema, &[cell]).unwrap_err();
        assert!(
            error.contains("outside the schema's range from 0 to 10000"),
            "{error}"
        );
    }
    let clamp = |options: &mut ReadOptions| options.out_of_range = OutOfRange::Clamp;
    let reading = read_with(&schema, &["10000.2", "-0.3", "12.5"], clamp).unwrap();
    assert_eq!(reading.adjusted[0].clamped, 2);
    // The special value 20,000 has the last code.
    assert_eq!(reading.table.column(0), [9, 0, 0]);
    assert_eq!(reading.table.column(1)[..2], [999, 0]);
    // Without `step`, numbers are rounded to the last decimal.
    read(
        &with(&json!({"decimals": 1, "digits": 100})).unwrap(),
        &["17.26"],
    )
    .unwrap();
}

#[test]
fn invalid_keys_are_refused_with_the_cause() {
    for (more, words) in [
        (
            json!({"step": 0}),
            "`step` must be a positive multiple of the last decimal place, 0.01",
        ),
        (json!({"step": -1}), "`step` must be a positive multiple"),
        (json!({"step": 0.005}), "`step` must be a positive multiple"),
        (json!({"step": 1e300}), "`step` must be a positive multiple"),
        (
            json!({"decimals": null, "integer": true, "step": 0.5}),
            "last decimal place, 1",
        ),
        (
            json!({"step": 300}),
            "10000 is not a multiple of `step`, 300: use 9900 or 10200",
        ),
        (
            json!({"step": 5, "special": [7]}),
            "7 is not a multiple of `step`, 5: use 5 or 10",
        ),
        (
            json!({"step": 5, "special": [2.001]}),
            "2.001 is not a value of this column",
        ),
        (json!({"thousands": "_"}), "`thousands` is '_'"),
        (
            json!({"thousands": "."}),
            "`thousands` is '.', which is the decimal mark",
        ),
        (
            json!({"thousands": ",", "decimal_comma": true}),
            "which is the decimal mark",
        ),
        (json!({"before": " "}), "`before` is \" \""),
        (json!({"before": " -$"}), "`before` is \" -$\""),
        (json!({"before": "("}), "`before` is \"(\""),
        (json!({"after": "\n"}), "`after` is \"\\n\""),
        (json!({"after": "x".repeat(65)}), "`after` is \"x"),
        (
            json!({"special": ["5"]}),
            "special value \"5\" is a number of this column",
        ),
        (json!({"special": [""]}), "special value \"\" must have"),
        (json!({"special": [" neg"]}), "no blanks at its ends"),
        (
            json!({"special": ["neg", 0, "neg"]}),
            "special value \"neg\" appears twice",
        ),
        (json!({"min": "low"}), "`min` must be a number"),
        (json!({"negative": "red"}), "unknown variant `red`"),
    ] {
        let error = with(&more).unwrap_err();
        assert!(error.contains(words), "{more}: {error}");
    }
    let date = json!({"name": "t", "columns": [{"name": "d", "kind": "numeric", "min": 0, "max": 1,
        "bins": 1, "step": 1}]});
    assert!(
        parse(&date)
            .unwrap_err()
            .contains("a numeric column has no `step`")
    );
}

#[test]
fn words_are_values_with_their_own_groups() {
    let more = json!({"special": ["neg", 0, "<0.5", ">100"], "edges": [0, 50, 100], "digits": 4,
        "min": null, "max": null, "bins": null, "nullable": true});
    let schema = with(&more).unwrap();
    let labels: Vec<String> = (0..7).map(|code| schema.columns()[0].label(code)).collect();
    assert_eq!(
        labels,
        [
            "<0.5",
            "0",
            "0 to 49.99",
            "50 to 100",
            ">100",
            "neg",
            "(missing)"
        ]
    );
    assert_eq!(schema.domain().sizes(), [7, 4]);
    let keep = |options: &mut ReadOptions| {
        options.keep_values = true;
        options.missing.push("neg".to_owned());
    };
    let cells = ["neg", " <0.5 ", "0", "75", ">100", ""];
    let reading = read_with(&schema, &cells, keep).unwrap();
    assert_eq!(reading.table.column(0), [5, 0, 1, 3, 4, 6]);
    assert_eq!(reading.table.column(1), [0, 0, 0, 2, 0, 0]);
    assert_eq!(reading.adjusted[0].missing, 1);
    let numbers = [None, None, Some(0.0), Some(75.0), None, None];
    assert_eq!(
        reading.values[0].values,
        RawValues::Numbers(numbers.to_vec())
    );
    let words = [(0, "neg"), (1, "<0.5"), (4, ">100")];
    let words = words.map(|(record, word)| (record, word.to_owned()));
    assert_eq!(reading.values[0].words, words.into());
    let written = write(&reading.table);
    assert_eq!(written[..3], ["neg", "<0.5", "0"]);
    let error = read(&schema, &["NEG"]).unwrap_err();
    assert!(error.contains("not a number"), "{error}");

    let mut values = Vec::new();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    schema.values(&|_| 5, 0, &mut rng, &mut values);
    assert_eq!(values, [Value::Category("neg")]);
    let codes = |text: &str| schema.codes_of(&schema.fields()[0], text);
    assert_eq!(codes("neg"), Some(vec![(0, 5), (1, 0)]));
    assert_eq!(codes(" <0.5"), Some(vec![(0, 0), (1, 0)]));
    assert_eq!(codes("<0.4"), None);
    assert_eq!(
        parse_conditions("a=>100", &schema).unwrap(),
        [(0, 4), (1, 0)]
    );
}

#[test]
fn missing_text_must_not_be_a_word_or_a_number_of_the_style() {
    let schema = with(&json!({"special": ["neg"], "before": "$", "nullable": true})).unwrap();
    let table = read(&schema, &["$5", ""]).unwrap();
    for (missing, is_accepted) in [("neg", false), (" neg", false), ("$7", false), ("7", true)] {
        let mut options = WriteOptions::new("o.csv");
        options.missing = missing.to_owned();
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let written = write_csv(&table, Vec::new(), &mut rng, &options);
        assert_eq!(written.is_ok(), is_accepted, "{missing:?}");
    }
}

#[test]
fn column_with_words_is_written_as_text_and_others_as_numbers() {
    let output = |more: &Json| {
        let schema = with(more).unwrap();
        let field: &Field = &schema.fields()[0];
        field.output(schema.columns())
    };
    assert_eq!(output(&json!({"special": ["neg"]})), Output::Text);
    assert_eq!(
        output(&json!({"before": "$", "thousands": ","})),
        Output::Number
    );
    let whole = json!({"decimals": null, "integer": true, "after": "%", "step": 5});
    assert_eq!(output(&whole), Output::Integer);
}

#[test]
fn constraints_of_numbers_do_not_bind_words() {
    let number = |name: &str, more: &Json| {
        let column = json!({"name": name, "kind": "number", "integer": true, "min": 0, "max": 100,
            "bins": 5, "digits": 5, "step": 5, "special": ["<5"]});
        merged(column, more)
    };
    let schema = |more: &Json| {
        parse(
            &json!({"name": "t", "columns": [number("low", &json!({})), number("high", more),
            number("sum", &json!({"max": 200})), number("x", &json!({})), number("y", &json!({}))],
            "constraints": [{"at_most": ["low", "high"]}, {"sum": {"total": "sum", "parts": ["x", "y"]}},
            {"never": {"low": "<5", "x": "<5"}}]}),
        )
    };
    let error = schema(&json!({"step": 10, "bins": 2})).unwrap_err();
    assert!(error.contains("must have the same `step`"), "{error}");
    let schema = schema(&json!({})).unwrap();
    let read = |rows: &str| {
        let csv = format!("low,high,sum,x,y\n{rows}\n");
        let reading = read_csv(schema.clone(), csv.as_bytes(), &ReadOptions::new("t.csv"));
        reading
            .map(|reading| reading.table)
            .map_err(|error| error.to_string())
    };
    for (row, is_allowed) in [
        ("5,10,30,10,20", true),
        ("15,10,30,10,20", false),
        ("100,<5,30,10,20", true),
        ("<5,10,35,<5,20", false),
        ("0,10,35,<5,20", true),
        ("0,10,35,10,20", false),
        ("0,10,<5,10,20", true),
    ] {
        assert_eq!(read(row).is_ok(), is_allowed, "{row}");
    }
    // Drawn records hold to the constraints, and keep their words.
    let table = read("100,<5,30,<5,20\n<5,0,30,10,20\n35,35,190,100,90\n0,5,<5,100,100").unwrap();
    for seed in 0..50 {
        let mut csv = Vec::new();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        write_csv(&table, &mut csv, &mut rng, &WriteOptions::new("o.csv")).unwrap();
        let again = read_csv(schema.clone(), csv.as_slice(), &ReadOptions::new("o.csv")).unwrap();
        let words = |table: &Table, attribute| -> Vec<bool> {
            table
                .column(attribute)
                .iter()
                .map(|&code| code == 0)
                .collect()
        };
        for attribute in [0, 2, 4, 6, 8] {
            assert_eq!(words(&again.table, attribute), words(&table, attribute));
        }
    }
}

fn any_texts() -> impl Strategy<Value = (String, String)> {
    let before = proptest::sample::select(vec!["", "$", "US$ ", "Fr. ", "#5 "]);
    let after = proptest::sample::select(vec!["", "%", " €", " kg/m2", ",-", " (net)"]);
    (before, after).prop_map(|(before, after)| (before.to_owned(), after.to_owned()))
}

prop_compose! {
    /// A column of numbers in any style.
    fn any_column()(
        decimals in 0u32..=4,
        trailing_zeros: bool,
        comma: bool,
        separator in 0usize..8,
        step in 1i64..40,
        (before, after) in any_texts(),
        negative in proptest::sample::select(vec!["minus", "parentheses", "trailing"]),
        min in -900i64..900,
        width in 5i64..900,
        digits in 1u64..40,
        words in proptest::collection::btree_set("[<>a-z][a-z]{0,2}", 0..4),
    ) -> Json {
        let style = NumberStyle { decimals, step, ..NumberStyle::default() };
        let value = |step: i64| style.number(step).value();
        let mark = if comma { '.' } else { ',' };
        let separators = [Some(mark), Some(' '), Some('\''), Some('\u{a0}'), Some('\u{202f}'),
            Some('\u{2019}'), Some('\u{2009}'), None];
        let mut special: Vec<Json> = words.into_iter().map(Json::from).collect();
        special.extend([value(min + 1), value(min - 3)].map(Json::from));
        let mut column = json!({"name": "a", "kind": "number", "decimals": decimals,
            "trailing_zeros": trailing_zeros, "decimal_comma": comma, "step": value(1),
            "before": before, "after": after, "special": special, "nullable": true,
            "negative": negative,
            "min": value(min), "max": value(min + width), "bins": 2, "digits": digits});
        if let Some(separator) = separators[separator] {
            column["thousands"] = separator.to_string().into();
        }
        column
    }
}

proptest! {
    #[test]
    fn written_table_is_read_back_with_the_same_codes(column in any_column(), seed: u64) {
        let schema = parse(&json!({"name": "t", "columns": [column]})).unwrap();
        let size = schema.columns()[0].size() as u32;
        let parts = schema.domain().digits().first().map(|digit| digit.parts().to_vec());
        let mut columns = vec![Vec::new(); schema.columns().len()];
        for code in 0..size {
            for part in 0..parts.as_ref().map_or(1, |parts| parts[code as usize]) {
                columns[0].push(code);
                if let Some(fine) = columns.get_mut(1) {
                    fine.push(part);
                }
            }
        }
        let table = Table::new(schema.clone(), columns).unwrap();
        let mut csv = Vec::new();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        // An empty line is no record of a table of one column.
        let options = WriteOptions { missing: "missing".to_owned(), ..WriteOptions::new("o.csv") };
        write_csv(&table, &mut csv, &mut rng, &options).unwrap();
        let mut options = ReadOptions::new("o.csv");
        options.missing.push("missing".to_owned());
        let again = read_csv(schema, csv.as_slice(), &options).unwrap().table;
        prop_assert_eq!(again.columns(), table.columns());
    }

    #[test]
    fn any_cell_is_read_or_refused_without_panic(column in any_column(), cell in "\\PC{0,12}") {
        let schema = parse(&json!({"name": "t", "columns": [column]})).unwrap();
        let _ = read(&schema, &[&cell]);
        let _ = schema.codes_of(&schema.fields()[0], &cell);
    }
}

#[test]
fn every_form_of_negative_numbers_is_read_in_its_style_only() {
    let style = |negative| NumberStyle {
        decimals: 2,
        negative,
        ..NumberStyle::default()
    };
    for (text, parentheses, trailing) in [
        ("-9.22", true, true),
        ("(9.22)", true, false),
        ("9.22-", false, true),
    ] {
        let value = |is_accepted: bool| is_accepted.then_some(-9.22);
        assert_eq!(style(Negative::Minus).parse(text), value(text == "-9.22"));
        assert_eq!(style(Negative::Parentheses).parse(text), value(parentheses));
        assert_eq!(style(Negative::Trailing).parse(text), value(trailing));
    }
}

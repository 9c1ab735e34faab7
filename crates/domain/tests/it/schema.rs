//! Schemas: which are accepted, which are rejected, and with which messages.
#![allow(clippy::unwrap_used)]

use fhaim_domain::{Column, Kind, MAX_SCHEMA_BYTES, Schema, Value, check_schema, pair_cells};
use proptest::prelude::*;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::{Value as Json, json};

fn parse(schema: &Json) -> Result<Schema, String> {
    Schema::from_json("s.json", schema.to_string().as_bytes()).map_err(|error| error.to_string())
}

fn with_column(column: &Json) -> Result<Schema, String> {
    parse(&json!({"name": "t", "columns": [column]}))
}

fn example() -> Json {
    json!({
        "name": "people", "source": "made up", "target": "ill",
        "columns": [
            {"name": "age", "kind": "numeric", "min": 0, "max": 100, "bins": 10, "integer": true},
            {"name": "dose", "kind": "numeric", "min": -0.5, "max": 2.5, "bins": 6, "nullable": true},
            {"name": "town", "kind": "categorical", "categories": ["A", "B", "rest"], "other": "rest"},
            {"name": "ill", "kind": "categorical", "categories": ["no", "yes"], "nullable": true}
        ]
    })
}

#[test]
fn schema_round_trips_through_json() {
    let schema = parse(&example()).unwrap();
    assert_eq!(schema.name(), "people");
    assert_eq!(schema.source(), Some("made up"));
    assert_eq!(schema.target(), Some(3));
    assert_eq!(schema.domain().sizes(), [10, 7, 3, 3]);
    assert_eq!(schema.position("town"), Some(2));
    assert_eq!(schema.columns()[1].null_code(), Some(6));
    assert_eq!(schema.columns()[0].null_code(), None);
    let Kind::Categorical { other, .. } = schema.columns()[2].kind() else {
        panic!("a list")
    };
    assert_eq!(*other, Some(2));
    let written: Json = serde_json::from_str(&schema.to_json()).unwrap();
    assert_eq!(written, example());
    assert_eq!(
        Schema::from_json("s.json", schema.to_json().as_bytes()).unwrap(),
        schema
    );
}

#[test]
fn single_integer_bins_are_labelled_by_the_integer() {
    let grade = json!({"name": "g", "kind": "numeric", "min": -1, "max": 9, "bins": 11,
        "integer": true});
    let schema = with_column(&grade).unwrap();
    let label = |code| schema.columns()[0].label(code);
    let expected: Vec<String> = (-1..10).map(|g| g.to_string()).collect();
    assert_eq!((0..11).map(label).collect::<Vec<_>>(), expected);
}

#[test]
fn codes_decode_to_values_and_labels() {
    let schema = parse(&example()).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let [age, dose, town, ill] = schema.columns() else {
        panic!("four columns")
    };
    let label = |column: &Column, code| column.label(code);
    assert_eq!(label(age, 0), "0 to 9");
    assert_eq!(label(age, 9), "90 to 100");
    assert_eq!(label(age, 10), "(none)");
    assert_eq!(label(dose, 0), "-0.5 to 0");
    assert_eq!(label(dose, 6), "(missing)");
    assert_eq!(label(town, 1), "B");
    assert_eq!(label(town, 3), "(none)");
    assert_eq!(ill.decode(1, &mut rng), Some(Value::Category("yes")));
    assert_eq!(ill.decode(2, &mut rng), Some(Value::Null));
    assert_eq!(ill.decode(3, &mut rng), None);
    assert_eq!(age.decode(10, &mut rng), None);
    let Some(Value::Number(value)) = age.decode(4, &mut rng) else {
        panic!("a number")
    };
    assert!((40.0..50.0).contains(&value) && value.fract() == 0.0);
}

#[test]
fn invalid_schemas_are_rejected_with_the_cause() {
    let mut cases = vec![
        (
            json!({"name": "t", "columns": []}),
            "from 1 to 1000 columns, not 0",
        ),
        (json!({"name": "", "columns": []}), "the schema's name \"\""),
        (json!({"name": "t"}), "missing field `columns`"),
        (
            json!({"name": "t", "columns": [], "extra": 1}),
            "unknown field `extra`",
        ),
        (json!([]), "not a schema"),
    ];
    let mut target = example();
    target["target"] = json!("death");
    cases.push((target, "the target \"death\" is not a column"));
    let mut repeated = example();
    repeated["columns"][1]["name"] = json!("age");
    cases.push((repeated, "column \"age\" appears twice"));
    for (schema, words) in cases {
        let error = parse(&schema).unwrap_err();
        assert!(
            error.starts_with("s.json: ") && error.contains(words),
            "{error}"
        );
    }
}

#[test]
fn invalid_columns_are_rejected_with_the_cause() {
    let cases = [
        (
            json!({"name": "a", "kind": "categorical"}),
            "needs `categories`",
        ),
        (
            json!({"name": "a", "kind": "categorical", "categories": []}),
            "from 1 to 10000 categories, not 0",
        ),
        (
            json!({"name": "a", "kind": "categorical", "categories": ["x", "x"]}),
            "\"x\" appears twice",
        ),
        (
            json!({"name": "a", "kind": "categorical", "categories": [""]}),
            "set `nullable`",
        ),
        (
            json!({"name": "a", "kind": "categorical", "categories": ["x\ny"]}),
            "no control characters",
        ),
        (
            json!({"name": "a", "kind": "categorical", "categories": ["x"], "other": "y"}),
            "`other` is \"y\"",
        ),
        (
            json!({"name": "a", "kind": "categorical", "categories": ["x"], "bins": 2}),
            "has no `bins`",
        ),
        (
            json!({"name": "a", "kind": "numeric", "min": 0, "max": 1}),
            "needs `bins`",
        ),
        (
            json!({"name": "a", "kind": "numeric", "min": 1, "max": 1, "bins": 1}),
            "`min` (1) must be below `max` (1)",
        ),
        (
            json!({"name": "a", "kind": "numeric", "min": 0, "max": 1, "bins": 0}),
            "from 1 to 10000, not 0",
        ),
        (
            json!({"name": "a", "kind": "numeric", "min": 0, "max": 1e300, "bins": 1}),
            "at most 1e15",
        ),
        (
            json!({"name": "a", "kind": "numeric", "min": 0, "max": 1, "bins": 1, "categories": []}),
            "has no `categories`",
        ),
        (
            json!({"name": "a", "kind": "numeric", "min": 0, "max": 3, "bins": 5, "integer": true}),
            "can have at most 4 bins",
        ),
    ];
    for (column, words) in cases {
        let error = with_column(&column).unwrap_err();
        assert!(
            error.starts_with("s.json: column \"a\": ") && error.contains(words),
            "{error}"
        );
    }
    for column in [
        json!({"name": "a", "kind": "text"}),
        json!({"name": "a", "kind": "numeric", "min": "0", "max": 1, "bins": 1}),
        json!({"name": "a", "kind": "numeric", "min": 0, "max": 1, "bins": -1}),
        json!({"name": "a", "kind": "numeric", "min": 0, "max": 1, "bins": 1.5}),
        json!({"name": "a\u{0}", "kind": "numeric", "min": 0, "max": 1, "bins": 1}),
        json!({"name": "a", "kind": "categorical", "categories": [1, 2]}),
    ] {
        let error = with_column(&column).unwrap_err();
        assert!(error.starts_with("s.json: "), "{error}");
    }
}

#[test]
fn schema_size_is_bounded() {
    let wide = |bins: u32| -> Json {
        let column = |i| json!({"name": format!("c{i}"), "kind": "numeric", "min": 0, "max": 1, "bins": bins});
        json!({"name": "t", "columns": (0..20).map(column).collect::<Vec<_>>()})
    };
    assert!(parse(&wide(5_000)).is_ok());
    let error = parse(&wide(5_001)).unwrap_err();
    assert!(
        error.contains("100020 values together") && error.contains("fewer bins"),
        "{error}"
    );
    let error = Schema::from_json("s.json", &vec![b' '; MAX_SCHEMA_BYTES + 1]).unwrap_err();
    assert!(error.to_string().contains("too large"), "{error}");
}

#[test]
fn repeated_fields_and_trailing_text_are_refused() {
    for json in [
        r#"{"name": "t", "name": "u", "columns": []}"#,
        r#"{"name": "t", "columns": [{"name": "a", "kind": "categorical", "categories": ["x"]}]} x"#,
        "",
        "\u{feff}",
    ] {
        assert!(matches!(
            Schema::from_json("s.json", json.as_bytes()),
            Err(fhaim_domain::Error::Schema { .. })
        ));
    }
}

#[test]
fn digest_covers_exactly_the_meaning_of_codes() {
    let digest = |schema: &Json| parse(schema).unwrap().digest();
    let base = digest(&example());
    let mut renamed = example();
    renamed["name"] = json!("other people");
    renamed["source"] = json!("elsewhere");
    assert_eq!(digest(&renamed), base);
    let changes = [
        ("/columns/0/max", json!(101)),
        ("/columns/0/bins", json!(11)),
        ("/columns/0/name", json!("years")),
        ("/columns/1/nullable", json!(false)),
        ("/columns/2/categories/0", json!("C")),
        ("/columns/2/other", json!("A")),
        ("/target", json!("town")),
        ("/columns/0/integer", json!(false)),
    ];
    for (pointer, value) in changes {
        let mut changed = example();
        *changed.pointer_mut(pointer).unwrap() = value;
        assert_ne!(digest(&changed), base, "{pointer}");
    }
}

#[test]
fn cost_suggests_the_column_to_coarsen() {
    let schema = parse(&json!({"name": "t", "columns": [
        {"name": "age", "kind": "numeric", "min": 0, "max": 100, "bins": 100},
        {"name": "sex", "kind": "categorical", "categories": ["f", "m"]},
        {"name": "town", "kind": "categorical", "categories": ["a", "b", "c"], "nullable": true},
    ]}))
    .unwrap();
    let cost = check_schema(&schema, None);
    assert_eq!(
        (cost.one_hot_columns, cost.pairs, cost.pair_cells),
        (106, 3, 608)
    );
    assert_eq!(cost.columns[0].pair_cells, 600);
    assert_eq!(cost.columns[2].pair_cells, 408);
    let largest = cost.largest_pair.unwrap();
    assert_eq!(largest.columns, ("age".to_owned(), "town".to_owned()));
    assert_eq!(largest.cells, 400);
    assert_eq!(cost.suggestions.len(), 1);
    assert_eq!(
        (cost.suggestions[0].column.as_str(), cost.suggestions[0].to),
        ("age", 32)
    );
    assert_eq!(cost.coarsened_pair_cells, 32 * 6 + 8);

    let limited = check_schema(&schema, Some(100));
    assert!(limited.coarsened_pair_cells <= 100);
    assert_eq!(
        (
            limited.suggestions[0].column.as_str(),
            limited.suggestions[0].to
        ),
        ("age", 13)
    );
    let hopeless = check_schema(&schema, Some(1));
    assert_eq!(hopeless.coarsened_pair_cells, 12);
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Schema::from_json("s.json", &bytes);
    }

    #[test]
    fn damaged_schema_is_rejected_or_round_trips(
        position in 0usize..400, byte: u8, cut in 0usize..500,
    ) {
        let mut bytes = example().to_string().into_bytes();
        let position = position % bytes.len();
        bytes[position] = byte;
        bytes.truncate(bytes.len() - cut.min(bytes.len()) / 2);
        if let Ok(schema) = Schema::from_json("s.json", &bytes) {
            let again = Schema::from_json("s.json", schema.to_json().as_bytes()).unwrap();
            prop_assert_eq!(&again, &schema);
            prop_assert_eq!(again.digest(), schema.digest());
        }
    }

    #[test]
    fn limits_round_trip_exactly(min in -1e9..1e9f64, width in 1.0..1e9f64) {
        let column = json!({"name": "a", "kind": "numeric", "min": min, "max": min + width, "bins": 7});
        let schema = with_column(&column).unwrap();
        let again = Schema::from_json("s.json", schema.to_json().as_bytes()).unwrap();
        prop_assert_eq!(again.digest(), schema.digest());
    }

    #[test]
    fn pair_cells_are_the_sum_over_pairs(sizes in proptest::collection::vec(1usize..50, 0..12)) {
        let domain = fhaim_domain::Domain::new(sizes);
        let sum: usize = domain.pairs().iter().map(|pair| domain.cells(pair).unwrap()).sum();
        prop_assert_eq!(pair_cells(&domain), sum as u64);
    }
}

/// A holder of some columns has them as a separate table, with the same codes.
#[test]
fn partial_schema_keeps_its_fields_unchanged() {
    let whole = parse(&example()).unwrap();
    let part = whole.part(&[1, 3]).unwrap();
    assert_eq!(part.domain().sizes(), [7, 3]);
    assert_eq!((part.name(), part.target()), ("people", Some(1)));
    assert_eq!(part.columns()[0], whole.columns()[1]);
    assert_eq!(whole.part(&[0, 2]).unwrap().target(), None);
    assert_eq!(whole.part(&[0, 1, 2, 3]).unwrap(), whole);
    assert!(matches!(
        whole.part(&[]),
        Err(fhaim_domain::SchemaProblem::Columns(..))
    ));
    let dates = parse(&json!({"name": "stays", "columns": [
        {"name": "in", "kind": "date", "min": "2020-01-01", "max": "2020-12-31", "bins": 12,
         "digits": 31, "format": "%Y-%m-%d"},
        {"name": "out", "kind": "date", "relative_to": "in", "min": 0, "max": 100, "bins": 5,
         "format": "%Y-%m-%d"}]}));
    let dates = dates.unwrap();
    let part = dates.part(&[0]).unwrap();
    assert_eq!(
        part.domain().sizes(),
        &dates.domain().sizes()[..part.domain().len()]
    );
    let error = dates.part(&[1]).unwrap_err().to_string();
    assert!(error.contains("\"in\""), "{error}");
}

#[test]
fn digest_of_a_schema_without_new_keys_is_unchanged() {
    let digest = |schema: &Json| {
        let digest = parse(schema).unwrap().digest();
        let hex = digest.iter().map(|byte| format!("{byte:02x}"));
        hex.collect::<String>()
    };
    assert_eq!(
        digest(&example()),
        "ca7a968d39833ec4734eceddc4c6e6ad345f334e0f4fda2dbc2f032ee14429fd"
    );
    let mut kinds = json!({"name": "t", "target": "gain", "columns": [
        {"name": "gain", "kind": "number", "special": [0, 99999], "min": 1, "max": 40, "bins": 4,
         "digits": 10, "integer": true, "nullable": true},
        {"name": "born", "kind": "date", "format": "%d.%m.%Y", "min": "1990-01-01",
         "max": "1999-12-31", "bins": 10, "digits": 366},
        {"name": "icd", "kind": "code", "codes": ["A00", "A01", "B20", "X"], "prefix": 1, "other": "X"},
        {"name": "id", "kind": "identifier", "pattern": "[0-9]{2}"},
        {"name": "note", "kind": "left-out", "reason": "free text"},
        {"name": "old", "kind": "numeric", "min": -0.0, "max": 10, "bins": 5, "integer": false},
        {"name": "sex", "kind": "categorical", "categories": ["f", "m"], "nullable": false}
    ]});
    let pinned = "824c35f97961ab051736e9003f54bcc86287847ec518ddf4013c2edd26a3510a";
    assert_eq!(digest(&kinds), pinned);
    for column in [0, 1, 2, 5, 6] {
        kinds["columns"][column]["missing"] = json!([]);
    }
    assert_eq!(digest(&kinds), pinned);
    kinds["columns"][0]["missing"] = json!(["NA"]);
    assert_ne!(digest(&kinds), pinned);
}

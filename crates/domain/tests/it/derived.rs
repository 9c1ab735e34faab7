//! Derived columns: which are accepted, how tables with them are checked, and how their values are written.
#![allow(clippy::unwrap_used)]

use fhaim_domain::{
    BrokenConstraint, Error, NearUnique, OutOfRange, Output, ReadOptions, Scalar, Schema,
    Streaming, Table, TableReading, WriteOptions, parse_conditions, read_csv, stream_csv,
    write_csv,
};
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value as Json, json};

fn parse(columns: &Json) -> Result<Schema, String> {
    let schema = json!({"name": "t", "columns": columns});
    Schema::from_json("s.json", schema.to_string().as_bytes()).map_err(|error| error.to_string())
}

fn read(schema: &Schema, csv: &str) -> Result<TableReading, String> {
    let read = read_csv(schema.clone(), csv.as_bytes(), &ReadOptions::new("t.csv"));
    read.map_err(|error| error.to_string())
}

/// Number of records of a table that break each rule.
fn broken(schema: &Schema, csv: &str) -> Vec<u64> {
    let options = ReadOptions {
        broken: BrokenConstraint::Count,
        ..ReadOptions::new("t.csv")
    };
    read_csv(schema.clone(), csv.as_bytes(), &options)
        .unwrap()
        .broken
}

fn write(table: &Table) -> String {
    let mut csv = Vec::new();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    write_csv(table, &mut csv, &mut rng, &WriteOptions::new("o.csv")).unwrap();
    String::from_utf8(csv).unwrap()
}

/// A column of wards, and one that is derived from it.
fn wards(ward: &Json, derived: &Json) -> Json {
    let mut columns = json!([
        {"name": "ward", "kind": "categorical", "categories": ["s", "n"]},
        {"name": "name", "kind": "derived", "from": "ward", "values": {"s": "Surgery", "n": "Neurology"}}
    ]);
    for (column, keys) in columns
        .as_array_mut()
        .unwrap()
        .iter_mut()
        .zip([ward, derived])
    {
        for (key, value) in keys.as_object().unwrap() {
            column[key] = value.clone();
        }
    }
    columns
}

fn no_keys() -> Json {
    json!({})
}

#[test]
fn derived_column_has_no_codes_and_is_written_with_the_other_columns_value() {
    let columns = json!([
        {"name": "name", "kind": "derived", "from": "ward", "values": {"s": "Surgery", "n": "", "": "none"},
         "nullable": true},
        {"name": "ward", "kind": "categorical", "categories": ["s", "n"], "nullable": true},
        {"name": "same", "kind": "derived", "from": "ward", "nullable": true},
        {"name": "copy", "kind": "derived", "from": "id"},
        {"name": "id", "kind": "identifier", "pattern": "P[0-9]{2}"},
        {"name": "note", "kind": "left-out"},
        {"name": "years", "kind": "derived", "from": "age"},
        {"name": "age", "kind": "number", "integer": true, "min": 0, "max": 99, "bins": 10, "digits": 10}
    ]);
    let schema = parse(&columns).unwrap();
    assert_eq!(schema.domain().sizes(), [3, 10, 10]);
    let csv = "name,ward,same,copy,id,note,years,age\n\
        Surgery,s,s,X,X,a,47,47\n,n,n,Y,Y,b,5,5\nnone,,,,,c,0,0\n";
    let reading = read(&schema, csv).unwrap();
    assert_eq!(reading.broken, [0; 4]);
    assert_eq!(
        write(&reading.table),
        "name,ward,same,copy,id,years,age\nSurgery,s,s,P00,P00,47,47\n,n,n,P01,P01,5,5\n\
         none,,,P02,P02,0,0\n"
    );
    let again = Schema::from_json("s.json", schema.to_json().as_bytes()).unwrap();
    assert_eq!(again, schema);
    assert_eq!(schema.fields()[0].derived_from(), Some("ward"));
    assert_eq!(schema.fields()[1].derived_from(), None);
}

#[test]
fn unsuitable_other_column_is_refused() {
    for from in ["nothing", "name", "note", "more"] {
        let mut columns = wards(&no_keys(), &json!({ "from": from }));
        let more = [
            json!({"name": "note", "kind": "left-out"}),
            json!({"name": "more", "kind": "derived", "from": "ward"}),
        ];
        columns.as_array_mut().unwrap().extend(more);
        assert_eq!(
            parse(&columns).unwrap_err(),
            format!(
                "s.json: column \"name\": `from` is {from:?}, but it must name another column, of any kind \
                 except `derived` and `left-out`"
            )
        );
    }
}

#[test]
fn values_that_do_not_fit_the_other_column_are_refused() {
    let long = "x".repeat(1025);
    for (ward, derived, said) in [
        (
            no_keys(),
            json!({"values": {"s": "Surgery"}}),
            r#"`values` has no text for "n", which is a value of "ward""#,
        ),
        (
            no_keys(),
            json!({"values": {"s": "a", "n": "b", "x": "c"}}),
            r#"`values` has a text for "x", which is not a value of "ward""#,
        ),
        (
            no_keys(),
            json!({"values": {"s": "a", "n": "b", "": "c"}}),
            r#"`values` has a text for "", which is not a value of "ward""#,
        ),
        (
            no_keys(),
            json!({"values": {"s": "a", "n": long}}),
            "must have at most 1024 bytes and no control characters",
        ),
        (
            no_keys(),
            json!({"values": {"s": "a", "n": "b\n"}}),
            "must have at most 1024 bytes and no control characters",
        ),
        (
            no_keys(),
            json!({"values": {"s": "a", "n": ""}}),
            "make it `nullable`",
        ),
        (json!({"nullable": true}), no_keys(), "make it `nullable`"),
        (
            json!({"nullable": true}),
            json!({"values": null}),
            "make it `nullable`",
        ),
        (
            no_keys(),
            json!({"missing": ["NA"]}),
            "a derived column has no `missing`",
        ),
        (
            no_keys(),
            json!({"invalid": "missing"}),
            "a derived column has no `invalid`",
        ),
        (
            no_keys(),
            json!({"pattern": "uuid"}),
            "a derived column has no `pattern`",
        ),
        (
            no_keys(),
            json!({"from": null}),
            "a derived column needs `from`",
        ),
    ] {
        let error = parse(&wards(&ward, &derived)).unwrap_err();
        assert!(error.starts_with("s.json: column \"name\": "), "{error}");
        assert!(error.ends_with(said), "{error}");
    }
    let twice = r#"{"name": "t", "columns": [
        {"name": "ward", "kind": "categorical", "categories": ["s"]},
        {"name": "name", "kind": "derived", "from": "ward", "values": {"s": "a", "s": "b"}}]}"#;
    let error = Schema::from_json("s.json", twice.as_bytes()).unwrap_err();
    assert!(
        error.to_string().contains("\"s\" is named twice"),
        "{error}"
    );
}

#[test]
fn text_for_missing_values_of_the_other_column_is_optional() {
    let nullable = json!({"nullable": true});
    let open = parse(&wards(&nullable, &nullable)).unwrap();
    assert_eq!(broken(&open, "ward,name\n,\n,Surgery\ns,\n"), [2]);
    let named = json!({"values": {"s": "Surgery", "n": "Neurology", "": "none"}});
    let named = parse(&wards(&nullable, &named)).unwrap();
    assert_eq!(broken(&named, "ward,name\n,none\n,\ns,Surgery\n"), [1]);
}

#[test]
fn values_of_a_column_without_a_list_are_refused() {
    let number = json!({"kind": "number", "integer": true, "min": 1, "max": 2, "bins": 2,
        "categories": null});
    let error = parse(&wards(&number, &json!({"values": {"1": "a", "2": "b"}}))).unwrap_err();
    assert!(error.contains("\"ward\" is neither"), "{error}");
    let codes = json!({"kind": "code", "codes": ["s", "n"], "prefix": 1, "categories": null});
    assert!(parse(&wards(&codes, &no_keys())).is_ok());
}

#[test]
fn schema_of_an_identifier_and_its_copy_is_refused() {
    let columns = json!([
        {"name": "id", "kind": "identifier", "pattern": "uuid"},
        {"name": "copy", "kind": "derived", "from": "id"}
    ]);
    let error = parse(&columns).unwrap_err();
    assert!(error.contains("no column is kept"), "{error}");
}

#[test]
fn derived_target_is_refused_with_the_other_columns_name() {
    let schema = json!({"name": "t", "target": "name", "columns": wards(&no_keys(), &no_keys())});
    let error = Schema::from_json("s.json", schema.to_string().as_bytes()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "s.json: the target \"name\" is derived from \"ward\": name that column as the target"
    );
}

#[test]
fn condition_on_a_derived_column_is_refused_with_the_other_columns_name() {
    let schema = parse(&wards(&no_keys(), &no_keys())).unwrap();
    let error = parse_conditions("name=Surgery", &schema).unwrap_err();
    assert_eq!(
        error.to_string(),
        "where: column \"name\" is derived from \"ward\": state a condition on \"ward\""
    );
}

#[test]
fn constraint_on_a_derived_column_is_refused() {
    let mut columns = wards(&no_keys(), &no_keys());
    columns.as_array_mut().unwrap().extend([
        json!({"name": "a", "kind": "number", "integer": true, "min": 0, "max": 9, "bins": 5}),
        json!({"name": "b", "kind": "derived", "from": "a"}),
    ]);
    for constraint in [
        json!({"never": {"name": "Surgery", "a": "0 to 1"}}),
        json!({"missing_together": ["name", "ward"]}),
        json!({"implies": {"when": {"a": ["0 to 1"]}, "then": {"name": ["Surgery"]}}}),
        json!({"at_most": ["a", "b"]}),
    ] {
        let schema = json!({"name": "t", "columns": columns, "constraints": [constraint]});
        let error = Schema::from_json("s.json", schema.to_string().as_bytes()).unwrap_err();
        let error = error.to_string();
        assert!(
            error.ends_with("name the column that it follows from"),
            "{error}"
        );
    }
}

#[test]
fn value_that_does_not_follow_is_refused_with_its_row() {
    let schema = parse(&wards(&no_keys(), &no_keys())).unwrap();
    let csv = "ward,name\ns,Surgery\nn,Surgery\n";
    let rule = r#""name" follows from "ward""#;
    assert_eq!(rule_texts(&schema), [rule]);
    let said = format!("t.csv: row 2 (line 3) breaks a constraint of the schema: {rule}");
    assert_eq!(read(&schema, csv).unwrap_err(), said);
    let stream = |broken| -> Result<Streaming, Error> {
        let options = ReadOptions {
            broken,
            ..ReadOptions::new("t.csv")
        };
        stream_csv(&schema, csv.as_bytes(), &options, |_| Ok(()))
    };
    assert_eq!(
        stream(BrokenConstraint::Refuse).unwrap_err().to_string(),
        said
    );
    assert_eq!(stream(BrokenConstraint::Count).unwrap().broken, [1]);
}

#[test]
fn counts_of_broken_rules_are_in_the_order_of_their_texts() {
    let mut columns = wards(&no_keys(), &no_keys());
    columns.as_array_mut().unwrap().insert(
        0,
        json!({"name": "copy", "kind": "derived", "from": "ward"}),
    );
    columns
        .as_array_mut()
        .unwrap()
        .push(json!({"name": "sex", "kind": "categorical", "categories": ["f", "m"]}));
    let schema = json!({"name": "t", "columns": columns, "constraints": [
        {"never": {"ward": "s", "sex": "m"}}]});
    let schema = Schema::from_json("s.json", schema.to_string().as_bytes()).unwrap();
    assert_eq!(
        rule_texts(&schema),
        [
            r#"no record has "sex" "m" with "ward" "s""#,
            r#""copy" equals "ward""#,
            r#""name" follows from "ward""#
        ]
    );
    let csv = "copy,ward,name,sex\ns,s,Surgery,m\nn,s,Surgery,f\ns,s,Neurology,f\nn,s,x,f\n";
    assert_eq!(broken(&schema, csv), [1, 2, 2]);
}

#[test]
fn table_without_a_derived_column_or_the_column_that_it_follows_from_is_refused() {
    let schema = parse(&wards(&no_keys(), &no_keys())).unwrap();
    for (csv, absent) in [("ward\ns\n", "name"), ("name\nSurgery\n", "ward")] {
        assert_eq!(
            read(&schema, csv).unwrap_err(),
            format!("t.csv: the schema's column {absent:?} is missing from the header")
        );
    }
    let columns = json!([
        {"name": "ward", "kind": "categorical", "categories": ["s"]},
        {"name": "id", "kind": "identifier", "pattern": "uuid"},
        {"name": "copy", "kind": "derived", "from": "id"}
    ]);
    let schema = parse(&columns).unwrap();
    let error = read(&schema, "ward,copy\ns,1\n").unwrap_err();
    assert!(
        error.ends_with("column \"id\" is missing from the header"),
        "{error}"
    );
    assert_eq!(broken(&schema, "ward,id,copy\ns,1,1\ns,2,1\n"), [1]);
}

#[test]
fn value_outside_the_list_may_have_any_derived_value() {
    let folded = json!({"other": "n"});
    let schema = parse(&wards(&folded, &no_keys())).unwrap();
    // `x` is read as `n`, and `n` itself has a name.
    assert_eq!(
        broken(&schema, "ward,name\nx,Xrays\nn,Xrays\nn,Neurology\n"),
        [1]
    );
    let invalid = json!({"invalid": "missing", "nullable": true});
    let schema = parse(&wards(&invalid, &json!({"nullable": true}))).unwrap();
    assert_eq!(broken(&schema, "ward,name\nx,Xrays\n,Xrays\n,\n"), [1]);
}

#[test]
fn repeated_text_is_compared_as_it_stands() {
    let columns = json!([
        {"name": "age", "kind": "number", "integer": true, "min": 0, "max": 99, "bins": 10, "nullable": true,
         "missing": ["NA"], "invalid": "missing"},
        {"name": "years", "kind": "derived", "from": "age", "nullable": true}
    ]);
    let schema = parse(&columns).unwrap();
    let options = ReadOptions {
        broken: BrokenConstraint::Count,
        out_of_range: OutOfRange::Clamp,
        ..ReadOptions::new("t.csv")
    };
    let count = |csv: &str| {
        let reading = read_csv(schema.clone(), csv.as_bytes(), &options);
        reading.unwrap().broken
    };
    // Clipped, invalid and missing numbers.
    assert_eq!(
        count("age,years\n120,120\n4o,4o\n4o,\nNA,\n,NA\nNA,NA\n,\n"),
        [0]
    );
    assert_eq!(
        count("age,years\n120,99\n4o,40\n47,47.0\n47,\n,47\nNA,x\n"),
        [6]
    );
    let written = write(&read(&schema, "age,years\nNA,\n47,47\n").unwrap().table);
    assert!(written.starts_with("age,years\nNA,NA\n"), "{written}");
    assert!(read(&schema, &written).is_ok());
}

#[test]
fn category_with_the_text_of_a_missing_marker_is_read_as_a_category() {
    let columns = json!([
        {"name": "ward", "kind": "categorical", "categories": ["NA", "b"], "nullable": true},
        {"name": "same", "kind": "derived", "from": "ward", "nullable": true},
        {"name": "name", "kind": "derived", "from": "ward", "values": {"NA": "x", "b": "NA", "": ""},
         "nullable": true}
    ]);
    let schema = parse(&columns).unwrap();
    let options = ReadOptions {
        broken: BrokenConstraint::Count,
        missing: vec![String::new(), "NA".to_owned(), "-".to_owned()],
        ..ReadOptions::new("t.csv")
    };
    let csv = "ward,same,name\nNA,NA,x\nb,b,NA\n,-,-\nNA,,x\n,,NA\n";
    let reading = read_csv(schema, csv.as_bytes(), &options).unwrap();
    assert_eq!(reading.broken, [1, 1]);
}

#[test]
fn derived_text_cannot_stand_for_missing_values() {
    let derived = json!({"values": {"s": "NA", "n": ""}, "nullable": true});
    let schema = parse(&wards(&no_keys(), &derived)).unwrap();
    let table = read(&schema, "ward,name\ns,NA\nn,\n").unwrap().table;
    let options = WriteOptions {
        missing: "NA".to_owned(),
        ..WriteOptions::new("o.csv")
    };
    let written = write_csv(
        &table,
        Vec::new(),
        &mut ChaCha8Rng::seed_from_u64(1),
        &options,
    );
    let error = written.unwrap_err().to_string();
    assert!(
        error.contains("column \"name\": \"NA\" cannot stand"),
        "{error}"
    );
}

/// A list of pairs is as private as the list of the other column, and both are refused together.
#[test]
fn near_unique_list_with_derived_texts_is_refused() {
    let categories: Vec<String> = (0..40).map(|n| format!("c{n}")).collect();
    let values: serde_json::Map<String, Json> = (0..40)
        .map(|n| (format!("c{n}"), json!(format!("n{n}"))))
        .collect();
    let schema = parse(&json!([
        {"name": "code", "kind": "categorical", "categories": categories},
        {"name": "name", "kind": "derived", "from": "code", "values": values}
    ]));
    let rows: String = (0..40).map(|n| format!("c{n},n{n}\n")).collect();
    let options = ReadOptions {
        near_unique: NearUnique::Refuse,
        ..ReadOptions::new("t.csv")
    };
    let csv = format!("code,name\n{rows}");
    let error = read_csv(schema.unwrap(), csv.as_bytes(), &options).unwrap_err();
    assert!(matches!(error, Error::NearUnique { column, .. } if column == "code"));
}

#[test]
fn part_without_the_column_that_another_follows_from_is_refused() {
    let mut columns = wards(&no_keys(), &no_keys());
    let more = json!({"name": "sex", "kind": "categorical", "categories": ["f", "m"]});
    columns.as_array_mut().unwrap().push(more);
    let schema = parse(&columns).unwrap();
    for fields in [vec![0, 1], vec![1, 0], vec![2], vec![0, 2]] {
        assert!(schema.part(&fields).is_ok() && schema.check_part(&fields).is_ok());
    }
    for fields in [vec![1, 2], vec![1]] {
        let error = schema.part(&fields).unwrap_err().to_string();
        assert_eq!(schema.check_part(&fields).unwrap_err().to_string(), error);
        assert!(
            error.starts_with("column \"name\": `from` is \"ward\""),
            "{error}"
        );
    }
}

#[test]
fn derived_columns_are_part_of_the_digest() {
    let digest = |derived: &Json| parse(&wards(&no_keys(), derived)).unwrap().digest();
    let whole = digest(&no_keys());
    assert_ne!(digest(&json!({"values": null})), whole);
    assert_ne!(
        digest(&json!({"values": {"s": "Surgery", "n": "Nephrology"}})),
        whole
    );
}

#[test]
fn copies_have_the_type_of_the_other_column() {
    let columns = json!([
        {"name": "age", "kind": "number", "integer": true, "min": 0, "max": 99, "bins": 10},
        {"name": "ill", "kind": "categorical", "categories": ["true", "false"]},
        {"name": "born", "kind": "date", "format": "%Y-%m-%d", "min": "2000-01-01", "max": "2009-12-31",
         "bins": 10},
        {"name": "id", "kind": "identifier", "pattern": "uuid"},
        {"name": "d age", "kind": "derived", "from": "age"},
        {"name": "d ill", "kind": "derived", "from": "ill"},
        {"name": "d born", "kind": "derived", "from": "born"},
        {"name": "d id", "kind": "derived", "from": "id"},
        {"name": "well", "kind": "derived", "from": "ill", "values": {"true": "false", "false": "true"}},
        {"name": "words", "kind": "derived", "from": "ill", "values": {"true": "ill", "false": "well"}}
    ]);
    let schema = parse(&columns).unwrap();
    let table = read(
        &schema,
        "age,ill,born,id,d age,d ill,d born,d id,well,words\n\
         47,true,2000-01-31,x,47,true,2000-01-31,x,false,ill\n",
    );
    let table = table.unwrap().table;
    let mut values = Vec::new();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    schema.values(
        &|attribute| table.column(attribute)[0],
        0,
        &mut rng,
        &mut values,
    );
    let typed = |index: usize| {
        let field = schema.value_field(&schema.fields()[index]);
        let output = field.output(schema.columns());
        (output, field.scalar(output, &values[index]))
    };
    for index in 0..4 {
        assert_eq!(typed(index + 4), typed(index));
    }
    assert_eq!(typed(4).0, Output::Integer);
    assert_eq!(typed(5), (Output::Flag, Some(Scalar::Flag(true))));
    assert_eq!(typed(6).0, Output::Date);
    assert_eq!(typed(7), (Output::Text, None));
    assert_eq!(typed(8), (Output::Flag, Some(Scalar::Flag(false))));
    assert_eq!(typed(9).0, Output::Category);
}

/// Columns of every kind that others may follow from.
fn others() -> Json {
    json!([
        {"name": "town", "kind": "categorical", "categories": ["Ulm", "Bonn", "rest"], "other": "rest",
         "nullable": true, "missing": ["NA"]},
        {"name": "icd", "kind": "code", "codes": ["A00", "A01", "B20", "C", "D1", "D2", "D3"], "prefix": 1,
         "nullable": true},
        {"name": "sex", "kind": "categorical", "categories": ["f", "m"]},
        {"name": "dose", "kind": "numeric", "min": 0, "max": 10, "bins": 5},
        {"name": "cost", "kind": "number", "decimals": 2, "decimal_comma": true, "after": " EUR",
         "special": [0, "<0.5"], "min": 1, "max": 99, "bins": 10, "digits": 10, "nullable": true},
        {"name": "came", "kind": "datetime", "format": "%d.%m.%Y %H:%M:%S", "min": "2020-01-01",
         "max": "2024-12-31", "bins": 5, "digits": 366, "special": ["unknown"], "nullable": true},
        {"name": "left", "kind": "date", "format": "%Y-%m-%d", "relative_to": "came", "edges": [0, 10, 400],
         "nullable": true},
        {"name": "woke", "kind": "time", "format": "%H:%M", "min": "04:00", "max": "11:59", "bins": 8},
        {"name": "slept", "kind": "duration", "format": "%H:%M", "min": "00:00", "max": "23:59", "bins": 24},
        {"name": "id", "kind": "identifier", "pattern": "S[0-9]{1}"}
    ])
}

/// Returns a schema with derived columns at random places.
fn random_schema(rng: &mut ChaCha8Rng) -> Schema {
    let mut columns = Vec::new();
    for mut other in others().as_array().unwrap().iter().cloned() {
        let lists = ["categories", "codes"].map(|key| other[key].as_array().cloned());
        other["nullable"] = json!(other["nullable"] == true || rng.random_bool(0.3));
        let copies = rng.random_range(0..3);
        columns.push(other.clone());
        for copy in 0..copies {
            let name = format!("{copy} of {}", other["name"]);
            let mut derived =
                json!({"name": name, "kind": "derived", "from": other["name"], "nullable": true});
            if let Some(list) = lists.iter().flatten().next()
                && rng.random_bool(0.7)
            {
                let texts = ["one", "two", "NA", "", "Ulm"];
                let mut values = serde_json::Map::new();
                for key in list.iter().filter_map(Json::as_str) {
                    values.insert(key.to_owned(), json!(texts[rng.random_range(0..5)]));
                }
                if other["nullable"] == true && rng.random_bool(0.5) {
                    values.insert(String::new(), json!(texts[rng.random_range(0..5)]));
                }
                derived["values"] = json!(values);
            }
            columns.push(derived);
        }
    }
    // A column relative to another stays behind it.
    let mut order: Vec<usize> = (0..columns.len()).collect();
    for index in (1..order.len()).rev() {
        order.swap(index, rng.random_range(0..=index));
    }
    let place = |name: &str| {
        columns
            .iter()
            .position(|column| column["name"] == name)
            .unwrap()
    };
    let at = |field: usize| order.iter().position(|&other| other == field).unwrap();
    let (came, left) = (at(place("came")), at(place("left")));
    if came > left {
        order.swap(came, left);
    }
    let columns: Vec<Json> = order.iter().map(|&index| columns[index].clone()).collect();
    parse(&json!(columns)).unwrap()
}

/// Draws codes that all attributes have, with existing digits, and no date relative to a missing one.
fn random_codes(schema: &Schema, rng: &mut ChaCha8Rng) -> Vec<u32> {
    let sizes = schema.domain().sizes().iter();
    let mut codes: Vec<u32> = sizes
        .map(|&size| rng.random_range(0..size as u32))
        .collect();
    for digit in schema.domain().digits() {
        codes[digit.fine()] %= digit.parts()[codes[digit.coarse()] as usize];
    }
    codes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// A written table is read as the same codes, and every derived value follows.
    #[test]
    fn drawn_records_satisfy_the_rules_of_derived_columns(seed: u64) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let schema = random_schema(&mut rng);
        let records: Vec<Vec<u32>> = (0..50).map(|_| random_codes(&schema, &mut rng)).collect();
        let columns = (0..schema.columns().len())
            .map(|attribute| records.iter().map(|codes| codes[attribute]).collect());
        let table = Table::new(schema.clone(), columns.collect()).unwrap();
        let mut csv = Vec::new();
        write_csv(&table, &mut csv, &mut rng, &WriteOptions::new("o.csv")).unwrap();
        let again = read_csv(schema.clone(), &csv[..], &ReadOptions::new("o.csv"));
        let again = again.map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert!(again.broken.iter().all(|&broken| broken == 0));
        // A date relative to a missing one is missing, and a word has no time of day.
        for (attribute, column) in schema.columns().iter().enumerate() {
            if !column.name().starts_with("left") && !column.name().starts_with("came (") {
                prop_assert_eq!(again.table.column(attribute), table.column(attribute), "{}", column.name());
            }
        }
    }

    /// Any other text in a derived column is found.
    #[test]
    fn changed_cell_of_a_derived_column_breaks_its_rule(seed: u64) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let schema = random_schema(&mut rng);
        let codes = random_codes(&schema, &mut rng);
        let columns = codes.iter().map(|&code| vec![code]).collect();
        let table = Table::new(schema.clone(), columns).unwrap();
        let text = write(&table);
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let header = reader.headers().unwrap().clone();
        let record = reader.records().next().unwrap().unwrap();
        let derived: Vec<usize> = schema.fields().iter().enumerate()
            .filter(|(_, field)| field.derived_from().is_some()).map(|(index, _)| index).collect();
        for (rule, &field) in derived.iter().enumerate() {
            let mut changed: Vec<&str> = record.iter().collect();
            changed[field] = "another text";
            let mut csv = csv::Writer::from_writer(Vec::new());
            csv.write_record(&header).unwrap();
            csv.write_record(&changed).unwrap();
            let csv = String::from_utf8(csv.into_inner().unwrap()).unwrap();
            let mut expected = vec![0; derived.len()];
            expected[rule] = 1;
            prop_assert_eq!(broken(&schema, &csv), expected);
        }
    }
}

fn rule_texts(schema: &Schema) -> Vec<String> {
    schema.rules().into_iter().map(|rule| rule.text).collect()
}

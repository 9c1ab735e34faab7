//! What the page asks for, natively: drafts, refusals, and ciphertexts that decrypt to the table.

#![allow(clippy::unwrap_used)]

use fhaim_domain::Schema;
use fhaim_dp::generator;
use fhaim_he::SecretKey;
use fhaim_protocol::terms::Terms;
use fhaim_protocol::upload::{Object, UploadPlan, decode_object};
use fhaim_sdk_wasm::{Answer, Session, Told};
use serde_json::{Value, json};

const TABLE: &str = "colour,size\nred,1\nblue,2\nred,3\nred,9\n";

fn ask(session: &mut Session, request: &Value, input: &[u8]) -> Result<Answer, String> {
    let answer = session.answer(request.to_string().as_bytes(), input);
    answer.map_err(|error| error.to_string())
}

fn json_of(answer: Answer) -> Value {
    match answer {
        Answer::Json(text) => serde_json::from_str(&text).unwrap(),
        Answer::Bytes(_) => panic!("bytes, not JSON"),
    }
}

fn schema() -> Value {
    json!({"name": "t", "columns": [
        {"name": "colour", "kind": "categorical", "categories": ["blue", "red"]},
        {"name": "size", "kind": "numeric", "min": 0, "max": 10, "bins": 2, "integer": true}]})
}

fn read(session: &mut Session, table: &str) -> Result<Value, String> {
    let request = json!({"op": "read", "format": {"file": "t.csv"}, "schema": schema()});
    ask(session, &request, table.as_bytes()).map(json_of)
}

fn terms() -> Terms {
    let schema = Schema::from_json("t.json", schema().to_string().as_bytes()).unwrap();
    let terms = Terms::new(schema, 1.0, 1e-9, 64);
    terms.complete(&fhaim_synth::Mechanisms).unwrap()
}

#[test]
fn a_draft_is_a_schema_that_reads_the_table() {
    let mut session = Session::default();
    let request = json!({"op": "draft", "format": {"file": "t.csv"}, "name": "t"});
    let draft = json_of(ask(&mut session, &request, TABLE.as_bytes()).unwrap());
    assert_eq!(draft["schema"]["columns"].as_array().unwrap().len(), 2);
    let request = json!({"op": "check", "schema": draft["schema"]});
    let checked = json_of(ask(&mut session, &request, b"").unwrap());
    assert_eq!(checked["cost"]["pairs"], 1);
    let request = json!({"op": "read", "format": {"file": "t.csv"}, "schema": draft["schema"]});
    let read = json_of(ask(&mut session, &request, TABLE.as_bytes()).unwrap());
    assert_eq!(
        (&read["records"], &read["record_bound"]),
        (&json!(4), &json!(64))
    );
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let mut session = Session::default();
    let error = read(&mut session, "colour,size\nred,1\ngreen,2\n").unwrap_err();
    assert!(
        error.contains("row 2") && error.contains("colour"),
        "{error}"
    );
    let error = read(&mut session, "colour,size\nred,11\n").unwrap_err();
    assert!(error.contains("row 1") && error.contains("size"), "{error}");
    for request in [
        json!({}),
        json!({"op": "none"}),
        json!({"op": "encrypt", "object": "x"}),
    ] {
        assert!(ask(&mut session, &request, b"").is_err(), "{request}");
    }
    // Nothing to encrypt yet, and then no key.
    let encrypt = json!({"op": "encrypt", "object": "column/0/0"});
    assert!(ask(&mut session, &encrypt, b"").is_err());
    read(&mut session, TABLE).unwrap();
    assert!(
        ask(&mut session, &encrypt, b"")
            .unwrap_err()
            .contains("key")
    );
    let prepare = json!({"op": "prepare", "terms": terms()});
    assert!(ask(&mut session, &prepare, b"no key").is_err());
}

#[test]
fn mechanisms_are_those_that_run_under_encryption() {
    let listed = ask(&mut Session::default(), &json!({"op": "mechanisms"}), b"");
    let listed = json_of(listed.unwrap());
    let listed = listed.as_array().unwrap();
    let names: Vec<&str> = listed.iter().map(|m| m["name"].as_str().unwrap()).collect();
    assert_eq!(names.first(), Some(&"staged"));
    assert!(!names.contains(&"aim"), "{names:?}");
    for mechanism in listed {
        for text in ["label", "about"] {
            assert!(mechanism[text].as_str().is_some_and(|text| !text.is_empty()));
        }
        let mut terms = terms().choices();
        terms.mechanism = mechanism["name"].as_str().unwrap().to_owned();
        let plan = json!({"op": "plan", "terms": terms, "records": 4});
        ask(&mut Session::default(), &plan, b"").unwrap();
    }
}

/// As spreadsheet programs write CSV: a byte order mark, semicolons, lines that end as on Windows.
#[test]
fn a_spreadsheets_csv_is_read() {
    let mut session = Session::default();
    let format = json!({"file": "t.csv", "delimiter": ";"});
    let request = json!({"op": "read", "format": format, "schema": schema()});
    let table = "\u{feff}colour;size\r\nred;1\r\n\"blue\";2\r\n";
    let read = json_of(ask(&mut session, &request, table.as_bytes()).unwrap());
    assert_eq!(read["columns"][0]["counts"], json!([1, 1]));
}

#[test]
fn columns_that_cannot_be_drafted_are_named() {
    let records = (0..2_000).map(|i| format!("name {i},{}\n", i % 3));
    let table = format!("person,group\n{}", records.collect::<String>());
    let request = json!({"op": "draft", "format": {"file": "t.csv"}, "name": "t"});
    let mut session = Session::default();
    let answer = session.answer(request.to_string().as_bytes(), table.as_bytes());
    let told = Told::from(&answer.unwrap_err());
    assert_eq!(told.columns, ["person"], "{}", told.detail);
}

#[test]
fn objects_decrypt_to_the_one_hot_columns() {
    let terms = terms();
    let plan = terms.plan().unwrap();
    let params = plan.parameters().unwrap();
    let mut rng = generator().unwrap();
    let secret = SecretKey::random(&params, &mut rng).unwrap();
    let public = secret.public_key(&mut rng).unwrap();
    let public = public.to_bytes().unwrap();

    let mut session = Session::default();
    read(&mut session, TABLE).unwrap();
    let request = json!({"op": "plan", "terms": terms, "records": 4});
    let planned = json_of(ask(&mut session, &request, b"").unwrap());
    assert!(planned["sigmas"][0].as_f64().unwrap() > 0.0);
    let request = json!({"op": "prepare", "terms": terms});
    let objects = json_of(ask(&mut session, &request, &public).unwrap());
    assert_eq!(objects, planned["objects"].as_array().unwrap().len());

    let domain = terms.schema.domain();
    let upload = UploadPlan::for_table(domain, 4, plan.ladder().unwrap(), &plan.set).unwrap();
    let columns = [[0, 1, 0, 0], [1, 0, 1, 1], [1, 1, 1, 0], [0, 0, 0, 1]];
    for (column, bits) in columns.into_iter().enumerate() {
        let object = Object::Column { column, chunk: 0 };
        let request = json!({"op": "encrypt", "object": object});
        let Answer::Bytes(bytes) = ask(&mut session, &request, b"").unwrap() else {
            panic!("JSON, not bytes");
        };
        let ciphertexts = decode_object(&params, &upload, object, &bytes).unwrap();
        let (values, _) = secret.decrypt(&ciphertexts).unwrap();
        assert_eq!(values[..4], bits.map(i128::from), "column {column}");
        assert!(values[4..].iter().all(|&value| value == 0));
    }
    let outside = json!({"op": "encrypt", "object": "column/4/0"});
    assert!(ask(&mut session, &outside, b"").is_err());
}

#[test]
fn costs_of_the_same_records_add_up() {
    let mut session = Session::default();
    let cost = terms().plan().unwrap().budget;
    let mut epsilon = |times: usize| {
        let request = json!({"op": "compose", "costs": vec![cost; times], "delta": 1e-9});
        let composed = json_of(ask(&mut session, &request, b"").unwrap());
        let sum = times as f64 * cost.to_f64();
        assert!((composed["rho"].as_f64().unwrap() - sum).abs() < 1e-12);
        composed["epsilon"].as_f64().unwrap()
    };
    assert!((epsilon(1) - 1.0).abs() < 1e-6);
    let twice = epsilon(2);
    assert!(twice > 1.4 && twice < 2.0, "{twice}");
}

#[test]
fn a_table_over_the_record_bound_is_refused() {
    let terms = Terms {
        record_bound: 3,
        ..terms().choices()
    };
    let terms = terms.complete(&fhaim_synth::Mechanisms).unwrap();
    let plan = terms.plan().unwrap();
    let params = plan.parameters().unwrap();
    let mut rng = generator().unwrap();
    let secret = SecretKey::random(&params, &mut rng).unwrap();
    let public = secret.public_key(&mut rng).unwrap();
    let public = public.to_bytes().unwrap();
    let mut session = Session::default();
    read(&mut session, TABLE).unwrap();
    let plan = json!({"op": "plan", "terms": terms, "records": 4});
    let prepare = json!({"op": "prepare", "terms": terms});
    for (request, input) in [(plan, &b""[..]), (prepare, &public)] {
        let refused = ask(&mut session, &request, input).unwrap_err();
        let both = refused.contains("4 records") && refused.contains("at most 3");
        assert!(both, "{refused}");
    }
    let encrypt = json!({"op": "encrypt", "object": "column/0/0"});
    assert!(ask(&mut session, &encrypt, b"").is_err());
}

#[test]
fn a_table_is_as_close_as_can_be_to_itself() {
    let mut session = Session::default();
    read(&mut session, TABLE).unwrap();
    let request = json!({"op": "compare", "file": "s.csv"});
    let same = json_of(ask(&mut session, &request, TABLE.as_bytes()).unwrap());
    assert_eq!(same["pairs"], json!([[0.0, 0.0], [0.0, 0.0]]));
    let other = "colour,size\nblue,9\n";
    let other = json_of(ask(&mut session, &request, other.as_bytes()).unwrap());
    assert_eq!(other["pairs"], json!([[0.75, 1.0], [1.0, 0.75]]));
}

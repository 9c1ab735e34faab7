//! Requests of the page, answered natively: drafts, errors, and ciphertexts that decrypt to the table.

#![allow(clippy::unwrap_used)]

use fhaim_domain::Schema;
use fhaim_dp::generator;
use fhaim_he::{Layout, SecretKey};
use fhaim_protocol::committee::{KeyService, ServiceSigningKey};
use fhaim_protocol::roster::{HolderSigningKey, Member, Partition, Roster};
use fhaim_protocol::terms::Terms;
use fhaim_protocol::upload::Object;
use fhaim_sdk_wasm::{Reply, TableSession};
use serde_json::{Value, json};

const TABLE: &str = "colour,size\nred,1\nblue,2\nred,3\nred,9\n";

fn ask(session: &mut TableSession, request: &Value, input: &[u8]) -> Result<Reply, String> {
    let answer = session.answer(request.to_string().as_bytes(), input);
    answer.map_err(|error| error.to_string())
}

fn json_of(answer: Reply) -> Value {
    match answer {
        Reply::Json(text) => serde_json::from_str(&text).unwrap(),
        Reply::Bytes(_) => panic!("bytes, not JSON"),
    }
}

fn schema() -> Value {
    json!({"name": "t", "columns": [
        {"name": "colour", "kind": "categorical", "categories": ["blue", "red"]},
        {"name": "size", "kind": "numeric", "min": 0, "max": 10, "bins": 2, "integer": true}]})
}

fn read(session: &mut TableSession, table: &str) -> Result<Value, String> {
    let request = json!({"op": "read", "format": {"file": "t.csv"}, "schema": schema()});
    ask(session, &request, table.as_bytes()).map(json_of)
}

fn terms() -> Terms {
    let schema = Schema::from_json("t.json", schema().to_string().as_bytes()).unwrap();
    let terms = Terms::new(schema, 1.0, 1e-9, 64);
    terms.complete(&fhaim_synth::Mechanisms).unwrap()
}

/// The secret key and the encoded public key of a dataset with these terms.
fn dataset_keys(terms: &Terms) -> (SecretKey, Vec<u8>) {
    let params = terms.plan().unwrap().parameters().unwrap();
    let mut rng = generator().unwrap();
    let secret = SecretKey::random(&params, &mut rng).unwrap();
    let public = secret.public_key(&mut rng).unwrap();
    (secret, public.to_bytes().unwrap())
}

/// An upload key that another session drew.
fn upload_key(terms: &Terms) -> Value {
    let drawn = json!({"op": "upload-key", "terms": terms});
    json_of(ask(&mut TableSession::default(), &drawn, b"").unwrap())
}

#[test]
fn draft_reads_its_source_table() {
    let mut session = TableSession::default();
    let request = json!({"op": "draft", "format": {"file": "t.csv"}, "name": "t"});
    let (header, rows) = TABLE.split_once('\n').unwrap();
    // A draft lists only values that at least 20 records share.
    let table = format!("{header}\n{}", rows.repeat(20));
    let draft = json_of(ask(&mut session, &request, table.as_bytes()).unwrap());
    assert_eq!(draft["schema"]["columns"].as_array().unwrap().len(), 2);
    let request = json!({"op": "check", "schema": draft["schema"]});
    let checked = json_of(ask(&mut session, &request, b"").unwrap());
    assert_eq!(checked["cost"]["pairs"], 1);
    let request = json!({"op": "read", "format": {"file": "t.csv"}, "schema": draft["schema"]});
    let read = json_of(ask(&mut session, &request, table.as_bytes()).unwrap());
    assert_eq!(read["records"], 80);
    assert!(read["record_bound"].as_u64().unwrap() >= 80, "{read}");
}

#[test]
fn errors_name_their_place() {
    let mut session = TableSession::default();
    let error = read(&mut session, "colour,size\nred,1\ngreen,2\n").unwrap_err();
    assert!(
        error.contains("row 2") && error.contains("colour"),
        "{error}"
    );
    let error = read(&mut session, "colour,size\nred,11\n").unwrap_err();
    assert!(error.contains("row 1") && error.contains("size"), "{error}");
    for (request, reason) in [
        (json!({}), "missing field `op`"),
        (json!({"op": "none"}), "unknown variant `none`"),
        (
            json!({"op": "encrypt", "object": "x"}),
            "not an object name",
        ),
    ] {
        let error = ask(&mut session, &request, b"").unwrap_err();
        let expected = error.starts_with("invalid request: ") && error.contains(reason);
        assert!(expected, "{request}: {error}");
    }
    // First there is no table, then there is no key.
    let encrypt = json!({"op": "encrypt", "object": "column/0/0"});
    let error = ask(&mut session, &encrypt, b"").unwrap_err();
    assert!(error.contains("there is no table"), "{error}");
    read(&mut session, TABLE).unwrap();
    let error = ask(&mut session, &encrypt, b"").unwrap_err();
    assert!(error.contains("there is no key"), "{error}");
    let key = upload_key(&terms());
    let prepare = json!({"op": "prepare", "terms": terms(), "upload_key": key});
    let error = ask(&mut session, &prepare, b"no key").unwrap_err();
    assert!(error.contains("malformed encoded object"), "{error}");
}

#[test]
fn only_encrypted_mechanisms_are_listed() {
    let listed = ask(
        &mut TableSession::default(),
        &json!({"op": "mechanisms"}),
        b"",
    );
    let listed = json_of(listed.unwrap());
    let listed = listed.as_array().unwrap();
    let names: Vec<&str> = listed.iter().map(|m| m["name"].as_str().unwrap()).collect();
    assert_eq!(names.first(), Some(&"staged"));
    assert!(!names.contains(&"aim"), "{names:?}");
    for mechanism in listed {
        for text in ["label", "about"] {
            assert!(
                mechanism[text]
                    .as_str()
                    .is_some_and(|text| !text.is_empty())
            );
        }
        let mut terms = terms().choices();
        terms.mechanism = mechanism["name"].as_str().unwrap().to_owned();
        let plan = json!({"op": "plan", "terms": terms, "records": 4});
        ask(&mut TableSession::default(), &plan, b"").unwrap();
    }
}

/// CSV as spreadsheet programs write it: a byte order mark, semicolons, Windows line ends.
#[test]
fn spreadsheet_csv_is_read() {
    let mut session = TableSession::default();
    let format = json!({"file": "t.csv", "delimiter": ";"});
    let request = json!({"op": "read", "format": format, "schema": schema()});
    let table = "\u{feff}colour;size\r\nred;1\r\n\"blue\";2\r\n";
    let read = json_of(ask(&mut session, &request, table.as_bytes()).unwrap());
    assert_eq!(read["columns"][0]["counts"], json!([1, 1]));
}

/// The page drafts what the command drafts: dates, codes of every kind, identifiers that are generated again, and
/// columns that are left out with the reason.
#[test]
fn drafts_have_all_kinds_of_columns() {
    let rows = (0..300u32).map(|i| {
        let (day, later, value) = (i % 28 + 1, i % 3, i * 7 % 91);
        format!(
            "P{i:04};{day:02}.01.2023;{:02}.02.2023;{value},5;Note {i} on someone\n",
            later + 1
        )
    });
    let table = format!("id;from;to;weight;note\n{}", rows.collect::<String>());
    let format = json!({"file": "t.csv", "delimiter": ";"});
    let request = json!({"op": "draft", "format": format, "name": "t"});
    let mut session = TableSession::default();
    let draft = json_of(ask(&mut session, &request, table.as_bytes()).unwrap());
    let columns = draft["schema"]["columns"].as_array().unwrap();
    let kinds: Vec<&str> = columns
        .iter()
        .map(|c| c["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["identifier", "date", "date", "number", "left-out"]);
    assert_eq!(columns[3]["decimal_comma"], true);
    assert!(columns[4]["reason"].as_str().is_some());
    let request = json!({"op": "read", "format": format, "schema": draft["schema"]});
    let read = json_of(ask(&mut session, &request, table.as_bytes()).unwrap());
    let digits: Vec<&Value> = read["columns"].as_array().unwrap().iter().collect();
    let digits = digits.iter().filter(|column| column["digit"] == true);
    assert!(digits.count() > 0, "{read}");
}

#[test]
fn draft_reports_flag_and_list_of_each_column() {
    let rows = (0..60).map(|i| format!("Person {i},{},{}\n", ["red", "blue"][i % 2], i * 7 % 50));
    let table = format!("name,colour,size\n{}", rows.collect::<String>());
    let request = json!({"op": "draft", "format": {"file": "t.csv"}, "name": "t"});
    let mut session = TableSession::default();
    let draft = json_of(ask(&mut session, &request, table.as_bytes()).unwrap());
    let columns = draft["columns"].as_array().unwrap();
    let flags: Vec<&Value> = columns.iter().map(|column| &column["flag"]).collect();
    assert_eq!(flags, ["near-unique", "from-records", "from-records"]);
    let taken = json!({"what": "list", "values": 2, "shared_by": 20});
    assert_eq!(columns[1]["taken"], taken);
    assert!(draft["remarks"].is_array());
    let first = &draft["notes"][0];
    assert_eq!(first["column"], "name");
    let evidence = columns[0]["evidence"].as_str().unwrap();
    assert!(first["text"].as_str().unwrap().starts_with(evidence));
    assert!(!draft.to_string().contains("Person 1"), "{draft}");
}

/// A table with a code, its label, and an equal column.
fn related() -> String {
    let row = |i: usize| {
        let (code, label) =
            [("S1", "Surgery"), ("C1", "Cardiology"), ("S2", "Surgery")][i * 5 % 7 % 3];
        format!("{code},{label},{code},{}\n", i * 7 % 50)
    };
    let rows: String = (0..600).map(row).collect();
    format!("code,label,copy,days\n{rows}")
}

/// Returns the drafted kinds of all columns.
fn kinds(schema: &Value) -> Vec<&str> {
    let columns = schema["columns"].as_array().unwrap();
    columns
        .iter()
        .flat_map(|column| column["kind"].as_str())
        .collect()
}

#[test]
fn accepted_rules_are_in_the_schema_and_proposed_ones_are_not() {
    let mut session = TableSession::default();
    let request = json!({"op": "draft", "format": {"file": "t.csv"}, "name": "t"});
    let draft = json_of(ask(&mut session, &request, related().as_bytes()).unwrap());
    let statement = draft["rules_statement"].as_str().unwrap();
    assert!(statement.contains("statistic of the data"), "{statement}");
    let drafted = ["categorical", "categorical", "categorical", "number"];
    assert_eq!(kinds(&draft["schema"]), drafted);
    let request = json!({"op": "accept", "schema": draft["schema"], "rules": draft["rules"]});
    let accepted = json_of(ask(&mut session, &request, b"").unwrap());
    assert_eq!(
        kinds(&accepted),
        ["categorical", "derived", "derived", "number"]
    );
    let request = json!({"op": "read", "format": {"file": "t.csv"}, "schema": accepted});
    let read = json_of(ask(&mut session, &request, related().as_bytes()).unwrap());
    assert_eq!(read["records"], 600);
}

#[test]
fn rules_that_do_not_fit_the_schema_are_refused() {
    let mut session = TableSession::default();
    let change = json!({"constraint": {"at_most": ["colour", "size"]}});
    let rule =
        json!({"columns": ["colour", "size"], "rule": "wrong", "records": 20, "change": change});
    let request = json!({"op": "accept", "schema": schema(), "rules": [rule]});
    let error = ask(&mut session, &request, b"").unwrap_err();
    assert!(
        error.contains("constraint \"colour\" is at most"),
        "{error}"
    );
}

/// The column that a derived one follows from may come later.
#[test]
fn problem_of_a_derived_column_is_its_own() {
    let base = json!({"name": "code", "kind": "categorical", "categories": ["a", "b"]});
    let derived = |from: &str| json!({"name": "label", "kind": "derived", "from": from, "values": {"a": "x", "b": "y"}});
    let check = |columns: Value| {
        let request = json!({"op": "check", "schema": {"name": "t", "columns": columns}});
        json_of(ask(&mut TableSession::default(), &request, b"").unwrap())
    };
    let sound = check(json!([derived("code"), base]));
    assert!(sound["cost"].is_object(), "{sound}");
    let wrong = check(json!([derived("none"), base, {"name": "size", "kind": "number"}]));
    let columns = wrong["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|problem| &problem["column"]);
    assert_eq!(columns.collect::<Vec<_>>(), ["label", "size"], "{wrong}");
}

#[test]
fn files_are_read_in_their_own_encoding() {
    let mut session = TableSession::default();
    // A draft lists only values that at least 20 records share.
    let table = [b"colour;size\n".to_vec(), b"r\xf6d;1\nblau;2\n".repeat(20)].concat();
    let found = json_of(ask(&mut session, &json!({"op": "dialect"}), &table).unwrap());
    assert_eq!(
        (&found["delimiter"], &found["encoding"]),
        (&json!(";"), &json!("windows-1252"))
    );
    assert_eq!(
        found["remarks"],
        json!(["read as windows-1252", "detected the field delimiter ';'"])
    );
    assert_eq!(
        (&found["header"], &found["samples"][0]),
        (&json!(["colour", "size"]), &json!(["r\u{f6}d", "1"]))
    );
    let format = json!({"file": "t.csv", "delimiter": ";"});
    let request = json!({"op": "draft", "format": format, "name": "t"});
    let draft = json_of(ask(&mut session, &request, &table).unwrap());
    assert_eq!(
        draft["schema"]["columns"][0]["categories"],
        json!(["blau", "r\u{f6}d"])
    );
}

/// The page reads a file as the command does.
#[test]
fn habits_of_files_are_detected_or_stated() {
    let mut session = TableSession::default();
    let table = "Export of May\n\ncolour, size\nred, 1\nblue, 2\nTotal, 2\n";
    let read = |session: &mut TableSession, format: Value| {
        let request = json!({"op": "read", "format": format, "schema": schema()});
        ask(session, &request, table.as_bytes())
    };
    let error = read(&mut session, json!({"file": "t.csv"})).unwrap_err();
    assert!(
        error.contains("row 3 (line 6), the last one, begins with"),
        "{error}"
    );
    let found = read(&mut session, json!({"file": "t.csv", "skip_footer": 1}));
    assert_eq!(json_of(found.unwrap())["records"], 2);
    let error = read(&mut session, json!({"file": "t.csv", "encoding": "x"})).unwrap_err();
    assert!(error.contains("unknown encoding"), "{error}");
}

#[test]
fn files_of_other_types_are_refused_with_a_hint() {
    let mut session = TableSession::default();
    let request = json!({"op": "dialect", "format": {"file": "t.zst"}});
    let error = ask(&mut session, &request, b"\x28\xb5\x2f\xfd").unwrap_err();
    assert!(
        error.starts_with("t.zst: this is a Zstandard file"),
        "{error}"
    );
    assert!(
        error.ends_with("or use the command line, which reads such files"),
        "{error}"
    );
}

#[test]
fn all_problems_of_a_schema_are_reported_together() {
    let schema = json!({"name": "t", "columns": [
        {"name": "a", "kind": "categorical", "categories": []},
        {"name": "b", "kind": "number", "min": 0, "max": 10, "bins": 2, "integer": true},
        {"name": "c", "kind": "date", "format": "%Y-%m-%d", "min": "2020-01-01", "max": "2021"},
        {"name": "d", "kind": "date", "format": "%Y-%m-%d", "relative_to": "b", "min": 0,
         "max": 9, "bins": 2},
        {"name": "e", "kind": "left-out"}]});
    let mut session = TableSession::default();
    let checked =
        json_of(ask(&mut session, &json!({"op": "check", "schema": schema}), b"").unwrap());
    let problems = checked["problems"].as_array().unwrap();
    let columns: Vec<&str> = problems
        .iter()
        .map(|p| p["column"].as_str().unwrap())
        .collect();
    assert_eq!(columns, ["a", "c", "d"], "{checked}");
    assert!(checked["refused"].as_str().unwrap().contains("\"a\""));
    assert!(
        problems[2]["text"]
            .as_str()
            .unwrap()
            .contains("relative_to")
    );
}

/// The same as `fhaim dataset create`.
#[test]
fn new_terms_can_be_met_and_have_default_options() {
    let mut session = TableSession::default();
    let mut named = |mechanism: &str| {
        let terms = Terms {
            mechanism: mechanism.to_owned(),
            ..terms().choices()
        };
        let named =
            json_of(ask(&mut session, &json!({"op": "name", "terms": terms}), b"").unwrap());
        serde_json::from_value::<Terms>(named).unwrap()
    };
    for mechanism in fhaim_synth::MechanismName::encrypted() {
        let named = named(mechanism.as_str());
        assert_eq!(named.options, None, "{mechanism}");
        named.plan().unwrap();
    }
}

/// A rehearsal encrypts the requested number of ciphertexts, or one more if they come in pairs.
#[test]
fn rehearsal_encrypts_the_requested_number_of_objects() {
    let mut session = TableSession::default();
    for (parameter_set, objects, encrypted) in [(1, 1, 1), (1, 5, 5), (3, 5, 6), (1, 100, 64)] {
        let request = json!({"op": "rehearse", "parameter_set": parameter_set, "objects": objects});
        let answer = json_of(ask(&mut session, &request, b"").unwrap());
        assert_eq!(answer, encrypted, "{parameter_set}, {objects}");
    }
    let request = json!({"op": "rehearse", "parameter_set": 9, "objects": 1});
    let error = ask(&mut session, &request, b"").unwrap_err();
    assert!(error.contains("unknown parameter set"), "{error}");
}

/// The key was drawn by one session and given to another, as with the page's workers.
#[test]
fn objects_decrypt_to_the_one_hot_columns() {
    let terms = terms();
    let params = terms.plan().unwrap().parameters().unwrap();
    let (secret, public) = dataset_keys(&terms);
    let key = upload_key(&terms);

    let mut session = TableSession::default();
    read(&mut session, TABLE).unwrap();
    let request = json!({"op": "plan", "terms": terms, "records": 4});
    let planned = json_of(ask(&mut session, &request, b"").unwrap());
    assert!(planned["sigmas"][0].as_f64().unwrap() > 0.0);
    assert_eq!(planned["objects"][0], "keys");
    let mut prepare = json!({"op": "prepare", "terms": terms});
    let refused = ask(&mut session, &prepare, &public).unwrap_err();
    assert!(refused.contains("missing field `upload_key`"), "{refused}");
    // An error does not quote the key.
    prepare["upload_key"] = json!("zz".repeat(32));
    let refused = ask(&mut session, &prepare, &public).unwrap_err();
    assert!(!refused.contains('z') && refused.len() < 200, "{refused}");
    prepare["upload_key"] = key;
    ask(&mut session, &prepare, &public).unwrap();

    let layout = Layout::for_records(4).unwrap();
    let part = terms.part_plan(0, Some(layout)).unwrap();
    let mut sent = 0;
    let mut encrypt = |object: Object| {
        let request = json!({"op": "encrypt", "object": object});
        let Reply::Bytes(bytes) = ask(&mut session, &request, b"").unwrap() else {
            panic!("JSON, not bytes");
        };
        sent += bytes.len();
        part.decode(&params, object, &bytes).unwrap()
    };
    let keys = encrypt(Object::Keys).keys().unwrap();
    let columns = [[0, 1, 0, 0], [1, 0, 1, 1], [1, 1, 1, 0], [0, 0, 0, 1]];
    for (column, bits) in columns.into_iter().enumerate() {
        let seeded = encrypt(Object::Column { column, chunk: 0 });
        let switch = |one| keys.switch(one).unwrap();
        let all: Vec<_> = seeded
            .expanded(&params)
            .unwrap()
            .iter()
            .map(switch)
            .collect();
        let (values, _) = secret.decrypt(&all).unwrap();
        assert_eq!(values[..4], bits.map(i128::from), "column {column}");
        assert!(values[4..].iter().all(|&value| value == 0));
    }
    let noise = part.objects().into_iter().skip(5).map(encrypt).count();
    assert_eq!(5 + noise, planned["objects"].as_array().unwrap().len());
    assert_eq!(json!(sent), planned["bytes"]);
    let outside = json!({"op": "encrypt", "object": "column/4/0"});
    let refused = ask(&mut session, &outside, b"").unwrap_err();
    assert!(
        refused.contains("the upload has no such object"),
        "{refused}"
    );
}

#[test]
fn costs_of_the_same_records_add_up() {
    let mut session = TableSession::default();
    let cost = terms().plan().unwrap().core.budget;
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

/// Asserts that the session neither plans nor prepares an upload of four records, with a message that contains `reasons`.
fn assert_upload_refused(terms: &Terms, reasons: &[&str]) {
    let (_, public) = dataset_keys(terms);
    let mut session = TableSession::default();
    read(&mut session, TABLE).unwrap();
    let plan = json!({"op": "plan", "terms": terms, "records": 4});
    let prepare = json!({"op": "prepare", "terms": terms, "upload_key": upload_key(terms)});
    for (request, input) in [(plan, &b""[..]), (prepare, &public)] {
        let refused = ask(&mut session, &request, input).unwrap_err();
        let all = reasons.iter().all(|reason| refused.contains(reason));
        assert!(all, "{refused}");
    }
    let encrypt = json!({"op": "encrypt", "object": "column/0/0"});
    let refused = ask(&mut session, &encrypt, b"").unwrap_err();
    assert!(refused.contains("there is no key"), "{refused}");
}

#[test]
fn upload_under_a_shared_key_is_rejected() {
    let service = |number: u8| KeyService {
        name: format!("hospital {number}"),
        key: ServiceSigningKey::from_bytes(&[number; 32]).public(),
    };
    let terms = Terms {
        key_services: vec![service(1), service(2)],
        ..terms().choices()
    };
    let terms = terms.complete(&fhaim_synth::Mechanisms).unwrap();
    assert_upload_refused(&terms, &["several services share", "fhaim dataset upload"]);
}

#[test]
fn upload_of_a_roster_holder_is_rejected() {
    let member = |number: u8| Member {
        account: format!("holder {number}"),
        columns: Vec::new(),
        record_bound: 64,
        key: HolderSigningKey::from_bytes(&[number; 32]).public(),
    };
    let terms = Terms {
        record_bound: 128,
        roster: Some(Roster {
            partition: Partition::Records,
            honest: 1,
            holders: vec![member(1), member(2)],
        }),
        ..terms().choices()
    };
    let terms = terms.complete(&fhaim_synth::Mechanisms).unwrap();
    assert_upload_refused(&terms, &["several holders", "fhaim dataset upload"]);
    let part = json!({"op": "part", "terms": terms, "part": 1});
    let part = json_of(ask(&mut TableSession::default(), &part, b"").unwrap());
    assert_eq!(part["record_bound"], 64);
}

#[test]
fn table_over_the_record_bound_is_rejected() {
    let terms = Terms {
        record_bound: 3,
        ..terms().choices()
    };
    let terms = terms.complete(&fhaim_synth::Mechanisms).unwrap();
    assert_upload_refused(&terms, &["4 records", "at most 3"]);
}

#[test]
fn table_compared_with_itself_has_no_distance() {
    let mut session = TableSession::default();
    let rows = |value: &str| {
        format!(
            "colour,size\n{}",
            format!("red,{value}\nblue,2\n").repeat(40)
        )
    };
    let (real, other) = (rows("3"), rows("9"));
    let keep = json!({"op": "read", "format": {"file": "t.csv"}, "schema": schema(),
        "keep_values": true});
    ask(&mut session, &keep, real.as_bytes()).unwrap();
    let facts = json!([["epsilon", "1 & no more"]]);
    let request = json!({"op": "report", "file": "s.csv", "facts": facts});
    let same = json_of(ask(&mut session, &request, real.as_bytes()).unwrap());
    assert_eq!(
        same["report"]["pair_total_variation"],
        json!([[0.0, 0.0], [0.0, 0.0]])
    );
    assert_eq!(same["report"]["assessment"]["findings"], json!([]));
    assert!(same["page"].as_str().unwrap().contains("1 &amp; no more"));
    // Other values in the same bins: the draw within a bin does not improve the result.
    let within = rows("4");
    let moved = json_of(ask(&mut session, &request, within.as_bytes()).unwrap());
    assert_eq!(
        moved["report"]["pair_total_variation"],
        json!([[0.0, 0.0], [0.0, 0.0]])
    );
    assert_eq!(moved["report"]["values"][1]["total_variation"], 0.5);
    let findings = moved["report"]["assessment"]["findings"]
        .as_array()
        .unwrap();
    assert_eq!(findings[0]["severity"], "major", "{findings:?}");
    let far = json_of(ask(&mut session, &request, other.as_bytes()).unwrap());
    assert_eq!(far["report"]["pair_total_variation"][0][1], 0.5);
}

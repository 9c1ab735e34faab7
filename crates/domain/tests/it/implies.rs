//! Rules such as "no cigarettes without smoking".
#![allow(clippy::unwrap_used)]

use fhaim_domain::{
    BrokenConstraint, ReadOptions, Schema, Table, WriteOptions, read_csv, write_csv,
};
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value as Json, json};

fn columns() -> Json {
    json!([
        {"name": "smoker", "kind": "categorical", "categories": ["no", "yes", "once"], "nullable": true},
        {"name": "cigarettes", "kind": "number", "integer": true, "min": 0, "max": 99, "bins": 10, "digits": 10,
         "special": ["many"], "nullable": true},
        {"name": "icd", "kind": "code", "codes": ["A00", "A01", "A02", "B20", "C34", "C35"], "prefix": 1,
         "nullable": true},
        {"name": "age", "kind": "number", "integer": true, "min": 0, "max": 99, "bins": 10},
        {"name": "parity", "kind": "numeric", "integer": true, "min": 0, "max": 5, "bins": 6},
        {"name": "weight", "kind": "numeric", "min": 0, "max": 100, "bins": 5},
        {"name": "came", "kind": "date", "format": "%d.%m.%Y", "min": "2024-01-01", "max": "2024-01-31", "bins": 2,
         "digits": 31, "special": ["unknown", "1900-01-01"], "nullable": true},
        {"name": "left", "kind": "date", "format": "%Y-%m-%d", "relative_to": "came", "edges": [0, 1, 10],
         "digits": 10, "special": ["never"], "nullable": true},
        {"name": "seen", "kind": "datetime", "format": "%Y-%m-%d %H:%M", "min": "2024-01-01", "max": "2024-01-31",
         "bins": 1, "digits": 31, "special": ["lost"]},
        {"name": "woke", "kind": "time", "format": "%H:%M", "min": "07:00", "max": "07:59", "bins": 1, "digits": 60},
        {"name": "id", "kind": "identifier", "pattern": "uuid"}
    ])
}

fn schema(constraints: &Json) -> Result<Schema, String> {
    let schema = json!({"name": "t", "columns": columns(), "constraints": constraints});
    Schema::from_json("s.json", schema.to_string().as_bytes()).map_err(|error| error.to_string())
}

fn implies(when: &Json, then: &Json) -> Json {
    json!([{"implies": {"when": when, "then": then}}])
}

#[test]
fn record_that_breaks_an_implication_is_refused_with_its_row() {
    let rule = implies(
        &json!({"smoker": ["no", ""]}),
        &json!({"cigarettes": ["", "0"], "icd": ["B", "A01"]}),
    );
    let schema = schema(&rule).unwrap();
    let header = "smoker,cigarettes,icd,age,parity,weight,came,left,seen,woke,id\n";
    let rest = "1,1,1,unknown,,lost,07:00,x";
    let good = ["no,,A01", "no,0,B20", ",0,B20", "yes,40,A00", "once,many,"];
    let good: String = good.iter().map(|row| format!("{row},{rest}\n")).collect();
    let options = |broken| ReadOptions {
        broken,
        ..ReadOptions::new("t.csv")
    };
    let read = |csv: &str, broken| read_csv(schema.clone(), csv.as_bytes(), &options(broken));
    let good = format!("{header}{good}");
    assert_eq!(read(&good, BrokenConstraint::Refuse).unwrap().broken, [0]);
    for row in [
        "no,1,A01",
        "no,many,A01",
        "no,0,A00",
        "no,,",
        ",,A02",
        ",10,B20",
    ] {
        let csv = format!("{good}{row},{rest}\n");
        let error = read(&csv, BrokenConstraint::Refuse)
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "t.csv: row 6 (line 7) breaks a constraint of the schema: records with \"smoker\" \"no\" or no value \
             have \"cigarettes\" no value or \"0\" and \"icd\" \"B\" or \"A01\""
        );
        assert_eq!(read(&csv, BrokenConstraint::Count).unwrap().broken, [1]);
    }
}

#[test]
fn values_with_their_own_codes_are_accepted() {
    let when = json!({"smoker": ["no"]});
    for then in [
        json!({"cigarettes": ["many", "0 to 9", "47"]}),
        json!({"icd": ["C34", "A"]}),
        json!({"age": ["10 to 19"]}),
        json!({"parity": ["3"]}),
        json!({"weight": ["0 to 20"]}),
        json!({"came": ["31.01.2024", "unknown", "1900-01-01", "01.01.1900"]}),
        json!({"left": ["0", "4", "never", ""]}),
        json!({"seen": ["lost"]}),
        json!({"woke": ["07:30"]}),
    ] {
        let refused = schema(&implies(&when, &then)).err();
        assert_eq!(refused, None, "{then}");
    }
}

#[test]
fn implications_that_codes_cannot_decide_are_refused_with_the_reason() {
    let when = json!({"smoker": ["no"]});
    let shared = "a value has the same codes as others: name the label of its bin, or give the column more \
                  `bins` or `digits`";
    let unknown = "a column has no such value";
    for (then, said) in [
        (json!({"age": ["17"]}), shared),
        (json!({"weight": ["7"]}), shared),
        (json!({"seen": ["2024-01-02 07:00"]}), shared),
        (json!({"parity": ["6"]}), unknown),
        (json!({"cigarettes": ["few"]}), unknown),
        (
            json!({"parity": [""]}),
            "a column has missing values only if it is `nullable`",
        ),
        (
            json!({"id": ["x"]}),
            "identifiers and left-out columns have no values that a rule can name",
        ),
        (
            json!({"nobody": ["x"]}),
            "it names a column that the schema does not have",
        ),
        (json!({"cigarettes": []}), "a column has no values in it"),
        (json!({}), "it needs a column in `when` and one in `then`"),
        (json!({"smoker": ["no"]}), "it names a column twice"),
    ] {
        let error = schema(&implies(&when, &then)).unwrap_err();
        assert!(
            error.starts_with("s.json: constraint records with"),
            "{error}"
        );
        assert!(error.ends_with(said), "{then}: {error}");
    }
    let error = schema(&implies(&json!({}), &when)).unwrap_err();
    assert!(
        error.ends_with("it needs a column in `when` and one in `then`"),
        "{error}"
    );
}

#[test]
fn single_total_of_a_sum_is_refused() {
    let number = |name: &str, max: u32, digits: u32| json!({"name": name, "kind": "number", "integer": true, "min": 0, "max": max, "bins": 2, "digits": digits});
    let of = |value: &str| {
        let json = json!({"name": "t", "columns": [number("a", 9, 5), number("b", 9, 5), number("all", 19, 10)],
            "constraints": [
                {"implies": {"when": {"a": ["0"]}, "then": {"all": [value]}}},
                {"sum": {"total": "all", "parts": ["a", "b"]}}]});
        Schema::from_json("s.json", json.to_string().as_bytes()).map_err(|error| error.to_string())
    };
    assert!(of("0 to 9").is_ok());
    let error = of("7").unwrap_err();
    assert!(
        error.ends_with("a total follows from its parts: name only labels of its bins"),
        "{error}"
    );
}

#[test]
fn part_keeps_only_implications_between_its_columns() {
    let rule = implies(&json!({"smoker": ["no"]}), &json!({"cigarettes": [""]}));
    let schema = schema(&rule).unwrap();
    assert_eq!(schema.part(&[0, 1]).unwrap().constraints().len(), 1);
    assert_eq!(schema.part(&[0, 2]).unwrap().constraints().len(), 0);
}

/// A model gives a little mass to digits that a group does not have. They are written as other digits.
#[test]
fn digit_that_does_not_exist_is_judged_by_its_written_value() {
    let rule = implies(
        &json!({"smoker": ["no", "yes", "once", ""]}),
        &json!({"icd": ["A00", "B20", "C34", ""]}),
    );
    let schema = schema(&rule).unwrap();
    let icd = schema.position("icd").unwrap();
    let allows = |chapter: u32, code: u32| {
        schema.allows(&|attribute| match attribute {
            a if a == icd => chapter,
            a if a == icd + 1 => code,
            _ => 0,
        })
    };
    // A00 to A02, B20, C34 and C35, no code.
    assert!(allows(0, 0) && !allows(0, 1) && !allows(0, 2));
    assert!(allows(1, 0) && allows(1, 1) && allows(1, 2));
    assert!(allows(2, 0) && !allows(2, 1) && allows(2, 2));
    assert!(allows(3, 0) && allows(3, 2));
}

#[test]
fn date_relative_to_a_missing_one_is_missing() {
    let all = json!(["no", "yes", "once", ""]);
    let of = |then: &Json| schema(&implies(&json!({"smoker": all}), then)).unwrap();
    let allows = |schema: &Schema, came: &str, left: &str| {
        let codes = |name: &str, value: &str| {
            let field = schema
                .fields()
                .iter()
                .find(|field| field.name() == name)
                .unwrap();
            schema.codes_of(field, value).unwrap()
        };
        let codes = [codes("came", came), codes("left", left)].concat();
        schema.allows(&|attribute| {
            codes
                .iter()
                .find(|(other, _)| *other == attribute)
                .map_or(0, |&(_, code)| code)
        })
    };
    let present = of(&json!({"left": ["0", "never", "1 to 10"]}));
    let missing = of(&json!({"left": [""]}));
    for (came, left, is_missing) in [
        ("01.01.2024", "4", false),
        ("1900-01-01", "4", false),
        ("unknown", "4", true),
        ("", "4", true),
        ("", "never", false),
        ("01.01.2024", "", true),
    ] {
        assert_eq!(allows(&missing, came, left), is_missing, "{came} {left}");
        assert_eq!(allows(&present, came, left), !is_missing, "{came} {left}");
    }
}

/// Texts that a rule may list, by column.
const LISTED: [(&str, &[&str]); 9] = [
    ("smoker", &["no", "yes", "once", ""]),
    (
        "cigarettes",
        &["", "0", "1", "47", "many", "10 to 19", "90 to 99"],
    ),
    ("icd", &["A00", "A01", "B20", "C34", "A", "C", ""]),
    ("age", &["0 to 9", "10 to 19"]),
    ("parity", &["0", "1", "5"]),
    ("came", &["01.01.2024", "unknown", "1900-01-01", ""]),
    ("left", &["0", "1", "4", "never", ""]),
    ("seen", &["lost"]),
    ("woke", &["07:30", "07:00"]),
];

/// Returns some of the items, in random order.
fn some<T: Copy>(items: &[T], count: usize, rng: &mut ChaCha8Rng) -> Vec<T> {
    let mut items = items.to_vec();
    let pick = |_| items.swap_remove(rng.random_range(0..items.len()));
    (0..count).map(pick).collect()
}

fn random_rules(rng: &mut ChaCha8Rng) -> Json {
    let side = |columns: &[(&str, &[&str])], rng: &mut ChaCha8Rng| {
        let mut side = serde_json::Map::new();
        for &(name, texts) in columns {
            let count = rng.random_range(1..=texts.len());
            side.insert(name.to_owned(), json!(some(texts, count, rng)));
        }
        side
    };
    let rules = (0..rng.random_range(1..4)).map(|_| {
        let columns = some(&LISTED, 4, rng);
        let (when, then) = (rng.random_range(1..3), rng.random_range(1..3));
        let when = side(&columns[..when], rng);
        let then = side(&columns[2..2 + then], rng);
        json!({"implies": {"when": when, "then": then}})
    });
    json!(rules.collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Allowed records satisfy all rules once they are written, for any codes that a model draws.
    #[test]
    fn allowed_records_satisfy_all_implications(seed: u64) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let schema = schema(&random_rules(&mut rng)).unwrap();
        let sizes = schema.domain().sizes().to_vec();
        let mut columns = vec![Vec::new(); sizes.len()];
        let mut drawn = vec![Vec::new(); sizes.len()];
        for _ in 0..200 {
            let codes: Vec<u32> = sizes.iter().map(|&size| rng.random_range(0..size as u32)).collect();
            drawn.iter_mut().zip(&codes).for_each(|(column, &code)| column.push(code));
            if schema.allows(&|attribute| codes[attribute]) {
                columns.iter_mut().zip(&codes).for_each(|(column, &code)| column.push(code));
            }
        }
        let (refused, kept) = (200 - columns[0].len() as u64, columns);
        let mut broken = |columns: Vec<Vec<u32>>| {
            let table = Table::new(schema.clone(), columns).unwrap();
            let mut csv = Vec::new();
            write_csv(&table, &mut csv, &mut rng, &WriteOptions::new("o.csv")).unwrap();
            let options = ReadOptions { broken: BrokenConstraint::Count, ..ReadOptions::new("o.csv") };
            let again = read_csv(schema.clone(), &csv[..], &options).unwrap();
            (again.broken, again.table)
        };
        if !kept[0].is_empty() {
            let (counts, _) = broken(kept);
            prop_assert!(counts.iter().all(|&count| count == 0), "{:?}", counts);
        }
        // A record that is not allowed breaks a rule in the table.
        let (counts, table) = broken(drawn);
        let breaks = (0..table.records()).filter(|&row| !schema.allows(&|a| table.column(a)[row])).count();
        prop_assert_eq!(breaks as u64, refused);
        prop_assert!(counts.iter().sum::<u64>() >= refused);
    }
}

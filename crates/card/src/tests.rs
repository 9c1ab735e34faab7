//! Facts that a card must state, apart from their wording.

use fhaim_domain::Schema;
use fhaim_protocol::{
    roster::{ContributionKind, Partition},
    terms::Terms,
};
use fhaim_release::{Axis, Statistic};
use serde_json::Value;

use crate::{
    AttributeNoise, Card, CardFacts, CardHolders, CardSetting, CardTable, CardTerms,
    RecordsSpending, SpendingSource,
};

const COLUMNS: &str = r#"
    {"name": "ward", "kind": "categorical", "categories": ["S\u00fcd <1>", "Nord"], "nullable": true},
    {"name": "age", "kind": "number", "integer": true, "edges": [17, 20, 75, 90], "digits": 5},
    {"name": "hours", "kind": "number", "integer": true, "special": [40], "min": 1, "max": 99, "bins": 10, "digits": 10},
    {"name": "dose", "kind": "number", "decimals": 1, "min": 0, "max": 9.9, "bins": 10, "digits": 10, "after": " mg"},
    {"name": "seen at", "kind": "datetime", "format": "%Y-%m-%d %H:%M", "min": "2024-01-01", "max": "2024-12-31",
     "bins": 12, "nullable": true, "missing": ["NA"]},
    {"name": "record", "kind": "identifier", "pattern": "P[0-9]{5}"},
    {"name": "ward again", "kind": "derived", "from": "ward", "nullable": true},
    {"name": "notes", "kind": "left-out", "reason": "free text"}"#;

fn schema(more: &str) -> Schema {
    let json = format!(r#"{{"name": "patients", "columns": [{COLUMNS}]{more}}}"#);
    Schema::from_json("patients.schema.json", json.as_bytes()).unwrap()
}

fn facts(schema: Schema) -> CardFacts {
    CardFacts {
        terms: CardTerms::from(&Terms::new(schema, 1.0, 1e-9, 49_152)),
        setting: CardSetting::Services,
        noise: None,
        spending: None,
        table: Some(CardTable {
            name: "synthetic.csv".to_owned(),
            delimiter: Some(','),
            bytes: 1_234,
            sha256: [0xab; 32],
            records: Some(100),
        }),
        model_sha256: Some([0xcd; 32]),
        made_on: 20_484,
        program: "fhaim 0.1.0".to_owned(),
    }
}

fn card(change: impl FnOnce(&mut CardFacts)) -> Card {
    let mut facts = facts(schema(""));
    change(&mut facts);
    Card::new(facts)
}

fn json(card: &Card) -> Value {
    serde_json::from_str(&card.json().unwrap()).unwrap()
}

fn column<'a>(card: &'a Card, name: &str) -> &'a crate::CardColumn {
    card.columns()
        .iter()
        .find(|column| column.name == name)
        .unwrap()
}

fn variable<'a>(metadata: &'a Value, name: &str) -> &'a Value {
    let variables = metadata["variableMeasured"].as_array().unwrap();
    variables
        .iter()
        .find(|variable| variable["name"] == name)
        .unwrap()
}

#[test]
fn guarantee_states_factor_delta_and_right_answers() {
    let [first, second] = card(|_| {}).guarantee();
    for fact in ["2.72", "epsilon = 1)", "1e-9", "1 in 1,000,000,000"] {
        assert!(first.contains(fact), "{first}");
    }
    assert!(second.contains("74 of 100"), "{second}");
}

#[test]
fn large_epsilon_is_called_hardly_any_limit() {
    let [first, second] = card(|facts| facts.terms.epsilon = 20.0).guarantee();
    assert!(first.contains("limits hardly anything"), "{first}");
    assert!(second.contains("100 of 100"), "{second}");
}

/// rho of epsilon 1 is 0.014973; four times it is 0.059892, which is epsilon 2.0697 at the same delta.
#[test]
fn two_records_have_about_twice_the_epsilon() {
    let texts = card(|_| {}).protected().join(" ");
    assert!(texts.contains("epsilon is 2.07"), "{texts}");
}

#[test]
fn precision_says_which_numbers_are_coarsened() {
    let card = card(|_| {});
    let precision = |name| column(&card, name).precision.as_str();
    assert_eq!(
        precision("age"),
        "3 bins of up to 5 parts; the value within a part is random"
    );
    assert_eq!(precision("hours"), "every value");
    assert_eq!(precision("dose"), "every value");
    assert_eq!(
        precision("seen at"),
        "12 bins, precise to the minute; the value within a part is random"
    );
    assert_eq!(column(&card, "dose").unit.as_deref(), Some("mg"));
}

#[test]
fn left_out_columns_are_listed_apart_from_the_table() {
    let card = card(|_| {});
    assert!(!column(&card, "notes").is_written());
    let metadata = json(&card);
    assert_eq!(
        metadata["fhaim:schema"]["fhaim:leftOut"][0]["sc:name"],
        "notes"
    );
    let fields = metadata["recordSet"][0]["field"].as_array().unwrap();
    assert_eq!(fields.len(), 7);
    assert!(
        card.html()
            .unwrap()
            .contains("<li>notes: left out: free text</li>")
    );
}

#[test]
fn noise_of_columns_is_twice_the_deviation() {
    let one = Statistic::OneWay(Axis::identity(0, 3));
    let releases = [(Statistic::Total, 36.0), (one, 900.0)];
    let releases = releases
        .iter()
        .map(|(statistic, variance)| (statistic, *variance));
    let attributes = schema("").columns().len();
    let card = card(|facts| facts.noise = Some(AttributeNoise::of(attributes, releases)));
    assert_eq!(column(&card, "ward").noise, Some(30.0));
    let metadata = json(&card);
    assert_eq!(variable(&metadata, "ward")["fhaim:noise"], 30.0);
    assert_eq!(variable(&metadata, "age").get("fhaim:noise"), None);
    let texts = card.exactness().join(" ");
    assert!(
        texts.contains("Number of real records: \u{b1} 12."),
        "{texts}"
    );
    assert!(card.html().unwrap().contains(">\u{b1} 60</td>"));
}

#[test]
fn private_draft_is_stated_with_its_cost() {
    let claim = r#", "claim": {"epsilon": 0.5, "delta": 1e-10, "rho": "1208925819614629174"}"#;
    let card = Card::new(facts(schema(claim)));
    let origin = card.schema_origin().join(" ");
    assert!(origin.contains("epsilon 0.5 and delta 1e-10"), "{origin}");
    let spending = card.spending().join(" ");
    assert!(
        spending.contains("in addition: epsilon 0.5 at delta 1e-10"),
        "{spending}"
    );
    assert!(
        card.runs().contains("except for the private draft"),
        "{}",
        card.runs()
    );
    let metadata = json(&card);
    assert_eq!(metadata["fhaim:schema"]["fhaim:origin"], "private draft");
    assert_eq!(metadata["fhaim:schema"]["fhaim:epsilon"], 0.5);
}

#[test]
fn schema_without_draft_is_a_statement_of_the_holder() {
    let card = card(|_| {});
    let origin = card.schema_origin().join(" ");
    assert!(origin.contains("holder states"), "{origin}");
    assert_eq!(
        json(&card)["fhaim:schema"]["fhaim:origin"],
        "public knowledge, according to the holder"
    );
}

fn holders(honest: u32, partition: Partition) -> CardHolders {
    CardHolders {
        count: 3,
        honest,
        partition,
        contribution: ContributionKind::Records,
    }
}

#[test]
fn holders_and_tolerated_collusion_are_stated() {
    let of =
        |honest, partition| card(|facts| facts.terms.holders = Some(holders(honest, partition)));
    let one = of(1, Partition::Records);
    let trust = one.trust().join(" ");
    assert!(trust.contains("has 3 holders"), "{trust}");
    assert!(trust.contains("noise of 1 of the 3 holders"), "{trust}");
    assert!(trust.contains("up to 2 holders together"), "{trust}");
    let metadata = json(&one);
    assert_eq!(metadata["fhaim:parties"]["fhaim:holders"], 3);
    assert_eq!(metadata["fhaim:parties"]["fhaim:honestHolders"], 1);
    let all = of(3, Partition::Records).trust().join(" ");
    assert!(all.contains("does not hold against a holder"), "{all}");
    let columns = of(1, Partition::Columns);
    assert!(
        columns
            .protected()
            .join(" ")
            .contains("one holder's part of one record")
    );
    assert!(
        columns
            .trust()
            .join(" ")
            .contains("can read rows of the other holders")
    );
}

#[test]
fn conditions_of_trust_follow_from_the_services() {
    let of = |witness, keys: &[&str]| {
        let card = card(|facts| {
            facts.terms.witness = witness;
            facts.terms.key_services = keys.iter().map(|&name| name.to_owned()).collect();
        });
        card.trust().join(" ")
    };
    let keys = ["Alpha", "Beta"];
    assert!(
        of(false, &[]).contains("the computation service and the key service follow the protocol")
    );
    assert!(of(true, &[]).contains("the key service and at least one computation service"));
    assert!(of(false, &keys).contains("the computation service and at least one key service"));
    let both = of(true, &keys);
    assert!(
        both.contains("at least one computation service and at least one key service"),
        "{both}"
    );
    assert!(
        both.contains("2 key services share the key (Alpha, Beta)"),
        "{both}"
    );
}

#[test]
fn unstated_services_are_not_counted() {
    let card = card(|facts| facts.setting = CardSetting::UnstatedServices);
    let trust = card.trust().join(" ");
    assert!(trust.contains("not stated here"), "{trust}");
    assert_eq!(json(&card)["fhaim:parties"].get("fhaim:keyServices"), None);
}

#[test]
fn total_spending_names_its_source() {
    let of = |uses, epsilon, source| {
        let card = card(|facts| {
            facts.spending = Some(RecordsSpending {
                uses,
                epsilon,
                delta: 2e-9,
                uncounted: 0,
                source,
            });
        });
        (card.spending().join(" "), json(&card))
    };
    let (text, metadata) = of(3, 1.732_04, SpendingSource::Holder);
    assert!(
        text.contains("According to the holder, there are 3 uses of these records so far"),
        "{text}"
    );
    assert!(text.contains("epsilon 1.733 at delta 2e-9"), "{text}");
    let spent = &metadata["fhaim:privacy"]["fhaim:spentOnTheseRecords"];
    assert_eq!(
        (&spent["fhaim:uses"], &spent["fhaim:accordingTo"]),
        (&3.into(), &"holder".into())
    );
    let (text, metadata) = of(1, f64::INFINITY, SpendingSource::Ledger);
    assert!(
        text.contains("ledger") && text.contains("without bound"),
        "{text}"
    );
    let spent = &metadata["fhaim:privacy"]["fhaim:spentOnTheseRecords"];
    assert_eq!(spent["fhaim:epsilon"], Value::Null);
}

#[test]
fn file_is_named_with_its_digest() {
    let metadata = json(&card(|_| {}));
    let file = &metadata["distribution"][0];
    assert_eq!(file["sha256"], "ab".repeat(32));
    assert_eq!(file["contentSize"], "1234 B");
    assert_eq!(metadata["fhaim:modelSha256"], "cd".repeat(32));
    assert_eq!(metadata["datePublished"], "2026-01-31");
    let without = json(&card(|facts| facts.table = None));
    assert_eq!(without.get("distribution"), None);
    assert_eq!(without.get("recordSet"), None);
}

#[test]
fn page_asks_the_ten_questions_and_escapes_texts() {
    let page = card(|_| {}).html().unwrap();
    assert_eq!(page.matches("<section id=").count(), 10);
    assert!(page.contains("S\u{fc}d &lt;1&gt;, Nord"));
    assert!(!page.contains("<1>") && !page.contains("<script"));
}

#[test]
fn dictionary_has_one_line_for_each_column() {
    let dictionary = card(|_| {}).dictionary().unwrap();
    let lines: Vec<&str> = dictionary.lines().collect();
    assert_eq!(lines.len(), 9);
    assert_eq!(
        lines[0],
        "column,kind,type,form,unit,values,precision,missing,noise"
    );
    assert_eq!(
        lines[4],
        "dose,number,number,number with 1 decimal,mg,0 to 9.9,every value,no,"
    );
    assert!(lines[5].contains("written as NA"), "{}", lines[5]);
}

fn types(card: &Card) -> Vec<String> {
    let metadata = json(card);
    let fields = metadata["recordSet"][0]["field"].as_array().unwrap();
    fields
        .iter()
        .map(|field| field["dataType"].as_str().unwrap().to_owned())
        .collect()
}

/// A unit, and a text for missing values, are in the way of a program that expects numbers and dates.
#[test]
fn columns_that_programs_cannot_convert_are_texts_in_csv() {
    let csv = types(&card(|_| {}));
    assert_eq!(
        csv[..5],
        ["sc:Text", "sc:Integer", "sc:Integer", "sc:Text", "sc:Text"]
    );
    let parquet = types(&card(|facts| {
        let table = facts.table.as_mut().unwrap();
        table.delimiter = None;
    }));
    assert_eq!(parquet[3..5], ["sc:Float", "sc:DateTime"]);
}

#[test]
fn bound_on_the_number_of_records_is_stated_only_if_it_is_public() {
    let of = |bound| {
        let card = card(|facts| facts.terms.record_bound = bound);
        (
            card.limits().join(" "),
            json(&card)["fhaim:privacy"]["fhaim:recordBound"].clone(),
        )
    };
    let (text, value) = of(Some(49_152));
    assert!(text.contains("at most 49,152 records"), "{text}");
    assert_eq!(value, 49_152);
    let (text, value) = of(None);
    assert!(text.contains("not stated here"), "{text}");
    assert_eq!(value, Value::Null);
}

//! A dataset's terms and schema, and the plan that follows from them.

use crate::files::{golden, json, refuses_unknown_fields, stored};
use fhaim_domain::Schema;
use fhaim_dp::LadderPlan;
use fhaim_he::{COMPACT, STANDARD, WIDE};
use fhaim_protocol::terms::Terms;
use fhaim_synth::Mechanisms;

/// A schema of categorical and numeric columns, in the form that people write.
pub const SCHEMA: &str = r#"{
  "name": "people",
  "source": "a census, in words",
  "target": "income",
  "columns": [
    {"name": "sex", "kind": "categorical", "categories": ["f", "m"]},
    {"name": "state", "kind": "categorical", "categories": ["NY", "CA", "elsewhere"], "nullable": true, "other": "elsewhere"},
    {"name": "age", "kind": "numeric", "min": 0, "max": 100, "bins": 10, "integer": true},
    {"name": "height", "kind": "numeric", "min": -0.5, "max": 2.5, "bins": 6, "nullable": true},
    {"name": "income", "kind": "categorical", "categories": ["<=50K", ">50K"]}
  ]
}
"#;

pub fn schema() -> Schema {
    Schema::from_json("schema.json", SCHEMA.as_bytes()).unwrap()
}

/// A schema with every kind of column, and every key of each kind.
const KINDS: &str = r#"{
  "name": "stays", "source": "questionnaire of 2024", "target": "ward",
  "columns": [
    {"name": "case", "kind": "identifier", "pattern": "P[0-9]{5}"},
    {"name": "admitted", "kind": "datetime", "format": "%d.%m.%Y %H:%M", "unit": "hour",
     "min": "2023-01-01", "max": "2023-12-31", "bins": 12, "digits": 31, "nullable": true},
    {"name": "discharged", "kind": "datetime", "format": "%d.%m.%Y %H:%M", "unit": "minute",
     "relative_to": "admitted", "edges": [0, 60, 1440, 14400], "digits": 24, "nullable": true},
    {"name": "born", "kind": "date", "format": "%Y-%m-%d", "edges": ["1920-01-01", "1970-01-01", "2023-12-31"], "digits": 100},
    {"name": "gain", "kind": "number", "integer": true, "special": [0, 99999], "min": 1, "max": 5000, "bins": 10, "digits": 20},
    {"name": "weight", "kind": "number", "decimals": 1, "trailing_zeros": true, "decimal_comma": true,
     "edges": [30, 60.5, 80, 200], "digits": 16, "nullable": true},
    {"name": "postcode", "kind": "code", "prefix": 2, "codes": ["01067", "01069", "80331", "rest"], "other": "rest"},
    {"name": "diagnosis", "kind": "code", "chapters": [{"name": "lungs", "codes": ["J10", "J11"]},
     {"name": "heart", "codes": ["I21"]}]},
    {"name": "ward", "kind": "categorical", "categories": ["surgery", "other"], "other": "other"},
    {"name": "height", "kind": "numeric", "min": 100, "max": 220, "bins": 6, "integer": true},
    {"name": "note", "kind": "left-out", "reason": "free text"}
  ]
}
"#;

const CLAIM: &str =
    r#""claim": {"epsilon": 0.1, "delta": 1e-10, "rho": "1180591620717411303424"}, "name""#;

fn kinds() -> Schema {
    Schema::from_json("schema.json", KINDS.as_bytes()).unwrap()
}

/// The mechanisms that run under encryption.
const MECHANISMS: [&str; 3] = ["staged", "fhaim-l2", "one-ways"];

/// Returns terms that differ from the default in every field, as their holder chose them.
pub fn terms(mechanism: &str) -> Terms {
    let mut terms = Terms::new(schema(), 1.25, 1e-9, 5000);
    terms.mechanism = mechanism.to_owned();
    terms.runs = 3;
    terms.model_bytes = 1 << 26;
    terms.target_weight = 4;
    terms
}

/// Returns the terms completed with the needs of their mechanism.
pub fn complete(mechanism: &str) -> Terms {
    terms(mechanism).complete(&Mechanisms).unwrap()
}

#[test]
fn schema_is_unchanged() {
    let text = golden("schema.plain.json", || schema().to_json().into_bytes());
    let read = Schema::from_json("schema.json", &text).unwrap();
    assert_eq!(read, schema());
    assert_eq!(read.to_json().as_bytes(), text);
    let digest: String = read.digest().iter().map(|b| format!("{b:02x}")).collect();
    let made = || digest.clone().into_bytes();
    assert_eq!(golden("schema.plain.digest", made), digest.as_bytes());
    json("schema.plain.compact.json", &schema());
    refuses_unknown_fields::<Schema>("schema.plain.compact.json");
}

#[test]
fn schema_of_all_kinds_is_unchanged() {
    let text = golden("schema.kinds.json", || kinds().to_json().into_bytes());
    let read = Schema::from_json("schema.json", &text).unwrap();
    assert_eq!(read, kinds());
    assert_eq!(read.to_json().as_bytes(), text);
    let digest: String = read.digest().iter().map(|b| format!("{b:02x}")).collect();
    let made = || digest.clone().into_bytes();
    assert_eq!(golden("schema.kinds.digest", made), digest.as_bytes());
    json("schema.kinds.compact.json", &kinds());
    refuses_unknown_fields::<Schema>("schema.kinds.compact.json");
    let claimed = KINDS.replacen("\"name\"", CLAIM, 1);
    let claimed = Schema::from_json("schema.json", claimed.as_bytes()).unwrap();
    assert_eq!(claimed.claim().map(|claim| claim.rho), Some(1 << 70));
    // The cost of a draft is not part of the digest.
    assert_eq!(claimed.digest(), read.digest());
    json("schema.claim.json", &claimed);
    // The numbers of codes of the coarse and fine attributes, in the order of the fields.
    let sizes = "[13, 31, 25, 4, 24, 2, 100, 12, 20, 4, 16, 3, 2, 2, 2, 2, 6]";
    assert_eq!(format!("{:?}", read.domain().sizes()), sizes);
}

#[test]
fn schema_with_constraints_is_unchanged() {
    let constraints = r#"], "constraints": [{"at_most": ["gain", "height_"]},
        {"sum": {"total": "all", "parts": ["in", "out"]}}, {"missing_together": ["born_", "ward_"]},
        {"never": {"ward": "surgery", "diagnosis": "J10"}}]}"#;
    let more = r#",
    {"name": "height_", "kind": "number", "integer": true, "min": 0, "max": 9999, "bins": 10},
    {"name": "in", "kind": "number", "decimals": 2, "min": 0, "max": 10, "bins": 5},
    {"name": "out", "kind": "number", "decimals": 2, "min": 0, "max": 10, "bins": 5},
    {"name": "all", "kind": "number", "decimals": 2, "min": 0, "max": 20, "bins": 5},
    {"name": "born_", "kind": "date", "format": "%Y-%m-%d", "edges": ["1920-01-01", "2023-12-31"], "nullable": true},
    {"name": "ward_", "kind": "categorical", "categories": ["a"], "nullable": true}"#;
    let (columns, _) = KINDS.rsplit_once("\n  ]").unwrap();
    let json_text = format!("{columns}{more}{constraints}");
    let schema = Schema::from_json("schema.json", json_text.as_bytes()).unwrap();
    let text = golden("schema.constraints.json", || schema.to_json().into_bytes());
    let read = Schema::from_json("schema.json", &text).unwrap();
    assert_eq!(read, schema);
    assert_eq!(read.to_json().as_bytes(), text);
    let digest: String = read.digest().iter().map(|b| format!("{b:02x}")).collect();
    let made = || digest.clone().into_bytes();
    assert_eq!(golden("schema.constraints.digest", made), digest.as_bytes());
    json("schema.constraints.compact.json", &schema);
    refuses_unknown_fields::<Schema>("schema.constraints.compact.json");
}

#[test]
fn completed_terms_are_unchanged() {
    for mechanism in MECHANISMS {
        let (chosen, name) = (
            format!("terms.{mechanism}.chosen.json"),
            format!("terms.{mechanism}.json"),
        );
        json(&chosen, &terms(mechanism));
        json(&name, &complete(mechanism));
        refuses_unknown_fields::<Terms>(&chosen);
        refuses_unknown_fields::<Terms>(&name);
        let read: Terms = serde_json::from_slice(&stored(&chosen)).unwrap();
        let completed = read.complete(&Mechanisms).unwrap();
        assert_eq!(completed, complete(mechanism));
        // A holder's program that sends its choices again must find the dataset that it made.
        let choices = serde_json::to_vec(&completed.choices()).unwrap();
        assert_eq!(choices, stored(&chosen));
    }
}

/// Chosen options are written together with all others and their values.
#[test]
fn options_in_terms_are_unchanged_and_unknown_ones_are_rejected() {
    let chosen = |text: &str| Terms {
        options: Some(serde_json::from_str(text).unwrap()),
        ..terms("staged")
    };
    let few = r#"{"probe_share": 0.15, "extra_pairs": false}"#;
    json("terms.staged.options.chosen.json", &chosen(few));
    let complete = chosen(few).complete(&Mechanisms).unwrap();
    let name = "terms.staged.options.json";
    json(name, &complete);
    refuses_unknown_fields::<Terms>(name);
    let text = stored(name);
    let read: Terms = serde_json::from_slice(&text).unwrap();
    assert_eq!(read.clone().complete(&Mechanisms).unwrap(), read);
    assert_eq!(read.options.unwrap()["probe_share"], 0.15);
    // The message about an unknown option has the option's name.
    let unknown = String::from_utf8(text)
        .unwrap()
        .replacen("probe_share", "zeta", 1);
    let unknown: Terms = serde_json::from_str(&unknown).unwrap();
    let refused = unknown.complete(&Mechanisms).unwrap_err().to_string();
    assert!(refused.contains("zeta"), "{refused}");
}

/// Keys and uploads are made for the plan of a dataset's terms, and would not fit a different plan.
#[test]
fn plan_of_terms_is_unchanged() {
    for mechanism in MECHANISMS {
        let plan = complete(mechanism).plan().unwrap();
        let wide = mechanism == "fhaim-l2";
        assert_eq!(plan.core.set, if wide { WIDE } else { COMPACT });
        let facts = (
            plan.core.set.id,
            plan.core.budget,
            plan.job.rho,
            plan.core.run_ladder,
            plan.ladder().unwrap(),
        );
        let name = format!("plan.{mechanism}.json");
        json::<(u8, _, _, LadderPlan, LadderPlan)>(&name, &facts);
    }
}

/// Terms may name a larger parameter set than the one that would be chosen for them.
#[test]
fn terms_that_name_a_parameter_set_are_unchanged() {
    let named = Terms {
        parameter_set: Some(STANDARD.id),
        ..terms("staged")
    };
    let (named, name) = (
        named.complete(&Mechanisms).unwrap(),
        "terms.parameter-set.json",
    );
    assert_eq!(named.plan().unwrap().core.set, STANDARD);
    json(name, &named);
    let text = String::from_utf8(stored(name)).unwrap();
    for (from, to, reason) in [
        (r#","parameter_set":2"#, "", "not named in these terms"),
        (
            r#""parameter_set":2"#,
            r#""parameter_set":3"#,
            "this set does not fit these terms",
        ),
        (
            r#""parameter_set":2"#,
            r#""parameter_set":99"#,
            "no set has this number",
        ),
    ] {
        let other = text.replacen(from, to, 1);
        assert_ne!(other, text);
        let other: Terms = serde_json::from_str(&other).unwrap();
        let refusals = [other.plan().unwrap_err(), other.plan_core().unwrap_err()];
        for refused in refusals.map(|error| error.to_string()) {
            let words = format!("parameter_set: {reason}");
            assert!(refused.contains(&words), "{to}: {refused}");
        }
    }
}

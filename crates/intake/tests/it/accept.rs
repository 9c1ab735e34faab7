//! Proposed rules of a draft, and what accepting them does to its schema.

use fhaim_domain::{Constraint, form::ColumnForm, form::KindForm};
use fhaim_intake::{Draft, InferOptions, ProposedRule, RuleChange, infer_schema, with_rules};

/// Returns a draft of two numbers, a ward and its copy, with two proposed rules.
fn draft() -> Draft {
    let row = |i: usize| {
        let ward = ["east", "west"][i % 2];
        format!("{},{},{ward},{ward}\n", i * 7 % 50, 50 + i * 3 % 50)
    };
    let rows: String = (0..120).map(row).collect();
    let table = format!("net,gross,ward,station\n{rows}");
    let mut draft = infer_schema(table.as_bytes(), &InferOptions::new("t.csv", "t"))
        .expect("the table is read");
    draft.rules = vec![equal(), order()];
    draft
}

fn order() -> ProposedRule {
    let columns = ["net", "gross"].map(str::to_owned);
    ProposedRule {
        columns: columns.to_vec(),
        rule: "\"net\" is at most \"gross\"".to_owned(),
        records: 120,
        change: RuleChange::Constraint(Constraint::AtMost(columns)),
    }
}

fn equal() -> ProposedRule {
    let column = ColumnForm {
        from: Some("ward".to_owned()),
        ..ColumnForm::empty("station".to_owned(), KindForm::Derived, false)
    };
    ProposedRule {
        columns: vec!["station".to_owned(), "ward".to_owned()],
        rule: "\"station\" is \"ward\"".to_owned(),
        records: 120,
        change: RuleChange::Column(Box::new(column)),
    }
}

#[test]
fn accepted_rule_is_in_the_schema_and_is_no_proposal() {
    let mut draft = draft();
    assert!(draft.schema.constraints().is_empty());
    draft.accept(&[1, 1]).unwrap();
    assert_eq!(draft.schema.constraints().len(), 1);
    assert_eq!(draft.rules, [equal()]);
}

#[test]
fn accepted_column_is_derived() {
    let mut draft = draft();
    draft.accept(&[0]).unwrap();
    assert_eq!(draft.columns[3].kind, "derived");
    assert!(draft.schema.to_json().contains("\"from\": \"ward\""));
}

#[test]
fn impossible_rule_changes_nothing() {
    let mut draft = draft();
    let wrong = ["net", "ward"].map(str::to_owned);
    draft.rules[0].change = RuleChange::Constraint(Constraint::AtMost(wrong));
    let before = draft.clone();
    let error = draft.accept(&[0, 1]).unwrap_err().to_string();
    assert!(error.contains("\"net\""), "{error}");
    assert_eq!(draft, before);
}

#[test]
fn rules_of_columns_that_are_left_out_are_not_proposed() {
    let mut draft = draft();
    draft.leave_out(&["ward".to_owned()]).unwrap();
    assert_eq!(draft.rules, [order()]);
}

#[test]
fn rule_of_a_column_that_the_schema_lacks_is_refused() {
    let mut rule = equal();
    rule.columns[0] = "bed".to_owned();
    let error = with_rules(draft().schema, &[rule]).unwrap_err().to_string();
    assert!(error.contains("lacks one of its columns"), "{error}");
}

/// The page and the Python client keep rules as JSON until they are accepted.
#[test]
fn rules_are_the_same_after_a_round_trip_through_json() {
    let rules = draft().rules;
    let json = serde_json::to_string(&rules).unwrap();
    let read: Vec<ProposedRule> = serde_json::from_str(&json).unwrap();
    assert_eq!(read, rules);
}

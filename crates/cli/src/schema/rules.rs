//! Proposed rules of a draft: shows them, and adds the accepted ones to its schema.

use std::collections::BTreeMap;

use fhaim_domain::counted;
use fhaim_intake::{Draft, ProposedRule, RULES_STATEMENT, RuleChange};

use crate::error::Error;

/// Adds the proposed rules with these texts to the draft's schema.
///
/// A rule is accepted by its text, because its number depends on the table.
pub(super) fn accept_by_text(draft: &mut Draft, texts: &[String]) -> Result<(), Error> {
    let mut chosen = Vec::new();
    for text in texts {
        let place = draft.rules.iter().position(|rule| rule.rule == text.trim());
        chosen.push(place.ok_or_else(|| {
            Error::Usage(format!(
                "--accept-rule: the rule {} is not proposed for this table; run the command without --accept-rule \
                 to see the proposed rules",
                text.trim()
            ))
        })?);
    }
    Ok(draft.accept(&chosen)?)
}

/// Shows the proposed rules. With `ask`, asks about each, and adds the accepted ones to the draft's schema.
pub(super) fn propose(
    draft: &mut Draft,
    ask: Option<impl FnMut(&str) -> Result<bool, fhaim_files::Error>>,
) -> Result<(), Error> {
    let Some(first) = draft.rules.first() else {
        return Ok(());
    };
    let way = way_to_accept(first);
    fhaim_files::tell_line(format_args!("\n{}{RULES_STATEMENT}", listing(&draft.rules)));
    match ask {
        Some(ask) => ask_about_each(draft, ask),
        None => {
            fhaim_files::tell_line(format_args!("{way}"));
            Ok(())
        }
    }
}

fn ask_about_each(
    draft: &mut Draft,
    mut ask: impl FnMut(&str) -> Result<bool, fhaim_files::Error>,
) -> Result<(), Error> {
    let mut place = 0;
    for number in 1..=draft.rules.len() {
        let Some(rule) = draft.rules.get(place) else {
            break;
        };
        let question = format!("Add rule {number} to the public schema: {}?", rule.rule);
        let mut with_rule = draft.clone();
        if let Err(error) = with_rule.accept(&[place]) {
            fhaim_files::tell_line(format_args!(
                "rule {number} is not possible with this schema: {error}"
            ));
            place += 1;
        } else if ask(&question)? {
            // The rule leaves the proposals, and the next one takes its place.
            *draft = with_rule;
        } else {
            place += 1;
        }
    }
    Ok(())
}

fn listing(rules: &[ProposedRule]) -> String {
    let mut text = String::from("proposed rules, which are not in the draft:\n");
    for (number, rule) in (1..).zip(rules) {
        let records = counted(rule.records, "record");
        text.push_str(&format!("  {number}. {}: {records}\n", rule.rule));
        if let RuleChange::Column(column) = &rule.change
            && let Some(values) = &column.values
        {
            text.push_str(&format!("     {}\n", shown_values(values)));
        }
    }
    text
}

/// Shows the first values of a derived column.
fn shown_values(values: &BTreeMap<String, String>) -> String {
    const MOST: usize = 10;
    let pairs = values.iter().take(MOST);
    let pairs: Vec<String> = pairs
        .map(|(from, value)| format!("{from:?}: {value:?}"))
        .collect();
    match values.len().saturating_sub(MOST) {
        0 => pairs.join(", "),
        more => format!("{} and {more} more", pairs.join(", ")),
    }
}

/// Tells how to accept a rule without a terminal.
fn way_to_accept(first: &ProposedRule) -> String {
    let quoted = first.rule.replace('\'', r"'\''");
    format!("To accept a rule, repeat the command with its text, such as --accept-rule '{quoted}'.")
}

#[cfg(test)]
mod tests {
    use fhaim_domain::{
        Constraint,
        form::{ColumnForm, KindForm},
    };
    use fhaim_intake::{InferOptions, infer_schema};

    use super::*;

    const ORDER: &str = "\"net\" is at most \"gross\"";
    const LABEL: &str = "\"dept_name\" follows from \"dept_code\" (2 values)";

    /// Returns a draft of 120 records with two proposed rules.
    fn draft() -> Draft {
        let row = |i: usize| {
            let (code, name) = [("C1", "Cardiology"), ("S1", "Surgery")][i % 2];
            format!("{code},{name},{},{}\n", i * 7 % 50, 50 + i * 3 % 50)
        };
        let rows: String = (0..120).map(row).collect();
        let table = format!("dept_code,dept_name,net,gross\n{rows}");
        let mut draft = infer_schema(table.as_bytes(), &InferOptions::new("t.csv", "t")).unwrap();
        draft.rules = vec![label(), order()];
        draft
    }

    fn label() -> ProposedRule {
        let values = [("C1", "Cardiology"), ("S1", "Surgery")];
        let column = ColumnForm {
            from: Some("dept_code".to_owned()),
            values: Some(values.map(|(a, b)| (a.to_owned(), b.to_owned())).into()),
            ..ColumnForm::empty("dept_name".to_owned(), KindForm::Derived, false)
        };
        ProposedRule {
            columns: vec!["dept_name".to_owned(), "dept_code".to_owned()],
            rule: LABEL.to_owned(),
            records: 120,
            change: RuleChange::Column(Box::new(column)),
        }
    }

    fn order() -> ProposedRule {
        let columns = ["net", "gross"].map(str::to_owned);
        ProposedRule {
            columns: columns.to_vec(),
            rule: ORDER.to_owned(),
            records: 1,
            change: RuleChange::Constraint(Constraint::AtMost(columns)),
        }
    }

    fn rules(draft: &Draft) -> Vec<&str> {
        draft.rules.iter().map(|rule| &*rule.rule).collect()
    }

    #[test]
    fn rules_are_listed_with_their_numbers_records_and_values() {
        let expected = format!(
            "proposed rules, which are not in the draft:\n  \
               1. {LABEL}: 120 records\n     \
                  \"C1\": \"Cardiology\", \"S1\": \"Surgery\"\n  \
               2. {ORDER}: 1 record\n"
        );
        assert_eq!(listing(&draft().rules), expected);
    }

    #[test]
    fn long_lists_of_values_are_shortened() {
        let values = (0..12).map(|n| (format!("{n:02}"), "x".to_owned()));
        let shown = shown_values(&values.collect());
        assert!(shown.ends_with("\"09\": \"x\" and 2 more"), "{shown}");
    }

    #[test]
    fn quotes_in_a_rule_are_escaped_for_the_shell() {
        let mut rule = order();
        rule.rule = "\"it's\" is at most \"x\"".to_owned();
        let way = way_to_accept(&rule);
        assert!(
            way.contains(r#"--accept-rule '"it'\''s" is at most "x"'"#),
            "{way}"
        );
    }

    #[test]
    fn rules_are_not_added_without_consent() {
        let mut draft = draft();
        let before = draft.schema.clone();
        let refuse = |_: &str| Ok(false);
        propose(&mut draft, Some(refuse).filter(|_| false)).unwrap();
        propose(&mut draft, Some(refuse)).unwrap();
        assert_eq!(draft.schema, before);
        assert_eq!(rules(&draft), [LABEL, ORDER]);
    }

    #[test]
    fn each_rule_has_its_own_question() {
        let mut draft = draft();
        let mut asked = Vec::new();
        let ask = |question: &str| {
            asked.push(question.to_owned());
            Ok(question.contains("at most"))
        };
        propose(&mut draft, Some(ask)).unwrap();
        let question = |number, rule| format!("Add rule {number} to the public schema: {rule}?");
        assert_eq!(asked, [question(1, LABEL), question(2, ORDER)]);
        assert_eq!(rules(&draft), [LABEL]);
        let at_most = ["net", "gross"].map(str::to_owned);
        assert_eq!(draft.schema.constraints(), [Constraint::AtMost(at_most)]);
    }

    #[test]
    fn rules_are_accepted_by_text() {
        let mut draft = draft();
        accept_by_text(&mut draft, &[ORDER.to_owned(), ORDER.to_owned()]).unwrap();
        assert_eq!(rules(&draft), [LABEL]);
        assert_eq!(draft.schema.constraints().len(), 1);
    }

    #[test]
    fn unknown_rule_is_refused_by_its_text() {
        let mut draft = draft();
        let unknown = "\"gross\" is at most \"net\"";
        let error = accept_by_text(&mut draft, &[unknown.to_owned()]).unwrap_err();
        assert!(error.to_string().contains(unknown), "{error}");
        assert_eq!(error.exit_code(), 2);
        assert!(draft.schema.constraints().is_empty());
    }

    #[test]
    fn impossible_rule_is_not_asked_about() {
        let mut draft = draft();
        let columns = ["net", "dept_name"].map(str::to_owned);
        draft.rules = vec![
            ProposedRule {
                change: RuleChange::Constraint(Constraint::AtMost(columns)),
                ..order()
            },
            order(),
        ];
        let mut asked = 0;
        let ask = |_: &str| {
            asked += 1;
            Ok(true)
        };
        propose(&mut draft, Some(ask)).unwrap();
        assert_eq!((asked, draft.rules.len()), (1, 1));
    }
}

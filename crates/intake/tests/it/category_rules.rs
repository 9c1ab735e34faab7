//! Relations between categories, codes and missing values that drafts propose as rules.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use fhaim_domain::{Constraint, ReadOptions, form::ColumnForm, read_csv};
use fhaim_intake::{Draft, InferOptions, RuleChange, infer_schema};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value as Json, json};

fn options() -> InferOptions {
    InferOptions::new("t.csv", "t")
}

/// Writes a table of `rows` records.
fn table(header: &str, rows: usize, record: impl Fn(usize) -> String) -> String {
    let mut csv = format!("{header}\n");
    (0..rows).for_each(|row| csv.push_str(&format!("{}\n", record(row))));
    csv
}

/// Drafts a table, accepts all proposed rules, and reads the table with the schema.
fn accepted(csv: &str, options: &InferOptions) -> Draft {
    let draft = infer_schema(csv.as_bytes(), options).unwrap();
    let mut all = draft.clone();
    let rules: Vec<usize> = (0..draft.rules.len()).collect();
    all.accept(&rules).unwrap();
    let read = ReadOptions {
        unlisted: fhaim_domain::UnlistedColumn::LeaveOut,
        ..ReadOptions::new("t.csv")
    };
    read_csv(all.schema, csv.as_bytes(), &read).unwrap();
    draft
}

fn sentences(draft: &Draft) -> Vec<&str> {
    draft.rules.iter().map(|rule| rule.rule.as_str()).collect()
}

fn rules(csv: &str) -> Vec<String> {
    let draft = accepted(csv, &options());
    sentences(&draft).into_iter().map(str::to_owned).collect()
}

fn derived(draft: &Draft, rule: usize) -> ColumnForm {
    match &draft.rules[rule].change {
        RuleChange::Column(form) => form.as_ref().clone(),
        RuleChange::Constraint(constraint) => panic!("{constraint}"),
    }
}

fn constraint(draft: &Draft, rule: usize) -> Json {
    match &draft.rules[rule].change {
        RuleChange::Constraint(constraint) => serde_json::to_value(constraint).unwrap(),
        RuleChange::Column(form) => panic!("{}", form.name),
    }
}

#[test]
fn equal_columns_are_proposed_as_copies() {
    let csv = table("id,ward,key,unit", 600, |row| {
        let ward = ["a", "b", ""][row * 7 % 3];
        format!("P{row:05},{ward},P{row:05},{ward}")
    });
    let draft = accepted(&csv, &options());
    let copies = [
        "\"key\" has the same value as \"id\"",
        "\"unit\" has the same value as \"ward\"",
    ];
    assert_eq!(sentences(&draft), copies);
    let unit = derived(&draft, 1);
    assert_eq!((unit.from.unwrap().as_str(), unit.values), ("ward", None));
    assert!(unit.nullable);
    assert_eq!(draft.rules[1].records, 600);
}

#[test]
fn label_and_group_follow_from_the_code() {
    let csv = table("label,code,group", 900, |row| {
        let code = row * 7 % 9;
        format!("Department {code},D{code},{}", ["x", "y", "z"][code / 3])
    });
    let draft = accepted(&csv, &options());
    let follow = [
        "\"label\" follows from \"code\" (9 values)",
        "\"group\" follows from \"code\" (9 values)",
    ];
    assert_eq!(sentences(&draft), follow);
    let values = derived(&draft, 1).values.unwrap();
    assert_eq!((values["D0"].as_str(), values["D8"].as_str()), ("x", "z"));
    assert_eq!(draft.rules[0].columns, ["label", "code"]);
    assert_eq!(draft.rules[0].records, 900);
}

#[test]
fn target_is_never_derived() {
    let csv = table("label,code,group", 900, |row| {
        let code = row * 7 % 9;
        format!("Department {code},D{code},{}", ["x", "y", "z"][code / 3])
    });
    let target = |name: &str| InferOptions {
        target: Some(name.to_owned()),
        ..options()
    };
    let label = accepted(&csv, &target("label"));
    assert_eq!(
        sentences(&label)[0],
        "\"code\" follows from \"label\" (9 values)"
    );
    let group = accepted(&csv, &target("group"));
    let columns = group.rules.iter().map(|rule| rule.columns[0].as_str());
    assert!(columns.collect::<Vec<&str>>().contains(&"label"));
    assert!(group.rules.iter().all(|rule| rule.columns[0] != "group"));
}

#[test]
fn copy_of_a_derived_column_follows_from_the_same_source() {
    let csv = table("code,label,again", 600, |row| {
        let code = row % 5;
        format!("{code}c,Department {code},Department {code}")
    });
    let draft = accepted(&csv, &options());
    assert_eq!(draft.rules.len(), 2);
    for rule in 0..2 {
        assert_eq!(derived(&draft, rule).from.unwrap(), "code");
    }
}

#[test]
fn code_and_label_are_missing_in_the_same_records() {
    let csv = table("code,label", 600, |row| match row % 100 {
        0 => "n/a,n/a".to_owned(),
        _ => format!("{}c,Department {}", row % 7, row % 7),
    });
    let draft = accepted(&csv, &options());
    assert_eq!(
        sentences(&draft),
        ["\"label\" follows from \"code\" (7 values)"]
    );
    assert_eq!(derived(&draft, 0).values.unwrap()[""], "n/a");
}

#[test]
fn rare_codes_and_their_rare_labels_stand_for_others() {
    let csv = table("code,label", 1_000, |row| match row % 10 {
        0 => format!("R{},Rare {}", row / 20, row / 20),
        code => format!("C{code},Common {code}"),
    });
    let draft = accepted(&csv, &options());
    assert_eq!(
        sentences(&draft),
        ["\"label\" follows from \"code\" (10 values)"]
    );
    let values = derived(&draft, 0).values.unwrap();
    assert_eq!(values["other"], "other");
    let written = serde_json::to_string(&draft.rules).unwrap();
    assert!(!written.contains("Rare") && !written.contains("R1"));
}

#[test]
fn rare_codes_with_common_labels_are_not_described() {
    let csv = table("city,region", 1_000, |row| match row % 10 {
        0 => format!("R{},{}", row / 20, ["north", "south"][row / 20 % 2]),
        city => format!("C{city},{}", ["north", "south"][city % 2]),
    });
    let draft = accepted(&csv, &options());
    assert!(
        draft
            .rules
            .iter()
            .all(|rule| matches!(rule.change, RuleChange::Constraint(Constraint::Implies(_))))
    );
}

#[test]
fn long_lists_of_codes_have_labels() {
    let csv = table("icd,text,amount", 9_000, |row| {
        let code = row * 7 % 300;
        let letter = char::from(b'A' + (code / 20) as u8);
        format!("{letter}{:02}.1,Disease of sort {code},{row}", code % 20)
    });
    let draft = accepted(&csv, &options());
    let label = draft.rules.iter().find(|rule| rule.columns[0] == "text");
    assert_eq!(
        label.unwrap().rule,
        "\"text\" follows from \"icd\" (300 values)"
    );
}

#[test]
fn relation_of_a_sorted_table_is_found() {
    // Both columns are constant in the first records.
    let csv = table("site,region,seen", 6_000, |row| {
        let site = row / 1_500;
        format!("S{site},{},{}", ["north", "south"][site / 2], row * 7 % 5)
    });
    assert_eq!(rules(&csv), ["\"region\" follows from \"site\" (4 values)"]);
}

#[test]
fn relation_with_one_exception_is_not_proposed() {
    let csv = table("code,label", 5_000, |row| {
        let label = if row == 4_321 { 1 } else { row % 7 };
        format!("{}c,Department {label}", row % 7)
    });
    let draft = accepted(&csv, &options());
    let derived = |rule: &&fhaim_intake::ProposedRule| matches!(rule.change, RuleChange::Column(_));
    assert_eq!(draft.rules.iter().find(derived), None);
}

#[test]
fn constant_and_unique_columns_have_no_rules() {
    let csv = table("number,always,nearly,code", 2_000, |row| {
        let nearly = if row % 200 == 0 { "yes" } else { "no" };
        format!(
            "{}.{},x,{nearly},{}",
            row * 37 % 2_000,
            row % 10,
            row * 7 % 5
        )
    });
    assert_eq!(rules(&csv), Vec::<String>::new());
}

#[test]
fn question_that_opens_others_is_one_rule_and_each_of_them_is_answered() {
    let csv = table("smoker,cigarettes,brand,sex", 900, |row| {
        let (sex, brand) = (["f", "m"][row / 7 % 2], row / 3 % 4);
        match row % 3 {
            0 => format!("yes,{},b{brand},{sex}", 1 + row * 7 % 40),
            _ => format!("no,,,{sex}"),
        }
    });
    let draft = accepted(&csv, &options());
    let implies = json!({"implies": {"when": {"smoker": ["no"]}, "then": {"brand": [""], "cigarettes": [""]}}});
    let answered = |name: &str| {
        let when: BTreeMap<&str, [&str; 1]> = BTreeMap::from([(name, [""])]);
        json!({"implies": {"when": when, "then": {"smoker": ["no"]}}})
    };
    assert_eq!(draft.rules.len(), 3, "{:?}", sentences(&draft));
    assert_eq!(constraint(&draft, 0), implies);
    assert_eq!(constraint(&draft, 1), answered("cigarettes"));
    assert_eq!(constraint(&draft, 2), answered("brand"));
    assert_eq!(draft.rules[0].records, 600);
}

#[test]
fn filter_questions_in_a_row_are_one_rule_each() {
    let csv = table("works,temporary,months", 1_200, |row| match row % 4 {
        0 => "no,,".to_owned(),
        1 => "yes,no,".to_owned(),
        _ => format!("yes,yes,{}", 1 + row * 7 % 36),
    });
    let draft = accepted(&csv, &options());
    let constraints: Vec<Json> = (0..draft.rules.len())
        .map(|rule| constraint(&draft, rule))
        .collect();
    assert_eq!(
        constraints,
        [
            json!({"implies": {"when": {"works": ["no"]}, "then": {"months": [""], "temporary": [""]}}}),
            json!({"implies": {"when": {"temporary": ["no"]}, "then": {"months": [""]}}}),
            json!({"implies": {"when": {"temporary": [""]}, "then": {"works": ["no"]}}}),
        ]
    );
}

#[test]
fn value_that_is_missing_wherever_another_is_missing_is_a_rule() {
    let csv = table("married,income,born", 900, |row| match row % 9 {
        0..3 => format!(",,{}", 1950 + row * 7 % 50),
        3 => format!("{},,{}", 1990 + row % 31, 1950 + row * 7 % 50),
        _ => format!("{},{},{}", 1990 + row % 31, row * 7, 1950 + row * 7 % 50),
    });
    let draft = accepted(&csv, &options());
    let implies = json!({"implies": {"when": {"married": [""]}, "then": {"income": [""]}}});
    assert_eq!(draft.rules.len(), 1, "{:?}", sentences(&draft));
    assert_eq!(constraint(&draft, 0), implies);
}

#[test]
fn skipped_amount_of_zero_is_a_rule() {
    let csv = table("insured,claims", 900, |row| match row % 3 {
        0 => "no,0".to_owned(),
        _ => format!("yes,{}", row * 7 % 50),
    });
    let draft = accepted(&csv, &options());
    let implies = json!({"implies": {"when": {"insured": ["no"]}, "then": {"claims": ["0"]}}});
    assert_eq!(constraint(&draft, 0), implies);
    assert_eq!(draft.rules.len(), 1);
}

#[test]
fn columns_of_one_form_are_missing_together() {
    let csv = table("systolic,diastolic,pulse", 900, |row| match row % 5 {
        0 => format!(",,{}", 50 + row * 7 % 60),
        _ => format!(
            "{},{},{}",
            90 + row * 7 % 90,
            50 + row * 11 % 50,
            50 + row * 7 % 60
        ),
    });
    let draft = accepted(&csv, &options());
    let together = json!({"missing_together": ["systolic", "diastolic"]});
    assert_eq!(draft.rules.len(), 1, "{:?}", sentences(&draft));
    assert_eq!(constraint(&draft, 0), together);
}

#[test]
fn impossible_values_are_proposed_once() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut csv = "diagnosis,sex,ward\n".to_owned();
    for _ in 0..3_000 {
        let diagnosis = rng.random_range(0..6);
        let sex = ["f", "m", "x"][rng.random_range(0..3)];
        let sex = if diagnosis == 0 && sex == "m" {
            "f"
        } else {
            sex
        };
        csv.push_str(&format!("d{diagnosis},{sex},w{}\n", rng.random_range(0..4)));
    }
    let draft = accepted(&csv, &options());
    assert_eq!(draft.rules.len(), 1, "{:?}", sentences(&draft));
    let never = json!({"never": {"diagnosis": "d0", "sex": "m"}});
    assert_eq!(constraint(&draft, 0), never);
}

#[test]
fn value_that_goes_with_few_others_is_one_rule() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let mut csv = "relation,status\n".to_owned();
    for _ in 0..5_000 {
        let relation = ["husband", "child", "other"][rng.random_range(0..3)];
        let status = match relation {
            "husband" => rng.random_range(0..2),
            _ => rng.random_range(0..6),
        };
        csv.push_str(&format!("{relation},s{status}\n"));
    }
    let draft = accepted(&csv, &options());
    let implies =
        json!({"implies": {"when": {"relation": ["husband"]}, "then": {"status": ["s0", "s1"]}}});
    assert_eq!(draft.rules.len(), 1, "{:?}", sentences(&draft));
    assert_eq!(constraint(&draft, 0), implies);
}

/// A table of independent columns of many sorts.
fn random_table(seed: u64) -> String {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let columns = rng.random_range(2..9);
    let rows = rng.random_range(50..900);
    let sorts: Vec<(u32, u32, f64)> = (0..columns)
        .map(|_| {
            let missing = [0.0, 0.0, 0.01, 0.3, 0.9][rng.random_range(0..5)];
            (rng.random_range(0..5), rng.random_range(2..30), missing)
        })
        .collect();
    let names: Vec<String> = (0..columns).map(|column| format!("c{column}")).collect();
    let mut csv = format!("{}\n", names.join(","));
    for _ in 0..rows {
        let cells: Vec<String> = (sorts.iter())
            .map(|&(sort, size, missing)| {
                if rng.random_bool(missing) {
                    return String::new();
                }
                match sort {
                    0 => format!("v{}", rng.random_range(0..size)),
                    // A few frequent values and many rare ones.
                    1 => format!(
                        "v{}",
                        (f64::from(size) * rng.random::<f64>().powi(4)) as u32
                    ),
                    2 => format!("{}", u32::from(rng.random_bool(1.0 / f64::from(size)))),
                    3 => format!("{:.2}", rng.random::<f64>() * 100.0),
                    _ => format!("{}", rng.random_range(0..size)),
                }
            })
            .collect();
        csv.push_str(&format!("{}\n", cells.join(",")));
    }
    csv
}

#[test]
fn independent_columns_have_no_rules() {
    for seed in 0..200 {
        let draft = infer_schema(random_table(seed).as_bytes(), &options());
        // A table of rare values only has no column to draft.
        let Ok(draft) = draft else { continue };
        assert!(draft.rules.is_empty(), "{seed}: {:?}", sentences(&draft));
    }
}

#[test]
fn rules_quote_only_values_that_enough_records_share() {
    for seed in 0..40 {
        let csv = random_table(seed);
        // A column that follows from the first one in all records, with rare values where that has some.
        let mut lines = csv.lines();
        let mut with = format!("{},label\n", lines.next().unwrap());
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for line in lines {
            let label = format!("label-{}-", line.split(',').next().unwrap());
            with.push_str(&format!("{line},{label}\n"));
            *counts.entry(label).or_default() += 1;
        }
        let Ok(draft) = infer_schema(with.as_bytes(), &options()) else {
            continue;
        };
        let written = serde_json::to_string(&draft.rules).unwrap();
        for (label, count) in counts {
            assert!(
                count >= 20 || !written.contains(&label),
                "{seed}: {label} {count}"
            );
        }
    }
}

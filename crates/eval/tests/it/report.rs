//! Tests of reports on small tables, as data and as a page.
#![allow(clippy::unwrap_used)]

use fhaim_domain::{Clique, Schema, Table};
use fhaim_eval::{
    Fact, MAX_TRIPLES, Report, association_matrix, evaluate, html_page, marginal_l1,
    model_workload_error, workload_error,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value as Json, json};

fn schema(target: &str) -> Schema {
    let schema = json!({"name": "people & <others>", "target": target, "columns": [
        {"name": "age", "kind": "numeric", "min": 0, "max": 100, "bins": 20},
        {"name": "<b>\"town\"</b>", "kind": "categorical",
         "categories": ["A", "<script>alert(1)</script>", "'C' & D"], "nullable": true},
        {"name": "class", "kind": "categorical", "categories": ["no", "yes"], "nullable": true},
        {"name": "grade", "kind": "categorical", "categories": ["1", "2", "3"]},
    ]});
    Schema::from_json("s.json", schema.to_string().as_bytes()).unwrap()
}

/// Returns records whose class depends on age and whose grade depends on class. The share `noise` of them is random.
fn table(target: &str, records: usize, noise: f64, seed: u64) -> Table {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut columns = vec![Vec::new(); 4];
    for _ in 0..records {
        let age = rng.random_range(0..20u32);
        let random = rng.random::<f64>() < noise;
        let class = if random {
            rng.random_range(0..3)
        } else {
            u32::from(age >= 10)
        };
        columns[0].push(age);
        columns[1].push(rng.random_range(0..4));
        columns[2].push(class);
        columns[3].push(if random {
            rng.random_range(0..3)
        } else {
            class.min(2)
        });
    }
    Table::new(schema(target), columns).unwrap()
}

fn report(real: &Table, synthetic: &Table, held_out: Option<&Table>) -> Report {
    evaluate(real, synthetic, held_out, &mut ChaCha8Rng::seed_from_u64(9)).unwrap()
}

#[test]
fn workload_errors_match_hand_computed_values() {
    let json = r#"{"name": "t", "columns": [
        {"name": "a", "kind": "categorical", "categories": ["x", "y"]},
        {"name": "b", "kind": "categorical", "categories": ["x", "y"]}]}"#;
    let schema = Schema::from_json("s.json", json.as_bytes()).unwrap();
    let real = Table::new(schema.clone(), vec![vec![0, 0, 1, 1], vec![0, 1, 0, 1]]).unwrap();
    let synthetic = Table::new(schema, vec![vec![0, 0], vec![0, 0]]).unwrap();
    let pair = Clique::new([0, 1]);
    assert_eq!(
        marginal_l1(&real, &synthetic, &Clique::new([0])).unwrap(),
        1.0
    );
    assert_eq!(marginal_l1(&real, &synthetic, &pair).unwrap(), 1.5);
    assert_eq!(marginal_l1(&real, &real, &pair).unwrap(), 0.0);
    let workload = [Clique::new([0]), pair.clone()];
    assert_eq!(workload_error(&real, &synthetic, &workload).unwrap(), 1.25);
    assert_eq!(workload_error(&real, &synthetic, &[]).unwrap(), 0.0);
    assert!(matches!(
        marginal_l1(&real, &synthetic, &Clique::new([2])),
        Err(fhaim_eval::Error::Codes(..))
    ));

    let model = [vec![4.0, 0.0], vec![2.0, 0.0, 1.0, 1.0]];
    let error = model_workload_error(&real, &workload, &model, 4.0).unwrap();
    assert_eq!(error, (1.0 + 0.5) / 2.0);
    assert!(matches!(
        model_workload_error(&real, &workload, &model[..1], 4.0),
        Err(fhaim_eval::Error::Workload { .. })
    ));
    assert!(matches!(
        model_workload_error(&real, &workload, &model, 0.0),
        Err(fhaim_eval::Error::Total(..))
    ));
    assert!(matches!(
        model_workload_error(&real, &workload, &model, f64::NAN),
        Err(fhaim_eval::Error::Total(..))
    ));
    assert!(matches!(
        model_workload_error(&real, &[pair], &[vec![1.0]], 4.0),
        Err(fhaim_eval::Error::Marginal { .. })
    ));
}

#[test]
fn identical_tables_have_no_differences() {
    let real = table("class", 300, 0.3, 1);
    let report = report(&real, &real, None);
    assert!(
        report
            .workloads
            .iter()
            .all(|workload| workload.mean_l1 == 0.0)
    );
    assert_eq!(
        report.workloads.iter().map(|w| w.sets).collect::<Vec<_>>(),
        [4, 6, 4]
    );
    assert!(
        report
            .pair_total_variation
            .iter()
            .flatten()
            .all(|&tv| tv == 0.0)
    );
    assert_eq!(report.association.mean_absolute_difference, 0.0);
    assert_eq!(report.closeness, None);
    assert_eq!(report.columns[0].labels[19], "95 to 100");
}

#[test]
fn model_trained_on_the_same_distribution_predicts_as_well_but_not_on_noise() {
    let (real, held_out) = (table("class", 2000, 0.2, 2), table("class", 1000, 0.2, 3));
    let good = report(&real, &table("class", 2000, 0.2, 4), Some(&held_out))
        .prediction
        .unwrap();
    assert_eq!(good.positive.as_deref(), Some("yes"));
    assert!(!good.test_records_were_seen);
    assert!(
        good.test_records < 1000,
        "records without a class are ignored"
    );
    assert!(good.real.accuracy > 0.85 && good.real.f1 > 0.85 && good.real.auc.unwrap() > 0.85);
    assert!((good.real.accuracy - good.synthetic.accuracy).abs() < 0.03);
    let noise = report(&real, &table("class", 2000, 1.0, 5), Some(&held_out))
        .prediction
        .unwrap();
    assert_eq!(noise.real, good.real);
    assert!(noise.synthetic.auc.unwrap() < 0.7);
    assert!(good.baseline_accuracy < 0.6);
}

#[test]
fn more_than_two_classes_are_predicted() {
    let real = table("grade", 1500, 0.3, 6);
    let prediction = report(&real, &table("grade", 1500, 0.3, 7), None)
        .prediction
        .unwrap();
    assert_eq!(prediction.positive, None);
    assert_eq!(prediction.classes, ["1", "2", "3"]);
    assert_eq!(prediction.test_records, 300);
    assert!(prediction.test_records_were_seen);
    // No rule can do better than 0.8: three of ten records have one of three grades at random.
    assert!(prediction.real.accuracy > 0.72 && prediction.synthetic.accuracy > 0.72);
    assert!(prediction.real.auc.unwrap() > 0.7 && prediction.baseline_accuracy < 0.6);
}

#[test]
fn missing_prediction_has_a_reason() {
    let json = r#"{"name": "t", "target": "a", "columns": [
        {"name": "a", "kind": "categorical", "categories": ["x", "y"], "nullable": true},
        {"name": "b", "kind": "categorical", "categories": ["x", "y"]}]}"#;
    let schema = Schema::from_json("s.json", json.as_bytes()).unwrap();
    let reason = |table: &Table| {
        let report = report(table, table, None);
        assert_eq!(report.prediction, None);
        report.no_prediction.unwrap()
    };
    let nulls = Table::new(schema.clone(), vec![vec![2; 10], vec![0; 10]]).unwrap();
    assert_eq!(
        reason(&nulls),
        "One of the tables has no record with a target."
    );
    let one = Table::new(schema, vec![vec![0], vec![0]]).unwrap();
    assert_eq!(reason(&one), "There are too few real records to test on.");
}

#[test]
fn copies_are_closer_to_training_records_but_fresh_records_are_not() {
    let (real, held_out) = (table("class", 1000, 0.5, 10), table("class", 1000, 0.5, 11));
    let copied = report(&real, &real, Some(&held_out)).closeness.unwrap();
    assert_eq!(copied.equal_to_training, 1.0);
    assert!(copied.closer_to_training > 0.55, "{copied:?}");
    let fresh = report(&real, &table("class", 1000, 0.5, 12), Some(&held_out))
        .closeness
        .unwrap();
    assert!((fresh.closer_to_training - 0.5).abs() < 0.05, "{fresh:?}");
    assert!(fresh.equal_to_training < 1.0);
}

#[test]
fn tables_of_different_schemas_are_rejected() {
    let (one, two) = (table("class", 20, 0.5, 1), table("grade", 20, 0.5, 1));
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let error = evaluate(&one, &two, None, &mut rng)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("the synthetic table was not read with"),
        "{error}"
    );
    assert!(matches!(
        evaluate(&one, &one, Some(&two), &mut rng),
        Err(fhaim_eval::Error::Schema(..))
    ));
}

#[test]
fn association_matrix_is_symmetric_and_detects_dependence() {
    let matrix = association_matrix(&table("class", 2000, 0.1, 13)).unwrap();
    assert!(matrix[2][3] > 0.6 && matrix[1][2] < 0.1, "{matrix:?}");
    assert_eq!(matrix[3][2], matrix[2][3]);
    assert_eq!(matrix[0][0], 1.0);
}

#[test]
fn report_serialises_to_json() {
    let real = table("class", 100, 0.3, 14);
    let json = serde_json::to_value(report(&real, &real, Some(&real))).unwrap();
    assert_eq!(json["name"], "people & <others>");
    assert_eq!(json["workloads"][1]["order"], 2);
    assert_eq!(json["pair_total_variation"][0][3], json!(0.0));
    assert!(
        json["statement"]
            .as_str()
            .unwrap()
            .contains("not differentially private")
    );
    assert!(json["prediction"]["real"]["accuracy"].is_f64());
    assert_eq!(json["no_prediction"], Json::Null);
}

/// Checks that every element is closed in order, and returns the names of all elements.
pub(crate) fn elements(page: &str) -> Vec<String> {
    const VOID: [&str; 2] = ["meta", "!DOCTYPE"];
    let (mut open, mut used) = (Vec::new(), Vec::new());
    for part in page.split('<').skip(1) {
        let (tag, _) = part
            .split_once('>')
            .expect("no unescaped < and no open tag");
        let name = tag.split_whitespace().next().unwrap();
        if let Some(closed) = name.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(closed), "{tag}");
        } else if !tag.ends_with('/') && !VOID.contains(&name) {
            open.push(name.to_owned());
        }
        used.push(name.to_owned());
    }
    assert!(open.is_empty(), "{open:?}");
    used
}

#[test]
fn page_is_well_formed_escaped_and_self_contained() {
    let (real, held_out) = (table("class", 300, 0.3, 15), table("class", 300, 0.3, 16));
    let report = report(&real, &table("class", 200, 0.6, 17), Some(&held_out));
    let fact = Fact {
        name: "mechanism <x>".to_owned(),
        value: "\"staged\" & more".to_owned(),
    };
    let page = html_page(&report, &[fact]);
    let used = elements(&page);
    assert!(
        used.iter()
            .all(|name| !["script", "img", "link", "iframe"].contains(&name.as_str()))
    );
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(page.contains("mechanism &lt;x&gt;") && page.contains("&quot;staged&quot; &amp; more"));
    for outside in ["http://", "https://", "url(", "@import", "src=", "NaN"] {
        assert!(!page.contains(outside), "{outside}");
    }
    let mut links = page.split("href=").skip(1);
    assert!(links.all(|link| link.starts_with("\"#")));
    for said in [
        "not differentially private",
        "Cram&eacute;r's V",
        "Closer to training",
        "2-way error",
    ] {
        assert!(page.contains(said), "{said}");
    }
}

#[test]
fn tables_of_one_or_many_columns_have_a_page() {
    let column =
        |i| json!({"name": format!("c{i}"), "kind": "categorical", "categories": ["x", "y"]});
    for (count, triples) in [(1, 0), (2, 0), (3, 1), (60, 34_220)] {
        let json = json!({"name": "t", "columns": (0..count).map(column).collect::<Vec<_>>()});
        let schema = Schema::from_json("s.json", json.to_string().as_bytes()).unwrap();
        let codes = (0..count).map(|c| (0..20).map(|row| (row + c) % 2).collect());
        let table = Table::new(schema, codes.collect()).unwrap();
        let report = report(&table, &table, None);
        let page = html_page(&report, &[]);
        elements(&page);
        assert!(!page.contains("NaN"));
        assert_eq!(page.contains("the 40 of 60 columns"), count == 60);
        let workload = &report.workloads[2];
        assert_eq!(workload.of, triples);
        assert_eq!(
            workload.sets as u64,
            triples.min(978),
            "every 35th of the 34,220"
        );
        assert!(workload.sets <= MAX_TRIPLES);
    }
}

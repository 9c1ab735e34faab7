//! Brute-force checks over small tables: adding any record to any of the tables changes scores and
//! counts by no more than the draft pays for.
#![allow(clippy::unwrap_used)]

use fhaim_domain::Schema;
use fhaim_dp::{Rho, Selection, accounting};
use fhaim_draft::{
    CountNoise, DraftBudget, DraftOptions, Error, bounds, by_magnitude, cells, draft, grid,
    lower_scores, readings, scores, threshold, upper_scores,
};
use fhaim_intake::TextCounts;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use serde_json::Value;

/// One text of each sort: a small and a large number, decimals with either mark, a date, a word.
const TEXTS: [&str; 7] = ["0", "3", "700", "1.5", "2,25", "2024-01-31", "word"];

/// Returns all tables of up to four values, each one of [`TEXTS`] or missing, paired with each
/// neighbour that has one more record.
fn neighbours() -> Vec<(TextCounts, TextCounts)> {
    let mut tables = vec![TextCounts::default()];
    let mut begin = 0;
    for _ in 0..4 {
        let end = tables.len();
        for index in begin..end {
            for value in 0..=TEXTS.len() {
                let grown = with(&tables[index], value);
                if !tables.contains(&grown) {
                    tables.push(grown);
                }
            }
        }
        begin = end;
    }
    let more = |table: &TextCounts| {
        let one_more = (0..=TEXTS.len()).map(|value| (table.clone(), with(table, value)));
        one_more.collect::<Vec<_>>()
    };
    tables.iter().flat_map(more).collect()
}

fn with(table: &TextCounts, value: usize) -> TextCounts {
    let mut table = table.clone();
    match TEXTS.get(value) {
        Some(text) => *table.texts.entry((*text).to_owned()).or_default() += 1,
        None => table.missing += 1,
    }
    table
}

fn steps(table: &TextCounts) -> Vec<(i64, u64)> {
    let style = fhaim_draft::Style {
        decimals: 1,
        comma: false,
    };
    let steps = table.texts.iter();
    steps
        .filter_map(|(text, &records)| Some((style.step(text)?, records)))
        .collect()
}

/// Returns the largest absolute difference between two lists of scores.
fn largest(one: &[i64], two: &[i64]) -> i64 {
    let differences = one.iter().zip(two).map(|(x, y)| (x - y).abs());
    differences.max().unwrap_or(0)
}

#[test]
fn one_more_record_changes_scores_and_a_single_cell_by_at_most_one() {
    let (readings, bounds, grid) = (readings(), by_magnitude(&bounds()), grid(-20, 1_000));
    let pairs = neighbours();
    assert!(pairs.len() > 2_000, "{}", pairs.len());
    let mut moved = 0;
    for (table, neighbour) in &pairs {
        let kinds = [table, neighbour].map(|table| scores(table, &readings, 3));
        assert!(largest(&kinds[0], &kinds[1]) <= 1);
        let [one, two] = [steps(table), steps(neighbour)];
        let [upper, lower] = [upper_scores, lower_scores]
            .map(|of| largest(&of(&one, &bounds, 5), &of(&two, &bounds, 5)));
        assert!(upper <= 1 && lower <= 1);
        for special in [&[][..], &[0, 30]] {
            let (one, two) = (cells(&one, &grid, special), cells(&two, &grid, special));
            let squared: i64 = one.iter().zip(&two).map(|(x, y)| (x - y).pow(2)).sum();
            assert!(squared <= 1);
            moved += squared;
        }
        moved += upper + lower;
        let counts = |table: &TextCounts, text: &str| table.texts.get(text).copied().unwrap_or(0);
        let squared: u64 = TEXTS
            .iter()
            .map(|text| counts(neighbour, text).abs_diff(counts(table, text)).pow(2))
            .sum();
        assert!(squared + neighbour.missing.abs_diff(table.missing).pow(2) == 1);
    }
    assert!(moved > 1_000, "{moved}");
}

/// Computes probabilities without sampling: under neighbouring tables they differ by a factor of at
/// most e^epsilon.
#[test]
fn choice_probabilities_of_neighbours_stay_within_epsilon() {
    let (readings, epsilon) = (readings(), 0.7);
    let selection = Selection::new(epsilon, 1).unwrap();
    let chances = |scores: &[i64]| {
        let weights = scores
            .iter()
            .map(|&score| (selection.epsilon() * score as f64 / 2.0).exp());
        let weights: Vec<f64> = weights.collect();
        let total: f64 = weights.iter().sum();
        weights
            .into_iter()
            .map(move |weight| weight / total)
            .collect::<Vec<f64>>()
    };
    let mut worst: f64 = 0.0;
    for (table, neighbour) in neighbours() {
        let [one, two] = [&table, &neighbour].map(|table| chances(&scores(table, &readings, 2)));
        for (x, y) in one.iter().zip(&two) {
            worst = worst.max((x / y).ln().abs());
        }
    }
    assert!(worst <= epsilon + 1e-12 && worst > epsilon / 4.0, "{worst}");
}

/// Sums the discrete Gaussian's tail term by term.
#[test]
fn text_of_one_record_passes_the_threshold_with_probability_at_most_delta() {
    for scale in [1u64, 3, 20, 150] {
        for delta in [1e-2, 1e-6, 1e-12] {
            let weight = |y: i64| (-(y as f64).powi(2) / (2.0 * (scale * scale) as f64)).exp();
            let reach = 40 * scale as i64;
            let all: f64 = (-reach..=reach).map(weight).sum();
            let least = threshold(scale, delta);
            let tail: f64 = ((least - 1)..=reach).map(weight).sum::<f64>() / all;
            assert!(tail <= delta, "scale {scale}, delta {delta}: {tail}");
            // The threshold is not needlessly large: half of it would be too small.
            let half: f64 = (least / 2..=reach).map(weight).sum::<f64>() / all;
            assert!(half > delta || scale < 20, "scale {scale}, delta {delta}");
        }
    }
}

#[test]
fn draft_budget_rejects_spending_more_than_it_has() {
    for epsilon in [0.01, 0.1, 1.0, 10.0] {
        let draft_budget = DraftBudget::new(epsilon, 1e-9).unwrap();
        for shares in [1, 3, 15, 1_000] {
            let share = draft_budget.share(shares).unwrap();
            assert!(CountNoise::of(share).unwrap().rho().unwrap() <= share);
        }
    }
    let mut draft_budget = DraftBudget::new(1.0, 1e-9).unwrap();
    draft_budget.pay(draft_budget.budget()).unwrap();
    assert!(matches!(
        draft_budget.pay(Rho::LEAST),
        Err(Error::Overspent)
    ));
}

/// Returns a table of 40,000 records: ages, pay with a spike at 0, wards of which one is rare,
/// names, dates.
fn table() -> String {
    let mut csv = "age,pay,ward,name,since\n".to_owned();
    for i in 0..40_000u64 {
        let draw = |factor: u64, below: u64| (i * factor + i / 7 * 13) % below;
        let pay = if i % 10 < 8 {
            0
        } else {
            100 + draw(7_919, 900) * draw(31, 40)
        };
        let ward = if i == 17 {
            "rare"
        } else {
            ["surgery", "inner"][(i % 3 / 2) as usize]
        };
        let (age, day, year) = (
            20 + draw(104_729, 60),
            1 + draw(11, 28),
            2_010 + draw(17, 10),
        );
        csv.push_str(&format!(
            "{age},{pay},{ward},Person {i},{day:02}.03.{year}\n"
        ));
    }
    csv
}

fn drafted(epsilon: f64, seed: u64) -> (Schema, Rho) {
    let options = DraftOptions::new("t.csv", "t", epsilon, 1e-9);
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let draft = draft(table().as_bytes(), &options, &mut rng).unwrap();
    assert!(draft.spent <= accounting::rho(epsilon, 0.5e-9).unwrap());
    assert_eq!(draft.schema.claim().unwrap().rho, draft.spent.count());
    (draft.schema, draft.spent)
}

#[test]
fn draft_describes_the_columns_and_omits_rare_values() {
    for seed in 0..3 {
        let (schema, _) = drafted(1.0, seed);
        let json: Value = serde_json::from_str(&schema.to_json()).unwrap();
        let columns = json["columns"].as_array().unwrap();
        let of = |name: &str| columns.iter().find(|c| c["name"] == name).unwrap();
        let kinds: Vec<&str> = columns
            .iter()
            .map(|c| c["kind"].as_str().unwrap())
            .collect();
        assert_eq!(
            kinds,
            ["number", "number", "categorical", "left-out", "date"],
            "{json}"
        );
        assert_eq!(
            of("ward")["categories"],
            serde_json::json!(["inner", "surgery", "other"])
        );
        assert_eq!(
            (&of("age")["integer"], &of("pay")["integer"]),
            (&true.into(), &true.into())
        );
        assert_eq!(of("pay")["special"], serde_json::json!([0]));
        assert_eq!(of("since")["format"], "%d.%m.%Y");
        assert_eq!(of("since")["min"], "2010-01-01");
        assert_eq!(of("since")["max"], "2019-12-31");
        // The nearest round bounds or the next ones, which are chosen once in twenty times.
        let edges = of("age")["edges"].as_array().unwrap();
        assert!([20, 10].map(Value::from).contains(&edges[0]), "{json}");
        let last = edges.last().unwrap();
        assert!([100, 200].map(Value::from).contains(last), "{json}");
        assert!(!schema.to_json().contains("Person") && !schema.to_json().contains("rare"));
        assert_eq!(
            Schema::from_json("again", schema.to_json().as_bytes()).unwrap(),
            schema
        );
    }
}

#[test]
fn draft_is_reproducible_from_the_same_generator() {
    assert_eq!(drafted(0.3, 7), drafted(0.3, 7));
}

#[test]
fn invalid_tables_and_options_are_rejected() {
    let refused = |csv: &str, options: DraftOptions| {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        draft(csv.as_bytes(), &options, &mut rng)
            .unwrap_err()
            .to_string()
    };
    let options = |epsilon, delta| DraftOptions::new("t.csv", "t", epsilon, delta);
    assert!(refused("a\n1\n", options(0.0, 1e-9)).contains("epsilon must"));
    assert!(refused("a\n1\n", options(1.0, 0.0)).contains("delta must"));
    assert!(refused("a\n1\n", options(1e-9, 1e-9)).contains("too small"));
    let mut without = options(1.0, 1e-9);
    without.leave_out = vec!["b".to_owned()];
    assert!(refused("a\n1\n", without).contains("there is no column \"b\""));
    assert!(refused("a,b\n1\n", options(1.0, 1e-9)).contains("row 1"));
}

/// Guards against choosing the farthest bounds under a small budget, which happened when the
/// preference of each bound over the next outweighed all records.
#[test]
fn small_budget_finds_bounds_of_the_right_magnitude() {
    let mut table = (0..14)
        .map(|n| format!("c{n}"))
        .collect::<Vec<_>>()
        .join(",")
        + "\n";
    for record in 0..30_000 {
        let value = |column: usize| (17 + (record * (column + 3)) % 74).to_string();
        table += &((0..14).map(value).collect::<Vec<_>>().join(",") + "\n");
    }
    let mut rng = ChaCha20Rng::seed_from_u64(4);
    let drafted = draft(
        table.as_bytes(),
        &DraftOptions::new("t.csv", "t", 0.1, 1e-10),
        &mut rng,
    )
    .unwrap();
    let schema: Value = serde_json::from_str(&drafted.schema.to_json()).unwrap();
    for column in schema["columns"].as_array().unwrap() {
        let edges = column["edges"]
            .as_array()
            .unwrap_or_else(|| panic!("{column}"));
        let [first, last] = [edges.first(), edges.last()].map(|e| e.unwrap().as_i64().unwrap());
        assert!((-1_000..=20).contains(&first), "{column}");
        assert!((90..=10_000).contains(&last), "{column}");
    }
}

/// Without the refusal, columns of ages would be drafted as dates of a day in 1909.
#[test]
fn draft_with_too_small_epsilon_is_rejected_with_a_sufficient_one() {
    let rows = "1,2,3,4,5,6,7,8,9,10\n".repeat(300);
    let table = format!("a,b,c,d,e,f,g,h,i,j\n{rows}");
    let mut rng = ChaCha20Rng::seed_from_u64(4);
    let mut drafted = |epsilon| {
        let options = DraftOptions::new("t.csv", "t", epsilon, 1e-10);
        draft(table.as_bytes(), &options, &mut rng).map_err(Box::new)
    };
    let refused = drafted(0.1).unwrap_err();
    let Error::Guess {
        spent,
        enough,
        columns: 10,
        ..
    } = *refused
    else {
        panic!("{refused}")
    };
    assert!(spent > Rho::ZERO);
    assert!((2.0..6.0).contains(&enough), "{enough}");
    assert!(drafted(6.0).is_ok());
}

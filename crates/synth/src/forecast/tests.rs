use fhaim_domain::Domain;
use fhaim_dp::{Rho, accounting};
use fhaim_release::{Holders, Workload};
use proptest::prelude::*;

use super::*;
use crate::MechanismName;
use crate::mechanisms::score::MEAN_ABS;

const DELTA: f64 = 1e-9;

fn schema(sizes: &[usize]) -> Schema {
    let column = |(number, &size): (usize, &usize)| {
        let categories: Vec<String> = (0..size).map(|value| format!("v{value}")).collect();
        serde_json::json!({"name": format!("c{number}"), "kind": "categorical", "categories": categories})
    };
    let columns: Vec<_> = sizes.iter().enumerate().map(column).collect();
    let schema = serde_json::json!({"name": "table", "columns": columns});
    Schema::from_json("table.json", schema.to_string().as_bytes()).unwrap()
}

fn job(sizes: &[usize], epsilon: f64) -> MechanismJob {
    let rho = accounting::rho(epsilon, DELTA).unwrap();
    MechanismJob::new(Domain::new(sizes.to_vec()), rho, u64::MAX)
}

fn forecast_of(sizes: &[usize], epsilon: f64, records: u64) -> Forecast {
    let mechanism = MechanismName::default();
    let records = RecordCount::Exactly(records);
    let job = job(sizes, epsilon);
    forecast(&*mechanism, &job, &schema(sizes), (epsilon, DELTA), records).unwrap()
}

#[test]
fn column_noise_equals_a_hand_computed_case() {
    // One column of two values: weights are 1 for the column and 0.7^(2/3) for the total. The column's share of rho 0.5
    // has scale s = sqrt(f / (2 rho)), and each of its two counts has noise s sqrt(f), with f = 1/2.
    let mechanism: MechanismName = "one-ways".parse().unwrap();
    let mut job = job(&[2], 1.0);
    job.workload = Workload::new(&job.domain, []).unwrap();
    job.rho = Rho::from_f64_down(0.5).unwrap();
    let records = RecordCount::Exactly(1000);
    let made = forecast(&*mechanism, &job, &schema(&[2]), (1.0, DELTA), records).unwrap();
    let share = 0.5 / (1.0 + 0.7f64.powf(2.0 / 3.0));
    let error = MEAN_ABS * 0.5 / (2.0 * share).sqrt() / 1000.0;
    assert!(
        (made.columns[0].share_error / error - 1.0).abs() < 1e-6,
        "{made:?}"
    );
    // The total variation distance of two values is the error of one share.
    assert!(
        (made.columns[0].error / error - 1.0).abs() < 1e-3,
        "{made:?}"
    );
    assert_eq!(
        made.sentence,
        "1,000 records, 1 column, epsilon 1: expect the column"
    );
}

#[test]
fn wide_survey_keeps_single_columns_and_names_epsilon_and_columns() {
    let made = forecast_of(&[5; 118], 1.0, 3000);
    assert_eq!(
        made.sentence,
        "3,000 records, 118 columns, epsilon 1: expect single columns only; epsilon 2.1 or 45 columns would keep \
         the strong pairs"
    );
    for remedy in &made.remedies {
        let better = match remedy.change {
            RunChange::Epsilon(epsilon) => forecast_of(&[5; 118], epsilon, 3000),
            RunChange::Columns(columns) => forecast_of(&vec![5; columns], 1.0, 3000),
            RunChange::Values(values) => forecast_of(&[values; 118], 1.0, 3000),
        };
        assert!(
            better.pairs.above_noise >= better.columns.len() - 1,
            "{remedy:?}"
        );
    }
    // One step further misses the goal.
    assert!(forecast_of(&[5; 118], 2.0, 3000).pairs.above_noise < 117);
    assert!(forecast_of(&[5; 46], 1.0, 3000).pairs.above_noise < 45);
}

#[test]
fn tiny_budget_is_only_noise() {
    let made = forecast_of(&[5; 10], 0.05, 286);
    assert!(
        made.is_only_noise() && made.pairs.above_noise == 0,
        "{made:?}"
    );
    assert_eq!(made.remedies[0].goal, Goal::Columns);
}

#[test]
fn more_holders_with_one_honest_one_add_noise() {
    let alone = forecast_of(&[5; 10], 1.0, 5000);
    let mut job = job(&[5; 10], 1.0);
    job.holders = Holders::of_records(4, 1).unwrap();
    let mechanism = MechanismName::default();
    let records = RecordCount::Exactly(5000);
    let shared = forecast(&*mechanism, &job, &schema(&[5; 10]), (1.0, DELTA), records).unwrap();
    assert!(shared.columns[0].share_error > 1.5 * alone.columns[0].share_error);
    assert!(shared.pairs.error > alone.pairs.error);
}

#[test]
fn mechanism_without_a_budget_plan_has_no_forecast() {
    let mechanism: MechanismName = "aim".parse().unwrap();
    let records = RecordCount::AtMost(100);
    let made = forecast(
        &*mechanism,
        &job(&[2, 2], 1.0),
        &schema(&[2, 2]),
        (1.0, DELTA),
        records,
    );
    assert_eq!(made, None);
}

/// Checks that no part of a forecast is worse than before.
fn is_no_worse(better: &Forecast, than: &Forecast) -> Result<(), TestCaseError> {
    const ROUNDING: f64 = 1.0 + 1e-9;
    for (one, other) in better.columns.iter().zip(&than.columns) {
        prop_assert!(one.error <= other.error * ROUNDING, "{one:?} {other:?}");
        prop_assert!(
            one.share_error <= other.share_error * ROUNDING,
            "{one:?} {other:?}"
        );
    }
    prop_assert!(better.pairs.error <= than.pairs.error * ROUNDING);
    prop_assert!(better.pairs.above_noise >= than.pairs.above_noise);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn more_budget_or_records_never_make_a_forecast_worse(
        sizes in proptest::collection::vec(2usize..20, 2..14),
        epsilon in -2.0f64..1.5,
        records in 1.5f64..5.5,
        more in 0.01f64..1.0,
    ) {
        let (epsilon, count) = (10f64.powf(epsilon), 10f64.powf(records));
        let factor = 10f64.powf(more);
        let made = forecast_of(&sizes, epsilon, count as u64);
        is_no_worse(&forecast_of(&sizes, epsilon * factor, count as u64), &made)?;
        is_no_worse(&forecast_of(&sizes, epsilon, (count * factor) as u64), &made)?;
    }
}

use fhaim_domain::Domain;
use fhaim_dp::{Rho, accounting};
use fhaim_release::{Holders, Workload};
use proptest::prelude::*;

use super::*;
use crate::mechanisms::score::MEAN_ABS;
use crate::{Aim, AimOptions, MechanismName};

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
    forecast_by("staged", sizes, epsilon, records)
}

fn forecast_by(mechanism: &str, sizes: &[usize], epsilon: f64, records: u64) -> Forecast {
    possible_forecast(mechanism, sizes, epsilon, records).unwrap()
}

/// Returns `None` for a run that is refused because of its noise.
fn possible_forecast(
    mechanism: &str,
    sizes: &[usize],
    epsilon: f64,
    records: u64,
) -> Option<Forecast> {
    let mechanism: MechanismName = mechanism.parse().unwrap();
    let job = MechanismJob {
        record_bound: records,
        ..job(sizes, epsilon)
    };
    let records = RecordCount::Exactly(records);
    forecast(&*mechanism, &job, &schema(sizes), (epsilon, DELTA), records)
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

/// The noise of AIM's fixed schedule does not depend on the budget.
#[test]
fn mechanism_without_a_budget_plan_has_no_forecast() {
    let fixed = crate::mechanisms::aim::FixedRounds {
        rounds: 3,
        total_units: 1,
        variance_units: 1,
        epsilon: 0.1,
    };
    let options = AimOptions {
        fixed: Some(fixed),
        ..AimOptions::default()
    };
    let mechanism = Aim::new(options).unwrap();
    let (job, schema) = (job(&[2, 2], 1.0), schema(&[2, 2]));
    let records = RecordCount::AtMost(100);
    let made = forecast(&mechanism, &job, &schema, (1.0, DELTA), records);
    assert_eq!(made, None);
}

#[test]
fn round_noise_equals_a_hand_computed_case() {
    // MST on two columns of two values: each column has a sixth of rho, and their pair a third. For one column, the
    // pair's table is as good as a table of the column with half of its rho. Noise on a count has scale 1 / sqrt(2 rho).
    let made = forecast_by("mst", &[2, 2], 1.0, 1000);
    let rho = accounting::rho(1.0, DELTA).unwrap().to_f64();
    let share_error = MEAN_ABS / (2.0 * (rho / 6.0 + rho / 6.0)).sqrt() / 1000.0;
    for column in &made.columns {
        assert!(
            (column.share_error / share_error - 1.0).abs() < 1e-9,
            "{made:?}"
        );
    }
    // Half the sum of the errors of four cells, without the part that belongs to the columns.
    let noise = 0.5 * MEAN_ABS * 2.0 / (2.0 * rho / 3.0).sqrt() / 1000.0;
    let interaction = noise * 0.1 / noise.hypot(0.1);
    let [a, b] = [0, 1].map(|column| made.columns[column].error);
    let error = interaction.hypot(a).hypot(b);
    assert!((made.pairs.error / error - 1.0).abs() < 1e-9, "{made:?}");
    assert_eq!(made.pairs.above_noise, 1);
}

/// AIM divides the budget for 16 rounds a column, so the first measurement of a column has more noise than that of
/// MST, which divides a third of the budget by the number of columns.
#[test]
fn every_mechanism_has_a_forecast_that_depends_on_its_division_of_the_budget() {
    let sizes = [5; 20];
    let of = |name| forecast_by(name, &sizes, 1.0, 20_000);
    let [aim, mst, l2] = ["aim", "mst", "fhaim-l2"].map(of);
    assert!(aim.columns[0].share_error > mst.columns[0].share_error);
    assert!(l2.columns[0].share_error < aim.columns[0].share_error);
    assert!(mst.pairs.above_noise <= 19, "the pairs of a tree");
    assert!(aim.pairs.above_noise > 19);
    assert!(aim.pairs.error < 0.15 && aim.pairs.error > aim.column_error());
    for name in ["aim", "mst", "fhaim-l2"] {
        assert!(
            forecast_by(name, &sizes, 0.01, 200).is_only_noise(),
            "{name}"
        );
    }
}

/// Scores of `fhaim-l2` are squares of counts, and one record changes them by about twice the number of records.
/// At a small budget their noise exceeds the score of a usual pair, so rounds measure pairs more than once.
#[test]
fn pairs_chosen_by_noise_are_measured_more_than_once() {
    let [small, large] =
        [10.0, 90.0].map(|epsilon| forecast_by("fhaim-l2", &[3; 9], epsilon, 7000));
    assert_eq!(small.pairs.count, 36);
    // 36 rounds less .9 of 9 columns: 27 rounds, which measure 36 (1 - (35/36)^27) = 19.2 pairs.
    assert_eq!(small.pairs.above_noise, 19);
    assert!(small.pairs.error > 0.1 * 16.0 / 36.0, "{small:?}");
    assert_eq!(large.pairs.above_noise, 27);
    assert!(large.pairs.error < small.pairs.error);
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
        for name in ["staged", "aim", "mst", "fhaim-l2"] {
            let of = |epsilon, count| possible_forecast(name, &sizes, epsilon, count as u64);
            let Some(made) = of(epsilon, count) else {
                continue;
            };
            for better in [of(epsilon * factor, count), of(epsilon, count * factor)] {
                better.map_or(Ok(()), |better| is_no_worse(&better, &made))?;
            }
        }
    }
}

//! Errors that a summary of single columns and coarse pairs does not show, in the tables of banks, shops and authorities.
#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;

use fhaim_domain::date_from_days;
use fhaim_eval::{Assessment, Check, Finding};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::cases::report;

const RECORDS: usize = 5_000;

/// 2024-01-01, a Monday.
const FIRST_DAY: i64 = 19_723;

fn number(name: &str, max: u32) -> Value {
    json!({"name": name, "kind": "number", "integer": true, "min": 0, "max": max, "bins": 10})
}

fn categorical(name: &str, values: &[String]) -> Value {
    json!({"name": name, "kind": "categorical", "categories": values})
}

/// Assesses a table of rows in which `error` is planted, and one without it, which must have no finding.
fn assess(
    columns: &[Value],
    row: impl Fn(usize, &mut ChaCha8Rng) -> Vec<String>,
    error: impl Fn(&mut Vec<String>, &mut ChaCha8Rng),
) -> Assessment {
    let schema = json!({"name": "t", "columns": columns}).to_string();
    let names = columns
        .iter()
        .map(|column| column["name"].as_str().unwrap());
    let head = names.collect::<Vec<_>>().join(",");
    let table = |seed: u64, error: &dyn Fn(&mut Vec<String>, &mut ChaCha8Rng)| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut csv = format!("{head}\n");
        for index in 0..RECORDS {
            let mut cells = row(index, &mut rng);
            error(&mut cells, &mut rng);
            writeln!(csv, "{}", cells.join(",")).unwrap();
        }
        csv
    };
    let real = table(1, &|_, _| {});
    let second = report(&schema, &real, &table(2, &|_, _| {})).assessment;
    assert!(second.findings.is_empty(), "{:#?}", second.findings);
    report(&schema, &real, &table(3, &error)).assessment
}

fn found<'a>(assessment: &'a Assessment, check: Check, columns: &[&str]) -> &'a Finding {
    let is_it = |finding: &&Finding| {
        finding.check == check
            && columns
                .iter()
                .all(|column| finding.columns.iter().any(|name| name == column))
    };
    let finding = assessment.findings.iter().find(is_it);
    finding.unwrap_or_else(|| panic!("{:#?}", assessment.findings))
}

/// Each town by itself has too few records for a rule.
#[test]
fn towns_in_the_wrong_state_are_found() {
    let states: Vec<String> = (0..10).map(|state| format!("s{state}")).collect();
    let towns: Vec<String> = (0..240)
        .map(|town| format!("s{}-t{town}", town % 10))
        .collect();
    let columns = [categorical("state", &states), categorical("town", &towns)];
    let row = |_: usize, rng: &mut ChaCha8Rng| {
        let town = &towns[rng.random_range(0..240)];
        vec![town[..2].to_owned(), town.clone()]
    };
    let assessment = assess(&columns, row, |cells, rng| {
        if rng.random_bool(0.03) {
            cells[0] = format!("s{}", rng.random_range(0..10));
        }
    });
    let finding = found(&assessment, Check::Rule, &["town", "state"]);
    let rule = "break the rule that each value of town has one value of state";
    assert!(finding.text.contains(rule), "{}", finding.text);
}

#[test]
fn totals_that_are_no_sums_are_found() {
    let columns = [
        number("adults", 50),
        number("children", 30),
        number("infants", 10),
        number("total", 90),
    ];
    let row = |_: usize, rng: &mut ChaCha8Rng| {
        let parts = [50, 30, 10].map(|most| rng.random_range(0..most));
        let total: u32 = parts.iter().sum();
        let cells = parts.into_iter().chain([total]);
        cells.map(|cell| cell.to_string()).collect()
    };
    let assessment = assess(&columns, row, |cells, rng| {
        if rng.random_bool(0.2) {
            cells[3] = (cells[3].parse::<u32>().unwrap() + 1).to_string();
        }
    });
    let finding = found(&assessment, Check::Rule, &["total"]);
    let rule = "break the rule that total is adults + children + infants";
    assert!(finding.text.contains(rule), "{}", finding.text);
}

#[test]
fn bookings_on_weekends_are_found() {
    let columns = [
        json!({"name": "booked", "kind": "date", "format": "%Y-%m-%d", "min": "2024-01-01", "max": "2024-12-31",
            "bins": 12}),
    ];
    let date = |day: i64| {
        let (year, month, day) = date_from_days(FIRST_DAY + day).unwrap();
        format!("{year}-{month:02}-{day:02}")
    };
    let row = |_: usize, rng: &mut ChaCha8Rng| {
        let (week, day) = (rng.random_range(0..52), rng.random_range(0..5));
        vec![date(7 * week + day)]
    };
    let assessment = assess(&columns, row, |cells, rng| {
        cells[0] = date(rng.random_range(0..364));
    });
    let finding = found(&assessment, Check::Shares, &["booked"]);
    let day = ["booked is a Saturday in 1", "booked is a Sunday in 1"];
    assert!(
        day.iter().any(|text| finding.text.starts_with(text)),
        "{}",
        finding.text
    );
}

/// Discharges are counted in hours after the admission. A ward never keeps a patient for more than a day.
#[test]
fn sentence_about_relative_datetimes_has_their_unit() {
    let wards = ["day clinic", "surgery", "medicine"].map(str::to_owned);
    let columns = [
        json!({"name": "admission", "kind": "datetime", "format": "%Y-%m-%d %H:%M", "min": "2024-01-01",
            "max": "2024-12-31", "bins": 12}),
        json!({"name": "discharge", "kind": "datetime", "format": "%Y-%m-%d %H:%M", "relative_to": "admission",
            "unit": "hour", "min": 0, "max": 199, "bins": 20}),
        categorical("ward", &wards),
    ];
    let moment = |minute: i64| {
        let (year, month, day) = date_from_days(FIRST_DAY + minute / 1_440).unwrap();
        let minute = minute % 1_440;
        let (hour, minute) = (minute / 60, minute % 60);
        format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}")
    };
    let row = |index: usize, rng: &mut ChaCha8Rng| {
        let ward = index % 3;
        let admission = rng.random_range(0..340 * 1_440);
        let longest = if ward == 0 { 24 } else { 200 };
        let discharge = admission + rng.random_range(0..longest * 60);
        vec![moment(admission), moment(discharge), wards[ward].clone()]
    };
    let assessment = assess(&columns, row, |cells, rng| {
        cells[2] = wards[rng.random_range(0..3)].clone();
    });
    let text = &found(&assessment, Check::Rule, &["discharge", "ward"]).text;
    assert!(text.contains(" hours after admission"), "{text}");
}

/// Of 20 values of a rare kind, none is left; an unusual event is four times as frequent.
#[test]
fn rare_values_with_another_share_are_found() {
    let kinds = ["usual", "rare"].map(str::to_owned);
    let answers = ["no", "yes"].map(str::to_owned);
    let columns = [categorical("kind", &kinds), categorical("fraud", &answers)];
    let row = |index: usize, rng: &mut ChaCha8Rng| {
        let kind = usize::from(index.is_multiple_of(200));
        let fraud = usize::from(rng.random_bool(0.002));
        vec![kinds[kind].clone(), answers[fraud].clone()]
    };
    let assessment = assess(&columns, row, |cells, rng| {
        cells[0] = "usual".to_owned();
        if rng.random_bool(0.006) {
            cells[1] = "yes".to_owned();
        }
    });
    found(&assessment, Check::Shares, &["kind"]);
    found(&assessment, Check::Shares, &["fraud"]);
}

/// An income is zero without a job. Each range of incomes by itself has too few of the wrong records.
#[test]
fn values_of_a_group_that_has_only_one_are_found() {
    let states = ["works", "studies", "retired"].map(str::to_owned);
    let columns = [categorical("state", &states), number("income", 99)];
    let row = |_: usize, rng: &mut ChaCha8Rng| {
        let state = [0, 0, 0, 0, 1, 2, 2][rng.random_range(0..7)];
        let income = if state == 1 {
            0
        } else {
            rng.random_range(0..100)
        };
        vec![states[state].clone(), income.to_string()]
    };
    let assessment = assess(&columns, row, |cells, rng| {
        if cells[0] == "studies" && rng.random_bool(0.04) {
            cells[1] = rng.random_range(20..100).to_string();
        }
    });
    let text = &found(&assessment, Check::Rule, &["state", "income"]).text;
    assert!(
        text.contains("is always") && text.contains("state is studies"),
        "{text}"
    );
}

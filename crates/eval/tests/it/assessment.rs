//! Tests that an assessment finds constructed errors, and nothing in a second sample.
#![allow(clippy::unwrap_used)]

use fhaim_eval::{AnalysisPurpose, AreaName, Assessment, Check, Severity, Suitability};

use crate::cases::{Case, SCHEMA, csv, report, stays};

const RECORDS: usize = 3_000;

fn assess(case: Case, size: f64, seed: u64) -> Assessment {
    let real = stays(RECORDS, seed);
    let synthetic = case.synthetic(&real, size, seed);
    report(SCHEMA, &csv(&real), &csv(&synthetic)).assessment
}

/// Whether a case is found by its check, about its columns.
fn is_found(case: Case, assessment: &Assessment) -> bool {
    let (checks, columns): (&[Check], &[&str]) = match case {
        Case::SecondDraw => return assessment.findings.is_empty(),
        Case::Shuffled => (&[Check::Association, Check::RateByGroup], &["age"]),
        Case::Rate => (&[Check::RateByGroup, Check::Association], &["ward", "died"]),
        Case::Xor => (&[Check::Triple], &["gene", "carrier", "reacts"]),
        Case::Copies => (&[Check::Copies], &[]),
        Case::Spike => (&[Check::Shares], &["dose"]),
        Case::Step => (&[Check::Form], &["charge"]),
        Case::Order => (&[Check::Rule], &["admitted", "discharged"]),
        Case::Scale => (&[Check::Distribution], &["charge"]),
        Case::Tail => (&[Check::Tails], &["charge"]),
    };
    assessment.findings.iter().any(|finding| {
        let about = |column: &&str| finding.columns.iter().any(|name| name == column);
        checks.contains(&finding.check) && columns.iter().all(about)
    })
}

fn must_find(case: Case, severity: Severity) {
    let assessment = assess(case, 1.0, 1);
    assert!(is_found(case, &assessment), "{:#?}", assessment.findings);
    assert!(
        assessment.findings[0].severity >= severity,
        "{:#?}",
        assessment.findings
    );
    let half = assess(case, 0.5, 1);
    assert!(is_found(case, &half), "at half size: {:#?}", half.findings);
}

#[test]
fn second_draw_has_no_findings() {
    let assessment = assess(Case::SecondDraw, 1.0, 1);
    assert!(assessment.findings.is_empty(), "{:#?}", assessment.findings);
    assert!(
        assessment.summary[0].starts_with("No check failed"),
        "{:?}",
        assessment.summary
    );
    for area in &assessment.areas {
        let (Some(score), Some(baseline)) = (area.score, area.baseline) else {
            panic!("{area:?} was not examined");
        };
        // A fifth of the records, of which a twentieth have the target, test the predictions.
        let tolerance = if area.name == AreaName::Prediction {
            0.2
        } else {
            0.02
        };
        assert!((score - baseline).abs() < tolerance, "{area:?}");
    }
}

#[test]
fn shuffled_column_is_found() {
    must_find(Case::Shuffled, Severity::Major);
}

#[test]
fn changed_rate_of_a_small_group_is_found() {
    let assessment = assess(Case::Rate, 1.0, 1);
    assert!(is_found(Case::Rate, &assessment), "{:#?}", assessment);
    let text = &assessment.findings[0].text;
    assert!(
        text.starts_with("where ward is obstetrics, died is yes in 3."),
        "{text}"
    );
}

#[test]
fn exclusive_or_is_found() {
    must_find(Case::Xor, Severity::Major);
}

#[test]
fn copied_records_are_found() {
    let assessment = assess(Case::Copies, 1.0, 1);
    assert!(
        is_found(Case::Copies, &assessment),
        "{:#?}",
        assessment.findings
    );
    assert!(
        assessment.summary[0].contains("30 of the"),
        "{:?}",
        assessment.summary
    );
}

#[test]
fn missing_spike_is_found() {
    must_find(Case::Spike, Severity::Major);
}

#[test]
fn lost_step_is_found() {
    must_find(Case::Step, Severity::Major);
}

#[test]
fn broken_order_is_found() {
    must_find(Case::Order, Severity::Major);
}

#[test]
fn wrong_scale_is_found() {
    must_find(Case::Scale, Severity::Major);
}

#[test]
fn cut_tail_is_found() {
    let assessment = assess(Case::Tail, 1.0, 1);
    assert!(
        is_found(Case::Tail, &assessment),
        "{:#?}",
        assessment.findings
    );
}

#[test]
fn few_columns_with_few_cells_have_no_copies() {
    // 360 cells: almost every synthetic record equals a real one by chance.
    for seed in 0..20 {
        let assessment = second_draw_of_cells(seed);
        assert!(assessment.findings.is_empty(), "{:#?}", assessment.findings);
    }
}

fn second_draw_of_cells(seed: u64) -> Assessment {
    use rand::{Rng, SeedableRng};
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
    let list = |n: usize| {
        (0..n)
            .map(|i| format!("\"{i}\""))
            .collect::<Vec<_>>()
            .join(",")
    };
    let column = |name: &str, n| {
        format!(
            r#"{{"name":"{name}","kind":"categorical","categories":[{}]}}"#,
            list(n)
        )
    };
    let schema = format!(
        r#"{{"name":"t","columns":[{},{}]}}"#,
        column("x", 20),
        column("y", 18)
    );
    let mut table = || {
        let mut text = "x,y\n".to_owned();
        for _ in 0..500 {
            let (x, y): (f64, f64) = (rng.random(), rng.random());
            text += &format!("{},{}\n", (20.0 * x * x) as u32, (18.0 * y * y) as u32);
        }
        text
    };
    let (real, synthetic) = (table(), table());
    report(&schema, &real, &synthetic).assessment
}

#[test]
fn numbers_near_the_real_ones_serve_means_although_no_value_repeats() {
    let real = csv(&stays(RECORDS, 1));
    let moved = |line: &str| {
        let mut cells: Vec<String> = line.split(',').map(str::to_owned).collect();
        if let Ok(dose) = cells[4].parse::<f64>() {
            cells[4] = format!("{:.2}", dose * 1.02);
        }
        cells.join(",") + "\n"
    };
    let synthetic: String = csv(&stays(RECORDS, 2)).lines().map(moved).collect();
    let assessment = report(SCHEMA, &real, &synthetic).assessment;
    let dose = assessment
        .uses
        .iter()
        .find(|of| of.columns == ["dose"])
        .unwrap();
    let means = (AnalysisPurpose::Means, Suitability::Good);
    assert!(dose.purposes.contains(&means), "{dose:?}");
}

#[test]
fn same_wrong_schema_of_both_tables_is_visible() {
    // Both are read as categories, but the synthetic table has lost the thousands separator.
    let schema = r#"{"name":"t","columns":[{"name":"x","kind":"number","decimals":3,"min":0,"max":999.999,
        "bins":10,"digits":10}]}"#;
    let table = |separator: &str| {
        let row = |n: u32| format!("{}{separator}{:03}\n", n % 90 + 1, n * 37 % 1_000);
        format!("x\n{}", (0..500).map(row).collect::<String>())
    };
    let (real, synthetic) = (table("."), table(".").replace('.', ".0"));
    let assessment = report(schema, &real, &synthetic.replace(".00", ".0")).assessment;
    assert!(
        assessment.findings.iter().any(|f| f.check == Check::Form),
        "{:#?}",
        assessment
    );
}

#[test]
fn unexamined_areas_have_no_score() {
    let assessment = second_draw_of_cells(1);
    let prediction = assessment
        .areas
        .iter()
        .find(|area| area.name == AreaName::Prediction)
        .unwrap();
    assert_eq!(
        (prediction.score, prediction.baseline, prediction.examined),
        (None, None, 0)
    );
    assert!(
        assessment
            .summary
            .iter()
            .any(|s| s.contains("Not checked: prediction of a target"))
    );
}

#[test]
#[ignore = "slow; needs FHAIM_DATA_DIR"]
fn adult_is_assessed_within_seconds() {
    let folder = std::path::PathBuf::from(std::env::var_os("FHAIM_DATA_DIR").unwrap());
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let (text, schema) = (read("adult.csv"), read("adult.schema.json"));
    let [one, two] = [
        crate::cases::read(&schema, &text),
        crate::cases::read(&schema, &text),
    ];
    let counts = crate::cases::texts(&text);
    let begin = std::time::Instant::now();
    let mut rng = rand::SeedableRng::seed_from_u64(9);
    let rng: &mut rand_chacha::ChaCha8Rng = &mut rng;
    let mut report = fhaim_eval::evaluate(&one.table, &two.table, None, rng).unwrap();
    let coded = begin.elapsed();
    report.add_values(&one.values, &two.values);
    let valued = begin.elapsed();
    report.add_texts(&counts, &counts);
    println!(
        "codes {coded:?}, with values {valued:?}, with texts {:?}",
        begin.elapsed()
    );
    // Other programs may use the machine, too.
    assert!(begin.elapsed().as_secs() < 60, "{:?}", begin.elapsed());
    // The same records: each unique one is a copy.
    assert_eq!(report.assessment.findings[0].check, Check::Copies);
}

/// Dates are seconds in [`fhaim_domain::RawColumn`], and a reader must not see these.
#[test]
fn dates_in_sentences_are_written_as_in_the_table() {
    let real = stays(1_000, 1);
    let text = csv(&real);
    let early = text.replace(",2023-", ",2020-").replace(",2024-", ",2020-");
    let report = report(SCHEMA, &text, &early);
    let finding = report
        .assessment
        .findings
        .iter()
        .find(|f| f.check == Check::Distribution)
        .unwrap();
    assert!(finding.text.contains(" is at most 20"), "{}", finding.text);
    let date = report
        .values
        .iter()
        .find(|value| value.name == "admitted")
        .unwrap();
    let value = date
        .furthest
        .as_ref()
        .map(|furthest| furthest.value.clone());
    assert!(value.is_none_or(|value| value.starts_with("20") && value.len() == 10));
}

#[test]
fn broken_constraints_of_the_schema_are_found() {
    let real = stays(1_000, 1);
    let mut report = report(SCHEMA, &csv(&real), &csv(&stays(1_000, 2)));
    let rule = fhaim_domain::SchemaRule {
        text: "\"admitted\" is at most \"discharged\"".to_owned(),
        columns: vec!["admitted".to_owned(), "discharged".to_owned()],
    };
    report.add_constraints(vec![rule], &[0], &[30]);
    let [finding] = &report.assessment.findings[..] else {
        panic!("{:#?}", report.assessment.findings);
    };
    assert_eq!(
        (finding.check, finding.severity),
        (Check::Rule, Severity::Major)
    );
    assert_eq!(finding.columns, ["admitted", "discharged"]);
}

#[test]
fn membership_attacks_are_found_for_copies_and_described_otherwise() {
    let [members, others, fresh] =
        [1, 2, 3].map(|seed| crate::cases::read(SCHEMA, &csv(&stays(600, seed))).table);
    for (synthetic, is_leaking) in [(&members, true), (&fresh, false)] {
        let mut rng: rand_chacha::ChaCha8Rng = rand::SeedableRng::seed_from_u64(9);
        let mut report =
            fhaim_eval::evaluate(&members, synthetic, Some(&others), &mut rng).unwrap();
        let tables = [&members, &others, synthetic];
        report.add_membership(fhaim_eval::membership(tables, None, Some((1.0, 1e-9))).unwrap());
        let summary = report.assessment.summary.join(" ");
        let words = if is_leaking {
            "recognise records"
        } else {
            "no better than guessing"
        };
        assert!(summary.contains(words), "{summary}");
        assert!(report.assessment.summary.len() <= 6, "{summary}");
        assert!(fhaim_eval::html_page(&report, &[]).contains("<h3>Membership attacks</h3>"));
    }
    let scores = (&[0.0][..], &[0.0][..]);
    assert!(matches!(
        fhaim_eval::membership([&members, &others, &fresh], Some(scores), None),
        Err(fhaim_eval::Error::Attack(..))
    ));
}

/// Prints from which size each case is found, in 20 samples.
#[test]
#[ignore = "slow"]
fn sizes_from_which_cases_are_found() {
    for case in Case::ALL.into_iter().skip(1) {
        for size in [1.0, 0.5, 0.25, 0.1] {
            let found = (0..20)
                .filter(|&seed| is_found(case, &assess(case, size, seed)))
                .count();
            println!("{:10} {size:4}: {found} of 20", case.name());
            assert!(size < 1.0 || found >= 16, "{case:?}: {found} of 20");
        }
    }
}

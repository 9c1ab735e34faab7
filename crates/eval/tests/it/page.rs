//! Tests of the page of a report: structure, charts and texts.
#![allow(clippy::unwrap_used)]

use std::{collections::BTreeSet, fmt::Write, sync::Arc};

use fhaim_domain::{ReadOptions, Schema, read_csv};
use fhaim_eval::{AnalysisPurpose, Fact, Report, Suitability, charts, evaluate, html_page};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value as Json, json};

use crate::report::elements;

/// Compares two tables by codes and by values.
fn report(columns: &Json, real: &str, synthetic: &str) -> Report {
    let json = json!({"name": "stays <1>", "columns": columns}).to_string();
    let schema = Arc::new(Schema::from_json("s.json", json.as_bytes()).unwrap());
    let options = ReadOptions {
        keep_values: true,
        ..ReadOptions::new("t.csv")
    };
    let read = |csv: &str| read_csv(schema.clone(), csv.as_bytes(), &options).unwrap();
    let (real, synthetic) = (read(real), read(synthetic));
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut report = evaluate(&real.table, &synthetic.table, None, &mut rng).unwrap();
    report.add_values(&real.values, &synthetic.values);
    report
}

fn categorical(name: &str, categories: &[&str]) -> Json {
    json!({"name": name, "kind": "categorical", "categories": categories, "nullable": true})
}

/// A table with dates, skewed numbers and categories.
fn stays(records: usize, shift: usize) -> String {
    let mut csv = "admitted,cost,ward\n".to_owned();
    for row in 0..records {
        let day = 1 + row % 28;
        let cost = 10f64.powf(((row + shift) % 100) as f64 / 20.0);
        let ward = ["<b>A & B</b>", "C", "D"][(row + shift) % 3];
        writeln!(
            csv,
            "20{:02}-{:02}-{day:02},{cost:.2},{ward}",
            20 + row % 4,
            1 + row % 12
        )
        .unwrap();
    }
    csv
}

fn stays_columns() -> Json {
    json!([
        {"name": "admitted", "kind": "date", "format": "%Y-%m-%d", "min": "2020-01-01", "max": "2023-12-31", "bins": 16,
         "digits": 100},
        {"name": "cost", "kind": "numeric", "min": 0, "max": 200_000, "bins": 20},
        categorical("ward", &["<b>A & B</b>", "C", "D"]),
    ])
}

fn example() -> Report {
    report(&stays_columns(), &stays(1_200, 0), &stays(1_200, 7))
}

fn facts(facts: &[(&str, &str)]) -> Vec<Fact> {
    let fact = |&(name, value): &(&str, &str)| Fact {
        name: name.to_owned(),
        value: value.to_owned(),
    };
    facts.iter().map(fact).collect()
}

#[test]
fn headings_are_in_order() {
    let page = html_page(&example(), &[]);
    let used = elements(&page);
    let levels: Vec<u32> = used
        .iter()
        .filter_map(|name| name.strip_prefix('h')?.parse().ok())
        .collect();
    assert_eq!(levels[..2], [1, 2]);
    assert_eq!(levels.iter().filter(|&&level| level == 1).count(), 1);
    assert!(
        levels.windows(2).all(|pair| pair[1] <= pair[0] + 1),
        "{levels:?}"
    );
}

#[test]
fn contents_lead_to_the_sections() {
    let page = html_page(&example(), &[]);
    let after = |mark: &str| -> Vec<String> {
        let parts = page.split(mark).skip(1);
        parts
            .map(|part| part.split('"').next().unwrap().to_owned())
            .collect()
    };
    let (links, ids) = (after("href=\"#"), after("<section id=\""));
    assert_eq!(links[..], ids[1..], "every section after the summary");
    assert_eq!(ids.len(), ids.iter().collect::<BTreeSet<_>>().len());
}

#[test]
fn charts_have_a_name_and_a_description() {
    let page = html_page(&example(), &[]);
    for chart in page.split("<svg ").skip(1) {
        let opened = chart.split_once('>').unwrap().1;
        assert!(
            opened.starts_with("<title>") && opened.contains("</title><desc>"),
            "{chart}"
        );
    }
}

#[test]
fn boxes_that_scroll_can_have_the_focus() {
    let page = html_page(&example(), &[]);
    let boxes = page.matches("class=\"scroll\"").count();
    assert!(boxes > 0);
    assert_eq!(page.matches("tabindex=\"0\"").count(), boxes);
}

#[test]
fn dates_and_skewed_numbers_have_their_axes() {
    let page = html_page(&example(), &[]);
    assert!(page.contains("ranges of dates.") && page.contains(">2021</text>"));
    assert!(page.contains("numbers on a logarithmic axis") && page.contains(">10,000</text>"));
    assert!(page.contains("2021-"), "quartiles are dates");
    assert!(!page.contains("1609459200"), "no seconds");
}

#[test]
fn texts_of_tables_are_escaped() {
    let page = html_page(&example(), &[]);
    assert!(page.contains("&lt;b&gt;A &amp; B&lt;/b&gt;") && !page.contains("<b>"));
    assert!(page.contains("stays &lt;1&gt;"));
}

#[test]
fn known_budget_answers_the_questions() {
    let page = html_page(
        &example(),
        &facts(&[("Epsilon", "1"), ("Delta", "1e-9"), ("Protected", "person")]),
    );
    for answer in [
        "What does this page show?",
        "A comparison of 1,200 synthetic records with 1,200 real records, over 3 columns.",
        "Is it good?",
        "Who is protected?",
        "Each person: ",
        "What did it cost?",
        "Epsilon 1, delta 1e-9. One person makes any result at most 2.7 times as likely, apart from a chance of delta.",
        "What next?",
    ] {
        assert!(page.contains(answer), "{answer}");
    }
    let page = html_page(&example(), &facts(&[("Epsilon of all jobs", "9")]));
    assert!(page.contains("Each record: ") && page.contains("guarantees almost nothing"));
}

#[test]
fn unknown_budget_is_stated() {
    let page = html_page(&example(), &[]);
    assert!(page.contains("Unknown here. The ledger or card"));
}

#[test]
fn tables_of_one_record_have_a_page() {
    let page = html_page(&report(&stays_columns(), &stays(1, 0), &stays(1, 1)), &[]);
    elements(&page);
    assert!(page.contains("1 synthetic record with 1 real record,"));
    assert!(!page.contains("NaN") && !page.contains(">inf"));
}

#[test]
fn columns_without_values_have_a_panel() {
    let columns = json!([
        {"name": "a", "kind": "numeric", "min": 0, "max": 10, "bins": 5, "nullable": true},
        categorical("b", &["x", "y"]),
    ]);
    let empty = format!("a,b\n{}", ",\n".repeat(50));
    let page = html_page(&report(&columns, &empty, &empty), &[]);
    elements(&page);
    assert_eq!(page.matches("No record has a value.").count(), 2);
    assert!(!page.contains("NaN"));
    let full = format!("a,b\n{}", "3,x\n".repeat(50));
    elements(&html_page(&report(&columns, &full, &empty), &[]));
}

#[test]
fn long_lists_of_categories_are_closed_at_first() {
    let names: Vec<String> = (0..200).map(|i| format!("code {i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let csv = (0..2_000).fold("c\n".to_owned(), |csv, row| csv + names[row % 200] + "\n");
    let page = html_page(&report(&json!([categorical("c", &names)]), &csv, &csv), &[]);
    elements(&page);
    let (before, list) = page.split_once("<summary>All values</summary>").unwrap();
    assert!(!before.contains("code 150") && list.contains("code 150"));
    assert!(page.contains("The other 190 values have 95% of the real records"));
}

#[test]
fn failed_pairs_beyond_the_list_are_not_called_good() {
    let mut report = example();
    report.assessment.findings.clear();
    for of in report
        .assessment
        .uses
        .iter_mut()
        .filter(|of| of.columns.len() == 2)
    {
        of.purposes = vec![(AnalysisPurpose::Association, Suitability::Bad)];
    }
    let page = html_page(&report, &[]);
    let pairs = page.split("<section id=\"pairs\">").nth(1).unwrap();
    let pairs = pairs.split("</section>").next().unwrap();
    assert!(pairs.contains("Not for association.") && !pairs.contains("No failed check."));
}

#[test]
fn page_of_fifteen_columns_is_small() {
    let names: Vec<String> = (0..40)
        .map(|i| format!("a category with number {i}"))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let column = |i: usize| match i % 2 {
        0 => categorical(&format!("column {i}"), &names),
        _ => {
            json!({"name": format!("column {i}"), "kind": "numeric", "min": 0, "max": 1_000, "bins": 30})
        }
    };
    let table = |shift: usize| {
        let head: Vec<String> = (0..15).map(|i| format!("column {i}")).collect();
        let mut csv = head.join(",") + "\n";
        for row in 0..3_000 {
            let cell = |i: usize| {
                let value = (row * (7 + i) + row / 11 * shift) % 1_000;
                if i.is_multiple_of(2) {
                    names[value % 40].to_owned()
                } else {
                    value.to_string()
                }
            };
            csv += &((0..15).map(cell).collect::<Vec<_>>().join(",") + "\n");
        }
        csv
    };
    let page = html_page(
        &report(&(0..15).map(column).collect(), &table(1), &table(3)),
        &[],
    );
    assert!(page.len() < 1_000_000, "{}", page.len());
}

/// Returns the relative luminance of a colour such as `#1b2330` (WCAG 2.2).
fn luminance(colour: &str) -> f64 {
    let part = |at: usize| {
        let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
        if value <= 0.04045 {
            value / 12.92
        } else {
            ((value + 0.055) / 1.055).powf(2.4)
        }
    };
    0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
}

#[test]
fn colours_have_enough_contrast_in_both_modes() {
    let style = charts::STYLE;
    let colours = |name: &str| -> Vec<f64> {
        let mark = format!("--chart-{name}: ");
        let parts = style.split(&mark).skip(1);
        parts.map(|part| luminance(&part[..7])).collect()
    };
    let panels = [luminance("#ffffff"), luminance("#1a2029")];
    for (name, least) in [
        ("ink", 4.5),
        ("quiet", 4.5),
        ("real", 3.0),
        ("synthetic", 3.0),
    ] {
        let found = colours(name);
        assert_eq!(found.len(), 2, "light and dark");
        for (colour, panel) in found.into_iter().zip(panels) {
            let contrast = (colour.max(panel) + 0.05) / (colour.min(panel) + 0.05);
            assert!(contrast >= least, "{name}: {contrast}");
        }
    }
}

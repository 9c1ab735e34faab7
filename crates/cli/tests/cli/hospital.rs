//! The export of a hospital, from a draft to a report, with the commands that its holder types.

use std::fs;

use crate::{fhaim, stderr};
use tempfile::TempDir;

/// Stays: identifiers, two times, a ward with an umlaut, an age with gaps, a weight with a decimal
/// comma, free text. The numbers are made by rule, so that every run has the same.
fn export(records: u32) -> String {
    let mut csv = "fall;aufnahme;entlassung;station;alter;gewicht;notiz\n".to_owned();
    let mut state = 1u32;
    let mut draw = |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % below
    };
    for row in 0..records {
        let (month, day, hour, minute) = (draw(12) + 1, draw(20) + 1, draw(12), draw(60));
        let (days, later) = (draw(7), draw(12));
        let age = if draw(20) == 0 {
            String::new()
        } else {
            (18 + draw(70)).to_string()
        };
        let ward = ["Gyn\u{e4}kologie", "Chirurgie", "Innere"][draw(3) as usize];
        let weight = 450 + draw(700);
        csv.push_str(&format!(
            "P{:05};{day:02}.{month:02}.2023 {hour:02}:{minute:02};{:02}.{month:02}.2023 {:02}:{minute:02};\
             {ward};{age};{},{};Bericht {row} \u{fc}ber den Verlauf\n",
            row * 31 % 99_991, day + days, hour + later, weight / 10, weight % 10
        ));
    }
    csv
}

fn column<'a>(csv: &'a str, name: &str) -> Vec<&'a str> {
    let place = csv
        .lines()
        .next()
        .unwrap()
        .split(';')
        .position(|field| field == name)
        .unwrap();
    csv.lines()
        .skip(1)
        .map(|line| line.split(';').nth(place).unwrap())
        .collect()
}

/// A time as text that sorts.
fn sortable(time: &str) -> String {
    format!(
        "{}{}{}{}",
        &time[6..10],
        &time[3..5],
        &time[..2],
        &time[10..]
    )
}

#[test]
fn an_export_becomes_a_table_that_looks_like_it() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    let csv = export(3_000);
    // As a program of old writes it: one byte a character.
    let bytes: Vec<u8> = csv.chars().map(|letter| letter as u8).collect();
    fs::write(path("export.csv"), bytes).unwrap();
    let run = |line: &str| {
        let output = fhaim(folder.path(), &line.split(' ').collect::<Vec<_>>());
        assert!(output.status.success(), "{line}: {}", stderr(&output));
        output
    };
    let drafted = stderr(&run("schema infer --data export.csv --out s.json"));
    for words in [
        "separated by ';'",
        "Windows-1252",
        "\"notiz\": left out",
        "This is a draft.",
    ] {
        assert!(drafted.contains(words), "{words}: {drafted}");
    }
    run("local --data export.csv --schema s.json --epsilon 1 --out new.csv --report r.html --yes");
    let new = fs::read_to_string(path("new.csv")).unwrap();
    assert!(
        new.starts_with("fall;aufnahme;entlassung;station;alter;gewicht\n"),
        "{new}"
    );
    let (admitted, discharged) = (column(&new, "aufnahme"), column(&new, "entlassung"));
    let pairs = admitted.iter().zip(&discharged);
    assert!(
        pairs
            .into_iter()
            .all(|(before, after)| sortable(before) <= sortable(after))
    );
    let mut identifiers = column(&new, "fall");
    let records = identifiers.len();
    identifiers.sort_unstable();
    identifiers.dedup();
    assert_eq!(identifiers.len(), records);
    let comma = |weight: &&str| {
        weight
            .split_once(',')
            .is_some_and(|(_, decimals)| decimals.len() == 1)
    };
    assert!(column(&new, "gewicht").iter().all(comma));
    assert!(column(&new, "station").contains(&"Gyn\u{e4}kologie"));
    let missing = column(&new, "alter")
        .iter()
        .filter(|age| age.is_empty())
        .count();
    let share = missing as f64 / records as f64;
    assert!((share - 0.05).abs() < 0.03, "{share}");
    let said = run("evaluate --real export.csv --synthetic new.csv --schema s.json --out e.html");
    let said = String::from_utf8(said.stdout).unwrap();
    assert!(
        said.contains("may be relied on for counts and averages"),
        "{said}"
    );
    for page in ["r.html", "e.html"] {
        let page = fs::read_to_string(path(page)).unwrap();
        assert!(page.contains("<h2>Verdict</h2>") && page.contains("<h2>Values</h2>"));
    }
}

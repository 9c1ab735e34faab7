//! One fast test of each command.

use std::fs;

use crate::{SCHEMA, fhaim, folder, lab, stderr, table};

/// Runs commands on a small table one after the other, and returns the standard output of the last.
fn last_output(commands: &[&str]) -> String {
    let folder = folder(table(60), SCHEMA);
    let mut said = String::new();
    for command in commands {
        let words: Vec<&str> = command.split_whitespace().collect();
        let output = match words.first() {
            Some(&"local") => fhaim(folder.path(), &words),
            _ => lab(folder.path(), &words),
        };
        assert!(output.status.success(), "{command}: {}", stderr(&output));
        said = String::from_utf8(output.stdout).unwrap();
        if words.contains(&"s.csv") && words.contains(&"--out") {
            let written = fs::read_to_string(folder.path().join("s.csv")).unwrap();
            assert!(written.lines().count() > 1, "{command}");
        }
    }
    said
}

const SPLIT: &str =
    "federate split --data t.csv --schema t.schema.json --rule ns --parties 3 --out parts";

#[test]
fn federate() {
    let run = "federate run --parts parts --schema t.schema.json --epsilon 5 --out s.csv";
    let said = last_output(&[SPLIT, run]);
    assert!(said.contains("3 parties, "), "{said}");
}

#[test]
fn mix() {
    let run = "mix --data t.csv --schema t.schema.json --mix 5 --epsilon 50 --out s.csv";
    let said = last_output(&[run]);
    assert!(said.contains("rho = "), "{said}");
}

#[test]
fn gan() {
    let train = "gan train --parts parts --schema t.schema.json --method dpgan --epsilon 8 --steps 3 --hidden 4 \
                 --batch 5 --out g.bin";
    let sample = "gan sample g.bin --schema t.schema.json --rows 20 --out s.csv";
    last_output(&[SPLIT, train, sample]);
}

#[test]
fn attack() {
    let local = "local --data t.csv --schema t.schema.json --epsilon 1 --out s.csv";
    let attack =
        "attack --model s.model --schema t.schema.json --members t.csv --others s.csv --drawn 100";
    let said = last_output(&[local, attack]);
    assert!(said.contains("monte carlo"), "{said}");
}

#[test]
fn bench() {
    let bench = "bench mechanisms --data t.csv --schema t.schema.json --seeds 1 --epsilon 1 --model-mb 1 \
                 --mechanism one-ways";
    let said = last_output(&[bench]);
    assert!(said.lines().any(|line| line.starts_with("t ")), "{said}");
}

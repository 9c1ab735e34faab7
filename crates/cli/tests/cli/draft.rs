//! Tests of private drafts: their content, their cost, and where the cost is shown.

use std::fs;

use crate::{fhaim, stderr};
use serde_json::Value;
use tempfile::TempDir;

/// Returns 20,000 visits with a ward (one of them is rare), an age, and a number with a spike at zero.
fn visits() -> String {
    let mut csv = "ward,age,dose,name\n".to_owned();
    for row in 0..20_000u32 {
        let ward = if row == 9 {
            "secret"
        } else {
            ["surgery", "inner"][(row % 3 / 2) as usize]
        };
        let dose = if row % 4 == 0 { 0 } else { 1 + row * 31 % 400 };
        csv.push_str(&format!(
            "{ward},{},{dose},Person {row}\n",
            20 + row * 17 % 60
        ));
    }
    csv
}

#[test]
fn private_draft_shows_its_cost_and_is_recorded() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("t.csv"), visits()).unwrap();
    let run = |line: &str| {
        let output = fhaim(folder.path(), &line.split(' ').collect::<Vec<_>>());
        assert!(output.status.success(), "{line}: {}", stderr(&output));
        stderr(&output)
    };
    let json = |name: &str| -> Value {
        serde_json::from_slice(&fs::read(folder.path().join(name)).unwrap()).unwrap()
    };
    let told = run("schema infer --data t.csv --epsilon 1 --delta 1e-9 --out s.json");
    assert!(
        told.contains("This draft may be published. It cost rho"),
        "{told}"
    );
    let schema = json("s.json");
    assert_eq!(schema["claim"]["epsilon"], 1.0);
    let text = schema.to_string();
    assert!(text.contains("surgery") && !text.contains("secret") && !text.contains("Person"));
    // The run's releases file contains the draft's cost, and the history knows the records.
    let told = run("local --data t.csv --schema s.json --epsilon 1 --out new.csv --clamp --yes");
    assert!(
        told.contains("a schema drafted privately by fhaim, s.json: rho"),
        "{told}"
    );
    assert_eq!(json("new.releases.json")["draft"], schema["claim"]);
    let new = fs::read_to_string(folder.path().join("new.csv")).unwrap();
    assert!(new.starts_with("ward,age,dose\n"), "{new}");
}

#[test]
fn invalid_private_draft_is_rejected() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("t.csv"), visits()).unwrap();
    let refused = |line: &str| {
        let output = fhaim(folder.path(), &line.split(' ').collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(2), "{line}");
        stderr(&output)
    };
    assert!(refused("schema infer --data t.csv --epsilon 0").contains("epsilon must"));
    assert!(refused("schema infer --data t.csv --epsilon 1e-9").contains("too small"));
    assert!(refused("schema infer --data t.csv --delta 1e-9").contains("--epsilon"));
}

#[test]
fn saved_model_draws_records_with_digits_and_conditions() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("t.csv"), visits()).unwrap();
    let run = |line: &str| fhaim(folder.path(), &line.split(' ').collect::<Vec<_>>());
    let done = |line: &str| {
        let output = run(line);
        assert!(output.status.success(), "{line}: {}", stderr(&output));
    };
    done("schema infer --data t.csv --leave-out name --leave-out ward --out s.json");
    done("local --data t.csv --schema s.json --ignore-columns --epsilon 10 --out new.csv --yes");
    done("sample --model new.model --schema s.json --rows 40 --where dose=0 --out zeros.csv");
    let zeros = fs::read_to_string(folder.path().join("zeros.csv")).unwrap();
    assert_eq!(zeros.lines().count(), 41);
    assert!(
        zeros.lines().skip(1).all(|line| line.ends_with(",0")),
        "{zeros}"
    );
    for (wrong, words) in [
        (
            "--model new.model --schema s.json --where dose=x",
            "has no value",
        ),
        ("--model t.csv --schema s.json", "not a saved model"),
        ("--model none --schema s.json", "No such file"),
    ] {
        let output = run(&format!("sample {wrong} --out x.csv"));
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
    }
}

#[test]
fn completions_contain_commands_and_flags() {
    let folder = TempDir::new().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let output = fhaim(folder.path(), &["shell", "completions", shell]);
        assert!(output.status.success());
        let script = String::from_utf8(output.stdout).unwrap();
        for word in ["evaluate", "held-out", "infer"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
}

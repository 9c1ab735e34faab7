//! Tests of the cards that runs write next to their tables.

use std::{collections::BTreeSet, fs, path::Path};

use fhaim_kit::hospital;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::{SCHEMA, fhaim, folder, generate, stderr, table};

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap()
}

fn card(folder: &Path) -> Value {
    serde_json::from_str(&read(folder, "out.card.json")).unwrap()
}

/// Runs a command in the folder, which must succeed.
fn run(folder: &Path, line: &str) {
    let output = fhaim(folder, &line.split(' ').collect::<Vec<_>>());
    assert!(output.status.success(), "{line}: {}", stderr(&output));
}

fn generated(command: &str, more: &str) -> TempDir {
    let folder = folder(table(200), SCHEMA);
    let more: Vec<&str> = more.split(' ').collect();
    let output = fhaim(folder.path(), &generate(command, &more));
    assert!(output.status.success(), "{}", stderr(&output));
    folder
}

#[test]
fn card_has_the_digest_and_the_records_of_its_table() {
    for (command, setting) in [("local", "in the clear"), ("run", "under encryption")] {
        let folder = generated(command, "--epsilon 2 --rows 50");
        let card = card(folder.path());
        let file = &card["distribution"][0];
        let digest = Sha256::digest(read(folder.path(), "out.csv"));
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(file["sha256"], digest);
        assert_eq!(file["fhaim:records"], 50);
        assert_eq!(card["fhaim:privacy"]["fhaim:epsilon"], 2.0);
        let found = card["fhaim:parties"]["fhaim:setting"].as_str().unwrap();
        assert!(found.starts_with(setting), "{found}");
        assert!(read(folder.path(), "out.card.html").contains(&digest));
    }
}

#[test]
fn card_adds_up_all_uses_of_the_records() {
    let folder = generated("local", "--epsilon 1");
    let spent = |folder: &Path| card(folder)["fhaim:privacy"]["fhaim:spentOnTheseRecords"].clone();
    let first = spent(folder.path());
    assert_eq!(first["fhaim:uses"], 1);
    let epsilon = first["fhaim:epsilon"].as_f64().unwrap();
    assert!((0.999..=1.000_001).contains(&epsilon), "{epsilon}");
    let again = generate("local", &["--epsilon", "1", "--yes", "--force"]);
    assert!(fhaim(folder.path(), &again).status.success());
    let second = spent(folder.path());
    assert_eq!(second["fhaim:uses"], 2);
    // Twice rho at the same delta is less than twice epsilon.
    let epsilon = second["fhaim:epsilon"].as_f64().unwrap();
    assert!((1.4..1.5).contains(&epsilon), "{epsilon}");
    assert_eq!(second["fhaim:accordingTo"], "holder");
}

#[test]
fn card_states_the_holders_and_on_whose_noise_the_guarantee_relies() {
    let folder = generated("local", "--epsilon 5 --holders 3 --honest 2");
    let parties = card(folder.path())["fhaim:parties"].clone();
    assert_eq!(parties["fhaim:holders"], 3);
    assert_eq!(parties["fhaim:honestHolders"], 2);
    assert_eq!(parties["fhaim:holdersHave"], "records");
    let page = read(folder.path(), "out.card.html");
    assert!(page.contains("up to 1 holder together"));
}

/// Whether a text has a word that is not a part of a longer word or number.
fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(start, _)| {
        let before = text[..start].chars().next_back();
        let after = text[start + word.len()..].chars().next();
        [before, after]
            .into_iter()
            .flatten()
            .all(|c| !c.is_alphanumeric())
    })
}

/// Everything of a privately drafted schema is paid for, and a card has no other value of the records. The bound on the
/// number of records follows from the table, so it is not in the card either.
#[test]
fn card_has_no_value_that_its_schema_lacks() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let export = hospital::export(2_000);
    fs::write(path.join("t.csv"), &export).unwrap();
    run(
        path,
        "schema infer --data t.csv --epsilon 1 --out t.schema.json",
    );
    run(
        path,
        "local --data t.csv --schema t.schema.json --epsilon 1 --clamp --yes --out out.csv",
    );
    let schema = read(path, "t.schema.json");
    let shown = [read(path, "out.card.html"), read(path, "out.card.json")].concat();
    // A digest may contain any few digits.
    let words = shown.split(|c: char| !c.is_ascii_hexdigit());
    let digests: BTreeSet<&str> = words.filter(|word| word.len() == 64).collect();
    let shown = digests
        .into_iter()
        .fold(shown.clone(), |text, digest| text.replace(digest, ""));
    let cells = export.lines().skip(1).flat_map(|line| line.split(';'));
    let cells: BTreeSet<&str> = cells
        .filter(|cell| cell.len() > 4 && !schema.contains(cell))
        .collect();
    assert!(cells.len() > 4_000, "{}", cells.len());
    let found: Vec<&&str> = cells.iter().filter(|cell| has_word(&shown, cell)).collect();
    assert!(found.is_empty(), "{found:?}");
    let card = card(path);
    assert_eq!(card["fhaim:schema"]["fhaim:origin"], "private draft");
    assert_eq!(
        card["fhaim:privacy"]["fhaim:spentOnTheseRecords"]["fhaim:uses"],
        2
    );
    assert_eq!(card["fhaim:privacy"].get("fhaim:recordBound"), None);
}

//! Datasets of several holders, without services.

use std::fs;

use fhaim_protocol::roster::{HolderKey, Member};

use crate::{SCHEMA, fhaim, folder, stderr, table};

/// What `fhaim dataset create` prints on standard error for a dataset of these holders. Nobody is signed in, so it
/// fails after the terms are complete.
fn create(holders: &[&str], more: &[&str]) -> String {
    let folder = folder(table(20), SCHEMA);
    let mut arguments = vec!["dataset", "create", "--schema", "t.schema.json"];
    arguments.extend(["--epsilon", "1"]);
    arguments.extend(more);
    let cards: Vec<String> = holders.iter().map(|name| format!("{name}.json")).collect();
    for (number, card) in (1..).zip(&cards) {
        let member = Member {
            account: card.clone(),
            columns: Vec::new(),
            record_bound: 128,
            key: HolderKey::from_bytes(&[number; 32]).public(),
        };
        let member = serde_json::to_string(&member).unwrap();
        fs::write(folder.path().join(card), member).unwrap();
        arguments.extend(["--holder", card]);
    }
    let output = fhaim(folder.path(), &arguments);
    assert!(!output.status.success());
    stderr(&output)
}

#[test]
fn create_with_two_holders_warns_about_dishonest_ones() {
    let told = create(&["ana", "ben"], &[]);
    assert!(
        told.contains("warning: one dishonest holder of this dataset can obtain the dataset's key"),
        "{told}"
    );
}

#[test]
fn create_with_one_holder_prints_no_warning() {
    for told in [
        create(&["ana"], &[]),
        create(&[], &["--record-bound", "64"]),
    ] {
        assert!(!told.contains("warning"), "{told}");
    }
}

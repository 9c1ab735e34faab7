//! Tests of datasets with several holders, without services.

use std::fs;

use fhaim_protocol::roster::{HolderSigningKey, Member};

use crate::{SCHEMA, fhaim, folder, stderr, table};

/// Returns the standard error of `fhaim dataset create` for these holders.
///
/// Nobody is signed in, so the command fails after it has completed the terms.
fn create(holders: &[&str], columns: [&[&str]; 2], more: &[&str]) -> String {
    let folder = folder(table(20), SCHEMA);
    let mut arguments = vec!["dataset", "create", "--schema", "t.schema.json"];
    arguments.extend(["--epsilon", "1"]);
    arguments.extend(more);
    let cards: Vec<String> = holders.iter().map(|name| format!("{name}.json")).collect();
    for ((number, card), columns) in (1..).zip(&cards).zip(columns) {
        let member = Member {
            account: card.clone(),
            columns: columns.iter().map(|&name| name.to_owned()).collect(),
            record_bound: 128,
            key: HolderSigningKey::from_bytes(&[number; 32]).public(),
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
fn create_with_holders_of_columns_warns_that_one_can_read_the_others() {
    let columns: [&[&str]; 2] = [&["x"], &["c", "y"]];
    let told = create(&["ana", "ben"], columns, &[]);
    assert!(
        told.contains("warning: a holder that deviates from the protocol can read the rows"),
        "{told}"
    );
}

#[test]
fn create_with_other_holders_prints_no_warning() {
    for told in [
        create(&["ana", "ben"], [&[], &[]], &[]),
        create(&["ana"], [&[], &[]], &[]),
        create(&[], [&[], &[]], &["--record-bound", "64"]),
    ] {
        assert!(!told.contains("warning"), "{told}");
    }
}

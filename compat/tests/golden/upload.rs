//! Uploads: the plan, names of objects, and the journal that a holder keeps of one.

use crate::files::{KEPT, LANDED, WITNESS, flipped, golden, json};
use crate::terms::complete;
use fhaim_api::Digest;
use fhaim_domain::{Schema, Table};
use fhaim_he::Layout;
use fhaim_protocol::encryption::Encryption;
use fhaim_protocol::upload::{Object, UploadPlan};
use fhaim_sdk::{Error, Journal, KeptLadder, Records};
use std::sync::Arc;
use uuid::Uuid;

const DATASET: Uuid = Uuid::from_bytes([0xd5; 16]);

fn objects() -> Vec<(Object, Digest)> {
    let column = Object::Column {
        column: 12,
        chunk: 3,
    };
    let noise = Object::Noise {
        page: 0,
        level: 4,
        index: 1,
    };
    vec![(column, Digest::of(b"1")), (noise, Digest::of(b"2"))]
}

#[test]
fn an_upload_plan_is_written_as_it_was_read() {
    let plan = complete("staged").plan().unwrap();
    let plan = UploadPlan {
        columns: 26,
        layout: Layout::from_parts(2, 8192).unwrap(),
        ladder: plan.run_ladder,
        residues: plan.set.plaintext_moduli.len(),
        encryption: Encryption::PublicKey,
    };
    json(LANDED, "upload-plan.json", &plan);
}

#[test]
fn a_journal_is_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let table = Digest::of(b"table");
    let golden = golden(LANDED, "upload.journal", || {
        let mut journal = Journal::open(&path, DATASET, table).unwrap();
        for (object, digest) in objects() {
            journal.confirm(object, digest).unwrap();
        }
        std::fs::read(&path).unwrap()
    });
    std::fs::write(&path, &golden).unwrap();
    let journal = Journal::open(&path, DATASET, table).unwrap();
    let expected: Vec<_> = objects().iter().map(|(o, d)| (o.name(), *d)).collect();
    assert!(journal.sent().clone().into_iter().eq(expected));
    assert_eq!(std::fs::read(&path).unwrap(), golden);

    // A journal of the same objects has the same bytes.
    std::fs::remove_file(&path).unwrap();
    let mut journal = Journal::open(&path, DATASET, table).unwrap();
    for (object, digest) in objects() {
        journal.confirm(object, digest).unwrap();
    }
    assert_eq!(std::fs::read(&path).unwrap(), golden);

    // One that was cut off has the whole lines, and one that was damaged is refused or read.
    let lines = golden.iter().filter(|&&b| b == b'\n').count();
    for length in 0..golden.len() {
        std::fs::write(&path, &golden[..length]).unwrap();
        let journal = Journal::open(&path, DATASET, table).unwrap();
        assert!(journal.sent().len() < lines - 1);
    }
    let head = golden.iter().position(|&b| b == b'\n').unwrap();
    for bit in 0..8 * head {
        std::fs::write(&path, flipped(&golden, bit)).unwrap();
        match Journal::open(&path, DATASET, table) {
            Err(Error::Journal { .. }) => {}
            Err(other) => panic!("{other}"),
            // A digit in the other case is the same digit.
            Ok(_) => assert!(golden[bit / 8].is_ascii_alphabetic() && bit % 8 == 5),
        }
    }
}

/// With its key go what was released, and the noise in it: see `the_noise_of_a_key_is_for_good` in `dp`.
#[test]
fn a_ladders_key_is_read_for_good() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ladder");
    let records = |codes| {
        let schema = br#"{"name":"t","columns":[
            {"name":"a","kind":"categorical","categories":["x","y"]}]}"#;
        let schema = Schema::from_json("t.json", schema).unwrap();
        Records::Table(Arc::new(Table::new(schema, vec![codes]).unwrap()))
    };
    let table = records(vec![0, 1, 1]);
    // Of the first version, which does not say what was uploaded: nothing can be checked by it, and an
    // upload under way goes on with it.
    let first = golden(KEPT, "upload.ladder", Vec::new);
    let second = golden(WITNESS, "upload.ladder", || {
        let text = String::from_utf8(first.clone()).unwrap();
        let text = text.replace("\"version\":1", "\"version\":2");
        let end = format!("\"complete\":true,\"manifest\":\"{}\"}}", "ab".repeat(32));
        text.replace("\"complete\":false}", &end).into_bytes()
    });
    std::fs::write(&path, second).unwrap();
    let second = KeptLadder::read(&path, DATASET).unwrap().unwrap();
    std::fs::write(&path, &first).unwrap();
    let kept = KeptLadder::read(&path, DATASET).unwrap().unwrap();
    assert_eq!(kept.part(), 1);
    assert_eq!(second.key().as_bytes(), kept.key().as_bytes());
    assert!(kept.is_of(&table) && !kept.is_of(&records(vec![0, 1, 0])));
    let hex: String = kept
        .key()
        .as_bytes()
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    assert!(std::str::from_utf8(&first).unwrap().contains(&hex));
    assert!(KeptLadder::read(&path, Uuid::nil()).is_err());
    for length in 0..first.len() {
        std::fs::write(&path, &first[..length]).unwrap();
        assert!(KeptLadder::read(&path, DATASET).is_err());
    }
}

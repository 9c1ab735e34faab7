//! Uploads: the plan, the names of objects, and the holder's journal.

use crate::files::{flipped, golden, json};
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
fn upload_plan_is_unchanged() {
    let plan = complete("staged").plan().unwrap();
    let plan = UploadPlan {
        columns: 26,
        layout: Layout::from_parts(2, 8192).unwrap(),
        ladder: plan.core.run_ladder,
        residues: plan.core.set.plaintext_moduli.len(),
        encryption: Encryption::OwnKey,
    };
    json("upload-plan.json", &plan);
    assert_eq!(plan.objects().next(), Some(Object::Keys));
    let of_roster = plan.under(Encryption::RosterKey);
    json("upload-plan.roster.json", &of_roster);
    assert!(of_roster.objects().all(|object| object != Object::Keys));
}

#[test]
fn upload_journal_is_unchanged_and_can_be_continued() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let table = Digest::of(b"table");
    let golden = golden("upload.journal", || {
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
    drop(journal);

    // A journal of the same objects has the same bytes.
    std::fs::remove_file(&path).unwrap();
    let mut journal = Journal::open(&path, DATASET, table).unwrap();
    for (object, digest) in objects() {
        journal.confirm(object, digest).unwrap();
    }
    assert_eq!(std::fs::read(&path).unwrap(), golden);
    drop(journal);

    // A truncated journal is read up to its last whole line. A damaged journal is rejected, or read.
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
            // A hexadecimal digit in the other case is the same digit.
            Ok(_) => assert!(golden[bit / 8].is_ascii_alphabetic() && bit % 8 == 5),
        }
    }
}

/// The key determines the noise of an upload: see `noise_of_a_key_is_unchanged` in `dp`.
#[test]
fn ladder_key_is_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ladder");
    let records = |codes| {
        let schema = br#"{"name":"t","columns":[
            {"name":"a","kind":"categorical","categories":["x","y"]}]}"#;
        let schema = Schema::from_json("t.json", schema).unwrap();
        Records::Table(Arc::new(Table::new(schema, vec![codes]).unwrap()))
    };
    let table = records(vec![0, 1, 1]);
    let bytes = golden("upload.ladder", || {
        KeptLadder::make(&path, DATASET, 1, &table).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let end = format!("\"complete\":true,\"manifest\":\"{}\"}}", "ab".repeat(32));
        text.replace("\"complete\":false}", &end).into_bytes()
    });
    let text = std::str::from_utf8(&bytes).unwrap();
    let begun = format!("{}}}", text.split_once(",\"manifest\"").unwrap().0);
    for text in [text, &begun] {
        std::fs::write(&path, text).unwrap();
        let kept = KeptLadder::read(&path, DATASET).unwrap().unwrap();
        assert_eq!(kept.part(), 1);
        assert!(kept.is_of(&table) && !kept.is_of(&records(vec![0, 1, 0])));
        let key = kept.key().as_bytes().iter();
        let hex: String = key.map(|b| format!("{b:02x}")).collect();
        assert!(text.contains(&hex));
        assert!(matches!(
            KeptLadder::read(&path, Uuid::nil()),
            Err(Error::Ladder { .. })
        ));
    }
    for length in 0..bytes.len() {
        std::fs::write(&path, &bytes[..length]).unwrap();
        assert!(matches!(
            KeptLadder::read(&path, DATASET),
            Err(Error::Ladder { .. })
        ));
    }
}

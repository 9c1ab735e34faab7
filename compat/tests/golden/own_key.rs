//! A holder's key of its own: the key, what is encrypted under it, the terms that name it and the journal that keeps it.
//! What else is made with one is in `encryption`.

use crate::encryption::{HEADER, HIDDEN, malformed, public, reveals, secret};
use crate::files::{golden, json, refuses_damage, refuses_unknown_fields, stored};
use crate::terms::terms;
use fhaim_api::Digest;
use fhaim_dp::LadderPlan;
use fhaim_he::{HolderKey, Layout, P1, Parameters, SeededCiphertext};
use fhaim_protocol::encryption::{Encryption, key_from_text, key_to_text};
use fhaim_protocol::terms::Terms;
use fhaim_protocol::upload::{Object, UploadPlan};
use fhaim_sdk::Journal;
use fhaim_synth::Mechanisms;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use uuid::Uuid;

const DATASET: Uuid = Uuid::from_bytes([0xd5; 16]);

fn holder_key(params: &Parameters) -> HolderKey {
    let bytes = golden("holder-key.p1", || {
        let mut rng = ChaCha20Rng::seed_from_u64(11);
        let key = HolderKey::random(params, &mut rng).unwrap();
        key.to_bytes().to_vec()
    });
    let key = HolderKey::from_bytes(params, &bytes).unwrap();
    assert_eq!(*key.to_bytes(), bytes);
    refuses_damage(&bytes, HEADER, |bytes| {
        malformed(HolderKey::from_bytes(params, bytes));
    });
    key
}

#[test]
fn a_seeded_ciphertext_decrypts_under_the_key_that_it_is_switched_to() {
    let params = Parameters::new(P1).unwrap();
    let key = holder_key(&params);
    let mut rng = ChaCha20Rng::seed_from_u64(12);
    let bytes = golden("seeded-ciphertext.p1", || {
        key.encrypt(&HIDDEN, &mut rng).unwrap()[0].to_bytes(&params)
    });
    let seeded = SeededCiphertext::from_bytes(&params, &bytes).unwrap();
    assert_eq!(
        (seeded.to_bytes(&params), seeded.key_id()),
        (bytes.clone(), key.id())
    );
    let keys = key.switch_keys(&public(&params), None, &mut rng).unwrap();
    let switched = keys.switch(&seeded.expand(&params).unwrap()).unwrap();
    reveals(&secret(&params), switched);
    refuses_damage(&bytes, HEADER, |bytes| {
        malformed(SeededCiphertext::from_bytes(&params, bytes));
    });
}

/// Terms that name a parameter set other than the chosen one.
fn own() -> Terms {
    let own = Terms {
        encryption: Encryption::HolderKey,
        parameter_set: Some(P1.id),
        ..terms("staged")
    };
    own.complete(&Mechanisms).unwrap()
}

#[test]
fn terms_with_a_holders_own_key_are_written_as_they_were_read() {
    let (own, name) = (own(), "terms.own-key.json");
    json(name, &own);
    refuses_unknown_fields::<Terms>(name);
    let text = String::from_utf8(stored(name)).unwrap();
    for (from, to) in [
        (r#"-key","parameter_set":1"#, r#"-key""#),
        (r#""parameter_set":1"#, r#""parameter_set":3"#),
        (r#""parameter_set":1"#, r#""parameter_set":99"#),
    ] {
        let other = text.replacen(from, to, 1);
        assert_ne!(other, text);
        let other: Terms = serde_json::from_str(&other).unwrap();
        assert!(other.plan().is_err() && other.outline().is_err(), "{to}");
    }
    let plan = own.plan().unwrap();
    let plans = (plan.set.id, plan.run_ladder, plan.ladder().unwrap());
    json::<(u8, LadderPlan, LadderPlan)>("plan.own-key.json", &plans);
}

#[test]
fn an_uploads_plan_and_its_first_object() {
    let plan = own().plan().unwrap();
    let plan = UploadPlan {
        columns: 26,
        layout: Layout::from_parts(2, 8192).unwrap(),
        ladder: plan.run_ladder,
        residues: plan.set.plaintext_moduli.len(),
        encryption: Encryption::HolderKey,
    };
    json("upload-plan.own-key.json", &plan);
    assert_eq!(plan.objects().next(), Some(Object::Keys));
    json("object.keys.json", &Object::Keys);
}

/// The key is read with what was sent under it; what was sent under another before does not count.
#[test]
fn a_journal_with_a_key_is_gone_on_with() {
    let params = Parameters::new(P1).unwrap();
    let key = holder_key(&params);
    let text = key_to_text(&key);
    assert_eq!(key_from_text(&params, &text).unwrap().id(), key.id());
    let table = Digest::of(b"table");
    let golden = golden("upload.own-key.journal", || {
        let sent = |name: &str, what: &[u8]| {
            format!(
                "{{\"object\":\"{name}\",\"digest\":\"{}\"}}\n",
                Digest::of(what)
            )
        };
        let head = format!("{{\"version\":1,\"dataset\":\"{DATASET}\",\"table\":\"{table}\"}}\n");
        let line = format!("{{\"holder_key\":\"{}\"}}\n", *text);
        let lines = [
            head,
            sent("column/1/0", b"0"),
            line,
            sent("keys", b"1"),
            sent("noise/0/4/1", b"2"),
        ];
        lines.concat().into_bytes()
    });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    std::fs::write(&path, &golden).unwrap();
    let journal = Journal::open(&path, DATASET, table).unwrap();
    let sent: Vec<_> = journal.sent().clone().into_iter().collect();
    let expected = [("keys", b"1"), ("noise/0/4/1", b"2")];
    assert_eq!(
        sent,
        expected.map(|(name, what)| (name.to_owned(), Digest::of(what)))
    );
    assert_eq!(std::fs::read(&path).unwrap(), golden);
    // One that is cut off within the key has nothing that was sent under it.
    let end = golden.len() - 300;
    std::fs::write(&path, &golden[..end]).unwrap();
    let journal = Journal::open(&path, DATASET, table).unwrap();
    assert_eq!(journal.sent().keys().collect::<Vec<_>>(), ["column/1/0"]);
    assert!(!format!("{journal:?}").contains(&text[..40]));
}

//! Upload keys: a key, a ciphertext under it, and the journal that has it. `encryption` tests the other objects that
//! are made with an upload key.

use crate::encryption::{HEADER, HIDDEN, malformed, public, reveals, secret};
use crate::files::{golden, json, refuses_damage, refuses_unknown_fields};
use fhaim_api::Digest;
use fhaim_api::keys::{Confirmation, UploadKeyRequest, UploadKeySeeds, UploadSeedCall};
use fhaim_he::{Parameters, STANDARD, SeededCiphertext, UploadKey};
use fhaim_protocol::encryption::{key_from_text, key_to_text};
use fhaim_protocol::request::DatasetId;
use fhaim_protocol::roster;
use fhaim_protocol::upload::Object;
use fhaim_protocol::upload_key::SeedRequest;
use fhaim_sdk::Journal;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use uuid::Uuid;

const DATASET: Uuid = Uuid::from_bytes([0xd5; 16]);

/// Returns the golden upload key, under the parameter set STANDARD.
pub fn upload_key(params: &Parameters) -> UploadKey {
    let bytes = golden("upload-key.standard", || {
        let mut rng = ChaCha20Rng::seed_from_u64(11);
        let key = UploadKey::random(params, &mut rng).unwrap();
        key.to_bytes().to_vec()
    });
    let key = UploadKey::from_bytes(params, &bytes).unwrap();
    assert_eq!(*key.to_bytes(), bytes);
    refuses_damage(&bytes, HEADER, |bytes| {
        malformed(UploadKey::from_bytes(params, bytes));
    });
    key
}

#[test]
fn switched_seeded_ciphertext_decrypts_under_the_target_key() {
    let params = Parameters::new(STANDARD).unwrap();
    let key = upload_key(&params);
    let mut rng = ChaCha20Rng::seed_from_u64(12);
    let bytes = golden("seeded-ciphertext.standard", || {
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

#[test]
fn name_of_the_switching_keys_object_is_unchanged() {
    json("object.keys.json", &Object::Keys);
}

#[test]
fn messages_that_fetch_an_upload_key_are_unchanged() {
    let asked = SeedRequest {
        dataset: DatasetId(DATASET.into_bytes()),
        holder: 1,
        evaluation_keys: [2; 32],
        one_time_key: [3; 32],
    };
    let request = UploadKeyRequest {
        one_time_key: asked.one_time_key,
        signature: asked.sign(&roster::HolderSigningKey::from_bytes(&[1; 32])),
    };
    json("upload-key-request.json", &request);
    refuses_unknown_fields::<UploadKeyRequest>("upload-key-request.json");
    let call = UploadSeedCall {
        holder: asked.holder,
        request,
        confirmation: Confirmation::new(&[7; 16], &[vec![1, 2], vec![3]]),
    };
    json("upload-seed-call.json", &call);
    refuses_unknown_fields::<UploadSeedCall>("upload-seed-call.json");
    let seeds = UploadKeySeeds {
        seeds: vec!["AAEC".to_owned(), "_w".to_owned()],
    };
    assert_eq!(seeds.bytes().unwrap(), [vec![0, 1, 2], vec![255]]);
    json("upload-key-seeds.json", &seeds);
}

/// The journal returns the key and the objects that were sent under it. Objects sent under an earlier key do not
/// count.
#[test]
fn journal_with_an_upload_key_can_be_continued() {
    let params = Parameters::new(STANDARD).unwrap();
    let key = upload_key(&params);
    let text = key_to_text(&key);
    assert_eq!(key_from_text(&params, &text).unwrap().id(), key.id());
    let table = Digest::of(b"table");
    let golden = golden("upload.key.journal", || {
        let sent = |name: &str, what: &[u8]| {
            format!(
                "{{\"object\":\"{name}\",\"digest\":\"{}\"}}\n",
                Digest::of(what)
            )
        };
        let head = format!("{{\"version\":1,\"dataset\":\"{DATASET}\",\"table\":\"{table}\"}}\n");
        let line = format!("{{\"upload_key\":\"{}\"}}\n", *text);
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
    drop(journal);
    // A journal that is truncated within the key has no objects that were sent under it.
    let end = golden.len() - 300;
    std::fs::write(&path, &golden[..end]).unwrap();
    let journal = Journal::open(&path, DATASET, table).unwrap();
    assert_eq!(journal.sent().keys().collect::<Vec<_>>(), ["column/1/0"]);
    assert!(!format!("{journal:?}").contains(&text[..40]));
}
